"""The tool `find_entity`: an entity of a corpus, and its mentions in memories and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.auth import scopes
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import entity_requests
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.tools.entity_tools import EntityQuestion
from greenroom.actors.knowledge.entities import EntityMatcher, MatchedNames
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, find
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters
from greenroom.actors.sessions.requests.requests import FindMessages, SearchContext
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import Address, GreenroomError, ProcedureContext

SECONDS: Final = 2.0
"""The time limit for searching memories and sessions."""
NAMES: Final = 4
"""At most this many names of an entity are searched."""
SESSIONS: Final = 30
"""At most this many sessions are searched."""
HITS: Final = 10
_CUT: Final = "not all memories and sessions were looked through in 2 s"
_EXACT: Final = 100


@operation(
    "find_entity",
    scope="knowledge:read",
    tool=ToolText(
        title="Find all mentions",
        description="Find every place where a name turns up, however written: a vendor, project, "
        "product or library, counting its other names too, in files, memories, notes "
        "and sessions.",
        weight=4,
    ),
)
class FindEntity(
    EntityQuestion[entity_requests.EntityFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find an entity as `FindVendorInfo` does, and its mentions in memories and sessions."""

    async def run(self, context: ProcedureContext) -> entity_requests.EntityFound:
        """Ask the corpus, the owners of memories and the sessions, as the scopes allow."""
        began = trio.current_time()
        reply, names, ambiguous = await self.answered(context, "find_entity")
        elsewhere = _Elsewhere(names, ambiguous)
        with trio.move_on_at(began + SECONDS) as cut:
            await elsewhere.look(context)
        answer = msgspec.structs.asdict(reply)
        answer["execution_time_ms"] = round((trio.current_time() - began) * 1_000, 3)
        if cut.cancelled_caught:
            answer |= {"partial": True, "partial_reason": _CUT}
        return entity_requests.EntityFound(
            **answer,
            memories=list(elsewhere.memories.values())[:HITS],
            sessions=elsewhere.sessions,
        )


class _Elsewhere:
    """The mentions of an entity outside of its corpus."""

    def __init__(self, names: Sequence[str], ambiguous: Sequence[str]) -> None:
        self.memories: dict[str, entity_requests.MemoryMention] = {}
        self.sessions: list[entity_requests.SessionMention] = []
        self._names = list(names)[:NAMES]
        is_sought = bool(names) and can_match()
        self._matcher = EntityMatcher([MatchedNames(1, names, ambiguous)]) if is_sought else None

    async def look(self, context: ProcedureContext) -> None:
        """Search everything that the caller may see and has the scopes for."""
        if self._matcher is None:
            return
        held = context.principal.scopes
        if scopes.allows(held, scopes.needed_for_request("memory_search")):
            for name in self._names:
                await self._look_in_memories(context, name)
        if scopes.allows(held, scopes.needed_for_request("search_context")):
            for session in (await context.query(ListSessions(limit=SESSIONS))).sessions:
                await self._look_in_session(context, session)

    async def _look_in_memories(self, context: ProcedureContext, name: str) -> None:
        search = SearchSpec(
            below=None, query=name, mode="semantic", boost=0.0, filters=MemoryFilters(), limit=3 * HITS
        )  # ignores case, so it finds too much; the loop leaves that out
        for hit in (await find(context, search)).hits:
            memory = hit.memory
            if self._is_in(_text_of(hit)):
                self.memories[memory.memory_id] = entity_requests.MemoryMention(
                    memory_id=memory.memory_id, namespace=memory.namespace, key=memory.key
                )

    async def _look_in_session(self, context: ProcedureContext, session: SessionSummary) -> None:
        found: dict[int, None] = {}
        for name in self._names:
            asked = SearchContext(
                session_id=session.session_id,
                query=name,
                fuzzy_threshold=_EXACT,
                limit=HITS,
                recent_hours=None,
                max_rows_scanned=None,
            )
            try:
                hits = await context.ask(Address("session", session.session_id), FindMessages(asked=asked))
            except GreenroomError:  # the session fails, or was deleted after it was listed
                return
            found |= {
                hit.message.message_id: None for hit in hits.results if self._is_in(hit.message.content)
            }
        if found:
            self.sessions.append(
                entity_requests.SessionMention(
                    session_id=session.session_id,
                    purpose=session.purpose,
                    message_ids=list(found)[:HITS],
                )
            )

    def _is_in(self, text: str) -> bool:
        """Return whether a text mentions the entity, not only the letters of its name."""
        assert self._matcher is not None, "nothing is looked through without names"
        return bool(self._matcher.mentions(text))


def _text_of(hit: FoundMemory) -> str:
    if hit.memory.content is not None:
        return hit.memory.content
    return "" if hit.memory.value is UNSET else bytes(hit.memory.value).decode()
