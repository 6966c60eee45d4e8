"""Which workspace a client's call means, and how far that is."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

import trio
from msgspec import UNSET

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.base.threads import read_in_thread
from greenroom.actors.corpus.catalogue import corpus_address
from greenroom.actors.corpus.managing import made_corpus
from greenroom.actors.ingest.places import CLIENT_FOLDERS
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.schemas.code import CodeFreshness
from greenroom.actors.schemas.corpus import CorpusRow
from greenroom.actors.schemas.workspace import DescribeWorkspace
from greenroom.actors.workspace.keeper import Keeper
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
    """A workspace: its corpus, and who keeps it here, unless nobody does."""

    row: CorpusRow
    keeper: Keeper | None


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
    return workspace


async def begin(client: ClientSessionState, root: str) -> Workspace:
    """Return the workspace of a folder, whose index is begun if there was none."""
    name = f"{policy.corpora_owner(client.principal)}:{workspace_name(root)}"
    row = await made_corpus(client.runtime, client.principal, name, root)
    if client.workspaces is None:
        return Workspace(row, None)
    return Workspace(row, client.workspaces.need(client.principal, row, client.reach.closed))


async def freshness_of(client: ClientSessionState, workspace: Workspace) -> CodeFreshness:
    """Return how far a workspace's index is."""
    request = DescribeWorkspace(corpus=workspace.row.full_name)
    state = await client.ask(corpus_address(workspace.row), request)
    is_left = state.state == "unwatched"
    return CodeFreshness(
        indexed=state.indexed,
        of=state.of,
        state="off" if is_left and client.workspaces is None else state.state,
        as_of=state.as_of if is_left else UNSET,
    )


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
