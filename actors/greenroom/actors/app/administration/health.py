"""The health of a server's parts, with causes; mostly pure functions of its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.actors.app.administration.replies import PartHealth, PartStatus, ServerStatus
from greenroom.actors.core.base.optional_packages import install_command, missing_extras
from greenroom.actors.knowledge.corpora.storage.readers import find_missing
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.runtime import RuntimeStatistics
from greenroom.runtime.lmdb.environment import FORMAT_VERSION, way_back

FULL: Final = 0.9
"""A store counts as nearly full from this share of its quota; writes stop at 0.95."""
LITTLE_DISK: Final = 256 << 20
"""A disk with fewer free bytes counts as nearly full; writes stop below `min_free`."""
SILENT_SECONDS: Final = 5
"""Seconds of silence that count as failure; a process that shares the folder signals each second."""
NAMED: Final = 3
"""At most this many quarantined actors are named."""
_ORDER: Final[tuple[PartStatus, ...]] = ("ok", "off", "degraded", "failed")


def serving_status(*, is_sound: bool, is_stopping: bool = False) -> ServerStatus:
    """Return whether a server serves, as ``/healthz`` reports it."""
    if not is_sound:
        return "failed"
    return "stopping" if is_stopping else "ok"


def worst_of(parts: Sequence[PartHealth]) -> PartStatus:
    """Return the worst status; `off` counts as `ok`."""
    worst = _ORDER[max((_ORDER.index(part.status) for part in parts), default=0)]
    return "ok" if worst == "off" else worst


def parts_of(
    statistics: RuntimeStatistics, embedding: EmbeddingStatistics, *, is_sound: bool, names: bool
) -> list[PartHealth]:
    """Return the health of every part.

    Without ``names``, it leaves out names, sizes and causes that concern others.
    """
    return [
        _store(statistics, is_sound=is_sound, names=names),
        _space(statistics, names=names),
        _actors(statistics, names=names),
        _messages(statistics),
        _relay(statistics, names=names),
        _embedder(embedding, names=names),
    ]


def packages_health() -> PartHealth:
    """Return which packages this process lacks, and how to install them."""
    left_out, extras = find_missing(), missing_extras()
    lacks = [] if left_out is None else [left_out.lack]
    if extras:
        lacks.append(f"not installed, optional: {', '.join(map(install_command, extras))}")
    status: PartStatus = "off" if left_out else "ok"
    return _part("packages", status, "; ".join(lacks) or "all are installed")


def format_health(former: int) -> PartHealth:
    """Return which format the store had, and how to go back."""
    return _part(
        "format", "ok", f"the store had format {former} and has {FORMAT_VERSION} now, {way_back(former)}"
    )


def _store(statistics: RuntimeStatistics, *, is_sound: bool, names: bool) -> PartHealth:
    if not is_sound:
        return _part(
            "store", "failed", "a commit failed for good, so nothing is answered; restart the server"
        )
    store = statistics.store
    if store.damaged_records:
        named = f": {'; '.join(store.damaged[:NAMED])}" if names else ""
        many = "one record is" if store.damaged_records == 1 else f"{store.damaged_records:,} records are"
        return _part("store", "degraded", f"{many} damaged; all others are served{named}")
    if store.integrity == "unchecked":
        return _part("store", "ok", "it serves; not all of its file has been checked since it was opened")
    if names and store.failures:
        return _part("store", "degraded", f"{store.failures:,} commit units failed since the start")
    return _part("store", "ok", "it serves, and all of its file was checked")


def _space(statistics: RuntimeStatistics, *, names: bool) -> PartHealth:
    store = statistics.store
    used = store.used_bytes / store.map_bytes if store.map_bytes else 0.0
    sizes = f": {store.used_bytes:,} of {store.map_bytes:,} bytes are used" if names else ""
    free = f": {store.disk_free:,} bytes are free" if names else ""
    if used > FULL:
        return _part("space", "degraded", f"the store is nearly as large as max_size lets it grow{sizes}")
    if store.disk_free < LITTLE_DISK:
        return _part("space", "degraded", f"the disk that holds the store is nearly full{free}")
    return _part("space", "ok", f"there is room{sizes}")


def _actors(statistics: RuntimeStatistics, *, names: bool) -> PartHealth:
    aside = statistics.actors.set_aside
    if not aside:
        return _part("actors", "ok", "none is set aside")
    named = f": {', '.join(aside[:NAMED])}" if names else ""
    more = f" and {len(aside) - NAMED:,} more" if names and len(aside) > NAMED else ""
    many = "one actor" if len(aside) == 1 else f"{len(aside):,} actors"
    sentence = (
        f"{many} failed too often and answers with errors{named}{more}; `greenroom readmit` readmits it"
    )
    return _part("actors", "degraded", sentence)


def _messages(statistics: RuntimeStatistics) -> PartHealth:
    messages = statistics.messages
    troubles = [
        f"{count:,} {what}"
        for count, what in (
            (messages.failed, "handlers raised an exception"),
            (messages.not_committed, "writes failed for lack of room"),
            (messages.dead_letters, "messages could not be delivered"),
        )
        if count
    ]
    if troubles:
        return _part("messages", "degraded", f"since the start {', '.join(troubles)}; the log says which")
    return _part("messages", "ok", "each was handled")


def _relay(statistics: RuntimeStatistics, *, names: bool) -> PartHealth:
    relay = statistics.relay
    if relay is None:
        return _part("relay", "off", "no other process may use the folder")
    who = f" (process {relay.owner_pid})" if names else ""
    if relay.owner_pid == 0:
        return _part("relay", "degraded", "no process owns the folder now; another one is taking over")
    if relay.silent_seconds >= SILENT_SECONDS:
        silence = f"a process on the folder has been silent for {relay.silent_seconds} s"
        return _part("relay", "degraded", silence)
    if relay.role == "owner":
        return _part("relay", "ok", "this process owns the folder")
    return _part("relay", "ok", f"another process{who} owns the folder, and this one is attached")


def _embedder(embedding: EmbeddingStatistics, *, names: bool) -> PartHealth:
    if embedding.state == "off":
        reason = f": {embedding.reason}" if names and embedding.reason else ""
        return _part("embedder", "off", f"searches use words only{reason}")
    if embedding.state == "failing":
        trouble = f": {embedding.trouble}" if names and embedding.trouble else ""
        return _part("embedder", "degraded", f"it fails, so searches use words only{trouble}")
    if embedding.state != "ready":
        return _part("embedder", "ok", f"it is {embedding.state}; the first search that needs it loads it")
    waiting = embedding.texts_waiting if names else 0
    if waiting:
        return _part("embedder", "ok", f"it is ready; about {waiting:,} texts wait for vectors")
    return _part("embedder", "ok", "it is ready")


def _part(part: str, status: PartStatus, cause: str) -> PartHealth:
    return PartHealth(part=part, status=status, cause=cause)
