"""What clients of one process did in their sessions, written there behind the answers: a batch a commit.

Nobody who is answered waits for it: a note costs an entry in memory. What a kill takes is what was noted
since the last writing, some seconds at most.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import outcome
import trio

from greenroom.actors.app.client.noted_work import NOTED, Noted
from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.sessions.requests.session_context import (
    MOST_FILES,
    MOST_MEMORIES,
    MOST_SEARCHES,
    NoteContext,
    NotedFile,
    NotedMemory,
    NotedSearch,
)
from greenroom.runtime import Address, GreenroomError, Result, RuntimeClient

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

WRITE_SECONDS: Final = 5.0
LAST_SECONDS: Final = 0.3
"""How long the last writing may take: a process that ends is not kept from it."""
MAX_QUERY: Final = 500
_MAX_PATH: Final = 1_024


class _Batch(msgspec.Struct):
    """What one client did in one session, each thing once, what came last at the end.

    It has no more than a session keeps.
    """

    files: dict[str, int] = msgspec.field(default_factory=dict)
    searches: dict[tuple[str, str, bool], None] = msgspec.field(default_factory=dict)
    memories: dict[str, NotedMemory] = msgspec.field(default_factory=dict)

    def add(self, noted: Noted, tool: str) -> None:
        """Add what one request was."""
        for path in noted.files:
            _put(self.files, path, self.files.get(path, 0) + 1, MOST_FILES)
        if noted.search:
            _put(self.searches, (noted.search, tool, noted.is_private), None, MOST_SEARCHES)
        if (saved := noted.memory) is not None:
            memory = NotedMemory(saved.memory_id, saved.key, saved.namespace)
            _put(self.memories, saved.memory_id, memory, MOST_MEMORIES)

    def message(self) -> NoteContext:
        """Return it as it is written: without secrets, and with no more of a query than is kept."""
        return NoteContext(
            files=[NotedFile(path[:_MAX_PATH], uses) for path, uses in self.files.items()],
            searches=[
                NotedSearch(without_secrets(query)[0][:MAX_QUERY], tool, is_private)
                for query, tool, is_private in self.searches
            ],
            memories=list(self.memories.values()),
        )


def _put(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Put an entry at the end of a table; beyond the most there may be, the first goes."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]


class WorkNotes:
    """Notes what clients of this process did in their sessions; opened, it writes them in batches.

    Args:
        runtime: Where the sessions are.
    """

    def __init__(self, runtime: RuntimeClient) -> None:
        self._runtime = runtime
        self._waiting: dict[tuple[str, Principal], _Batch] = {}
        self._has_some: trio.Event | None = None

    def noting(self, client: ClientSessionState, request: Any, tool: str) -> Callable[[Any], None] | None:
        """Return what notes a request once it is answered, in the session that is current now.

        Args:
            client: Who asks.
            request: The request.
            tool: The tool's name.

        Returns:
            What is called with the answer; None where nothing is noted.
        """
        noted, session_id = NOTED.get(type(request)), client.session_id
        if noted is None or session_id is None:
            return None
        return lambda answer: self._add((session_id, client.principal), noted(request, answer), tool)

    def _add(self, whose: tuple[str, Principal], noted: Noted, tool: str) -> None:
        if (batch := self._waiting.get(whose)) is None:
            batch = self._waiting[whose] = _Batch()
        batch.add(noted, tool)
        if self._has_some is None or noted.memory is not None:  # storing it took a commit anyway
            self.write()
        else:
            self._has_some.set()

    def write(self) -> None:
        """Hand what waits to the sessions, before whatever is asked of them next."""
        for address, principal, message in self._taken():
            try:
                self._runtime.tell(address, message, principal=principal)
            except GreenroomError as error:  # no request fails for it
                logger.debug("what was noted is lost: %s", error)

    async def run(self) -> None:
        """Write some seconds after something was noted, until it is cancelled."""
        while True:
            self._has_some = trio.Event()
            await self._has_some.wait()
            await trio.sleep(WRITE_SECONDS)
            self.write()

    async def finish(self) -> None:
        """Write what waits, and wait until that is on disk; what is noted later is written at once."""
        self._has_some = None
        async with trio.open_nursery() as nursery:
            for each in self._taken():
                nursery.start_soon(self._ask, *each)

    async def _ask(self, address: Address, principal: Principal, message: NoteContext) -> None:
        try:
            await self._runtime.ask(address, message, principal=principal)
        except GreenroomError as error:
            logger.debug("what was noted is lost: %s", error)

    def _taken(self) -> list[tuple[Address, Principal, NoteContext]]:
        waiting, self._waiting = self._waiting, {}
        return [
            (Address("session", session_id), principal, batch.message())
            for (session_id, principal), batch in waiting.items()
        ]


def noting_value(note: Callable[[Any], None], done: Callable[[Result], None]) -> Callable[[Result], None]:
    """Wrap a request's callback so that its answer is noted, and a failure is not."""

    def noted(result: Result) -> None:
        if isinstance(result, outcome.Value):
            note(result.value)
        done(result)

    return noted


@asynccontextmanager
async def open_work_notes(runtime: RuntimeClient) -> AsyncIterator[WorkNotes]:
    """Note what clients do as long as this is open, and write the last of it at the end."""
    notes = WorkNotes(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(notes.run)
        try:
            yield notes
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(LAST_SECONDS, shield=True):
                await notes.finish()
