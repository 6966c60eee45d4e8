"""The session directory: index rows that sessions write and listings read.

A listing is ordered by the activity that its reader may see. So a session has rows for each audience that
sees something in it:

    b                       the session: what a listing shows of it
    s audience NUL time tie the order of activity, newest first (the time is inverted)
    p audience              the same activity by session: its time, and the number of messages

The rows of the public audience exist from the start, and move when the session itself changes.
"""

import functools
import heapq
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import policy
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.damage import damaged_entry, with_damage
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.storage import migrations
from greenroom.actors.sessions.storage.records import Header, visible_status
from greenroom.runtime import Address, Context, IndexReader, Procedure, RecordDamagedError, Slices, pass_over

INDEX = "sessions"
BASE = b"b"

_TIME_BYTES = 8
_TIE_BYTES = 8
_INVERTED = (1 << 64) - 1


class BaseRow(msgspec.Struct, frozen=True, array_like=True):
    """A session in a listing; see `Header`.

    ``tool`` is the client tool that the session is in; None without a tool, and in rows of older versions.
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
    """The latest activity that an audience sees in a session, and its number of messages.

    ``messages`` includes ``others`` events that are not messages; rows of older stores do not count these.
    """

    at: int
    messages: int
    others: int = 0


def put_base(context: Context, header: Header) -> None:
    """Stage the row of the session for listings."""
    try:
        work = context.get(migrations.TOOL_STATE, migrations.ToolState)
    except RecordDamagedError:
        work = None
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


def move(context: Context, audience: str, old: ActivityRow | None, new: ActivityRow) -> None:
    """Stage the new position of the session in the order of one audience."""
    if old is None or old.at != new.at:
        prefix, session_id = sort_prefix(audience), context.address.key
        if old is not None:
            context.delete_row(INDEX, prefix + position(session_id, old.at))
        context.put_row(INDEX, prefix + position(session_id, new.at), None)
    context.put_row(INDEX, point_key(audience), new)


def remove(context: Context, activities: Mapping[str, ActivityRow]) -> None:
    """Stage the removal of the session from all listings."""
    context.delete_row(INDEX, BASE)
    for audience, activity in activities.items():
        context.delete_row(INDEX, sort_prefix(audience) + position(context.address.key, activity.at))
        context.delete_row(INDEX, point_key(audience))


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of the audience and of the session's digest in a sort key."""
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
    """Return the prefix of the positions of one audience."""
    return b"s" + audience.encode() + b"\0"


@functools.lru_cache(maxsize=1_024)
def point_key(audience: str) -> bytes:
    """Return the sort key of the activity of a session for one audience."""
    return b"p" + audience.encode()


def position(session_id: str, at: int) -> bytes:
    """Return the position of a session: 8 bytes of time, 8 tie-breaking bytes."""
    return (_INVERTED - at).to_bytes(8) + _tie(session_id)


@functools.lru_cache(maxsize=1_024)
def _tie(session_id: str) -> bytes:
    return blake2b(session_id.encode(), digest_size=_TIE_BYTES).digest()


def order_of(position: bytes, place: bytes) -> bytes:
    """Return a sort key that merges the orders of several audiences.

    An encrypted store changes the tie-breaking bytes, and so the stored order of equal times. Therefore the
    sort key takes these bytes from the row's place.
    """
    return position[:_TIME_BYTES] + place[-_TIME_BYTES - _TIE_BYTES :]


def time_of(place: bytes) -> int:
    """Return the time in a position."""
    return _INVERTED - int.from_bytes(place[:8])


class Place(NamedTuple):
    """The place of a session in an order; places sort like the listing."""

    place: bytes
    order: int
    address: Address
    position: bytes


class SessionsOfProgram(Procedure[list[str]], frozen=True, kw_only=True):
    """Find the ids of a program's sessions; not a tool."""

    runs = "snapshot"

    app_name: str
    user_id: str | None = None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Scan the rows of all sessions."""
        found: list[str] = []
        for row in reader.rows(INDEX, BaseRow, prefix=BASE):
            base = row.value
            if (
                base.app_name == self.app_name
                and self.user_id in (None, base.user_id)
                and policy.may_see_session(reader.principal, base.project_id)
            ):
                found.append(row.address.key)
            yield
        return found


class SessionsCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountSessions`: the number counted, and whether there are more."""

    count: int
    is_more: bool


class CountSessions(Procedure[SessionsCounted], frozen=True, kw_only=True):
    """Count the sessions that the caller may see, up to ``most``; not a tool."""

    runs = "snapshot"

    most: int

    def run(self, reader: IndexReader) -> Slices[SessionsCounted]:
        """Scan the rows of all sessions."""
        found = 0
        for row in reader.rows(INDEX, BaseRow, prefix=BASE, on_damage=pass_over):
            if policy.may_see_session(reader.principal, row.value.project_id):
                if found == self.most:
                    return SessionsCounted(count=found, is_more=True)
                found += 1
            yield
        return SessionsCounted(count=found, is_more=False)


@operation(
    "list_sessions",
    scope="sessions:read",
    tool=ToolText(
        title="List sessions",
        description="See all sessions, or those of one project: which pieces of work are open or "
        "running, across all agents, what everybody is working on at the moment, which "
        "you could join.",
        weight=4,
    ),
)
class ListSessions(Procedure[replies.SessionList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the sessions that the caller may see, newest visible activity first."""

    runs = "snapshot"

    status: Annotated[types.SessionStatus | None, Meta(description="only such")] = None
    project_id: Annotated[types.Name | None, Meta(description="only of this project")] = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None

    def run(self, reader: IndexReader) -> Slices[replies.SessionList]:
        """Merge the orders of the reader's audiences; list a session where its activity is newest."""
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
            yield
        kept = paging.fit_to_budget(page, self.max_tokens, lambda each: {"session_id": each.session_id})
        next_cursor = None
        if has_more or kept.passed < len(page):
            next_cursor = paging.encode(positions[kept.passed - 1], binding)
        answer = replies.SessionList(
            sessions=kept.kept,
            count=len(kept.kept),
            next_cursor=next_cursor,
            left_out=kept.left_out,
            over_budget=kept.over_budget,
        )
        return with_damage(answer, reader) if reader.damage else answer

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
    """Yield the places of sessions for some audiences after a position, newest activity first."""
    return heapq.merge(*(_places(reader, *numbered, after) for numbered in enumerate(audiences)))


def base_at(reader: IndexReader, place: Place) -> BaseRow | None:
    """Return the row of the session at ``place``, if the reader may see it."""
    try:
        base = reader.get(INDEX, BASE, place.address, BaseRow)
    except RecordDamagedError as error:  # the project, and so the readers, are unknown
        reader.note_damage(damaged_entry(error, "a session"))
        return None
    if base is None or not policy.may_see_session(reader.principal, base.project_id):
        return None
    return base


def summary_at(
    reader: IndexReader, place: Place, audiences: tuple[str, ...], base: BaseRow
) -> replies.SessionSummary | None:
    """Return the summary of the session at ``place``; None if the session belongs elsewhere."""
    activities: dict[str, ActivityRow] = {}
    for audience in audiences:
        try:
            activity = reader.get(INDEX, point_key(audience), place.address, ActivityRow)
        except RecordDamagedError as error:
            reader.note_damage(damaged_entry(error, "the session", session_id=place.address.key))
            return None
        if activity:
            activities[audience] = activity
    if not activities:  # a repair lost the rows; the session itself is readable
        return None
    newest = max(activities, key=lambda audience: activities[audience].at)
    if audiences[place.order] != newest or activities[newest].at != time_of(place.position):
        return None
    messages = sum(activity.messages for activity in activities.values())
    others = sum(activity.others for activity in activities.values())
    return replies.SessionSummary(
        session_id=place.address.key,
        purpose=base.purpose,
        status=visible_status(base.status, messages - others),
        created_at=to_datetime(base.created_at),
        created_by=base.created_by,
        app_name=base.app_name,
        user_id=base.user_id,
        project_id=base.project_id,
        message_count=messages,
        last_activity=to_datetime(activities[newest].at),
    )


def _lost_place(reader: IndexReader, error: RecordDamagedError) -> RecordDamagedError:
    """Return the error for a damaged place, with the session's id if it is visible."""
    rows = reader.rows(INDEX, BaseRow, prefix=BASE, on_damage=pass_over)
    base = next((row for row in rows if reader.is_of(error, row.address)), None)
    is_seen = base is not None and policy.may_see_session(reader.principal, base.value.project_id)
    return damaged_entry(
        error, "a session", session_id=base.address.key if base is not None and is_seen else None
    )


def _places(reader: IndexReader, order: int, audience: str, after: bytes) -> Iterator[Place]:
    prefix = sort_prefix(audience)
    start = prefix + after if after else None

    def report(error: RecordDamagedError) -> None:
        reader.note_damage(_lost_place(reader, error))

    for row in reader.rows(INDEX, type(None), prefix=prefix, start=start, on_damage=report):
        position = row.sort_key[len(prefix) :]
        if position != after:
            yield Place(order_of(position, row.place), order, row.address, position)
