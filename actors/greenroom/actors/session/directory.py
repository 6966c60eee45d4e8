"""Listing sessions: a read over the directory's rows, outside any session."""

import heapq
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from msgspec import Meta

from greenroom.actors.auth import policy
from greenroom.actors.base import budget
from greenroom.actors.base import cursor as base_cursor
from greenroom.actors.base.times import to_datetime
from greenroom.actors.schemas import replies, types
from greenroom.actors.session import directory_rows
from greenroom.actors.session.lifecycle import seen_status
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
        after = b"" if self.cursor is None else base_cursor.decode(self.cursor, binding)
        audiences = policy.audiences(reader.principal)
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
            if reader.should_yield():
                yield
        kept = budget.take_in_order(page, self.max_tokens, lambda each: {"session_id": each.session_id})
        next_cursor = None
        if has_more or kept.passed < len(page):
            next_cursor = base_cursor.encode(positions[kept.passed - 1], binding)
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
        base = reader.get(directory_rows.INDEX, directory_rows.BASE, place.address, directory_rows.BaseRow)
        if base is None or not policy.may_see_session(reader.principal, base.project_id):
            return None
        if self.project_id is not None and base.project_id != self.project_id:
            return None
        activities = {
            audience: activity
            for audience in audiences
            if (
                activity := reader.get(
                    directory_rows.INDEX,
                    directory_rows.point_key(audience),
                    place.address,
                    directory_rows.ActivityRow,
                )
            )
        }
        if not activities:  # they were lost in a repair; the session itself can be read
            return None
        newest = max(activities, key=lambda audience: activities[audience].at)
        if audiences[place.order] != newest or activities[newest].at != directory_rows.time_of(
            place.position
        ):
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
    prefix = directory_rows.sort_prefix(audience)
    start = prefix + after if after else None
    for row in reader.rows(directory_rows.INDEX, type(None), prefix=prefix, start=start):
        position = row.sort_key[len(prefix) :]
        if position != after:
            yield Place(directory_rows.order_of(position, row.place), order, row.address, position)
