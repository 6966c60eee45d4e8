"""Which processes of the folder there are, with this one as it is now."""

from __future__ import annotations

from typing import NamedTuple

from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import ProcessPresence, ReadPresence, TellPresence
from greenroom.actors.orchestrations.client_session import ClientSessionState


class Processes(NamedTuple):
    """What each process told last, and the id of this one; None where it tells nothing of itself."""

    told: list[ProcessPresence]
    own: str | None


async def told_of(client: ClientSessionState) -> Processes:
    """Return what the processes told; this one tells again before, as that may be some seconds old."""
    own = None if client.server is None else client.server.presence()
    if own is not None:
        await client.runtime.ask(PRESENCE, TellPresence(process=own))
    told = await client.runtime.ask(PRESENCE, ReadPresence())
    return Processes(told, None if own is None else own.id)
