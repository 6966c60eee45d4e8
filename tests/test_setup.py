"""`greenroom setup` in homes with files of many kinds: put in, tried, taken back."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, clean_environment

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup")]

FILES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", b"{}"),
    "claude-code": (".claude.json", b'{"a":1,"mcpServers":{"x":{"command":"y"}},"z":"\xc3\xa9"}'),
    "cursor": (
        ".cursor/mcp.json",
        b'{ // c\r\n\t"mcpServers": {"x": {"command": "}, // no"},}, /* e */\r\n}\r\n',
    ),
    "vscode": (".config/Code/User/mcp.json", b'{\n    // none yet\n    "servers": {\n    }\n}'),
    "zed": (".config/zed/settings.json", b'// top\n{\n  "theme": "x", // t\n}\n'),
    "codex": (
        ".codex/config.toml",
        b'# c\nmodel = "m"\n\n[mcp_servers.x]\ncommand = "y" # z\n\n[t]\na = 1\n',
    ),
    "gemini": (".gemini/settings.json", b"\n"),
    "goose": (".config/goose/config.yaml", b"# c\nextensions:\n    dev: {a: 1}\n# end\nMODE:   'x'"),
}


def setup(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "setup", *arguments],
        cwd=home,
        env=clean_environment(home),
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


def test_every_client_is_set_up_once_and_taken_back_byte_for_byte(tmp_path: Path) -> None:
    paths = {name: place(tmp_path, name) for name in FILES}
    done = setup(tmp_path, *FILES, "--yes")
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert f"{name}: greenroom" in done.stdout
    written = {name: path.read_bytes() for name, path in paths.items()}
    again = setup(tmp_path, *FILES, "--yes")
    assert again.stdout.count("has it already") == len(FILES), again.stdout
    assert {name: path.read_bytes() for name, path in paths.items()} == written
    checked = setup(tmp_path, "--check").stdout
    assert checked.count("configured, greenroom") == len(FILES), checked
    undone = setup(tmp_path, "--undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert {name: path.read_bytes() for name, path in paths.items()} == {
        name: content for name, (_, content) in FILES.items()
    }


@pytest.mark.parametrize("name", FILES)
def test_what_the_user_adds_meanwhile_stays(tmp_path: Path, name: str) -> None:
    path = place(tmp_path, name)
    assert setup(tmp_path, name, "--yes").returncode == 0
    more = "\n# added\n" if path.suffix in {".toml", ".yaml"} else "\n// added\n"
    path.write_text(path.read_text() + more)
    done = setup(tmp_path, "--undo", "--yes")
    assert done.returncode == 0, done.stderr
    left = path.read_text()
    assert more in left
    assert "greenroom" not in left
    for comment in ("// c", "/* e */", "// none yet", "// top", "// t", "# c", "# z", "# end"):
        assert (comment in FILES[name][1].decode()) == (comment in left)


def test_an_entry_of_the_users_own_comes_back_and_one_that_was_changed_is_left(tmp_path: Path) -> None:
    path = place(tmp_path, "cursor", b'{"mcpServers": {"greenroom": {"command": "mine"}}}')
    assert setup(tmp_path, "cursor", "--yes").returncode == 0
    path.write_text(path.read_text() + "\n")
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert json.loads(path.read_text())["mcpServers"]["greenroom"] == {"command": "mine"}
    assert setup(tmp_path, "cursor", "--yes").returncode == 0
    changed = path.read_text().replace('"serve"', '"serve", "--project", "atlas"')
    path.write_text(changed)
    refused = setup(tmp_path, "--undo", "--yes")
    assert (refused.returncode, path.read_text()) == (1, changed)
    assert "has been changed since" in refused.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cursor", b'{"mcpServers": '),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b"[]"),
        ("cursor", b'{"a": 1, "a": 2}'),
        ("cursor", b"\xff"),
        ("cursor", b"[" * 100_000),
        ("codex", b"a = \n"),
        ("goose", b"a: [\n"),
        ("goose", b"a: !!python/object:x {}\n"),
        ("goose", b"- a\n"),
    ],
)
def test_what_cannot_be_read_is_left_alone(tmp_path: Path, name: str, content: bytes) -> None:
    path = place(tmp_path, name, content)
    done = setup(tmp_path, name, "--yes")
    assert (done.returncode, path.read_bytes()) == (1, content)
    assert "left alone" in done.stderr
    assert "Traceback" not in done.stderr


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
    assert "is not tried" in checked.stderr
    assert not (tmp_path / "sprung").exists()


def test_a_file_that_was_made_goes_and_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    assert setup(tmp_path, "goose", "claude-code-project", "--yes").returncode == 0
    assert (tmp_path / ".mcp.json").exists()
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert not list(tmp_path.rglob(".mcp.json"))
    assert not list(tmp_path.rglob("config.yaml"))
    refused = setup(tmp_path, "emacs")
    assert (refused.returncode, "known are claude-desktop" in refused.stderr) == (2, True)


@pytest.mark.promise("cli.setup-hooks")
def test_hooks_come_and_go_beside_the_server_and_the_users_own(tmp_path: Path) -> None:
    mine = b'{"hooks": [{"type": "command", "command": "s3cret"}]}'
    before = b'{\n  // mine\n  "hooks": {"AfterAgent": [%s]}\n}\n' % mine
    path = place(tmp_path, "gemini", before)
    done = setup(tmp_path, "gemini", "zed", "--hooks", "--yes")
    assert (done.returncode, "gemini: hooks are set up" in done.stdout) == (1, True), done.stderr
    assert done.stderr == (
        "greenroom setup: zed: its hooks are not known; those that can be set up are "
        "claude-code, codex, gemini, cursor\n"
    )
    assert "s3cret" not in done.stdout
    written = path.read_text()
    command = f"{Path(PROGRAM[0]).with_name('greenroom')} hook session-end --client gemini --agent gemini --limit 2"
    assert f'"command": "{command}"' in written
    path.write_text(written.replace("hook session-end", "hook session-ended"))
    checked = setup(tmp_path, "gemini", "--check")
    assert (checked.returncode, "hooks under SessionEnd are not what" in checked.stderr) == (1, True)
    path.write_text(written)
    assert "; hooks set up" in setup(tmp_path, "gemini", "--check").stdout
    assert setup(tmp_path, "gemini", "--undo", "--hooks", "--yes").returncode == 0
    assert "greenroom hook" not in path.read_text()
    assert '"greenroom": {' in path.read_text()
    assert setup(tmp_path, "--undo", "--yes").returncode == 0
    assert path.read_bytes() == before
    assert not list(tmp_path.rglob("setup/*.json"))
