"""Folders of code kept in the background: indexed, watched, renamed, and by one process of several."""

from __future__ import annotations

import errno
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from harness import PATIENCE
from support.agents import FAST
from trio.testing import MockClock

from greenroom.actors import (
    REQUESTS,
    Agent,
    ListDocuments,
    Principal,
    SemanticSearch,
    ask_corpus,
    open_greenroom,
    parse_request,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.workspace import (
    DescribeWorkspace,
    KeepWorkspace,
    WorkspaceState,
)
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.ingest import run_state
from greenroom.actors.knowledge.ingest.files.walk import Found, walk
from greenroom.actors.knowledge.ingest.steps import arrange
from greenroom.actors.knowledge.workspaces.index_lease import UNWATCHED_SECONDS, Indexer, open_workspaces
from greenroom.actors.knowledge.workspaces.places import workspace_name
from greenroom.runtime import Refusal, RuntimeClient
from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

ANN = Principal(agent_id="a", user="ann")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder of code with a document and something that is left out."""
    folder = (tmp_path / "code").resolve()
    (folder / "src").mkdir(parents=True)
    (folder / "src/boats.py").write_text("def drop_anchor():\n    return 'sand'\n")
    (folder / "README.md").write_text("# Boats\n\nThey lie in the harbour.\n")
    (folder / ".env").write_text("KEY=1\n")
    return folder


@asynccontextmanager
async def store(tmp_path: Path, clock: VirtualClock | None = None) -> AsyncIterator[RuntimeClient]:
    async with open_greenroom(
        tmp_path / "data", secrets=tmp_path / "secrets", embedder="none", options=FAST, clock=clock
    ) as runtime:
        yield runtime


async def workspace(runtime: RuntimeClient, folder: Path) -> CorpusRow:
    return await ensure_corpus(runtime, ANN, f"user:ann:{workspace_name(str(folder))}", str(folder))


async def state(runtime: RuntimeClient, row: CorpusRow) -> WorkspaceState:
    return await ask_corpus(runtime, ANN, DescribeWorkspace(corpus=row.full_name))


async def paths(runtime: RuntimeClient, row: CorpusRow) -> set[str]:
    page = await ask_corpus(runtime, ANN, ListDocuments(corpus=row.full_name))
    return {each.path for each in page.documents}


async def until(runtime: RuntimeClient, row: CorpusRow, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for the changes of a workspace until something holds."""
    with runtime.subscriber(0) as changes, trio.fail_after(PATIENCE):
        changes.add(f"greenroom://corpus/{row.full_name}", lambda _: True)
        while not await holds():
            await changes.next()


def names_in(folder: Path) -> list[str]:
    """Return what is in a folder; where case makes no difference, of two names one."""
    return [each.name for each in folder.iterdir()]


def moved(folder: Path, to: Path) -> Path:
    return folder.rename(to)


def needed(keeper: Indexer | None) -> Indexer:
    assert keeper is not None
    return keeper


@pytest.mark.quick
@pytest.mark.promise("code.kept")
async def test_a_folder_is_indexed_in_the_background_and_watched_from_then_on(
    code: Path, tmp_path: Path
) -> None:
    async with store(tmp_path) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        keeper = needed(workspaces.need(ANN, row, ()))
        assert workspaces.need(ANN, row, ()) is keeper
        await keeper.settled.wait()
        assert await paths(runtime, row) == {"src/boats.py", "README.md"}
        said = await state(runtime, row)
        assert (said.state, said.indexed, said.of) == ("watching", 2, 2)
        assert said.left_out == {"it may hold secrets": 1}

        async def follows() -> bool:
            return await paths(runtime, row) == {"src/boats.py", "src/oars.py"}

        (code / "src/oars.py").write_text("def row(): ...\n")
        (code / "README.md").unlink()
        await until(runtime, row, follows)
        found = await Agent(runtime, ANN).ask(SemanticSearch(query="drop_anchor", corpus=row.full_name))
        assert found.results[0].citation == "src/boats.py:1"


@pytest.mark.promise("code.kept")
async def test_what_an_ignore_file_says_holds_at_once(code: Path, tmp_path: Path) -> None:
    async with store(tmp_path) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        await needed(workspaces.need(ANN, row, ())).settled.wait()
        (code / ".greenroomignore").write_text("*.md\n")

        async def follows() -> bool:
            return await paths(runtime, row) == {"src/boats.py"}

        await until(runtime, row, follows)


@pytest.mark.promise("code.kept")
async def test_links_loops_and_names_that_differ_by_case_are_indexed_as_what_they_are(
    code: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("secret = 1\n")
    (code / "out.py").symlink_to(tmp_path / "outside.py")
    (code / "src/loop").symlink_to(code)
    (code / "src/Boats.py").write_text("class Boats: ...\n")
    (code / "src/ID_RSA").write_text("key\n")
    async with store(tmp_path) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        await needed(workspaces.need(ANN, row, ())).settled.wait()
        there = {f"src/{name}" for name in names_in(code / "src") if name.endswith("s.py")}
        assert await paths(runtime, row) == {*there, "README.md"}


@pytest.mark.promise("code.kept", "code.freshness")
async def test_a_folder_that_is_renamed_leaves_its_index_and_is_watched_no_more(
    code: Path, tmp_path: Path
) -> None:
    async with store(tmp_path) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        await needed(workspaces.need(ANN, row, ())).settled.wait()
        elsewhere = moved(code, code.parent / "elsewhere")

        async def is_left() -> bool:
            return (await state(runtime, row)).state == "unwatched"

        await until(runtime, row, is_left)
        said = await state(runtime, row)
        assert said.indexed == 2
        assert said.as_of is not None
        moved(elsewhere, code)
        (code / "README.md").unlink()
        keeper = needed(workspaces.need(ANN, row, ()))
        await keeper.settled.wait()
        assert await paths(runtime, row) == {"src/boats.py"}


@pytest.mark.promise("code.one-keeper")
async def test_another_process_goes_on_when_the_first_one_ends(code: Path, tmp_path: Path) -> None:
    async with store(tmp_path) as runtime, open_workspaces(runtime) as second:
        row = await workspace(runtime, code)
        async with open_workspaces(runtime) as first:
            await needed(first.need(ANN, row, ())).settled.wait()
            waiting = needed(second.need(ANN, row, ()))
            await waiting.settled.wait()
            assert (await state(runtime, row)).state == "watching"
        assert (await state(runtime, row)).state == "unwatched"

        async def is_kept() -> bool:
            return (await state(runtime, row)).state == "watching"

        await until(runtime, row, is_kept)


@pytest.fixture
def quick_clock() -> MockClock:
    """Time that passes faster than outside, where processes parse: none of them waits for it."""
    return MockClock(rate=20)


@pytest.mark.promise("code.one-keeper")
async def test_a_process_that_was_killed_holds_nobody_up_for_long(
    code: Path, tmp_path: Path, quick_clock: MockClock
) -> None:
    assert quick_clock.rate == 20
    async with store(tmp_path, VirtualClock()) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        killed = KeepWorkspace(corpus=row.full_name, keeper="killed", state="indexing", of=9)
        assert (await ask_corpus(runtime, ANN, killed)).is_asker
        workspaces.need(ANN, row, ())
        assert (await state(runtime, row)).of == 9

        async def is_kept() -> bool:
            return (await state(runtime, row)).state == "watching"

        with runtime.subscriber(0) as changes:
            changes.add(f"greenroom://corpus/{row.full_name}", lambda _: True)
            while not await is_kept():
                await changes.next()
        assert await paths(runtime, row) == {"src/boats.py", "README.md"}


@pytest.mark.promise("code.freshness")
@pytest.mark.skipif(sys.platform != "linux", reason="it is Linux that has room for so many watches")
async def test_where_the_system_tells_of_no_changes_all_is_looked_at_again_every_two_minutes(
    code: Path, tmp_path: Path, quick_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quick_clock.rate == 20

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room for watches")

    monkeypatch.setattr("inotify_simple.INotify.add_watch", full)
    async with store(tmp_path, VirtualClock()) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        await needed(workspaces.need(ANN, row, ())).settled.wait()

        async def is_left() -> bool:
            return (await state(runtime, row)).state == "unwatched"

        await until(runtime, row, is_left)
        left_at = trio.current_time()
        (code / "src/late.py").write_text("def late(): ...\n")

        async def is_found() -> bool:
            return "src/late.py" in await paths(runtime, row)

        await until(runtime, row, is_found)
        assert trio.current_time() - left_at > UNWATCHED_SECONDS - 5


@pytest.mark.promise("code.freshness")
async def test_of_more_files_than_are_taken_in_it_is_said_how_many_there_are(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_state, "MAX_FILES", 1)
    async with store(tmp_path) as runtime, open_workspaces(runtime) as workspaces:
        row = await workspace(runtime, code)
        await needed(workspaces.need(ANN, row, ())).settled.wait()
        said = await state(runtime, row)
        assert (said.indexed, said.of) == (1, 2)
        assert said.left_out["more than 1 files are there; name parts of it"] == 1


async def test_a_workspace_is_filled_from_its_folder_alone(code: Path, tmp_path: Path) -> None:
    async with store(tmp_path) as runtime:
        row = await workspace(runtime, code)
        texts = b'{"texts":[{"path":"src/boats.py","text":"what it is not"}],"corpus":"%s"}'
        request = parse_request(REQUESTS["ingest_documents"], texts % row.full_name.encode())
        with pytest.raises(Refusal, match=f"has what is in {code}"):
            await Agent(runtime, ANN).ask(request)


def test_source_code_comes_first_and_small_files_before_large_ones(code: Path) -> None:
    (code / "data.json").write_text("{}")
    (code / "large.py").write_text("x = 1\n" * 1_000)
    (code / "notes.txt").write_text("x")
    files, total = arrange(walk(str(code)), 9)
    found = [Path(each.path).name for each in files if isinstance(each, Found)]
    assert found == ["boats.py", "large.py", "README.md", "notes.txt", "data.json"]
    assert total == 5
    files, total = arrange(walk(str(code)), 2)
    assert (len(list(files)), total) == (3 + 1, 5)  # with the one that is left out
