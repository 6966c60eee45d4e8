"""What was said in a session, in tiers: whose messages are in it, and how large it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.agents import begin, json, refused, say, wire

from greenroom.actors import (
    Agent,
    CompleteResource,
    CreateSession,
    GetMessages,
    ListResources,
    ReadResource,
    StartSession,
    open_greenroom,
)
from greenroom.actors.content.text.extract import extract_sentences

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

URIS = ("greenroom://conversation/s", "omnimemory://conversation/s")
LONG = "The harbour of city {0} opens at six. " + "Ships come and ships go, as they always do. " * 30


async def conversation(agent: Agent, uri: str = URIS[0]) -> dict[str, Any]:
    read: dict[str, Any] = wire(await agent.ask(ReadResource(uri=uri)))
    return read


# -- nothing of what is hidden ---------------------------------------------------------------


@pytest.mark.promise("resources.conversation")
async def test_hidden_messages_are_in_no_tier_and_in_no_figure_and_move_nothing(enter: Enter) -> None:
    async with enter(conversation_tiers=(2, 2, 2)) as at:
        alice = await begin(at)
        bob = at.agent("bob", "coder")
        seen: list[dict[str, Any]] = []
        for hidden in (False, True):
            for number in range(7):
                at.tick()
                if hidden:
                    for visibility in ("private", "agent_only"):
                        await say(alice, "s", LONG.format("SECRET"), visibility=visibility)
                else:
                    await say(alice, "s", LONG.format(number))
            seen.append(await conversation(bob))
        assert seen[0] == seen[1]
        assert seen[0]["counts"] == {"recent": 2, "compressed": 2, "lines": 2, "total": 7}
        assert "SECRET" not in str(seen[1])
        hers = await conversation(alice)
        assert hers["counts"]["total"] == 21
        assert all("SECRET" in each["content"] for each in hers["recent"])


@pytest.mark.promise("resources.conversation", "resources.alike")
@pytest.mark.parametrize("scheme", ["greenroom", "omnimemory"])
async def test_unknown_forbidden_and_odd_conversations_answer_alike(enter: Enter, scheme: str) -> None:
    async with enter() as at:
        alice = at.agent("alice", projects=frozenset({"p"}))
        await alice.ask(CreateSession(purpose="p", session_id="theirs", project_id="p"))
        bob = at.agent("bob", projects=frozenset())
        answers = set()
        for name in ("theirs", "nowhere", "", "../s", "s/", "s?recent=1", "x" * 129, "s%00", "all"):
            uri = f"{scheme}://conversation/{name}"
            with refused("RESOURCE_NOT_FOUND") as caught:
                await bob.ask(ReadResource(uri=uri))
            answers.add(str(caught.value).replace(uri, "URI"))
        assert len(answers) == 1


@pytest.mark.promise("resources.conversation", "resources.heard")
async def test_only_visible_messages_are_heard_of_under_every_uri_of_the_session(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        bob = at.agent("bob")
        with bob.subscriber(0) as subscriber:
            for uri in (*URIS, "session://s"):
                subscriber.add(uri)
            await say(alice, "s", "for me", visibility="private")
            with trio.move_on_after(1) as scope:
                await subscriber.next()
            assert scope.cancelled_caught
            await say(alice, "s", "for all")
            heard = {await subscriber.next() for _ in range(3)}
            assert heard == {*URIS, "session://s"}
            subscriber.remove("session://s")
            subscriber.remove(URIS[0])
            await say(alice, "s", "for all")
            assert await subscriber.next() == URIS[1]
            subscriber.remove(URIS[1])
            assert len(subscriber) == 0
            await say(alice, "s", "for all")
            with trio.move_on_after(1) as scope:
                await subscriber.next()
            assert scope.cancelled_caught


# -- the tiers -------------------------------------------------------------------------------


@pytest.mark.promise("resources.conversation")
async def test_the_newest_are_whole_older_ones_shortened_and_the_oldest_a_line(enter: Enter) -> None:
    async with enter(conversation_tiers=(2, 3, 4)) as at:
        alice = await begin(at)
        ids = await say(alice, "s", *(LONG.format(number) for number in range(12)))
        read = await conversation(alice)
        tiers = [[each["message_id"] for each in read[tier]] for tier in ("lines", "compressed", "recent")]
        assert tiers == [ids[3:7], ids[7:10], ids[10:]]
        assert [each["content"] for each in read["recent"]] == [LONG.format(10), LONG.format(11)]
        for number, each in zip((7, 8, 9), read["compressed"], strict=True):
            assert (each["sender"], each["characters"]) == ("alice", len(LONG.format(number)))
            assert f"The harbour of city {number} opens at six." in each["text"]
            assert len(each["text"]) <= 400
        assert all(each["line"].startswith("The harbour of city") for each in read["lines"])
        assert all(len(each["line"]) <= 120 and "\n" not in each["line"] for each in read["lines"])
        assert read["has_more"]
        rest = await alice.ask(GetMessages(session_id="s", cursor=read["cursor"]))
        assert [each.message_id for each in rest.messages] == ids[:3]
        assert read["characters"] == sum(len(LONG.format(number)) for number in range(3, 12))
        assert read["shown"] < read["characters"] / 2
        assert await conversation(alice, URIS[1]) == read | {
            "resource_info": read["resource_info"] | {"uri": URIS[1]}
        }


@pytest.mark.promise("resources.conversation")
async def test_what_was_shortened_before_is_as_if_it_was_shortened_now(enter: Enter) -> None:
    tiers = (1, 3, 2)
    metadata = json('{"numbers": [' + "0, " * 1_000 + '"\\""]}')
    async with enter(conversation_tiers=tiers) as at:
        alice = await begin(at)
        readers = [alice, at.agent("bob", "coder")]
        for number in range(8):
            at.tick()
            hidden = "private" if number % 3 == 0 else "public"
            await say(alice, "s", LONG.format(number), visibility=hidden, metadata=metadata)
            read = [await conversation(reader) for reader in (*readers, *readers)]
        assert read[:2] == read[2:]
    async with enter(conversation_tiers=tiers) as at:
        again = [await conversation(at.agent(*who)) for who in (("alice", "planner"), ("bob", "coder"))]
        assert again == read[:2]
        assert len(again[0]["compressed"]) == 3


@pytest.mark.promise("resources.conversation")
async def test_short_conversations_are_whole_and_empty_ones_empty(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        empty = await conversation(alice)
        assert (empty["recent"], empty["counts"]["total"], empty["has_more"]) == ([], 0, False)
        assert (empty["cursor"], empty["characters"], empty["shown"]) == (None, 0, 0)
        await say(alice, "s", "one", "two")
        read = await conversation(alice)
        assert [each["content"] for each in read["recent"]] == ["one", "two"]
        assert (read["compressed"], read["lines"], read["shown"]) == ([], [], 6)


@pytest.mark.slow
@pytest.mark.promise("resources.conversation")
async def test_huge_messages_are_shortened_so_that_the_answer_fits_a_frame(enter: Enter) -> None:
    async with enter(content_limit=1 << 20) as at:
        alice = await begin(at)
        for number in range(10):
            await say(alice, "s", f"{number} " + '"\\' * 500_000)
        read = await conversation(alice)
        assert 0 < len(read["recent"]) < 10
        assert len(read["recent"]) + len(read["compressed"]) == 10
        assert len(str(wire(read))) < 8_000_000


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -1, 0), (201, 0, 0), (1, 1), (1, 2, 3, 4), (1, 0, 2_001)])
async def test_sizes_that_no_tiers_can_have_are_refused(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="conversation_tiers"):
        async with open_greenroom(tmp_path, conversation_tiers=sizes):
            pass


@pytest.mark.promise("resources.listing", "resources.completion")
async def test_it_is_completed_for_every_session_and_listed_for_ones_own(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        bob = at.agent("bob")
        for scheme in ("greenroom", "omnimemory"):
            asked = CompleteResource(
                template=f"{scheme}://conversation/{{session_id}}", argument="session_id", value=""
            )
            assert (await bob.ask(asked)).values == ["s"]
        started = await bob.ask(StartSession(purpose="mine"))
        listed = {each.uri for each in (await bob.ask(ListResources())).resources}
        assert f"greenroom://conversation/{started.session_id}" in listed
        assert "greenroom://conversation/s" not in listed


# -- shortening ------------------------------------------------------------------------------


@given(st.text(max_size=600) | st.text("ab. \n!0", max_size=2_000), st.integers(20, 300))
@pytest.mark.promise("resources.conversation")
def test_what_is_left_of_a_text_fits_and_is_of_it(text: str, most: int) -> None:
    left = extract_sentences(text, most)
    assert len(left) <= most
    if len(text) <= most:
        assert left == text
    for part in filter(None, (part.strip() for part in left.split("…"))):
        assert all(word in text for word in part.split())


def test_sentences_with_numbers_and_negations_are_left_and_repeats_are_not() -> None:
    idle = "It was a long day and the talk went on about one thing and another for quite a while then. "
    text = (
        idle * 4
        + "The migration must not run before 14:00. "
        + idle * 4
        + "Then `deploy.sh` failed with exit 3."
    )
    left = extract_sentences(text, 200)
    assert "must not run before 14:00" in left
    assert "`deploy.sh` failed with exit 3" in left
    assert left.count("long day") <= 1
    assert extract_sentences(text, 200) == left
