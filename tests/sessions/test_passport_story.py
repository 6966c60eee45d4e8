"""A session goes from one server to another, as their clients see it: two programs, HTTP, and one link."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from sockets.test_http_process import call, guests_at, server
from support.https import Answer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.promise("passport.story")]

WORK: dict[str, Any] = {
    "files_accessed": [{"path": "src/gateway.py", "importance": 0.9}],
    "recent_searches": ["which port does the gateway listen on"],
    "decisions": [{"what": "it listens on 8080", "why": "the port is free"}],
    "workflow_state": {"task": "port the gateway", "step": "write its tests"},
}


async def left(home: Path, base_url: str | None = None) -> str:
    """Work in a session, and return the passport that its link gives after the client has gone."""
    flags = () if base_url is None else ("--base-url", base_url)
    async with server(home, *flags) as (_, port):
        async with guests_at(port) as (guest,):
            await guest.initialize(greenroom_agent="claude-code")
            started = await call(guest, "start_session", purpose="Port the gateway")
            for content in ("the gateway has no tests", "I write them"):
                await call(guest, "add_message", session_id=started["session_id"], content=content)
            await call(guest, "record_context", **WORK)
            url = started["memory_passport"]["export_url"]
        base = f"http://127.0.0.1:{port}" if base_url is None else base_url.rstrip("/")
        assert url.startswith(f"{base}/passport/")
        path = url.removeprefix(base)
        first, second = await fetched(port, path), await fetched(port, path)
    assert (first.status, second.status) == (200, 404)
    return first.body.decode()


async def fetched(port: int, path: str) -> Answer:
    async with guests_at(port) as (anybody,):
        return await anybody.ask("GET", path)


@pytest.mark.quick
async def test_a_session_is_taken_to_another_server_by_a_link(tmp_path: Path) -> None:
    passport = await left(tmp_path / "here")
    signer = json.loads(passport)["signature"]["key"]
    async with server(tmp_path / "there", "--trust-signer", signer) as (_, port), guests_at(port) as (guest,):
        await guest.initialize(greenroom_agent="cursor")
        began = time.perf_counter()
        restored = await call(guest, "restore_session", passport=passport)
        sys.stdout.write(f"restored on another server in {time.perf_counter() - began:.2f} s\n")
        assert restored["context"]["decisions"][0]["what"] == "it listens on 8080"
        assert restored["context"]["files_accessed"][0]["path"] == "src/gateway.py"
        assert restored["context"]["workflow_state"]["step"] == "write its tests"
        page = await call(guest, "get_messages", session_id=restored["session_id"])
        assert [message["content"] for message in page["messages"]] == [
            "the gateway has no tests",
            "I write them",
        ]


async def test_a_passport_of_which_one_byte_was_changed_is_refused(tmp_path: Path) -> None:
    passport = await left(tmp_path / "here", "https://greenroom.example.org/office/")
    signer = json.loads(passport)["signature"]["key"]
    data = json.loads(passport)["compressed_context"]
    async with server(tmp_path / "there", "--trust-signer", signer) as (_, port), guests_at(port) as (guest,):
        await guest.initialize(greenroom_agent="cursor")
        for said, other in (
            ('"what":"it listens on 8080"', '"what":"it listens on 8081"'),
            ('"total_searches":1', '"total_searches":2'),
            (data[:30], data[:29] + ("A" if data[29] != "A" else "B")),
        ):
            assert passport.count(said) == 1
            refused = await call(guest, "restore_session", passport=passport.replace(said, other))
            assert refused["code"] == "PASSPORT_INVALID"
        assert (await call(guest, "list_sessions"))["count"] == 0
        assert (await call(guest, "restore_session", passport=passport))["messages"] == 2
