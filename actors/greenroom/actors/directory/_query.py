"""Listing sessions: a read over the directory's rows, outside any session."""

import heapq
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from msgspec import Meta

from greenroom.actors import _budget, _cursor, _policy
from greenroom.actors._times import to_datetime
from greenroom.actors.directory import _rows
from greenroom.actors.requests import _replies as replies
from greenroom.actors.requests import _types as types
from greenroom.actors.session._lifecycle import seen_status
from greenroom.runtime import Address, IndexReader, Query, Slices


class Place(NamedTuple):
    """A session's place in one of the reader's orders; places sort as the listing does."""

    place: bytes
    order: int
    address: Address
    position: bytes


class ListSessions(Query[replies.SessionList], frozen=True, kw_only=True):
    """List the sessions that the caller may see, newest visible activity first."""

    status: Annotated[types.SessionStatus | None, Meta(description="only such")] = None
    project_id: Annotated[types.Name | None, Meta(description="only of this project")] = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50
    max_tokens: types.Budget | None = None

    def run(self, reader: IndexReader) -> Slices[replies.SessionList]:
        """Merge the orders of the reader's audiences; a session counts where its activity is newest."""
        binding = f"sessions {self.status} {self.project_id}"
        after = b"" if self.cursor is None else _cursor.decode(self.cursor, binding)
        audiences = _policy.audiences(reader.principal)
        page: list[replies.SessionSummary] = []
        positions: list[bytes] = []
        has_more = False
        for place in heapq.merge(*(_places(reader, *numbered, after) for numbered in enumerate(audiences))):
            summary = self._summary(reader, place, audiences)
            if summary is not None:
                if len(page) == self.limit:
                    has_more = True
                    break
                page.append(summary)
                positions.append(place.position)
            if reader.slice_over():
                yield
        kept = _budget.cut(page, self.max_tokens, lambda each: {"session_id": each.session_id})
        next_cursor = None
        if has_more or kept.passed < len(page):
            next_cursor = _cursor.encode(positions[kept.passed - 1], binding)
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
        """Return what to show of the session at ``place``, or None when it has no place there."""
        base = reader.get(_rows.INDEX, _rows.BASE, place.address, _rows.BaseRow)
        if base is None or not _policy.may_see_session(reader.principal, base.project_id):
            return None
        if self.project_id is not None and base.project_id != self.project_id:
            return None
        activities = {
            audience: activity
            for audience in audiences
            if (
                activity := reader.get(
                    _rows.INDEX, _rows.point_key(audience), place.address, _rows.ActivityRow
                )
            )
        }
        if not activities:  # they were lost in a repair; the session itself can be read
            return None
        newest = max(activities, key=lambda audience: activities[audience].at)
        if audiences[place.order] != newest or activities[newest].at != _rows.time_of(place.position):
            return None
        messages = sum(activity.messages for activity in activities.values())
        others = sum(activity.others for activity in activities.values())
        status = seen_status(base.status, messages - others)
        if self.status is not None and status != self.status:
            return None
        return replies.SessionSummary(
            session_id=place.address.key,
            purpose=base.purpose,
            status=status,
            created_at=to_datetime(base.created_at),
            created_by=base.created_by,
            app_name=base.app_name,
            user_id=base.user_id,
            project_id=base.project_id,
            message_count=messages,
            last_activity=to_datetime(activities[newest].at),
        )


def _places(reader: IndexReader, order: int, audience: str, after: bytes) -> Iterator[Place]:
    prefix = _rows.sort_prefix(audience)
    start = prefix + after if after else None
    for row in reader.rows(_rows.INDEX, type(None), prefix=prefix, start=start):
        position = row.sort_key[len(prefix) :]
        if position != after:
            yield Place(_rows.order_of(position, row.place), order, row.address, position)
