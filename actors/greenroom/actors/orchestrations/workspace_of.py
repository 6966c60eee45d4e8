"""Which workspace a client's call means, and how far that is."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.base.threads import read_in_thread
from greenroom.actors.corpus.catalogue import corpus_address
from greenroom.actors.corpus.managing import found_corpus, made_corpus
from greenroom.actors.corpus.readers import unread_sentence
from greenroom.actors.ingest.places import CLIENT_FOLDERS
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.schemas.code import CodeFreshness
from greenroom.actors.schemas.corpus import CorpusRow
from greenroom.actors.schemas.workspace import DescribeWorkspace, WorkspaceState
from greenroom.actors.workspace.keeper import Keeper, released
from greenroom.actors.workspace.places import checked_root, workspace_name
from greenroom.runtime import Refusal

R_co = TypeVar("R_co", covariant=True)

PATIENCE_SECONDS: Final = 0.5
"""How long the first calls wait for an index, which a small folder has by then."""


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
            "workspace: it is not known which folder of code is meant: `greenroom serve --workspace FOLDER` "
            "says it, and over standard input and output start_session with workspace_path",
        )
    return await read_in_thread(_checked, named, client.reach.closed)


async def opened(client: ClientSessionState, root: str) -> Workspace:
    """Return the workspace of a folder; its index is begun if there was none, and waited for a moment."""
    workspace = await begin(client, root)
    if workspace.keeper is not None:
        with trio.move_on_at(workspace.keeper.began + PATIENCE_SECONDS):
            await workspace.keeper.settled.wait()
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


async def freshness_of(client: ClientSessionState, workspace: Workspace) -> CodeFreshness:
    """Return how far a workspace's index is, and was when it was opened: an answer is of neither alone."""
    state = await _state(client, workspace)
    if state.state == "watching" and workspace.is_behind:
        state = msgspec.structs.replace(state, state="indexing")
    is_left = state.state == "unwatched"
    return CodeFreshness(
        indexed=state.indexed,
        of=state.of,
        state="off" if is_left and client.workspaces is None else state.state,
        as_of=state.as_of if is_left else UNSET,
    )


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
