"""The start page of the console; see `Overview`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.app.administration import replies as schemas
from greenroom.actors.app.administration.advice import Known, advice
from greenroom.actors.app.administration.health import parts_of
from greenroom.actors.app.administration.lately import DECIDING, lately_done, read_decisions, read_sessions
from greenroom.actors.app.administration.people import read_processes
from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.app.savings.report import periods, report
from greenroom.actors.app.savings.requests import KEPT_DAYS, KEPT_HOURS, SavingsHistory
from greenroom.actors.core.audit.actor import LOG, LastBackup, ReadLastBackup
from greenroom.actors.core.audit.query import GetAuditState
from greenroom.actors.core.auth.namespaces import memory_address, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import ADMIN, KNOWLEDGE, SESSIONS, allows
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, ReadKeys
from greenroom.actors.core.operations import operation
from greenroom.actors.core.presence.requests import ConnectedClient, ProcessPresence
from greenroom.actors.core.presence.traffic import rates_of
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import DAY, HOUR, optional_datetime, to_datetime
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora
from greenroom.actors.memories.requests.requests import CountMemories, LatestMemory
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics, GetEmbedding
from greenroom.actors.sessions.storage.directory import CountSessions
from greenroom.runtime import Procedure, RuntimeClient, RuntimeStatistics

MOST_COUNTED: Final = 10_000
"""At most this many sessions, or memories, are counted; the reply says if there are more."""
MOST_ROOTS: Final = 50
"""The memories of at most this many namespaces are counted."""
MANY: Final = 1_000
"""Counts above this are cached for `COUNTED_SECONDS`, so that many consoles cost no more than one console."""
COUNTED_SECONDS: Final = 30.0
MOST_CACHED: Final = 64
_MEMORY: Final = "memory:read"


class _Found(NamedTuple):
    """A count, what is newest of it, and how many began on each day."""

    counted: schemas.Counted
    latest: Sequence[Any] = ()
    days: Mapping[int, int] = {}


_COUNTS: Final[WeakKeyDictionary[RuntimeClient, dict[Any, tuple[float, _Found]]]] = WeakKeyDictionary()
"""Large counts by viewer and kind, each cached until its expiry."""


@operation(
    "get_overview",
    scope="server:read",
)
class GetOverview(Procedure[schemas.Overview], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Summarise the store, the clients, the server's health, and advice."""

    runs = "here"

    async def run(self, client: ClientContext) -> schemas.Overview:
        """Collect statistics and listings; data about others are for administrators only."""
        runtime, principal = client.runtime, client.principal
        is_admin = allows(principal.scopes, ADMIN)
        processes, own = await read_processes(client)
        statistics = runtime.statistics()
        embedding = await runtime.query(GetEmbedding())
        now = client.ledger.now()
        parts = parts_of(statistics, embedding, is_sound=runtime.is_sound, names=is_admin)
        seen = processes if is_admin else [_own_clients(each, principal) for each in processes]
        sessions = await _counted(runtime, principal, SESSIONS, _sessions)
        memories = await _counted(runtime, principal, _MEMORY, _memories)
        corpora = await _counted(runtime, principal, KNOWLEDGE, _corpora)
        latest: list[SessionSummary] = [] if sessions is None else [*sessions.latest]
        decided = await read_decisions(runtime, principal, latest[:DECIDING])
        learned = _Found(schemas.Counted(count=0)) if memories is None else memories
        said = schemas.Overview(
            version=_version(),
            health=parts,
            advice=[],
            sessions=UNSET if sessions is None else sessions.counted,
            memories=UNSET if memories is None else memories.counted,
            corpora=UNSET if corpora is None else corpora.counted,
            processes=[_view(each, own, is_admin=is_admin) for each in seen if is_admin or each.clients],
            savings=await _savings(client, is_admin=is_admin),
            lately=lately_done(learned.latest, learned.days, latest, decided, now),
            looked_at=to_datetime(now),
        )
        if not is_admin:
            return said
        backup = await runtime.ask(LOG, ReadLastBackup())
        audit = await runtime.query(GetAuditState(), principal=principal)
        read = await runtime.ask(KEYS_ADDRESS, ReadKeys())  # the server asks, not the caller
        known = Known(now, runtime.is_sound, statistics, embedding, backup, audit.gaps, read.keys, processes)
        return msgspec.structs.replace(
            said,
            advice=advice(known),
            rates=rates_of([each.traffic for each in processes], now),
            store=_store(statistics, audit.last),
            embedder=_embedder(embedding),
            backup=None if backup is None else _backup(backup),
        )


async def _counted(
    runtime: RuntimeClient,
    principal: Principal,
    scope: str,
    count: Callable[[RuntimeClient, Principal], Awaitable[_Found]],
) -> _Found | None:
    """Return a count, None without its scope; a large one may be seconds old."""
    if not allows(principal.scopes, scope):
        return None
    kept, what = _COUNTS.setdefault(runtime, {}), (principal.sight, scope)
    until, counted = kept.get(what, (0.0, None))
    if counted is not None and trio.current_time() < until:
        return counted
    found = await count(runtime, principal)
    if found.counted.count > MANY:
        kept.pop(what, None)
        kept[what] = trio.current_time() + COUNTED_SECONDS, found
    if len(kept) > MOST_CACHED:
        del kept[next(iter(kept))]
    return found


async def _sessions(runtime: RuntimeClient, principal: Principal) -> _Found:
    counted = await runtime.query(CountSessions(most=MOST_COUNTED), principal=principal)
    latest = await read_sessions(runtime, principal)
    said = schemas.Counted(
        count=counted.count,
        is_more=counted.is_more,
        newest=latest[0].session_id if latest else None,
        newest_at=latest[0].last_activity if latest else None,
    )
    return _Found(said, latest)


async def _memories(runtime: RuntimeClient, principal: Principal) -> _Found:
    count, is_more, newest, newest_at = 0, False, None, 0
    latest: list[LatestMemory] = []
    days: Counter[int] = Counter()
    roots = await runtime.query(ListNamespaces(), principal=principal)
    for root in sorted(roots, key=lambda root: root != user_namespace(principal))[:MOST_ROOTS]:
        left = MOST_COUNTED - count
        part = await runtime.ask(memory_address(root), CountMemories(most=left), principal=principal)
        count, is_more = count + part.count, is_more or part.is_more
        latest += part.latest
        days.update(part.days)
        if part.newest_at > newest_at:
            newest, newest_at = part.newest, part.newest_at
    said = schemas.Counted(
        count=count,
        is_more=is_more or len(roots) > MOST_ROOTS,
        newest=newest,
        newest_at=optional_datetime(newest_at or None),
    )
    return _Found(said, latest, days)


async def _corpora(runtime: RuntimeClient, principal: Principal) -> _Found:
    rows = await runtime.query(VisibleCorpora(), principal=principal)
    newest = max(rows, key=lambda row: row.created_at, default=None)
    said = schemas.Counted(
        count=len(rows),
        newest=None if newest is None else newest.full_name,
        newest_at=None if newest is None else to_datetime(newest.created_at),
    )
    return _Found(said)


@cache
def _version() -> str:
    return version("greenroom")  # reads and parses a file


def _own_clients(process: ProcessPresence, principal: Principal) -> ProcessPresence:
    """Return a process with only the caller's own clients."""
    clients = [each for each in process.clients if _is_own(each, principal)]
    return msgspec.structs.replace(process, clients=clients, clients_left_out=0, connections={})


def _is_own(client: ConnectedClient, principal: Principal) -> bool:
    if principal.user is None:
        return client.agent == principal.agent_id and client.user is None
    return client.user == principal.user


def _view(process: ProcessPresence, own: str | None, *, is_admin: bool) -> schemas.ProcessView:
    return schemas.ProcessView(
        pid=process.pid if is_admin else None,
        version=process.version,
        role=process.role,
        is_this=process.id == own,
        since=process.since,
        clients=process.clients,
        left_out=process.clients_left_out,
        connections=process.connections,
        calls=sum(sum(each.buckets) for each in process.traffic.minutes) if is_admin else 0,
    )


def _store(statistics: RuntimeStatistics, audit_records: int) -> schemas.StoreView:
    store = statistics.store
    return schemas.StoreView(
        used_bytes=store.used_bytes,
        max_bytes=store.map_bytes,
        file_bytes=store.file_bytes,
        disk_free=store.disk_free,
        rows=store.rows,
        commits=store.commits,
        last_commit_seconds=store.last_commit_seconds,
        is_checked=store.integrity == "checked",
        audit_records=audit_records,
    )


def _embedder(embedding: EmbeddingStatistics) -> schemas.EmbedderView:
    return schemas.EmbedderView(
        embedder=embedding.embedder,
        state=embedding.state,
        texts_waiting=embedding.texts_waiting,
        embedded=embedding.embedded,
        queries=embedding.queries,
        queries_without=embedding.queries_without,
        trouble=embedding.trouble,
    )


def _backup(backup: LastBackup) -> schemas.BackupView:
    return schemas.BackupView(made_at=to_datetime(backup.at), path=backup.to, bytes=backup.bytes)


async def _savings(client: ClientContext, *, is_admin: bool) -> SavingsHistory:
    owner = EVERYBODY if is_admin else user_namespace(client.principal)
    ledger = client.ledger
    whose: Literal["mine", "all"] = "all" if is_admin else "mine"
    today, hour = ledger.today(), ledger.hour()
    since = max(0, today - KEPT_DAYS + 1)
    days = await ledger.read(owner, since)
    hours = await ledger.read_hours(owner, max(0, hour - KEPT_HOURS + 1))
    return SavingsHistory(
        whose=whose,
        hours=periods(hours, lambda hour: to_datetime(hour * HOUR)),
        days=periods(days, lambda day: to_datetime(day * DAY)),
        report=report(days, whose, since, today, ledger.token_price),
    )
