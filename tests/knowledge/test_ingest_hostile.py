"""Hostile folders: a call ends in its time, the server answers meanwhile, and its memory comes back."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no hints
import pytest
import trio
import trio.testing
from harness import PATIENCE, ServerProcess, server_process
from support import hostile_folders

from greenroom.actors import Principal, open_greenroom
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job, Parsed, parse_job
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers, open_parsers
from greenroom.actors.knowledge.ingest.run import Text, open_ingestion
from greenroom.runtime import RuntimeOptions

pytestmark = pytest.mark.usefixtures("real_parsers")

ANN = Principal(agent_id="planner", user="ann")
_KEPT = 40 << 20
"""What a server may have more than before."""
_TIME = 60_000
"""Milliseconds that a call has."""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = (tmp_path / "docs").resolve()
    folder.mkdir()
    (folder / "a.md").write_text("# Boats\n\nthey lie at anchor\n")
    return folder


def resident(server: ServerProcess) -> int:
    """Return how many bytes of memory it has, without what is mapped of the store."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    [line] = [each for each in status.splitlines() if each.startswith("RssAnon")]
    return int(line.split()[1]) << 10


async def ingested(server: ServerProcess, docs: Path) -> dict[str, Any]:
    """Return the answer of a call, during which others are answered."""
    client = server.client
    number = await client.send_call(
        "ingest_documents", {"paths": [str(docs)], "corpus": "docs"}, **{"greenroom/deadline_ms": _TIME}
    )
    while True:
        ping = await client.send_request("ping")
        while (answer := await client.receive())["id"] != ping:
            if answer["id"] == number:
                found: dict[str, Any] = msgspec.json.decode(answer["result"]["content"][0]["text"])
                assert (await client.receive())["id"] == ping
                return found
        await trio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.promise("documents.hostile", "documents.slow-files")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told there")
async def test_a_hostile_folder_ends_in_time_and_leaves_no_memory_and_no_process(
    tmp_path: Path, docs: Path
) -> None:
    for kind in (
        hostile_folders.large_texts,
        hostile_folders.bombs,
        hostile_folders.odd_files,
        hostile_folders.deep,
    ):
        kind(docs)
    async with server_process(tmp_path, "--embedder", "none", "--documents", str(docs)) as server:
        await server.client.initialize()
        await server.client.call("ingest_documents", texts=[{"path": "a.md", "text": "x"}], corpus="first")
        await server.client.call("semantic_search", query="x", corpus="first")
        before = resident(server)
        # On a busy machine a process that parses begins so late that a call reads nothing, and says so.
        while not (done := await ingested(server, docs))["added"]:
            assert not done["complete"], done
        # What was left is told: by its name, or as not looked at yet.
        names = {Path(each["path"]).name for each in done["named"]}
        assert {"pipe.md", "sparse.md", "loop"} <= names or not done["complete"]
        assert resident(server) - before < _KEPT
        left = psutil.Process(server.process.pid).children()
        _, alive = await trio.to_thread.run_sync(partial(psutil.wait_procs, left, timeout=PATIENCE))
        assert not alive
        while not (await ingested(server, docs / "a.md"))["complete"]:
            pass
        found = await server.client.call("semantic_search", query="anchor", corpus="docs")
        assert found["results"][0]["source_file"] == f"{docs}/a.md"


@pytest.mark.promise("documents.hostile")
async def test_a_text_of_very_many_characters_is_made_ready_where_it_is_parsed() -> None:
    # So it is not the server's processor that analyses it, for which other requests would wait.
    async with open_parsers() as parsers:
        found = await parsers.parse(Job("a.txt", "text", 0, b"word " * (400 << 10)))
    assert found.document is not None
    assert found.prepared is not None


class AtOnce(Parsers):
    """Parses here, and leaves the rest to whoever stores it."""

    async def parse(self, job: Job) -> Parsed:
        return msgspec.structs.replace(parse_job(job), prepared=None)


@pytest.mark.promise("documents.slow-files")
async def test_a_call_ends_in_its_time_also_while_a_document_is_put_in(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    options = RuntimeOptions(slice_seconds=0)
    done: list[DocumentsIngested] = []
    async with (
        open_greenroom(
            tmp_path / "data", secrets=tmp_path / "secrets", embedder="none", options=options
        ) as to,
        open_ingestion(to, ANN, "docs") as ingestion,
        trio.open_nursery() as nursery,
    ):
        ingestion.parsers = AtOnce()

        async def ingest() -> None:
            with trio.fail_after(20):
                done.append(await ingestion.texts([Text("a.txt", hostile_folders.words(1 << 20).decode())]))

        nursery.start_soon(ingest)
        while not done:  # a tenth of a second for each step
            await trio.lowlevel.checkpoint()
            mock_clock.jump(0.1)
    assert [(each.added, each.complete) for each in done] == [(0, False)]


def parsing() -> list[psutil.Process]:
    """Return the processes that parse for this one."""
    return [
        each
        for each in psutil.Process().children()
        if any("parser_process" in word for word in each.cmdline())
    ]


@pytest.mark.promise("documents.hostile")
async def test_a_file_whose_process_is_killed_is_tried_once_more() -> None:
    async with open_parsers() as parsers:
        await parsers.parse(Job("a.md", "markdown", 0, b"text"))
        [process] = parsing()
        process.kill()  # as where another program takes all memory
        again = await parsers.parse(Job("b.md", "markdown", 0, b"text of another"))
        assert again.document is not None
        assert parsing() != [process]


@pytest.mark.slow
@pytest.mark.promise("documents.hostile")
async def test_a_process_that_has_much_memory_after_a_file_is_given_back() -> None:
    async with open_parsers() as parsers:
        small = await parsers.parse(Job("a.md", "markdown", 0, b"text"))
        assert not small.is_last
        assert len(parsing()) == 1
        large = await parsers.parse(Job("b.txt", "text", 0, hostile_folders.words(10 << 20)))
        assert large.is_last
        assert parsing() == []
