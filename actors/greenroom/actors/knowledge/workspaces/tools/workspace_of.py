"""Find the workspace that a client's call means, and the progress of the workspace's index."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFreshness
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.workspace import DescribeWorkspace, WorkspaceState
from greenroom.actors.knowledge.corpora.storage.readers import describe_unread
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus, find_corpus
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET
from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS, FilesClient, find_project_of
from greenroom.actors.knowledge.workspaces.index_lease import Indexer, Workspaces, release_if_dead
from greenroom.actors.knowledge.workspaces.places import Place, check_root, resolve_file, workspace_name
from greenroom.runtime import Procedure, Refusal


class FolderOfWork(Protocol):
    """The part of a client's session that this module needs."""

    @property
    def folder(self) -> str | None:
        """The folder that the client began to work in, if it reported one."""


class CodeClient(FilesClient, Protocol):
    """A client that may read and search code; without ``workspaces``, this process indexes nothing."""

    workspaces: Workspaces | None

    @property
    def session(self) -> FolderOfWork:
        """The session that the client works in."""


R_co = TypeVar("R_co", covariant=True)

PATIENCE_SECONDS: Final = 5.0
"""The first search of a folder waits this long for the index; most indexes are complete by then."""
SHARE: Final = 0.6
"""The share of the caller's time that this wait may take; the rest is for the search."""
ELSEWHERE_SECONDS: Final = 0.1
"""Interval at which to check whether another process has completed the index."""


class CodeProcedure(Procedure[R_co], frozen=True, kw_only=True):
    """A procedure about the workspace that the client works in."""

    runs = "here"

    @property
    def needs_folders(self) -> bool:
        """Whether the server must query the client for its folders."""
        return True


class Workspace(NamedTuple):
    """A workspace.

    Attributes:
        is_behind: Whether the index was out of date when the workspace was opened.
        unread: A text on files without known symbols at that time, and why; empty if there are none.
        version: The version of the index at that time, see `WorkspaceState`.
    """

    row: CorpusRow
    indexer: Indexer | None
    is_behind: bool = False
    unread: str = ""
    version: str = ""


class Progress(NamedTuple):
    """Progress of a workspace's index, and what may be missing from a reply."""

    freshness: CodeFreshness
    missing: str

    @property
    def is_whole(self) -> bool:
        """Whether the whole folder was indexed, so that the index is complete."""
        return not self.missing and self.freshness.as_of is not None

    @property
    def partial(self) -> bool | UnsetType:
        """The reply's value for whether anything may be missing."""
        return True if self.missing else UNSET

    @property
    def reason(self) -> str | UnsetType:
        """The reply's value for what may be missing, and why."""
        return self.missing or UNSET


async def find_roots(client: CodeClient) -> list[str]:
    """Return the folders that the client works in: first the client's own, then configured ones."""
    named: list[str] = []
    if client.files.reach.takes_client_folders:
        named += [client.session.folder] if client.session.folder is not None else []
        named += CLIENT_FOLDERS.get()
    named += client.files.reach.workspaces
    if not named:
        raise auth_errors.invalid(
            "workspace",
            "workspace: it is not known which folder of code is meant; `greenroom serve --workspace FOLDER` "
            "says it; over standard input and output start_session with workspace_path does, too",
        )
    return await read_in_thread(_check_roots, named, client.files.reach.closed)


async def open_workspace(client: CodeClient, root: str) -> Workspace:
    """Return a folder's workspace; start indexing. The first calls wait for the index."""
    workspace = await start_index(client, root)
    now = trio.current_time()
    indexer = workspace.indexer
    if indexer is not None:
        indexer.patience = min(indexer.patience, now + PATIENCE_SECONDS)
        with trio.move_on_at(min(indexer.patience, now + SHARE * (trio.current_effective_deadline() - now))):
            await indexer.settled.wait()
            # If another process indexes the workspace, no event is set here.
            while not indexer.holds_lease and (await _read_state(client, workspace)).state == "indexing":  # noqa: ASYNC110
                await trio.sleep(ELSEWHERE_SECONDS)
    state = await _read_state(client, workspace)
    unread = describe_unread(state.unread)
    return workspace._replace(is_behind=state.state != "watching", unread=unread, version=state.version)


async def open_place(client: CodeClient, field: str, named: str) -> tuple[Place, Workspace]:
    """Return the file or folder that a parameter names; open its workspace as `open_workspace`."""
    roots = await find_roots(client)
    place = await read_in_thread(resolve_file, field, named, roots, client.files.reach.closed)
    return place, await open_workspace(client, place.root)


async def start_index(client: CodeClient, root: str) -> Workspace:
    """Return a folder's workspace, and start its index, except for impersonated calls."""
    name = f"{policy.corpora_owner(client.principal)}:{workspace_name(root)}"
    if client.principal.seen_by is not None:
        return Workspace(await find_corpus(client.runtime, client.principal, name), None)
    project = await read_in_thread(find_project_of, root, client.files.reach)
    row = await ensure_corpus(client.runtime, client.principal, name, root, project.project_id)
    if client.workspaces is None:
        return Workspace(row, None)
    return Workspace(row, client.workspaces.need(client.principal, row, client.files.reach.closed))


async def read_progress(client: CodeClient, workspace: Workspace, cut: str = "") -> Progress:
    """Return an index's progress; it is no better than when the workspace was opened."""
    state = await _read_state(client, workspace)
    if state.state == "watching" and workspace.is_behind:
        state = msgspec.structs.replace(state, state="indexing")
    is_left = state.state == "unwatched"
    fresh = CodeFreshness(
        indexed=state.indexed,
        of=state.of,
        state="off" if is_left and client.workspaces is None else state.state,
        as_of=state.as_of if is_left else UNSET,
        left_out_as_secret=state.left_out.get(SECRET, 0) or UNSET,
    )
    return Progress(fresh, "; ".join(filter(None, (cut, _describe_missing(fresh)))))


def _describe_missing(fresh: CodeFreshness) -> str:
    """Describe which part of a folder is not indexed yet, if that is known."""
    if fresh.state != "indexing" and (fresh.state != "unwatched" or fresh.as_of is not None):
        return ""
    if fresh.of is None:
        return f"{fresh.indexed:,} files are indexed so far, and not counted how many there are; ask again"
    if fresh.indexed < fresh.of:
        return f"{fresh.indexed:,} of {fresh.of:,} files are indexed so far; ask again"
    return "what changed in the folder is being indexed; ask again"


async def _read_state(client: CodeClient, workspace: Workspace) -> WorkspaceState:
    """Return an index's state: `unwatched` if its process died, `indexing` if changes are pending."""
    row, indexer = workspace.row, workspace.indexer
    request = DescribeWorkspace(corpus=row.full_name)
    was_behind = indexer is not None and indexer.is_behind
    state = await client.ask(corpus_address(row), request)
    if indexer is not None and indexer.holds_lease:
        if state.state == "watching" and (was_behind or indexer.is_behind):
            state = msgspec.structs.replace(state, state="indexing")
    elif state.state != "unwatched" and await release_if_dead(client.runtime, client.principal, row):
        state = await client.ask(corpus_address(row), request)
    return state


def _check_roots(named: list[str], closed: tuple[str, ...]) -> list[str]:
    found: dict[str, None] = {}
    refused: Refusal | None = None
    for each in named:
        try:
            found[check_root(each, closed)] = None
        except Refusal as refusal:
            refused = refused or refusal
    if not found and refused is not None:
        raise refused
    return list(found)
