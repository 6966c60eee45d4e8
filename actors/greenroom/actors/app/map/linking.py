"""Links of memories on a map: to other memories, sessions, conversations, entities. Needs numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, get_args

import numpy as np

from greenroom.actors.app.map.known import NAMES, Known
from greenroom.actors.app.map.layout import Links, Places
from greenroom.actors.app.map.memories import Memories
from greenroom.actors.content.text.truncate import make_label
from greenroom.actors.core.auth.namespaces import is_below, root_of, user_namespace
from greenroom.actors.knowledge.entities import EntityMatcher, MatchedNames
from greenroom.actors.memories.requests.map_replies import LinkType, MappedRoot, NodeType
from greenroom.actors.sessions.requests.hook_messages import ClientSession, session_id_of

MOST_OTHERS: Final = 2_000
"""The most sessions, conversations and entities on a map."""
LINKS: Final[tuple[LinkType, ...]] = get_args(LinkType)

Check = Callable[[], None]


class Other(NamedTuple):
    """A node that is not a memory: its type, page reference, name and parent."""

    type: NodeType
    id: str
    label: str
    namespace: str | None = None


class Linked(NamedTuple):
    """The links of memories.

    Attributes:
        others: The nodes that are not memories, most links first; their numbers follow the memories'.
        types: The type of each link, as its index in `LINKS`.
    """

    others: list[Other]
    links: Links
    types: Places


class _Found:
    """The links so far; the numbers of other nodes begin after those of the memories."""

    def __init__(self, memories: int) -> None:
        self.source: list[int] = []
        self.target: list[int] = []
        self.type: list[int] = []
        self.others: dict[Other, int] = {}
        self._memories = memories

    def add(self, source: int, target: int | Other, kind: LinkType) -> None:
        if isinstance(target, Other):
            target = self._memories + self.others.setdefault(target, len(self.others))
        self.source.append(source)
        self.target.append(target)
        self.type.append(LINKS.index(kind))


def linked(
    roots: Sequence[MappedRoot], memories: Memories, known: Known, notes: list[str], check: Check
) -> Linked:
    """Return the links of memories except similarity; ``check`` may raise to end the work."""
    count = len(memories.shown)
    found = _Found(count)
    for node, earlier in _supersedings(roots, memories):
        found.add(node, earlier, "supersedes")
    for node, earlier in _conflicts(memories, known):
        found.add(node, earlier, "contradicts")
    for node, other in _origins(memories, known):
        found.add(node, other, "session" if other.type == "session" else "conversation")
    for node, other in _mentions(roots, memories, known, check):
        found.add(node, other, "mentions")
    source, target = np.array(found.source, np.intp), np.array(found.target, np.intp)
    types, others = np.array(found.type, np.intp), list(found.others)
    counts = np.bincount(target, minlength=count + len(others))[count:]
    first = np.argsort(-counts, kind="stable")[:MOST_OTHERS]
    if len(others) > MOST_OTHERS:
        notes.append(
            f"of {len(others):,} sessions, conversations and entities "
            f"the {MOST_OTHERS:,} with most links are here"
        )
    numbers = np.full(count + len(others), -1, np.intp)
    numbers[:count] = np.arange(count)
    numbers[count + first] = np.arange(count, count + len(first))
    target = numbers[target]
    is_here = target >= 0
    links = Links(source[is_here], target[is_here])
    return Linked([others[each] for each in first.tolist()], links, types[is_here])


def _supersedings(roots: Sequence[MappedRoot], memories: Memories) -> Iterator[tuple[int, int]]:
    for root, nodes in zip(roots, memories.nodes, strict=True):
        if not any(root.supersedes):
            continue
        by_number = {memory.number: node for memory, node in zip(root.memories, nodes.tolist(), strict=True)}
        for node, earlier in zip(nodes.tolist(), root.supersedes, strict=True):
            if earlier in by_number:
                yield node, by_number[earlier]


def _conflicts(memories: Memories, known: Known) -> Iterator[tuple[int, int]]:
    nodes = {memory.memory_id: node for node, memory in enumerate(memories.shown)} if known.conflicts else {}
    for newer, older in known.conflicts:
        if newer in nodes and older in nodes:
            yield nodes[newer], nodes[older]


def _origins(memories: Memories, known: Known) -> Iterator[tuple[int, Other]]:
    """Yield links to the sessions and conversations from which memories came."""
    own = user_namespace(known.principal)
    for node, memory in enumerate(memories.shown):
        if memory.session_id is not None:
            yield node, _session(memory.session_id, known)
        elif memory.provenance is not None and is_below(memory.namespace, own):
            client, session = memory.provenance
            of = ClientSession(client=client, session=session, project="")
            yield node, _session(session_id_of(of, known.principal), known)
        if memory.conversation in known.purposes:
            yield node, _session(memory.conversation, known)
        elif memory.conversation is not None:
            root, name = root_of(memory.namespace), memory.conversation
            yield node, Other("conversation", name, make_label(name), root)


def _session(session_id: str, known: Known) -> Other:
    return Other("session", session_id, make_label(known.purposes.get(session_id, session_id)))


def _mentions(
    roots: Sequence[MappedRoot], memories: Memories, known: Known, check: Check
) -> Iterator[tuple[int, Other]]:
    if not any(root.texts for root in roots):
        return
    matcher = EntityMatcher(
        MatchedNames(number, entity.names[:NAMES], entity.ambiguous)
        for number, entity in enumerate(known.entities)
    )
    for root, nodes in zip(roots, memories.nodes, strict=True):
        for place, text in root.texts.items():
            check()
            for mentioned in sorted(matcher.mentions(text)):
                name = known.entities[mentioned].name
                yield int(nodes[place]), Other("entity", name, make_label(name))
