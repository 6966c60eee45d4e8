"""Workspaces of real servers while things go wrong: disks that hang, grammars that crash, hostile files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # has no types
import pytest
import trio
from harness import PROGRAM, server_process
from support.effort import by_night
from support.namespaces import hanging, may_hang, may_mount, mounted_twice
from support.workspaces import WITHOUT_VECTORS, folder_of_code, paths, search, watched

from greenroom.testing import McpClient

FLAGS = WITHOUT_VECTORS


async def found_at_last(client: McpClient, word: str, **arguments: Any) -> set[str]:
    """Search until something is found."""
    while not (found := paths(await search(client, word, **arguments))):
        pass
    return found


@pytest.mark.quick
@pytest.mark.promise("code.slow-disk")
@pytest.mark.skipif(
    not may_hang(),
    reason="no FUSE in namespaces here: a disk that hangs is NOT checked",
)
async def test_a_disk_that_hangs_holds_up_neither_answers_nor_other_folders_nor_an_end(
    tmp_path: Path,
) -> None:
    code = folder_of_code(tmp_path)
    slow = folder_of_code(tmp_path / "slow")
    (slow / "hung").mkdir()
    serve = [*PROGRAM, "serve", "--data", str(tmp_path / "store"), *FLAGS]
    serve += ["--workspace", str(code), "--workspace", str(slow)]
    async with server_process(tmp_path, program=[*hanging(slow / "hung"), *serve]) as server:
        await server.client.initialize()
        said = (await search(server.client, scope=str(slow)))["freshness"]
        assert said["state"] == "indexing"
        await watched(server.client)
        (code / "late.py").write_text("def kelp(): ...\n")
        assert await found_at_last(server.client, "kelp") == {"late.py"}
        read = await server.client.call("read_file", path=f"{slow}/part_1.py")
        assert read["files"][0]["total_lines"] == 2
        assert (await search(server.client, scope=str(slow)))["freshness"]["state"] == "indexing"
        await server.client.end_input()
        assert await server.process.wait() == 0


@pytest.mark.promise("code.roots")
@pytest.mark.skipif(not may_mount(), reason="no namespaces here: what is mounted twice is NOT checked")
async def test_what_is_our_own_is_not_read_by_another_name_either(tmp_path: Path) -> None:
    """As it would be where case makes no difference, of which there is no disk here."""
    code = folder_of_code(tmp_path)
    (code / "src/mirror").mkdir(parents=True)
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    program = mounted_twice(store, code / "src/mirror")
    serve = [*PROGRAM, "serve", "--data", str(store), *FLAGS, "--workspace", str(code)]
    async with server_process(tmp_path, program=[*program, *serve]) as server:
        await server.client.initialize()
        (store / "note.py").write_text("def kelp(): ...\n")
        assert (await watched(server.client))["freshness"]["indexed"] == 5
        for path in ("src/mirror/note.py", "src/mirror/data.mdb", "src/mirror"):
            said = await server.client.call("read_file", path=path)
            assert (said["code"], "belongs to Greenroom" in said["error"]) == ("PERMISSION_DENIED", True)
        (store / "late.py").write_text("def reef(): ...\n")
        (code / "late.py").write_text("def tide(): ...\n")
        assert await found_at_last(server.client, "tide") == {"late.py"}
        assert paths(await search(server.client, "reef")) == set()


@pytest.mark.promise("code.crash")
@pytest.mark.parametrize("death", ["os.abort()", "ctypes.string_at(0)", "os._exit(0)"])
async def test_a_grammar_that_crashes_its_process_costs_the_syntax_of_its_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    code = folder_of_code(tmp_path)
    (code / "a.go").write_text('package boats\n\nfunc Heron() { weigh("anchor") }\n')
    (code / "b.go").write_text('package boats\n\nfunc Stork() { weigh("anchor") }\n')
    grammar = tmp_path / "grammars/tree_sitter_go"
    grammar.mkdir(parents=True)
    (grammar / "__init__.py").write_text(f"import ctypes, os\ndef language():\n    {death}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(grammar.parent), *filter(None, sys.path)]))
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        found = await watched(server.client)
        assert (found["freshness"]["indexed"], found["freshness"]["of"]) == (7, 7)
        assert paths(await search(server.client, "heron")) == {"a.go"}
        symbols = await server.client.call("symbol_search", symbol="part_3")
        assert [each["file_path"] for each in symbols["definitions"]] == ["part_3.py"]
        assert (await server.client.call("symbol_search", symbol="Heron"))["definitions"] == []
        strings = await server.client.call("code_search", pattern="string anchor*")
        assert (len(strings["matches"]), strings["unread"]) == (5, 2)
        (code / "c.py").write_text("def gull(): ...\n")
        assert await found_at_last(server.client, "gull") == {"c.py"}


@pytest.mark.quick
@pytest.mark.promise("code.editors")
async def test_whatever_two_editors_write_at_once_the_index_ends_as_the_files_are(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path, files=0)
    program = [sys.executable, "-c", EDITOR, str(code)]
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        editors = [
            await trio.lowlevel.open_process([*program, str(number)], stdin=subprocess.PIPE)
            for number in range(2)
        ]
        seen: set[frozenset[str]] = set()
        while len(seen) < 10:  # until it was taken in so many times
            seen.add(frozenset(paths(await search(server.client, "heronka", limit=50))))
            for each in editors:
                assert each.stdin is not None
                await each.stdin.send_all(b"\n")
        for each in editors:
            assert each.stdin is not None
            await each.stdin.aclose()
            assert await each.wait() == 0
        await watched(server.client)
        files = files_of(code)
        assert files
        for word, names in words_of(code).items():
            found = await search(server.client, word, limit=50)
            assert paths(found) == names, word
            assert found["freshness"]["state"] == "watching"
        assert found["freshness"]["indexed"] == len(files)


EDITOR = """
import contextlib, pathlib, random, sys
folder, number = pathlib.Path(sys.argv[1]), sys.argv[2]
draw = random.Random(number)
words = [bird + end for bird in ("heron", "stork", "gull", "plover", "dunlin") for end in ("ka", "zu", "mo")]

def edit(step):
    file = folder / draw.choice(["", "a", "b/c"]) / f"{draw.randrange(12)}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"def {draw.choice(words)}():\\n    return {step}\\n"
    match draw.randrange(5):
        case 0:
            new = file.with_name(f"{file.name}.{number}~")
            new.write_text(text)
            new.replace(file)
        case 1:
            with file.open("w") as out:
                for character in text:
                    out.write(character)
                    out.flush()
        case 2:
            with file.open("a") as out:
                out.write(text)
        case 3:
            file.unlink(missing_ok=True)
        case 4:
            (folder / "a").rename(folder / "b" / f"was_a_{number}_{draw.randrange(3)}")

for step, _ in enumerate(sys.stdin):
    with contextlib.suppress(OSError):  # the other one was there before
        edit(step)
with contextlib.suppress(OSError):
    (folder / "a").rename(folder / f"end_{number}")
"""
"""Writes in place, in pieces, by renaming, adds, removes, and moves folders."""


def files_of(code: Path) -> set[str]:
    """Return which files there are that are indexed."""
    return {str(each.relative_to(code)) for each in code.rglob("*") if each.is_file() and each.stat().st_size}


def words_of(code: Path) -> dict[str, set[str]]:
    """Return which files have which names."""
    found: dict[str, set[str]] = {}
    for name in files_of(code):
        for word in re.findall(r"def ([a-z]{6,})\(", (code / name).read_text()):
            found.setdefault(word, set()).add(name)
    return found


MiB = 1 << 20
MANY = 100_000


@pytest.mark.promise("code.many", "code.freshness")
async def test_a_hundred_thousand_files_are_answered_at_once_and_take_little_memory(tmp_path: Path) -> None:
    """Links to empty files by day, since all of it is walked, read and watched all the same."""
    code = folder_of_code(tmp_path)
    make_many(code, written=by_night(20_000, by_day=500))
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        before = memory_of(server.process.pid)
        first = await search(server.client)
        assert first.get("partial", False) == (first["freshness"]["state"] == "indexing")
        seen = {first["freshness"]["of"]}
        while (said := (await search(server.client))["freshness"])["state"] != "watching":
            seen.add(said["of"])
        assert MANY + 5 in seen or "partial" not in first  # how many there are is known before they were read
        assert said["indexed"] == by_night(20_000, by_day=500) + 5
        assert memory_of(server.process.pid) - before < 250 * MiB
        (code / "late.py").write_text("def kelp(): ...\n")
        assert await found_at_last(server.client, "kelp") == {"late.py"}


def make_many(code: Path, written: int) -> None:
    """Make files in a hundred folders: some with a line of code, else links to an empty one."""
    for folder in range(100):
        (code / f"many/{folder}").mkdir(parents=True)
        (code / f"many/{folder}/0.py").touch()
    for number in range(100, MANY):
        file = code / f"many/{number % 100}/{number}.py"
        if number < written + 100:
            file.write_text(f"x{number} = 1\n")
        else:
            file.hardlink_to(code / f"many/{number % 100}/0.py")


def memory_of(pid: int) -> int:
    """Return the bytes of memory that are a process's own, at their most; where no system tells that, now."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return int(psutil.Process(pid).memory_info().rss)
    return sum(int(found) << 10 for found in re.findall(r"VmHWM:\s+(\d+)", status.read_text()))


@pytest.mark.quick
@pytest.mark.promise("code.hostile")
async def test_huge_deep_broken_and_binary_files_cost_nothing_but_themselves(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    hostile = {
        "huge.py": b"# generated by a program, do not edit\n" + b"x = 1  # sandbank\n" * (50 * MiB // 18),
        "huge.json": b'{"sandbank": [' + b"1," * (25 * MiB) + b"1]}",
        "large.py": b"def sandbank(): return 1\n" * (3 * MiB // 25),
        "deep.py": b"x = " + b"(" * 200_000,
        "deep.js": b"[" * 500_000,
        "deep.json": b'{"a":' * 500_000,
        "deep.rs": b"mod a {" * 200_000,
        "broken.py": b"def (:\n    pass\n\n\ndef whimbrel():\n    return 1\n",
        "nul.py": b"def dunlin():\x00 return 1\n",
        "nul_late.py": b"def dunlin(): return 1\n" * 1_000 + b"\0",
        "wide.py": "def größe(): ...\n".encode("utf-16"),
        "noise.py": bytes(range(128, 256)) * 1_000,
        "empty.py": b"",
        "line.min.js": b"var sandbank=1;" * MiB,
        "long.js": b"var sandbank=1;" * 100_000,
    }
    for name, data in hostile.items():
        (code / name).write_bytes(data)
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        assert paths(await search(server.client, "whimbrel")) == {"broken.py"}
        assert paths(await search(server.client, "sandbank")) == {"large.py"}
        assert paths(await search(server.client, "größe")) == {"wide.py"}
        symbols = await server.client.call("symbol_search", symbol="whimbrel")
        assert [each["file_path"] for each in symbols["definitions"]] == ["broken.py"]
        listed = (await server.client.call("list_corpora"))["corpora"]
        (corpus,) = [each for each in listed if each.get("root") == str(code)]
        said = await server.client.request(
            "resources/read", {"uri": f"greenroom://workspace/{corpus['corpus']}"}
        )
        text = said["result"]["contents"][0]["text"]
        for reason in ("a program made it", "the limit is 16,777,216", "it is no text", "it is empty"):
            assert reason in text
        for name in ("huge.py", "nul.py", "long.js"):
            (file,) = (await server.client.call("read_file", paths=[name]))["files"]
            assert bool(file.get("text")) != (name == "nul.py")
        assert (await watched(server.client))["freshness"]["indexed"] >= 10
