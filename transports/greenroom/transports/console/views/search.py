"""The search debugger: what searches find in every mode, beside each other, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    ExplainSearch,
    HitExplained,
    SearchCodeSemantic,
    SearchContext,
    SearchExplained,
    SemanticSearch,
)
from greenroom.runtime import Refusal
from greenroom.transports.console.view import Place, Reader, View

MOST_SHOWN: Final = 100
_USUAL: Final = 10
_STRATEGIES: Final = ("auto", "hybrid", "vector", "bm25")


class Compared(NamedTuple):
    """Something that was found, and its place in each mode; None where it has none.

    Attributes:
        hit: What was found.
        places: By mode.
        alone: The only mode that has it among its best; None where several have.
    """

    hit: Any
    places: Mapping[str, int | None]
    alone: str | None


async def search(reader: Reader, place: Place) -> View:
    """Return the search debugger's page."""
    where = place.get("in") or "memories"
    values: dict[str, Any] = {"where": where, "limit": _limit(place), "refusal": None, "found": None}
    query = place.get("q")
    if query is not None:
        try:
            values |= await _WAYS.get(where, _memories)(reader, place, query)
        except Refusal as refusal:
            values["refusal"] = str(refusal)
    return View("search.html", "Search", values)


async def _memories(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = ExplainSearch(
        query=query,
        namespace=place.get("namespace"),
        tags=place.all("tag") or None,
        kind=place.get("kind"),  # type: ignore[arg-type]  # what it may be is checked when it is asked
        author=place.get("author"),
        time_expr=place.get("time_expr"),
        limit=_limit(place),
        memory_id=place.get("memory"),
    )
    said: SearchExplained = await reader.ask(asked)
    return {"found": said, "compared": compared(said), "most": _strongest(said)}


def compared(said: SearchExplained) -> list[Compared]:
    """Return all that is among the best of any mode, what is high up in most of them first."""
    hits: dict[str, HitExplained] = {}
    shown: dict[str, list[str]] = {}
    for mode in said.modes:
        for hit in mode.hits:
            hits.setdefault(hit.memory_id, hit)
            shown.setdefault(hit.memory_id, []).append(mode.mode)
    found = [
        Compared(
            hit,
            {mode.mode: mode.places.get(memory_id) for mode in said.modes},
            shown[memory_id][0] if len(shown[memory_id]) == 1 else None,
        )
        for memory_id, hit in hits.items()
    ]
    return sorted(found, key=lambda each: sum(place or MOST_SHOWN for place in each.places.values()))


def _strongest(said: SearchExplained) -> float:
    """Return how long the longest bar is."""
    hits = [hit for mode in said.modes for hit in mode.hits]
    hits += [each.hit for each in said.memory if each.hit is not None]
    return max((abs(part.part) for hit in hits for part in hit.signals), default=1.0)


async def _documents(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    corpus = place.get("corpus") or "*"
    answers = {
        strategy: await reader.ask(
            SemanticSearch(query=query, strategy=strategy, top_k=min(_limit(place), 50), corpus=corpus)
        )
        for strategy in _STRATEGIES
    }
    hits: dict[tuple[str, int], Any] = {}
    places: dict[tuple[str, int], dict[str, int]] = {}
    for strategy, answer in answers.items():
        for hit in answer.results:
            name = (hit.corpus or answer.corpus, hit.chunk_id)
            hits.setdefault(name, hit)
            places.setdefault(name, {})[strategy] = hit.rank
    found = [
        Compared(
            hits[name],
            {strategy: of.get(strategy) for strategy in answers},
            next(iter(of)) if len(of) == 1 else None,
        )
        for name, of in places.items()
    ]
    found.sort(key=lambda each: sum(at or MOST_SHOWN for at in each.places.values()))
    return {"found": answers, "compared": found}


async def _session(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = SearchContext(
        session_id=place.get("session") or "",
        query=query,
        limit=_limit(place),
        recent_hours=None,
        fuzzy_threshold=0,
    )
    return {"found": await reader.ask(asked)}


async def _code(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = SearchCodeSemantic(query=query, scope=place.get("folder") or "", limit=min(_limit(place), 50))
    found = await reader.ask(asked)
    parts = [abs(part) for hit in found.results for part in (hit.signals or {}).values()]
    return {"found": found, "most": max(parts, default=1.0)}


_WAYS: Final[Mapping[str, Callable[[Reader, Place, str], Awaitable[dict[str, Any]]]]] = {
    "memories": _memories,
    "documents": _documents,
    "session": _session,
    "code": _code,
}


def _limit(place: Place) -> int:
    """Return how many are shown of each mode."""
    given = place.number("limit")
    return _USUAL if given is None else min(max(given, 1), MOST_SHOWN)
