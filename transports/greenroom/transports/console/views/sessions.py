"""Sessions: the list of them."""

from __future__ import annotations

from greenroom.actors import ListSessions
from greenroom.transports.console.view import Place, Reader, View


async def sessions(reader: Reader, place: Place) -> View:
    """Return the list of sessions."""
    page = await reader.ask(ListSessions(cursor=place.get("cursor")))
    return View("sessions.html", "Sessions", {"page": page}, every=5.0)
