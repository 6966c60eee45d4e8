"""`greenroom setup --hooks` in a home, and a shell that runs what it writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, clean_environment
from support.forking import forked_program

from greenroom.transports.clients.setup.hook_files import hook_entries

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup-hooks")]


def setup(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), "setup", *arguments],
        cwd=home,
        env=clean_environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_hooks_come_and_go_beside_the_server_and_the_users_own(tmp_path: Path) -> None:
    mine = b'{"hooks": [{"type": "command", "command": "s3cret"}]}'
    before = b'{\n  // mine\n  "hooks": {"AfterAgent": [%s]}\n}\n' % mine
    path = tmp_path / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_bytes(before)
    assert setup(tmp_path, "gemini", "--hooks").returncode == 1
    assert path.read_bytes() == before
    done = setup(tmp_path, "gemini", "continue", "--hooks", "--yes")
    assert (done.returncode, "gemini: hooks are set up" in done.stdout) == (1, True), done.stderr
    assert done.stderr == (
        "greenroom setup: continue: its hooks are not known; those that can be set up are "
        "claude-code, cursor, codex, gemini\n"
    )
    assert "s3cret" not in done.stdout
    written = path.read_text()
    program = Path(PROGRAM[0]).with_name("greenroom")
    assert f'"command": "{program} hook session-end --client gemini --agent gemini --limit 2"' in written
    path.write_text(written.replace("hook session-end", "hook session-ended"))
    checked = setup(tmp_path, "gemini", "--check")
    assert (checked.returncode, "hooks under SessionEnd are not what" in checked.stderr) == (1, True)
    assert "; hooks set up in part" in checked.stdout
    path.write_text(written)
    assert setup(tmp_path, "gemini", "--undo", "--hooks", "--yes").returncode == 0
    assert "greenroom hook" not in path.read_text()
    assert '"greenroom": {' in path.read_text()
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert path.read_bytes() == before
    assert not list(tmp_path.rglob("setup/*.json"))


def test_a_shell_starts_the_program_of_the_command_with_its_arguments(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / 'it\'s "$HERE" `x`'
    folder.mkdir(parents=True)
    program = folder / "greenroom"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o700)
    entry = hook_entries("claude-code", [str(program)], ["--data", str(folder)])["Stop"]
    typed = ["/bin/sh", "-c", entry["hooks"][0]["command"]]
    done = subprocess.run(typed, capture_output=True, text=True, check=True)
    options = ["--client", "claude-code", "--agent", "claude-code", "--data", str(folder)]
    assert done.stdout.split("|") == ["hook", "stop", *options, ""]
