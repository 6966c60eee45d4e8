"""Limits name what they limit, a repeat is done once, and deeds leave a trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import FAR_AHEAD, LONG_AGO, AuditTrail, begin, json, keep, keys, refused, say

from greenroom.actors import (
    AddMessage,
    CreateSession,
    DeleteMemory,
    GetMessages,
    GetSession,
    ListSessions,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    UpdateSession,
    parse_request,
)
from greenroom.runtime import IdempotencyConflictError, RuntimeOptions, StorageFullError

if TYPE_CHECKING:
    from support.agents import Enter


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize(
    ("request_type", "arguments", "field", "told"),
    [
        (CreateSession, {"purpose": ""}, "purpose", {"size": 0}),
        (CreateSession, {"purpose": "x" * 501}, "purpose", {"size": 501}),
        (CreateSession, {}, "purpose", {}),
        (CreateSession, {"purpose": 5}, "purpose", {"value": "5"}),
        (CreateSession, {"purpose": "p", "metadata": [1]}, "metadata", {}),
        (CreateSession, {"purpose": "p", "metadata": "[]"}, "metadata", {}),
        (CreateSession, {"purpose": "p", "app_name": ""}, "app_name", {"size": 0}),
        (AddMessage, {"session_id": "s", "content": ""}, "content", {"size": 0}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "message_type": "x" * 51},
            "message_type",
            {"size": 51},
        ),
        (AddMessage, {"session_id": "s", "content": "c", "visibility": "secret"}, "visibility", {"size": 6}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "idempotency_key": "x" * 256},
            "idempotency_key",
            {},
        ),
        (AddMessage, {"session_id": "s", "content": "c", "parent_message_id": "1"}, "parent_message_id", {}),
        (
            AddMessage,
            {"session_id": "s", "content": "c", "parent_message_id": 2**53},
            "parent_message_id",
            {},
        ),
        (GetMessages, {"session_id": "s", "limit": 0}, "limit", {"value": "0"}),
        (GetMessages, {"session_id": "s", "limit": 1001}, "limit", {"value": "1001"}),
        (GetMessages, {"session_id": "s", "limit": True}, "limit", {"value": "true"}),
        (GetMessages, {"session_id": "s", "offset": -1}, "offset", {"value": "-1"}),
        (GetMessages, {"session_id": "s", "page": 2}, "page", {}),
        (ListSessions, {"limit": 201}, "limit", {"value": "201"}),
        (ListSessions, {"status": "open"}, "status", {"size": 4}),
        (SearchContext, {"session_id": "s", "query": "x" * 501}, "query", {"size": 501}),
        (SearchContext, {"session_id": "s", "query": "q", "fuzzy_threshold": 100.5}, "fuzzy_threshold", {}),
        (SearchContext, {"session_id": "s", "query": "q", "limit": 101}, "limit", {"value": "101"}),
        (SearchContext, {"session_id": "s", "query": "q", "recent_hours": 0}, "recent_hours", {"value": "0"}),
        (SearchContext, {"session_id": "s", "query": "q", "search_scope": "agent_only"}, "search_scope", {}),
        (SearchBySender, {"session_id": "s", "sender": ""}, "sender", {"size": 0}),
        (
            SearchByTimerange,
            {"session_id": "s", "start_time": "2026-01-01T00:00:0", "end_time": "2026-01-01T00:00:00Z"},
            "start_time",
            {"size": 18},
        ),
        (
            SearchByTimerange,
            {"session_id": "s", "start_time": "yesterday", "end_time": "x"},
            "start_time",
            {"size": 9},
        ),
    ],
)
def test_a_violated_limit_names_the_field_and_the_size(
    request_type: Any, arguments: dict[str, Any], field: str, told: dict[str, Any]
) -> None:
    with refused("VALIDATION_ERROR", field=field, **told) as caught:
        parse_request(request_type, msgspec.json.encode(arguments))
    assert str(caught.value).startswith(field)


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize("limit", [10_000, 20, 1_048_576])
async def test_content_has_the_configured_limit_in_characters(enter: Enter, limit: int) -> None:
    options = {} if limit == 10_000 else {"content_limit": limit}
    async with enter(**options) as at:
        alice = await begin(at)
        await say(alice, "s", "x" * limit)
        if limit < 1_000_000:
            await say(alice, "s", "\U0001f600" * limit)
            with refused("VALIDATION_ERROR", field="content", limit=limit, size=limit + 1, unit="characters"):
                await say(alice, "s", "x" * (limit + 1))
        else:
            with refused("VALIDATION_ERROR", field="content", limit=limit, size=2 * limit, unit="bytes"):
                await say(alice, "s", "é" * limit)
            with refused("VALIDATION_ERROR", field="content", size=limit + 1):
                await say(alice, "s", "x" * (limit + 1))


@pytest.mark.parametrize("options", [{"content_limit": 0}, {"content_limit": 1_048_577}, {"audit_days": 0}])
async def test_an_impossible_setting_is_no_setting(enter: Enter, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        async with enter(**options):
            raise AssertionError("it opened")


@pytest.mark.promise("runtime.exactly-once")
async def test_a_repeated_key_gets_the_first_answer(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        first = await alice.ask(CreateSession(purpose="p", idempotency_key="k"))
        at.tick()
        assert await alice.ask(CreateSession(purpose="p", idempotency_key="k")) == first
        assert len((await alice.ask(ListSessions())).sessions) == 1
        session_id = first.session_id
        said = AddMessage(
            session_id=session_id, content="c", metadata=json('{"a": 1, "b": 2}'), idempotency_key="k"
        )
        message = await alice.ask(said)
        again = msgspec.structs.replace(said, metadata=json(' {"b":2,"a":1}'))
        assert await alice.ask(again) == message
        with pytest.raises(IdempotencyConflictError):
            await alice.ask(msgspec.structs.replace(said, metadata=json('{"a": 1.0, "b": 2}')))
        with pytest.raises(IdempotencyConflictError):
            await alice.ask(msgspec.structs.replace(said, visibility="private"))
        assert (await bob.ask(said)).message_id != message.message_id
        updated = UpdateSession(session_id=session_id, metadata=json('{"n": 1.10}'), idempotency_key="k")
        assert bytes((await alice.ask(updated)).session.metadata) == b'{"n":1.10}'
    async with enter() as at:
        alice = at.agent("alice")
        assert await alice.ask(said) == message
        assert bytes((await alice.ask(updated)).session.metadata) == b'{"n":1.10}'
        assert (await alice.ask(GetSession(session_id=session_id))).statistics.message_count == 2


@pytest.mark.promise("sessions.audit")
async def test_changes_and_searches_leave_a_trail_without_content(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        await say(alice, "s", "a secret text", visibility="private", metadata=json('{"x": "secret"}'))
        await bob.ask(SearchContext(session_id="s", query="secret words"))
        await bob.ask(SearchBySender(session_id="s", sender="alice"))
        await bob.ask(SearchByTimerange(session_id="s", start_time=LONG_AGO, end_time=FAR_AHEAD))
        await alice.ask(UpdateSession(session_id="s", status="paused", state=json('{"y": "secret"}')))
        await bob.ask(GetMessages(session_id="s"))
        with refused("SESSION_NOT_FOUND"):
            await say(bob, "nowhere", "secret")
        trail = await at.runtime.query(AuditTrail())
        assert sorted((row.agent, row.session, row.action) for row in trail) == [
            ("alice", "s", "add_message"),
            ("alice", "s", "create_session"),
            ("alice", "s", "update_session"),
            ("bob", "s", "search_by_sender"),
            ("bob", "s", "search_by_timerange"),
            ("bob", "s", "search_context"),
        ]
        assert all(row.at == at.clock.now() for row in trail)
        assert b"secret" not in msgspec.json.encode(trail)


@pytest.mark.promise("store.space-reserve")
async def test_a_full_store_still_reads_searches_and_forgets(enter: Enter) -> None:
    small = RuntimeOptions(durability="process", max_size=3 << 20, min_free=0)
    async with enter(options=small) as at:
        alice = await begin(at)
        await keep(alice, "k", '"' + "x" * 10_000 + '"')
        written = 0
        with pytest.raises(StorageFullError):  # noqa: PT012  which of them finds no room is not the point
            for written in range(1_000):
                await say(alice, "s", f"{written} " + "x" * 9_000)
        with pytest.raises(StorageFullError):
            await keep(alice, "other", '"' + "x" * 10_000 + '"')
        assert (await alice.ask(GetSession(session_id="s"))).statistics.message_count == written
        found = await alice.ask(SearchContext(session_id="s", query="7", max_rows_scanned=None))
        assert found.scanned == written
        assert (await alice.ask(DeleteMemory(key="k"))).existed
        assert (await keys(alice)) == []
        assert "search_context" in [row.action for row in await at.runtime.query(AuditTrail())]
