"""Claude's memory tool, for blocking and asynchronous clients."""

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
    """Claude's files under ``/memories`` in a database; for ``AsyncAnthropic``.

    They are memories in the namespace ``user:NAME:files`` of the principal's user, or, without one, in
    ``agent:ID:files``. An error is an ``anthropic.lib.tools.ToolError``, which the model gets.

    Args:
        database: An open database, on any event loop.
        principal: The owner of the files.
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
        """Return a file with numbered lines, or the files of a directory."""
        return await self._files.view(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        return await self._files.create(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return await self._files.str_replace(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""
        return await self._files.insert(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all its files."""
        return await self._files.delete(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or the files of a directory one by one."""
        return await self._files.rename(command)

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await self._files.clear()


class GreenroomMemoryTool(BetaAbstractMemoryTool):
    """The same for the ``Anthropic`` client, which blocks; for a thread without an event loop.

    Args:
        database: An open database.
        principal: The owner of the files.
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
        """Return a file with numbered lines, or the files of a directory."""
        return call_blocking(self._database, self._files.view, command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        return call_blocking(self._database, self._files.create, command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return call_blocking(self._database, self._files.str_replace, command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""
        return call_blocking(self._database, self._files.insert, command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all its files."""
        return call_blocking(self._database, self._files.delete, command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or the files of a directory one by one."""
        return call_blocking(self._database, self._files.rename, command)

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return call_blocking(self._database, self._files.clear)
