"""The plugin for Claude Code: written by the program, found valid and installed by Claude Code itself."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conformance import node
from harness import PROGRAM, clean_environment
from support.forking import forked_program

from greenroom.transports.mcp.tools.tool_profiles import PROFILES

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.plugin")]


def run(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=home,
        env=clean_environment(home, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_claude_code_finds_the_plugin_valid_and_installs_all_of_it(tmp_path: Path) -> None:
    claude = node.command("claude-code")
    assert run(tmp_path, *forked_program(), "setup", "claude-code", "--hooks", "--yes").returncode == 0
    folder = tmp_path / "a plugin"
    written = run(tmp_path, *forked_program(), "setup", "--plugin", str(folder))
    assert written.returncode == 0, written.stderr
    texts = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    for strictness in (["--strict"], ["--profile", "directory"]):
        valid = run(tmp_path, *claude, "plugin", "validate", *strictness, "--json", str(folder))
        assert valid.returncode == 0, valid.stdout
        report = json.loads(valid.stdout)
        assert [report["manifest"]["errors"], report["manifest"]["warnings"]] == [[], []]
    assert "and `greenroom setup --undo claude-code` first, or all is there twice" in written.stdout
    commands = re.findall(r"`(claude [^`]+)`", written.stdout)
    assert len(commands) == 2
    for command in commands:
        done = run(tmp_path, "/bin/sh", "-c", f'claude() {{ {shlex.join(claude)} "$@"; }}; {command}')
        assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(run(tmp_path, *claude, "plugin", "list", "--json").stdout)
    assert [(each["id"], each["enabled"]) for each in found] == [("greenroom@greenroom", True)]
    entry = found[0]["mcpServers"]["greenroom"]
    assert entry["command"] == str(Path(PROGRAM[0]).with_name("greenroom"))
    assert entry["args"] == ["serve", "--agent", "claude-code"]
    told = run(tmp_path, *claude, "plugin", "details", "greenroom").stdout
    assert "Skills (2)  memory, remember" in told
    assert "SessionStart, UserPromptSubmit, PreCompact, Stop, SessionEnd" in told

    for name in ("skills/memory/SKILL.md", "commands/remember.md"):
        assert "`decision` or `preference`" in texts[folder / name]
    for text in texts.values():
        named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - {"workspace_path", "files_accessed"}
        assert named <= set(PROFILES["core"].tools or ())


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    for place, why in {tmp_path: "holds something else", tmp_path / "notes": "Not a directory"}.items():
        refused = run(tmp_path, *forked_program(), "setup", "--plugin", str(place))
        assert (refused.returncode, why in refused.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == ["notes"]
