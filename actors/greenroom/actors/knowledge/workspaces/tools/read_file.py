"""The tool that reads files of the workspace, whole or in part, and not again what did not change."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.content.syntax import outlines
from greenroom.actors.content.syntax.plain_text import block_of
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.replies.sources import note_again, note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.storage.facts import source_of
from greenroom.actors.knowledge.corpora.storage.readers import why_unread
from greenroom.actors.knowledge.workspaces.places import Place, checked_file
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, begin, roots_of
from greenroom.actors.schemas.code import (
    ALines,
    Around,
    FilePath,
    FilePaths,
    FileRead,
    FilesRead,
    ReadFacts,
    ReadSymbols,
    SymbolName,
)
from greenroom.actors.workspace.files import FilePart, digest_at, read_part, version_of
from greenroom.runtime import Refusal

ROOM: Final = 40_000
"""Characters that one answer has of files."""
OUTLINE_TOKENS: Final = 2_000
"""How long the outline of a file may be."""
_MOST_TEXT: Final = 1 << 20
"""Characters in which a symbol is looked for by its name alone."""
_NAMED: Final = 30
_TOO_LONG: Final = "it is too long for one answer; "
MAX_REMEMBERED: Final = 1_000
"""Parts of files of which is remembered what a client read."""


class ReadFile(CodeOrchestration[FilesRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read files of the workspace as they are now.

    Attributes:
        overview: Whether the symbols of a file come instead of its text, however long it is; no parameter.
    """

    writes: ClassVar[bool] = False

    path: FilePath | None = None
    paths: FilePaths = msgspec.field(default_factory=list)
    lines: ALines | None = None
    symbol: SymbolName | None = None
    around: Around = 0
    again: Annotated[bool, Meta(description="also what you have read and did not change")] = False
    outline: Annotated[bool, Meta(description="of a file that is too long its symbols instead")] = False
    overview: Annotated[bool, Meta(extra_json_schema=UNLISTED)] = False

    async def carry_out(self, client: ClientSessionState) -> FilesRead:
        """Read them in a thread, one after the other.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: the one file that is meant is not read.
        """
        if (self.path is None) != bool(self.paths):
            raise auth_errors.invalid("path", "path: give path or paths, one of them")
        if self.symbol is not None and self.lines is not None:
            raise auth_errors.invalid("symbol", "symbol: give symbol or lines, one of them")
        roots = await roots_of(client)
        if self.path is not None:
            return FilesRead(files=[await self._file(client, "path", self.path, roots, ROOM)])
        files: list[FileRead] = []
        room = ROOM
        for at, path in enumerate(self.paths):
            try:
                read = await self._file(client, "paths", path, roots, room // (len(self.paths) - at))
                room -= len(read.text or "")
            except Refusal as refusal:
                read = FileRead(path=path, error=refusal.sentence)
            files.append(read)
        return FilesRead(files=files)

    async def _file(
        self, client: ClientSessionState, field: str, named: str, roots: list[str], room: int
    ) -> FileRead:
        reach = client.reach
        place = await read_in_thread(checked_file, field, named, roots, reach.closed, reach.secrets)
        if client.workspaces is not None and client.principal.seen_by is None:
            await begin(client, place.root)
        first, last, about = await self._wanted(client, field, place)
        try:
            read = partial(read_part, is_allowed=place.is_allowed)
            part = await read_in_thread(read, place.path, first, last, room)
        except UnreadableFileError as error:
            raise auth_errors.invalid(field, f"{field}: {named!r} is not read: {error}") from None
        except FileNotFoundError:
            raise auth_errors.invalid(field, f"{field}: {named!r} is not there") from None
        except OSError as error:
            raise auth_errors.invalid(field, f"{field}: {named!r} is not read: {error.strerror}") from None
        known = client.files_read
        asked = (place.path, first, last)
        is_known = known.pop(asked, None) == part.digest
        self._note(place, part, is_known=is_known)
        known[asked] = part.digest
        if len(known) > MAX_REMEMBERED:
            del known[next(iter(known))]
        is_long = part.last < part.lines
        is_outlined = self.overview or (self.outline and is_long)
        if is_outlined and self.lines is None and self.symbol is None:
            symbols = await self._outlined(client, place)
            if symbols:
                return FileRead(
                    path=place.name,
                    outline=symbols,
                    total_lines=part.lines,
                    bytes=part.bytes,
                    digest=part.digest,
                    last_modified=to_datetime(part.modified_at),
                    note=f"{_TOO_LONG if is_long else ''}symbol or lines reads a part",
                )
        return self._answer(place, part, last, about, is_known=is_known and not self.again)

    def _note(self, place: Place, part: FilePart, *, is_known: bool) -> None:
        """Note what would have been read otherwise: the file, and again what was read before."""
        if is_known:
            note_again(len(part.text.encode()))
        else:
            note_whole(version_of(place.path, part.bytes, part.modified_at), part.bytes)
        if not self.again:
            note_cache("client", is_hit=is_known)

    async def _outlined(self, client: ClientSessionState, place: Place) -> str:
        """Return the symbols of a file in lines, as it was indexed; empty where they are not known."""
        row = (await begin(client, place.root)).row
        request = ReadFacts(corpus=row.full_name, paths=[place.name])
        found = await client.ask(corpus_address(row), request)
        sources = [source for each in found.files if (source := source_of(each)) is not None]
        if not any(source.symbols for source in sources):
            return ""
        return (await read_in_thread(outlines.outline, sources, OUTLINE_TOKENS)).text

    async def _wanted(
        self, client: ClientSessionState, field: str, place: Place
    ) -> tuple[int, int | None, str]:
        """Return the first and the last line that are wanted, and what is to be said of them."""
        if self.symbol is not None:
            first_line, last_line, about = await self._of_symbol(client, field, place, self.symbol)
            return max(1, first_line - self.around), last_line + self.around, about
        if self.lines is None:
            return 1, None, ""
        first, dash, last = self.lines.partition("-")
        if last and int(last) < int(first):
            raise auth_errors.invalid("lines", f"lines: {self.lines} end before they begin")
        end = int(last or first) + self.around if last or not dash else None
        return max(1, int(first) - self.around), end, ""

    async def _of_symbol(
        self, client: ClientSessionState, field: str, place: Place, symbol: str
    ) -> tuple[int, int, str]:
        """Return the lines of a symbol, as the file was indexed; of several the outermost one's.

        Where no symbol of the file is known these are the lines that its text suggests, which is said.
        """
        row = (await begin(client, place.root)).row
        request = ReadSymbols(corpus=row.full_name, path=place.name)
        read = await client.ask(corpus_address(row), request)
        if read is None:
            sentence = f"{field}: the symbols of {place.name!r} are not known (yet); give lines"
            raise auth_errors.invalid("symbol", sentence)
        if not read.symbols:
            return await self._in_text(place, symbol, why_unread(read.reader))
        if read.digest != await read_in_thread(digest_at, place.path):
            sentence = f"{field}: {place.name!r} was changed since it was indexed; ask again, or give lines"
            raise auth_errors.invalid("symbol", sentence)
        found = [each for each in read.symbols if symbol in {each.symbol, each.symbol.rpartition(".")[2]}]
        if not found:
            names = ", ".join(each.symbol for each in read.symbols[:_NAMED])
            raise auth_errors.invalid("symbol", f"symbol: {place.name!r} has no {symbol!r}; it has {names}")
        first, last = min(found, key=lambda each: each.symbol.count(".")).lines
        return first, last, ""

    async def _in_text(self, place: Place, symbol: str, why: str) -> tuple[int, int, str]:
        said = f"no symbol of {place.name!r} is known{f': {why}' if why else ''}"
        try:
            read = partial(read_part, is_allowed=place.is_allowed)
            text = (await read_in_thread(read, place.path, 1, None, _MOST_TEXT)).text
            found = await read_in_thread(block_of, symbol, text)
        except (OSError, UnreadableFileError):
            found = None
        if found is None:
            raise auth_errors.invalid("symbol", f"symbol: {said}, and no line has {symbol!r}; give lines")
        return (
            *found,
            f"{said}; the first of these lines has {symbol!r}, and they go on as far as they are indented",
        )

    def _answer(
        self, place: Place, part: FilePart, last: int | None, about: str, *, is_known: bool
    ) -> FileRead:
        if is_known:
            return FileRead(path=place.name, unchanged=True, note="as you read it; again: true repeats it")
        read = FileRead(
            path=place.name,
            text=part.text,
            lines=[part.first, part.last],
            total_lines=part.lines,
            bytes=part.bytes,
            digest=part.digest,
            last_modified=to_datetime(part.modified_at),
        )
        if part.last < min(part.lines, last or part.lines):
            more = f"{part.last + 1}-{last or ''}"
            about = f'there is no room for more; lines: "{more}" goes on{f"; {about}" if about else ""}'
        return msgspec.structs.replace(read, note=about) if about else read
