"""Documents that are stored together: as if each had come alone, in few commits, and all or none of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import FAST
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    ListDocuments,
    Principal,
    PutDocument,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import MAX_PUTS, PutDocuments
from greenroom.actors.knowledge.ingest.batches import HOLD_SECONDS, MAX_CHARACTERS, Batches, ParsedFile
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job, Parsed, parse_job
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from greenroom.actors import Document
    from greenroom.runtime import SharedRuntime

ANN = Principal(agent_id="ann", user="ann")
WORDS = ("heron", "plover", "dunlin", "curlew", "godwit")


@asynccontextmanager
async def store(folder: Path) -> AsyncIterator[SharedRuntime]:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        yield runtime


def page(number: int, word: str, sections: int = 3) -> Document:
    parts = [([f"Part {place}"], f"{word} {number} in part {place}") for place in range(sections)]
    return document_of(f"{number:03}.md", parts)


def put(document: Document) -> PutDocument:
    return PutDocument(corpus="docs", document=document)


async def found(runtime: SharedRuntime, query: str) -> list[tuple[str, str]]:
    answer = await Agent(runtime, ANN).ask(SemanticSearch(corpus="docs", query=query, top_k=20))
    return [(each.source_file, str(each.section_title)) for each in answer.results]


async def is_sound(runtime: SharedRuntime, chunks: int) -> bool:
    verified = await runtime.query(VerifyMemories())
    return (verified.problems, verified.chunks) == ([], chunks)


@pytest.mark.parametrize("searched", [False, True], ids=["on-disk", "in-memory"])
async def test_a_batch_is_found_as_if_each_document_had_come_alone(tmp_path: Path, searched: bool) -> None:  # noqa: FBT001
    """New documents, changed ones that keep chunks, and one that comes twice."""
    first = [page(number, WORDS[number % 5], 1 + number % 4) for number in range(20)]
    second = [page(number, WORDS[(number + number % 2) % 5], 1 + number % 3) for number in range(10, 30)]
    second.append(page(11, "sandpiper", 2))
    answers: list[Any] = []
    for folder, size in ((tmp_path / "alone", 1), (tmp_path / "together", MAX_PUTS)):
        async with store(folder) as runtime:
            await ask_corpus(runtime, ANN, put(page(99, "knot")), make=True)
            if searched:
                await found(runtime, "knot")
            for some in (first, second):
                for at in range(0, len(some), size):
                    batch = PutDocuments(corpus="docs", puts=list(map(put, some[at : at + size])))
                    await ask_corpus(runtime, ANN, batch)
            listed = (await ask_corpus(runtime, ANN, ListDocuments(corpus="docs", limit=100))).documents
            assert await is_sound(runtime, sum(each.chunks for each in listed))
            answers.append([await found(runtime, word) for word in (*WORDS, "sandpiper", "knot", "part 2")])
            answers[-1].append([(each.path, each.digest, each.chunks) for each in listed])
        async with store(folder) as runtime:  # as the records say
            again = [await found(runtime, word) for word in (*WORDS, "sandpiper", "knot", "part 2")]
            assert again == answers[-1][:-1]
    assert answers[0] == answers[1]
    assert answers[0][5] == [("011.md", "Part 0"), ("011.md", "Part 1")]


@pytest.mark.promise("knowledge.whole")
async def test_nothing_is_stored_of_a_batch_with_a_document_that_is_refused(tmp_path: Path) -> None:
    async with store(tmp_path) as runtime:
        await ask_corpus(runtime, ANN, put(page(0, "heron")), make=True)
        bad = msgspec.structs.replace(page(2, "dunlin"), title="\ud800")
        batch = [put(page(0, "plover")), put(page(1, "plover")), put(bad)]
        with pytest.raises(Refusal, match="surrogates"):
            await ask_corpus(runtime, ANN, PutDocuments(corpus="docs", puts=batch))
        assert await found(runtime, "plover") == []
        assert {path for path, _ in await found(runtime, "heron")} == {"000.md"}
        assert await is_sound(runtime, 3)


class ParsersHere(Parsers):
    """Parse in this process; a file that says so comes out of its parser in a form that is refused."""

    async def parse_anew(self, job: Job) -> Parsed:
        """Parse a file."""
        await trio.lowlevel.checkpoint()
        parsed = parse_job(job)
        if b"refused" in job.data:
            assert parsed.document is not None
            return msgspec.structs.replace(
                parsed, document=msgspec.structs.replace(parsed.document, title="\ud800"), prepared=None
            )
        return parsed


def parsed(number: int, characters: int = 10) -> ParsedFile:
    document = document_of(f"{number}.md", [([], "x" * characters)])
    return ParsedFile(Job(document.path, "markdown", 0, b""), put(document), "", [])


@pytest.mark.usefixtures("autojump_clock")
async def test_a_batch_goes_when_it_is_full_or_has_waited_and_holds_up_what_comes_then() -> None:
    batches = Batches()
    for number in range(MAX_PUTS):
        await batches.add(parsed(number))
    with trio.move_on_after(1) as waiting:
        await batches.add(parsed(99))
    assert waiting.cancelled_caught
    now = trio.current_time()
    assert len(await batches.take()) == MAX_PUTS
    await batches.add(parsed(1, MAX_CHARACTERS))
    assert len(await batches.take()) == 1
    assert trio.current_time() == now
    await batches.add(parsed(2))
    assert len(await batches.take()) == 1
    assert trio.current_time() == now + HOLD_SECONDS
    await batches.add(parsed(3))
    await batches.close()
    assert [len(await batches.take()) for _ in range(2)] == [1, 0]
    assert trio.current_time() == now + HOLD_SECONDS


@pytest.mark.promise("documents.resumed")
async def test_an_ingest_takes_few_commits_and_leaves_out_only_what_is_refused(tmp_path: Path) -> None:
    docs = (tmp_path / "docs").resolve()
    docs.mkdir()
    for number in range(150):
        (docs / f"{number}.md").write_text(f"# Number {number}\n\n{'refused' if number == 70 else 'heron'}\n")
    async with store(tmp_path / "data") as runtime, open_ingestion(runtime, ANN, "docs") as ingestion:
        ingestion.parsers = ParsersHere()
        before = runtime.statistics().store.commits
        done = await ingestion.files([str(docs)])
        taken = runtime.statistics().store.commits - before
        assert (done.added, done.complete, sum(done.left_out.values())) == (149, True, 1)
        assert taken < 150
        assert await is_sound(runtime, 149)
        changed = docs / "7.md"
        changed.write_text("# Number 7\n\nplover\n")
        assert (await ingestion.changes([str(docs)], [str(changed)])).changed == 1
        assert [path for path, _ in await found(runtime, "plover")] == [str(changed)]
