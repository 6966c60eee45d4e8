"""`greenroom setup` in homes with files of many kinds: put in, tried, taken back."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from clients.test_setup_changes import FILES
from harness import clean_environment
from support.forking import forked_program

from greenroom.transports.clients.setup.change import SetupError
from greenroom.transports.clients.setup.files import MAX_BYTES, check_below, read
from greenroom.transports.clients.setup.programs import put_by_client, version_of
from greenroom.transports.clients.table import BY_HAND, CLIENTS

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup")]


def setup(
    home: Path, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), "setup", *arguments],
        cwd=cwd or home,
        env=clean_environment(home, PATH=f"{home}/bin:/usr/bin:/bin") | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def place(home: Path, name: str, content: bytes | None = None) -> Path:
    path = home / FILES[name][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FILES[name][1] if content is None else content)
    return path


def test_clients_are_set_up_once_and_taken_back_byte_for_byte(tmp_path: Path) -> None:
    names = ["cursor", "codex", "goose"]
    paths = {name: place(tmp_path, name) for name in names}
    broken = {"zed": b"[", "gemini": b"\xff"}
    for name, content in broken.items():
        place(tmp_path, name, content)
    done = setup(tmp_path, *broken, *names, "--yes")
    assert done.returncode == 1
    for name, content in broken.items():
        assert (tmp_path / FILES[name][0]).read_bytes() == content
    assert done.stderr.count("it is left alone") == 2
    assert "Traceback" not in done.stderr
    assert (
        done.stdout.count("starts and lists 15 tools") == 1
    )  # the entries differ in the agents' names alone
    written = {name: path.read_bytes() for name, path in paths.items()}
    again = setup(tmp_path, *names, "--yes")
    assert again.stdout.count("has it already") == len(names), again.stdout
    assert {name: path.read_bytes() for name, path in paths.items()} == written
    undone = setup(tmp_path, "--undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert {name: path.read_bytes() for name, path in paths.items()} == {
        name: FILES[name][1] for name in names
    }


def test_modes_and_links_stay_and_what_is_kept_is_private(tmp_path: Path) -> None:
    path = place(tmp_path, "cursor")
    real = tmp_path / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    real.chmod(0o640)
    assert setup(tmp_path, "cursor", "--yes").returncode == 0
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    kept = [each for each in tmp_path.rglob("setup/*.json") if each != real]
    assert [stat.S_IMODE(each.stat().st_mode) for each in kept] == [0o600]


def test_nothing_is_written_without_a_yes_and_a_projects_file_is_not_run(tmp_path: Path) -> None:
    path = place(tmp_path, "cursor")
    assert setup(tmp_path).returncode == 1
    assert setup(tmp_path, "--print").returncode == 0
    assert path.read_bytes() == FILES["cursor"][1]
    trap = tmp_path / "trap"
    trap.write_text("#!/bin/sh\ntouch sprung\n")
    trap.chmod(0o700)
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"greenroom": {"command": str(trap)}}}))
    checked = setup(tmp_path, "--check")
    assert checked.returncode == 1
    assert "is not tried" in checked.stderr
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_plain_file_of_some_size_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(b" " * (MAX_BYTES + 1))
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "zero", "large", "folder"):
        with pytest.raises(SetupError, match="left alone"):
            read(tmp_path / name)
    assert read(tmp_path / "none") is None


def test_a_link_in_a_project_leads_nowhere_else(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside.json", tmp_path / "project"
    project.mkdir()
    outside.write_text('{"theirs": 1}')
    (project / ".mcp.json").symlink_to(outside)
    with pytest.raises(SetupError, match=r"is a link to .*outside\.json"):
        check_below(project / ".mcp.json", project)
    (project / ".mcp.json").unlink()
    (project / ".mcp.json").symlink_to("mcp.json")
    check_below(project / ".mcp.json", project)
    (project / ".mcp.json").unlink()
    (project / ".mcp.json").symlink_to(tmp_path / "not" / "there.json")
    made = setup(tmp_path, "claude-code-project", "--yes", cwd=project)
    assert (made.returncode, "is a link to" in made.stderr) == (1, True)
    assert not (tmp_path / "not").exists()


def test_a_file_that_was_made_goes_and_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    assert setup(tmp_path, "goose", "claude-code-project", "--yes").returncode == 0
    assert (tmp_path / ".mcp.json").exists()
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert not list(tmp_path.rglob(".mcp.json"))
    assert not list(tmp_path.rglob("config.yaml"))
    refused = setup(tmp_path, "emacs")
    assert (refused.returncode, "known are claude-desktop" in refused.stderr) == (2, True)


@pytest.mark.promise("cli.setup-secrets")
def test_where_no_client_is_found_those_that_there_are_are_named(tmp_path: Path) -> None:
    done = setup(tmp_path)
    names = ", ".join([*CLIENTS, *BY_HAND])
    assert done.returncode == 1
    assert done.stderr.strip().endswith(f"no client is found here; name the one to set up: {names}")


def test_keys_of_other_servers_are_not_shown(tmp_path: Path) -> None:
    place(tmp_path, "cursor", b'{"mcpServers": {"x": {"command": "y", "env": {"KEY": "s3cr3t"}}}} // s3cr3t')
    place(tmp_path, "codex", b'mcp_servers = {x = {command = "y", env = {KEY = "s3cr3t"}}} # s3cr3t')
    place(tmp_path, "goose", b"extensions: {x: {cmd: y, envs: {KEY: s3cr3t}}} # s3cr3t")
    printed = setup(tmp_path, "--print").stdout
    assert printed.count("KEY") == 6  # in the line before and in the line after
    assert "s3cr3t" not in printed
    assert "s3cr3t" not in setup(tmp_path, "cursor", "--yes").stdout
    undone = setup(tmp_path, "--undo", "--yes").stdout
    assert ("KEY" in undone, "s3cr3t" in undone) == (True, False)


def stub(home: Path, name: str, script: str) -> None:
    """Put a program on the path."""
    path = home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)


@pytest.mark.promise("cli.setup-own-command")
def test_where_a_clients_own_command_fails_its_file_is_edited_and_taken_back(tmp_path: Path) -> None:
    path = place(tmp_path, "claude-code")
    stub(tmp_path, "claude", "echo no, not today >&2; exit 1")
    done = setup(tmp_path, "claude-code", "--yes")
    assert done.returncode == 0, done.stderr
    assert "its own command did not do it (no, not today); its file is edited instead" in done.stderr
    assert "greenroom" in json.loads(path.read_text())["mcpServers"]
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert path.read_bytes() == FILES["claude-code"][1]


OWN_COMMAND = """\
echo "$@" >> "$HOME/arguments"
exec {python} - "$@" <<'END'
import json, pathlib, sys
path = pathlib.Path.home() / ".claude.json"
held = json.loads(path.read_text())
servers = held.setdefault("mcpServers", {{}})
if sys.argv[2] == "remove":
    del servers["greenroom"]
elif sys.argv[2] == "add-json":
    servers["greenroom"] = json.loads(sys.argv[-1])
path.write_text(json.dumps(held))
END
"""

EARLIER = (
    {"command": "greenroom", "env": {"GREENROOM_API_KEY": f"gr_{'a' * 12}_{'b' * 43}"}},
    {"type": "http", "url": "http://127.0.0.1:8080/mcp", "headers": {"Authorization": "Bearer s3cr3t"}},
)


@pytest.mark.promise("cli.setup-secrets")
@pytest.mark.parametrize("earlier", EARLIER)
def test_what_is_put_back_stands_in_no_programs_arguments(tmp_path: Path, earlier: dict[str, Any]) -> None:
    path = place(tmp_path, "claude-code", json.dumps({"mcpServers": {"greenroom": earlier}}).encode())
    stub(tmp_path, "claude", OWN_COMMAND.format(python=sys.executable))
    assert setup(tmp_path, "claude-code", "--yes").returncode == 0
    assert json.loads(path.read_text())["mcpServers"]["greenroom"] != earlier
    undone = setup(tmp_path, "--undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert json.loads(path.read_text())["mcpServers"]["greenroom"] == earlier
    seen = (tmp_path / "arguments").read_text()
    assert "add-json" in seen
    assert "b" * 43 not in seen
    assert "s3cr3t" not in seen


async def test_a_client_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    assert autojump_clock
    stub(tmp_path, "claude", "exec tail -f /dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    client = CLIENTS["claude-code"]
    assert await version_of(client) is None
    with pytest.raises(SetupError, match="took more than 20 s"):
        await put_by_client(client, str(tmp_path / "bin/claude"), {})


@pytest.mark.promise("cli.setup-check")
def test_check_tells_what_is_known_of_each_client_and_what_is_wrong(tmp_path: Path) -> None:
    stub(tmp_path, "codex", "echo codex-cli 1.2.3")
    for name in ("codex", "gemini"):
        place(tmp_path, name)
    assert setup(tmp_path, "codex", "gemini", "--yes").returncode == 0
    (tmp_path / FILES["gemini"][0]).unlink()
    (tmp_path / ".vscode/extensions/saoudrizwan.claude-dev-3.9.10").mkdir(parents=True)
    (tmp_path / ".vscode/extensions/saoudrizwan.claude-dev-3.10.0").mkdir()
    done = setup(tmp_path, "--check", "--json")
    assert done.returncode == 1
    found = {each["client"]: each for each in json.loads(done.stdout)}
    assert set(found) == set(CLIENTS)
    codex = found["codex"]
    assert (codex["configured"], codex["version"], codex["tools"]) == (True, "1.2.3", 15)
    assert (codex["last_seen"], codex["wrong"]) == (None, [])
    assert "was set up and has gone" in found["gemini"]["wrong"][0]
    assert (found["cline"]["found"], found["cline"]["version"]) == (True, "3.10.0")
    assert not found["windsurf"]["found"]
