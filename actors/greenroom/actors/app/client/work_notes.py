"""Record what clients of one process did in their sessions, in batches after the answers.

No answer waits for a write: a note is first only an entry in memory. A crash loses the notes
since the last write, at most those of some seconds.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.client.noted_work import NOTED, Noted
from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.session_context import (
    MOST_FILES,
    MOST_MEMORIES,
    MOST_SEARCHES,
    NoteContext,
    NotedFile,
    NotedMemory,
    NotedSearch,
)
from greenroom.runtime import Address, GreenroomError, RuntimeClient

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

WRITE_SECONDS: Final = 5.0
LAST_SECONDS: Final = 0.3
"""The time limit of the last write, which must not delay the end of the process."""
MAX_QUERY: Final = 500
_MAX_PATH: Final = 1_024


class _Batch(msgspec.Struct):
    """The work of one client in one session, each entry once, the latest last.

    It holds no more entries than a session stores.
    """

    files: dict[str, int] = msgspec.field(default_factory=dict)
    searches: dict[tuple[str, str, bool], None] = msgspec.field(default_factory=dict)
    memories: dict[str, NotedMemory] = msgspec.field(default_factory=dict)

    def add(self, noted: Noted, tool: str) -> None:
        for path in noted.files:
            _put(self.files, path, self.files.get(path, 0) + 1, MOST_FILES)
        if noted.search:
            _put(self.searches, (noted.search, tool, noted.is_private), None, MOST_SEARCHES)
        if (saved := noted.memory) is not None:
            memory = NotedMemory(saved.memory_id, saved.key, saved.namespace)
            _put(self.memories, saved.memory_id, memory, MOST_MEMORIES)

    def message(self) -> NoteContext:
        """Return the message to store: secrets masked, and queries cut to the stored length."""
        return NoteContext(
            files=[NotedFile(path[:_MAX_PATH], uses) for path, uses in self.files.items()],
            searches=[
                NotedSearch(without_secrets(query)[0][:MAX_QUERY], tool, is_private)
                for query, tool, is_private in self.searches
            ],
            memories=list(self.memories.values()),
        )


def _put(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Append an entry to a table; above the limit, drop the first entry."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]


class WorkNotes:
    """Records what clients of this process did in their sessions, in batches."""

    def __init__(self, runtime: RuntimeClient) -> None:
        self._runtime = runtime
        self._waiting: dict[tuple[str, Principal], _Batch] = {}
        self._has_some: trio.Event | None = None

    def noting(self, client: ClientContext, request: Any, tool: str) -> Callable[[Any], None] | None:
        """Return a function that records an answered request in the current session.

        Return None if there is no current session.
        """
        noted, session_id = NOTED[type(request)], client.session.session_id
        if session_id is None:
            return None
        return lambda answer: self._add((session_id, client.principal), noted(request, answer), tool)

    def _add(self, whose: tuple[str, Principal], noted: Noted, tool: str) -> None:
        if (batch := self._waiting.get(whose)) is None:
            batch = self._waiting[whose] = _Batch()
        batch.add(noted, tool)
        if self._has_some is None or noted.memory is not None:  # storing the memory took a commit anyway
            self.write()
        else:
            self._has_some.set()

    def write(self) -> None:
        """Send pending notes to the sessions, before their next request."""
        for address, principal, message in self._take():
            try:
                self._runtime.tell(address, message, principal=principal)
            except GreenroomError as error:  # must not fail a request
                logger.debug("notes of work are lost: %s", error)

    async def run(self) -> None:
        """Write pending notes some seconds after the first, until cancelled."""
        while True:
            self._has_some = trio.Event()
            await self._has_some.wait()
            await trio.sleep(WRITE_SECONDS)
            self.write()

    async def finish(self) -> None:
        """Write pending notes durably; later notes are written at once."""
        self._has_some = None
        async with trio.open_nursery() as nursery:
            for each in self._take():
                nursery.start_soon(self._ask, *each)

    async def _ask(self, address: Address, principal: Principal, message: NoteContext) -> None:
        try:
            await self._runtime.ask(address, message, principal=principal)
        except GreenroomError as error:
            logger.debug("notes of work are lost: %s", error)

    def _take(self) -> list[tuple[Address, Principal, NoteContext]]:
        waiting, self._waiting = self._waiting, {}
        return [
            (Address("session", session_id), principal, batch.message())
            for (session_id, principal), batch in waiting.items()
        ]


@asynccontextmanager
async def open_work_notes(runtime: RuntimeClient) -> AsyncIterator[WorkNotes]:
    """Record the work of clients while the block runs; write the rest at its end."""
    notes = WorkNotes(runtime)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(notes.run)
        try:
            yield notes
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(LAST_SECONDS, shield=True):
                await notes.finish()
