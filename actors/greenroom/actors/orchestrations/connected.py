"""Which processes of the folder there are, with this one as it is now."""

from __future__ import annotations

from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.presence.actor import PRESENCE
from greenroom.actors.schemas.presence import ProcessPresence, ReadPresence, TellPresence


async def told_of(client: ClientSessionState) -> list[ProcessPresence]:
    """Return what each process told last; this one tells again before, as that may be some seconds old."""
    if client.server is not None:
        await client.runtime.ask(PRESENCE, TellPresence(process=client.server.presence()))
    return await client.runtime.ask(PRESENCE, ReadPresence())
