"""The tools for code as the SDK's client has them over its pipes, in a linked work tree with a sub-module."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ResourceTemplateReference
from support.sdk_clients import ERAS, Mode, answer, read, served

DOCUMENT = "greenroom://document/{corpus}/{+path}"
FILES = {
    "src/anchor.py": "from lib.chain import haul\n\n\ndef drop_anchor(depth):\n    return haul(depth)\n",
    "src/ship.py": "from src.anchor import drop_anchor as drop\n\n\n"
    "class Ship:\n    def stop(self):\n        drop(3)\n",
    "tests/test_anchor.py": "from src.anchor import drop_anchor\n\n\ndef test_it():\n    drop_anchor(1)\n",
    ".gitignore": "build/\n",
    "build/made.py": "def drop_anchor(): pass\n",
    ".env": "KEY=1\n",
    ".env.test": "KEY=test\n",
}


def git(folder: Path, *arguments: str) -> None:
    names = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, env=environment)


def repository(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "begin")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A linked work tree, in which there are a sub-module and a further work tree."""
    repository(tmp_path / "chain", {"chain.py": "def haul(depth):\n    return depth\n"})
    repository(tmp_path / "main", FILES)
    git(tmp_path / "main", "submodule", "add", "-q", str(tmp_path / "chain"), "lib")
    git(tmp_path / "main", "commit", "-qm", "lib")
    tree = tmp_path / "tree"
    git(tmp_path / "main", "worktree", "add", "-q", str(tree))
    git(tree, "submodule", "update", "-q", "--init")
    git(tree, "worktree", "add", "-q", "-b", "other", str(tree / "other"))
    assert (tree / ".git").is_file()
    assert "/worktrees/" in (tree / "lib/.git").read_text()
    (tree / "build").mkdir()
    for path in ("build/made.py", ".env", ".env.test"):
        (tree / path).write_text(FILES[path])
    return tree.resolve()


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.promise(
    "code.found", "code.symbols", "code.exact", "code.similar", "code.completed", "code.roots"
)
async def test_a_client_finds_and_reads_code_of_a_linked_work_tree(
    tmp_path: Path, tree: Path, mode: Mode
) -> None:
    flags = ("--workspace", str(tree), "--read-secrets", ".env.test", "--tools", "universal-memory")
    async with (
        served(tmp_path, "stdio", *flags, "--embedder", "none") as connect,
        connect(mode, name="cursor") as client,
    ):
        indexed: dict[str, Any] = {}
        while indexed.get("state") != "watching":
            indexed = (await answer(client, "search_code_semantic", query="anchor"))["freshness"]
        assert (indexed["indexed"], indexed["of"]) == (4, 4)  # the sub-module once, the other work tree not

        await search(client)
        await relate(client)
        await read_files(client)
        await read_resources(client, tree)


async def search(client: Client) -> None:
    """Search by words, under every name."""
    for name in ("search_code_semantic", "omn_search_code_semantic", "omn_semantic_search"):
        found = await answer(
            client,
            name,
            query="where is the anchor dropped?",
            scope="src",
            limit=1,
            min_relevance=0.1,
            filters={"file_types": ["py"], "exclude_paths": ["tests"], "recency_weight": 0},
        )
        (first,) = found["results"]
        assert first["file_path"] == "src/anchor.py"
        assert {"relevance_score", "excerpt", "line_range", "last_modified"} <= first.keys()
        assert {"cache_hit", "search_time_ms", "freshness", "total_found"} <= found.keys()


async def relate(client: Client) -> None:
    """Find symbols, patterns and what files have to do with each other, under every name."""
    for name in ("symbol_search", "omn_symbol_search"):
        found = await answer(client, name, symbol="drop_anchor", kind="function", limit=20)
        assert [each["file_path"] for each in found["definitions"]] == ["src/anchor.py"]
        assert {(each["file_path"], each["scope"]) for each in found["references"]} == {
            ("src/ship.py", "exact"),
            ("tests/test_anchor.py", "exact"),
        }
    assert (await answer(client, "symbol_search", symbol="dropAnchr"))["matched"] == "fuzzy"
    used = await answer(client, "symbol_search", symbol="haul")
    assert [each["file_path"] for each in used["definitions"]] == ["lib/chain.py"]
    assert {each["scope"] for each in used["references"]} == {"exact"}
    assert not any("means" in each for each in used["references"])

    for name in ("similar_files", "omn_similar_files"):
        found = await answer(client, name, path="src/anchor.py")
        assert found["results"][0]["file_path"] == "tests/test_anchor.py"
    for name in ("dependency_search", "omn_dependency_search"):
        found = await answer(client, name, target="src/anchor.py", direction="both", depth=2, limit=9)
        assert [each["file_path"] for each in found["dependencies"]] == ["lib/chain.py"]
        assert {each["file_path"] for each in found["dependents"]} == {
            "src/ship.py",
            "tests/test_anchor.py",
        }
    for name, pattern, lines in (
        ("code_search", "function drop*", [4, 5]),
        ("omn_code_search", "calls haul", [5, 5]),
        ("code_search", "imports lib.chain", [1, 1]),
        ("code_search", r"regex ^def drop\w+", [4, 4]),
        ("code_search", "(return_statement (call) @found)", [5, 5]),
    ):
        found = await answer(client, name, pattern=pattern, scope="src", file_types=["py"], limit=5)
        assert [(each["file_path"], each["lines"]) for each in found["matches"]] == [("src/anchor.py", lines)]
    (inherits,) = (await answer(client, "code_search", pattern="class Sh*"))["matches"]
    assert inherits["symbol"] == "Ship"
    for name in ("outline", "omn_outline"):
        made = await answer(client, name, path="src", max_tokens=200)
        assert "def drop_anchor(depth)" in made["outline"]


async def read_files(client: Client) -> None:
    """Read files in parts and several, and what is refused."""
    for name in ("read_file", "omn_read_file", "omn1_read"):
        (file,) = (await answer(client, name, path="src/ship.py", symbol="Ship.stop", again=True))["files"]
        assert file["lines"] == [5, 6]
    files = (await answer(client, "read_file", paths=["src/anchor.py", "gone.py"]))["files"]
    assert [("text" in each, "error" in each) for each in files] == [(True, False), (False, True)]
    (again,) = (await answer(client, "read_file", path="src/anchor.py"))["files"]
    assert again["unchanged"]
    assert (await answer(client, "read_file", path=".env.test"))["files"][0]["text"] == "KEY=test\n"
    for path in (".env", ".git", "lib/.git", "../main/src/ship.py"):
        assert (await client.call_tool("read_file", {"path": path})).is_error


async def read_resources(client: Client, tree: Path) -> None:
    """Read the workspace and a document of it, and complete their names."""
    (corpus,) = await answer_of_listing(client)
    workspace = await read(client, f"greenroom://workspace/{corpus}")
    assert workspace["workspace"]["root"] == str(tree)
    assert workspace["freshness"]["state"] == "watching"
    reference = ResourceTemplateReference(uri=DOCUMENT)
    completed = await client.complete(
        reference, {"name": "path", "value": "anch"}, context_arguments={"corpus": corpus}
    )
    assert completed.completion.values == ["src/anchor.py"]
    assert not (await client.complete(reference, {"name": "path", "value": "a"})).completion.values
    document = await read(client, f"greenroom://document/{corpus}/src/anchor.py")
    assert "haul(depth)" in document["text"]
    for template in ("greenroom://workspace/{workspace}", "greenroom://corpus/{corpus}"):
        named = template.partition("{")[2].rstrip("}")
        completed = await client.complete(
            ResourceTemplateReference(uri=template), {"name": named, "value": ""}
        )
        assert completed.completion.values == [corpus]


async def answer_of_listing(client: Client) -> list[str]:
    """Return the names of the corpora that are listed as resources."""
    listed = (await client.list_resources()).resources
    return [each.name for each in listed if str(each.uri).startswith("greenroom://corpus/")]
