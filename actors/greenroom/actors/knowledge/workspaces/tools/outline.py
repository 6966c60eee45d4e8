"""The tool `outline`: list symbols of files within a token budget."""

from __future__ import annotations

import os
from typing import Final

from msgspec import UNSET

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.syntax import Source, outlines
from greenroom.actors.content.syntax.plain_text import first_lines
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.paging import BYTES_PER_TOKEN
from greenroom.actors.core.replies.sources import is_collecting, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_symbols
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.storage.facts import unpack_defined
from greenroom.actors.knowledge.corpora.storage.readers import explain_unread
from greenroom.actors.knowledge.workspaces.files import list_versions, read_part
from greenroom.actors.knowledge.workspaces.places import Place
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import Shown, add_masked
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    Workspace,
    open_place,
    read_progress,
)

_MOST_TEXT: Final = 1 << 20


@operation(
    "outline",
    scope="code:read",
    tool=ToolText(
        title="Outline code",
        description="See what is in a file or a folder of the workspace without reading it: its "
        "symbols with their lines and signatures.",
        weight=1,
    ),
)
class Outline(CodeProcedure[code_symbols.OutlineMade], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the symbols of a file or folder of the workspace, most used first."""

    path: code_symbols.OutlinePath = ""
    max_tokens: code_symbols.OutlineTokens = 2_000

    async def run(self, client: CodeClient) -> code_symbols.OutlineMade:
        """Outline the files that are indexed so far, in a thread."""
        place, workspace = await open_place(client, "path", self.path)
        request = code_symbols.ReadFacts(corpus=workspace.row.full_name, path=place.name)
        read = await client.ask(corpus_address(workspace.row), request)
        if place.name and not read.files:
            known = code_symbols.ReadSymbols(corpus=workspace.row.full_name, path=place.name)
            found = await client.ask(corpus_address(workspace.row), known)
            why = "" if found is None else explain_unread(found.reader)
            if why:
                return await self._outline_text(client, workspace, place, why)
            if not await read_in_thread(os.path.lexists, place.path):
                raise auth_errors.invalid("path", f"path: {self.path!r} is not there, in {place.root}")
            if found is not None:
                raise auth_errors.invalid("path", f"path: {self.path!r} has no symbols; read_file it")
            why = f": {workspace.unread}" if workspace.unread else " (yet)"
            raise auth_errors.invalid("path", f"path: no symbols of {self.path!r} are known{why}")
        made, shown = await read_in_thread(_make_outline, read.files, self.max_tokens)
        is_file = [each.path for each in read.files] == [place.name]
        if is_collecting() and is_file:
            for version, size in await read_in_thread(list_versions, place.root, [place.name]):
                note_whole(version, size)
        progress = await read_progress(client, workspace)
        reply = code_symbols.OutlineMade(
            path=place.name if is_file else UNSET,
            outline=made.text,
            shown=made.shown,
            left_out=made.left_out,
            is_cut=read.following is not None,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
        )
        return await add_masked(client, workspace, reply, shown)

    async def _outline_text(
        self, client: CodeClient, workspace: Workspace, place: Place, why: str
    ) -> code_symbols.OutlineMade:
        """Return the unindented lines of a file, in place of its symbols."""
        try:
            part = await read_part(place.path, 1, None, _MOST_TEXT)
        except (OSError, UnreadableFileError) as error:
            raise auth_errors.invalid("path", f"path: {self.path!r} is not read: {error}") from None
        room = self.max_tokens * BYTES_PER_TOKEN
        shown, left_out = await read_in_thread(first_lines, part.text, room)
        cut = f"its symbols are not known: {why}; these are its lines that are not indented"
        progress = await read_progress(client, workspace, cut)
        lines = [f"{place.name} ({part.lines} lines)", *(f"  {each.line} {each.text}" for each in shown)]
        reply = code_symbols.OutlineMade(
            path=place.name,
            outline="\n".join(lines),
            shown=0,
            left_out=left_out,
            is_cut=part.last < part.lines,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
        )
        marked = [Shown(place.name, [each.line], each.text) for each in shown]
        return await add_masked(client, workspace, reply, marked)


def _make_outline(files: list[code_symbols.FactsOfFile], tokens: int) -> tuple[outlines.Outline, list[Shown]]:
    """Make an outline, and describe the parts of it that may be masked."""
    sources = list(unpack_defined(files).values())
    made = outlines.outline(sources, tokens)
    if LEFT_OUT_BEGINS not in made.text:
        return made, []
    shown = [
        Shown(source.path, [1, _last_line(source)], source.summary, is_part=True)
        for source in sources
        if source.summary in made.text
    ]
    shown += (
        Shown(source.path, [each.first_line, each.last_line], text, is_part=True)
        for source in sources
        for each in source.symbols
        for text in (each.signature[: outlines.MAX_SIGNATURE], each.summary)
        if text in made.text
    )
    return made, shown


def _last_line(source: Source) -> int:
    return max((each.last_line for each in source.symbols), default=1)
