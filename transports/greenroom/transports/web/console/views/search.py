"""The search debugger: the results of all modes side by side, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    BrowseNamespaces,
    ExplainCode,
    ExplainDocuments,
    ExplainSearch,
    ExplainSessionSearch,
    FindSessions,
    HitExplained,
    ResultExplained,
    ResultsExplained,
    SearchExplained,
)
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Place, Reader, View
from greenroom.transports.web.console.views.everything import search_everything
from greenroom.transports.web.console.views.knowledge import list_corpora, list_workspaces

MOST_SHOWN: Final = 100
_MOST: Final = 50
"""The most results of documents, sessions and code that are shown."""
_USUAL: Final = 10
_EVERY_CORPUS: Final = "*"


class Compared(NamedTuple):
    """A result and its rank in each mode; None for a mode without this result."""

    hit: Any
    places: Mapping[str, int | None]
    alone: str | None  # the only mode that found it; None if several did


async def search(reader: Reader, place: Place) -> View:
    """Return the search debugger's page."""
    query = place.get("q")
    where = place.get("in") or ("everything" if query is None else "memories")
    values: dict[str, Any] = {"where": where, "limit": _limit(place), "refusal": None, "found": None}
    if query is not None:
        try:
            if where == "everything":
                values["found"] = await search_everything(reader, query)
            elif (make := _REQUESTS.get(where)) is None:
                values |= await _memories(reader, place, query)
            else:
                values |= _results(await reader.ask(make(place, query, min(_limit(place), _MOST))))
        except Refusal as refusal:
            values["refusal"] = str(refusal)
    values["choices"] = await _choices(reader, where)
    return View("search.html", "Search", values)


async def _choices(reader: Reader, where: str) -> list[str]:
    """Return the places where a visitor may search: namespaces, corpora, sessions or folders."""
    if where == "documents":
        return (
            [each.corpus.corpus for each in await list_corpora(reader)] if reader.may("list_corpora") else []
        )
    if where == "session":
        found = (await reader.ask(FindSessions())).sessions if reader.may("find_sessions") else []
        return [each.session.session_id for each in found]
    if where == "code":
        listed = await list_workspaces(reader) if reader.may("list_workspaces") else []
        return [str(each.workspace.root) for each in listed]
    found = await reader.ask(BrowseNamespaces()) if reader.may("browse_namespaces") else None
    return [] if found is None else found.namespaces


async def _memories(reader: Reader, place: Place, query: str) -> dict[str, Any]:
    request = ExplainSearch(
        query=query,
        namespace=place.get("namespace"),
        tags=place.all("tag") or None,
        kind=place.get("kind"),  # type: ignore[arg-type]  # checked with the request
        author=place.get("author"),
        time_expr=place.get("time_expr"),
        limit=_limit(place),
        memory_id=place.get("memory"),
    )
    reply: SearchExplained = await reader.ask(request)
    hits = [hit for mode in reply.modes for hit in mode.hits]
    hits += [each.hit for each in reply.memory if each.hit is not None]
    return {"found": reply, "compared": merge_modes(reply), "most": _longest(hits)}


def merge_modes(reply: SearchExplained | ResultsExplained) -> list[Compared]:
    """Merge the results of all modes, best first."""
    hits: dict[str, HitExplained | ResultExplained] = {}
    shown: dict[str, list[str]] = {}
    for mode in reply.modes:
        for hit in mode.hits:
            name = hit.memory_id if isinstance(hit, HitExplained) else hit.id
            hits.setdefault(name, hit)
            shown.setdefault(name, []).append(mode.mode)
    several = len(reply.modes) > 1
    found = [
        Compared(
            hit,
            {mode.mode: mode.places.get(name) for mode in reply.modes},
            shown[name][0] if several and len(shown[name]) == 1 else None,
        )
        for name, hit in hits.items()
    ]
    # The best result has the largest sum of reciprocal ranks.
    return sorted(found, key=lambda each: sum(1 / at for at in each.places.values() if at), reverse=True)


def _longest(hits: Iterable[HitExplained | ResultExplained]) -> float:
    """Return the largest part of a score, which is the length of the longest bar."""
    return max((abs(part.part) for hit in hits for part in hit.signals), default=1.0)


def _results(reply: ResultsExplained) -> dict[str, Any]:
    hits = [hit for mode in reply.modes for hit in mode.hits]
    hits += [each.hit for each in reply.about if each.hit is not None]
    return {"found": reply, "compared": merge_modes(reply), "most": _longest(hits)}


_REQUESTS: Final[Mapping[str, Callable[[Place, str, int], Any]]] = {
    "documents": lambda place, query, limit: ExplainDocuments(
        query=query, corpus=place.get("corpus") or _EVERY_CORPUS, limit=limit, about=place.get("about")
    ),
    "session": lambda place, query, limit: ExplainSessionSearch(
        session_id=place.get("session") or "", query=query, limit=limit, about=place.number("about")
    ),
    "code": lambda place, query, limit: ExplainCode(
        query=query, scope=place.get("folder") or "", limit=limit, about=place.get("about")
    ),
}
"""Makes the request for a search of anything other than memories."""


def _limit(place: Place) -> int:
    """Return the number of results per mode."""
    given = place.number("limit")
    return _USUAL if given is None else min(max(given, 1), MOST_SHOWN)
