"""Draw the map from the actors' replies. Needs numpy; does no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple, get_args

import msgspec
import numpy as np
import trio

from greenroom.actors.app.map import layout
from greenroom.actors.app.map.clusters import NONE, Clusters, clusters_of, gathered
from greenroom.actors.app.map.known import Known
from greenroom.actors.app.map.layout import Floats
from greenroom.actors.app.map.linking import LINKS, Check, Linked, Other, linked
from greenroom.actors.app.map.memories import LARGEST, Memories, Vectors, in_order, vectors_of
from greenroom.actors.memories.requests import map_replies as schemas
from greenroom.actors.memories.requests.map_replies import MappedRoot, NodeType

MOST_LINKS: Final = 20_000
SIMILAR: Final = 0.6
"""The least cosine at which neighbours are linked."""
_TYPES: Final[tuple[NodeType, ...]] = get_args(NodeType)
_SECOND: Final = 1_000_000
_PLANE_STEPS, _PLANE_REACH = 40, 0.05
_GRAPH_STEPS, _GRAPH_REACH = 60, 0.1
_DIGITS: Final = 4
_ID_DIGITS: Final = 12
"""The digits at the end of an id that serve as a random number."""
_NOWHERE: Final = np.zeros((0, 2), np.float32)


class _Near(NamedTuple):
    """The nearest nodes by meaning, and their cosines."""

    links: layout.Links
    cosines: Floats


def drawn(
    kind: schemas.MapKind, order: schemas.MapOrder, roots: list[MappedRoot], known: Known
) -> schemas.MemoryMapped:
    """Return the map of the owners' replies; a cancelled caller ends the work."""
    check = trio.from_thread.check_cancelled
    notes = list(known.notes)
    memories = in_order(roots, order)
    vectors = vectors_of(roots, memories, notes)
    if not all(root.all_texts for root in roots):
        notes.append("entities are missing: not all texts were searched")
    found = linked(roots, memories, known, notes, check)
    near = _near(vectors, check)
    clusters = _clusters(memories, vectors, check)
    links, types = _links(found, near, notes)
    if kind == "plane" and vectors is None:
        kind = "graph"
        if memories.shown:
            notes.append("no memory here has a vector yet, so they are placed by their links")
    places = _NOWHERE
    if kind == "plane" and vectors is not None:
        places = _on_plane(len(memories.shown), len(found.others), vectors, near.links, links, check)
    elif kind == "graph":
        places = _by_links(memories, len(found.others), vectors, links, clusters, check)
    names = [
        *(memory.namespace for memory in memories.shown),
        *(other.namespace for other in found.others if other.namespace is not None),
    ]
    kinds = _numbers(memory.kind for memory in memories.shown)
    namespaces = _numbers(names)
    return schemas.MemoryMapped(
        kind=kind,
        nodes=_nodes(memories, found.others, kinds, namespaces, links, places),
        clusters=clusters.names,
        cluster_of=_cluster_column(clusters, vectors, len(memories.shown) + len(found.others)),
        edges=schemas.MapLinks(source=links.source.tolist(), target=links.target.tolist(), type=types),
        types=list(_TYPES),
        links=list(LINKS),
        kinds=list(kinds),
        namespaces=list(namespaces),
        memories=len(memories.shown),
        total=sum(root.total for root in roots),
        without_vectors=len(memories.shown) - (0 if vectors is None else len(vectors.nodes)),
        space=None if vectors is None else vectors.space,
        method={"plane": layout.PLANE, "graph": layout.GRAPH, "list": ""}[kind],
        notes=notes,
        revision=_revision(roots, known),
    )


def _revision(roots: list[MappedRoot], known: Known) -> str:
    """Return a digest of a map's content, independent of the order of arrival."""
    shown = (
        sorted(root.revision for root in roots),
        sorted(known.purposes.items()),
        sorted(known.entities, key=lambda entity: entity.name),
    )
    return blake2b(msgspec.msgpack.encode(shown), digest_size=16).hexdigest()


# -- content -------------------------------------------------------------------------------------


def _near(vectors: Vectors | None, check: Check) -> _Near:
    if vectors is None:
        return _Near(layout.Links(*np.zeros((2, 0), np.intp)), np.zeros(0, np.float32))
    pairs = layout.neighbours(vectors.values, check)
    return _Near(layout.Links(vectors.nodes[pairs.first], vectors.nodes[pairs.second]), pairs.cosines)


def _clusters(memories: Memories, vectors: Vectors | None, check: Check) -> Clusters:
    if vectors is None:
        return NONE
    return clusters_of(vectors.values, [memories.shown[node] for node in vectors.nodes.tolist()], check)


def _cluster_column(clusters: Clusters, vectors: Vectors | None, count: int) -> list[int]:
    """Return the cluster of each node, -1 for none; nothing without clusters."""
    if vectors is None or not clusters.names:
        return []
    column = np.full(count, -1, np.intp)
    column[vectors.nodes] = clusters.of
    found: list[int] = column.tolist()
    return found


def _links(found: Linked, near: _Near, notes: list[str]) -> tuple[layout.Links, list[int]]:
    """Return the links that fit, with their types; links of similarity come last, closest first."""
    closest = np.argsort(-near.cosines, kind="stable")[: int((near.cosines >= SIMILAR).sum())]
    left_out = len(found.types) + len(closest) - MOST_LINKS
    if left_out > 0:
        notes.append(f"{left_out:,} links are left out, those between the least similar memories first")
    closest = closest[: max(0, MOST_LINKS - len(found.types))]
    links = layout.Links(
        np.concatenate((found.links.source[:MOST_LINKS], near.links.source[closest])),
        np.concatenate((found.links.target[:MOST_LINKS], near.links.target[closest])),
    )
    return links, found.types[:MOST_LINKS].tolist() + [LINKS.index("similar")] * len(closest)


def _nodes(
    memories: Memories,
    others: list[Other],
    kinds: dict[str, int],
    namespaces: dict[str, int],
    links: layout.Links,
    places: Floats,
) -> schemas.MapNodes:
    shown = memories.shown
    count = len(shown) + len(others)
    degrees = np.bincount(links.target, minlength=count)
    sizes = np.minimum(LARGEST, 2 + np.log2(1 + degrees))
    sizes[: len(shown)] = memories.sizes
    nothing = [0] * len(others)
    at = np.round(places.astype(np.float64), _DIGITS)
    return schemas.MapNodes(
        id=[memory.memory_id for memory in shown] + [other.id for other in others],
        label=[memory.label or memory.memory_id for memory in shown]
        + [other.label or other.type for other in others],
        type=[0] * len(shown) + [_TYPES.index(other.type) for other in others],
        kind=[kinds[memory.kind] for memory in shown] + [-1] * len(others),
        namespace=[namespaces[memory.namespace] for memory in shown]
        + [-1 if other.namespace is None else namespaces[other.namespace] for other in others],
        size=np.round(sizes, 1).tolist(),
        uses=memories.uses.tolist() + nothing,
        rating=np.round(memories.ratings, 2).tolist() + [0.0] * len(others),
        created=[memory.created_at // _SECOND for memory in shown] + nothing,
        x=at[:, 0].tolist(),
        y=at[:, 1].tolist(),
    )


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


# -- positions -----------------------------------------------------------------------------------


def _on_plane(
    count: int, others: int, vectors: Vectors, near: layout.Links, links: layout.Links, check: Check
) -> Floats:
    """Return positions by meaning; memories without vectors lie outside, other nodes amid their links."""
    places = np.zeros((count + others, 2), np.float32)
    own = np.full(count, -1, np.intp)
    own[vectors.nodes] = np.arange(len(vectors.nodes))
    places[vectors.nodes] = layout.relaxed(
        layout.components(vectors.values),
        layout.Links(own[near.source], own[near.target]),
        steps=_PLANE_STEPS,
        reach=_PLANE_REACH,
        check=check,
    )
    without = np.flatnonzero(own < 0)
    places[without] = layout.around(len(without))
    return layout.amid(places, count, links)


def _by_links(
    memories: Memories,
    others: int,
    vectors: Vectors | None,
    links: layout.Links,
    clusters: Clusters,
    check: Check,
) -> Floats:
    """Return positions by links and clusters; nodes of one meaning, or namespace, start close together."""
    count = len(memories.shown)
    places = np.zeros((count + others, 2), np.float32)
    namespaces = sorted({memory.namespace for memory in memories.shown})
    number = {namespace: place for place, namespace in enumerate(namespaces)}
    places[:count] = layout.scattered(
        np.array([number[memory.namespace] for memory in memories.shown], np.intp),
        np.array([int(memory.memory_id[-_ID_DIGITS:], 16) for memory in memories.shown], np.int64),
    )
    grouped = vectors is not None and bool(clusters.names)
    if vectors is not None and grouped:
        chances = [int(memories.shown[node].memory_id[-_ID_DIGITS:], 16) for node in vectors.nodes.tolist()]
        places[vectors.nodes] = layout.scattered(clusters.of, np.array(chances, np.int64))
    elif vectors is not None:
        places[vectors.nodes] = layout.components(vectors.values)
    places = layout.relaxed(
        layout.amid(places, count, links), links, steps=_GRAPH_STEPS, reach=_GRAPH_REACH, check=check
    )
    if vectors is None or not grouped:
        return places
    return layout.amid(gathered(places, clusters, vectors.nodes), count, links)
