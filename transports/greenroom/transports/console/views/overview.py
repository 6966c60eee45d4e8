"""The first page: how the server is, and what is in it."""

from __future__ import annotations

from greenroom.actors import GetStats, HealthCheck
from greenroom.transports.console.view import Place, Reader, View


async def overview(reader: Reader, _place: Place) -> View:
    """Return what the first page shows."""
    stats = await reader.ask(GetStats())
    health = await reader.ask(HealthCheck())
    return View("overview.html", "Overview", {"stats": stats, "health": health}, every=5.0)
