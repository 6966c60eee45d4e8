"""`greenroom passport`: sessions as files, from one folder into another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import clean_environment
from support.commands import serving
from support.forking import forked_program

if TYPE_CHECKING:
    from subprocess import CompletedProcess

WORDS, WRONG = "correct horse", "wrong words"


def run(home: Path, *arguments: str | Path, **environment: str) -> CompletedProcess[str]:
    command = [
        *forked_program(),
        "passport",
        *map(str, arguments),
        "--data",
        str(home / "store"),
        "--user",
        "ann",
    ]
    environ = clean_environment(home, **environment)
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def signer(home: Path) -> str:
    shown = run(home, "signer")
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.strip()


def homes(tmp_path: Path) -> tuple[Path, Path]:
    """Make the folders of two users."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    return one, two


@pytest.mark.promise("passport.files")
def test_a_session_goes_as_a_file_from_one_folder_to_another(tmp_path: Path) -> None:
    one, two = homes(tmp_path)
    file = tmp_path / "session.passport"
    with serving(one, "--user", "ann") as server:
        session = server.call("create_session", purpose="to be carried")["session_id"]
        server.call("add_message", session_id=session, content="hello")
        done = run(one, "export", "--session", session, "--file", file, "--one-time", "--json")
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
    assert (said["messages"], said["session"]) == (1, session)
    assert file.stat().st_mode & 0o777 == 0o600
    assert run(one, "export", "--session", session, "--file", file).returncode != 0

    assert said["signer"] == signer(one)
    shown = json.loads(run(two, "show", "--file", file, "--json").stdout)
    remedy = f"`greenroom serve` and `greenroom passport` trust it with --trust-signer {said['signer']}"
    assert shown["trusted"].startswith(f"no: its signer {said['signer']!r} is not trusted here; ")
    assert shown["trusted"].endswith(remedy)
    refused = run(two, "restore", "--file", file)
    assert (refused.returncode, remedy in refused.stderr) == (1, True)

    trust = ("--trust-signer", signer(one))
    shown = json.loads(run(two, "show", "--file", file, "--json", *trust).stdout)
    assert (shown["trusted"], shown["one_time"], shown["encrypted"]) == ("yes", True, False)
    restored = run(two, "restore", "--file", file, *trust)
    assert restored.returncode == 0, restored.stderr
    assert f"session: {session}\nmessages: 1\nmemories: 0\n" in restored.stdout
    here = run(one, "restore", "--file", file)  # where it came from, nothing is brought in
    assert (here.returncode, "messages" in here.stdout, "None" in here.stdout) == (0, False, False), (
        here.stderr
    )
    assert f"session: {session}" in here.stdout
    again = run(two, "restore", "--file", file, *trust)
    assert (again.returncode, f"session: {session}" in again.stdout) == (0, True)  # that one, and no other


@pytest.mark.promise("passport.files")
def test_a_passphrase_comes_from_the_environment_and_never_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "session.passport"
    with serving(tmp_path, "--user", "ann") as server:
        session = server.call("create_session", purpose="to be carried")["session_id"]
    export = ("export", "--session", session, "--file", file, "--encrypt-with-passphrase")
    refused = run(tmp_path, *export)
    assert (refused.returncode, "GREENROOM_PASSPHRASE" in refused.stderr) == (1, True)
    assert not file.exists()
    assert run(tmp_path, *export, GREENROOM_PASSPHRASE=WORDS).returncode == 0
    assert run(tmp_path, "restore", "--file", file, GREENROOM_PASSPHRASE=WRONG).returncode == 1
    assert run(tmp_path, "restore", "--file", file, GREENROOM_PASSPHRASE=WORDS).returncode == 0


@pytest.mark.promise("passport.files")
def test_how_long_a_message_may_be_is_what_the_settings_say(tmp_path: Path) -> None:
    one, two = homes(tmp_path)
    file = tmp_path / "session.passport"
    allowed: dict[str, Any] = {"GREENROOM_CONTENT_LIMIT": "20000"}
    with serving(one, "--user", "ann", **allowed) as server:
        session = server.call("create_session", purpose="to be carried")["session_id"]
        server.call("add_message", session_id=session, content="x" * 20_000)
        assert run(one, "export", "--session", session, "--file", file).returncode == 0
    trust = ("--trust-signer", signer(one))
    refused = run(two, "restore", "--file", file, *trust)
    assert (refused.returncode, "10,000" in refused.stderr) == (1, True)
    restored = run(two, "restore", "--file", file, *trust, **allowed)
    assert restored.returncode == 0, restored.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("stamp",), 2, "invalid choice: 'stamp' (choose from"),
        (("show",), 2, "required: --file"),
        (("export", "--file", "x"), 2, "required: --session"),
        (("export", "--file", __file__, "--session", "x"), 73, "exists already"),
        (("show", "--file", "missing"), 73, "missing cannot be read: No such file"),
        (("restore", "--file", "missing"), 73, "missing cannot be read: No such file"),
        (("signer", "--trust-signer", "nobody"), 2, "a signer's public key is allowed"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    if "export" in arguments:
        with serving(tmp_path) as server:
            assert server.end() == 0
    done = run(tmp_path, *arguments)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
