"""One search over memories, decisions, sessions, messages, documents and symbols."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    ExplainSearch,
    FindSessions,
    GetSessionContext,
    SearchContext,
    SemanticSearch,
    SymbolSearch,
)
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Reader
from greenroom.transports.web.console.views.knowledge import list_workspaces

SHOWN: Final = 6
"""The most results of each kind."""
_SESSIONS: Final = 10
"""Decisions and messages are searched in this many sessions, those with the last activity."""
_A_SESSION: Final = 2
_LONGEST_NAME: Final = 128
_WORD: Final = re.compile(r"\w{3,}")
_SYMBOL: Final = re.compile(r"[^\W\d][\w.]*")


class Results(NamedTuple):
    """Results of one kind; ``weak`` if the answer is hardly among them."""

    found: list[Any]
    weak: bool = False


Search = Callable[[], Awaitable[Results]]


class Part(NamedTuple):
    """The results of one kind; ``more`` is the tab that says why."""

    name: str
    label: str
    results: list[Any]
    more: str | None
    refusal: str = ""
    weak: bool = False


class Said(NamedTuple):
    """A decision or message, and its session."""

    session: Any
    found: Any


async def search_everything(reader: Reader, query: str) -> list[Part]:
    """Return what is found of each kind that the visitor may read."""
    recent = await _sessions_of_late(reader)
    kinds: tuple[tuple[str, str, str, str | None, Search], ...] = (
        ("explain_search", "memories", "Memories", "memories", lambda: _memories(reader, query)),
        ("get_session_context", "decisions", "Decisions", None, lambda: _decisions(reader, recent, query)),
        ("find_sessions", "sessions", "Sessions", None, lambda: _sessions(reader, query)),
        ("search_context", "messages", "Messages", None, lambda: _messages(reader, recent, query)),
        ("semantic_search", "documents", "Documents", "documents", lambda: _documents(reader, query)),
        ("symbol_search", "symbols", "Code", "code", lambda: _symbols(reader, query)),
    )
    return [
        await _part(name, label, more, search)
        for needs, name, label, more, search in kinds
        if reader.may(needs)
    ]


async def _part(name: str, label: str, more: str | None, search: Search) -> Part:
    """Search one kind; a refusal is shown in its place."""
    try:
        results = await search()
        return Part(name, label, results.found, more, weak=results.weak)
    except Refusal as refusal:
        return Part(name, label, [], more, str(refusal))


async def _memories(reader: Reader, query: str) -> Results:
    modes = (await reader.ask(ExplainSearch(query=query, limit=SHOWN))).modes
    best = next((mode for mode in modes if mode.mode == "hybrid"), modes[0])
    return Results(best.hits, best.weak)


async def _sessions_of_late(reader: Reader) -> list[Any]:
    if not reader.may("find_sessions"):
        return []
    return [each.session for each in (await reader.ask(FindSessions(limit=_SESSIONS))).sessions]


async def _sessions(reader: Reader, query: str) -> Results:
    found = await reader.ask(FindSessions(text=query[:_LONGEST_NAME], limit=SHOWN))
    return Results([each.session for each in found.sessions])


async def _decisions(reader: Reader, sessions: list[Any], query: str) -> Results:
    """Return decisions with words of the query, most of them first."""
    words = {word.casefold() for word in _WORD.findall(query)}
    found: list[tuple[int, Said]] = []
    for session in sessions:
        work = await reader.ask(GetSessionContext(session_id=session.session_id))
        for each in work.context.decisions:
            text = f"{each.what} {each.why or ''}".casefold()
            if count := sum(word in text for word in words):
                found.append((count, Said(session, each)))
    return _best(found)


async def _messages(reader: Reader, sessions: list[Any], query: str) -> Results:
    found: list[tuple[float, Said]] = []
    for session in sessions:
        request = SearchContext(
            session_id=session.session_id,
            query=query,
            limit=_A_SESSION,
            recent_hours=None,
            search_metadata=False,
        )
        found += [(hit.score, Said(session, hit)) for hit in (await reader.ask(request)).results]
    return _best(found)


def _best(found: Sequence[tuple[float, Said]]) -> Results:
    return Results([said for _, said in sorted(found, key=lambda each: -each[0])[:SHOWN]])


async def _documents(reader: Reader, query: str) -> Results:
    reply = await reader.ask(SemanticSearch(query=query, corpus="*", top_k=SHOWN))
    return Results(reply.results, reply.weak is True)


async def _symbols(reader: Reader, query: str) -> Results:
    if not _SYMBOL.fullmatch(query) or not await list_workspaces(reader):
        return Results([])
    found = await reader.ask(SymbolSearch(symbol=query, limit=SHOWN))
    return Results([] if found.matched == "fuzzy" else found.definitions)
