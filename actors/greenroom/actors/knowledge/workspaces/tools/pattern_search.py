"""The tool `code_search`: find code by patterns of syntax, texts and expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.content.documents.kinds import CONTAINERS
from greenroom.actors.content.syntax import (
    Found,
    MissingGrammarError,
    Pattern,
    PatternError,
    make_sieve,
    match_names,
    parse_pattern,
)
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_symbols
from greenroom.actors.knowledge.corpora.requests.code_filters import make_filter
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFilters, Folder
from greenroom.actors.knowledge.corpora.requests.code_symbols import FactsOfFile
from greenroom.actors.knowledge.corpora.requests.corpus_requests import DocumentListed
from greenroom.actors.knowledge.corpora.storage.facts import unpack_sources
from greenroom.actors.knowledge.ingest.files.file_content import read_document, read_unchanged
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job, Parsed
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers
from greenroom.actors.knowledge.workspaces.searchers import open_searchers
from greenroom.actors.knowledge.workspaces.tools.names_in_text import find_in_text
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import (
    Shown,
    add_masked,
    describe_lines,
    list_files,
    read_facts,
)
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    Workspace,
    open_place,
    read_progress,
)

SECONDS: Final = 10.0
"""A search of files is cut after this time."""
FILE_SECONDS: Final = 2.0
"""Limit of processor time for one file."""
FIRST_FILES: Final = 8
"""The first batch has so few files, since a frequent pattern is found often enough in these."""
BATCH_FILES: Final = 256
BATCH_BYTES: Final = 4 << 20
"""At most so many files or bytes are tested at once; one larger file is a batch of its own."""
_MORE: Final = "there are more matches than limit"
_LATE: Final = f"the search was cut after {SECONDS:g} s; narrow it by scope or file_types"
_LARGE: Final = "the workspace is too large to be looked at as a whole; what lies in some files is missing"


class Matches(msgspec.Struct):
    """Matches so far; ``partial`` says why there may be more, ``trouble`` why files are missing."""

    matches: list[code_symbols.CodeMatch] = msgspec.field(default_factory=list)
    files: int = 0
    unread: int = 0
    partial: str = ""
    trouble: str = ""

    def take(self, path: str, found: list[Found], limit: int) -> bool:
        """Add the matches of a file; return whether there is room for more."""
        self.files += 1
        self.matches += (_make_match(path, each) for each in found)
        if len(self.matches) > limit:
            del self.matches[limit:]
            self.partial = _MORE
        return not self.partial


@operation(
    "code_search",
    scope="code:read",
    tool=ToolText(
        title="Search code by syntax",
        description="Find every place in the code of the workspace that a pattern means: "
        "definitions, calls, imports, texts, lines. partial says when it was cut.",
        weight=1,
    ),
)
class CodeSearch(
    CodeProcedure[code_symbols.CodeMatched], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find places in the code of the workspace by a pattern."""

    pattern: code_symbols.PatternText
    scope: Folder = ""
    file_types: code_symbols.FileTypes = msgspec.field(default_factory=list)
    limit: code_symbols.MatchLimit = 50

    async def run(self, client: CodeClient) -> code_symbols.CodeMatched:
        """Search the index for names; for other patterns, search the indexed files themselves."""
        try:
            pattern = parse_pattern(self.pattern)
        except PatternError as error:
            raise auth_errors.invalid("pattern", f"pattern: {error}") from None
        place, workspace = await open_place(client, "scope", self.scope)
        is_wanted = make_filter(place.name, CodeFilters(file_types=self.file_types)) or (lambda _: True)
        is_by_index = pattern.what in {"symbols", "uses", "imports"}
        if is_by_index:
            facts = await read_facts(client, workspace)
            files = [each for each in facts.files if is_wanted(each.path)]
            found = await read_in_thread(_search_index, pattern, files, self.limit)
            found.partial = found.partial or (_LARGE if facts.is_cut else "")
        else:
            found = await self._search_files(client, workspace, pattern, is_wanted)
        unread = workspace.unread if is_by_index else ""
        is_looked_for = unread and not found.matches
        in_text = (
            await find_in_text(client, workspace, pattern.text, is_wanted=is_wanted) if is_looked_for else []
        )
        cut = "; ".join(filter(None, (found.partial, unread)))
        progress = await read_progress(client, workspace, cut)
        reply = code_symbols.CodeMatched(
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
        shown = [
            Shown(each.file_path, each.lines if is_by_index else each.lines[:1], each.text, is_by_index)
            for each in found.matches
        ]
        return await add_masked(client, workspace, reply, shown + describe_lines(in_text))

    async def _search_files(
        self,
        client: CodeClient,
        workspace: Workspace,
        pattern: Pattern,
        is_wanted: Callable[[str], bool],
    ) -> Matches:
        """Search files in a parser process; leave out a file that takes too long.

        Most files are tested quickly, many at a time, and only those that may match are searched.
        """
        matched = Matches()
        root = workspace.row.root or ""
        files = await list_files(client, workspace)
        with trio.move_on_after(SECONDS) as time:
            async with open_searchers(client.workspaces, FILE_SECONDS) as parsers:
                for batch in _batches(each for each in files if is_wanted(each.path)):
                    doubtful = await _find_candidates(root, pattern, batch)
                    for at, file in enumerate(batch):
                        if at not in doubtful:
                            matched.files += 1
                        elif not await self._search_file(parsers, root, pattern, file.path, matched):
                            return matched
        if time.cancelled_caught:
            matched.partial = _LATE
        elif matched.trouble:
            matched.partial = f"some files were not looked through: {matched.trouble}"
        return matched

    async def _search_file(
        self, parsers: Parsers, root: str, pattern: Pattern, path: str, matched: Matches
    ) -> bool:
        """Search one file; return whether there is room for more."""
        try:
            kind, data, modified_at = await read_in_thread(read_document, f"{root}/{path}")
        except (OSError, UnreadableFileError):
            matched.unread += 1
            return True
        if kind in CONTAINERS:
            return True
        job = Job(path, kind, modified_at, data, pattern=pattern, most=self.limit + 1)
        parsed = await parsers.search(job)
        _check(parsed)
        if parsed.found is None:
            matched.unread += 1
            matched.trouble = matched.trouble or parsed.failure
            return True
        return matched.take(path, parsed.found, self.limit)


def _batches(files: Iterable[DocumentListed]) -> Iterator[list[DocumentListed]]:
    """Yield neighbouring files in lists of bounded size, each longer than the one before."""
    batch: list[DocumentListed] = []
    size, most = 0, FIRST_FILES
    for each in files:
        if batch and (len(batch) == most or size + each.bytes > BATCH_BYTES):
            yield batch
            batch, size, most = [], 0, min(2 * most, BATCH_FILES)
        batch.append(each)
        size += each.bytes
    if batch:
        yield batch


async def _find_candidates(root: str, pattern: Pattern, batch: Sequence[DocumentListed]) -> Collection[int]:
    """Return the positions of the files that may match."""
    try:
        may_match = await read_in_thread(make_sieve, pattern)
    except (PatternError, MissingGrammarError) as error:
        raise auth_errors.invalid("pattern", f"pattern: {error}") from None
    if may_match is None:
        return range(len(batch))
    found: set[int] = set()

    async def test(first: int, last: int) -> None:
        contents = await read_in_thread(read_unchanged, root, batch[first:last])
        found.update(first + at for at in await read_in_thread(_test_contents, may_match, contents))

    async with trio.open_nursery() as nursery:  # both read and match beside each other
        nursery.start_soon(test, 0, len(batch) // 2)
        nursery.start_soon(test, len(batch) // 2, len(batch))
    return found


def _test_contents(may_match: Callable[[bytes], bool], contents: Sequence[bytes | None]) -> list[int]:
    return [at for at, data in enumerate(contents) if not data or may_match(data)]


def _check(parsed: Parsed) -> None:
    if parsed.refusal:
        raise auth_errors.invalid("pattern", f"pattern: {parsed.refusal}")


def _search_index(pattern: Pattern, files: list[FactsOfFile], limit: int) -> Matches:
    matched = Matches()
    for file in sorted(files, key=lambda each: each.path):
        sources = unpack_sources([file]).values()
        found = [each for source in sources for each in match_names(pattern, source)]
        if not matched.take(file.path, sorted(found, key=lambda each: each.line), limit):
            break
    return matched


def _make_match(path: str, found: Found) -> code_symbols.CodeMatch:
    return code_symbols.CodeMatch(
        file_path=path,
        lines=[found.line, found.last_line],
        name=UNSET if found.name == found.symbol.rpartition(".")[2] else found.name,
        symbol=found.symbol or UNSET,
        text=found.text,
    )
