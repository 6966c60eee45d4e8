"""Commands on a stopped store: each leaves its record in the store that it acts on; none shortens the log."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from harness import secrets_of
from support.agents import house
from support.audits import CONTENT
from support.commands import run_on_store, serving

from greenroom.actors import CreateSession
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("audit.command")


def log(home: Path, *more: str) -> list[dict[str, Any]]:
    """Every record, oldest first; reading them leaves one that is not among them."""
    done = run_on_store(home, "audit", "tail", "--json", "--lines", "10000", *more)
    assert done.returncode == 0, done.stderr
    assert CONTENT not in done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def carried_out(home: Path, *arguments: str) -> str:
    done = run_on_store(home, *arguments)
    assert done.returncode == 0, done.stderr
    assert "not in the audit log" not in done.stderr
    return done.stdout


def key(home: Path, name: str) -> str:
    path = home / name
    path.write_text(os.urandom(32).hex())
    path.chmod(0o600)
    return f"file:{path}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A stopped store with a session."""
    with serving(tmp_path, "--agent", "alice") as server:
        server.call("create_session", purpose=CONTENT, session_id="s")
        server.call("store_memory", content=CONTENT, key="hill")
        assert server.end() == 0
    return tmp_path


def test_what_is_done_with_a_stopped_store_is_in_its_log(home: Path) -> None:
    lines = home / "lines.jsonl"
    lines.write_text(json.dumps({"key": "cave", "content": CONTENT}) + "\n")
    passport, copy = str(home / "passport.json"), str(home / "copy")
    made = json.loads(carried_out(home, "keys", "create", "--json"))["key"]["key_id"]
    carried_out(home, "keys", "list")
    turned = json.loads(carried_out(home, "keys", "rotate", made, "--json"))["key"]["key_id"]
    carried_out(home, "keys", "revoke", turned)
    carried_out(home, "import", str(lines))
    carried_out(home, "export", str(home / "out.jsonl"))
    carried_out(home, "passport", "export", "--session", "s", "--file", passport)
    carried_out(home, "passport", "restore", "--file", passport)
    carried_out(home, "verify")
    carried_out(home, "backup", copy)
    carried_out(home, "audit", "checkpoint")
    carried_out(home, "audit", "export", "--file", str(home / "audit.jsonl"))
    carried_out(home, "audit", "verify")
    carried_out(home, "stats")
    records = log(home)[2:]
    assert [record["action"] for record in records] == [
        "create_api_key",
        "list_api_keys",
        "rotate_api_key",
        "revoke_api_key",
        "decide_import",
        "import_memories",
        "export_memories",
        "export_session",
        "keep_passport",
        "read_resource",
        "redeem_passport",
        "migrate_session",
        "verify_store",
        "backup_store",
        "checkpoint_audit",
        "export_audit",
        "verify_audit",
    ]
    assert {record["outcome"] for record in records} == {"done"}
    assert all(record["user"] for record in records)
    by_hand = {"backup_store", "verify_store", "checkpoint_audit", "export_audit", "create_api_key"}
    assert {record["agent"] for record in records if record["action"] in by_hand} == {"command-line"}
    (backup,) = (record for record in records if record["action"] == "backup_store")
    assert backup["details"] == {"to": copy, "bytes": (home / "copy").stat().st_size}


def test_a_restored_store_knows_that_it_was_restored(home: Path) -> None:
    copy = str(home / "copy")
    carried_out(home, "backup", copy)
    carried_out(home, "keys", "list")
    carried_out(home, "restore", copy)
    records = log(home)
    assert [record["action"] for record in records[2:]] == ["miss_records", "restore_store"]
    assert records[-1]["details"] == {"source": copy}
    carried_out(home, "audit", "verify")


def test_what_is_restored_without_its_secret_waits_for_it(home: Path) -> None:
    carried_out(home, "backup", str(home / "copy"))
    (secret,) = home.rglob("*.key")
    secret.rename(home / "elsewhere")
    carried_out(home, "restore", str(home / "copy"))
    assert not list(home.rglob("*.key")), "another one was made, and the right one opens nothing any more"
    (home / "elsewhere").rename(secret)
    log(home)
    carried_out(home, "audit", "verify")


def test_keys_and_secrets_that_change_are_in_the_log(home: Path) -> None:
    first, second = key(home, "first"), key(home, "second")
    carried_out(home, "encrypt", "--encryption-key", first)
    carried_out(home, "encrypt", "--encryption-key", first)  # which does nothing
    carried_out(home, "rekey", second, "--encryption-key", first)
    carried_out(home, "secret", "renew", "--encryption-key", second)
    records = log(home, "--encryption-key", second)
    assert [record["action"] for record in records[2:]] == ["encrypt_store", "rekey_store", "renew_secret"]
    for name in ("first", "second"):
        assert (home / name).read_text() not in str(records)


@pytest.mark.quick
def test_a_deed_whose_record_cannot_be_written_is_done_and_says_so(home: Path) -> None:
    (secret,) = home.rglob("*.key")
    secret.unlink()
    done = run_on_store(home, "backup", str(home / "copy"))
    assert done.returncode == 0
    assert (home / "copy").exists()
    assert "not in the audit log" in done.stderr


async def test_no_command_shortens_the_log(tmp_path: Path) -> None:
    """Only a server is told how long records are kept; a command may have been told something else."""
    places = {"embedder": "none", "secrets": secrets_of(tmp_path)}
    async with house(tmp_path / "store", VirtualClock(), **places) as at:  # long ago
        await at.agent("alice").ask(CreateSession(purpose=CONTENT))
    for command in (["audit", "verify"], ["keys", "list"], ["verify"]):
        carried_out(tmp_path, *command)
    assert log(tmp_path)[0]["action"] == "create_session"
