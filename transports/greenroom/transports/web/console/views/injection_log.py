"""What was told: everything that hooks and recalls gave to agents, and why."""

from __future__ import annotations

from greenroom.actors import ListTold, MemoriesTold
from greenroom.transports.web.console.view import Place, Reader, View, not_found, whole_number


async def told(reader: Reader, place: Place) -> View:
    """Return the list of what was told, or what was told at one time."""
    if place.rest:
        return await _one(reader, place.rest)
    asked = ListTold(
        agent=place.get("agent") or "",
        session=place.name("session") or "",
        source=place.get("source"),  # type: ignore[arg-type]  # what it may be is checked when it is asked
        memory_id=place.get("memory"),
        cursor=place.get("cursor"),
    )
    return View("told.html", "Told", {"page": await reader.ask(asked)}, every=5.0)


async def _one(reader: Reader, named: str) -> View:
    number = whole_number(named)
    page: MemoriesTold | None = None if number is None else await reader.ask(ListTold(number=number))
    if page is None or not page.told:
        return not_found("there is nothing of this number: it is too old, or was told to another's agents")
    row = page.told[0]
    parts = [abs(part) for memory in row.memories for part in memory.signals.values()]
    return View("telling.html", "What was told", {"row": row, "most": max(parts, default=1.0)}, every=5.0)
