"""Read a workspace's index: files, syntax facts, masked lines, and completions of names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from posixpath import basename
from typing import Final, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.syntax import MANIFESTS, Places
from greenroom.actors.core.auth.scopes import RESOURCES
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import get_or_make, read_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.handlers.completion import (
    Begun,
    CompleteNames,
    NameCompletion,
    NameKind,
)
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_requests import NOT_TO_BE_WRITTEN, CodeReply
from greenroom.actors.knowledge.corpora.requests.code_symbols import FactsOfFile, LineOfText, ReadFacts
from greenroom.actors.knowledge.corpora.requests.corpus_requests import DocumentListed, ListDocuments
from greenroom.actors.knowledge.corpora.storage.records import MOST_MASKED
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    Workspace,
    find_roots,
    start_index,
)

R = TypeVar("R", bound=CodeReply)

MAX_FACTS: Final = 16 << 20
"""Maximum bytes of packed facts in one call; unpacked in memory, they take a multiple of this."""
_MAX_MANIFEST: Final = 1 << 20
_PAGE: Final = 1_000
_MAX_LISTED: Final = 100_000
"""The files of the workspaces used last are kept, together about so many."""
_Stamp = tuple[int, int, int] | None


class WorkspaceFacts(NamedTuple):
    """The syntax facts of a workspace's files; if ``is_cut``, there are more."""

    files: list[FactsOfFile]
    is_cut: bool


async def read_facts(
    client: CodeClient, workspace: Workspace, *, holding: str = "", paths: Sequence[str] = ()
) -> WorkspaceFacts:
    """Return syntax facts of indexed files: of all, of ``paths``, or of files with ``holding``."""
    files: list[FactsOfFile] = []
    room = MAX_FACTS
    start: int | None = 0
    while start is not None and room > 0:
        request = ReadFacts(corpus=workspace.row.full_name, start=start, holding=holding, paths=list(paths))
        read = await client.ask(corpus_address(workspace.row), request)
        files += read.files
        room -= sum(len(each.packed) for each in read.files)
        start = read.following
    return WorkspaceFacts(files, start is not None)


class _Listing(msgspec.Struct):
    """The files of one version of an index, and their places with those manifests."""

    version: str
    documents: list[DocumentListed]
    manifests: list[str]
    places: tuple[list[_Stamp], Places] | None = None


_listings: trio.lowlevel.RunVar[dict[str, _Listing]] = trio.lowlevel.RunVar("files of workspaces")


async def list_places(client: CodeClient, workspace: Workspace) -> Places:
    """Return the files indexed so far, in a form that resolves imports."""
    listing = await _list_files(client, workspace)
    return await read_in_thread(_find_places, workspace.row.root or "", listing)


async def list_files(client: CodeClient, workspace: Workspace) -> list[DocumentListed]:
    """Return all files indexed so far, sorted by path; do not change the list."""
    return (await _list_files(client, workspace)).documents


async def _list_files(client: CodeClient, workspace: Workspace) -> _Listing:
    """Return the files of a workspace; cache them until the index changes."""
    known = get_or_make(_listings, dict[str, _Listing])
    listing = known.pop(workspace.row.key, None)
    if listing is None or not workspace.version or listing.version != workspace.version:
        documents, is_whole = await _list_all(client, workspace)
        documents.sort(key=lambda each: each.path)
        manifests = [each.path for each in documents if basename(each.path) in MANIFESTS]
        listing = _Listing(workspace.version if is_whole else "", documents, manifests)
    known[workspace.row.key] = listing
    while len(known) > 1 and sum(len(each.documents) for each in known.values()) > _MAX_LISTED:
        del known[next(iter(known))]
    return listing


async def _list_all(client: CodeClient, workspace: Workspace) -> tuple[list[DocumentListed], bool]:
    """Return all files, and whether none of their records is damaged."""
    found: list[DocumentListed] = []
    is_whole = True
    after: str | None = None
    while True:
        request = ListDocuments(corpus=workspace.row.full_name, after=after, limit=_PAGE)
        page = await client.ask(corpus_address(workspace.row), request)
        found += page.documents
        is_whole = is_whole and page.damaged is UNSET
        if page.after is None:
            return found, is_whole
        after = page.after


def _find_places(root: str, listing: _Listing) -> Places:
    """Return the places of files; they are cached until a manifest changes."""
    stamps = [_stamp(f"{root}/{path}") for path in listing.manifests]
    if listing.places is None or listing.places[0] != stamps:
        paths = (each.path for each in listing.documents)
        listing.places = (stamps, Places(paths, _read_manifests(root, listing.manifests)))
    return listing.places[1]


def _stamp(path: str) -> _Stamp:
    """Return what changes with a file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read_manifests(root: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of the readable manifests, which define the meaning of imports."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            found[path] = read_bounded(f"{root}/{path}", _MAX_MANIFEST).decode(errors="replace")
        except (OSError, UnreadableFileError):
            continue
    return found


class Shown(NamedTuple):
    """A part of a file that a reply shows.

    If ``is_part``, the text is a part of these lines, such as a signature, and has their first marks.
    """

    path: str
    lines: Sequence[int]
    text: str
    is_part: bool = False


def describe_lines(lines: Iterable[LineOfText]) -> list[Shown]:
    """Describe single lines that a reply shows."""
    return [Shown(each.file_path, [each.line], each.text) for each in lines]


async def add_masked(client: CodeClient, workspace: Workspace, reply: R, shown: Iterable[Shown]) -> R:
    """Add the masked lines to a reply; if they are unknown, add all shown lines."""
    lines: dict[str, None] = {}
    known: dict[str, list[int]] = {}
    for each in shown:
        if LEFT_OUT_BEGINS not in each.text:
            continue
        first, last = each.lines[0], each.lines[-1]
        if first == last:
            marked = [first]
        else:
            if each.path not in known:
                request = ListDocuments(corpus=workspace.row.full_name, path=each.path)
                found = (await client.ask(corpus_address(workspace.row), request)).documents
                known[each.path] = found[0].masked if found else []
            all_known = known[each.path]
            marked = [line for line in all_known if first <= line <= last]
            if each.is_part:
                marked = marked[: each.text.count(LEFT_OUT_BEGINS)]
            if not marked or (len(all_known) == MOST_MASKED and not each.is_part and last > all_known[-1]):
                lines[f"{each.path}:{first}-{last}"] = None
        lines.update(dict.fromkeys(f"{each.path}:{line}" for line in marked))
    if not lines:
        return reply
    return msgspec.structs.replace(reply, masked=list(lines), note=NOT_TO_BE_WRITTEN)


class CompleteCode(CodeProcedure[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Complete a path or a symbol of the workspace; not a tool."""

    kind: NameKind
    value: Begun = ""
    path: Begun = ""

    async def run(self, client: CodeClient) -> NameCompletion:
        """Search the current index."""
        client.check_scope("this resource", RESOURCES["workspace"])
        row = (await start_index(client, (await find_roots(client))[0])).row
        request = CompleteNames(corpus=row.full_name, kind=self.kind, value=self.value, path=self.path)
        return await client.runtime.query(request, principal=client.principal)
