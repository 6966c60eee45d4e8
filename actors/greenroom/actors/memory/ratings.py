"""Rating memories."""

from __future__ import annotations

import msgspec

from greenroom.actors.audit import record as audit_record
from greenroom.actors.auth.principal import Principal
from greenroom.actors.memory import indexing, records
from greenroom.actors.memory.records import Rating
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.memory.store_requests import named
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.runtime import Context, Slices


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


def rate(
    repository: MemoryRepository, request: requests.RateMemory, context: Context
) -> Slices[replies.MemoryRated]:
    """Record a rating by an agent that may see the memory; its later rating replaces the earlier."""
    yield from indexing.finish(repository, context)
    entry = named(repository, context, request.memory_id, request.key, request.namespace).entry
    rater = _rater(context.principal)
    where = records.rating_key(entry.number, rater)
    before = context.get(where, Rating) or _of_the_user(context, entry.number)
    quality = repository.uses.settle(context, entry)
    quality = msgspec.structs.replace(
        quality,
        rated=quality.rated + request.rating - (0.0 if before is None else before.rating),
        ratings=quality.ratings + (before is None),
    )
    context.put(where, Rating(context.now, rater, request.rating, request.note))
    context.put(records.quality_key(entry.number), quality)
    repository.index.change(
        context,
        entry.update,
        rating=quality.rating,
        uses=quality.uses,
        last_used=quality.last_used or 0,
    )
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
