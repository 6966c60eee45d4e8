"""What somebody should look at, each with what to do; pure functions of what the server knows anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.app.administration.health import FULL, LITTLE_DISK, NAMED, SILENT_SECONDS
from greenroom.actors.app.administration.replies import Advice, Severity
from greenroom.actors.core.audit.actor import BackupNoted
from greenroom.actors.core.audit.query import AuditGap
from greenroom.actors.core.auth.grants import KeyRecord
from greenroom.actors.core.presence.requests import ProcessPresence
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.runtime import RuntimeStatistics

BACKUP_DAYS: Final = 7
EXPIRY_DAYS: Final = 14
MOST_WAITING: Final = 100
"""Events of hooks; the owner takes each within a second, unless it cannot."""


class Known(NamedTuple):
    """What is known of a server.

    Attributes:
        now: The time in microseconds since 1970 UTC.
        is_sound: Whether the store can still be relied on.
        statistics: Of the runtime.
        embedding: Of the embedder.
        backup: The last one.
        gaps: Where the audit log did not go on.
        keys: All API keys.
        processes: Those of the folder.
    """

    now: int
    is_sound: bool
    statistics: RuntimeStatistics
    embedding: EmbeddingStatistics
    backup: BackupNoted | None
    gaps: Sequence[AuditGap]
    keys: Sequence[KeyRecord]
    processes: Sequence[ProcessPresence]


def advice(known: Known) -> list[Advice]:
    """Return what should be looked at, errors first."""
    found = [
        each
        for of in (_store, _space, _actors, _messages, _relay, _embedder, _backup, _audit, _keys, _hooks)
        for each in of(known)
    ]
    return sorted(found, key=lambda each: each.severity != "error")


def _store(known: Known) -> Iterator[Advice]:
    if not known.is_sound:
        yield _said(
            "error",
            "store",
            "a commit failed for good, so nothing is answered",
            "restart the server; if it names damage, `greenroom restore` a backup, or `greenroom repair`",
        )
    if failures := known.statistics.store.failures:
        sentence = f"{failures:,} works were not committed since the start"
        yield _said("warning", "store", sentence, "the server's log says why; mostly there was no room")


def _space(known: Known) -> Iterator[Advice]:
    store = known.statistics.store
    if store.map_bytes and store.used_bytes > FULL * store.map_bytes:
        share = 100 * store.used_bytes / store.map_bytes
        sentence = f"the store has {share:.0f} % of what --max-size lets it have; at 95 % writes stop"
        yield _said(
            "error", "space", sentence, "restart with a larger --max-size, or forget what is not needed"
        )
    if store.disk_free < LITTLE_DISK:
        left = f"the disk of the store has {store.disk_free >> 20:,} MB left"
        sentence = f"{left}; below --min-free writes stop"
        yield _said("error", "disk", sentence, "make room on that disk")


def _actors(known: Known) -> Iterator[Advice]:
    aside = known.statistics.actors.set_aside
    for each in aside[:NAMED]:
        kind, _, key = each.partition("/")
        yield _said(
            "error",
            "actors",
            f"{each} failed too often and answers with an error",
            f"the server's log has the traceback; `greenroom readmit {kind} {key}` lets it in again",
        )
    if len(aside) > NAMED:
        sentence = f"{len(aside) - NAMED:,} more actors failed too often"
        yield _said("error", "actors", sentence, "`greenroom stats` names them, `greenroom readmit` helps")


def _messages(known: Known) -> Iterator[Advice]:
    messages = known.statistics.messages
    for count, what, remedy in (
        (messages.failed, "handlers raised an exception", "the server's log has the traceback; report it"),
        (messages.not_committed, "writes found no room", "make room: see the store's size and its disk"),
        (messages.dead_letters, "messages could not be delivered", "the server's log says which and why"),
        (
            known.statistics.commits.dropped_notes,
            "records of reads and denials found no room in the audit log",
            "the server has more to do than it can write; limit who asks most (--rate-limit)",
        ),
    ):
        if count:
            yield _said("warning", "messages", f"since the start {count:,} {what}", remedy)


def _relay(known: Known) -> Iterator[Advice]:
    relay = known.statistics.relay
    if relay is not None and relay.owner_pid == 0:
        yield _said(
            "error",
            "processes",
            "no process owns the folder now",
            "one of those there takes over in a moment; else restart one",
        )
    elif relay is not None and relay.silent_seconds >= SILENT_SECONDS:
        sentence = f"a process on the folder has given no sign for {relay.silent_seconds} s"
        yield _said("warning", "processes", sentence, "it may be stopped or hang; end it if it stays so")
    versions = sorted({each.version for each in known.processes})
    if len(versions) > 1:
        sentence = f"the processes of the folder are of different versions: {', '.join(versions)}"
        yield _said("warning", "processes", sentence, "restart those of the older one")


def _embedder(known: Known) -> Iterator[Advice]:
    embedding = known.embedding
    if embedding.state == "failing":
        trouble = f": {embedding.trouble}" if embedding.trouble else ""
        yield _said(
            "warning",
            "embedder",
            f"{embedding.embedder} fails, so searches go by words alone{trouble}",
            "mend what this names, or choose another one with --embedder",
        )


def _backup(known: Known) -> Iterator[Advice]:
    if known.backup is None:
        sentence = "no backup is known of"
    elif (days := (known.now - known.backup.at) // DAY) >= BACKUP_DAYS:
        sentence = f"the last backup is {days:,} days old"
    else:
        return
    yield _said(
        "warning",
        "backup",
        sentence,
        "`greenroom backup FILE` makes one while the server runs; have a timer do it",
    )


def _audit(known: Known) -> Iterator[Advice]:
    for gap in known.gaps:
        if not gap.restored:
            yield _said(
                "error",
                "audit",
                f"the audit records {gap.first:,} to {gap.last:,} had been seen and are not there",
                "somebody may have put an older copy in the store's place: `greenroom audit verify`",
            )


def _keys(known: Known) -> Iterator[Advice]:
    soon = [
        key
        for key in known.keys
        if key.status(known.now) == "active"
        and key.replaced_by is None
        and key.expires - known.now < EXPIRY_DAYS * DAY
    ]
    for key in soon[:NAMED]:
        days = (key.expires - known.now) // DAY
        sentence = f"the key {key.key_id} of {key.grant.name!r} ends in {days} days"
        yield _said(
            "warning", "keys", sentence, "rotate it under People and keys; its holder needs the new one"
        )
    if len(soon) > NAMED:
        sentence = f"{len(soon) - NAMED:,} more keys end within {EXPIRY_DAYS} days"
        yield _said("warning", "keys", sentence, "see them under People and keys")


def _hooks(known: Known) -> Iterator[Advice]:
    waiting = sum(process.hooks_waiting for process in known.processes)
    refused = sum(process.hooks_refused for process in known.processes)
    if waiting > MOST_WAITING:
        sentence = f"{waiting:,} events of hooks wait to be taken"
        yield _said("warning", "hooks", sentence, "the server's log says why they cannot be taken")
    if refused:
        sentence = f"{refused:,} events of hooks could not be read and were put aside"
        yield _said("warning", "hooks", sentence, "`greenroom doctor` says more; they are in spool/refused")


def _said(severity: Severity, topic: str, sentence: str, remedy: str) -> Advice:
    return Advice(severity=severity, topic=topic, sentence=sentence, remedy=remedy)
