"""The code of a linked worktree: an index of its own, listed under its repository's project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.agents import FAST, wire
from support.repositories import commit, linked, repository

from greenroom.actors import REQUESTS, Agent, Principal, Reach, ReadResource, open_greenroom, parse_request
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.actors.knowledge.workspaces.places import workspace_name
from greenroom.runtime import Refusal

pytestmark = pytest.mark.slow
ANN = Principal(agent_id="a", user="ann")


async def corpora(agent: Agent, folder: Path) -> list[str]:
    """List what a project has; nothing if there is no such project."""
    try:
        read = await agent.ask(ReadResource(uri=f"greenroom://project/{project_of_path(str(folder))}"))
    except Refusal:
        return []
    return sorted(wire(read)["corpora"])


async def files(agent: Agent, query: str) -> set[str]:
    """Search until the folder is indexed; return the files that are found."""
    request: Any = parse_request(REQUESTS["search_code_semantic"], msgspec.json.encode({"query": query}))
    while (found := await agent.ask(request)).freshness.state != "watching":
        pass
    return {each.file_path for each in found.results}


@pytest.mark.promise("projects.worktree", "projects.older-ids", "projects.believed")
async def test_each_worktree_has_an_index_that_is_listed_under_the_repositorys_project(
    tmp_path: Path,
) -> None:
    shop = repository(tmp_path / "shop")
    tree = linked(shop, tmp_path / "shop-feature")
    commit(tree, "anchor.py")
    commit(shop, "kelp.py")
    claim = (tmp_path / "unpacked").resolve()
    claim.mkdir()
    (claim / ".git").write_text((tree / ".git").read_text())
    (claim / "sail.py").write_text("sail = 1\n")
    async with (
        open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):

        def agent_in(folder: Path, *, apart: bool = False) -> Agent:
            reach = Reach(workspaces=(str(folder),), worktrees_apart=apart)
            return Agent(runtime, ANN, reach=reach, workspaces=kept)

        older = f"user:ann:{workspace_name(str(tree))}"
        await ensure_corpus(runtime, ANN, older, str(tree))  # as an older version made it
        at_shop, at_tree, at_claim = map(agent_in, (shop, tree, claim))
        assert await corpora(at_tree, shop) == []
        assert await files(at_shop, "anchor kelp sail") == {"kelp.py"}
        assert await files(at_tree, "anchor kelp sail") == {"anchor.py"}
        assert await files(at_claim, "anchor kelp sail") == {"sail.py"}
        both = sorted([older, f"user:ann:{workspace_name(str(shop))}"])
        assert await corpora(at_shop, shop) == both
        assert await corpora(at_shop, tree) == [older]
        assert await corpora(at_shop, claim) == [f"user:ann:{workspace_name(str(claim))}"]
        await files(agent_in(tree, apart=True), "anchor")
        assert await corpora(at_shop, shop) == [f"user:ann:{workspace_name(str(shop))}"]
