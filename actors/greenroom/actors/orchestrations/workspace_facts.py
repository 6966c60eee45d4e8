"""What is indexed of a workspace as a whole: its files, and what the syntax of each says."""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.corpus.catalogue import corpus_address
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import Workspace
from greenroom.actors.schemas.code import FactsOfFile, ReadFacts
from greenroom.actors.schemas.corpus import ListDocuments

MAX_FACTS: Final = 16 << 20
"""Packed facts that one call looks at, a multiple of it in memory one after the other."""
_PAGE: Final = 1_000


class WorkspaceFacts(NamedTuple):
    """What the syntax of a workspace's files says; ``is_cut`` where there is more than is looked at."""

    files: list[FactsOfFile]
    is_cut: bool


async def facts_of(client: ClientSessionState, workspace: Workspace) -> WorkspaceFacts:
    """Return what the syntax of the files says that are indexed so far."""
    files: list[FactsOfFile] = []
    room = MAX_FACTS
    start: int | None = 0
    while start is not None and room > 0:
        request = ReadFacts(corpus=workspace.row.full_name, path="", start=start)
        read = await client.ask(corpus_address(workspace.row), request)
        files += read.files
        room -= sum(len(each.packed) for each in read.files)
        start = read.following
    return WorkspaceFacts(files, start is not None)


async def paths_of(client: ClientSessionState, workspace: Workspace) -> list[str]:
    """Return the paths of all files that are indexed so far, in their order."""
    paths: list[str] = []
    after: str | None = None
    while True:
        request = ListDocuments(corpus=workspace.row.full_name, after=after, limit=_PAGE)
        page = await client.ask(corpus_address(workspace.row), request)
        paths += (each.path for each in page.documents)
        if page.after is None:
            return sorted(paths)
        after = page.after
