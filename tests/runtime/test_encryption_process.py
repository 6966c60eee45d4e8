"""Encrypted stores as the program `greenroom` has them, and in several processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.commands import run_on_store, sentence, serving
from support.several import tool_client


def key(home: Path, name: str = "key") -> str:
    """Make a key beside the store and return what names it."""
    path = home / name
    path.write_text(os.urandom(32).hex())
    path.chmod(0o600)
    return f"file:{path}"


@pytest.mark.promise("encryption.sealed", "encryption.wrong_key", "encryption.copies")
def test_a_store_is_encrypted_from_the_command_line_and_every_command_takes_its_key(tmp_path: Path) -> None:
    mine, other = key(tmp_path), key(tmp_path, "other")
    with serving(tmp_path, "--encrypt", "--encryption-key", mine) as server:
        session = server.call("create_session", purpose="a planted purpose")["session_id"]
        server.call("add_message", session_id=session, content="a planted message")
        assert run_on_store(tmp_path, "verify").returncode == 0  # by the owner, who has the key
        assert run_on_store(tmp_path, "backup", str(tmp_path / "running")).returncode == 0
        assert server.end() == 0
    assert b"planted" not in (tmp_path / "store" / "greenroom.mdb").read_bytes()
    for command in (["verify"], ["stats"], ["backup", str(tmp_path / "copy")], ["serve"]):
        done = run_on_store(tmp_path, *command)
        assert done.returncode == 73
        assert "no key was given" in sentence(done)
        done = run_on_store(tmp_path, *command, "--encryption-key", other)
        assert done.returncode == 73
        assert "another key" in sentence(done)
        if command != ["serve"]:
            assert run_on_store(tmp_path, *command, "--encryption-key", mine).returncode == 0
    assert run_on_store(tmp_path, "restore", str(tmp_path / "running")).returncode == 73
    done = run_on_store(tmp_path, "restore", str(tmp_path / "running"), "--encryption-key", mine)
    assert done.returncode == 0
    with serving(tmp_path, "--encryption-key", mine) as server:
        assert "a planted purpose" in str(server.call("get_session", session_id=session))
        assert server.end() == 0


@pytest.mark.promise("encryption.required")
def test_what_would_leave_data_in_the_clear_is_refused(tmp_path: Path) -> None:
    done = run_on_store(tmp_path, "serve", "--encrypt")
    assert done.returncode == 73
    assert "--encryption-key file:PATH" in sentence(done)
    assert not (tmp_path / "store").exists()
    with serving(tmp_path) as server:
        server.call("create_session", purpose="in the clear")
        assert server.end() == 0
    done = run_on_store(tmp_path, "serve", "--encrypt", "--encryption-key", key(tmp_path))
    assert done.returncode == 73
    assert "greenroom encrypt" in sentence(done)
    done = run_on_store(tmp_path, "serve", "--encryption-key", "hunter2")
    assert done.returncode == 2
    assert "never the key itself" in sentence(done)
    assert "hunter2" not in sentence(done)


@pytest.mark.promise("encryption.shared")
async def test_a_process_takes_an_encrypted_folder_over_with_its_key(tmp_path: Path) -> None:
    flags = ["--encrypt", "--encryption-key", key(tmp_path)]
    async with (
        tool_client(tmp_path, "alice", *flags) as owner,
        tool_client(tmp_path, "bob", *flags) as attached,
        tool_client(tmp_path, "carol", *flags) as third,
    ):
        session = (await owner.call("create_session", purpose="a planted purpose"))["session_id"]
        await attached.call("add_message", session_id=session, content="planted before")
        await owner.kill()
        await attached.call("add_message", session_id=session, content="planted after")
        assert await third.contents(session) == ["planted before", "planted after"]
    assert b"planted" not in (tmp_path / "store" / "greenroom.mdb").read_bytes()


@pytest.mark.promise("encryption.switched_on", "encryption.rotation")
def test_encryption_is_switched_on_and_its_key_changed_from_the_command_line(tmp_path: Path) -> None:
    first, second = key(tmp_path), key(tmp_path, "second")
    with serving(tmp_path) as server:
        session = server.call("create_session", purpose="a planted purpose")["session_id"]
        done = run_on_store(tmp_path, "encrypt", "--encryption-key", first)
        assert done.returncode == 75
        assert server.end() == 0
    assert "--encryption-key" in sentence(run_on_store(tmp_path, "encrypt"))
    assert b"planted" in (tmp_path / "store" / "greenroom.mdb").read_bytes()
    done = run_on_store(tmp_path, "encrypt", "--encryption-key", first)
    assert (done.returncode, done.stderr) == (0, "")
    assert "is encrypted\n" in done.stdout
    assert b"planted" not in (tmp_path / "store" / "greenroom.mdb").read_bytes()
    assert "already" in run_on_store(tmp_path, "encrypt", "--encryption-key", first).stdout
    done = run_on_store(tmp_path, "rekey", "hunter2", "--encryption-key", first)
    assert (done.returncode, "never the key itself" in sentence(done)) == (1, True)
    assert "hunter2" not in sentence(done)
    assert run_on_store(tmp_path, "rekey", second, "--encryption-key", first).returncode == 0
    assert run_on_store(tmp_path, "stats", "--encryption-key", first).returncode == 73
    with serving(tmp_path, "--encrypt", "--encryption-key", second) as server:
        assert "a planted purpose" in str(server.call("get_session", session_id=session))
        assert server.end() == 0
