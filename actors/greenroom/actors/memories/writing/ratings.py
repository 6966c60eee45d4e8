"""Rate memories, and withdraw ratings."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.requests import replies, requests, review
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.records import Entry, Quality, Rating
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.writing.store_requests import find_named
from greenroom.runtime import Context, Slices

_USE: Final = "\0hook"
"""The suffix of a rater's name for ratings by detected uses."""
_BY_USE: Final = 0.2
_MORE: Final = 0.1
_MOST: Final = 0.5
"""The rating of the first detected use, the increase by each further use, and the maximum."""


def note_help(repository: MemoryRepository, request: requests.NoteHelp, context: Context) -> Slices[None]:
    """Count a detected use, and derive a rating from it, which never gets lower."""
    yield from indexing.finish(repository, context)
    stored = repository.find_id(context, request.memory_id)
    if stored is None:  # it was forgotten since
        return
    entry = stored.entry
    rater = _rater(context.principal) + _USE
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
    repository.record(context, "note_help", entry, rating=rating if quality is rated else None)


def _rater(principal: Principal) -> str:
    """Return the rater's name: the agent, separately for each user."""
    return principal.agent_id if principal.user is None else f":{principal.user}\0{principal.agent_id}"


def _take_user_rating(context: Context, number: int) -> Rating | None:
    """Return and delete the rating that an older program stored under the user's name."""
    if context.principal.user is None:
        return None
    where = records.rating_key(number, f":{context.principal.user}")
    before = context.get(where, Rating)
    if before is not None:
        context.delete(where)
    return before


def _with(quality: Quality, before: Rating | None, rating: float) -> Quality:
    """Return a quality in which a rating replaces the same rater's earlier one."""
    return msgspec.structs.replace(
        quality,
        rated=quality.rated + rating - (0.0 if before is None else before.rating),
        ratings=quality.ratings + (before is None),
    )


def _put(repository: MemoryRepository, context: Context, entry: Entry, quality: Quality) -> None:
    context.put(records.quality_key(entry.number), quality)
    repository.publish_about(context, entry)
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
    """Store a rating by the calling agent; it replaces the agent's earlier one."""
    yield from indexing.finish(repository, context)
    entry = find_named(repository, context, request.memory_id, request.key, request.namespace).entry
    rater = _rater(context.principal)
    where = records.rating_key(entry.number, rater)
    before = context.get(where, Rating) or _take_user_rating(context, entry.number)
    quality = _with(repository.uses.settle(context, entry), before, request.rating)
    replaced = None if before is None else (before.rating, before.note)
    context.put(where, Rating(context.now, rater, request.rating, request.note, replaced))
    return _stage_and_reply(repository, context, entry, quality, "rate_memory", request.rating)


def withdraw(
    repository: MemoryRepository, request: review.WithdrawRating, context: Context
) -> Slices[replies.MemoryRated]:
    """Withdraw the caller's last rating if it is the expected one; without one, change nothing."""
    yield from indexing.finish(repository, context)
    entry = find_named(repository, context, request.memory_id, None, None).entry
    where = records.rating_key(entry.number, _rater(context.principal))
    last = context.get(where, Rating)
    current = None if last is None else last.rating
    if request.expected_rating not in {None, current}:
        raise auth_errors.rated_meanwhile(entry.key, request.expected_rating, current)
    quality = repository.uses.settle(context, entry)
    if last is not None and last.before is not None:
        rating, note = last.before
        quality = _with(quality, last, rating)
        context.put(where, Rating(context.now, last.rater, rating, note))
    elif last is not None:
        context.delete(where)
        left = quality.ratings - 1
        rated = quality.rated - last.rating if left else 0.0
        quality = msgspec.structs.replace(quality, rated=rated, ratings=left)
    return _stage_and_reply(repository, context, entry, quality, "withdraw_rating", None)


def list_ratings(context: Context, entry: Entry, most: int) -> list[review.RatingView]:
    """Return an entry's ratings, newest first, at most ``most``."""
    ratings = [rating for _, rating in context.scan(Rating, prefix=records.ratings_prefix(entry.number))]
    ratings.sort(key=lambda rating: -rating.at)
    return [_view(rating) for rating in ratings[:most]]


def _view(rating: Rating) -> review.RatingView:
    *_, rater = rating.rater.removesuffix(_USE).split("\0")
    by_use = rating.rater.endswith(_USE)
    return review.RatingView(
        rater=rater,
        rating=rating.rating,
        note=None if by_use else rating.note,
        rated_at=to_datetime(rating.at),
        by_use=by_use,
    )


def _stage_and_reply(
    repository: MemoryRepository,
    context: Context,
    entry: Entry,
    quality: Quality,
    action: str,
    rating: float | None,
) -> replies.MemoryRated:
    """Stage a quality with its audit record, and return the reply."""
    _put(repository, context, entry, quality)
    repository.record(context, action, entry, rating=rating)
    return replies.MemoryRated(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        rating=round(quality.rating, 4),
        ratings=quality.ratings,
    )
