"""Claude's memory tool: what the SDK's own tool on files does, and what others see of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adapters import CHECKS, Case, Check, database

from greenroom.actors import Database, MemoryService, Principal, SearchService
from greenroom.adapters.anthropic import AsyncGreenroomMemoryTool, GreenroomMemoryTool

pytestmark = pytest.mark.slow

ADA = Principal(agent_id="claude", user="ada")
BOB = Principal(agent_id="claude", user="bob")


async def write(opened: Database, text: str) -> None:
    """Insert a line by a read and a write, so that two writers meet in the one file."""
    tool = AsyncGreenroomMemoryTool(opened, ADA)
    if text == "the first":
        await tool.call({"command": "create", "path": "/memories/log", "file_text": f"{text}\n"})
    else:
        asked = {"command": "insert", "path": "/memories/log", "insert_line": 0, "insert_text": text}
        await tool.call(asked)


async def read(opened: Database) -> list[str]:
    shown = await AsyncGreenroomMemoryTool(opened, ADA).call({"command": "view", "path": "/memories/log"})
    return [line.split("\t")[1] for line in str(shown).split("\n")[1:-1]]


@pytest.mark.promise("adapters.anthropic-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with database(tmp_path_factory.mktemp("anthropic")) as opened:
        yield opened


@pytest.fixture
def tool(opened: Database) -> GreenroomMemoryTool:
    tool = GreenroomMemoryTool(opened, ADA)
    tool.clear_all_memory()
    return tool


def said(tool: Any, **asked: Any) -> str:
    try:
        return str(tool.call(asked))
    except ToolError as error:
        return f"error: {error}"


# -- beside the SDK's own tool ---------------------------------------------

NAMES = st.sampled_from(["a", "b", ".c", "ä d", 'q"?', "50%", "a.md", "é"])
PATHS = st.lists(NAMES, max_size=3).map(lambda parts: "/".join(["/memories", *parts]))
TEXTS = st.lists(st.sampled_from(["", "x", "yy", "x yy", "z\r", "\t"]), max_size=4).map("\n".join)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.tuples(st.integers(-2, 6), st.integers(-1, 6)).map(list)},
    ),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS, "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 6), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


def by_files(tool: BetaLocalFilesystemMemoryTool, asked: dict[str, Any]) -> str | None:
    """Return the answer of the SDK's tool; None for an error of the file system, which it lets through."""
    try:
        return said(tool, **asked)
    except OSError:
        return None
    finally:  # directories are there as long as there are files in them
        for folder in sorted((each for each in tool.memory_root.rglob("*") if each.is_dir()), reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()


def without_sizes_of_directories(answer: str) -> list[str]:
    lines = answer.split("\n")
    if not lines[0].startswith("Here're"):
        return lines
    return [lines[0], *(line if not line.endswith("/") else line.split("\t")[1] for line in lines[2:])]


@pytest.mark.promise("adapters.anthropic-answers")
@settings(deadline=None)
@given(commands=st.lists(COMMANDS, max_size=12))
def test_it_answers_what_the_sdk_answers(
    opened: Database, tmp_path_factory: pytest.TempPathFactory, commands: list[dict[str, Any]]
) -> None:
    tool = GreenroomMemoryTool(opened, ADA)
    tool.clear_all_memory()
    files = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("files")))
    for asked in [*commands, {"command": "view", "path": "/memories"}]:
        ours, theirs = said(tool, **asked), by_files(files, asked)
        if theirs is None:
            assert ours.startswith("error: ")
        else:
            assert without_sizes_of_directories(ours) == without_sizes_of_directories(theirs)


# -- paths --------------------------------------------------------------------


@pytest.mark.promise("adapters.anthropic-paths")
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/a",
        "/memoriesque/a",
        "/Memories/a",
        "",
        None,
        7,
        "/memories/..",
        "/memories/../memories/a",
        "/memories/a/../../b",
        "/memories/%2e%2e/a",
        "/memories/%252e%252e/a",
        "/memories/..%2fa",
        "/memories/a%5c..%5cb",
        "/memories/..\\a",
        "/memories/a\\b",
        "/memories/a\0b",
        "/memories/a\nb",
        "/memories/\ud800",
        "/memories/" + "a" * 256,
        "/memories/" + "?" * 86,
        "/memories" + "/a" * 10_000,
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_by_every_command(
    tool: GreenroomMemoryTool, path: Any
) -> None:
    said(tool, command="create", path="/memories/kept", file_text="kept")
    for asked in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "x", "new_str": "y"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/b"},
        {"command": "rename", "old_path": "/memories/kept", "new_path": path},
    ):
        answer = said(tool, **asked)
        assert answer.startswith(("error: Path ", "error: Path must start with /memories, got: "))
        assert len(answer) < 400
    assert said(tool, command="view", path="/memories").split("\n")[1:] == [
        "4B\t/memories",
        "4B\t/memories/kept",
    ]


def test_names_that_only_look_alike_are_different_files(tool: GreenroomMemoryTool) -> None:
    names = [
        "\u00e9",
        "\uff45\u0301",
        "\uff0e\uff0e",
        "a%2Fb"[:1] + "%2",
        "%25",
        "A",
        "a",
        " a",
        "...",
        "x" * 255,
    ]
    for number, name in enumerate(names):
        asked = {"command": "create", "path": f"/memories/{name}", "file_text": str(number)}
        assert said(tool, **asked).startswith("File created"), name
    for number, name in enumerate(names):
        assert said(tool, command="view", path=f"/memories/{name}").endswith(f"\t{number}")


def test_the_tool_that_blocks_is_refused_where_an_event_loop_runs(tool: GreenroomMemoryTool) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="event loop"):
            tool.call({"command": "view", "path": "/memories"})

    asyncio.run(main())


# -- what it keeps ------------------------------------------------------------


@pytest.mark.promise("adapters.anthropic-memories")
def test_files_are_memories_of_the_user_alone(opened: Database, tool: GreenroomMemoryTool) -> None:
    said(tool, command="create", path="/memories/notes/tea.md", file_text="Ada drinks oolong\n")
    said(tool, command="str_replace", path="/memories/notes/tea.md", old_str="oolong", new_str="sencha")
    found = opened.call(SearchService(opened, ADA).search_memories, "sencha")
    assert [(each.namespace, each.key) for each in found.memories] == [("user:ada:files", "notes%2Ftea.md")]
    memories = MemoryService(opened, ADA)
    old = opened.call(memories.get_memory, "user:ada:files", "notes%2Ftea.md", 1)
    assert old is not None
    assert old.value == {"content": "Ada drinks oolong\n"}
    assert opened.call(SearchService(opened, BOB).search_memories, "sencha").memories == []
    assert "tea" not in said(GreenroomMemoryTool(opened, BOB), command="view", path="/memories")
    alone = GreenroomMemoryTool(opened, Principal(agent_id="claude"))
    assert "tea" not in said(alone, command="view", path="/memories")


def test_a_memory_of_others_whose_key_is_no_path_is_no_file(
    opened: Database, tool: GreenroomMemoryTool
) -> None:
    memories = MemoryService(opened, ADA)
    for key in ("caf%E9", "a%41", "%2Fetc", "d%2F..", "d%2f%2Fx", "%0A", "%"):
        named = ("user:ada:files", key, {"content": "x"})
        opened.call(memories.add_memory, *named, "semantic", "client", "task")
    said(tool, command="create", path="/memories/d/tea.md", file_text="tea")
    assert said(tool, command="view", path="/memories").split("\n")[2:] == [
        "3B\t/memories/d/",
        "3B\t/memories/d/tea.md",
    ]
    assert said(tool, command="rename", old_path="/memories/d", new_path="/memories/e").startswith("Successf")
    assert said(tool, command="delete", path="/memories/e").startswith("Successfully deleted")


@pytest.mark.promise("adapters.anthropic-edits")
def test_edits_of_two_writers_are_both_there(tmp_path: Path) -> None:
    async def main() -> str:
        async with database(tmp_path) as one, database(tmp_path) as other:
            tools = AsyncGreenroomMemoryTool(one, ADA), AsyncGreenroomMemoryTool(other, ADA)
            text = "\n".join(f"old {number}." for number in range(10))
            await tools[0].call({"command": "create", "path": "/memories/f", "file_text": text})
            edits = (
                tools[number % 2].call(
                    {
                        "command": "str_replace",
                        "path": "/memories/f",
                        "old_str": f"old {number}.",
                        "new_str": f"new {number}.",
                    }
                )
                for number in range(10)
            )
            await asyncio.gather(*edits)
            creations = (
                each.call({"command": "create", "path": "/memories/g", "file_text": str(number)})
                for number, each in enumerate(tools)
            )
            created = await asyncio.gather(*creations, return_exceptions=True)
            assert [type(each) for each in created if isinstance(each, Exception)] == [ToolError]
            return str(await tools[1].call({"command": "view", "path": "/memories/f"}))

    shown = asyncio.run(main())
    assert "old" not in shown
    assert [line.split("\t")[1] for line in shown.split("\n")[1:]] == [
        f"new {number}." for number in range(10)
    ]


@pytest.mark.promise("adapters.anthropic-rename")
def test_a_rename_that_is_cancelled_is_whole_and_takes_edits_along(tmp_path: Path) -> None:
    async def main() -> None:
        async with database(tmp_path) as opened:
            tool = AsyncGreenroomMemoryTool(opened, ADA)
            for number in range(6):
                await tool.call({"command": "create", "path": f"/memories/a/{number}", "file_text": "x"})
            there = "a"
            for steps in range(12):
                target = f"b{steps}"
                renaming = asyncio.ensure_future(
                    tool.call(
                        {
                            "command": "rename",
                            "old_path": f"/memories/{there}",
                            "new_path": f"/memories/{target}",
                        }
                    )
                )
                for _ in range(steps * 8):
                    await asyncio.sleep(0)
                renaming.cancel()
                await asyncio.gather(renaming, return_exceptions=True)
                shown = str(await tool.call({"command": "view", "path": "/memories"}))
                names = [line.split("\t/memories/")[1] for line in shown.split("\n")[2:]]
                there = names[0].rstrip("/")
                assert there in {target, *(f"b{number}" for number in range(steps)), "a"}
                assert names[1:] == [f"{there}/{number}" for number in range(6)]
            edit = {
                "command": "insert",
                "path": f"/memories/{there}/0",
                "insert_line": 0,
                "insert_text": "edited",
            }
            move = {"command": "rename", "old_path": f"/memories/{there}/0", "new_path": "/memories/moved"}
            await asyncio.gather(tool.call(move), tool.call(edit), return_exceptions=True)
            shown = str(await tool.call({"command": "view", "path": "/memories/moved"}))
            assert shown.endswith(("\tx", "\tedited\n     2\tx\n     3\t"))

    asyncio.run(main())


@pytest.mark.promise("adapters.anthropic-rename")
def test_a_rename_that_asyncio_cancels_between_two_files_goes_to_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with database(tmp_path) as opened:
            tool = AsyncGreenroomMemoryTool(opened, ADA)
            for number in range(30):
                await tool.call({"command": "create", "path": f"/memories/a/{number}", "file_text": "x"})
            move = {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}
            renaming = asyncio.ensure_future(tool.call(move))
            moved = MemoryService(opened, ADA)
            while not (await moved.page_memories("user:ada:files", 1)).memories[0].key.startswith("b"):
                pass
            renaming.cancel()
            await asyncio.gather(renaming, return_exceptions=True)
            shown = str(await tool.call({"command": "view", "path": "/memories"})).split("\n")[2:]
            assert {line.split("\t")[1] for line in shown} == {
                "/memories/b/",
                *(f"/memories/b/{number}" for number in range(30)),
            }

    asyncio.run(main())


@pytest.mark.promise("adapters.anthropic-limits")
def test_what_cannot_be_kept_is_refused_with_the_reason(tool: GreenroomMemoryTool) -> None:
    large = "ä" * 524_288
    create = {"command": "create", "path": "/memories/large"}
    refused = said(tool, **create, file_text=large + "a")
    assert refused.startswith(
        "error: The file /memories/large would have 1,048,577 bytes, and may have 1,048,576."
    )
    assert said(tool, **create, file_text=large).startswith("File created")
    asked = {"command": "str_replace", "path": "/memories/large", "old_str": "zz", "new_str": "y"}
    assert "did not appear verbatim" in said(tool, **asked)
    assert "1M\t/memories/large" in said(tool, command="view", path="/memories")
    assert said(tool, command="create", path="/memories/s", file_text="\ud800").startswith(
        "error: Invalid `file_text`"
    )
    assert said(tool, command="create", path="/memories/s").startswith("error: Invalid `file_text`")
    assert said(tool, command="insert", path="/memories/large", insert_text="x").startswith(
        "error: Invalid `insert_line`"
    )
    inside = {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"}
    said(tool, command="create", path="/memories/d/f", file_text="f")
    assert "is inside" in said(tool, **inside)
    deep = {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/" + "n" * 254}
    assert "is too long" in said(tool, **deep)
    assert "d/f" in said(tool, command="view", path="/memories")


def test_the_runner_of_the_sdk_calls_it(tool: GreenroomMemoryTool) -> None:
    asked = iter(
        [
            {"command": "create", "path": "/memories/a", "file_text": "hello"},
            {"command": "create", "path": "/memories/a", "file_text": "hello"},
        ]
    )
    results: list[Any] = []
    declared: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent = json.loads(request.content)
        declared.extend(sent.get("tools", []))
        if isinstance(sent["messages"][-1]["content"], list):
            results.extend(sent["messages"][-1]["content"])
        command = next(asked, None)
        block: dict[str, Any] = {"type": "text", "text": "done"}
        if command is not None:
            block = {"type": "tool_use", "id": f"t{len(results)}", "name": "memory", "input": command}
        reason = "end_turn" if command is None else "tool_use"
        usage = {"input_tokens": 1, "output_tokens": 1}
        body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
        return httpx2.Response(
            200, json={**body, "stop_reason": reason, "stop_sequence": None, "usage": usage}
        )

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as web:
        client = Anthropic(api_key="none", http_client=web)
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}], tools=[tool]
        )
        assert runner.until_done().stop_reason == "end_turn"
    assert declared[0] == {"type": "memory_20250818", "name": "memory"}
    assert [(each["content"], each.get("is_error", False)) for each in results] == [
        ("File created successfully at: /memories/a", False),
        ("File /memories/a already exists", True),
    ]
    assert said(tool, command="view", path="/memories/a").endswith("\thello")
