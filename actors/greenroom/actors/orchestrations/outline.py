"""The tool that outlines a file or a folder of the workspace: its symbols, within a budget of tokens."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import UNSET

from greenroom.actors.content.syntax import outlines
from greenroom.actors.content.syntax.plain_text import first_lines
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.replies.paging import BYTES_PER_TOKEN
from greenroom.actors.core.replies.sources import are_wanted, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.storage.facts import source_of
from greenroom.actors.knowledge.corpora.storage.readers import why_unread
from greenroom.actors.knowledge.workspaces.places import Place, checked_file
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import (
    CodeOrchestration,
    Workspace,
    opened,
    progress_of,
    roots_of,
)
from greenroom.actors.schemas import code as schemas
from greenroom.actors.workspace.files import read_part, versions_at

_MOST_TEXT: Final = 1 << 20


class Outline(CodeOrchestration[schemas.OutlineMade], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the symbols of a file or a folder of the workspace, those first that matter to others."""

    writes: ClassVar[bool] = False

    path: schemas.OutlinePath = ""
    max_tokens: schemas.OutlineTokens = 2_000

    async def carry_out(self, client: ClientSessionState) -> schemas.OutlineMade:
        """Outline what is indexed of it so far, in a thread.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, the path is in
                none, or nothing of it is known.
        """
        roots = await roots_of(client)
        place = await read_in_thread(checked_file, "path", self.path, roots, client.reach.closed)
        workspace = await opened(client, place.root)
        request = schemas.ReadFacts(corpus=workspace.row.full_name, path=place.name)
        read = await client.ask(corpus_address(workspace.row), request)
        if place.name and not read.files:
            known = schemas.ReadSymbols(corpus=workspace.row.full_name, path=place.name)
            found = await client.ask(corpus_address(workspace.row), known)
            why = "" if found is None else why_unread(found.reader)
            if why:
                return await self._of_text(client, workspace, place, why)
            why = why or workspace.unread
            sentence = f"path: no symbols of {self.path!r} are known{f': {why}' if why else ' (yet)'}"
            raise auth_errors.invalid("path", f"{sentence}; read_file it")
        made = await read_in_thread(_outlined, read.files, self.max_tokens)
        is_file = [each.path for each in read.files] == [place.name]
        if are_wanted() and is_file:
            for version, size in await read_in_thread(versions_at, place.root, [place.name]):
                note_whole(version, size)
        progress = await progress_of(client, workspace)
        return schemas.OutlineMade(
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

    async def _of_text(
        self, client: ClientSessionState, workspace: Workspace, place: Place, why: str
    ) -> schemas.OutlineMade:
        """Return the lines of a file that are not indented, in the place of its symbols."""
        try:
            part = await read_in_thread(read_part, place.path, 1, None, _MOST_TEXT)
        except (OSError, UnreadableFileError) as error:
            raise auth_errors.invalid("path", f"path: {self.path!r} is not read: {error}") from None
        room = self.max_tokens * BYTES_PER_TOKEN
        shown, left_out = await read_in_thread(first_lines, part.text, room)
        cut = f"its symbols are not known: {why}; these are its lines that are not indented"
        progress = await progress_of(client, workspace, cut)
        lines = [f"{place.name} ({part.lines} lines)", *(f"  {each.line} {each.text}" for each in shown)]
        return schemas.OutlineMade(
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


def _outlined(files: list[schemas.FactsOfFile], tokens: int) -> outlines.Outline:
    sources = [source for each in files if (source := source_of(each)) is not None]
    return outlines.outline(sources, tokens)
