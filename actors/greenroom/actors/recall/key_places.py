"""Where a key has memories: the owners of all namespaces that the caller may see are asked."""

from __future__ import annotations

from greenroom.actors.auth.namespaces import agent_namespace, user_namespace
from greenroom.actors.recall.replies import PlacesFound
from greenroom.actors.recall.roots import roots_below
from greenroom.actors.recall.scatter_gather import ask_each
from greenroom.actors.schemas import types
from greenroom.actors.schemas.memories import LocateKey
from greenroom.runtime import Desk, Procedure


class PlacesOfKey(Procedure[PlacesFound], frozen=True, kw_only=True):
    """Find where a key has memories that the caller may see; internal.

    Attributes:
        key: The key itself.
        forgotten: As `LocateKey` has it.
    """

    key: types.MemoryKey
    forgotten: bool = False

    async def run(self, desk: Desk) -> PlacesFound:
        """Ask every owner; the caller's own places come first, then its user's, then by name."""
        roots = await roots_below(desk, None)
        answers = await ask_each(desk, roots, LocateKey(key=self.key, forgotten=self.forgotten))
        own = (agent_namespace(desk.principal), user_namespace(desk.principal))
        places = [place for each in answers.found for place in each.places]
        places.sort(
            key=lambda place: (
                own.index(place.namespace) if place.namespace in own else len(own),
                place.session_id is not None,
                place.namespace,
                place.session_id or "",
            )
        )
        return PlacesFound(places=places, failed=answers.failed)
