"""Sessions and memories as resources: what they hold for whom, and who hears of changes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import msgspec
import pytest
import trio
import trio.testing
from msgspec import Raw
from support.agents import begin, json, keep, keys, refused, say, wire

from greenroom.actors import (
    TEMPLATES,
    Agent,
    CompleteResource,
    CreateSession,
    DeleteMemory,
    GetMemory,
    GetMessages,
    ListMemory,
    ListResources,
    ReadResource,
    SetMemory,
    StoreMemory,
    UpdateSession,
)
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.agents import Enter


async def resource(agent: Agent, uri: str) -> dict[str, Any]:
    read: dict[str, Any] = wire(await agent.ask(ReadResource(uri=uri)))
    return read


@pytest.mark.promise("resources.session")
async def test_a_session_resource_holds_what_its_reader_may_see(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        bob = at.agent("bob")
        await say(alice, "s", "for all")
        await say(alice, "s", "for me", visibility="private")
        await say(bob, "s", "from bob", "mine", visibility="private")
        for agent, contents in ((alice, ["for all", "for me"]), (bob, ["for all", "from bob", "mine"])):
            read = await resource(agent, "session://s")
            assert read["session"]["session_id"] == "s"
            assert [message["content"] for message in read["messages"]] == contents
            assert read["statistics"]["message_count"] == len(contents)
            assert (read["has_more"], read["cursor"]) == (False, None)
            info = read["resource_info"]
            assert (info["uri"], info["reader"]) == ("session://s", agent.principal.agent_id)
            assert info["last_updated"] == read["statistics"]["last_activity"]
            assert info["supports_subscriptions"] is True


@pytest.mark.promise("resources.session")
async def test_a_long_session_ends_with_its_newest_hundred(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        await say(alice, "s", *(str(number) for number in range(120)))
        read = await resource(alice, "session://s")
        assert [message["content"] for message in read["messages"]] == [str(n) for n in range(20, 120)]
        assert read["has_more"]
        rest = await alice.ask(GetMessages(session_id="s", cursor=read["cursor"]))
        assert [message.content for message in rest.messages] == [str(n) for n in range(20)]


@pytest.mark.promise("resources.memory")
async def test_a_memory_resource_holds_live_entries_by_scope(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        empty = await resource(alice, "agent://alice/memory")
        assert empty["memory"] == {"global": {}, "sessions": {}}
        assert empty["statistics"] == {"global_keys": 0, "session_scopes": 0, "total_entries": 0}
        assert empty["resource_info"]["last_updated"] is None
        await keep(alice, "old", expires_in=5)
        await keep(alice, "g1")
        await keep(alice, "g2")
        await keep(alice, "k", session_id="s")
        at.tick(6)
        read = await resource(alice, "agent://alice/memory")
        assert list(read["memory"]["global"]) == ["g2", "g1"]
        assert list(read["memory"]["sessions"]["s"]) == ["k"]
        assert read["counts"] == {"global": 2, "sessions": {"s": 1}, "total": 3}
        assert read["statistics"] == {"global_keys": 2, "session_scopes": 1, "total_entries": 3}
        assert (read["has_more"], read["cursor"], read["agent_id"]) == (False, None, "alice")


@pytest.mark.promise("resources.memory")
@pytest.mark.slow
async def test_a_large_memory_resource_leads_on_to_the_listing(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        for number in range(1_010):
            await keep(alice, str(number), session_id="s" if number % 2 else None)
        read = await resource(alice, "agent://alice/memory")
        listed = read["memory"]["global"] | read["memory"]["sessions"]["s"]
        assert {int(key) for key in listed} == set(range(10, 1_010))
        assert read["counts"] == {"global": 505, "sessions": {"s": 505}, "total": 1_010}
        assert read["has_more"]
        rest = await alice.ask(ListMemory(session_id="all", cursor=read["cursor"]))
        assert [int(entry.key) for entry in rest.entries] == list(range(9, -1, -1))
        last = await resource(alice, f"agent://alice/memory?cursor={read['cursor']}")
        assert list(last["memory"]["global"]) == ["8", "6", "4", "2", "0"]
        assert list(last["memory"]["sessions"]["s"]) == ["9", "7", "5", "3", "1"]
        assert (last["has_more"], last["cursor"], last["statistics"]) == (False, None, read["statistics"])


@pytest.mark.promise("resources.memory")
async def test_a_memory_resource_has_values_and_metadata_as_they_were_given(enter: Enter) -> None:
    long = "a text that is kept compressed " * 1_000
    async with enter() as at:
        alice = at.agent("alice")
        await alice.ask(SetMemory(key="k", value=Raw(b"[1]")))
        await alice.ask(SetMemory(key="k", value=Raw(b'{"n":1.50}'), metadata=Raw(b'{"m":null}')))
        await alice.ask(SetMemory(key="s", value=Raw(b'"123"'), expires_in=60))
        await alice.ask(StoreMemory(key="long", content=long, namespace="agent:alice"))
        held = (await resource(alice, "agent://alice/memory"))["memory"]["global"]
        assert {key: (entry["value"], entry["metadata"]) for key, entry in held.items()} == {
            "k": ({"n": 1.5}, {"m": None}),
            "s": ("123", {}),
            "long": (long, {}),
        }
        assert {key: entry["version"] for key, entry in held.items()} == {"k": 2, "s": 1, "long": 1}
        listed = wire(await alice.ask(ListMemory()))["entries"]
        for entry in listed:
            assert {**entry, "value": ANY, "metadata": ANY} == held[entry["key"]]


@pytest.mark.slow
@pytest.mark.promise("resources.memory")
async def test_pages_of_a_memory_resource_fit_into_a_frame(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for number in range(4):
            value = msgspec.json.encode('"' * 260_000)  # each is escaped, here and once more in the frame
            await alice.ask(SetMemory(key=str(number), value=Raw(value)))
        await alice.ask(StoreMemory(key="large", content='"' * 600_000, namespace="agent:alice"))
        pages, uri = [], "agent://alice/memory"
        while True:
            page = await resource(alice, uri)
            pages.append(page["memory"]["global"])
            assert len(msgspec.json.encode(msgspec.json.encode(page).decode())) < 4 * 1_048_576
            if not page["has_more"]:
                break
            uri = f"agent://alice/memory?cursor={page['cursor']}"
        assert [list(each) for each in pages] == [["large", "3", "2"], ["1", "0"]]
        assert "value" not in pages[0].pop("large"), "get_memory has it"
        assert all(entry["value"] == '"' * 260_000 for page in pages for entry in page.values())


@pytest.mark.slow
@pytest.mark.promise("resources.alike")
async def test_a_cursor_opens_nobody_elses_memory_and_none_is_made_up(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        for number in range(1_001):
            await keep(alice, str(number))
        cursor = (await resource(alice, "agent://alice/memory"))["cursor"]
        with pytest.raises(Refusal) as refused:
            await resource(bob, f"agent://alice/memory?cursor={cursor}")
        assert refused.value.code == "RESOURCE_NOT_FOUND"
        with pytest.raises(Refusal, match="cursor"):
            await resource(alice, "agent://alice/memory?cursor=made-up")


@pytest.mark.promise("resources.alike")
@pytest.mark.parametrize(
    "uri",
    [
        "session://nobody",
        "session://theirs",
        "session://all",
        "session://",
        "session://s/",
        "SESSION://s",
        "session://s?x=1",
        "session://../s",
        "session://" + "a" * 500,
        "agent://bob/memory",
        "agent://nobody/memory",
        "agent://alice/memory/",
        "agent://alice/other",
        "agent:///memory",
        "file:///etc/passwd",
        "",
        "\n",
    ],
)
async def test_unknown_forbidden_and_malformed_uris_answer_alike(enter: Enter, uri: str) -> None:
    async with enter() as at:
        await begin(at)
        bob = at.agent("bob", projects=frozenset({"p"}))
        await bob.ask(CreateSession(purpose="p", session_id="theirs", project_id="p"))
        await keep(bob, "k")
        alice = at.agent("alice", projects=frozenset())
        answers = []
        for wanted in (uri, "session://unheard-of"):
            with pytest.raises(Refusal) as caught:
                await alice.ask(ReadResource(uri=wanted))
            refusal = caught.value
            said = str(refusal).replace(repr(wanted[:200]), "URI")
            answers.append((refusal.code, said, list(refusal.details)))
        assert answers[0] == answers[1]
        assert answers[0][0] == "RESOURCE_NOT_FOUND"


@pytest.mark.promise("resources.listing")
async def test_a_listing_holds_the_own_memory_and_the_visible_sessions(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice", projects=frozenset({"p"}))
        outsider = at.agent("bob", projects=frozenset())
        for number in range(5):
            at.tick()
            await alice.ask(
                CreateSession(
                    purpose=f"purpose {number}",
                    session_id=f"s{number}",
                    project_id="p" if number == 3 else None,
                )
            )
        uris: list[str] = []
        cursor = None
        while True:
            page = await outsider.ask(ListResources(cursor=cursor, limit=2))
            uris += [item.uri for item in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        first = ["agent://bob/memory", "session://s4", "session://s2", "greenroom://user/bob/preferences"]
        assert uris == [*first, "greenroom://savings", "session://s1", "session://s0"]
        for uri in uris:
            await outsider.ask(ReadResource(uri=uri))
        whole = await alice.ask(ListResources())
        assert [item.title for item in whole.resources][2] == "purpose 3"
        with refused("VALIDATION_ERROR", field="cursor"):
            await alice.ask(ListResources(cursor="mangled"))


@pytest.mark.promise("resources.completion")
async def test_completion_knows_what_the_reader_may_see(enter: Enter) -> None:
    templates = {each.name: each.uri_template for each in TEMPLATES}
    session, memory = templates["session"], templates["agent_memory"]
    async with enter() as at:
        alice = at.agent("alice", projects=frozenset({"p"}))
        bob = at.agent("bob", projects=frozenset())
        for number in range(130):
            at.tick()
            await alice.ask(CreateSession(purpose="p", session_id=f"many-{number}"))
        await alice.ask(CreateSession(purpose="p", session_id="secret", project_id="p"))

        async def completed(agent: Agent, template: str, argument: str, value: str) -> tuple[list[str], bool]:
            found = await agent.ask(CompleteResource(template=template, argument=argument, value=value))
            return found.values, found.has_more

        assert await completed(alice, session, "session_id", "sec") == (["secret"], False)
        assert await completed(bob, session, "session_id", "sec") == ([], False)
        newest = [f"many-{number}" for number in range(129, 29, -1)]
        assert await completed(bob, session, "session_id", "many") == (newest, True)
        assert await completed(bob, memory, "agent_id", "") == (["bob"], False)
        assert await completed(bob, memory, "agent_id", "ali") == ([], False)
        assert await completed(bob, "other://{x}", "x", "") == ([], False)
        assert await completed(bob, session, "agent_id", "") == ([], False)


@asynccontextmanager
async def hearing(agent: Agent, *uris: str) -> AsyncIterator[list[str]]:
    """Collect what an agent hears of these resources."""
    heard: list[str] = []

    async def listen() -> None:
        async for uri in subscriber:
            heard.append(uri)  # noqa: PERF401  the test looks at the list meanwhile

    with agent.subscriber() as subscriber:
        for uri in uris:
            subscriber.add(uri)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            yield heard
            await trio.sleep(1)
            nursery.cancel_scope.cancel()


@pytest.mark.promise("resources.heard")
async def test_who_may_see_a_change_hears_of_it_and_nobody_else(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        peer, other = at.agent("pat", "planner"), at.agent("bob", "tester")
        for visibility, ears in (
            ("public", {"alice", "pat", "bob"}),
            ("private", {"alice"}),
            ("agent_only", {"alice", "pat"}),
        ):
            async with (
                hearing(alice, "session://s") as first,
                hearing(peer, "session://s") as second,
                hearing(other, "session://s") as third,
            ):
                await say(alice, "s", "x", visibility=visibility)
            heard = {name for name, uris in (("alice", first), ("pat", second), ("bob", third)) if uris}
            assert heard == ears


@pytest.mark.promise("resources.heard")
async def test_changes_of_a_session_itself_are_heard_by_who_may_see_it(enter: Enter) -> None:
    async with enter() as at:
        member = at.agent("alice", projects=frozenset({"p"}))
        outsider = at.agent("bob", projects=frozenset())
        async with hearing(member, "session://s") as inside, hearing(outsider, "session://s") as outside:
            await member.ask(CreateSession(purpose="p", session_id="s", project_id="p"))
            await trio.sleep(1)
            await member.ask(UpdateSession(session_id="s", metadata=json('{"a":1}')))
            await trio.sleep(1)
            await say(member, "s", "hello")
        assert (inside, outside) == (["session://s"] * 3, [])


@pytest.mark.promise("resources.heard")
async def test_changes_of_a_memory_are_heard_by_its_owner_alone(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = at.agent("alice"), at.agent("bob")
        uri = "agent://alice/memory"
        async with hearing(alice, uri) as own, hearing(bob, uri) as foreign:
            for deed in range(3):
                if deed == 0:
                    await keep(alice, "k", expires_in=30)
                elif deed == 1:
                    await keep(alice, "k2")
                else:
                    await alice.ask(DeleteMemory(key="k2"))
                await trio.sleep(1)
                assert own == [uri] * (deed + 1)
            await alice.ask(DeleteMemory(key="nothing"))
            await trio.sleep(1)
            assert own == [uri] * 3
        assert foreign == []


@pytest.mark.promise("resources.heard")
async def test_that_a_memory_was_used_is_no_change_of_what_is_read_of_it(enter: Enter) -> None:
    uri, pages = "agent://alice/memory", "greenroom://memories/agent:alice"
    async with enter() as at:
        alice = at.agent("alice")
        await keep(alice, "k")
        async with hearing(alice, uri) as read, hearing(alice, pages) as shown:
            await alice.ask(GetMemory(key="k"))
            await trio.sleep(90)  # longer than uses wait to be written
        assert (read, shown) == ([], [pages])


@pytest.mark.promise("memory.expiry")
async def test_the_end_of_a_memory_is_heard_within_a_second_once_it_is_gone(enter: Enter) -> None:
    uri = "agent://alice/memory"
    async with enter() as at:
        alice = at.agent("alice")
        for number in range(15):  # which end within a second, and are one sweep
            await keep(alice, f"a{number}", expires_in=300)
            at.clock.jump(10_000)
        await keep(alice, "b", expires_in=330)
        await keep(alice, "stays")
    async with enter() as at:  # what is known of the ends is on disk
        alice, bob = at.agent("alice"), at.agent("bob")
        heard: list[tuple[float, int]] = []
        async with trio.open_nursery() as nursery:

            async def listen() -> None:
                with alice.subscriber() as subscriber:
                    subscriber.add(uri)
                    while await subscriber.next():
                        heard.append((at.clock.now() / 1e6, len(await keys(alice))))

            nursery.start_soon(listen)
            async with hearing(bob, uri) as foreign:
                begun = at.clock.now() / 1e6
                await trio.sleep(400)
            nursery.cancel_scope.cancel()
        assert [left for _, left in heard] == [2, 1]
        (first, _), (second, _) = heard
        assert begun + 298 < first < begun + 302
        assert 29 < second - first < 32
        assert foreign == []


@pytest.mark.promise("resources.heard")
async def test_impossible_uris_are_never_heard_of_and_do_no_harm(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        async with hearing(alice, "session://", "agent://bob/memory", "greenroom://export/1") as heard:
            await say(alice, "s", "x")
            await keep(at.agent("bob"), "k")
        assert heard == []


@pytest.mark.promise("resources.heard")
@pytest.mark.parametrize(
    "uri", ["nonsense", "", "foo://bar", "http://example.org/", "SESSION://s", "session:s"]
)
async def test_a_scheme_that_no_resource_has_is_refused(enter: Enter, uri: str) -> None:
    async with enter() as at:
        alice = await begin(at)
        with alice.subscriber() as subscriber:
            with refused(
                "VALIDATION_ERROR", field="uri", schemes=["session", "agent", "greenroom", "omnimemory"]
            ) as caught:
                subscriber.add(uri)
            subscriber.remove(uri)
            assert len(subscriber) == 0
        assert "session://{session_id} and agent://{agent_id}/memory" in str(caught.value)
        assert repr(uri) in str(caught.value)
