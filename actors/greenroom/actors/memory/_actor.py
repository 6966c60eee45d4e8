"""An agent's memory: what each request does to it and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors import _audit, _cursor, _policy, _refusals
from greenroom.actors._times import SECOND, optional_datetime, to_datetime
from greenroom.actors.memory._records import (
    DELETED,
    EXPIRIES,
    UPDATES,
    Ends,
    Entry,
    Version,
    deleted_key,
    entry_key,
    expiry_key,
    is_live,
    order_keys,
    scope_name,
    updates_prefix,
    version_key,
    versions_prefix,
    view,
)
from greenroom.actors.memory._resource import memory_resource
from greenroom.actors.requests import _memory as requests
from greenroom.actors.requests import _replies as replies
from greenroom.actors.resources import _reading as resources
from greenroom.actors.resources._uris import memory_uri
from greenroom.runtime import Actor, Context, Slices, handles

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH_SCOPES = "all"
SWEEP = "sweep"
SWEEP_EVERY = 60 * SECOND
"""Expiry times are rounded up to this, so that one sweep finds what expires close together."""
SWEEP_BATCH = 200
"""Effects of one sweep, about: it bounds how long others wait, for the loop and for the disk."""
EFFECTS_OF_EXPIRY = 6
"""Its row, the version and, when it was the newest, the entry with both places in the order and a mark."""


class MemoryActor(Actor):
    """One agent's memory, addressed by the agent's id, which is never an argument."""

    kind = "memory"

    def activate(self, context: Context) -> None:
        """Find the highest number in use; everything else stays on disk."""
        self._counter = 0
        for prefix in (UPDATES, DELETED):
            highest = next(context.scan(msgspec.Raw, prefix=prefix, reverse=True), None)
            if highest is not None:
                self._counter = max(self._counter, int.from_bytes(highest[0][1:]))

    @handles(requests.SetMemory)
    def store(self, request: requests.SetMemory, context: Context) -> replies.MemoryStored:
        """Store a new version under the key, the first one if there was no live entry."""
        if request.session_id is not None and context.answer is not True:
            raise _refusals.session_not_found(request.session_id)
        scope, now = scope_name(request.session_id), context.now
        where = entry_key(request.session_id, request.key)
        old = context.get(where, Entry)
        live = old is not None and is_live(old.expires_at, now)
        if live and not request.overwrite:
            raise _refusals.key_exists(request.key, scope)
        update = self._counter + 1
        expires_at = None if request.expires_in is None else now + request.expires_in * SECOND
        kept = old if live else None
        entry = Entry(
            key=request.key,
            session_id=request.session_id,
            number=update if kept is None else kept.number,
            update=update,
            version=1 if kept is None else kept.version + 1,
            created_at=now if kept is None else kept.created_at,
            updated_at=now,
            expires_at=expires_at,
            value_size=len(bytes(request.value)),
        )
        if old is not None and kept is None:
            self._remove(context, old)
        elif old is not None:
            self._unlist(context, old)
        version = Version(now, expires_at, bytes(request.metadata), bytes(request.value))
        context.put(version_key(entry.number, entry.version), version)
        context.put(where, entry)
        for key in order_keys(entry):
            context.put(key, where)
        if expires_at is not None:
            context.put(expiry_key(expires_at, entry.number, entry.version), where)
            self._sweep_by(context, expires_at)
        _audit.record(
            context,
            "set_memory",
            request.session_id,
            key=request.key,
            version=entry.version,
            value_size=entry.value_size,
            expires_in=request.expires_in,
        )
        self._publish(context)
        self._counter = update
        return replies.MemoryStored(
            key=request.key,
            scope=scope,
            session_scoped=request.session_id is not None,
            expires_at=optional_datetime(expires_at),
            stored_at=to_datetime(now),
            version=entry.version,
        )

    @handles(requests.GetMemory)
    def read(self, request: requests.GetMemory, context: Context) -> replies.MemoryRead:
        """Answer the newest value or an older version, unless that, or the entry, has expired."""
        scope, now = scope_name(request.session_id), context.now
        entry = context.get(entry_key(request.session_id, request.key), Entry)
        number = entry.version if entry is not None and request.version is None else request.version
        version = None
        if (
            entry is not None
            and number is not None
            and number <= entry.version
            and is_live(entry.expires_at, now)
        ):
            version = context.get(version_key(entry.number, number), Version)
        if entry is None or number is None or version is None or not is_live(version.expires_at, now):
            raise _refusals.memory_not_found(request.key, scope)
        return replies.MemoryRead(
            key=request.key,
            value=msgspec.Raw(version.value),
            metadata=msgspec.Raw(version.metadata),
            created_at=to_datetime(entry.created_at),
            updated_at=to_datetime(version.stored_at),
            expires_at=optional_datetime(version.expires_at),
            scope=scope,
            version=number,
        )

    @handles(requests.ListMemory)
    def entries(self, request: requests.ListMemory, context: Context) -> Slices[replies.MemoryList]:
        """Answer a page of entries, newest update first; one that is updated meanwhile moves to the front."""
        binding = _binding(request.session_id, request.prefix)
        highest = None
        if request.cursor is not None:
            highest = int.from_bytes(_cursor.decode(request.cursor, binding)) - 1
        page: list[Entry] = []
        next_cursor = None
        for entry in _newest_first(context, request.session_id, highest):
            if is_live(entry.expires_at, context.now) and entry.key.startswith(request.prefix or ""):
                if len(page) == request.limit:
                    next_cursor = _cursor.encode(page[-1].update.to_bytes(8), binding)
                    break
                page.append(entry)
            if context.slice_over():
                yield
        return replies.MemoryList(
            entries=[view(entry) for entry in page],
            count=len(page),
            scope_filter="global" if request.session_id is None else request.session_id,
            next_cursor=next_cursor,
        )

    @handles(resources.ReadResource)
    def resource(self, request: resources.ReadResource, context: Context) -> Slices[resources.MemoryResource]:
        """Answer the memory as a resource, to its owner."""
        if _policy.memory_owner(context.principal) != context.address.key:
            raise _refusals.resource_not_found(request.uri)
        entries = _newest_first(context, BOTH_SCOPES, None)
        return memory_resource(context, request.uri, entries, _binding(BOTH_SCOPES, None))

    @handles(requests.DeleteMemory)
    def delete(self, request: requests.DeleteMemory, context: Context) -> replies.MemoryDeleted:
        """Delete an entry with all its versions; a missing one is no error."""
        entry = context.get(entry_key(request.session_id, request.key), Entry)
        existed = entry is not None and is_live(entry.expires_at, context.now)
        context.use_reserve()
        if entry is not None:
            self._remove(context, entry)
            self._publish(context)
        if existed:
            _audit.record(context, "delete_memory", request.session_id, key=request.key)
        return replies.MemoryDeleted(key=request.key, scope=scope_name(request.session_id), existed=existed)

    @handles(requests.SweepMemory)
    def sweep(self, _: requests.SweepMemory, context: Context) -> Slices[None]:
        """Remove a batch of what has expired or was deleted, and come back for the rest."""
        context.use_reserve()
        expired = effects = 0
        shown = False
        for key, where in context.scan(bytes, prefix=EXPIRIES):
            expires_at, number, version = (int.from_bytes(key[at : at + 8]) for at in (1, 9, 17))
            if is_live(expires_at, context.now):
                self._sweep_by(context, expires_at)
                break
            if effects >= SWEEP_BATCH:
                self._sweep_soon(context)
                break
            expired += 1
            effects += EFFECTS_OF_EXPIRY
            context.delete(key)
            context.delete(version_key(number, version))
            entry = context.get(where, Entry)
            if entry is not None and (entry.number, entry.version) == (number, version):
                self._remove(context, entry)
                shown = True
            if context.slice_over():
                yield
        if shown:
            self._publish(context)
        if expired:
            _audit.record(context, "expire_memory", None, owner=context.address.key, versions=expired)
        yield from self._purge(context, SWEEP_BATCH - effects)

    # -- parts -------------------------------------------------------------

    def _publish(self, context: Context) -> None:
        """Stage word to the owner that the memory changed."""
        owner = context.address.key
        context.publish(memory_uri(owner), _policy.Heard(_policy.own_audience(owner)))

    def _remove(self, context: Context, entry: Entry) -> None:
        """Stage an entry's end at the same cost for any history: what is long is left to the sweep."""
        self._unlist(context, entry)
        context.delete(entry_key(entry.session_id, entry.key))
        if entry.version > 1:
            context.put(deleted_key(entry.number), True)
            self._sweep_soon(context)
            return
        context.delete(version_key(entry.number, entry.version))
        if entry.expires_at is not None:
            context.delete(expiry_key(entry.expires_at, entry.number, entry.version))

    def _purge(self, context: Context, effects: int) -> Slices[None]:
        """Stage so many removals of versions of deleted entries, about, and come back if some are left."""
        for mark, _ in context.scan(bool, prefix=DELETED):
            prefix = versions_prefix(int.from_bytes(mark[1:]))
            for key, ends in context.scan(Ends, prefix=prefix):
                if effects <= 0:
                    self._sweep_soon(context)
                    return
                context.delete(key)
                effects -= 1
                if ends.expires_at is not None:
                    number, version = (int.from_bytes(key[at : at + 8]) for at in (1, 9))
                    context.delete(expiry_key(ends.expires_at, number, version))
                    effects -= 1
                if context.slice_over():
                    yield
            context.delete(mark)
            effects -= 1

    def _unlist(self, context: Context, entry: Entry) -> None:
        for key in order_keys(entry):
            context.delete(key)

    def _sweep_by(self, context: Context, time: int) -> None:
        """Stage a sweep soon after ``time``, unless one comes before."""
        due = (time // SWEEP_EVERY + 1) * SWEEP_EVERY
        already = context.timer_due(SWEEP)
        if already is None or due < already:
            context.set_timer(SWEEP, due, requests.SweepMemory())

    def _sweep_soon(self, context: Context) -> None:
        due = context.now + 1
        if context.timer_due(SWEEP) != due:
            context.set_timer(SWEEP, due, requests.SweepMemory())


def _binding(session_id: str | None, prefix: str | None) -> str:
    return f"memory {session_id} {prefix}"


def _newest_first(context: Context, session_id: str | None, highest: int | None) -> Iterator[Entry]:
    prefix = UPDATES if session_id == BOTH_SCOPES else updates_prefix(session_id)
    start = None if highest is None else prefix + highest.to_bytes(8)
    for _, where in context.scan(bytes, prefix=prefix, start=start, reverse=True):
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        yield entry
