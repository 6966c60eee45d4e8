"""The audit log: what is in it, what never is, who reads it, and its command."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing
from harness import PATIENCE
from support.agents import FAST, Enter, refused
from support.agents import json as raw
from support.commands import run_on_store, sentence, serving
from support.journals import tampering

from greenroom.actors import (
    AddMessage,
    Agent,
    AuditRow,
    CreateSession,
    ExportMemories,
    ExportSession,
    GetAuditLog,
    GetSession,
    MemorySearch,
    Principal,
    ReadResource,
    SearchContext,
    SetMemory,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.audit.record import INDEX
from greenroom.actors.core.replies import paging as base_cursor
from greenroom.runtime import Actor, Context, Index, Message, handles, open_runtime
from greenroom.testing import mcp_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from greenroom.actors import AuditRecord
    from greenroom.runtime import RuntimeClient

QUIET: dict[str, Any] = {"embedder": "none"}
CONTENT = "the dragon sleeps under the third hill"
BOSS = Principal(agent_id="boss", scopes=frozenset({"audit:read"}))


async def log(reader: Agent, **wanted: Any) -> list[AuditRecord]:
    """All pages, newest first, once what was told has arrived."""
    await trio.testing.wait_all_tasks_blocked()
    records: list[AuditRecord] = []
    cursor = None
    while True:
        page = await reader.ask(GetAuditLog(cursor=cursor, **wanted))
        records += page.records
        cursor = page.next_cursor
        if cursor is None:
            return records


# -- what is in it -------------------------------------------------------------------------------------


@pytest.mark.promise("audit.records")
async def test_deeds_searches_denials_and_exports_are_in_it_with_who_and_from_where(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        alice = at.agent(
            "alice",
            "planner",
            user="ann",
            key_id="KEY123456789",
            address="192.0.2.7",
            projects=frozenset({"p"}),
        )
        mallory = at.agent("mallory", projects=frozenset(), address="192.0.2.66")
        await alice.ask(CreateSession(purpose="p", session_id="s", project_id="p"))
        await alice.ask(AddMessage(session_id="s", content=CONTENT))
        await alice.ask(SearchContext(session_id="s", query="dragon"))
        await alice.ask(StoreMemory(content=CONTENT, key="hill"))
        await alice.ask(MemorySearch(query="dragon"))
        await alice.ask(ExportMemories())
        with refused("SESSION_NOT_FOUND"):
            await mallory.ask(GetSession(session_id="s"))
        with refused("PERMISSION_DENIED"):
            await mallory.ask(StoreMemory(content="x", namespace="project:p"))
        boss = Agent(at.runtime, BOSS)
        found = {record.action: record for record in await log(boss)}
        assert set(found) >= {
            "create_session",
            "add_message",
            "search_context",
            "store_memory",
            "search_memories",
            "export_memories",
            "get_session",
        }
        added = found["add_message"]
        assert (added.agent, added.agent_type, added.user, added.key_id, added.address) == (
            "alice",
            "planner",
            "ann",
            "KEY123456789",
            "192.0.2.7",
        )
        assert (added.session_id, added.outcome, added.details["characters"]) == ("s", "done", len(CONTENT))
        denied = found["get_session"]
        assert (denied.outcome, denied.agent, denied.address, denied.session_id) == (
            "denied",
            "mallory",
            "192.0.2.66",
            "s",
        )
        wrote = await log(boss, action="store_memory", outcome="denied")
        assert [record.agent for record in wrote] == ["mallory"]
        assert (
            wrote[0].details["namespace"] if "namespace" in wrote[0].details else wrote[0].details["target"]
        )


@pytest.mark.promise("audit.records")
async def test_who_lacks_a_scope_is_in_it_over_the_relay_too(folder: Path) -> None:
    async with (
        open_greenroom(folder, **QUIET, options=FAST) as owner,
        open_greenroom(folder, **QUIET, options=FAST) as attached,
    ):
        assert attached.role == "attached"
        reader = Principal(agent_id="reader", scopes=frozenset({"sessions:read"}), address="192.0.2.9")
        for runtime in (owner, attached):
            with refused("PERMISSION_DENIED", scope="sessions:write"):
                await Agent(runtime, reader).ask(CreateSession(purpose="p"))
            with refused("PERMISSION_DENIED", scope="memory:read"):
                await Agent(runtime, reader).ask(ReadResource(uri="agent://reader/memory"))
            hears = Agent(runtime, reader).subscriber()
            with hears, refused("PERMISSION_DENIED", scope="memory:read"):
                hears.add("agent://reader/memory")
            with refused("PERMISSION_DENIED", scope="memory:read"):
                await Agent(runtime, reader).ask(ExportSession(session_id="s", include_memories=True))
        record_action(attached, "authenticate", outcome="denied", address="192.0.2.10")
        boss = Agent(attached, BOSS)
        with trio.fail_after(PATIENCE):
            while len(records := await log(boss, outcome="denied")) < 5:
                pass
        assert {(record.action, record.address) for record in records} == {
            ("create_session", "192.0.2.9"),
            ("read_resource", "192.0.2.9"),
            ("subscribe", "192.0.2.9"),
            ("export_session", "192.0.2.9"),
            ("authenticate", "192.0.2.10"),
        }
        assert sum(record.times for record in records) == 9


@pytest.mark.promise("audit.records")
async def test_no_content_is_in_it(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        alice = at.agent("alice")
        await alice.ask(CreateSession(purpose=CONTENT, session_id="s", metadata=raw(f'{{"m": "{CONTENT}"}}')))
        await alice.ask(AddMessage(session_id="s", content=CONTENT, metadata=raw(f'{{"m": "{CONTENT}"}}')))
        await alice.ask(SearchContext(session_id="s", query=CONTENT))
        await alice.ask(SetMemory(key="k", value=raw(f'"{CONTENT}"')))
        await alice.ask(StoreMemory(content=CONTENT, key="hill"))
        await alice.ask(MemorySearch(query=CONTENT))
        records = await log(Agent(at.runtime, BOSS))
        assert len(records) >= 6
        text = msgspec.json.encode(records).decode()
        for word in ("dragon", "sleeps", "third"):
            assert word not in text


async def test_strangers_at_the_door_fill_no_log(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        for number in range(3_000):
            record_action(at.runtime, "authenticate", outcome="denied", address=f"192.0.2.{number % 3}")
            if number % 100 == 0:
                await trio.testing.wait_all_tasks_blocked()
        records = await log(Agent(at.runtime, BOSS), action="authenticate")
        assert len(records) == 3
        assert sum(record.times for record in records) == 3_000


# -- who reads it --------------------------------------------------------------------------------------


@pytest.mark.promise("audit.reading")
@pytest.mark.parametrize(
    "scopes", [set(), {"sessions:*", "memory:*", "*:read", "*:write"}, {"admin"}, {"audit:write"}]
)
async def test_nobody_reads_it_without_the_scope(enter: Enter, scopes: set[str]) -> None:
    async with enter(**QUIET) as at:
        agent = at.agent("a", scopes=frozenset(scopes))
        with refused("PERMISSION_DENIED", scope="audit:read"):
            await agent.ask(GetAuditLog())
        tried = await log(Agent(at.runtime, BOSS), outcome="denied")
        assert [(record.action, record.agent) for record in tried] == [("get_audit_log", "a")]


@pytest.mark.promise("audit.reading")
async def test_pages_and_filters_miss_nothing_and_repeat_nothing(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        boss = Agent(at.runtime, BOSS)
        await alice.ask(CreateSession(purpose="p", session_id="s"))
        begin = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at.clock.now())
        for number in range(120):
            await (alice if number % 2 else bob).ask(AddMessage(session_id="s", content="x"))
            at.tick()
        for limit in (1, 7, 50, 200):
            records = await log(boss, limit=limit, action="add_message")
            assert len(records) == 120
            numbers = [record.number for record in records]
            assert numbers == sorted(set(numbers), key=lambda number: -(number or 0))
        assert len(await log(boss, agent="bob", action="add_message")) == 60
        assert len(await log(boss, agent="carol")) == 0
        middle = begin + dt.timedelta(seconds=100)
        young = await log(boss, after=middle, action="add_message")
        old = await log(boss, before=middle, action="add_message")
        assert (len(young), len(old)) == (20, 100)
        page = await boss.ask(GetAuditLog(limit=1))
        with refused("VALIDATION_ERROR", field="cursor"):
            await boss.ask(GetAuditLog(cursor=page.next_cursor, agent="bob"))


@pytest.mark.quick
@pytest.mark.promise("audit.reading")
async def test_reading_it_is_in_it(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        boss = Agent(at.runtime, BOSS)
        await boss.ask(GetAuditLog(agent="alice"))
        (record,) = await log(boss, action="get_audit_log")
        assert (record.agent, record.details) == ("boss", {"filters": ["agent"]})


@pytest.mark.promise("audit.reading")
async def test_no_page_is_read_without_a_record_and_made_up_cursors_do_no_harm(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        for _ in range(3):
            await at.agent("alice").ask(CreateSession(purpose="p"))
        boss = Agent(at.runtime, BOSS)
        first = await boss.ask(GetAuditLog(action="create_session", limit=2))
        await boss.ask(GetAuditLog(action="create_session", limit=2, cursor=first.next_cursor))
        binding = 'audit {"action":"create_session"}'
        places = (b"", b"j", b"o", b"x", b"j" + bytes(8), b"j" + b"\xff" * 8, b"j" * 100, b"o" * 100)
        for place in places:
            await boss.ask(GetAuditLog(action="create_session", cursor=base_cursor.encode(place, binding)))
        read = await log(boss, action="get_audit_log")
        assert sum(record.times for record in read) == 2 + len(places)


async def test_the_tool_is_shown_to_those_who_may_by_name_and_answers(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await at.agent("alice").ask(CreateSession(purpose="p", session_id="s"))
        for principal, shown in (
            (BOSS, True),
            (Principal(agent_id="all"), False),
            (Principal(agent_id="other", scopes=frozenset({"sessions:*"})), False),
        ):
            async with mcp_client(_door(at.runtime, principal)) as client:
                await client.initialize()
                listed = (await client.request("tools/list"))["result"]["tools"]
                assert ("get_audit_log" in {tool["name"] for tool in listed}) is shown
                answer = await client.call("get_audit_log", action="create_session")
                if "sessions:*" in principal.scopes:
                    assert answer["code"] == "PERMISSION_DENIED"
                else:
                    assert [each["session_id"] for each in answer["records"]] == ["s"]


def _door(runtime: RuntimeClient, principal: Principal) -> Callable[[str], Agent]:
    return lambda _name: Agent(runtime, principal)


class WriteOld(Message[None], frozen=True):
    count: int


class OldSession(Actor):
    """Writes the records that there were before the log was linked."""

    kind = "session"

    @handles(WriteOld)
    def write(self, message: WriteOld, context: Context) -> None:
        for number in range(message.count):
            row = (context.now, "alice", "s", "add_message", {"number": number})
            context.put_row(INDEX, context.now.to_bytes(8) + number.to_bytes(8), row)


async def test_records_from_before_are_read_behind_the_linked_ones(folder: Path) -> None:
    from greenroom.runtime import Address  # noqa: PLC0415 - an actor of before, here alone

    async with open_runtime(folder, actors=[OldSession], indexes=[Index(INDEX)], options=FAST) as runtime:
        await runtime.ask(Address("session", "s"), WriteOld(count=30))
    async with open_greenroom(folder, **QUIET, options=FAST) as shared:
        await Agent(shared, Principal(agent_id="bob")).ask(CreateSession(purpose="p", session_id="t"))
        records = await log(Agent(shared, BOSS), limit=7)
        old = [record for record in records if record.number is None]
        assert [record.details["number"] for record in old] == list(range(29, -1, -1))
        assert {record.outcome for record in old} == {"done"}
        assert records.index(old[0]) == len(records) - 30
    assert AuditRow(1, "a", None, "b", {}).outcome == "done"


# -- the command ---------------------------------------------------------------------------------------


@pytest.mark.promise("audit.command")
def test_the_command_shows_exports_and_checks_beside_a_server_and_without(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "alice") as server:
        session = server.call("create_session", purpose=CONTENT)["session_id"]
        for _ in range(30):
            server.call("add_message", session_id=session, content=CONTENT)
        shown = run_on_store(tmp_path, "audit", "tail", "--lines", "5")
        assert shown.returncode == 0, shown.stderr
        lines = shown.stdout.splitlines()
        assert len(lines) == 5
        assert all("add_message done" in line and "agent alice" in line for line in lines), lines
        verified = run_on_store(tmp_path, "audit", "verify")
        assert (verified.returncode, verified.stderr) == (0, "")
        assert "records are intact" in verified.stdout
        assert run_on_store(tmp_path, "backup", str(tmp_path / "copy")).returncode == 0
        done = run_on_store(tmp_path, "audit", "export", "--file", str(tmp_path / "audit.jsonl"))
        assert done.returncode == 0, done.stderr
        assert server.end() == 0
    exported = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    assert [record["number"] for record in exported[:-1]] == list(range(1, len(exported)))
    assert exported[-1]["checkpoint"]["count"] == len(exported) - 1
    assert CONTENT not in (tmp_path / "audit.jsonl").read_text()
    again = run_on_store(tmp_path, "audit", "export", "--file", str(tmp_path / "audit.jsonl"))
    assert "File exists" in sentence(again)
    found = run_on_store(tmp_path, "audit", "verify", "--checkpoint", str(tmp_path / "audit.jsonl"), "--json")
    assert found.returncode == 0
    assert json.loads(found.stdout)["intact"]
    actions = [
        json.loads(line)["action"]
        for line in run_on_store(tmp_path, "audit", "tail", "--json").stdout.splitlines()
    ]
    assert {"export_audit", "verify_audit", "backup_store"} <= set(actions)


@pytest.mark.promise("audit.command")
def test_the_command_fails_when_records_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.journals.NAME", "audit")
    with serving(tmp_path) as server:
        for _ in range(5):
            server.call("create_session", purpose="p")
        assert server.end() == 0
    checkpoint = run_on_store(tmp_path, "audit", "checkpoint")
    (tmp_path / "kept.json").write_text(checkpoint.stdout)
    with tampering(tmp_path / "store") as store:
        store.remove(2)
    done = run_on_store(tmp_path, "audit", "verify", "--checkpoint", str(tmp_path / "kept.json"))
    assert done.returncode == 65
    assert "record 2 is missing" in done.stdout
    bad = run_on_store(tmp_path, "audit", "verify", "--checkpoint", str(tmp_path / "nothing"))
    assert "No such file" in sentence(bad)
    (tmp_path / "text").write_text("hello\n")
    bad = run_on_store(tmp_path, "audit", "verify", "--checkpoint", str(tmp_path / "text"))
    assert "no checkpoint" in sentence(bad)
    bad = run_on_store(tmp_path, "audit", "destroy")
    assert (bad.returncode, "choose from 'tail'" in bad.stderr) == (2, True)


def test_a_lost_secret_is_renewed_and_the_log_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.call("create_session", purpose="p")
        assert "in use by" in sentence(run_on_store(tmp_path, "secret", "renew"))
        assert server.end() == 0
    (key,) = tmp_path.rglob("*.key")
    key.unlink()
    assert "greenroom secret renew" in sentence(run_on_store(tmp_path, "audit", "verify"))
    done = run_on_store(tmp_path, "secret", "renew")
    assert done.returncode == 0, done.stderr
    assert key.read_text().strip() not in done.stdout + done.stderr
    with serving(tmp_path) as server:
        server.call("create_session", purpose="p")
        assert server.end() == 0
    verified = run_on_store(tmp_path, "audit", "verify")
    assert verified.returncode == 65
    assert "written under another secret" in verified.stdout


@pytest.mark.promise("audit.tampering")
def test_a_backup_that_was_restored_is_told_and_is_no_fault_but_one_put_there_is(tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with serving(tmp_path) as server:
        for _ in range(3):
            server.call("create_session", purpose="p")
        assert server.end() == 0
    assert run_on_store(tmp_path, "backup", copy).returncode == 0
    with serving(tmp_path) as server:
        for _ in range(3):
            server.call("create_session", purpose="p")
        assert server.end() == 0
    assert run_on_store(tmp_path, "restore", copy).returncode == 0
    done = run_on_store(tmp_path, "audit", "verify")
    assert done.returncode == 0, done.stdout
    assert "were lost when a backup was restored" in done.stdout
    with serving(tmp_path) as server:
        server.call("create_session", purpose="p")
        assert server.end() == 0
    shutil.copyfile(copy, tmp_path / "store" / "greenroom.mdb")
    done = run_on_store(tmp_path, "audit", "verify")
    assert done.returncode == 65
    assert "had been seen and were missing" in done.stdout


@pytest.mark.promise("audit.crash", "audit.with-the-deed")
def test_kill_9_leaves_every_answered_deed_with_its_record_and_no_gap(tmp_path: Path) -> None:
    answered = 0
    for _ in range(3):
        with serving(tmp_path, "--agent", "alice") as server:
            if not answered:
                server.call("create_session", purpose="p", session_id="s")
            for _ in range(40):
                server.send_call("add_message", session_id="s", content="x")
            for _ in range(25):
                assert server.receive()["result"]["structuredContent"]["success"]
                answered += 1
            server.process.kill()
            server.process.wait()
    with serving(tmp_path, "--agent", "alice") as server:
        written = server.call("get_messages", session_id="s", limit=1000)["total"]
        records: list[Any] = []
        cursor = None
        while True:
            page = server.call("get_audit_log", action="add_message", limit=200, cursor=cursor)
            records += page["records"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert server.end() == 0
    assert answered <= written == len(records)
    verified = run_on_store(tmp_path, "audit", "verify")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.promise("audit.crash")
def test_after_a_takeover_the_log_goes_on_where_it_was(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "owner") as owner:
        owner.call("create_session", purpose="p", session_id="s")
        with serving(tmp_path, "--agent", "heir") as heir:
            for _ in range(5):
                heir.call("add_message", session_id="s", content="x")
                owner.call("add_message", session_id="s", content="x")
            heir.call("search_by_sender", session_id="s", sender="heir")
            owner.process.kill()
            owner.process.wait()
            for _ in range(5):
                heir.call("add_message", session_id="s", content="x")
            page = heir.call("get_audit_log", action="add_message", limit=200)
            assert sorted(record["agent"] for record in page["records"]) == ["heir"] * 10 + ["owner"] * 5
            assert heir.end() == 0
    verified = run_on_store(tmp_path, "audit", "verify")
    assert verified.returncode == 0, verified.stdout
