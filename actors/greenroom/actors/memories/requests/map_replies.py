"""A map of memories: the map in columns, and the request to each root."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import Message

MOST_NODES = 10_000
"""A map has at most this many memories."""

MapKind = Annotated[
    Literal["graph", "plane", "list"],
    Meta(description="placed by their links, placed by their meaning, or not placed"),
]
MapOrder = Annotated[Literal["used", "newest"], Meta(description="which come first where not all have room")]
MapLimit = Annotated[int, Meta(ge=1, le=MOST_NODES, description="memories at most")]
NodeType = Literal["memory", "session", "conversation", "entity"]
LinkType = Literal["supersedes", "contradicts", "session", "conversation", "mentions", "similar"]


class MapNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a map as columns: memories first, each type by size.

    Attributes:
        id: The id of a memory or session, or the name of a conversation or an entity.
        label: The label on one line, with all characters visible.
        type: An index into `MemoryMapped.types`, like those for ``kind`` and ``namespace``; -1 for none.
        namespace: For a conversation, the namespace that it is below.
        size: The size on the map, 1 to 10: of a memory by uses and ratings, else by links.
        rating: The mean of a memory's ratings, -1 to 1.
        created: The creation of a memory, in seconds since 1970; 0 for others.
        x: The horizontal position; empty if nothing is placed.
    """

    id: list[str]
    label: list[str]
    type: list[int]
    kind: list[int]
    namespace: list[int]
    size: list[float]
    uses: list[int]
    rating: list[float]
    created: list[int]
    x: list[float]
    y: list[float]


class MapLinks(msgspec.Struct, frozen=True, kw_only=True):
    """The links of a map as columns: source, target, and an index into `MemoryMapped.links`."""

    source: list[int]
    target: list[int]
    type: list[int]


class MemoryMapped(Reply, frozen=True, kw_only=True):
    """Answers `MemoryMap`.

    Attributes:
        clusters: Names of groups by meaning, the largest first.
        cluster_of: Each node's cluster, -1 for none; empty without clusters.
        kind: How the nodes are placed; ``graph`` in place of ``plane`` if no memory has a vector.
        memories: The number of memories on the map.
        total: The number of memories that the caller may see and that pass the filters.
        without_vectors: The memories on the map without a vector, which are placed around the others.
        space: The embedding space; null without vectors.
        method: How positions were computed.
        notes: What is missing, one sentence each.
        revision: Changes with any data that a map, of whatever kind and limit, may show.
    """

    kind: MapKind
    nodes: MapNodes
    clusters: list[str]
    cluster_of: list[int]
    edges: MapLinks
    types: list[str]
    links: list[str]
    kinds: list[str]
    namespaces: list[str]
    memories: int
    total: int
    without_vectors: int
    space: str | None
    method: str
    notes: list[str]
    revision: str


# -- internal ------------------------------------------------------------------------------------


class MapRoot(Message["MappedRoot"], frozen=True, kw_only=True):
    """Return the memories of one root for a map; `MemoryMap` sends it to each root.

    Attributes:
        limit: The most memories to return; 0 only counts them.
        names: The words of each wanted name; a memory with all words of a name may mention it.
    """

    filters: MemoryFilters
    limit: int
    order: MapOrder = "used"
    vectors: bool = True
    names: list[list[str]] = msgspec.field(default_factory=list)


class MappedMemory(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The data that a map shows of a memory; only a new version changes them.

    Attributes:
        number: The number of the entry within the root.
        label: The beginning of the text, or the key of JSON or of a large text, on one line; may be empty.
        created_at: In microseconds since 1970.
        provenance: For a finding of a hook: the client, and the client's id of the session.
        tags: The first tags.
    """

    memory_id: str
    number: int
    label: str
    kind: str
    namespace: str
    created_at: int
    session_id: str | None
    conversation: str | None
    provenance: tuple[str, str] | None
    tags: tuple[str, ...] = ()


class MappedVectors(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of a root's memories on a map.

    Attributes:
        places: The memories with a vector, as indexes into `MappedRoot.memories`.
        values: The int8 values, one vector after the other.
    """

    space: str
    places: list[int]
    values: bytes
    dimensions: int


class MappedRoot(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `MapRoot`.

    Attributes:
        total: The number of memories that pass the filters.
        revision: Changes with these memories, their uses, ratings and vectors.
        supersedes: The numbers of the entries that these memories supersede, 0 for none.
        texts: The beginnings of memories that may mention a name, by index, up to a maximum.
        all_texts: Whether no text is left out.
    """

    root: str
    total: int
    revision: bytes = b""
    memories: list[MappedMemory] = []
    uses: list[int] = []
    ratings: list[float] = []
    supersedes: list[int] = []
    vectors: MappedVectors | None = None
    texts: dict[int, str] = {}
    all_texts: bool = True


class MappedEntity(msgspec.Struct, frozen=True, array_like=True):
    """An entity that memories may mention: name, type, all names, and the ambiguous ones."""

    name: str
    type: str
    names: list[str]
    ambiguous: list[str]
