"""Claude's memory tool: each file is a memory, and the file's path is the key."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from greenroom.actors import (
    Database,
    ForgetMemory,
    MemoryFilters,
    MemoryView,
    Principal,
    ReadMemory,
    StoreMemory,
    user_namespace,
)
from greenroom.adapters.anthropic import texts
from greenroom.adapters.anthropic.paths import MOST_KEY, ROOT, inside, key_of, parents_of, path_of
from greenroom.adapters.anthropic.texts import Edited
from greenroom.adapters.base.blocking import blocking, call_whole
from greenroom.adapters.base.memories import MemoryRequests
from greenroom.runtime import Refusal

MOST_BYTES = 1_048_576
"""The most UTF-8 bytes of a file: the limit of a memory."""


class AsyncGreenroomMemoryTool(BetaAsyncAbstractMemoryTool):
    """Claude's files under ``/memories`` in a database; for ``AsyncAnthropic``.

    Each file is a memory in the namespace ``user:NAME:files`` of the principal's user, or, without a user, in
    ``agent:ID:files``. An error is an ``anthropic.lib.tools.ToolError``, which the model gets.

    Each change of one file is one commit with an expected version. After a conflict, the change is repeated
    on the new version. A directory exists while it has files.

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
        self._database = database
        self._memories = MemoryRequests(database, principal, f"{user_namespace(principal)}:files")

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with numbered lines, or the files of a directory."""
        path = inside(command.path)
        found = await self._find(path) if path else None
        if found is not None:
            return texts.render_file(command.path, _text(found), getattr(command, "view_range", None))
        below = await self._below(path)
        if path and not below:
            raise _missing(command.path)
        start = len(path) + 1 if path else 0
        sizes = {name[start:]: size for name, size in below.items()}
        return texts.render_directory(command.path.rstrip("/"), sizes)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        path = inside(command.path)
        text = _argument(command, "file_text")
        if not path or await self._below(path):
            raise ToolError(f"File {command.path} already exists")
        await self._check_parents(path)
        if not await self._keep(path, text, after=0):
            raise ToolError(f"File {command.path} already exists")
        return f"File created successfully at: {command.path}"

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        old, new = _argument(command, "old_str"), _argument(command, "new_str")
        return await self._edit(command.path, lambda text: texts.replace(command.path, text, old, new))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""
        line, added = getattr(command, "insert_line", None), _argument(command, "insert_text")
        if type(line) is not int:
            raise ToolError(f"Invalid `insert_line` parameter: {line}. It should be a line number.")
        return await self._edit(command.path, lambda text: texts.insert(command.path, text, line, added))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all its files."""
        path = inside(command.path)
        if not path:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        if not await self._forget(path) and not await self._forget_below(path):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a directory's files one by one: copy, then delete."""
        old, new = inside(command.old_path), inside(command.new_path)
        if not old:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if not new or await self._find(new) is not None or await self._below(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        await self._check_parents(new)
        if await self._find(old) is not None:
            moves = {old: new}
        else:
            moves = {path: new + path[len(old) :] for path in await self._below(old)}
        if not moves:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(old + "/"):
            raise ToolError(f"The destination {command.new_path} is inside {command.old_path}")
        for path in moves.values():
            inside(f"{ROOT}/{path}")  # checks all lengths before the first move
        await call_whole(self._database, self._move_all, moves)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        await call_whole(self._database, self._forget_all)
        return "All memory cleared"

    # -- one file ----------------------------------------------------------

    async def _edit(self, name: str, change: Callable[[str], Edited]) -> str:
        path = inside(name)
        while True:
            found = await self._find(path) if path else None
            if found is None:
                if not path or await self._below(path):
                    raise ToolError(f"The path {name} is not a file.")
                raise _missing(name)
            edited = change(_text(found))
            if await self._keep(path, edited.text, after=found.version):
                return edited.answer

    async def _move_all(self, moves: dict[str, str]) -> None:
        for source, target in moves.items():
            if not await self._move(source, target):
                raise ToolError(f"The destination {ROOT}/{target} already exists")

    async def _move(self, source: str, target: str) -> bool:
        """Move a file, with changes that others make meanwhile; return whether the target was free."""
        version = 0
        while (found := await self._find(source)) is not None:
            if not await self._keep(target, _text(found), after=version):
                return False
            if await self._forget(source, found.version):
                return True
            version += 1
        return True

    async def _find(self, path: str) -> MemoryView | None:
        try:
            return (
                await self._memories.ask(ReadMemory, namespace=self._memories.namespace, key=key_of(path))
            ).memory
        except Refusal as refusal:
            if refusal.code == "MEMORY_NOT_FOUND":
                return None
            raise ToolError(refusal.sentence) from None

    async def _keep(self, path: str, text: str, *, after: int) -> bool:
        """Store the next version of a file; return whether ``after`` was the current version."""
        size = len(text.encode(errors="surrogatepass"))
        if size > MOST_BYTES:
            raise ToolError(
                f"The file {ROOT}/{path} would have {size:,} bytes, and may have {MOST_BYTES:,}. "
                "Please split it into several files."
            )
        try:
            await self._memories.ask(
                StoreMemory,
                namespace=self._memories.namespace,
                key=key_of(path),
                compress=False,  # so that a list shows the size of the text
                expected_version=after,
                **({"content": text} if text else {"value": ""}),
            )
        except Refusal as refusal:
            if refusal.code == "VERSION_CONFLICT":
                return False
            raise ToolError(refusal.sentence) from None
        return True

    async def _forget(self, path: str, version: int | None = None) -> bool:
        """Forget a file; with ``version``, only if it is current. Return whether it was forgotten."""
        given = {} if version is None else {"expected_version": version}
        try:
            gone = await self._memories.ask(
                ForgetMemory, namespace=self._memories.namespace, key=key_of(path), **given
            )
        except Refusal as refusal:
            if refusal.code in {"MEMORY_NOT_FOUND", "VERSION_CONFLICT"}:
                return False
            raise ToolError(refusal.sentence) from None
        return gone.forgotten > 0

    # -- directories ---------------------------------------------------------

    async def _below(self, directory: str) -> dict[str, int]:
        """Return the files below a directory with their sizes in bytes."""
        prefix = {"key_prefix": key_of(directory + "/")} if directory else {}
        if len(prefix.get("key_prefix", "")) >= MOST_KEY:
            return {}
        try:
            return {
                path: view.size_bytes if view.value is msgspec.UNSET else len(_text(view).encode())
                async for view in self._memories.listed(**prefix)
                if (path := path_of(view.key)) is not None
            }
        except Refusal as refusal:
            raise ToolError(refusal.sentence) from None

    async def _check_parents(self, path: str) -> None:
        for parent in parents_of(path):
            if await self._find(parent) is not None:
                raise ToolError(f"The path {ROOT}/{parent} is a file and not a directory.")

    async def _forget_below(self, path: str) -> bool:
        """Forget all files of a directory; return whether there were any."""
        prefix = key_of(path + "/")
        return len(prefix) < MOST_KEY and await call_whole(self._database, self._forget_all, prefix)

    async def _forget_all(self, prefix: str | None = None) -> bool:
        """Forget all files below a prefix, 1,000 in a commit; return whether there were any."""
        namespace = self._memories.namespace
        filters = MemoryFilters(namespace=namespace, superseded=True, key_prefix=prefix)
        remaining, there = True, False
        while remaining:
            try:
                gone = await self._memories.ask(ForgetMemory, filters=filters, confirm=True)
            except Refusal as refusal:
                raise ToolError(refusal.sentence) from None
            there = there or gone.forgotten > 0
            remaining = gone.remaining > 0
        return there


_twin = attrgetter("_tool")


class GreenroomMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool for the blocking ``Anthropic`` client, in a thread without an event loop.

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
        self._tool = AsyncGreenroomMemoryTool(database, principal, cache_control=cache_control)

    view = blocking(AsyncGreenroomMemoryTool.view, _twin)
    create = blocking(AsyncGreenroomMemoryTool.create, _twin)
    str_replace = blocking(AsyncGreenroomMemoryTool.str_replace, _twin)
    insert = blocking(AsyncGreenroomMemoryTool.insert, _twin)
    delete = blocking(AsyncGreenroomMemoryTool.delete, _twin)
    rename = blocking(AsyncGreenroomMemoryTool.rename, _twin)
    clear_all_memory = blocking(AsyncGreenroomMemoryTool.clear_all_memory, _twin)


def _text(view: MemoryView) -> str:
    """Return a file's text; an empty text is stored as a value."""
    if view.value is msgspec.UNSET:
        return view.content or ""
    value = msgspec.json.decode(view.value)
    return value if isinstance(value, str) else view.text


def _argument(command: Any, name: str) -> str:
    text = getattr(command, name, None)
    if not isinstance(text, str):
        raise ToolError(f"Invalid `{name}` parameter: it should be a text.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"Invalid `{name}` parameter: character {error.start} is half of a surrogate pair."
        ) from None
    return text


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")
