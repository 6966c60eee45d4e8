"""The session directory: rows in a shared index that sessions write, and listings read without any session.

What a reader gets must come in the order of what it may see, so a session has rows
per audience that has something to see in it:

    b                       the session: what a listing shows of it
    s audience NUL time tie in order of activity, newest first (the time is inverted)
    p audience              the same activity as a point: when, and how many messages

The public audience's rows are there from the start and also move when the session itself changes.
"""

import functools
import heapq
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.storage.records import Header, seen_status
from greenroom.runtime import Address, Context, IndexReader, Query, Slices

INDEX = "sessions"
BASE = b"b"

_TIME_BYTES = 8
_TIE_BYTES = 8
_INVERTED = (1 << 64) - 1


class BaseRow(msgspec.Struct, frozen=True, array_like=True):
    """What a listing shows of a session; see `Header`.

    ``tool`` is the client tool that it is in; None where none took it up, or an older program wrote the row.
    """

    purpose: str
    status: types.SessionStatus
    created_at: int
    created_by: str
    app_name: str | None
    user_id: str | None
    project_id: str | None
    tool: str | None = None


class ActivityRow(msgspec.Struct, frozen=True, array_like=True):
    """The newest thing that an audience can see in a session, and how many messages it can see.

    ``others`` of the ``messages`` are events that are no messages; older stores have none.
    """

    at: int
    messages: int
    others: int = 0


def put_base(context: "Context", header: "Header") -> None:
    """Stage what listings show of the session."""
    work = context.get(migrations.WORK, migrations.ToolState)
    row = BaseRow(
        header.purpose,
        header.status,
        header.created_at,
        header.created_by,
        header.app_name,
        header.user_id,
        header.project_id,
        None if work is None else work.tool,
    )
    context.put_row(INDEX, BASE, row)


def move(context: "Context", audience: str, old: ActivityRow | None, new: ActivityRow) -> None:
    """Stage the session's new place in the order of one audience."""
    if old is None or old.at != new.at:
        prefix, session_id = sort_prefix(audience), context.address.key
        if old is not None:
            context.delete_row(INDEX, prefix + position(session_id, old.at))
        context.put_row(INDEX, prefix + position(session_id, new.at), None)
    context.put_row(INDEX, point_key(audience), new)


def remove(context: "Context", activities: "Mapping[str, ActivityRow]") -> None:
    """Stage that the session is in no listing any more."""
    context.delete_row(INDEX, BASE)
    for audience, activity in activities.items():
        context.delete_row(INDEX, sort_prefix(audience) + position(context.address.key, activity.at))
        context.delete_row(INDEX, point_key(audience))


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key the audience is, and the digest of the session's id."""
    if len(key) == 1 or key[:1] not in {b"s", b"p"}:
        return ()
    if key[:1] == b"p":
        return ((1, len(key)),)
    end = key.find(0, 1)
    if end < 0:
        return ((1, len(key) + 1),)
    tie = end + 1 + _TIME_BYTES
    return ((1, end), (tie, tie + _TIE_BYTES)) if len(key) > tie else ((1, end),)


@functools.lru_cache(maxsize=1_024)
def sort_prefix(audience: str) -> bytes:
    """Return the bytes before the positions of one audience's order."""
    return b"s" + audience.encode() + b"\0"


@functools.lru_cache(maxsize=1_024)
def point_key(audience: str) -> bytes:
    """Return the sort key of a session's activity for one audience."""
    return b"p" + audience.encode()


def position(session_id: str, at: int) -> bytes:
    """Return the position of a session last active ``at``: 8 bytes of time, 8 that break ties."""
    return (_INVERTED - at).to_bytes(8) + _tie(session_id)


@functools.lru_cache(maxsize=1_024)
def _tie(session_id: str) -> bytes:
    return blake2b(session_id.encode(), digest_size=_TIE_BYTES).digest()


def order_of(position: bytes, place: bytes) -> bytes:
    """Return by what positions of several audiences are in one order, in which each of them is stored.

    An encrypted store has something else for what breaks ties, so those are in another order.

    Args:
        position: As written.
        place: The `Row.place` of its row.
    """
    return position[:_TIME_BYTES] + place[-_TIME_BYTES - _TIE_BYTES :]


def time_of(place: bytes) -> int:
    """Return the time in a position."""
    return _INVERTED - int.from_bytes(place[:8])


class Place(NamedTuple):
    """A session's place in one of the reader's orders; places sort as the listing does."""

    place: bytes
    order: int
    address: Address
    position: bytes


class SessionsOfProgram(Query[list[str]], frozen=True, kw_only=True):
    """Find the ids of a program's sessions, of one user or of all; not a tool.

    Attributes:
        app_name: The program.
        user_id: Of this user alone.
    """

    app_name: str
    user_id: str | None = None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read what listings show of every session."""
        found: list[str] = []
        for row in reader.rows(INDEX, BaseRow, prefix=BASE):
            base = row.value
            if (
                base.app_name == self.app_name
                and self.user_id in (None, base.user_id)
                and policy.may_see_session(reader.principal, base.project_id)
            ):
                found.append(row.address.key)
            if reader.should_yield():
                yield
        return found


class SessionsCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountSessions`: how many, and whether there are more."""

    count: int
    is_more: bool


class CountSessions(Query[SessionsCounted], frozen=True, kw_only=True):
    """Count the sessions that the caller may see, up to a number; not a tool."""

    most: int

    def run(self, reader: IndexReader) -> Slices[SessionsCounted]:
        """Read what listings show of every session."""
        found = 0
        for row in reader.rows(INDEX, BaseRow, prefix=BASE):
            if policy.may_see_session(reader.principal, row.value.project_id):
                if found == self.most:
                    return SessionsCounted(count=found, is_more=True)
                found += 1
            if reader.should_yield():
                yield
        return SessionsCounted(count=found, is_more=False)


class ListSessions(Query[replies.SessionList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the sessions that the caller may see, newest visible activity first."""

    status: Annotated[types.SessionStatus | None, Meta(description="only such")] = None
    project_id: Annotated[types.Name | None, Meta(description="only of this project")] = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None

    def run(self, reader: IndexReader) -> Slices[replies.SessionList]:
        """Merge the orders of the reader's audiences; a session counts where its activity is newest."""
        binding = f"sessions {self.status} {self.project_id}"
        after = b"" if self.cursor is None else paging.decode(self.cursor, binding)
        audiences = policy.audiences(reader.principal)
        page: list[replies.SessionSummary] = []
        positions: list[bytes] = []
        has_more = False
        for place in places(reader, audiences, after):
            summary = self._summary(reader, place, audiences)
            if summary is not None:
                if len(page) == self.limit:
                    has_more = True
                    break
                page.append(summary)
                positions.append(place.position)
            if reader.should_yield():
                yield
        kept = paging.take_in_order(page, self.max_tokens, lambda each: {"session_id": each.session_id})
        next_cursor = None
        if has_more or kept.passed < len(page):
            next_cursor = paging.encode(positions[kept.passed - 1], binding)
        return replies.SessionList(
            sessions=kept.kept,
            count=len(kept.kept),
            next_cursor=next_cursor,
            left_out=kept.left_out,
            over_budget=kept.over_budget,
        )

    def _summary(
        self, reader: IndexReader, place: Place, audiences: tuple[str, ...]
    ) -> replies.SessionSummary | None:
        base = base_at(reader, place)
        if base is None or self.project_id not in {None, base.project_id}:
            return None
        summary = summary_at(reader, place, audiences, base)
        if summary is None or self.status not in {None, summary.status}:
            return None
        return summary


def places(reader: IndexReader, audiences: tuple[str, ...], after: bytes) -> Iterator[Place]:
    """Yield the places of sessions in the orders of audiences, newest activity first, behind a position."""
    return heapq.merge(*(_places(reader, *numbered, after) for numbered in enumerate(audiences)))


def base_at(reader: IndexReader, place: Place) -> BaseRow | None:
    """Return what listings show of the session at ``place``, or None where the reader may not know of it."""
    base = reader.get(INDEX, BASE, place.address, BaseRow)
    if base is None or not policy.may_see_session(reader.principal, base.project_id):
        return None
    return base


def summary_at(
    reader: IndexReader, place: Place, audiences: tuple[str, ...], base: BaseRow
) -> replies.SessionSummary | None:
    """Return what to show of the session at ``place``, or None when it has no place there."""
    activities = {
        audience: activity
        for audience in audiences
        if (activity := reader.get(INDEX, point_key(audience), place.address, ActivityRow))
    }
    if not activities:  # they were lost in a repair; the session itself can be read
        return None
    newest = max(activities, key=lambda audience: activities[audience].at)
    if audiences[place.order] != newest or activities[newest].at != time_of(place.position):
        return None
    messages = sum(activity.messages for activity in activities.values())
    others = sum(activity.others for activity in activities.values())
    return replies.SessionSummary(
        session_id=place.address.key,
        purpose=base.purpose,
        status=seen_status(base.status, messages - others),
        created_at=to_datetime(base.created_at),
        created_by=base.created_by,
        app_name=base.app_name,
        user_id=base.user_id,
        project_id=base.project_id,
        message_count=messages,
        last_activity=to_datetime(activities[newest].at),
    )


def _places(reader: IndexReader, order: int, audience: str, after: bytes) -> Iterator[Place]:
    prefix = sort_prefix(audience)
    start = prefix + after if after else None
    for row in reader.rows(INDEX, type(None), prefix=prefix, start=start):
        position = row.sort_key[len(prefix) :]
        if position != after:
            yield Place(order_of(position, row.place), order, row.address, position)
