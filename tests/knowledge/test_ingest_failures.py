"""Files that could not be taken in: what a corpus keeps of them, until when, and who is shown it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel
from support.agents import refused
from support.console import looker
from support.keyed import create_key, premises
from support.workspaces import folder_of_code

from greenroom.actors import (
    Agent,
    ClientContext,
    CorpusResource,
    DocumentText,
    DropCorpus,
    IngestDocuments,
    LeftOutFile,
    ListCorpora,
    NoteIngest,
    Principal,
    Reach,
    ReadResource,
    SearchCodeSemantic,
    WorkspaceResource,
    ask_corpus,
)
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.agents import House
    from support.passports import Opens

    from greenroom.actors import FailedFile
    from greenroom.testing import VirtualClock

OWNER = Principal(agent_id="bot", user="owner")
CORPUS = "user:owner:docs"
BROKEN = "{broken"
"""What no notebook says."""
NOTEBOOK = '{"cells": [{"cell_type": "markdown", "source": ["# Whole"]}], "nbformat": 4, "metadata": {}}'


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a document, two files that fail, and some that are left out on purpose."""
    folder = (tmp_path / "docs").resolve()
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nfirst\n")
    (folder / "deep/b.ipynb").write_text(BROKEN)
    (folder / "c.md").write_bytes(b"\x00\x01\x02")
    (folder / "picture.png").write_bytes(b"\x89PNG\x00")
    (folder / ".env").write_text("KEY=1")
    (folder / "empty.md").write_text("")
    (folder / "link.md").symlink_to(folder / "a.md")
    return folder


async def ingest(at: House, *paths: Path) -> None:
    """Take in some files as an agent does that may name any below them."""
    named = [str(path) for path in paths]
    bot = Agent(at.runtime, OWNER, reach=Reach(named))
    assert (await bot.ask(IngestDocuments(paths=named, corpus="docs"))).complete


async def failed(at: House) -> list[FailedFile]:
    read = await Agent(at.runtime, OWNER).ask(ReadResource(uri=f"greenroom://corpus/{CORPUS}"))
    assert isinstance(read, CorpusResource)
    (listed,) = (await Agent(at.runtime, OWNER).ask(ListCorpora())).corpora
    assert (listed.failed_files or 0) == len(read.failed)
    return read.failed


def names(files: Sequence[FailedFile], folder: Path) -> set[str]:
    return {each.path.removeprefix(f"{folder}/") for each in files}


@pytest.mark.promise("documents.failed")
async def test_a_file_that_fails_is_kept_with_its_remedy_until_it_is_taken_in(
    open_at: Opens, docs: Path, far_clock: VirtualClock
) -> None:
    async with open_at() as at:
        await ingest(at, docs)
        first = await failed(at)
        assert names(first, docs) == {"deep/b.ipynb", "c.md"}
    async with open_at() as at:
        far_clock.jump(60_000_000)
        await ingest(at, docs)
        kept = {each.path: each for each in await failed(at)}
        assert sorted(kept) == sorted(each.path for each in first), "the store keeps them"
        assert [kept[each.path].failed_at for each in first] == [each.failed_at for each in first]
        assert "it is no notebook" in kept[f"{docs}/deep/b.ipynb"].reason
        assert kept[f"{docs}/c.md"].remedy.startswith("bring along its text")
        (docs / "deep/b.ipynb").write_text(NOTEBOOK)
        await ingest(at, docs / "deep")
        assert names(await failed(at), docs) == {"c.md"}
        (docs / "c.md").unlink()
        await ingest(at, docs / "deep")
        assert names(await failed(at), docs) == {"c.md"}, "it is not below what was gone through"
        await ingest(at, docs)
        assert await failed(at) == []


@pytest.mark.slow
async def test_what_is_removed_and_what_is_dropped_has_not_failed(open_at: Opens, docs: Path) -> None:
    async with open_at() as at:
        await ingest(at, docs)
        bot = Agent(at.runtime, OWNER, reach=Reach([str(docs)]))
        await bot.ask(IngestDocuments(remove=[f"{docs}/c.md", "never.md"], corpus="docs"))
        assert names(await failed(at), docs) == {"deep/b.ipynb"}
        await DropCorpus(corpus="docs").run(ClientContext(at.runtime, OWNER))
        await ask_corpus(at.runtime, OWNER, NoteIngest(corpus="docs"), make=True)
        assert await failed(at) == []


@pytest.mark.slow
async def test_the_newest_hundred_are_kept_with_whatever_their_names_say(
    open_at: Opens, tmp_path: Path, far_clock: VirtualClock
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(104):
        (folder / f"{number:03} <b>'&.ipynb").write_text(BROKEN)
    async with open_at() as at, premises(at) as here:
        await ingest(at, folder)
        assert len(await failed(at)) == 100
        page = await (await looker(here)).look(f"/knowledge/{CORPUS}")
        page.check_inert()
        assert "100 files could not be taken in; older ones may be left out here" in page.text
        assert "103 <b>'&.ipynb it is no notebook" in page.text
        far_clock.jump(1_000_000)
        newer = [LeftOutFile("/newer.md", "it is \x07 <i>broken\u202e")]
        await ask_corpus(at.runtime, OWNER, NoteIngest(corpus="docs", failed=newer))
        kept = await failed(at)
        assert (len(kept), kept[0].path) == (100, "/newer.md")
        assert "100 failed" in (await (await looker(here)).look("/knowledge")).text


@pytest.mark.slow
async def test_texts_that_fail_are_kept_and_nobody_else_forgets_them(open_at: Opens) -> None:
    async with open_at() as at:
        bot = Agent(at.runtime, OWNER)
        texts = [DocumentText("a.ipynb", BROKEN), DocumentText("b.md", "fine"), DocumentText("c.md", "\0\1")]
        assert (await bot.ask(IngestDocuments(texts=texts, corpus="docs"))).added == 1
        assert {each.path for each in await failed(at)} == {"a.ipynb", "c.md"}
        bob = Principal(agent_id="bot", user="bob")
        with refused("CORPUS_NOT_FOUND"):
            await ask_corpus(at.runtime, bob, NoteIngest(corpus=CORPUS, below=["/"], is_over=True))
        texts = [DocumentText("a.ipynb", NOTEBOOK)]
        await bot.ask(IngestDocuments(texts=texts, corpus="docs"))
        assert {each.path for each in await failed(at)} == {"c.md"}


@pytest.mark.slow
async def test_a_run_is_shown_while_it_goes_on_and_no_longer(open_at: Opens, far_clock: VirtualClock) -> None:
    async with open_at() as at, premises(at) as here:
        done = NoteIngest(corpus="docs", is_over=True, was_all=True)
        await ask_corpus(at.runtime, OWNER, done, make=True)
        guest = await looker(here)

        async def shown() -> str:
            page = await guest.look(f"/knowledge/{CORPUS}")
            assert ("data-every" in page.named("main")[0]) == ("indexing" in page.text)
            assert ("indexing" in (await guest.look("/knowledge")).text) == ("indexing" in page.text)
            return page.text

        assert "Files looked through never" not in await shown()
        for run, of in (("x", 10), ("y", 5_000)):
            note = NoteIngest(corpus=CORPUS, run=run, looked_at=3, of=of)
            await ask_corpus(at.runtime, OWNER, note)
        assert "indexing: 6 of 5,010 files" in await shown()
        await ask_corpus(at.runtime, OWNER, NoteIngest(corpus=CORPUS, run="y", is_over=True))
        assert "indexing: 3 of 10 files" in await shown()
        far_clock.jump(16_000_000)
        assert "indexing" not in await shown(), "who says nothing more has ended"


@pytest.mark.slow
async def test_files_of_a_workspace_fail_by_their_paths_in_it(open_at: Opens, tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, 1)
    (code / "notes").mkdir()
    (code / "notes/b.ipynb").write_text(BROKEN)
    nameless = code / os.fsdecode(b"\xff\n<b>.py" if sys.platform == "linux" else b"\n\n<b>.py")
    nameless.write_text("")
    reach = Reach((), workspaces=(str(code),))
    async with open_at() as at, premises(at, reach=reach) as here, open_workspaces(at.runtime) as kept:
        bot = Agent(at.runtime, OWNER, reach=reach, workspaces=kept)
        while (found := await bot.ask(SearchCodeSemantic(query="anchor"))).freshness.state != "watching":
            await trio.lowlevel.checkpoint()
        assert found.results
        reader = await create_key(at, "code:read", agent="bot", user="owner")
        await here.settled()
        guest = await looker(here, reader)
        (lead,) = [link for link in (await guest.look("/code")).links if "./code/" in link]
        page = await guest.look(lead.removeprefix("."))
        (notes,) = [link for link in page.links if "folder=notes" in link]
        folder = await guest.look("/" + lead.removeprefix("./").partition("?")[0] + notes[notes.index("?") :])
        assert "b.ipynb ipynb 1" in folder.text, "as text: in a workspace nothing is left out"
        assert "part_0.py Python" in page.text
        assert "\ufffd\ufffd<b>.py its name cannot be shown" in page.text
        topics = page.named("main")[0]["data-topics"]
        assert topics is not None
        (uri,) = json.loads(topics)
        (code / "notes/b.ipynb").write_text(NOTEBOOK)
        nameless.unlink()
        while True:
            read = await bot.ask(ReadResource(uri=uri))
            assert isinstance(read, WorkspaceResource)
            if not read.failed:
                break
            await trio.lowlevel.checkpoint()
