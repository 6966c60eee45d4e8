"""Which files of an answer differ on disk from what was indexed: who hears of it, and who never does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import server_process
from support.agents import FAST
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    FreshnessView,
    GetFullContent,
    IngestDocuments,
    Principal,
    PutDocument,
    Reach,
    SemanticSearch,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann")
WORD = "anchor"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three documents that have a word in common."""
    folder = (tmp_path / "docs").resolve()
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nthe {WORD} of {name}\n")
    return folder


async def filled(runtime: RuntimeClient, docs: Path) -> Agent:
    """Ingest the folder; return who may have it read."""
    agent = Agent(runtime, ANN, reach=Reach(roots=[str(docs)]))
    assert (await agent.ask(IngestDocuments(paths=[str(docs)]))).added == 3
    return agent


async def fresh(agent: Agent) -> FreshnessView:
    """Return what both kinds of answers say alike."""
    while (found := await agent.ask(SemanticSearch(query=WORD))).partial:  # on a machine that is busy
        pass
    read = await agent.ask(GetFullContent(chunk_ids=[each.chunk_id for each in found.results]))
    assert read.freshness == found.freshness
    return found.freshness


def names(said: FreshnessView) -> tuple[int | None, list[str], list[str]]:
    """Return how many files were looked at, and the names of those that changed and that are gone."""
    changed, missing = (
        sorted(Path(path).name for path in each or ()) for each in (said.changed_files, said.missing_files)
    )
    return said.files_checked or None, changed, missing


def opened(tmp_path: Path) -> Any:
    return open_greenroom(tmp_path / "data", secrets=tmp_path / "secrets", embedder="none", options=FAST)


# -- hostile ---------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.promise("knowledge.files-looked-at")
async def test_a_text_makes_nobody_look_at_the_file_it_is_called_after(tmp_path: Path, docs: Path) -> None:
    async with opened(tmp_path) as runtime:
        named = document_of(f"{docs}/a.md", [([], f"no {WORD}")])
        await ask_corpus(runtime, ANN, PutDocument(corpus="default", document=named), make=True)
        agent = Agent(runtime, ANN, reach=Reach(roots=None))
        assert names(await fresh(agent)) == (None, [], [])
        (docs / "a.md").unlink()
        assert names(await fresh(agent)) == (None, [], [])


@pytest.mark.promise("knowledge.files-looked-at")
async def test_a_text_that_takes_a_file_s_place_is_not_looked_at_any_more(tmp_path: Path, docs: Path) -> None:
    async with opened(tmp_path) as runtime:
        agent = await filled(runtime, docs)
        for name in ("a", "b", "c"):
            sent = document_of(f"{docs}/{name}.md", [([], f"{WORD} sent by {name}")])
            await ask_corpus(runtime, ANN, PutDocument(corpus="default", document=sent))
        (docs / "a.md").unlink()
        assert names(await fresh(agent)) == (None, [], [])


@pytest.mark.promise("knowledge.files-looked-at")
@pytest.mark.parametrize(
    "reach", [None, Reach(), Reach(roots=["/elsewhere"]), Reach(roots=["/"], closed=("/",))]
)
async def test_who_may_have_nothing_read_there_hears_nothing(
    tmp_path: Path, docs: Path, reach: Reach | None
) -> None:
    async with opened(tmp_path) as runtime:
        await filled(runtime, docs)
        (docs / "a.md").write_text("other")
        (docs / "b.md").unlink()
        assert names(await fresh(Agent(runtime, ANN, reach=reach))) == (None, [], [])


async def test_a_link_in_a_file_s_place_is_a_change_and_not_followed(tmp_path: Path, docs: Path) -> None:
    async with opened(tmp_path) as runtime:
        agent = await filled(runtime, docs)
        (docs / "a.md").rename(tmp_path / "moved.md")  # the same bytes and times, elsewhere
        (docs / "a.md").symlink_to(tmp_path / "moved.md")
        (docs / "b.md").unlink()
        (docs / "b.md").mkdir()
        (docs / "c.md").unlink()
        os.mkfifo(docs / "c.md")
        assert names(await fresh(agent)) == (3, ["a.md", "b.md", "c.md"], [])


async def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path, docs: Path) -> None:
    async with opened(tmp_path) as runtime:
        await filled(runtime, docs)
        await trio.Path(docs).rename(tmp_path / "moved")
        await trio.Path(docs).symlink_to(tmp_path / "moved")
        anywhere = Agent(runtime, ANN, reach=Reach(roots=None))
        assert names(await fresh(anywhere)) == (3, ["a.md", "b.md", "c.md"], [])


async def test_over_standard_input_all_files_are_looked_at_since_their_user_asks(
    tmp_path: Path, docs: Path
) -> None:
    async with server_process(tmp_path, "--embedder", "none", "--documents", str(docs)) as server:
        await server.client.initialize()
        assert (await server.client.call("ingest_documents", paths=[str(docs)]))["added"] == 3
        (docs / "a.md").write_text("other")
        found = await server.client.call("semantic_search", query=WORD)
        assert found["freshness"]["changed_files"] == [f"{docs}/a.md"]
    async with server_process(tmp_path, "--embedder", "none") as server:
        await server.client.initialize()
        found = await server.client.call("semantic_search", query=WORD)
        assert found["freshness"]["changed_files"] == [f"{docs}/a.md"]


# -- what is said ----------------------------------------------------------------------------------


@pytest.mark.promise("knowledge.fresh")
async def test_what_changed_and_what_is_gone_is_named_in_every_answer(tmp_path: Path, docs: Path) -> None:
    async with opened(tmp_path) as runtime:
        agent = await filled(runtime, docs)
        assert names(await fresh(agent)) == (3, [], [])
        (docs / "a.md").write_text("longer than it was before, and another text\n")
        (docs / "b.md").unlink()
        assert names(await fresh(agent)) == (3, ["a.md"], ["b.md"])


@pytest.mark.quick
@pytest.mark.promise("knowledge.fresh")
async def test_a_change_of_the_same_length_is_seen_and_a_touched_file_is_none(
    tmp_path: Path, docs: Path
) -> None:
    async with opened(tmp_path) as runtime:
        agent = await filled(runtime, docs)
        text = (docs / "a.md").read_text()
        (docs / "a.md").write_text(text.replace("the", "her"))
        for name in ("a", "b"):
            os.utime(docs / f"{name}.md", (1, 1))
        assert names(await fresh(agent)) == (3, ["a.md"], [])


async def test_a_file_system_that_hangs_holds_no_answer_up(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = trio.lowlevel.current_trio_token(), trio.Event()

    def hang(_file: object) -> bool:
        trio.from_thread.run(gate[1].wait, trio_token=gate[0])
        return True

    async with opened(tmp_path) as runtime:
        agent = await filled(runtime, docs)
        monkeypatch.setattr("greenroom.actors.knowledge.ingest.files.file_content.differs", hang)
        found = await agent.ask(SemanticSearch(query=WORD))
        assert len(found.results) == 3
        assert found.freshness.files_checked == 0
        gate[1].set()
