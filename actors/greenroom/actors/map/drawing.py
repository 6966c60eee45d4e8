"""A map drawn of what the actors answered. Needs numpy. Nothing here does I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import trio

from greenroom.actors.auth.namespaces import is_below, root_of, user_namespace
from greenroom.actors.entities import EntityMatcher, MatchedNames
from greenroom.actors.hooks.turns import session_id_of
from greenroom.actors.map import layout
from greenroom.actors.map.known import NAMES, Known, label
from greenroom.actors.map.neighbours import neighbours
from greenroom.actors.schemas import memory_map as schemas
from greenroom.actors.schemas.hook_work import ClientSession
from greenroom.actors.schemas.memory_map import LinkType, MappedMemory, MappedRoot, NodeType

MOST_LINKS: Final = 20_000
MOST_OTHERS: Final = 2_000
"""Sessions, conversations and entities on a map."""
SIMILAR: Final = 0.6
"""From which cosine on neighbours are linked."""
_TYPES: Final[tuple[NodeType, ...]] = get_args(NodeType)
_LINKS: Final[tuple[LinkType, ...]] = get_args(LinkType)
_LARGEST: Final = 10.0
_SECOND: Final = 1_000_000
_PLANE_STEPS, _PLANE_REACH = 40, 0.05
_GRAPH_STEPS, _GRAPH_REACH = 90, 0.1
_DIGITS: Final = 4
_NOWHERE: Final = np.zeros((0, 2), np.float32)

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]
Check = Callable[[], None]


class _Other(NamedTuple):
    """A node that is no memory: its type, what its page is found by, what it is called, below what it is."""

    type: NodeType
    id: str
    label: str
    namespace: str | None = None


class _Link(NamedTuple):
    """A link from a memory to another one, or to another node."""

    source: int
    target: int | _Other
    type: LinkType


class _Memories(NamedTuple):
    """The memories of a map.

    Attributes:
        shown: They themselves, in the order of the map.
        node: Which of them each is, by the number of its root and its place there.
        by_number: The same by the number of its root and its own.
        roots: The number of the root of each.
    """

    shown: list[MappedMemory]
    node: dict[tuple[int, int], int]
    by_number: dict[tuple[int, int], int]
    roots: list[int]


class _Vectors(NamedTuple):
    """Vectors of length 1, one a row, and of which memories they are."""

    space: str
    nodes: Places
    values: Floats


def drawn(
    kind: schemas.MapKind, order: schemas.MapOrder, roots: list[MappedRoot], known: Known
) -> schemas.MemoryMapped:
    """Return the map of what owners answered; in a thread of trio it ends when its caller is cancelled."""
    check = trio.from_thread.check_cancelled
    notes = list(known.notes)
    memories = _in_order(roots, order)
    vectors = _vectors(roots, memories, notes)
    if not all(root.all_texts for root in roots):
        notes.append("entities are missing: not all texts were looked through")
    found = [
        *_supersedings(memories),
        *_conflicts(memories, known),
        *_origins(memories, known),
        *_mentions(roots, memories, known, check),
    ]
    others = _others(found, len(memories.shown), notes)
    near, cosines = layout.Links(*np.zeros((2, 0), np.intp)), np.zeros(0, np.float32)
    if vectors is not None:
        pairs = neighbours(vectors.values, check)
        near, cosines = layout.Links(vectors.nodes[pairs.first], vectors.nodes[pairs.second]), pairs.cosines
    edges = _edges(found, others, near, cosines, notes)
    if kind == "plane" and vectors is None:
        kind = "graph"
        if memories.shown:
            notes.append("no memory here has a vector yet, so they are placed by their links")
    links = layout.Links(np.array(edges.source, np.intp), np.array(edges.target, np.intp))
    places = _NOWHERE
    if kind == "plane" and vectors is not None:
        places = _on_plane(len(memories.shown), len(others), vectors, near, links, check)
    elif kind == "graph":
        places = _by_links(memories, len(others), vectors, links, check)
    return schemas.MemoryMapped(
        kind=kind,
        nodes=_nodes(memories.shown, others, links, places),
        edges=edges,
        types=list(_TYPES),
        links=list(_LINKS),
        kinds=list(_numbers(memory.kind for memory in memories.shown)),
        namespaces=list(_numbers(_namespaces(memories.shown, others))),
        memories=len(memories.shown),
        total=sum(root.total for root in roots),
        without_vectors=len(memories.shown) - (0 if vectors is None else len(vectors.nodes)),
        space=None if vectors is None else vectors.space,
        method={"plane": layout.PLANE, "graph": layout.GRAPH, "list": ""}[kind],
        notes=notes,
    )


# -- what there is -------------------------------------------------------------------------------


def _in_order(roots: Sequence[MappedRoot], order: schemas.MapOrder) -> _Memories:
    """Return the memories of all roots: the largest first, or the newest."""
    found = [
        (number, place, memory)
        for number, root in enumerate(roots)
        for place, memory in enumerate(root.memories)
    ]
    if order == "used":
        found.sort(key=lambda each: (-_size(each[2]), -each[2].created_at))
    else:
        found.sort(key=lambda each: -each[2].created_at)
    return _Memories(
        [memory for _, _, memory in found],
        {(number, place): node for node, (number, place, _) in enumerate(found)},
        {(number, memory.number): node for node, (number, _, memory) in enumerate(found)},
        [number for number, _, _ in found],
    )


def _size(memory: MappedMemory) -> float:
    return min(_LARGEST, 1.5 + float(np.log2(1 + memory.uses)) + max(0.0, memory.rating))


def _vectors(roots: Sequence[MappedRoot], memories: _Memories, notes: list[str]) -> _Vectors | None:
    """Return the vectors of the space in which most memories have one."""
    spaces: Counter[str] = Counter()
    for root in roots:
        if root.vectors is not None:
            spaces[root.vectors.space] += len(root.vectors.places)
    if not spaces:
        return None
    (space, count), *rest = spaces.most_common()
    if rest:
        notes.append(f"{sum(spaces.values()) - count} memories have vectors of another embedder only")
    values, nodes = [], []
    for number, root in enumerate(roots):
        if root.vectors is not None and root.vectors.space == space:
            values.append(np.frombuffer(root.vectors.values, np.int8).reshape(-1, root.vectors.dimensions))
            nodes += [memories.node[number, place] for place in root.vectors.places]
    whole = np.concatenate(values).astype(np.float32)
    whole /= np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), np.float32(1))
    order = np.argsort(nodes)  # so that nothing depends on which owner answered first
    return _Vectors(space, np.array(nodes, np.intp)[order], whole[order])


def _supersedings(memories: _Memories) -> Iterator[_Link]:
    for node, (memory, root) in enumerate(zip(memories.shown, memories.roots, strict=True)):
        earlier = memories.by_number.get((root, memory.supersedes))
        if earlier is not None:
            yield _Link(node, earlier, "supersedes")


def _conflicts(memories: _Memories, known: Known) -> Iterator[_Link]:
    nodes = {memory.memory_id: node for node, memory in enumerate(memories.shown)} if known.conflicts else {}
    for newer, older in known.conflicts:
        if newer in nodes and older in nodes:
            yield _Link(nodes[newer], nodes[older], "contradicts")


def _origins(memories: _Memories, known: Known) -> Iterator[_Link]:
    """Yield links to the sessions and conversations that memories come from."""
    own = user_namespace(known.principal)
    for node, memory in enumerate(memories.shown):
        if memory.session_id is not None:
            yield _Link(node, _session(memory.session_id, known), "session")
        elif memory.provenance is not None and is_below(memory.namespace, own):
            client, session = memory.provenance
            of = ClientSession(client=client, session=session, project="")
            yield _Link(node, _session(session_id_of(of, known.principal), known), "session")
        if memory.conversation in known.purposes:
            yield _Link(node, _session(memory.conversation, known), "session")
        elif memory.conversation is not None:
            root, name = root_of(memory.namespace), memory.conversation
            conversation = _Other("conversation", name, label(name), root)
            yield _Link(node, conversation, "conversation")


def _session(session_id: str, known: Known) -> _Other:
    return _Other("session", session_id, label(known.purposes.get(session_id, session_id)))


def _mentions(
    roots: Sequence[MappedRoot], memories: _Memories, known: Known, check: Check
) -> Iterator[_Link]:
    """Yield links to the entities that memories mention."""
    if not any(root.texts for root in roots):
        return
    matcher = EntityMatcher(
        MatchedNames(number, entity.names[:NAMES], entity.ambiguous)
        for number, entity in enumerate(known.entities)
    )
    for number, root in enumerate(roots):
        for place, text in root.texts.items():
            check()
            for mentioned in sorted(matcher.mentions(text)):
                name = known.entities[mentioned].name
                yield _Link(memories.node[number, place], _Other("entity", name, label(name)), "mentions")


def _others(links: Iterable[_Link], first: int, notes: list[str]) -> dict[_Other, int]:
    """Return the other nodes that have most links, numbered from the ``first`` on."""
    counts = Counter(link.target for link in links if isinstance(link.target, _Other))
    if len(counts) > MOST_OTHERS:
        notes.append(
            f"of {len(counts):,} sessions, conversations and entities "
            f"the {MOST_OTHERS:,} with most links are here"
        )
    return {other: node for node, (other, _) in enumerate(counts.most_common(MOST_OTHERS), first)}


def _edges(
    links: Sequence[_Link],
    others: dict[_Other, int],
    near: layout.Links,
    cosines: Floats,
    notes: list[str],
) -> schemas.MapLinks:
    """Return all links as columns: those of likeness last, the closest first, as far as there is room."""
    found = [
        (link.source, target, _LINKS.index(link.type))
        for link in links
        if (target := link.target if isinstance(link.target, int) else others.get(link.target)) is not None
    ]
    closest = np.argsort(-cosines, kind="stable")[: int((cosines >= SIMILAR).sum())]
    left_out = len(found) + len(closest) - MOST_LINKS
    if left_out > 0:
        notes.append(f"{left_out:,} links are left out, those between the least similar memories first")
    closest = closest[: max(0, MOST_LINKS - len(found))]
    similar = _LINKS.index("similar")
    found = found[:MOST_LINKS] + [
        (source, target, similar)
        for source, target in zip(near.source[closest].tolist(), near.target[closest].tolist(), strict=True)
    ]
    return schemas.MapLinks(
        source=[source for source, _, _ in found],
        target=[target for _, target, _ in found],
        type=[kind for _, _, kind in found],
    )


def _nodes(
    memories: Sequence[MappedMemory], others: dict[_Other, int], links: layout.Links, places: Floats
) -> schemas.MapNodes:
    count = len(memories) + len(others)
    kinds = _numbers(memory.kind for memory in memories)
    namespaces = _numbers(_namespaces(memories, others))
    degrees = np.bincount(links.target, minlength=count)
    sizes = np.minimum(_LARGEST, 2 + np.log2(1 + degrees))
    sizes[: len(memories)] = [_size(memory) for memory in memories]
    nothing = [0] * len(others)
    at = np.round(places.astype(np.float64), _DIGITS)
    return schemas.MapNodes(
        id=[memory.memory_id for memory in memories] + [other.id for other in others],
        label=[label(memory.text) or memory.memory_id for memory in memories]
        + [other.label or other.type for other in others],
        type=[0] * len(memories) + [_TYPES.index(other.type) for other in others],
        kind=[kinds[memory.kind] for memory in memories] + [-1] * len(others),
        namespace=[namespaces[memory.namespace] for memory in memories]
        + [-1 if other.namespace is None else namespaces[other.namespace] for other in others],
        size=np.round(sizes, 1).tolist(),
        uses=[memory.uses for memory in memories] + nothing,
        rating=[round(memory.rating, 2) for memory in memories] + [0.0] * len(others),
        created=[memory.created_at // _SECOND for memory in memories] + nothing,
        x=at[:, 0].tolist(),
        y=at[:, 1].tolist(),
    )


def _namespaces(memories: Sequence[MappedMemory], others: Iterable[_Other]) -> list[str]:
    """Return the namespaces of all nodes that have one."""
    below = [other.namespace for other in others if other.namespace is not None]
    return [*(memory.namespace for memory in memories), *below]


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Return numbers for names, in the order in which these come first."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


# -- where it lies -------------------------------------------------------------------------------


def _on_plane(
    count: int, others: int, vectors: _Vectors, near: layout.Links, links: layout.Links, check: Check
) -> Floats:
    """Return places by meaning; what has no vector lies around, and others amid what they are linked to."""
    places = np.zeros((count + others, 2), np.float32)
    start = np.zeros((count, 2), np.float32)
    start[vectors.nodes] = layout.components(vectors.values)
    own = np.full(count, -1, np.intp)
    own[vectors.nodes] = np.arange(len(vectors.nodes))
    places[vectors.nodes] = layout.relaxed(
        start[vectors.nodes],
        layout.Links(own[near.source], own[near.target]),
        steps=_PLANE_STEPS,
        reach=_PLANE_REACH,
        check=check,
    )
    without = np.flatnonzero(own < 0)
    places[without] = layout.around(len(without))
    return layout.amid(places, count, links)


def _by_links(
    memories: _Memories, others: int, vectors: _Vectors | None, links: layout.Links, check: Check
) -> Floats:
    """Return places by links; those of one namespace start beside each other, or those of one meaning."""
    count = len(memories.shown)
    places = np.zeros((count + others, 2), np.float32)
    order = sorted(range(count), key=lambda node: (memories.shown[node].namespace, node))
    places[order] = layout.spiral(count)
    if vectors is not None:
        places[vectors.nodes] = layout.components(vectors.values)
    return layout.relaxed(
        layout.amid(places, count, links), links, steps=_GRAPH_STEPS, reach=_GRAPH_REACH, check=check
    )
