"""Memories: the list of them."""

from __future__ import annotations

from greenroom.actors import ListMemories
from greenroom.transports.console.view import Place, Reader, View


async def memories(reader: Reader, place: Place) -> View:
    """Return the list of memories."""
    request = ListMemories(namespace=place.get("namespace"), cursor=place.get("cursor"))
    page = await reader.ask(request)
    return View("memories.html", "Memories", {"page": page}, every=5.0)
