"""Find sessions by creator, client tool or text, for people."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.damage import with_damage
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.sessions.storage import directory
from greenroom.runtime import IndexReader, Procedure, Slices

MOST_SCANNED: Final = 10_000
"""The most sessions to scan for one page; its cursor continues the scan."""
COUNTED_ON: Final = 1_000
"""The most sessions to scan after a full page, to count the matches."""


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session and its client tool; ``tool`` is None if it is unknown."""

    session: replies.SessionSummary
    tool: str | None


class SessionsFound(replies.ListReply, frozen=True, kw_only=True):
    """Answers `FindSessions`, newest activity first.

    Attributes:
        matching: The number of matches from here on, this page included.
        is_all: Whether the scan reached the end.
    """

    lists: ClassVar[tuple[str, ...]] = ("sessions",)

    sessions: list[FoundSession]
    count: int
    matching: int
    is_all: bool
    next_cursor: str | None


@operation(
    "find_sessions",
    scope="sessions:read",
)
class FindSessions(Procedure[SessionsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find visible sessions by their listed fields, newest visible activity first."""

    runs = "snapshot"

    status: Annotated[types.SessionStatus | None, Meta(description="only such")] = None
    project_id: Annotated[types.Name | None, Meta(description="only of this project")] = None
    agent: Annotated[types.Name | None, Meta(description="only what this agent made")] = None
    tool: Annotated[types.Name | None, Meta(description="only what is in this client tool")] = None
    text: Annotated[types.Name | None, Meta(description="in its id, purpose, program or user")] = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50

    def run(self, reader: IndexReader) -> Slices[SessionsFound]:
        """Scan the reader's sessions for a full page, and count the matches behind it."""
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
            each = self._match(reader, place, audiences)
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
            yield
        has_more = left > 0 or not is_all
        answer = SessionsFound(
            sessions=found,
            count=len(found),
            matching=matching,
            is_all=is_all,
            next_cursor=paging.encode(last, binding) if has_more else None,
        )
        return with_damage(answer, reader) if reader.damage else answer

    def _match(
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
        wanted = compose(self.text).casefold()
        shown = (session_id, base.purpose, base.app_name or "", base.user_id or "")
        return any(wanted in compose(each).casefold() for each in shown)
