"""The contenders of `search`: the session actor, its index alone, and difflib twice."""

from __future__ import annotations

import difflib
import functools
import heapq
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
import trio

from bench.corpus import PLANTED, SENDERS, Post
from bench.harness import check
from greenroom.actors import AddMessage, Agent, CreateSession, Principal, SearchContext, open_greenroom
from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest
from greenroom.runtime import RuntimeOptions, finish

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "session-of-the-benchmark"
PARTITION = "public"
LIMIT = 10
IN_FLIGHT = 512
CUTOFF = 0.6
QUESTIONS = [(text, planted.sentence) for planted in PLANTED for text in (planted.question, planted.mistyped)]


Search = Callable[[str], str]
"""Returns the best message for a question."""


class Rounds(msgspec.Struct):
    """What is measured beside the searches: one value a round, in milliseconds.

    Attributes:
        first: The first search, for which the session is read and prepared.
        hold: The longest hold of the event loop as `Runtime.statistics` has it.
        wait: The longest time that another task waited for its turn.
    """

    first: list[float] = msgspec.field(default_factory=list)
    hold: list[float] = msgspec.field(default_factory=list)
    wait: list[float] = msgspec.field(default_factory=list)


async def store(folder: Path, posts: Sequence[Post]) -> None:
    """Write the conversation, each agent its own messages, in the conversation's order."""
    async with open_greenroom(folder, options=RuntimeOptions(durability="process")) as runtime:
        agents = {name: Agent(runtime, Principal(agent_id=name)) for name in SENDERS}
        await agents[SENDERS[0]].ask(CreateSession(session_id=SESSION, purpose="to be searched"))
        limiter = trio.CapacityLimiter(IN_FLIGHT)

        async def add(post: Post, token: object, accepted: trio.Event) -> None:
            message = AddMessage(session_id=SESSION, content=post.content)
            await agents[post.sender].ask(message, on_accepted=accepted.set)
            limiter.release_on_behalf_of(token)

        async with trio.open_nursery() as nursery:
            for post in posts:
                token, accepted = object(), trio.Event()
                await limiter.acquire_on_behalf_of(token)
                nursery.start_soon(add, post, token, accepted)
                await accepted.wait()


async def through_the_agent(folder: Path, also: Rounds) -> float:
    """Return the mean milliseconds of a search by `SearchContext`."""
    async with open_greenroom(folder) as runtime:
        agent = Agent(runtime, Principal(agent_id=SENDERS[0]))

        async def search(question: str) -> str:
            request = SearchContext(
                session_id=SESSION, query=question, limit=LIMIT, recent_hours=None, max_rows_scanned=None
            )
            return (await agent.ask(request)).results[0].message.content

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_wait_for_turns, also)
            began = time.perf_counter()
            await search(QUESTIONS[0][0])
            also.first.append(_milliseconds(began))
            for question, _ in QUESTIONS:
                await search(question)
            nursery.cancel_scope.cancel()
        also.hold.append(runtime.statistics().dispatcher.longest_slice_ms)
        began = time.perf_counter()
        found = [await search(question) for question, _ in QUESTIONS]
        elapsed = _milliseconds(began)
        _check_found("search_context", found)
    return elapsed / len(QUESTIONS)


async def _wait_for_turns(also: Rounds) -> None:
    """Want the next turn again and again, and note the longest wait for one."""
    longest = 0.0
    try:
        while True:
            began = time.perf_counter()
            await trio.lowlevel.checkpoint()
            longest = max(longest, _milliseconds(began))
    finally:
        also.wait.append(longest)


def each_question(search: Search, name: str) -> float:
    """Return the mean milliseconds of a search, once all are checked."""
    began = time.perf_counter()
    found = [search(question) for question, _ in QUESTIONS]
    elapsed = _milliseconds(began)
    _check_found(name, found)
    return elapsed / len(QUESTIONS)


def index_alone(posts: Sequence[Post]) -> Search:
    """Return a search in the index that the actor keeps, without actor and store."""
    index = SearchIndex()
    for number, post in enumerate(posts):
        index.add(number, PARTITION, post.sender, post.content)

    def search(question: str) -> str:
        request = SearchRequest(text=question, partitions=[PARTITION], limit=LIMIT)
        return posts[finish(index.search(request))[0].id].content

    return search


def with_difflib(posts: Sequence[Post]) -> Search:
    """Return a search that takes difflib as its documentation suggests."""
    split = [_words(post.content) for post in posts]

    def search(question: str) -> str:
        asked = _words(question)
        scores = [sum(_closest(word, words) for word in asked) for words in split]
        best = heapq.nlargest(LIMIT, range(len(scores)), key=scores.__getitem__)
        return posts[best[0]].content

    return search


def with_remembering_difflib(posts: Sequence[Post]) -> Search:
    """Return the same search, comparing each pair of words only once in a search."""
    split = [_words(post.content) for post in posts]

    def search(question: str) -> str:
        scores = [0.0] * len(split)
        for asked in _words(question):
            similar = functools.cache(functools.partial(_similarity, _matcher(asked)))
            for number, words in enumerate(split):
                scores[number] += max(map(similar, words), default=0.0)
        best = heapq.nlargest(LIMIT, range(len(scores)), key=scores.__getitem__)
        return posts[best[0]].content

    return search


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _closest(asked: str, words: list[str]) -> float:
    found = difflib.get_close_matches(asked, words, n=1, cutoff=CUTOFF)
    return difflib.SequenceMatcher(None, found[0], asked).ratio() if found else 0.0


def _matcher(asked: str) -> difflib.SequenceMatcher[str]:
    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(asked)
    return matcher


def _similarity(matcher: difflib.SequenceMatcher[str], word: str) -> float:
    matcher.set_seq1(word)
    if matcher.real_quick_ratio() < CUTOFF or matcher.quick_ratio() < CUTOFF:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= CUTOFF else 0.0


def _check_found(name: str, found: list[str]) -> None:
    for (question, wanted), first in zip(QUESTIONS, found, strict=True):
        check(first == wanted, f"{name} found {first!r} for {question!r}")


def _milliseconds(began: float) -> float:
    return (time.perf_counter() - began) * 1e3
