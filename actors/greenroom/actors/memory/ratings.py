"""Rating memories."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.audit import record as audit_record
from greenroom.actors.auth.principal import Principal
from greenroom.actors.memory import indexing, records
from greenroom.actors.memory.records import Entry, Quality, Rating
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.memory.store_requests import named
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.runtime import Context, Slices

_BY_USE: Final = 0.2
_MORE: Final = 0.1
_MOST: Final = 0.5
"""What a memory is rated by the first use of it that is seen, how much more by each other, and at most."""


def note_help(repository: MemoryRepository, request: requests.NoteHelp, context: Context) -> Slices[None]:
    """Count a use, and rate by it, as a rater of its own beside the agent; no rating is made worse by it."""
    yield from indexing.finish(repository, context)
    stored = repository.find_id(context, request.memory_id)
    if stored is None:  # it was forgotten meanwhile
        return
    entry = stored.entry
    rater = f"{_rater(context.principal)}\0hook"
    where = records.rating_key(entry.number, rater)
    before = context.get(where, Rating)
    if before is not None and before.note == request.event_id:
        return
    repository.uses.note(entry, context)
    quality = repository.uses.settle(context, entry)
    rating = _BY_USE if before is None else min(_MOST, before.rating + _MORE)
    rated = _with(quality, before, rating)
    if rated.rating > quality.rating:
        context.put(where, Rating(context.now, rater, rating, request.event_id))
        quality = rated
    elif before is not None:
        context.put(where, msgspec.structs.replace(before, note=request.event_id))
    _put(repository, context, entry, quality)
    audit_record.record(
        context,
        "note_help",
        entry.session_id,
        namespace=repository.namespace(entry.sub),
        key=entry.key,
        rating=rating if quality is rated else None,
    )


def _rater(principal: Principal) -> str:
    """Return who rates: an agent, and of a user's agents each by itself."""
    return principal.agent_id if principal.user is None else f":{principal.user}\0{principal.agent_id}"


def _of_the_user(context: Context, number: int) -> Rating | None:
    """Return, and stage to end, what an older program kept of a user, whichever of its agents had rated."""
    if context.principal.user is None:
        return None
    where = records.rating_key(number, f":{context.principal.user}")
    before = context.get(where, Rating)
    if before is not None:
        context.delete(where)
    return before


def _with(quality: Quality, before: Rating | None, rating: float) -> Quality:
    """Return a quality with a rating in the place of the same rater's before."""
    return msgspec.structs.replace(
        quality,
        rated=quality.rated + rating - (0.0 if before is None else before.rating),
        ratings=quality.ratings + (before is None),
    )


def _put(repository: MemoryRepository, context: Context, entry: Entry, quality: Quality) -> None:
    context.put(records.quality_key(entry.number), quality)
    repository.index.change(
        context,
        entry.update,
        rating=quality.rating,
        uses=quality.uses,
        last_used=quality.last_used or 0,
    )


def rate(
    repository: MemoryRepository, request: requests.RateMemory, context: Context
) -> Slices[replies.MemoryRated]:
    """Record a rating by an agent that may see the memory; its later rating replaces the earlier."""
    yield from indexing.finish(repository, context)
    entry = named(repository, context, request.memory_id, request.key, request.namespace).entry
    rater = _rater(context.principal)
    where = records.rating_key(entry.number, rater)
    before = context.get(where, Rating) or _of_the_user(context, entry.number)
    quality = _with(repository.uses.settle(context, entry), before, request.rating)
    context.put(where, Rating(context.now, rater, request.rating, request.note))
    _put(repository, context, entry, quality)
    audit_record.record(
        context,
        "rate_memory",
        entry.session_id,
        namespace=repository.namespace(entry.sub),
        key=entry.key,
        rating=request.rating,
    )
    return replies.MemoryRated(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        rating=round(quality.rating, 4),
        ratings=quality.ratings,
    )
