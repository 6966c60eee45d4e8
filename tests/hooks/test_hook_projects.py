"""What hooks give in linked worktrees, in folders that only claim to be such, and on other branches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import house
from support.hook_events import Client, fill, user
from support.repositories import commit, git, linked, repository

from greenroom.actors import (
    Agent,
    DecisionMade,
    GetSession,
    ListMemories,
    ListSessions,
    MemoryFilters,
    Principal,
    Reach,
    RecallContext,
    RecordContext,
    StartSession,
    StoreMemory,
)
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.core.git.projects import PlaceOfWork, find_project
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from support.agents import Enter, House

FACT = "The mascot of the team is a red fox called Vermilion"
PROMPT = "what is the mascot of the team, the red fox"


def at_work_in(folder: Path, *, apart: bool = False) -> dict[str, Any]:
    """What the hooks of a client say of its folder."""
    found = find_project(str(folder), apart=apart)
    return {
        "project": found.project_id,
        "older": list(found.older),
        "folder": str(folder),
        "branch": found.revision.branch,
        "commit": found.revision.commit,
    }


def agent_of(at: House, **reach: Any) -> Agent:
    reaching = Reach(**{"takes_client_folders": True, **reach})
    return Agent(at.runtime, Principal(agent_id="cursor", user="ann"), client="cursor", reach=reaching)


def metadata_of(read: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(read.metadata)
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop")


@pytest.mark.promise("projects.worktree", "projects.believed")
async def test_what_a_project_knows_is_given_in_its_worktrees_and_not_where_a_file_claims_to_be_one(
    enter: Enter, shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    claim = tmp_path / "unpacked"
    claim.mkdir()
    (claim / ".git").write_text((tree / ".git").read_text())
    async with enter(embedder="none") as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows(FACT, namespace=f"user:ann:{project_of_path(str(shop))}", tags=["decision"])
        for number, (folder, is_given) in enumerate([(shop, True), (tree, True), (claim, False)]):
            here = at_work_in(folder)
            assert ("Vermilion" in await ann.asks(PROMPT, f"s{number}", **here)) is is_given
            started = await ann.answered(ann.event("session-start", f"t{number}", **here))
            assert ("Vermilion" in started.context) is is_given
        kept_apart = at_work_in(tree, apart=True)
        assert "Vermilion" not in await ann.asks(PROMPT, "apart", **kept_apart)


@pytest.mark.promise("projects.worktree", "projects.branches")
async def test_what_is_said_in_a_worktree_is_kept_in_the_project_with_its_branch(
    enter: Enter, shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    made = commit(tree, "second.py")
    here = at_work_in(tree)
    async with enter(embedder="none") as at:
        ann = Client(at)
        await ann.tells("stop", user("We decided to use Kafka for the queue."), **here)
        (session,) = (await ann.agent.ask(ListSessions(project_id=project_of_path(str(shop))))).sessions
        read = await ann.agent.ask(GetSession(session_id=session.session_id))
        noted = {"branch": "feature", "commit": made}
        assert metadata_of(read.session)["git"] == noted
        page = await ann.agent.ask(ListMemories(namespace="user:ann"))
        (memory,) = (each for each in page.memories if "Kafka" in (each.content or ""))
        assert memory.namespace == f"user:ann:{project_of_path(str(shop))}"
        assert metadata_of(memory)["git"] == noted


@pytest.mark.promise("projects.worktree", "projects.believed", "projects.older-ids")
async def test_a_session_begins_in_the_project_of_the_repository(
    enter: Enter, shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    (tree / "src").mkdir()
    claim = tmp_path / "unpacked"
    claim.mkdir()
    (claim / ".git").write_text(f"gitdir: {shop}/.git\n")
    whole = project_of_path(str(shop))
    async with enter(embedder="none") as at:
        for folder in (shop, tree, tree / "src"):
            began = await agent_of(at).ask(StartSession(workspace_path=str(folder), new=True))
            assert began.project_id == whole
        read = await agent_of(at).ask(GetSession(session_id=began.session_id))
        assert metadata_of(read.session)["git"]["branch"] == "feature"
        began = await agent_of(at).ask(StartSession(workspace_path=str(claim)))
        assert (began.project_id, began.offered) == (project_of_path(str(claim)), [])
        apart = agent_of(at, worktrees_apart=True)
        began = await apart.ask(StartSession(workspace_path=str(tree), new=True))
        assert began.project_id == project_of_path(str(tree))
        far = agent_of(at, takes_client_folders=False)  # another machine's folder is not looked at
        began = await far.ask(StartSession(workspace_path=str(tree / "src"), new=True))
        assert began.project_id == project_of_path(str(tree / "src"))


@pytest.mark.promise("projects.older-ids")
async def test_what_a_folder_has_under_an_older_id_is_given_there(
    enter: Enter, shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    older = project_of_path(str(tree))
    async with enter(embedder="none") as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows(FACT, namespace=f"user:ann:{older}", tags=["decision"])
        here = at_work_in(tree)
        assert "Vermilion" in await ann.asks(PROMPT, **here)
        assert "Vermilion" not in await ann.asks(PROMPT, "s2", **at_work_in(shop))
        earlier = agent_of(at)
        left = await earlier.ask(StartSession(project_id=older, purpose="the first half", new=True))
        chosen = DecisionMade(what="we sail at noon", why="the tide")
        await earlier.ask(RecordContext(decisions=[chosen]))
        assert "we sail at noon" in (await ann.answered(ann.event("session-start", "s3", **here))).context
        await agent_of(at).ask(StartSession(workspace_path=str(shop), new=True))
        began = await agent_of(at).ask(StartSession(workspace_path=str(tree), restore_from=left.session_id))
        assert (began.session_id, began.project_id) == (left.session_id, older)


@pytest.mark.promise("projects.branches")
async def test_in_a_clone_that_borrows_its_history_what_is_merged_is_not_marked(
    shop: Path, tmp_path: Path
) -> None:
    git(shop, "checkout", "-q", "-b", "feature")
    commit(shop, "second.py")
    git(tmp_path, "clone", "-q", "--shared", "--branch", "main", str(shop), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-q", "feature")
    async with house(tmp_path / "data", VirtualClock()) as at:  # git needs real time
        ann = Client(at)
        await fill(ann)
        writer = agent_of(at)
        await writer.ask(StartSession(workspace_path=str(clone), new=True))
        await writer.ask(StoreMemory(content=FACT, key="there"))
        git(clone, "checkout", "-q", "main")
        assert "noted on branch feature" in await ann.asks(PROMPT, "s1", **at_work_in(clone))
        git(clone, "merge", "-q", "feature")
        text = await ann.asks(PROMPT, "s2", **at_work_in(clone))
        assert "Vermilion" in text
        assert "noted on branch" not in text


@pytest.mark.promise("projects.branches")
async def test_what_git_cannot_tell_is_asked_once_until_the_branch_moves(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    commit(tree, "second.py")
    asked, path = tmp_path / "asked", os.environ["PATH"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f"#!/bin/sh\necho >> '{asked}'\nexit 1\n")
    (tmp_path / "bin/git").chmod(0o755)
    async with house(tmp_path / "data", VirtualClock()) as at:
        ann = Client(at)
        await fill(ann)
        writer = agent_of(at)
        await writer.ask(StartSession(workspace_path=str(tree), new=True))
        await writer.ask(StoreMemory(content=FACT, key="there"))

        async def marked(session: str) -> int:
            with monkeypatch.context() as context:
                context.setenv("PATH", f"{tmp_path}/bin:{path}")
                text = await ann.asks(PROMPT, session, **at_work_in(shop))
            assert "noted on branch feature" in text
            return asked.stat().st_size

        first = await marked("s1")
        assert await marked("s2") == first
        commit(shop, "third.py")
        assert await marked("s3") == 2 * first


async def recalled(agent: Agent, folder: Path) -> dict[str, str]:
    """Return the branches of what a recall finds, by key."""
    await agent.ask(StartSession(workspace_path=str(folder), new=True))
    place = PlaceOfWork(str(folder), "main", git(folder, "rev-parse", "HEAD"))
    found = await agent.ask(RecallContext(task="which red fox is the mascot of the team", place=place))
    return {each.key: each.branch for each in found.memories if each.key in {"here", "there"}}


@pytest.mark.promise("projects.branches")
async def test_what_was_noted_on_another_branch_is_last_and_marked_until_it_is_merged_or_gone(
    shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    commit(tree, "second.py")
    async with house(tmp_path / "data", VirtualClock()) as at:  # git needs real time
        ann = Client(at)
        await fill(ann)
        writer = agent_of(at)
        await writer.ask(StartSession(workspace_path=str(tree), new=True))
        await writer.ask(StoreMemory(content=FACT, key="there", metadata=msgspec.Raw(b'{"n": 1}')))
        (memory,) = (await ann.agent.ask(ListMemories(filters=MemoryFilters(key="there")))).memories
        assert metadata_of(memory).keys() == {"n", "git"}
        await ann.knows("The mascot of the team, the red fox, sleeps at noon", key="here")

        odd = msgspec.Raw(b'{"git": {"branch": "feature", "commit": "--output=/x"}}')  # nothing for git
        await ann.knows("The red fox, mascot of the team, has an office", key="odd", metadata=odd)

        async def given(folder: Path, session: str) -> str:
            return await ann.asks(PROMPT, session, **at_work_in(folder))

        mark = "noted on branch feature"
        assert mark not in await given(tree, "s1")
        text = await given(shop, "s2")
        assert mark in text
        assert text.count(mark) == 1
        assert text.index("sleeps at noon") < text.index("Vermilion")
        found = await recalled(agent_of(at), shop)
        assert found == {"there": "feature", "here": ""}
        assert list(found) == ["here", "there"]
        # Whoever names a place in which it does not work is told nothing of it.
        stranger = agent_of(at, takes_client_folders=False)
        assert set((await recalled(stranger, shop)).values()) == {""}
        commit(shop, "third.py")
        git(shop, "merge", "-q", "--no-edit", "feature")
        text = await given(shop, "s3")
        assert "Vermilion" in text
        assert mark not in text
        git(shop, "reset", "-q", "--hard", "HEAD^")
        assert mark in await given(shop, "s4")
        git(shop, "worktree", "remove", "--force", str(tree))
        git(shop, "branch", "-q", "-D", "feature")
        text = await given(shop, "s5")
        assert "Vermilion" in text
        assert mark not in text
