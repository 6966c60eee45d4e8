"""The map: memories and their links, drawn by the script, or listed without it."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from greenroom.actors import MemoryFilters, MemoryMap, MemoryMapped
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.namespaces import root_of
from greenroom.actors.core.resources.resource_uris import memories_uri
from greenroom.actors.core.validation.parse import check_request
from greenroom.transports.web.console.view import Place, Reader, View, whole_number

EVERY: Final = 30.0
"""Seconds until the page is fetched again. No topic covers names of entities and sessions, or the first
memories of an empty store."""
TOPICS: Final = 20
"""When memories below one of this many namespace roots change, the page is updated at once."""
ROWS: Final = 100
"""The number of memories on one page of the list."""
PAGES: Final = 100
LINKS: Final = 8
"""The most links that a row names."""
AGES: Final = {"1": "a day", "7": "a week", "30": "a month", "365": "a year"}
COLOURS: Final = ("cluster", "type", "namespace")
KINDS: Final = ("semantic", "episodic", "procedural")
PATHS: Final = {
    "memory": "memories/",
    "session": "sessions?id=",
    "conversation": "memories?conversation=",
    "entity": "search?q=",
}
"""The path of a node's page by the node's type, without the id and, except for memories, the namespace."""
_HOW: Final = {
    "supersedes": ("supersedes", "superseded by"),
    "contradicts": ("may contradict", "may be contradicted by"),
    "session": ("from session", "has"),
    "conversation": ("from conversation", "has"),
    "mentions": ("mentions", "mentioned by"),
    "similar": ("similar to", "similar to"),
}
"""The label of each type of link, as seen from its beginning and from its end."""


class Linked(NamedTuple):
    """A linked node: the link's label, the node's label, and its page."""

    how: str
    label: str
    path: str


class Row(NamedTuple):
    """A memory in the list with its links; ``more`` counts the links without names."""

    label: str
    path: str
    kind: str
    namespace: str
    uses: int
    rating: float
    links: list[Linked]
    more: int


async def memory_map(reader: Reader, place: Place) -> View:
    """Return the map's page: the request for the script, and a page of the list."""
    reader.check_scope(MemoryMap)
    page, request = _page(place), _parse_request(place)
    listed = await reader.ask(msgspec.structs.replace(request, kind="list", limit=ROWS * page))
    shown = {
        "request": msgspec.to_builtins(request),
        "listed": listed,
        "rows": _rows(listed)[ROWS * (page - 1) :],
        "page": page,
        "is_last": page == PAGES or listed.total <= ROWS * page,
        "given": {name: values for name, values in place.query.items() if name != "page"},
        "colour": chosen if (chosen := place.get("colour")) in COLOURS else COLOURS[0],
        "ages": AGES,
        "kinds": KINDS,
        "paths": PATHS,
        "how": _HOW,
    }
    return View("map.html", "Map", shown, topics=_topics(request, listed), every=EVERY)


def _topics(request: MemoryMap, listed: MemoryMapped) -> tuple[str, ...]:
    """Return the topics of all namespace roots on the map, and of the requested namespace."""
    named = [name for name in (request.namespace, *listed.namespaces) if name is not None and ":" in name]
    return tuple(map(memories_uri, sorted(set(map(root_of, named)))))[:TOPICS]


def _parse_request(place: Place) -> MemoryMap:
    """Parse the request from the URL."""
    age = place.get("age")
    if age is not None and age not in AGES:
        raise invalid("age", f"age: it is {age[:20]!r} and must be one of {', '.join(AGES)}, in days")
    filters = MemoryFilters(
        kind=place.get("type"),  # type: ignore[arg-type]  # checked below
        max_age_days=None if age is None else float(age),
        superseded=place.get("superseded") != "hidden",
    )
    request = MemoryMap(
        namespace=place.get("namespace"),
        filters=filters,
        kind=place.get("kind") or "graph",  # type: ignore[arg-type]  # likewise
        order=place.get("order") or "used",  # type: ignore[arg-type]  # likewise
    )
    return check_request(request)


def _page(place: Place) -> int:
    given = place.get("page") or "1"
    page = whole_number(given)
    if page is None or not 1 <= page <= PAGES:
        raise invalid("page", f"page: it is {given[:20]!r} and must be a number from 1 to {PAGES}")
    return page


def _rows(listed: MemoryMapped) -> list[Row]:
    """Return the memories of a map, with their links."""
    nodes, edges = listed.nodes, listed.edges
    linked: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for source, target, number in zip(edges.source, edges.target, edges.type, strict=True):
        there, back = _HOW[listed.links[number]]
        linked[source].append((there, target))
        linked[target].append((back, source))
    return [
        Row(
            nodes.label[node],
            _path(listed, node),
            listed.kinds[nodes.kind[node]],
            listed.namespaces[nodes.namespace[node]],
            nodes.uses[node],
            nodes.rating[node],
            [Linked(how, nodes.label[other], _path(listed, other)) for how, other in linked[node][:LINKS]],
            max(0, len(linked[node]) - LINKS),
        )
        for node in range(listed.memories)
    ]


def _path(listed: MemoryMapped, node: int) -> str:
    kind, namespace = listed.types[listed.nodes.type[node]], listed.nodes.namespace[node]
    path = PATHS[kind] + quote(listed.nodes.id[node], safe="")
    if kind == "memory" or namespace < 0:
        return path
    return f"{path}&namespace={quote(listed.namespaces[namespace], safe='')}"
