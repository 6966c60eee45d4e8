"""Agents that work in folders of code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.agents import FAST

from greenroom.actors import REQUESTS, Agent, Principal, Reach, open_greenroom, parse_request
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFound, FileRead
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces

ANN = Principal(agent_id="a", user="ann")


@asynccontextmanager
async def agent_in(
    tmp_path: Path,
    *workspaces: Path,
    is_kept: bool = False,
    told: bool = False,
    secrets: tuple[str, ...] = (),
) -> AsyncIterator[Agent]:
    """An agent in a store whose operator lets it read some folders; it may tell others if it is ``told``."""
    own = (str(tmp_path / "data"), str(tmp_path / "secrets"))
    reach = Reach(
        closed=own, workspaces=tuple(map(str, workspaces)), takes_client_folders=told, secrets=secrets
    )
    async with (
        open_greenroom(own[0], secrets=own[1], embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):
        yield Agent(runtime, ANN, reach=reach, workspaces=kept if is_kept else None)


async def search(agent: Agent, arguments: str) -> CodeFound:
    found: CodeFound = await agent.ask(parse_request(REQUESTS["search_code_semantic"], arguments.encode()))
    return found


async def read(agent: Agent, arguments: str) -> list[FileRead]:
    files: list[FileRead] = (await agent.ask(parse_request(REQUESTS["read_file"], arguments.encode()))).files
    return files


async def settled(agent: Agent) -> None:
    """Wait until the workspace is indexed: searches say so."""
    while (await search(agent, '{"query":"x"}')).freshness.state != "watching":
        pass
