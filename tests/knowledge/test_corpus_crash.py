"""Corpora when a process is killed or the disk is full: each document whole or not there, and once."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from data.make_corpora import CORPORA
from harness import clean_environment
from support.corpora import document_of
from support.killed_files import FILES, SECTIONS

from greenroom.actors import (
    Agent,
    DocumentText,
    IngestDocuments,
    ListCorpora,
    Principal,
    PutDocument,
    RemoveDocuments,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import RuntimeOptions, StorageFullError

if TYPE_CHECKING:
    from greenroom.actors import Document
    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann")
PAGES = 5
"""Pages of `support/killed_rematch.py`, each with one name once and the other twice."""


@pytest.mark.slow
@pytest.mark.promise("knowledge.whole")
def test_an_ingest_that_is_killed_at_any_commit_left_whole_documents_and_can_go_on(tmp_path: Path) -> None:
    """At every commit, before or after it, in turns: of documents that come alone, and of two batches."""
    lines = _killed("killed_ingest.py", tmp_path)
    assert len(lines) > 8
    whole = [f"{number}.md" for number in range(7)]
    for line in lines:
        assert line["after"] == whole
        assert line["before"] in [whole, *([f"{n}.md" for n in range(some)] for some in (*range(5), 8))]


@pytest.mark.slow
@pytest.mark.promise("knowledge.ids", "store.versions")
def test_every_corpus_gets_its_prefix_after_a_kill_at_any_commit_of_an_upgrade(tmp_path: Path) -> None:
    lines = _killed("killed_prefixes.py", tmp_path)
    assert len(lines) > 2 * len(CORPORA)
    for line in lines:
        assert len(set(line["prefixes"]) - {0}) == len(CORPORA)
        assert line["small"] == "VALIDATION_ERROR"


@pytest.mark.slow
@pytest.mark.promise("entities.no-trace", "entities.mentions")
def test_looking_for_names_goes_on_after_a_kill_at_any_commit_and_counts_once(tmp_path: Path) -> None:
    """Names come, change and go, with documents that take several steps each time."""
    lines = _killed("killed_rematch.py", tmp_path)
    assert len(lines) > 9
    for line in lines:
        assert (line["traces"], line["problems"], line["problems_after"]) == ([], [], []), line
        assert sorted(line["counts"]) == line["known"]
    # How many commits a step takes differs between runs, so not each is later than the one before.
    wanted = [{"Redis": PAGES}, {"Valkey": 2 * PAGES}, {}]
    assert all(line["counts"] in wanted for line in lines)
    assert all(any(line["counts"] == counts for line in lines) for counts in wanted)


def _killed(program: str, folder: Path) -> list[dict[str, Any]]:
    """Return what a program says of each of its commits at which it was killed."""
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(tests / "support" / program), str(folder)],
        env={**clean_environment(folder), "PYTHONPATH": str(tests)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["killed"] for line in lines] == [True] * (len(lines) - 1) + [False]
    return lines


@pytest.mark.slow
@pytest.mark.promise("knowledge.whole", "documents.resumed")
def test_a_folder_whose_ingest_is_killed_at_any_commit_is_there_once_when_it_has_gone_on(
    tmp_path: Path,
) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(tests / "support" / "killed_files.py"), str(tmp_path)],
        env={**clean_environment(tmp_path), "PYTHONPATH": str(tests)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["killed"] for line in lines] == [True] * (len(lines) - 1) + [False]
    assert len(lines) > 3
    for line in lines:
        assert line["before"] == [SECTIONS] * len(line["before"])
        assert line["done"] == [FILES - len(line["before"]), len(line["before"]), True]
        assert line["problems"] == []
        assert line["found"] == [[SECTIONS, SECTIONS]] * FILES


@pytest.mark.slow
@pytest.mark.promise("code.killed")
def test_a_workspace_whose_keeper_is_killed_at_any_commit_is_as_its_folder_when_another_goes_on(
    tmp_path: Path,
) -> None:
    """While it is indexed, and while a file is changed, one removed and one added."""
    lines = _killed("killed_workspace.py", tmp_path)
    assert len(lines) > 9
    for line in lines:
        assert line["state"] == "off", line  # nobody is believed to watch
        assert line["problems"] == []
        assert line["documents"] == line["files"]
        assert line["symbols"] == line["wanted"]


def _page(number: int) -> Document:
    said = [sha256(b"%d %d" % (number, word)).hexdigest()[:8] for word in range(400)]
    parts = [
        ([f"Section {place}"], f"word{number}x{place} {' '.join(said[100 * place : 100 * place + 100])}")
        for place in range(4)
    ]
    return document_of(f"{number}.md", parts)


async def _fill(runtime: RuntimeClient) -> int:
    """Put pages in until there is no room; return how many are there."""
    count = 0
    with suppress(StorageFullError):
        while True:
            await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=_page(count)), make=True)
            count += 1
    return count


@pytest.mark.promise("knowledge.whole")
async def test_a_full_store_keeps_what_it_has_and_takes_more_when_something_was_removed(
    tmp_path: Path,
) -> None:
    options = RuntimeOptions(durability="process", max_size=8 << 20, min_free=0)
    async with open_greenroom(tmp_path, embedder="none", options=options) as runtime:
        agent = Agent(runtime, ANN)
        count = await _fill(runtime)
        assert count > 3
        (corpus,) = (await agent.ask(ListCorpora())).corpora
        assert (corpus.documents, corpus.chunks) == (count, 4 * count)
        verified = await runtime.query(VerifyMemories())
        assert (verified.chunks, verified.problems) == (4 * count, [])
        found = await agent.ask(SemanticSearch(query="word1x3", corpus="docs"))
        assert found.results[0].source_file == "1.md"
        gone = [f"{number}.md" for number in range(count - 1)]
        while gone:
            asked = RemoveDocuments(corpus="docs", paths=[*gone, "unknown"])
            answer = await ask_corpus(runtime, ANN, asked)
            assert answer.removed
            gone = [path for path in gone if path not in answer.removed]
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=_page(count)))
        (corpus,) = (await agent.ask(ListCorpora())).corpora
        assert corpus.documents == 2
        assert (await runtime.query(VerifyMemories())).problems == []


@pytest.mark.slow
@pytest.mark.promise("documents.removed")
async def test_whatever_is_to_be_removed_from_a_store_that_is_nearly_full_is_removed(tmp_path: Path) -> None:
    options = RuntimeOptions(durability="process", max_size=6 << 20, min_free=0)
    async with open_greenroom(tmp_path, embedder="none", options=options) as runtime:
        count = await _fill(runtime)
        names = [f"{number}.md" for number in range(count)]
        at_once = await ask_corpus(runtime, ANN, RemoveDocuments(corpus="docs", paths=names))
        assert at_once.left  # there is no room to remove them in one commit
        last = DocumentText("last.md", "nothing but this")
        done = await Agent(runtime, ANN).ask(IngestDocuments(texts=[last], remove=names, corpus="docs"))
        assert (done.added, done.removed) == (1, count - len(at_once.removed))
        (corpus,) = (await Agent(runtime, ANN).ask(ListCorpora())).corpora
        assert corpus.documents == 1
