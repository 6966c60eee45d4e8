"""Whose name commands work in, what they call things, and what they answer a misspelt one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.commands import run, run_on_store, sentence

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.promise("mcp.named-tools")
def test_a_command_names_commands(tmp_path: Path) -> None:
    assert run_on_store(tmp_path, "keys", "create", "--name", "k", "--schemas", "nullable").returncode == 0
    done = run_on_store(tmp_path, "keys", "revoke", "aaaaaaaaaaaa")
    assert "`greenroom keys list` shows them" in sentence(done)
    assert "list_api_keys" not in done.stderr


def _with_key(home: Path, key: str, *arguments: str) -> Any:
    return run(home, *arguments, "--data", str(home / "store"), GREENROOM_API_KEY=key)


@pytest.mark.quick
@pytest.mark.promise("cli.key")
def test_commands_on_the_folder_work_for_the_holder_of_the_key(tmp_path: Path) -> None:
    def made(name: str, scopes: str) -> str:
        done = run_on_store(
            tmp_path,
            "keys",
            "create",
            "--name",
            name,
            "--for-user",
            "bob",
            "--for-agent",
            "bot",
            "--scopes",
            scopes,
        )
        assert done.returncode == 0, done.stderr
        return next(word for word in done.stdout.split() if word.count("_") >= 2)

    key, reads = made("all", "memory:*,knowledge:*"), made("reads", "memory:read")
    file = tmp_path / "memories.jsonl"
    file.write_text('{"key": "k", "content": "boats"}\n')
    done = _with_key(tmp_path, key, "import", str(file))
    assert "1 created" in done.stdout, done.stderr
    assert "user:bob" in done.stdout
    for command in (
        ("import", str(file)),
        ("import", str(file), "--dry-run"),
        ("ingest", str(file)),
        ("corpora", "list"),
        ("preferences", "set", "theme", "dark"),
    ):
        assert "needs the scope" in sentence(_with_key(tmp_path, reads, *command)), command
    assert "GREENROOM_API_KEY" in sentence(_with_key(tmp_path, key[:-1], "import", str(file)))
    exported = _with_key(tmp_path, reads, "export", "-")
    assert [msgspec.json.decode(each)["namespace"] for each in exported.stdout.splitlines()] == ["user:bob"]
    assert run_on_store(tmp_path, "export", "-").stdout == ""
    note = tmp_path / "note.md"
    note.write_text("# Boats\n")
    assert _with_key(tmp_path, key, "ingest", str(note)).returncode == 0
    assert "user:bob" in _with_key(tmp_path, key, "corpora", "list").stdout


@pytest.mark.quick
@pytest.mark.promise("cli.did-you-mean")
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("ingst",), "; did you mean ingest?"),
        (("keys", "revok"), "; did you mean revoke?"),
        (("import", "x", "--on-confict", "skip"), "; did you mean --on-conflict?"),
        (("qqqq",), ""),
        (("ingest", "x", "--no-such"), ""),
    ],
)
def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(
    tmp_path: Path, arguments: tuple[str, ...], meant: str
) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(meant)
    assert ("did you mean" in done.stderr) == bool(meant)
