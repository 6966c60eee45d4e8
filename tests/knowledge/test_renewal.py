"""What reads files is missing, appears, becomes newer or older again: what depends on it follows, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from harness import secrets_of
from support.agents import FAST
from support.commands import Server, run_on_store, serving
from support.corpora import pdf_file
from support.packages import deadly_grammar, environment
from support.workspaces import folder_of_code

from greenroom.actors import ListDocuments, Principal, ask_corpus, open_greenroom
from greenroom.actors.knowledge.corpora.requests.corpus_requests import DocumentListed
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.parsing.parsers import open_parsers
from greenroom.actors.knowledge.workspaces.places import workspace_name

pytestmark = [pytest.mark.slow, pytest.mark.promise("code.renewed")]

ANN = Principal(agent_id="a", user="ann")
NEWER = "tree-sitter-python=99.1 pypdf=99.1 ahocorasick-rs=99.1"
ALL = "tree_sitter ahocorasick_rs pypdf re2"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder without links on its way."""
    return tmp_path.resolve()


@contextmanager
def served(home: Path, hidden: str = "", versions: str = "") -> Iterator[Server]:
    """A server of ann on the folder of code."""
    who = ("--user", "ann", "--embedder", "none", "--tools", "all", "--workspace", str(home / "code"))
    more = environment(home, hidden=hidden, versions=versions)
    with serving(home, *who, errors=home / "stderr", **more) as server:
        yield server
        server.end()


def indexed(server: Server) -> dict[str, Any]:
    """Search until the index is as the folder is; return that answer."""
    while (found := server.call("search_code_semantic", query="anchor"))["freshness"]["state"] != "watching":
        assert found["success"], found
    return found


def until_known(server: Server) -> dict[str, Any]:
    """Look for symbols until those of all files are known; return that answer."""
    while "partial" in (found := server.call("symbol_search", symbol="*", limit=100)):
        assert found["success"], found
    return found


def until_changed(server: Server, corpus: str, after: int) -> None:
    """Search a corpus until something was put into it after a time in microseconds."""
    begin = at = datetime.fromtimestamp(after / 1e6, UTC)
    while at <= begin:
        indexed(server)
        found = server.call("semantic_search", query="anchor", corpus=corpus)
        at = datetime.fromisoformat(found["freshness"]["indexed_at"] or begin.isoformat())


async def documents(home: Path, corpus: str) -> dict[str, DocumentListed]:
    """Return what a store that nobody uses has."""
    async with open_greenroom(
        home / "store", secrets=secrets_of(home), embedder="none", options=FAST
    ) as runtime:
        page = await ask_corpus(runtime, ANN, ListDocuments(corpus=corpus))
    return {each.path: each for each in page.documents}


def made(found: dict[str, DocumentListed]) -> dict[str, tuple[str, int]]:
    """Return which reader made each document, and when."""
    return {path: (each.reader, each.indexed_at) for path, each in found.items()}


def workspace(home: Path) -> str:
    return f"user:ann:{workspace_name(str(home / 'code'))}"


# -- workspaces --------------------------------------------------------------------------------------


async def test_symbols_are_known_once_the_parser_is_installed_and_files_are_read_again_once(
    home: Path,
) -> None:
    code = folder_of_code(home, 3)
    (code / "ship.go").write_text("package ship\nfunc Sail() {}\n")
    (code / "notes.md").write_text("# Notes\n\nOf the anchor.\n")
    with served(home, hidden="tree_sitter") as server:
        indexed(server)
        found = server.call("symbol_search", symbol="part_1")
        assert found["definitions"] == []
        assert "3 Python files and 1 Go file" in found["partial_reason"]
        assert "pip install tree-sitter tree-sitter-python tree-sitter-go" in found["partial_reason"]
    before = made(await documents(home, workspace(home)))
    with served(home) as server:
        found = until_known(server)
        assert {each["symbol"] for each in found["definitions"]} == {"part_0", "part_1", "part_2", "Sail"}
        assert "partial" not in server.call("dependency_search", target="part_1.py")
    after = made(await documents(home, workspace(home)))
    assert before.pop("notes.md") == after["notes.md"]
    assert all(after[path][1] > at for path, (_, at) in before.items())
    with served(home) as server:
        indexed(server)
        until_known(server)
    assert made(await documents(home, workspace(home))) == after


async def test_a_newer_grammar_reads_files_again_and_what_it_made_stays_with_an_older_one(
    home: Path,
) -> None:
    code = folder_of_code(home, 1)
    with served(home) as server:
        indexed(server)
    first = made(await documents(home, workspace(home)))
    with served(home, versions=NEWER) as server:
        until_changed(server, workspace(home), first["part_0.py"][1])
    newer = made(await documents(home, workspace(home)))
    assert newer["part_0.py"][0].endswith(" 99.1")
    assert newer["part_0.py"][1] > first["part_0.py"][1]
    for hidden in ("", "tree_sitter"):
        with served(home, hidden=hidden) as server:
            indexed(server)
            assert server.call("symbol_search", symbol="part_0")["definitions"]
        assert made(await documents(home, workspace(home))) == newer
    (code / "part_0.py").write_text("def part_9():\n    return 'anchor'\n")
    with served(home, hidden="tree_sitter") as server:
        indexed(server)
        assert "1 Python file " in server.call("symbol_search", symbol="part_9")["partial_reason"]
    with served(home) as server:
        assert [each["symbol"] for each in until_known(server)["definitions"]] == ["part_9"]


async def test_a_server_that_is_killed_while_files_are_read_again_leaves_the_rest_to_the_next(
    home: Path,
) -> None:
    folder_of_code(home, 12)
    with served(home, hidden="tree_sitter") as server:
        indexed(server)
    with served(home) as server:
        while not server.call("symbol_search", symbol="part_*")["definitions"]:
            pass
        server.process.kill()
        server.process.wait()
    midway = made(await documents(home, workspace(home)))
    with served(home) as server:
        assert len(until_known(server)["definitions"]) == 12
    after = made(await documents(home, workspace(home)))
    done = {path: each for path, each in midway.items() if not each[0].endswith(" 0")}
    assert done
    assert {path: after[path] for path in done} == done


# -- grammars that kill ------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.promise("code.crash")
@pytest.mark.parametrize("body", ["import os; os.kill(os.getpid(), 9)", "raise ValueError('another ABI')"])
async def test_a_grammar_that_dies_costs_the_files_of_its_language_their_symbols_alone(
    home: Path, body: str
) -> None:
    code = folder_of_code(home, 2)
    (code / "ship.go").write_text("package ship\nfunc Sail() {}\n")
    environment(home)
    deadly_grammar(home, "tree_sitter_go", body)
    with served(home) as server:
        indexed(server)
        found = server.call("symbol_search", symbol="*")
        assert {each["symbol"] for each in found["definitions"]} == {"part_0", "part_1"}
        assert found["partial_reason"] == (
            "the symbols of 1 Go file are not known: what reads Go failed, so they were read as text"
        )
        assert "Sail" in server.call("read_file", path="ship.go")["files"][0]["text"]
        assert server.call("search_code_semantic", query="Sail")["results"][0]["file_path"] == "ship.go"
        for tool, arguments in (("read_file", {"symbol": "Sail"}), ("outline", {})):
            server.send_call(tool, path="ship.go", **arguments)
            assert "what reads Go failed" in server.receive()["result"]["content"][0]["text"]
    before = made(await documents(home, workspace(home)))
    with served(home) as server:
        indexed(server)
    assert made(await documents(home, workspace(home))) == before


async def test_a_grammar_that_hangs_costs_its_file_so_many_seconds_and_its_symbols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    deadly_grammar(tmp_path, "tree_sitter_go", "while True: pass")
    async with open_parsers(seconds=4) as parsers:
        job = Job("ship.go", "code", 0, b"package ship\nfunc Sail() {}\n", is_source=True)
        parsed = await parsers.parse(job)
        assert parsed.facts is None
        assert parsed.document is not None
        assert "Sail" in parsed.document.chunks[0].text
        other = await parsers.parse(Job("a.py", "code", 0, b"def f(): ...\n", is_source=True))
        assert other.facts is not None


# -- documents ---------------------------------------------------------------------------------------


async def test_pdf_files_and_names_are_read_after_what_reads_them_was_installed(home: Path) -> None:
    folder_of_code(home, 1)
    docs = home / "docs"
    docs.mkdir()
    (docs / "a.pdf").write_bytes(pdf_file("The anchor lies in the sand"))
    (docs / "b.md").write_text("# Stores\n\nRedis keeps them. Redis is there.\n")
    (docs / "package.json").write_text('{"dependencies": {"redis": "^5"}}')
    without = environment(home, hidden=ALL)
    done = run_on_store(home, "ingest", str(docs), "--user", "ann", "--embedder", "none", **without)
    assert (
        "a.pdf is left out: reading PDF files takes pypdf, not installed here: pip install pypdf"
        in done.stderr
    )
    with served(home, hidden=ALL) as server:
        said = server.call("find_entity", vendor_filter="redis")
        assert said["partial_reason"] == (
            "finding names of entities takes ahocorasick-rs, not installed here: pip install ahocorasick-rs"
        )
        server.send_call("define_entities", entities=[{"name": "Redis", "type": "library"}])
        assert "pip install ahocorasick-rs" in server.receive()["result"]["content"][0]["text"]
    with served(home) as server:
        while not (found := server.call("semantic_search", query="anchor sand"))["results"]:
            pass
        assert found["results"][0]["citation"] == f"{docs}/a.pdf#page=1"
        while not (found := server.call("find_entity", vendor_filter="redis"))["entities"]:
            pass
        while found["entities"][0]["mention_count"] < 3:
            found = server.call("find_entity", vendor_filter="redis")
    first = made(await documents(home, "default"))
    assert first[f"{docs}/a.pdf"][0].startswith("pdf 1 ")
    with served(home, versions=NEWER) as server:
        until_changed(server, "default", max(at for _, at in first.values()))
    newer = made(await documents(home, "default"))
    assert newer.pop(f"{docs}/a.pdf")[0] == "pdf 1 99.1"
    assert newer.items() <= first.items()
    for hidden in (ALL, ""):
        more = environment(home, hidden=hidden)
        done = run_on_store(home, "ingest", str(docs), "--user", "ann", "--embedder", "none", **more)
        assert "3 unchanged" in done.stdout
    assert made(await documents(home, "default"))[f"{docs}/a.pdf"][0] == "pdf 1 99.1"
