"""What is changed in a client's file and taken back, on texts alone, and what is wrong with an entry."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest

from greenroom.transports.clients.setup.change import SetupError, find_entry, put_in, take_out
from greenroom.transports.clients.setup.faults import Start, faults, may_be_run
from greenroom.transports.clients.table import CLIENTS

pytestmark = pytest.mark.promise("cli.setup")

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
WANTED = Start(sys.executable, ["serve", "--agent", "a"])


def entry_of(name: str) -> dict[str, Any]:
    return CLIENTS[name].entry(*WANTED)


@pytest.mark.parametrize("name", FILES)
def test_twice_is_once_and_what_the_user_adds_meanwhile_stays(name: str) -> None:
    client, before = CLIENTS[name], FILES[name][1].decode()
    once, record = put_in(client, before, entry_of(name), None)
    assert once is not None
    assert put_in(client, once, entry_of(name), record) == (once, record)
    assert take_out(client, once, record) == before
    more = "\n# added\n" if client.format in {"toml", "yaml"} else "\n// added\n"
    edited = once + more
    assert put_in(client, edited, entry_of(name), record) == (edited, record)
    left = take_out(client, edited, record)
    assert left is not None
    assert left.endswith(more)
    assert "greenroom" not in left
    for comment in ("// c", "/* e */", "// none yet", "// top", "// t", "# c", "# z", "# end"):
        assert (comment in before) == (comment in left)


@pytest.mark.parametrize("name", FILES)
def test_another_entry_of_ours_takes_the_place_of_the_first(name: str) -> None:
    client, before = CLIENTS[name], FILES[name][1].decode()
    once, record = put_in(client, before, entry_of(name), None)
    other = client.entry(WANTED.command, [*WANTED.arguments, "--data", "/d"])
    twice, record = put_in(client, once, other, record)
    assert find_entry(client, twice) == other
    assert twice is not None
    assert take_out(client, twice, record) == before


@pytest.mark.parametrize("name", FILES)
def test_an_entry_that_was_changed_is_replaced_and_all_of_it_taken_back(name: str) -> None:
    client, before = CLIENTS[name], FILES[name][1].decode()
    once, record = put_in(client, before, entry_of(name), None)
    off, _ = put_in(client, once, {**entry_of(name), "enabled": False}, None)
    again, record = put_in(client, off, entry_of(name), record)
    assert find_entry(client, again) == entry_of(name)
    assert again is not None
    left = take_out(client, again, record)
    assert find_entry(client, left) is None


@pytest.mark.promise("cli.setup-own-command")
@pytest.mark.parametrize(
    "before", [None, "", '{"a": 1}', '{"mcpServers": {"greenroom": {"command": "mine"}}}']
)
def test_what_a_client_wrote_besides_the_entry_stays(before: str | None) -> None:
    client = CLIENTS["claude-code"]
    once, record = put_in(client, before, entry_of("claude-code"), None)
    written = json.dumps({**json.loads(once or ""), "its own": 1})
    record = msgspec.structs.replace(record, written=written, by_client=True)
    assert put_in(client, written, entry_of("claude-code"), record) == (written, record)
    back = take_out(client, written, record)
    assert json.loads(back or "") == {**json.loads(before or "{}"), "its own": 1}


def test_an_entry_of_the_users_own_comes_back_and_one_that_was_changed_is_left() -> None:
    client, before = CLIENTS["cursor"], '{"mcpServers": {"greenroom": {"command": "mine"}}}'
    once, record = put_in(client, before, entry_of("cursor"), None)
    assert once is not None
    back = take_out(client, once + "\n", record)
    assert json.loads(back or "")["mcpServers"]["greenroom"] == {"command": "mine"}
    changed = once.replace('"serve"', '"serve", "--project", "atlas"')
    with pytest.raises(SetupError, match="has been changed since"):
        take_out(client, changed, record)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cursor", b'{"mcpServers": '),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b"[]"),
        ("cursor", b'{"a": 1, "a": 2}'),
        ("cursor", b"[" * 100_000),
        ("codex", b"a = \n"),
        ("goose", b"a: [\n"),
        ("goose", b"a: !!python/object:x {}\n"),
        ("goose", b"- a\n"),
    ],
)
def test_what_cannot_be_read_is_left_alone(name: str, content: bytes) -> None:
    with pytest.raises(SetupError, match="left alone"):
        put_in(CLIENTS[name], content.decode(), entry_of(name), None)


@pytest.mark.promise("cli.setup-check")
@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("cursor", {}, None),
        ("cursor", {"command": "/nowhere/greenroom"}, "there is no /nowhere/greenroom"),
        ("cursor", {"command": "/etc/passwd"}, "/etc/passwd is not executable"),
        ("cursor", {"command": "greenroom"}, "without a folder"),
        ("cursor", {"command": "/bin/sh"}, "not this program and is not tried"),
        ("cursor", {"command": 5}, "names no command"),
        ("cursor", {"args": "serve"}, "names no command"),
        ("cline", {"disabled": True}, "switched off"),
        ("goose", {"enabled": False}, "switched off"),
        ("codex", {"args": ["serve", "--data", "/d"]}, "its data are in /d, and this command looks into the"),
        ("codex", {"args": ["serve", "--data=/d"]}, "its data are in /d, and this command looks into the"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said(name: str, change: dict[str, Any], expected: str | None) -> None:
    entry = {**entry_of(name), **change}
    _, record = put_in(CLIENTS[name], None, entry_of(name), None)
    found = faults(CLIENTS[name], entry, record, WANTED)
    assert any("has been changed since" in each for each in found) == (
        expected not in {None, "names no command"}
    )
    assert any(expected in each for each in found) if expected else found == []
    assert "set up and has gone" in faults(CLIENTS[name], None, record, WANTED)[0]
    assert faults(CLIENTS[name], None, None, WANTED) == []


def test_the_file_of_a_project_is_run_only_as_it_was_written() -> None:
    mine, project = CLIENTS["claude-code"], CLIENTS["claude-code-project"]
    entry = entry_of("claude-code")
    assert may_be_run(project, entry, None, WANTED)
    other = {**entry, "args": ["serve", "--embedder", "python:evil:make"]}
    assert may_be_run(mine, other, None, WANTED)
    assert not may_be_run(project, other, None, WANTED)
    assert not may_be_run(mine, {**entry, "args": ["-c", "evil"]}, None, WANTED)
    assert not may_be_run(mine, {**entry, "command": "/bin/sh"}, None, WANTED)
