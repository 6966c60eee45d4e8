"""Claude's memory tool, for clients that block and for asynchronous ones."""

from __future__ import annotations

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from greenroom.actors import Database, Principal
from greenroom.adapters.anthropic.files import MemoryFiles
from greenroom.adapters.base.blocking import call_blocking


class AsyncGreenroomMemoryTool(BetaAsyncAbstractMemoryTool):
    """Claude's files under ``/memories``, kept in a database; for ``AsyncAnthropic``.

    They are memories in the namespace ``user:NAME:files`` of the principal's user, or, without one, in
    ``agent:ID:files``. What cannot be done is an ``anthropic.lib.tools.ToolError``, which the model is told.

    Args:
        database: An open database, on any event loop.
        principal: Whose files they are.
        cache_control: As in Anthropic's own tools: where the prompt's cache ends.
    """

    def __init__(
        self,
        database: Database,
        principal: Principal,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(database, principal)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Answer a file with its lines numbered, or what is in a directory."""
        return await self._files.view(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Keep a new file."""
        return await self._files.create(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that is there once."""
        return await self._files.str_replace(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line."""
        return await self._files.insert(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return await self._files.delete(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a directory file by file."""
        return await self._files.rename(command)

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await self._files.clear()


class GreenroomMemoryTool(BetaAbstractMemoryTool):
    """The same for the ``Anthropic`` client, which blocks: for a thread without an event loop.

    Args:
        database: An open database.
        principal: Whose files they are.
        cache_control: As in Anthropic's own tools.
    """

    def __init__(
        self,
        database: Database,
        principal: Principal,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._database = database
        self._files = MemoryFiles(database, principal)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Answer a file with its lines numbered, or what is in a directory."""
        return call_blocking(self._database, self._files.view, command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Keep a new file."""
        return call_blocking(self._database, self._files.create, command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that is there once."""
        return call_blocking(self._database, self._files.str_replace, command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line."""
        return call_blocking(self._database, self._files.insert, command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return call_blocking(self._database, self._files.delete, command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a directory file by file."""
        return call_blocking(self._database, self._files.rename, command)

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return call_blocking(self._database, self._files.clear)
