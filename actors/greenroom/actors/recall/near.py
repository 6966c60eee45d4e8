"""Which memories come without being asked for: of the user and the project, and likely to matter."""

from __future__ import annotations

from typing import Final

from greenroom.actors.core.auth.namespaces import (
    OF_A_FOLDER,
    PROJECT,
    memory_address,
    segment,
    user_namespace,
)
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.recall.scatter_gather import Root
from greenroom.actors.memories.recall.search import SearchResult

LEAST_CHANCE: Final = 0.4
LEAST_OF_FEW: Final = 0.2
FEW: Final = 100
"""The chance of a memory against nothing from which on it is given, and the same among so few memories.

Among many one is sooner like a text without having to do with it; `bench hook_context` measures it.
"""


def near_roots(principal: Principal, project: str) -> list[Root]:
    """Return the namespace roots whose memories may be given: the user's own, and the project's."""
    names = [user_namespace(principal)]
    if project:
        names.append(PROJECT + segment(project))
    return [Root(name, memory_address(name)) for name in names]


def is_near(namespace: str, project: str) -> bool:
    """Return whether a namespace is no other project's, as far as its name tells."""
    _, _, *below = namespace.split(":")
    own = segment(project) if project else ""
    return not below or below[0] == own or not OF_A_FOLDER.fullmatch(below[0])


def least_chance(outcome: SearchResult) -> float:
    """Return the chance against nothing that a memory must have, by how many there are."""
    seen = sum(found.counts.get("visible", 0) for found in outcome.found)
    return LEAST_OF_FEW if seen <= FEW else LEAST_CHANCE
