"""Dependencies and dependents of a file, over any number of steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """A reachable file.

    Attributes:
        via: The file before it on a shortest path.
    """

    path: str
    depth: int
    via: str


class Reach(msgspec.Struct, frozen=True, array_like=True):
    """The files that are reachable from a file.

    Attributes:
        files: The nearest first; of the same depth by path; without the file itself.
        cycles: Shortest paths back to the file, each from the file to the last one before it.
        is_cut: Whether limits left out some.
    """

    files: list[Reached]
    cycles: list[list[str]]
    is_cut: bool


def invert(graph: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Invert a graph: return the predecessors of each file."""
    found: dict[str, list[str]] = {}
    for path in sorted(graph):
        for other in graph[path]:
            found.setdefault(other, []).append(path)
    return found


def reach(graph: Mapping[str, Iterable[str]], path: str, depth: int, most: int = 1_000) -> Reach:
    """Return the files reachable from a file: its dependencies, or dependents if inverted.

    ``graph`` has the successors of each file; there are ``most`` files and ``most`` cycles at most.
    """
    known = {path: Reached(path, 0, "")}
    cycles: list[list[str]] = []
    following = deque([path])
    while following:
        at = following.popleft()
        if known[at].depth >= depth:
            continue
        for other in sorted(set(graph.get(at, ()))):
            if other == path and len(cycles) < most:
                cycles.append(_way(known, at))
            if other not in known:
                if len(known) > most:
                    return Reach(_files(known), cycles, is_cut=True)
                known[other] = Reached(other, known[at].depth + 1, at)
                following.append(other)
    return Reach(
        _files(known),
        cycles,
        is_cut=any(known[each].depth == depth and _leads_on(graph, known, each) for each in known),
    )


def _leads_on(graph: Mapping[str, Iterable[str]], known: Mapping[str, Reached], path: str) -> bool:
    return any(other not in known for other in graph.get(path, ()))


def _way(known: Mapping[str, Reached], path: str) -> list[str]:
    way = [path]
    while known[way[-1]].via:
        way.append(known[way[-1]].via)
    return way[::-1]


def _files(known: Mapping[str, Reached]) -> list[Reached]:
    return sorted((each for each in known.values() if each.depth), key=lambda each: (each.depth, each.path))
