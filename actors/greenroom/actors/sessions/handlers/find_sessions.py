"""Sessions as people look for them: by who made them, in which tool they are, and words."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.sessions.storage import directory
from greenroom.runtime import IndexReader, Query, Slices

MOST_SCANNED: Final = 10_000
"""So many sessions are looked at for one page; then it ends, and its cursor goes on."""
COUNTED_ON: Final = 1_000
"""So many more are looked at, once a page is full, to say how many there are."""


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and the client tool that it is in; None where it is not known."""

    session: replies.SessionSummary
    tool: str | None


class SessionsFound(replies.ListReply, frozen=True, kw_only=True):
    """Answers `FindSessions`, newest activity first.

    Attributes:
        count: How many are in this answer.
        matching: How many were found to fit from here on, those of this answer included.
        is_all: Whether there are no more of them.
    """

    lists: ClassVar[tuple[str, ...]] = ("sessions",)

    sessions: list[FoundSession]
    count: int
    matching: int
    is_all: bool
    next_cursor: str | None


class FindSessions(Query[SessionsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find sessions that the caller may see by what listings show of them, newest visible activity first.

    Attributes:
        agent: Who made it.
        tool: The client tool that it is in.
        text: What its id, purpose, program or user contains, upper and lower case alike.
    """

    status: Annotated[types.SessionStatus | None, Meta(description="only such")] = None
    project_id: Annotated[types.Name | None, Meta(description="only of this project")] = None
    agent: Annotated[types.Name | None, Meta(description="only what this agent made")] = None
    tool: Annotated[types.Name | None, Meta(description="only what is in this client tool")] = None
    text: Annotated[types.Name | None, Meta(description="in its id, purpose, program or user")] = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50

    def run(self, reader: IndexReader) -> Slices[SessionsFound]:
        """Go through the reader's sessions until a page is full and what follows is counted."""
        given = [self.status, self.project_id, self.agent, self.tool, self.text]
        binding = f"found sessions {msgspec.json.encode(given).decode()}"
        after = b"" if self.cursor is None else paging.decode(self.cursor, binding)
        audiences = policy.audiences(reader.principal)
        found: list[FoundSession] = []
        matching = left = 0
        scan = MOST_SCANNED
        last = after
        is_all = True
        for place in directory.places(reader, audiences, after):
            if scan == 0:
                is_all = False
                break
            scan -= 1
            each = self._found(reader, place, audiences)
            if each is not None:
                matching += 1
                if len(found) < self.limit:
                    found.append(each)
                    if len(found) == self.limit:
                        scan = min(scan, COUNTED_ON)
                else:
                    left += 1
            if len(found) < self.limit or (each is not None and not left):
                last = place.position
            if reader.should_yield():
                yield
        has_more = left > 0 or not is_all
        return SessionsFound(
            sessions=found,
            count=len(found),
            matching=matching,
            is_all=is_all,
            next_cursor=paging.encode(last, binding) if has_more else None,
        )

    def _found(
        self, reader: IndexReader, place: directory.Place, audiences: tuple[str, ...]
    ) -> FoundSession | None:
        base = directory.base_at(reader, place)
        if base is None or not self._fits(base, place.address.key):
            return None
        summary = directory.summary_at(reader, place, audiences, base)
        if summary is None or self.status not in {None, summary.status}:
            return None
        return FoundSession(session=summary, tool=base.tool)

    def _fits(self, base: directory.BaseRow, session_id: str) -> bool:
        if (
            self.project_id not in {None, base.project_id}
            or self.agent not in {None, base.created_by}
            or self.tool not in {None, base.tool}
        ):
            return False
        if self.text is None:
            return True
        wanted = composed(self.text).casefold()
        shown = (session_id, base.purpose, base.app_name or "", base.user_id or "")
        return any(wanted in composed(each).casefold() for each in shown)
