"""Advice to operators, each with a remedy; pure functions of the server's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.app.administration.health import FULL, LITTLE_DISK, NAMED, SILENT_SECONDS
from greenroom.actors.app.administration.replies import Advice, Severity
from greenroom.actors.core.audit.actor import LastBackup
from greenroom.actors.core.audit.query import AuditGap
from greenroom.actors.core.auth.grants import KeyRecord
from greenroom.actors.core.presence.requests import ProcessPresence
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.runtime import RuntimeStatistics

BACKUP_DAYS: Final = 7
EXPIRY_DAYS: Final = 14
MOST_WAITING: Final = 100
"""More waiting hook events than this cause a warning; the owner ingests each within a second."""


class Known(NamedTuple):
    """The state of a server.

    Attributes:
        now: The time in microseconds since 1970 UTC.
    """

    now: int
    is_sound: bool
    statistics: RuntimeStatistics
    embedding: EmbeddingStatistics
    backup: LastBackup | None
    gaps: Sequence[AuditGap]
    keys: Sequence[KeyRecord]
    processes: Sequence[ProcessPresence]


def advice(known: Known) -> list[Advice]:
    """Return the advice, errors first."""
    found = [
        each
        for of in (_store, _space, _actors, _messages, _relay, _embedder, _backup, _audit, _keys, _hooks)
        for each in of(known)
    ]
    return sorted(found, key=lambda each: each.severity != "error")


def _store(known: Known) -> Iterator[Advice]:
    if not known.is_sound:
        yield _advise(
            "error",
            "store",
            "a commit failed permanently, so the server answers no requests",
            "restart the server; if it names damage, `greenroom restore` a backup, or `greenroom repair`",
        )
    if failures := known.statistics.store.failures:
        sentence = f"{failures:,} commit units failed since the start"
        yield _advise("warning", "store", sentence, "the server's log has the cause, usually a full store")


def _space(known: Known) -> Iterator[Advice]:
    store = known.statistics.store
    if store.map_bytes and store.used_bytes > FULL * store.map_bytes:
        share = 100 * store.used_bytes / store.map_bytes
        sentence = f"the store uses {share:.0f} % of --max-size; at 95 % writes stop"
        yield _advise(
            "error", "space", sentence, "restart with a larger --max-size, or forget what is not needed"
        )
    if store.disk_free < LITTLE_DISK:
        left = f"the disk of the store has {store.disk_free >> 20:,} MB left"
        sentence = f"{left}; below --min-free writes stop"
        yield _advise("error", "disk", sentence, "make room on that disk")


def _actors(known: Known) -> Iterator[Advice]:
    aside = known.statistics.actors.set_aside
    for each in aside[:NAMED]:
        kind, _, key = each.partition("/")
        yield _advise(
            "error",
            "actors",
            f"{each} failed too often and answers with errors",
            f"the server's log has the traceback; `greenroom readmit {kind} {key}` readmits it",
        )
    if len(aside) > NAMED:
        sentence = f"{len(aside) - NAMED:,} more actors failed too often"
        yield _advise(
            "error", "actors", sentence, "`greenroom readmit` readmits those that `greenroom stats` names"
        )


def _messages(known: Known) -> Iterator[Advice]:
    messages = known.statistics.messages
    for count, what, remedy in (
        (messages.failed, "handlers raised an exception", "the server's log has the traceback; report it"),
        (messages.not_committed, "writes failed for lack of room", "check the store's size and its disk"),
        (messages.dead_letters, "messages could not be delivered", "the server's log says which and why"),
        (
            known.statistics.commits.dropped_notes,
            "records of reads and denials were dropped by the audit log",
            "the server gets more requests than it can record; limit the busiest caller (--rate-limit)",
        ),
    ):
        if count:
            yield _advise("warning", "messages", f"since the start {count:,} {what}", remedy)


def _relay(known: Known) -> Iterator[Advice]:
    relay = known.statistics.relay
    if relay is not None and relay.owner_pid == 0:
        yield _advise(
            "error",
            "processes",
            "no process owns the folder now",
            "another process should take over in a moment; if not, restart one",
        )
    elif relay is not None and relay.silent_seconds >= SILENT_SECONDS:
        sentence = f"a process on the folder has been silent for {relay.silent_seconds} s"
        yield _advise(
            "warning", "processes", sentence, "it may be suspended or hang; end it if this continues"
        )
    versions = sorted({each.version for each in known.processes})
    if len(versions) > 1:
        sentence = f"the processes of the folder are of different versions: {', '.join(versions)}"
        yield _advise("warning", "processes", sentence, "restart the processes of the older version")


def _embedder(known: Known) -> Iterator[Advice]:
    embedding = known.embedding
    if embedding.state == "failing":
        trouble = f": {embedding.trouble}" if embedding.trouble else ""
        yield _advise(
            "warning",
            "embedder",
            f"{embedding.embedder} fails, so searches use words only{trouble}",
            "fix the named cause, or choose another embedder with --embedder",
        )


def _backup(known: Known) -> Iterator[Advice]:
    if known.backup is None:
        sentence = "no backup is known"
    elif (days := (known.now - known.backup.at) // DAY) >= BACKUP_DAYS:
        sentence = f"the last backup is {days:,} days old"
    else:
        return
    yield _advise(
        "warning",
        "backup",
        sentence,
        "`greenroom backup FILE` makes one while the server runs; schedule it",
    )


def _audit(known: Known) -> Iterator[Advice]:
    for gap in known.gaps:
        if not gap.restored:
            yield _advise(
                "error",
                "audit",
                f"the audit records {gap.first:,} to {gap.last:,} existed and are missing",
                "an older copy may have replaced the store; check it with `greenroom audit verify`",
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
        yield _advise(
            "warning", "keys", sentence, "rotate it under People and keys; its holder needs the new one"
        )
    if len(soon) > NAMED:
        sentence = f"{len(soon) - NAMED:,} more keys end within {EXPIRY_DAYS} days"
        yield _advise("warning", "keys", sentence, "see them under People and keys")


def _hooks(known: Known) -> Iterator[Advice]:
    waiting = sum(process.hooks_waiting for process in known.processes)
    refused = sum(process.hooks_refused for process in known.processes)
    if waiting > MOST_WAITING:
        sentence = f"{waiting:,} hook events wait to be ingested"
        yield _advise("warning", "hooks", sentence, "the server's log has the cause")
    if refused:
        sentence = f"{refused:,} hook events could not be read and were set aside"
        yield _advise("warning", "hooks", sentence, "see `greenroom doctor`; the events are in spool/refused")


def _advise(severity: Severity, topic: str, sentence: str, remedy: str) -> Advice:
    return Advice(severity=severity, topic=topic, sentence=sentence, remedy=remedy)
