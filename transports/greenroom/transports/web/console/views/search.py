"""The search debugger: what searches find in every mode, beside each other, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    ExplainCode,
    ExplainDocuments,
    ExplainSearch,
    ExplainSessionSearch,
    HitExplained,
    ResultExplained,
    ResultsExplained,
    SearchExplained,
)
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Place, Reader, View

MOST_SHOWN: Final = 100
_MOST: Final = 50
"""Results of documents, sessions and code that are shown."""
_USUAL: Final = 10
_EVERY_CORPUS: Final = "*"


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
    hits = [hit for mode in said.modes for hit in mode.hits]
    hits += [each.hit for each in said.memory if each.hit is not None]
    return {"found": said, "compared": compared(said), "most": _longest(hits)}


def compared(said: SearchExplained | ResultsExplained) -> list[Compared]:
    """Return all that is among the best of any mode, what is highest up first."""
    hits: dict[str, HitExplained | ResultExplained] = {}
    shown: dict[str, list[str]] = {}
    for mode in said.modes:
        for hit in mode.hits:
            name = hit.memory_id if isinstance(hit, HitExplained) else hit.id
            hits.setdefault(name, hit)
            shown.setdefault(name, []).append(mode.mode)
    several = len(said.modes) > 1
    found = [
        Compared(
            hit,
            {mode.mode: mode.places.get(name) for mode in said.modes},
            shown[name][0] if several and len(shown[name]) == 1 else None,
        )
        for name, hit in hits.items()
    ]
    return sorted(found, key=_height, reverse=True)


def _height(each: Compared) -> float:
    """Return how high up something is: the sum of its reciprocal ranks."""
    return sum(1 / place for place in each.places.values() if place)


def _longest(hits: Iterable[HitExplained | ResultExplained]) -> float:
    """Return how long the longest bar is."""
    return max((abs(part.part) for hit in hits for part in hit.signals), default=1.0)


async def _documents(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = ExplainDocuments(
        query=query,
        corpus=place.get("corpus") or _EVERY_CORPUS,
        limit=min(_limit(place), _MOST),
        about=place.get("about"),
    )
    return _results(await reader.ask(asked))


async def _session(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = ExplainSessionSearch(
        session_id=place.get("session") or "",
        query=query,
        limit=min(_limit(place), _MOST),
        about=place.number("about"),
    )
    return _results(await reader.ask(asked))


async def _code(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    asked = ExplainCode(
        query=query,
        scope=place.get("folder") or "",
        limit=min(_limit(place), _MOST),
        about=place.get("about"),
    )
    return _results(await reader.ask(asked))


def _results(said: ResultsExplained) -> dict[str, Any]:
    hits = [hit for mode in said.modes for hit in mode.hits]
    hits += [each.hit for each in said.about if each.hit is not None]
    return {"found": said, "compared": compared(said), "most": _longest(hits)}


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
