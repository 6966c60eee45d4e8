"""A question for the present state finds the newer of two notes first, one for a former state the older."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET
from support.changes import OTHERS, PAIRS
from support.embedding import WAITS, Loaded

from greenroom.actors import MemorySearch, StoreMemory
from greenroom.actors.ranking.intent import State, asked_state
from greenroom.testing import DAY, SECOND

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import Agent, MemoriesFound

pytestmark = pytest.mark.slow


async def _store(at: House) -> Agent:
    ann = at.agent("alice", user="ann")
    for key, pair in PAIRS.items():
        await ann.ask(StoreMemory(key=f"{key}-older", content=pair.older))
        at.clock.jump(3 * DAY)
    at.clock.jump(90 * DAY)
    for key, pair in PAIRS.items():
        await ann.ask(StoreMemory(key=f"{key}-newer", content=pair.newer))
        at.clock.jump(3 * DAY)
    for number, text in enumerate(OTHERS):  # these are newer than all of them
        await ann.ask(StoreMemory(key=f"other-{number}", content=text))
        at.clock.jump(DAY)
    return ann


def _shares(found: MemoriesFound) -> dict[str, dict[str, float]]:
    assert found.debug is not UNSET
    return found.debug.scores


@pytest.mark.promise("recall.state")
@pytest.mark.parametrize(("embedder", "misses"), [("none", 1), ("static", 0)])
async def test_who_asks_for_now_gets_the_newer_and_who_asks_for_before_the_older(
    enter: Enter, embedder: str, misses: int
) -> None:
    """By words alone one of the twelve keeps the older note, which has nearly all words of the question."""
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = await _store(at)
        wrong = []
        for key, pair in PAIRS.items():
            for query, wanted in ((pair.present, "newer"), (pair.past, "older")):
                found = await ann.ask(MemorySearch(query=query))
                if found.memories[0].key != f"{key}-{wanted}":
                    wrong.append((query, found.memories[0].content))
        assert len(wrong) <= misses, wrong


@pytest.mark.promise("recall.state")
async def test_scores_stay_in_order_and_the_debug_share_says_who_moved(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = await _store(at)
        found = await ann.ask(MemorySearch(query=PAIRS["limit"].present, include_debug=True))
        scores = [each.score for each in found.memories]
        assert scores == sorted(scores, reverse=True)
        newer, older = (
            next(each for each in found.memories if each.key == f"limit-{which}")
            for which in ("newer", "older")
        )
        shares = _shares(found)
        assert shares[newer.memory_id]["succession"] > 0 > shares[older.memory_id]["succession"]


@pytest.mark.parametrize(("seconds", "first"), [(1, "older"), (90, "newer")])
async def test_what_is_stored_at_once_is_of_one_state_of_things(
    enter: Enter, seconds: int, first: str
) -> None:
    async with enter(embedder="static", queries=[Loaded]) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        await ann.ask(StoreMemory(key="older", content="The seminar meets in room 4.12 on Tuesdays."))
        at.clock.jump(seconds * SECOND)
        await ann.ask(StoreMemory(key="newer", content="The seminar meets online on Thursdays."))
        found = await ann.ask(MemorySearch(query="In which room does the seminar meet now?"))
        assert found.memories[0].key == first


async def test_what_is_merely_newer_is_not_lifted(enter: Enter) -> None:
    async with enter(embedder="static", queries=[Loaded]) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        texts = ("The shop is in Hauptstrasse in Hamburg.", "The shop moved to Lindenweg in Bremen.", *OTHERS)
        for number, text in enumerate(texts):
            await ann.ask(StoreMemory(key=f"note-{number}", content=text))
            at.clock.jump(DAY)
        found = await ann.ask(MemorySearch(query="Where is the shop now?", include_debug=True))
        assert [each.key for each in found.memories[:2]] == ["note-1", "note-0"]
        shares = _shares(found)
        assert max(shares[each.memory_id].get("succession", 0) for each in found.memories[2:]) < 0.1


async def test_without_a_question_for_a_state_nothing_moves(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = await _store(at)
        found = await ann.ask(MemorySearch(query="limit of the gateway for uploads", include_debug=True))
        assert all("succession" not in shares for shares in _shares(found).values())


async def test_turns_of_a_conversation_keep_their_places(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        for position, text in enumerate((PAIRS["chat"].older, PAIRS["chat"].newer)):
            await ann.ask(StoreMemory(content=text, conversation_id="talk", position=position))
            at.clock.jump(DAY)
        found = await ann.ask(MemorySearch(query=PAIRS["chat"].present, include_debug=True))
        assert all("succession" not in shares for shares in _shares(found).values())


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("where do backups go nowadays", "present"),
        ("Do we still use nginx?", "present"),
        ("Is Anna no longer in charge?", "present"),
        ("which tool is used instead of Jira", "present"),
        ("Where are the old machines now?", "present"),
        ("Wann wird die Tonne jetzt geleert?", "present"),
        ("¿Dónde vive ahora?", "present"),
        ("Quelle est l'adresse actuelle ?", "present"),
        ("what did we use before", "past"),
        ("What ran our pipelines before Buildkite?", "past"),
        ("who used to approve designs", "past"),
        ("What was the original deadline?", "past"),
        ("Wer war früher zuständig?", "past"),
        ("what must be checked before a release", None),
        ("rotate certificates before rebuilding", None),
        ("which delivery came the day before yesterday", None),
        ("What did we decide the day  before yesterday?", None),
        ("what happened the day-before-yesterday", None),
        ("who called the night before last", None),
        ("what broke two days before yesterday", None),
        ("¿Qué pasó antes de ayer?", None),
        ("¿Qué usamos antes?", "past"),
        ("how old is the boiler", None),
        ("a ten-year-old server", None),
        ("which key is used to sign tokens", None),
        ("know-how of the team", None),
        ("", None),
    ],
)
def test_the_state_that_a_query_asks_for(text: str, state: State | None) -> None:
    assert asked_state(text) == state
