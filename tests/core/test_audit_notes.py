"""Records of reads and denials: a crash, a takeover and a full store cost some of them, and never the log."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import json as raw
from support.audits import since
from support.commands import run_on_store, serving

from greenroom.actors import DeleteMemory, GetSession, SetMemory
from greenroom.runtime import Refusal, RuntimeOptions, StorageFullError

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter
    from support.commands import Server

DENIED = {"purpose": "p", "user_id": "somebody else"}


def denied(server: Server) -> None:
    """Try what the local user may not."""
    server.send_call("create_session", **DENIED)
    assert server.receive()["result"]["isError"]


def records(home: Path) -> list[dict[str, Any]]:
    """Every record, oldest first, of a log that is whole."""
    verified = run_on_store(home, "audit", "verify")
    assert verified.returncode == 0, verified.stdout
    shown = run_on_store(home, "audit", "tail", "--json", "--lines", "10000")
    found = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [record["number"] for record in found] == list(range(1, len(found) + 1))
    return found


def counted(found: list[dict[str, Any]], **wanted: str) -> int:
    fitting = (each for each in found if all(each[name] == value for name, value in wanted.items()))
    return sum(each["times"] for each in fitting)


@pytest.mark.promise("audit.crash", "audit.notes")
def test_kill_9_costs_the_last_second_of_denials_and_searches_and_no_number(tmp_path: Path) -> None:
    rounds, each = 3, 5
    for first in (True, False, False):
        with serving(tmp_path, "--agent", "alice") as server:
            if first:
                server.call("create_session", purpose="p", session_id="s")
            for _ in range(each):
                server.call("add_message", session_id="s", content="x")
                denied(server)
                server.call("search_by_sender", session_id="s", sender="alice")
            server.process.kill()
            server.process.wait()
    found = records(tmp_path)
    assert counted(found, action="add_message", outcome="done") == rounds * each
    # The notes before a change go with it, so of each life only those behind its last change can be lost.
    for action, outcome in (("create_session", "denied"), ("search_by_sender", "done")):
        assert rounds * (each - 1) <= counted(found, action=action, outcome=outcome) <= rounds * each


@pytest.mark.promise("audit.crash", "audit.notes")
def test_after_a_takeover_notes_of_all_processes_go_on_in_one_log(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "owner") as owner:
        owner.call("create_session", purpose="p", session_id="s")
        with serving(tmp_path, "--agent", "heir") as heir, serving(tmp_path, "--agent", "third") as third:
            for server in (owner, heir, third):
                for _ in range(3):
                    denied(server)
                    server.call("search_by_sender", session_id="s", sender="x")
                server.call("add_message", session_id="s", content="x")
            owner.process.kill()
            owner.process.wait()
            for server in (heir, third):
                for _ in range(3):
                    denied(server)
                    server.call("search_by_sender", session_id="s", sender="x")
            third.call("add_message", session_id="s", content="x")  # whose commit takes the notes along
            assert heir.end() == 0
            assert third.end() == 0
    found = records(tmp_path)
    for agent, times in (("owner", 3), ("heir", 6), ("third", 6)):
        assert counted(found, action="create_session", outcome="denied", agent=agent) == times
        assert counted(found, action="search_by_sender", outcome="done", agent=agent) == times


@pytest.mark.promise("audit.notes")
async def test_a_store_without_any_room_costs_notes_that_are_counted_and_told(enter: Enter) -> None:
    """The reserve has room for notes, too, until they have filled it."""
    options = RuntimeOptions(durability="process", max_size=2 << 20, min_free=0)
    async with enter(embedder="none", options=options) as at:
        alice = at.agent("alice")
        kept = 0
        with suppress(StorageFullError):
            while True:
                await alice.ask(SetMemory(key=f"k{kept}", value=raw(f'"{"x" * 50_000}"')))
                kept += 1
        reader = at.agent("reader", scopes=frozenset({"memory:read"}), address="192.0.2.9")
        tried = 0
        while not at.runtime.statistics().commits.dropped_notes:
            for _ in range(200):
                with pytest.raises(Refusal):
                    await reader.ask(GetSession(session_id=f"s{tried}"))
                tried += 1
            await trio.sleep(1.1)
            assert tried < 20_000, "they all found room"
        for number in range(kept):
            await alice.ask(DeleteMemory(key=f"k{number}"))
        with pytest.raises(Refusal):
            await reader.ask(GetSession(session_id="once-more"))
        found = await since(at.runtime, 0)
        written = sum(each.times for each in found if each.action == "get_session")
        lost = [each.details["records"] for each in found if each.action == "lose_records"]
        assert lost
        assert written + sum(lost) == tried + 1
        assert sum(lost) == at.runtime.statistics().commits.dropped_notes
