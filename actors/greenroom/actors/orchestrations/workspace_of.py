"""Which workspace a client's call means, and how far that is."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.corpus.managing import found_corpus, made_corpus
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.storage.readers import unread_sentence
from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS
from greenroom.actors.knowledge.workspaces.index_lease import Keeper, released
from greenroom.actors.knowledge.workspaces.places import checked_root, workspace_name
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.schemas.code import CodeFreshness
from greenroom.actors.schemas.workspace import DescribeWorkspace, WorkspaceState
from greenroom.runtime import Refusal

R_co = TypeVar("R_co", covariant=True)

PATIENCE_SECONDS: Final = 5.0
"""How long the first search of a folder waits for its index, which all but large ones have by then."""
SHARE: Final = 0.6
"""Of the caller's own time: what remains is for the search."""
ELSEWHERE_SECONDS: Final = 0.1
"""How often is looked whether another process has made the index that is waited for."""


class CodeOrchestration(ClientOrchestration[R_co], frozen=True, kw_only=True):
    """An orchestration about the workspace that the client works in."""

    @property
    def needs_folders(self) -> bool:
        """Whether the client is to be asked for its folders."""
        return True


class Workspace(NamedTuple):
    """A workspace.

    Attributes:
        row: Its corpus.
        keeper: Who keeps it here, or waits to; None where nobody does.
        is_behind: Whether its index was not as its folder is when it was opened.
        unread: Of how many files the symbols were not known then, and why; empty where of none.
    """

    row: CorpusRow
    keeper: Keeper | None
    is_behind: bool = False
    unread: str = ""


class Progress(NamedTuple):
    """How far a workspace's index is.

    Attributes:
        freshness: In numbers.
        missing: What may be missing from an answer, and why; empty where nothing is.
    """

    freshness: CodeFreshness
    missing: str

    @property
    def is_whole(self) -> bool:
        """Whether the folder was indexed as a whole, so that what is not in the index is nowhere."""
        return not self.missing and self.freshness.as_of is not None

    @property
    def partial(self) -> bool | UnsetType:
        """Whether anything may be missing, as an answer says it."""
        return True if self.missing else UNSET

    @property
    def reason(self) -> str | UnsetType:
        """What, and why, as an answer says it."""
        return self.missing or UNSET


async def roots_of(client: ClientSessionState) -> list[str]:
    """Return the folders that the client works in: told by itself, then configured.

    Raises:
        Refusal: ``VALIDATION_ERROR``: there are none, or none of them may be a workspace.
    """
    named: list[str] = []
    if client.reach.takes_client_folders:
        named += [client.workspace_path] if client.workspace_path is not None else []
        named += CLIENT_FOLDERS.get()
    named += client.reach.workspaces
    if not named:
        raise auth_errors.invalid(
            "workspace",
            "workspace: it is not known which folder of code is meant; `greenroom serve --workspace FOLDER` "
            "says it; over standard input and output start_session with workspace_path does, too",
        )
    return await read_in_thread(_checked, named, client.reach.closed)


async def opened(client: ClientSessionState, root: str) -> Workspace:
    """Return the workspace of a folder; its index is begun if there was none, and waited for at first."""
    workspace = await begin(client, root)
    now = trio.current_time()
    keeper = workspace.keeper
    if keeper is not None:
        keeper.patience = min(keeper.patience, now + PATIENCE_SECONDS)
        with trio.move_on_at(min(keeper.patience, now + SHARE * (trio.current_effective_deadline() - now))):
            await keeper.settled.wait()
            # Another process that makes it sets no event here.
            while not keeper.is_keeping and (await _state(client, workspace)).state == "indexing":  # noqa: ASYNC110
                await trio.sleep(ELSEWHERE_SECONDS)
    state = await _state(client, workspace)
    return workspace._replace(is_behind=state.state != "watching", unread=unread_sentence(state.unread))


async def begin(client: ClientSessionState, root: str) -> Workspace:
    """Return the workspace of a folder, whose index is begun if there was none.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``: there is none for somebody who looks on, who begins and keeps none.
    """
    name = f"{policy.corpora_owner(client.principal)}:{workspace_name(root)}"
    if client.principal.seen_by is not None:
        return Workspace(await found_corpus(client.runtime, client.principal, name), None)
    row = await made_corpus(client.runtime, client.principal, name, root)
    if client.workspaces is None:
        return Workspace(row, None)
    return Workspace(row, client.workspaces.need(client.principal, row, client.reach.closed))


async def progress_of(client: ClientSessionState, workspace: Workspace, cut: str = "") -> Progress:
    """Return how far a workspace's index is, and was when it was opened: an answer is of neither alone.

    Args:
        client: Who asks.
        workspace: The workspace.
        cut: What else may be missing from the answer, and why.
    """
    state = await _state(client, workspace)
    if state.state == "watching" and workspace.is_behind:
        state = msgspec.structs.replace(state, state="indexing")
    is_left = state.state == "unwatched"
    fresh = CodeFreshness(
        indexed=state.indexed,
        of=state.of,
        state="off" if is_left and client.workspaces is None else state.state,
        as_of=state.as_of if is_left else UNSET,
    )
    return Progress(fresh, "; ".join(filter(None, (cut, _not_indexed(fresh)))))


def _not_indexed(fresh: CodeFreshness) -> str:
    """Return what of a folder is not in its index yet, and will be, as far as that is known."""
    if fresh.state != "indexing" and (fresh.state != "unwatched" or fresh.as_of is not None):
        return ""
    if fresh.of is None:
        return f"{fresh.indexed:,} files are indexed so far, and not counted how many there are; ask again"
    if fresh.indexed < fresh.of:
        return f"{fresh.indexed:,} of {fresh.of:,} files are indexed so far; ask again"
    return "what changed in the folder is being indexed; ask again"


async def _state(client: ClientSessionState, workspace: Workspace) -> WorkspaceState:
    """Return how far an index is; a process that has died or knows of changes is not said to watch."""
    row, keeper = workspace.row, workspace.keeper
    request = DescribeWorkspace(corpus=row.full_name)
    was_behind = keeper is not None and keeper.is_behind
    state = await client.ask(corpus_address(row), request)
    if keeper is not None and keeper.is_keeping:
        if state.state == "watching" and (was_behind or keeper.is_behind):
            state = msgspec.structs.replace(state, state="indexing")
    elif state.state != "unwatched" and await released(client.runtime, client.principal, row):
        state = await client.ask(corpus_address(row), request)
    return state


def _checked(named: list[str], closed: tuple[str, ...]) -> list[str]:
    """Return those of some folders that may be workspaces, each once."""
    found: dict[str, None] = {}
    refused: Refusal | None = None
    for each in named:
        try:
            found[checked_root(each, closed)] = None
        except Refusal as refusal:
            refused = refused or refusal
    if not found and refused is not None:
        raise refused
    return list(found)
