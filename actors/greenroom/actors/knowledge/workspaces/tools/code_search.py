"""The tool that finds code of the workspace by patterns of its syntax, texts and expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.ingest.parser_process import Job
from greenroom.actors.ingest.parsers import open_parsers
from greenroom.actors.knowledge.corpora.requests.code_filters import wanted
from greenroom.actors.knowledge.corpora.storage.facts import source_of
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.workspaces.places import checked_file
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import facts_of, paths_of
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.in_text import lines_in_text
from greenroom.actors.orchestrations.workspace_of import (
    CodeOrchestration,
    Workspace,
    opened,
    progress_of,
    roots_of,
)
from greenroom.actors.schemas import code_patterns as schemas
from greenroom.actors.schemas.code import CodeFilters, FactsOfFile, Folder
from greenroom.actors.syntax import Found, Pattern, PatternError, found_in, parse_pattern

SECONDS: Final = 10.0
"""After so long a search of the files themselves is cut."""
FILE_SECONDS: Final = 2.0
"""How much time on the processor one file may take."""
_CONTAINERS: Final = {"pdf", "docx"}
_MORE: Final = "there are more matches than limit"
_LATE: Final = f"the search was cut after {SECONDS:g} s; narrow it by scope or file_types"
_LARGE: Final = "the workspace is too large to be looked at as a whole; what lies in some files is missing"


class Matched(msgspec.Struct):
    """What was found so far; ``partial`` says why that is not all, ``trouble`` why a file is missing."""

    matches: list[schemas.CodeMatch] = msgspec.field(default_factory=list)
    files: int = 0
    unread: int = 0
    partial: str = ""
    trouble: str = ""

    def take(self, path: str, found: list[Found], limit: int) -> bool:
        """Add the matches of a file; return whether there is room for more."""
        self.files += 1
        self.matches += (_match(path, each) for each in found)
        if len(self.matches) > limit:
            del self.matches[limit:]
            self.partial = _MORE
        return not self.partial


class CodeSearch(
    CodeOrchestration[schemas.CodeMatched], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find places in the code of the workspace by a pattern."""

    writes: ClassVar[bool] = False

    pattern: schemas.PatternText
    scope: Folder = ""
    file_types: schemas.FileTypes = msgspec.field(default_factory=list)
    limit: schemas.MatchLimit = 50

    async def carry_out(self, client: ClientSessionState) -> schemas.CodeMatched:
        """Look for names in what is indexed so far, for everything else in those files as they are now.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: there is no workspace, the folder is in
                none, or the pattern is none.
        """
        try:
            pattern = parse_pattern(self.pattern)
        except PatternError as error:
            raise auth_errors.invalid("pattern", f"pattern: {error}") from None
        roots = await roots_of(client)
        place = await read_in_thread(checked_file, "scope", self.scope, roots, client.reach.closed)
        workspace = await opened(client, place.root)
        is_wanted = wanted(place.name, CodeFilters(file_types=self.file_types)) or (lambda _: True)
        is_by_index = pattern.what in {"symbols", "uses", "imports"}
        if is_by_index:
            facts = await facts_of(client, workspace)
            files = [each for each in facts.files if is_wanted(each.path)]
            found = await read_in_thread(_named, pattern, files, self.limit)
            found.partial = found.partial or (_LARGE if facts.is_cut else "")
        else:
            found = await self._searched(client, workspace, pattern, is_wanted)
        unread = workspace.unread if is_by_index else ""
        is_looked_for = unread and not found.matches
        in_text = (
            await lines_in_text(client, workspace, pattern.text, is_wanted=is_wanted) if is_looked_for else []
        )
        cut = "; ".join(filter(None, (found.partial, unread)))
        progress = await progress_of(client, workspace, cut)
        return schemas.CodeMatched(
            matches=found.matches,
            kinds=sorted(pattern.kinds) if pattern.is_bare else UNSET,
            files_searched=found.files,
            unread=found.unread,
            in_text=in_text or UNSET,
            workspace=place.root,
            freshness=progress.freshness,
            partial=progress.partial,
            partial_reason=progress.reason,
        )

    async def _searched(
        self,
        client: ClientSessionState,
        workspace: Workspace,
        pattern: Pattern,
        is_wanted: Callable[[str], bool],
    ) -> Matched:
        """Search files in a process, which may take so long for each; what ends it is left out."""
        matched = Matched()
        paths = [path for path in await paths_of(client, workspace) if is_wanted(path)]
        with trio.move_on_after(SECONDS) as time:
            async with open_parsers(FILE_SECONDS) as parsers:
                for path in paths:
                    try:
                        kind, data, at = await read_in_thread(read_document, f"{workspace.row.root}/{path}")
                    except (OSError, UnreadableFileError):
                        matched.unread += 1
                        continue
                    if kind in _CONTAINERS:
                        continue
                    job = Job(path, kind, at, data, pattern=pattern, most=self.limit + 1)
                    parsed = await parsers.search(job)
                    if parsed.refusal:
                        raise auth_errors.invalid("pattern", f"pattern: {parsed.refusal}")
                    if parsed.found is None:
                        matched.unread += 1
                        matched.trouble = matched.trouble or parsed.failure
                    elif not matched.take(path, parsed.found, self.limit):
                        return matched
        if time.cancelled_caught:
            matched.partial = _LATE
        elif matched.trouble:
            matched.partial = f"some files were not looked through: {matched.trouble}"
        return matched


def _named(pattern: Pattern, files: list[FactsOfFile], limit: int) -> Matched:
    matched = Matched()
    for file in sorted(files, key=lambda each: each.path):
        source = source_of(file)
        found = [] if source is None else sorted(found_in(pattern, source), key=lambda each: each.line)
        if not matched.take(file.path, found, limit):
            break
    return matched


def _match(path: str, found: Found) -> schemas.CodeMatch:
    return schemas.CodeMatch(
        file_path=path,
        lines=[found.line, found.last_line],
        name=UNSET if found.name == found.symbol.rpartition(".")[2] else found.name,
        symbol=found.symbol or UNSET,
        text=found.text,
    )
