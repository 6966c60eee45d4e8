"""Forgetting memories: one that is named, or all that fit; several only when that is confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.audit import record as audit_record
from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.memory import records
from greenroom.actors.memory import removal as removing
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.filters import Filter, newest_first
from greenroom.actors.memory.repository import Held, Keeper
from greenroom.actors.memory.store_requests import check_version
from greenroom.actors.memory.views import forgotten
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies

if TYPE_CHECKING:
    from greenroom.runtime import Context, Slices

SHOWN = 100
"""Memories that an answer names."""
AT_ONCE = 1_000
"""Memories that are forgotten in one commit: it bounds how long everybody's writes wait for it."""
ROWS = 4
"""Rows of one memory that lie far from those of the next one: its entry, its id, what is known of it."""


def forget(
    keeper: Keeper, request: requests.ForgetMemory, context: Context
) -> Slices[replies.MemoryForgotten]:
    """Forget what is named or fits, or list what would be forgotten."""
    given = [request.memory_id is not None, request.key is not None, request.filters is not None]
    if sum(given) != 1:
        raise auth_errors.invalid("memory_id", "memory_id: give one of memory_id, key and filters")
    namespace = request.namespace or keeper.root
    if request.memory_id is None:
        policy.check_writes_namespace(context.principal, namespace)
    yield from upgrading.finish(keeper, context)
    at_once = _at_once(context)
    if request.filters is None:
        held = _named(keeper, context, request, namespace)
        check_version(keeper, namespace, held[0].entry.key, held[0], request.expected_version)
        matched = len(held)
    else:
        fitting = Filter(keeper, context, request.filters, request.namespace)
        held = []
        matched = 0
        for one in newest_first(context):
            if fitting.fits(one.entry):
                matched += 1
                if matched <= max(at_once, SHOWN):
                    held.append(one)
            if context.slice_over():
                yield
    done = request.confirm or matched == 1
    gone = held[:at_once] if done else []
    answer = replies.MemoryForgotten(
        forgotten=len(gone),
        purged=request.purge and bool(gone),
        confirm_needed=not done and bool(held),
        matched=matched,
        remaining=matched - len(gone),
        memories=[forgotten(keeper, one.entry) for one in (gone or held)[:SHOWN]],
    )
    if gone:
        yield from _end(keeper, context, gone, purge=request.purge, action="forget_memory")
    return answer


def drop(keeper: Keeper, request: requests.DropMemory, context: Context) -> Slices[replies.MemoryForgotten]:
    """Delete a memory, for the memory service; a missing one is no error."""
    policy.check_writes_namespace(context.principal, request.namespace)
    yield from upgrading.finish(keeper, context)
    held = keeper.find(context, keeper.sub(request.namespace), None, request.key)
    there = [] if held is None else [held]
    if request.purge:
        there += [one for one in _buried(keeper, context, request.namespace, request.key) if one != held]
    gone = there[: _at_once(context)]
    answer = replies.MemoryForgotten(
        forgotten=len(gone),
        purged=request.purge and bool(gone),
        confirm_needed=False,
        matched=len(there),
        remaining=len(there) - len(gone),
        memories=[forgotten(keeper, one.entry) for one in gone[:SHOWN]],
    )
    if gone:
        details = {"task_id": request.task_id, "by": request.deleted_by}
        yield from _end(keeper, context, gone, purge=request.purge, action="delete_memory", **details)
    return answer


def _at_once(context: Context) -> int:
    """Return how many memories may be ended in one commit: in a full store only some have room to."""
    return max(1, context.most_rows(ROWS * AT_ONCE) // ROWS)


def _named(keeper: Keeper, context: Context, request: requests.ForgetMemory, namespace: str) -> list[Held]:
    """Return what an id or a key names; to be purged, also what was forgotten before."""
    held: list[Held] = []
    if request.memory_id is not None:
        one = keeper.find_id(context, request.memory_id, forgotten=request.purge)
        if one is not None:
            policy.check_writes_namespace(context.principal, keeper.namespace(one.entry.sub))
            return [one]
        raise keeper.not_found(context, request.memory_id, None)
    assert request.key is not None, "one of both was given"
    one = keeper.find(context, keeper.sub(namespace), None, request.key)
    if one is not None:
        held.append(one)
    if request.purge:
        held += [each for each in _buried(keeper, context, namespace, request.key) if each != one]
    if not held:
        raise keeper.not_found(context, None, request.key, namespace)
    return held


def _buried(keeper: Keeper, context: Context, namespace: str, key: str) -> list[Held]:
    """Return what was forgotten under a key, as far as the sender may see it."""
    prefix = records.entry_key(None, key, keeper.sub(namespace))
    return [
        held
        for held in keeper.places(context, prefix)
        if held.entry.deleted_at is not None and keeper.may_see(context.principal, held.entry)
    ]


def _end(
    keeper: Keeper, context: Context, gone: list[Held], *, purge: bool, action: str, **details: str
) -> Slices[None]:
    context.use_reserve()
    for held in gone:
        # One of them may have taken the place of another one, which so has changed meanwhile.
        current = keeper.numbered(context, held.entry.number)
        assert current is not None, "it is still there"
        (removing.remove if purge else removing.forget)(keeper, context, current)
        audit_record.record(
            context,
            action,
            current.entry.session_id,
            namespace=keeper.namespace(current.entry.sub),
            key=current.entry.key,
            version=current.entry.version,
            purged=purge,
            **details,
        )
        if context.slice_over():
            yield
    keeper.removed(context)
