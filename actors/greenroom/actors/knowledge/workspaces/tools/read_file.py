"""The tool `read_file`: read files or parts of files, but no unchanged text twice."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.syntax import outlines
from greenroom.actors.content.syntax.plain_text import block_of
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.sources import note_again, note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_requests import (
    NOT_TO_BE_WRITTEN,
    ALines,
    Around,
    FilePath,
    FilePaths,
    FileRead,
    FilesRead,
)
from greenroom.actors.knowledge.corpora.requests.code_symbols import ReadFacts, ReadSymbols, SymbolName
from greenroom.actors.knowledge.corpora.storage.facts import unpack_sources
from greenroom.actors.knowledge.corpora.storage.readers import explain_unread
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET
from greenroom.actors.knowledge.workspaces.files import FilePart, compute_digest, read_part, version_key
from greenroom.actors.knowledge.workspaces.places import Place, explain_reading, resolve_file
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    find_roots,
    start_index,
)
from greenroom.runtime import Refusal

ROOM: Final = 40_000
"""Maximum characters of one reply."""
OUTLINE_TOKENS: Final = 2_000
"""Maximum tokens of an outline."""
_MOST_TEXT: Final = 1 << 20
"""At most this many characters of a file are searched for a symbol's name."""
_NAMED: Final = 30
_TOO_LONG: Final = "it is too long for one answer; "
MAX_REMEMBERED: Final = 1_000
"""For one client, at most this many parts of files are remembered as read."""


@operation(
    "read_file",
    scope="code:read",
    tool=ToolText(
        title="Read a file",
        description="Read a file of the workspace as it is now, whole or some lines, or several "
        "files. What you have read here and did not change is answered in one line.",
        weight=1,
    ),
)
class ReadFile(CodeProcedure[FilesRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read files of the workspace as they are now.

    ``overview`` returns the symbols of a file of any length instead of its text; it is not listed.
    """

    path: FilePath | None = None
    paths: FilePaths = msgspec.field(default_factory=list)
    lines: ALines | None = None
    symbol: SymbolName | None = None
    around: Around = 0
    again: Annotated[bool, Meta(description="also what you have read and did not change")] = False
    outline: Annotated[bool, Meta(description="of a file that is too long its symbols instead")] = False
    overview: Annotated[bool, Meta(extra_json_schema=UNLISTED)] = False

    async def run(self, client: CodeClient) -> FilesRead:
        """Read the files in a thread, one after the other."""
        if (self.path is None) != bool(self.paths):
            raise auth_errors.invalid("path", "path: give path or paths, one of them")
        if self.symbol is not None and self.lines is not None:
            raise auth_errors.invalid("symbol", "symbol: give symbol or lines, one of them")
        roots = await find_roots(client)
        if self.path is not None:
            return FilesRead(files=[await self._read(client, "path", self.path, roots, ROOM)])
        files: list[FileRead] = []
        room = ROOM
        for at, path in enumerate(self.paths):
            try:
                read = await self._read(client, "paths", path, roots, room // (len(self.paths) - at))
                room -= len(read.text or "")
            except Refusal as refusal:
                read = FileRead(path=path, error=refusal.sentence)
            files.append(read)
        return FilesRead(files=files)

    async def _read(
        self, client: CodeClient, field: str, named: str, roots: list[str], room: int
    ) -> FileRead:
        reach = client.files.reach
        place = await read_in_thread(resolve_file, field, named, roots, reach.closed, reach.secrets)
        if client.workspaces is not None and client.principal.seen_by is None:
            await start_index(client, place.root)
        first, last, about = await self._find_lines(client, field, place)
        try:
            part = await read_part(place.path, first, last, room, is_allowed=place.is_allowed)
        except UnreadableFileError as error:
            remedy = f", by what is in it; {explain_reading(place.name)}" if str(error) == SECRET else ""
            raise auth_errors.invalid(field, f"{field}: {named!r} is not read: {error}{remedy}") from None
        except FileNotFoundError:
            raise auth_errors.invalid(field, f"{field}: {named!r} is not there") from None
        except OSError as error:
            raise auth_errors.invalid(field, f"{field}: {named!r} is not read: {error.strerror}") from None
        known = client.files.read
        part_key = (place.path, first, last)
        is_known = known.pop(part_key, None) == part.digest
        self._record_savings(place, part, is_known=is_known)
        known[part_key] = part.digest
        if len(known) > MAX_REMEMBERED:
            del known[next(iter(known))]
        is_long = part.last < part.lines
        is_outlined = self.overview or (self.outline and is_long)
        if is_outlined and self.lines is None and self.symbol is None:
            symbols = await self._read_outline(client, place)
            if symbols:
                marked = f"{NOT_TO_BE_WRITTEN}; " if LEFT_OUT_BEGINS in symbols else ""
                return FileRead(
                    path=place.name,
                    outline=symbols,
                    total_lines=part.lines,
                    bytes=part.bytes,
                    digest=part.digest,
                    last_modified=to_datetime(part.modified_at),
                    note=f"{marked}{_TOO_LONG if is_long else ''}symbol or lines reads a part",
                )
        return self._make_reply(place, part, last, about, is_known=is_known and not self.again)

    def _record_savings(self, place: Place, part: FilePart, *, is_known: bool) -> None:
        """Record the bytes that the reply saves: the whole file, or reading it again."""
        if is_known:
            note_again(len(part.text.encode()))
        else:
            note_whole(version_key(place.path, part.bytes, part.modified_at), part.bytes)
        if not self.again:
            note_cache("client", is_hit=is_known)

    async def _read_outline(self, client: CodeClient, place: Place) -> str:
        row = (await start_index(client, place.root)).row
        request = ReadFacts(corpus=row.full_name, paths=[place.name])
        found = await client.ask(corpus_address(row), request)
        sources = list(unpack_sources(found.files).values())
        if not any(source.symbols for source in sources):
            return ""
        return (await read_in_thread(outlines.outline, sources, OUTLINE_TOKENS)).text

    async def _find_lines(self, client: CodeClient, field: str, place: Place) -> tuple[int, int | None, str]:
        """Return the first and the last wanted line, and a note about them."""
        if self.symbol is not None:
            first_line, last_line, about = await self._find_symbol(client, field, place, self.symbol)
            return max(1, first_line - self.around), last_line + self.around, about
        if self.lines is None:
            return 1, None, ""
        first, dash, last = self.lines.partition("-")
        if last and int(last) < int(first):
            raise auth_errors.invalid("lines", f"lines: {self.lines} end before they begin")
        end = int(last or first) + self.around if last or not dash else None
        return max(1, int(first) - self.around), end, ""

    async def _find_symbol(
        self, client: CodeClient, field: str, place: Place, symbol: str
    ) -> tuple[int, int, str]:
        """Return the lines of a symbol from the index, or else from the text.

        If several symbols match, the outermost one counts.
        """
        row = (await start_index(client, place.root)).row
        request = ReadSymbols(corpus=row.full_name, path=place.name)
        read = await client.ask(corpus_address(row), request)
        if read is None:
            sentence = f"{field}: the symbols of {place.name!r} are not known (yet); give lines"
            raise auth_errors.invalid("symbol", sentence)
        if not read.symbols:
            return await self._find_in_text(place, symbol, explain_unread(read.reader))
        if read.digest != await read_in_thread(compute_digest, place.path):
            sentence = f"{field}: {place.name!r} was changed since it was indexed; ask again, or give lines"
            raise auth_errors.invalid("symbol", sentence)
        found = [each for each in read.symbols if symbol in {each.symbol, each.symbol.rpartition(".")[2]}]
        if not found:
            names = ", ".join(each.symbol for each in read.symbols[:_NAMED])
            raise auth_errors.invalid("symbol", f"symbol: {place.name!r} has no {symbol!r}; it has {names}")
        first, last = min(found, key=lambda each: each.symbol.count(".")).lines
        return first, last, ""

    async def _find_in_text(self, place: Place, symbol: str, why: str) -> tuple[int, int, str]:
        unknown = f"no symbol of {place.name!r} is known{f': {why}' if why else ''}"
        try:
            part = await read_part(place.path, 1, None, _MOST_TEXT, is_allowed=place.is_allowed)
            found = await read_in_thread(block_of, symbol, part.text)
        except (OSError, UnreadableFileError):
            found = None
        if found is None:
            raise auth_errors.invalid("symbol", f"symbol: {unknown}, and no line has {symbol!r}; give lines")
        return (
            *found,
            f"{unknown}; the first of these lines has {symbol!r}, and they go on as far as they are indented",
        )

    def _make_reply(
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
        if part.masked:
            read = msgspec.structs.replace(read, masked=part.masked, digest=UNSET)
            about = "; ".join(filter(None, (NOT_TO_BE_WRITTEN, about)))
        return msgspec.structs.replace(read, note=about) if about else read
