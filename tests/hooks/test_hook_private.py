"""What is between `<private>` and `</private>` is in nothing that a hook writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import clean_environment
from support.commands import serving
from support.forking import forked_program
from support.hook_inputs import STOPS, called, line, returned, said, transcript

from greenroom.actors.content.text.private_parts import PRIVATE, cut_private, cut_private_in
from greenroom.transports.clients.hooks.spool import waiting

pytestmark = pytest.mark.promise("rules.private")

ENDLESS = "Remember that tabs are used. <private>wolfram to the end"
ESCAPED = json.dumps({"command": "make build <private>wolfram</private>"}).replace("<", "\\u003c")


def run_hook(home: Path, name: str, client: str, told: object, limit: str = "60") -> None:
    whose = ("--data", str(home / "store"), "--user", "ann", "--client", client, "--limit", limit)
    process = subprocess.run(
        [*forked_program(), "hook", name, *whose],
        env=clean_environment(home),
        cwd=home,
        input=told if isinstance(told, bytes) else json.dumps(told).encode(),
        capture_output=True,
        check=True,
    )
    assert b"wolfram" not in process.stdout


def written(home: Path, *but: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and path not in but)


def claude(home: Path) -> Path:
    blocks = ["a <private>wolfram", "wolfram", "wolfram</private> Remember that the blocks are one message."]
    return transcript(
        home,
        said(
            "user", "Remember that <PRIVATE why='x>y'>\nthe key is wolfram\n</Private > we deploy on Fridays."
        ),
        said("user", "<private>wolfram <private>wolfram</private> wolfram</private>Please go on."),
        said("user", "x" * 9_000 + "<private>" + "wolfram " * 5_000 + "</private>" + "y" * 9_000),
        called("Bash", "1", command="deploy <private>wolfram</private> --now"),
        returned("1", "Error: <private>wolfram"),
        called("Write", "2", file_path="/srv/<private>wolfram</private>/a.txt", content="wolfram"),
        returned("2", "written"),
        line(type="user", message={"role": "user", "content": [{"type": "text", "text": t} for t in blocks]}),
        said("assistant", "Done. <private>wolfram"),
        said("user", ENDLESS),
    )


def codex(home: Path) -> Path:
    path = home / ".codex" / "sessions" / "s-1.jsonl"
    path.parent.mkdir(parents=True)
    items: list[dict[str, Any]] = [
        {"type": "function_call", "name": "shell", "call_id": "1", "arguments": ESCAPED},
        {
            "type": "function_call_output",
            "call_id": "1",
            "output": json.dumps({"output": "<private>wolfram"}),
        },
        {"type": "local_shell_call", "call_id": "2", "action": {"command": ["x", "<private>", "wolfram"]}},
        {"type": "function_call_output", "call_id": "2", "output": "no"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"text": "Yes. <private>wolfram"}, {"text": "wolfram"}],
        },
    ]
    lines = [line(type="response_item", payload=each) for each in items]
    path.write_text(
        "".join([*lines, line(type="event_msg", payload={"type": "user_message", "message": ENDLESS})])
    )
    return path


def cursor(home: Path) -> Path:
    path = home / ".cursor" / "projects" / "s-1.jsonl"
    path.parent.mkdir(parents=True)
    block = {"type": "text", "text": f"<user_query>{ENDLESS}</user_query>"}
    path.write_text(line(role="user", message={"content": [block, {"type": "text", "text": "wolfram"}]}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("client", STOPS)
def test_nothing_private_is_in_spool_store_or_answers_whichever_client_told_it(
    tmp_path: Path, client: str
) -> None:
    event = STOPS[client] | {"cwd": str(tmp_path)}
    paths = []
    if client == "gemini":
        after = {"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "<private>wolfram"}}
        run_hook(
            tmp_path,
            "post-tool",
            client,
            event | after | {"tool_response": {"llmContent": "<private>wolfram"}},
        )
        event |= {"prompt": ENDLESS, "prompt_response": "Yes. <private>wolfram</private>"}
    else:
        paths = [{"claude-code": claude, "codex": codex, "cursor": cursor}[client](tmp_path)]
        event["transcript_path"] = str(paths[0])
    run_hook(tmp_path, "user-prompt", client, event | {"prompt": ENDLESS})
    run_hook(tmp_path, "stop", client, event)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "store" / "spool").glob("*.json"))
    assert b"tabs are used" in kept
    assert PRIVATE.encode() in kept
    assert b"wolfram" not in written(tmp_path, *paths)
    with serving(tmp_path, "--user", "ann", "--agent", client, "--embedder", "none") as server:
        while waiting(tmp_path / "store").files:
            server.call("list_sessions")
        run_hook(tmp_path, "user-prompt", client, event | {"prompt": ENDLESS})
        sessions = [each["session_id"] for each in server.call("list_sessions")["sessions"]]
        messages = json.dumps([server.call("get_messages", session_id=each) for each in sessions])
        found = json.dumps(server.call("memory_search", query="tabs"))
        assert "tabs are used" in messages
        assert "remember" in found
        assert "wolfram" not in messages + found
    assert b"wolfram" not in written(tmp_path, *paths)


@pytest.mark.slow
def test_nothing_private_is_written_where_a_hook_fails_or_is_cut_by_its_time_limit(tmp_path: Path) -> None:
    path = claude(tmp_path)
    event = STOPS["claude-code"] | {"transcript_path": str(path), "prompt": ENDLESS}
    for limit in ("0.001", "0.05", "0.1", "0.2", "0.4"):
        run_hook(tmp_path, "stop", "claude-code", event, limit)
    run_hook(tmp_path, "stop", "claude-code", event | {"transcript_path": "/x/<private>wolfram.jsonl"})
    run_hook(tmp_path, "<private>wolfram", "claude-code", event)
    run_hook(tmp_path, "stop", "<private>wolfram", event)
    run_hook(tmp_path, "stop", "claude-code", b'{"prompt": "<private>wolfram')
    everything = written(tmp_path, path)
    assert b"failures" in b"".join(bytes(each) for each in tmp_path.rglob("*"))
    assert b"wolfram" not in everything


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>x</private> b", f"a {PRIVATE} b"),
        ("<PRIVATE why='a>b'>x\n<private>y</private>z</Private > b", f"{PRIVATE} b"),
        ("<private\nid=1>x</private\n>b<private/>c", f"{PRIVATE}b{PRIVATE}"),
        ("a <private>x", f"a {PRIVATE}"),
        ("a <private>x</private", f"a {PRIVATE}"),
        ("a <private>x</private> <private>y</private>", f"a {PRIVATE} {PRIVATE}"),
        ("</private> a </private>", "</private> a </private>"),
        ("a <privateKey>b</privateKey> <private-x> &lt;private&gt; < private <private", None),
        ("private: a < b > c", None),
        ("a > b <private c", None),
    ],
)
def test_private_parts_are_cut_and_nothing_else(text: str, left: str | None) -> None:
    assert cut_private(text) == (text if left is None else left)


def test_the_blocks_of_a_message_are_one_text_and_members_of_an_event_are_not() -> None:
    call = {"type": "tool_use", "name": "Bash", "input": {"command": "x", "list": [1, "y"]}}
    blocks = [{"type": "text", "text": "<private>a"}, call, {"type": "text", "text": "b</private>c"}, "d"]
    assert cut_private_in({"prompt": "<private>a", "cwd": "/b", "content": blocks}) == {
        "prompt": PRIVATE,
        "cwd": "/b",
        "content": [
            {"type": "text", "text": PRIVATE},
            {"type": "tool_use", "name": "Bash", "input": {"command": PRIVATE, "list": [1, PRIVATE]}},
            {"type": "text", "text": f"{PRIVATE}c"},
            "d",
        ],
    }
