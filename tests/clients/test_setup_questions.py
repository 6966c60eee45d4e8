"""`greenroom setup` asks at a terminal, and takes flags elsewhere; what did not change starts nothing."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from clients.test_setup import place, setup
from clients.test_setup_changes import FILES
from support.programs import Program, running

from greenroom.transports.ops.cli.commands.setup_questions import MORE_TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup-questions")]

WITH_MORE = ["--tools", ",".join(MORE_TOOLS)]
QUESTIONS = ("[all]:", "[1]:", "Set up hooks? [y/N]:", "Write this? [Y/n]:")


def entry(home: Path, name: str) -> Any:
    text = (home / FILES[name][0]).read_text()
    if name == "codex":
        return tomllib.loads(text)["mcp_servers"].get("greenroom")
    return json.loads(text).get("mcpServers", {}).get("greenroom")


def files(home: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in home.rglob("*") if path.is_file() and ".local" not in path.parts
    }


async def answer(program: Program, *answers: tuple[str, str]) -> None:
    """Type an answer to each question, once it is asked."""
    for question, typed in answers:
        await program.until(question)
        await program.press(f"{typed}\n")


async def test_several_clients_are_chosen_at_once_with_their_tools_and_hooks(tmp_path: Path) -> None:
    for name in ("claude-code", "codex", "goose"):
        place(tmp_path, name)
    async with running(tmp_path, "setup", terminal=True, keyboard=True) as program:
        listed = await program.until("[all]:")
        assert [line.split()[:2] for line in listed.splitlines()[1:4]] == [
            ["1", "claude-code"],
            ["2", "codex"],
            ["3", "goose"],
        ]
        await program.press("1 7\n")
        await program.until("'7' is none of the numbers 1 to 3")
        await answer(program, (QUESTIONS[0], "1, 2"), (QUESTIONS[1], "2"))
        asked = await program.until(QUESTIONS[2])
        assert "Hooks begin each session of Claude Code and Codex CLI with what is known" in asked
        assert "They keep the conversation" in asked
        await program.press("y\n")
        await program.until(QUESTIONS[3])
        assert entry(tmp_path, "codex") is None
        await program.press("\n")
        assert await program.end() == 0, program.printed
    assert (tmp_path / FILES["goose"][0]).read_bytes() == FILES["goose"][1]
    for name in ("claude-code", "codex"):
        assert entry(tmp_path, name)["args"][-2:] == WITH_MORE
    assert (tmp_path / ".codex/hooks.json").exists()
    assert program.printed.count("starts and lists 30 tools") == 1
    assert "Say to your agent: " in program.printed.splitlines()[-1]


@pytest.mark.parametrize(("answered", "ends"), [*((n, "\x04") for n in range(4)), (3, "n\n")])
async def test_nothing_is_written_unless_every_question_is_answered(
    tmp_path: Path, answered: int, ends: str
) -> None:
    place(tmp_path, "codex")
    before = files(tmp_path)
    async with running(tmp_path, "setup", terminal=True, keyboard=True) as program:
        await answer(program, *((question, "") for question in QUESTIONS[:answered]))
        await program.until(QUESTIONS[answered])
        await program.press(ends)
        assert await program.end() == 1
    assert "nothing was written" in program.printed
    assert files(tmp_path) == before


async def test_what_a_flag_answers_is_not_asked(tmp_path: Path) -> None:
    place(tmp_path, "codex")
    flags = ("codex", "--tools", "core", "--no-hooks")
    async with running(tmp_path, "setup", *flags, terminal=True, keyboard=True) as program:
        asked = await program.until(QUESTIONS[3])
        assert not any(question in asked for question in QUESTIONS[:3])
        await program.press("y\n")
        assert await program.end() == 0
    assert "--tools" not in entry(tmp_path, "codex")["args"]
    async with running(tmp_path, "setup", "--undo", terminal=True, keyboard=True) as program:
        await answer(program, ("Take this back? [Y/n]:", ""))
        assert await program.end() == 0
    assert entry(tmp_path, "codex") is None


def test_a_run_that_changes_nothing_starts_nothing_and_keeps_the_tools(tmp_path: Path) -> None:
    place(tmp_path, "codex")
    first = setup(tmp_path, "--yes", *WITH_MORE)
    assert (first.returncode, "codex: now start a new session" in first.stdout) == (0, True)
    assert entry(tmp_path, "codex")["args"][-2:] == WITH_MORE
    rmtree(tmp_path / ".local/share")  # where a server would make a store
    before = files(tmp_path)
    again = setup(tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert "1  codex  Codex CLI, set up" in again.stdout
    assert "has it already" in again.stdout
    assert "start" not in again.stdout
    assert files(tmp_path) == before
    assert not (tmp_path / ".local/share").exists()
    assert setup(tmp_path, "--yes", "--tools", "core").returncode == 0
    assert "--tools" not in entry(tmp_path, "codex")["args"]


def test_without_a_terminal_it_says_what_it_would_need(tmp_path: Path) -> None:
    place(tmp_path, "codex")
    before = files(tmp_path)
    done = setup(tmp_path)
    assert done.returncode == 1
    assert "found here:\n   1  codex" in done.stdout
    assert "+[mcp_servers.greenroom]" in done.stdout
    for needed in ("nothing was written", "no terminal", "--yes", "names of clients", *WITH_MORE, "--hooks"):
        assert needed in done.stderr
    assert files(tmp_path) == before
    assert setup(tmp_path, "--hooks", "--no-hooks").returncode == 2
