"""`greenroom erase`: counts first, then for good, on a stopped store and beside a running server."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from harness import PROGRAM, clean_environment
from support.commands import run_on_store, serving
from support.forking import forked_program

from greenroom.transports.base import exit_codes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("erase.command")

MARK = b"wyvern"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A stopped store with a person in it, and a copy of it."""
    with serving(tmp_path, "--agent", "wyvern-coder", "--user", "wyvern") as server:
        server.call("create_session", purpose="wyvern's work", session_id="wyvern-session")
        server.call("store_memory", content="the wyvern likes tea", key="wyvern-drink")
        assert server.end() == 0
    with serving(tmp_path, "--agent", "reviewer", "--user", "bob") as server:
        server.call("store_memory", content="bob likes coffee", key="drink")
        assert server.end() == 0
    assert run_on_store(tmp_path, "backup", str(tmp_path / "copy.mdb")).returncode == 0
    return tmp_path


def erased(home: Path, *flags: str) -> dict[str, Any]:
    done = run_on_store(home, "erase", *flags, "--json")
    assert done.returncode == exit_codes.OK, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def files(home: Path) -> bytes:
    paths = [path for path in home.rglob("*") if path.is_file() and path.suffix[:7] != ".before"]
    return b"".join(path.read_bytes() for path in paths if path.name[:4] not in {"stde", "copy"})


@pytest.mark.quick
def test_without_a_yes_it_counts_and_does_nothing(home: Path) -> None:
    done = run_on_store(home, "erase", "--user", "wyvern")
    assert done.returncode == exit_codes.FAILED
    assert "nothing was erased; --yes does it" in done.stderr
    assert "1  memories" in done.stdout
    assert str(home / "copy.mdb") in done.stdout
    assert MARK in files(home)
    for wrong in ((), ("--user", "wyvern", "--finish"), ("--yes",)):
        assert run_on_store(home, "erase", *wrong).returncode == exit_codes.USAGE


def asked(home: Path, answer: bytes) -> int:
    """Run the command at a terminal where somebody types an answer; return its exit code."""
    controller, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [*PROGRAM, "erase", "--user", "wyvern", "--data", str(home / "store")],
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=clean_environment(home),
        ) as process:
            assert process.stderr is not None
            while b"type the user's name" not in process.stderr.readline():
                pass
            os.write(controller, answer + b"\n")
            return process.wait()
    finally:
        os.close(controller)
        os.close(terminal)


def test_at_a_terminal_the_name_is_typed_once_more(home: Path) -> None:
    assert asked(home, b"y") == exit_codes.FAILED
    assert MARK in files(home)
    assert asked(home, b"wyvern") == exit_codes.OK
    assert MARK not in files(home)


def hook(home: Path, user: str) -> None:
    """Have a hook of the user's leave something for the next server."""
    told = json.dumps({"session_id": user, "prompt": f"I am {user}", "prompt_response": "Hello."})
    command = ["hook", "stop", "--client", "gemini", "--user", user, "--data", str(home / "store")]
    subprocess.run(
        [*forked_program(), *command],
        input=told,
        text=True,
        env=clean_environment(home),
        cwd=home,
        check=True,
    )


def test_with_a_yes_it_is_in_no_file_any_more_and_copies_are_named(home: Path) -> None:
    hook(home, "wyvern")
    hook(home, "bob")
    assert run_on_store(home, "restore", str(home / "copy.mdb")).returncode == 0
    assert run_on_store(home, "backup", str(home / "copy-2.mdb")).returncode == 0
    said = erased(home, "--user", "wyvern", "--yes")
    assert said["erased"]["counts"] == {
        "memories": 1,
        "memory_versions": 1,
        "sessions": 1,
        "hook_events_waiting": 1,
    }
    assert b"I am bob" in files(home)
    assert said["erased"]["backups"] == [str(home / "copy-2.mdb")]
    assert said["erased"]["remains"] == ""
    assert said["file"]["redacted"] > 0
    assert said["older_stores"] == [str(home / "store" / "greenroom.mdb.before-restore")]
    assert MARK not in files(home)
    log = run_on_store(home, "audit", "tail", "--json", "--lines", "100").stdout
    (record,) = (each for each in map(json.loads, log.splitlines()) if each["action"] == "erase_user")
    assert record["agent"] == "command-line"
    assert "wyvern" not in log
    assert run_on_store(home, "audit", "verify").returncode == exit_codes.OK
    assert run_on_store(home, "verify").returncode == exit_codes.OK


def test_beside_a_server_it_is_erased_at_once_and_the_file_waits(home: Path) -> None:
    with serving(home, "--agent", "wyvern-coder", "--user", "wyvern") as server:
        said = erased(home, "--user", "wyvern", "--yes")
        assert said["file"] is None
        assert "greenroom erase --finish" in said["erased"]["remains"]
        assert server.call("list_memories", namespace="user:wyvern")["count"] == 0
        early = run_on_store(home, "erase", "--finish")
        assert early.returncode == exit_codes.OWNED
        assert "stop it first" in early.stderr
        assert server.end() == 0
    assert MARK in files(home)
    assert erased(home, "--finish")["file"]["redacted"] > 0
    assert MARK not in files(home)


def test_an_agent_that_others_had_too_is_erased_if_it_is_named(home: Path) -> None:
    for user in ("wyvern", "bob"):
        with serving(home, "--agent", "laptop", "--user", user) as server:
            server.call("set_memory", key=f"of-{user}", value=1)
            assert server.end() == 0
    left = erased(home, "--user", "wyvern", "--yes")["erased"]
    assert left["shared_agents"] == ["laptop"]
    named = erased(home, "--user", "wyvern", "--agents", "laptop", "--yes")["erased"]
    assert named["agents"] == ["laptop"]
    assert named["counts"]["memories"] == 2
