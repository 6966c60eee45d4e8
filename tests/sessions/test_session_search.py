"""Searching a session: the window, the matches, and what is said between two searches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import FAR_AHEAD, LONG_AGO, begin, house, json, keep, moment, refused, say, wire

from greenroom.actors import (
    GetMessages,
    GetSession,
    ListMemory,
    ListSessions,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    UpdateSession,
    parse_request,
)
from greenroom.actors.sessions.search.search_windows import CHARACTERS
from greenroom.testing import START, VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House


@pytest.mark.promise("sessions.search")
async def test_a_search_says_what_its_window_hid(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        await say(alice, "s", "an ancient zebra")
        at.tick(25 * 3_600)
        await say(alice, "s", *[f"zebra number {number}" for number in range(10)])
        await say(alice, "s", *[f"hidden zebra {number}" for number in range(10)], visibility="private")

        async def search(**arguments: Any) -> tuple[int, int, bool]:
            found = await bob.ask(SearchContext(session_id="s", query="zebra", limit=100, **arguments))
            assert (found.query, found.threshold, found.search_scope) == ("zebra", 60, "all")
            return found.message_count, found.scanned, found.truncated

        assert await search() == (10, 10, True)
        assert await search(max_rows_scanned=3) == (3, 3, True)
        assert await search(recent_hours=26) == (11, 11, False)
        assert await search(recent_hours=None) == (11, 11, False)
        assert await search(recent_hours=None, max_rows_scanned=11) == (11, 11, False)
        assert await search(recent_hours=None, max_rows_scanned=None) == (11, 11, False)
        await say(alice, "s", "zebra again")
        assert await search(max_rows_scanned=1) == (1, 1, True)
        assert await search() == (11, 11, True)
        assert await search(recent_hours=1e308) == (12, 12, False)


@pytest.mark.promise("sessions.search")
async def test_a_match_comes_with_its_message_and_its_place(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        text = "lorem ipsum " * 40 + "the quick brown fox" + " dolor sit amet" * 40
        [parent] = await say(alice, "s", text, metadata=json('{"animal": ["wolverine", 7]}'))
        await say(alice, "s", "nothing of the kind", visibility="private", parent_message_id=parent)
        hit = (await alice.ask(SearchContext(session_id="s", query="quick brown fox"))).results[0]
        assert hit.match_preview[hit.match_start : hit.match_end] == "quick brown fox"
        assert (len(hit.match_preview), hit.score, hit.relevance) == (150, 100.0, "high")
        assert hit.match_preview in hit.message.content
        assert hit.message == (await alice.ask(GetMessages(session_id="s"))).messages[0]
        arguments: dict[str, Any] = {"session_id": "s", "query": "wolverine"}
        assert (await alice.ask(SearchContext(**arguments))).message_count == 1
        assert (await alice.ask(SearchContext(**arguments, search_metadata=False))).message_count == 0
        assert (await alice.ask(SearchContext(**arguments, search_scope="private"))).scanned == 1
        assert (await alice.ask(SearchContext(**arguments, search_scope="public"))).scanned == 1
        for row in (await alice.ask(SearchContext(session_id="s", query="fax", fuzzy_threshold=0))).results:
            assert row.relevance == ("high" if row.score >= 80 else "medium" if row.score >= 60 else "low")


@pytest.mark.promise("sessions.search")
async def test_what_is_said_between_searches_is_found(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        source = random.Random(7)  # noqa: S311  a seeded one is what is wanted
        words: list[str] = []
        for number in range(120):
            words.append(f"word{number}x{number * 7919}")
            await say(alice, "s", words[-1], visibility="public" if number % 3 else "private")
            if number % 10 == 0:
                for agent in (alice, bob):
                    sought = source.randrange(len(words))
                    found = await agent.ask(
                        SearchContext(
                            session_id="s",
                            query=words[sought],
                            fuzzy_threshold=100,
                            max_rows_scanned=source.choice([None, 1, 5, 50]),
                        )
                    )
                    seen = [word for index, word in enumerate(words) if index % 3 or agent is alice]
                    window = seen[-found.scanned :] if found.scanned else []
                    expected = [words[sought]] if words[sought] in window else []
                    assert [hit.message.content for hit in found.results] == expected


@pytest.mark.promise("sessions.search")
async def test_times_of_any_offset_are_taken_and_come_back_in_utc(enter: Enter) -> None:
    request = {
        "session_id": "s",
        "start_time": "0001-01-01T00:00:00+14:00",
        "end_time": "9999-12-31T23:00:00-12:00",
    }
    async with enter() as at:
        alice = await begin(at)
        await say(alice, "s", "old enough")
        for _ in range(10):  # a failure each time would set the session aside
            found = await alice.ask(parse_request(SearchByTimerange, msgspec.json.encode(request)))
            assert found.count == 1
        request |= {"start_time": "2020-01-01T01:00:00+01:00"}
        found = await alice.ask(parse_request(SearchByTimerange, msgspec.json.encode(request)))
        ends = {"start": "2020-01-01T00:00:00Z", "end": "9999-12-31T23:59:59.999999Z"}
        assert wire(found)["timerange"] == ends


async def test_searches_of_a_session_are_in_order_and_bounded(enter: Enter) -> None:
    async with enter() as at:
        alice, bob = await begin(at), at.agent("bob")
        for number in range(30):
            await say((alice, bob)[number % 2], "s", str(number))
            at.tick()
        sent = await bob.ask(SearchBySender(session_id="s", sender="alice", limit=3))
        assert [message.content for message in sent.messages] == ["28", "26", "24"]
        assert (sent.sender, sent.count, sent.truncated) == ("alice", 3, True)
        nobody = await bob.ask(SearchBySender(session_id="s", sender="not an id/.."))
        assert (nobody.messages, nobody.truncated) == ([], False)
        start, end = moment(START + 5_000_000), moment(START + 9_000_000)
        ranged = await bob.ask(SearchByTimerange(session_id="s", start_time=start, end_time=end, limit=5))
        assert [message.content for message in ranged.messages] == ["5", "6", "7", "8", "9"]
        assert (ranged.timerange.start, ranged.timerange.end, ranged.truncated) == (start, end, False)
        ranged = await bob.ask(SearchByTimerange(session_id="s", start_time=start, end_time=end, limit=4))
        assert (ranged.count, ranged.truncated) == (4, True)
        with refused("VALIDATION_ERROR", field="start_time"):
            await bob.ask(SearchByTimerange(session_id="s", start_time=end, end_time=start))


@pytest.mark.promise("sessions.search")
async def test_matches_too_long_for_one_answer_are_said_to_be_left_out(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at:
        alice = await begin(at)
        for _ in range(6):
            await say(alice, "s", "zebra " + "x" * 999_990)
        await alice.ask(SearchContext(session_id="s", query="zebra"))  # prepares what one may
        found = await alice.ask(SearchContext(session_id="s", query="zebra"))
        assert (found.message_count, found.scanned, found.truncated) == (3, 6, True)


@pytest.mark.promise("sessions.search-bounded")
async def test_a_search_prepares_so_many_characters_says_so_and_the_next_goes_on(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at:
        alice = await begin(at)
        for number in range(10):
            await say(alice, "s", f"zebra{number} " + "x" * (CHARACTERS // 5))
        seen = []
        for _ in range(3):
            found = await alice.ask(SearchContext(session_id="s", query="zebra2"))
            words = [hit.message.content.partition(" ")[0] for hit in found.results]
            seen.append((found.scanned, found.truncated, "zebra2" in words))
        assert [scanned for scanned, _, _ in seen] == [5, 10, 10]
        assert seen[0][1]
        assert [is_found for _, _, is_found in seen] == [False, True, True]


@pytest.mark.slow
@pytest.mark.promise("sessions.search-bounded")
async def test_the_newest_are_looked_at_whatever_came_since_the_last_search(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at:
        alice = await begin(at)
        await say(alice, "s", "an old zebra")
        await alice.ask(SearchContext(session_id="s", query="zebra"))
        for _ in range(12):
            await say(alice, "s", "y" * (CHARACTERS // 5))
        await say(alice, "s", "a new zebra")
        for _ in range(3):
            found = await alice.ask(SearchContext(session_id="s", query="zebra"))
            assert found.results[0].message.content == "a new zebra"
        assert (found.scanned, found.truncated) == (14, False)
        assert len(found.results) == 2


async def test_the_preview_of_a_long_message_shows_the_match_also_where_many_are_shown(enter: Enter) -> None:
    async with enter(content_limit=1_000_000) as at:
        alice = await begin(at)
        for _ in range(100):
            await say(alice, "s", "a word " * 1_500 + "striped zebras graze")
        found = await alice.ask(SearchContext(session_id="s", query="zebras striped", limit=100))
        assert {hit.match_preview[hit.match_start : hit.match_end] for hit in found.results} == {
            "striped zebras"
        }


@pytest.mark.promise("sessions.search")
async def test_a_clock_that_jumped_back_makes_nothing_old_recent(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        at.tick(10 * 86_400)
        await say(alice, "s", "zebra of the future")
        at.tick(-10 * 86_400)
        await say(alice, "s", "zebra of today")
        at.tick(3 * 86_400)
        await say(alice, "s", "zebra of another day")
        found = await alice.ask(SearchContext(session_id="s", query="zebra"))
        shown = {hit.message.content for hit in found.results}
        assert shown == {"zebra of the future", "zebra of another day"}


@pytest.mark.promise("runtime.fair")
async def test_work_cut_into_the_thinnest_slices_has_the_same_results(enter: Enter, folder: Path) -> None:
    async def answers(at: House) -> list[Any]:
        alice = await begin(
            at, metadata=json('{"a": 1, "b": 2}'), initial_state=json('{"temp:x": 1, "y": 2}')
        )
        ids = await say(alice, "s", *[f"word {number}" for number in range(12)])
        for number in range(5):
            await keep(alice, f"k{number}")
        asked: list[Any] = [
            GetMessages(session_id="s", limit=3, offset=5),
            GetMessages(session_id="s", since_id=ids[4]),
            SearchContext(session_id="s", query="word", limit=3, max_rows_scanned=7),
            SearchBySender(session_id="s", sender="alice", limit=2),
            SearchByTimerange(session_id="s", start_time=LONG_AGO, end_time=FAR_AHEAD),
            UpdateSession(session_id="s", status="terminated", metadata=json('{"b": 3}')),
            GetSession(session_id="s"),
            ListSessions(),
            ListMemory(limit=3),
        ]
        return [told(wire(await alice.ask(one))) for one in asked]

    def told(answer: Any) -> Any:
        """Return an answer without ids, times and cursors."""
        if isinstance(answer, dict):
            return {
                name: told(value)
                for name, value in answer.items()
                if not (name.endswith(("id", "cursor", "_at")) or name in {"timestamp", "last_activity"})
            }
        return [told(one) for one in answer] if isinstance(answer, list) else answer

    async with enter() as at:
        whole = await answers(at)
    async with house(folder / "sliced", VirtualClock(tick=1.0)) as at:
        assert await answers(at) == whole


@pytest.mark.promise("sessions.search")
async def test_what_is_said_after_a_search_found_nothing_is_found(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        assert not (await alice.ask(SearchContext(session_id="s", query="zebra"))).results
        await say(alice, "s", "a zebra")
        assert len((await alice.ask(SearchContext(session_id="s", query="zebra"))).results) == 1


@pytest.mark.promise("sessions.search")
async def test_a_time_in_the_querys_own_words_puts_what_was_said_then_first(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        for number in range(12):
            await say(alice, "s", f"deployed the shop, number {number}")
            at.tick(86_400)
        query: dict[str, Any] = {"session_id": "s", "recent_hours": None, "fuzzy_threshold": 0}
        found = await alice.ask(SearchContext(query="What was deployed eight days ago?", **query))
        assert found.results[0].message.content == "deployed the shop, number 4"
        found = await alice.ask(SearchContext(query="What was deployed?", **query))
        assert found.results[0].message.content != "deployed the shop, number 4"
