"""A question for the present state finds the newer of two notes first, one for a former state the older."""

from __future__ import annotations

import datetime as dt
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from support.changes import OTHERS, PAIRS
from support.embedding import WAITS, Loaded
from support.exchanges import imported, line

from greenroom.actors import MemorySearch, StoreMemory
from greenroom.actors.search.ranking.intent import State, detect_state
from greenroom.actors.search.ranking.supersession import Statement, compute_gains
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


@pytest.mark.quick
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


@pytest.mark.promise("recall.state")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_what_is_written_within_a_minute_does_not_succeed_one_another(
    enter: Enter, embedder: str
) -> None:
    """What is imported goes by the times that came with it, though all of it arrives at once."""
    older, newer = "The seminar meets in room 4.12.", "The seminar no longer meets in room 4.12 but online."
    query = "In which room does the seminar meet now?"
    async with enter(embedder=embedder, queries=[Loaded]) as at:
        await at.runtime.query(Loaded())
        ann, bob = at.agent("alice", user="ann"), at.agent("bob", user="bob")
        await ann.ask(StoreMemory(key="older", content=older))
        at.clock.jump(50 * SECOND)
        await ann.ask(StoreMemory(key="newer", content=newer))
        found = await ann.ask(MemorySearch(query=query, include_debug=True))
        assert all(shares.get("succession", 0) == 0 for shares in _shares(found).values())
        written = at.clock.now() / SECOND
        ages = {"older": 50, "newer": 0}
        dates = {
            key: dt.datetime.fromtimestamp(written - age, dt.UTC).isoformat() for key, age in ages.items()
        }
        lines = [
            line(key, content, created_at=dates[key], namespace="user:bob")
            for key, content in (("older", older), ("newer", newer))
        ]
        await imported(at.runtime, bob.principal, *lines)
        found = await bob.ask(MemorySearch(query=query, include_debug=True))
        assert max(shares.get("succession", 0) for shares in _shares(found).values()) > 0


HOMES = (
    "Backups of the file server go to the NAS in the cupboard.",
    "Backups of the file server moved from the NAS to a disk at Leafcloud.",
    "Backups of the file server no longer go to Leafcloud, they go to tapes in the bank's vault.",
)


@pytest.mark.promise("recall.state")
@pytest.mark.parametrize("embedder", ["none", "static"])
async def test_what_changed_twice_leads_to_the_last_and_from_it_back(enter: Enter, embedder: str) -> None:
    async with enter(embedder=embedder, queries=[Loaded]) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        for number, text in enumerate(HOMES):
            await ann.ask(StoreMemory(key=f"home-{number}", content=text))
            at.clock.jump(60 * DAY)
        for number, text in enumerate(OTHERS):
            await ann.ask(StoreMemory(key=f"other-{number}", content=text))
            at.clock.jump(DAY)
        queries = ["Where do the backups of the file server go now?"]
        if embedder == "static":  # by words alone it stays first: it has all of them
            queries.append("Do the backups of the file server still go to the NAS in the cupboard?")
        for query in queries:
            found = await ann.ask(MemorySearch(query=query))
            assert {each.key for each in found.memories[:3]} == {"home-0", "home-1", "home-2"}
            assert found.memories[0].key == "home-2", query
        found = await ann.ask(MemorySearch(query="Where did the backups of the file server go originally?"))
        assert found.memories[0].key == "home-0"


TASKS = ("Print the size of", "Count the lines of", "List the names of", "Delete", "Compress", "Copy", "Sort")
THINGS = (
    "all log files",
    "all pictures",
    "hidden files",
    "empty files",
    "large files",
    "new files",
    "old mails",
)


@pytest.mark.promise("recall.present-throws-nothing-out")
@pytest.mark.parametrize("embedder", ["none", "static"])
@pytest.mark.parametrize(
    "asked", ["currently: {}?", "How do I {} now?", "How do I {} instead?", "latest: {}", "replaced: {}"]
)
async def test_a_word_about_the_present_throws_no_memory_out(enter: Enter, embedder: str, asked: str) -> None:
    """Of many alike notes of a year each is among the ten first, whatever the word."""
    async with enter(embedder=embedder, queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        notes = {
            f"note-{number}": f"{task} {thing} in the folder"
            for number, (task, thing) in enumerate(product(TASKS, THINGS))
        }
        for key, text in notes.items():
            await ann.ask(StoreMemory(key=key, content=text))
            at.clock.jump(7 * DAY)
        lost = []
        for key, text in list(notes.items())[::3]:
            found = await ann.ask(MemorySearch(query=asked.format(text.lower()), limit=10))
            if key not in {each.key for each in found.memories}:
                lost.append(text)
        assert lost == []


@pytest.mark.promise("recall.present-throws-nothing-out")
async def test_of_a_series_the_note_that_has_the_answer_is_found_first(enter: Enter) -> None:
    """A newer note of a series is no successor of the one before it in the same words."""
    async with enter(embedder="static", queries=WAITS) as at:
        await at.runtime.query(Loaded())
        ann = at.agent("alice", user="ann")
        events = ("printer", "lift", "kettle", "gate", "router", "oven", "radio", "scanner", "boiler", "pump")
        for number, event in enumerate(events * 2):
            floor = f"floor {number}"
            text = f"House log, week {number}: the {event} on {floor} was repaired, two hours of work."
            await ann.ask(StoreMemory(key=f"week-{number}", content=text))
            at.clock.jump(7 * DAY)
        for number, event in enumerate(events * 2):
            query = f"Is the {event} on floor {number} repaired now?"
            found = await ann.ask(MemorySearch(query=query, limit=10))
            assert f"week-{number}" in {each.key for each in found.memories[:3]}, query


@pytest.mark.quick
@pytest.mark.promise("recall.present-throws-nothing-out")
@given(data=st.data())
def test_among_the_first_ten_at_most_one_memory_changes(data: st.DataObject) -> None:
    """And that one only where a single note is more likely the answer than all others together."""
    count = data.draw(st.integers(2, 30))
    steps = data.draw(st.lists(st.floats(0, 3), min_size=count, max_size=count))
    strengths = -np.cumsum(steps)
    made = data.draw(st.permutations(range(count)))
    chance = st.sampled_from([0.0, 0.01, 0.4, 0.9, 1.0])
    drawn = np.array(data.draw(st.lists(chance, min_size=count**2, max_size=count**2))).reshape(count, count)
    later = np.array(made)[:, None] > np.array(made)[None, :]
    state: State = data.draw(st.sampled_from(["present", "past"]))
    statements = [Statement(frozenset(), has_change=False, made=each) for each in made]
    gained = compute_gains(strengths, np.arange(count), statements, drawn * later, "static", state)
    order = np.argsort(-strengths - gained, kind="stable")
    gone = set(range(min(10, count))) - set(order[:10].tolist())
    own = np.exp(3.0 * (strengths - strengths[0]))
    assert len(gone) <= int(own[0] >= 0.5 * own.sum())


def _statement(number: int) -> Statement:
    return Statement(frozenset(), has_change=False, made=number)


@pytest.mark.parametrize("likely", list(permutations((0.9, 0.8, 0.7))))
def test_three_notes_of_one_matter_lead_to_the_last_and_back_whichever_two_are_most_alike(
    likely: tuple[float, float, float],
) -> None:
    probabilities = np.zeros((3, 3))
    probabilities[1, 0], probabilities[2, 1], probabilities[2, 0] = likely
    strengths = np.array([0.0, -0.5, -1.0])
    statements = [_statement(number) for number in range(3)]
    present = compute_gains(strengths, np.arange(3), statements, probabilities, "static", "present")
    assert (strengths + present).argmax() == 2
    strengths = strengths[::-1]
    past = compute_gains(strengths, np.arange(3)[::-1], statements, probabilities, "static", "past")
    assert (strengths + past).argmax() == 0


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
        ("Which files of the current directory are empty?", None),
        ("where am I, the current working directory", None),
        ("sort by the latest modified", None),
        ("which test failed since the newest commit?", None),
        ("print now() as text", None),
        ("what is due ten minutes from now", None),
        ("Which services are currently running?", None),
        ("find what was replaced by sed", None),
        ("How do I copy instead of moving?", None),
        ("How do I go back to the previous directory?", None),
        ("from now on, where do the backups go?", "present"),
        ("Which printer replaced the Zebra?", "present"),
        ("What is the current time of the seminar?", "present"),
        ("What is Anna's current job?", "present"),
        ("Who is my current line manager?", "present"),
        ("Where do we currently open new accounts?", "present"),
        ("What was the latest change to the refund policy?", "present"),
        ("What is the latest rule on working from home?", "present"),
        ("how old is the boiler", None),
        ("a ten-year-old server", None),
        ("which key is used to sign tokens", None),
        ("know-how of the team", None),
        ("", None),
    ],
)
def test_the_state_that_a_query_asks_for(text: str, state: State | None) -> None:
    assert detect_state(text) == state
