"""What a map of memories is made of: what each root has for it, and the reply, in columns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import Message

MOST_NODES = 10_000
"""Memories on one map."""

MapKind = Annotated[
    Literal["graph", "plane", "list"],
    Meta(description="placed by their links, placed by their meaning, or not placed"),
]
MapOrder = Annotated[Literal["used", "newest"], Meta(description="which come first where not all have room")]
MapLimit = Annotated[int, Meta(ge=1, le=MOST_NODES, description="memories at most")]
NodeType = Literal["memory", "session", "conversation", "entity"]
LinkType = Literal["supersedes", "contradicts", "session", "conversation", "mentions", "similar"]


class MapNodes(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a map as columns of equal length: memories first, the largest of each type first.

    Attributes:
        id: What its page is found by: a memory's or session's id, the name of a conversation or an entity.
        label: What it is called, in one line in which nothing is hidden.
        type: A place in `MemoryMapped.types`.
        kind: A place in `MemoryMapped.kinds`; -1 for what is no memory.
        namespace: A place in `MemoryMapped.namespaces`, of a conversation that below which it is; -1 for what
            has none.
        size: How large it is drawn, 1 to 10: of a memory by its uses and ratings, else by its links.
        uses: How often a memory was used; 0 for others.
        rating: The mean of a memory's ratings, -1 to 1.
        created: When a memory was created, in seconds since 1970; 0 for others.
        x: Where it lies; empty where nothing was placed.
        y: The same the other way.
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
    """The links of a map as columns: from which node to which, and its type in `MemoryMapped.links`."""

    source: list[int]
    target: list[int]
    type: list[int]


class MemoryMapped(Reply, frozen=True, kw_only=True):
    """Answers `MemoryMap`.

    Attributes:
        kind: How the nodes are placed; ``graph`` in place of ``plane`` where no memory has a vector.
        nodes: What is on the map.
        edges: What links them.
        types: The names of types of nodes.
        links: The names of types of links.
        kinds: The names of kinds of memories.
        namespaces: The namespaces.
        memories: How many memories are on the map.
        total: How many there are that the caller may see and that fit the filters.
        without_vectors: How many of those on the map have no vector, and lie around the others on a plane.
        space: The space of the vectors; null where there are none.
        method: How positions were made.
        notes: What is missing, a sentence each.
        revision: Another one as soon as anything is that such a map may show, whatever its kind and limit.
    """

    kind: MapKind
    nodes: MapNodes
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
    """Tell what a map shows of the memories below one root. Not a tool: `MemoryMap` asks it of each.

    Attributes:
        filters: What narrows it.
        limit: Memories at most; with 0 they are only counted.
        order: Which come first.
        vectors: Whether their vectors are wanted.
        names: Of each name that is looked for its words; a memory that has all of one may mention it.
    """

    filters: MemoryFilters
    limit: int
    order: MapOrder = "used"
    vectors: bool = True
    names: list[list[str]] = msgspec.field(default_factory=list)


class MappedMemory(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a map shows of a memory and what stays as it is until its next version.

    Attributes:
        memory_id: Its id.
        number: What tells it from others of the root.
        label: Its key, or of a generated key the beginning of what it says, as one line; it may be empty.
        kind: What kind it is.
        namespace: Its namespace in full.
        created_at: In microseconds since 1970.
        session_id: The session that it is bound to.
        conversation: The conversation that it belongs to.
        provenance: The client, and its own name for the session, in which a hook found it.
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


class MappedVectors(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of a root's memories on a map.

    Attributes:
        space: Their space.
        places: Which memories have one, as places in `MappedRoot.memories`.
        values: Their int8 values, one vector after the other.
        dimensions: Of each vector.
    """

    space: str
    places: list[int]
    values: bytes
    dimensions: int


class MappedRoot(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `MapRoot`.

    Attributes:
        root: The root's name.
        total: How many memories fit.
        revision: Another one as soon as what fits is another, or used or rated otherwise, or gets vectors.
        memories: Those that come first.
        uses: How often each of these was used.
        ratings: The mean of its ratings.
        supersedes: The number of the memory whose place it takes, 0 for none.
        vectors: The vectors of these; None where there are none.
        texts: The beginnings of those that may mention a name, by place; more than fits is left out.
        all_texts: Whether none was left out.
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
    """An entity that memories may mention: its name, its type, all names, and those that need a context."""

    name: str
    type: str
    names: list[str]
    ambiguous: list[str]
