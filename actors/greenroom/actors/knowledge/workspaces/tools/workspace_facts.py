"""What is indexed of a workspace as a whole: its files, and what the syntax of each says."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename
from typing import Final, NamedTuple

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import DocumentListed, ListDocuments
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import Workspace
from greenroom.actors.schemas.code import FactsOfFile, ReadFacts
from greenroom.actors.syntax import MANIFESTS, Places

MAX_FACTS: Final = 16 << 20
"""Packed facts that one call looks at, a multiple of it in memory one after the other."""
_MAX_MANIFEST: Final = 1 << 20
_PAGE: Final = 1_000


class WorkspaceFacts(NamedTuple):
    """What the syntax of a workspace's files says; ``is_cut`` where there is more than is looked at."""

    files: list[FactsOfFile]
    is_cut: bool


async def facts_of(
    client: ClientSessionState, workspace: Workspace, *, holding: str = "", paths: Sequence[str] = ()
) -> WorkspaceFacts:
    """Return what the syntax of the files says that are indexed so far.

    Args:
        client: Who asks.
        workspace: The workspace.
        holding: Only files whose facts have this text.
        paths: Only these files, if any are given.
    """
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


async def places_of(client: ClientSessionState, workspace: Workspace) -> Places:
    """Return the files that are indexed so far as imports name them."""
    paths = await paths_of(client, workspace)
    root = workspace.row.root or ""
    return await read_in_thread(lambda: Places(paths, _manifests(root, paths)))


async def paths_of(client: ClientSessionState, workspace: Workspace) -> list[str]:
    """Return the paths of all files that are indexed so far, in their order."""
    return sorted(each.path for each in await documents_of(client, workspace))


async def documents_of(client: ClientSessionState, workspace: Workspace) -> list[DocumentListed]:
    """Return all files that are indexed so far."""
    found: list[DocumentListed] = []
    after: str | None = None
    while True:
        request = ListDocuments(corpus=workspace.row.full_name, after=after, limit=_PAGE)
        page = await client.ask(corpus_address(workspace.row), request)
        found += page.documents
        if page.after is None:
            return found
        after = page.after


def _manifests(root: str, paths: list[str]) -> dict[str, str]:
    """Return the texts of the files that say what imports mean, as far as they can be read."""
    found: dict[str, str] = {}
    for path in paths:
        if basename(path) in MANIFESTS:
            try:
                found[path] = read_bounded(f"{root}/{path}", _MAX_MANIFEST).decode(errors="replace")
            except (OSError, UnreadableFileError):
                continue
    return found
