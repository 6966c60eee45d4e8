"""The injection log: what hooks and recalls gave to agents, and the reasons."""

from __future__ import annotations

from greenroom.actors import ListTold, MemoriesTold
from greenroom.transports.web.console.view import Place, Reader, View, not_found, whole_number


async def injection_log(reader: Reader, place: Place) -> View:
    """Return the list of injections, or one of them."""
    if place.rest:
        return await _one(reader, place.rest)
    request = ListTold(
        agent=place.get("agent") or "",
        session=place.name("session") or "",
        source=place.get("source"),  # type: ignore[arg-type]  # checked with the request
        memory_id=place.get("memory"),
        cursor=place.get("cursor"),
    )
    return View("injection_log.html", "Injection log", {"page": await reader.ask(request)}, every=5.0)


async def _one(reader: Reader, named: str) -> View:
    number = whole_number(named)
    page: MemoriesTold | None = None if number is None else await reader.ask(ListTold(number=number))
    if page is None or not page.told:
        return not_found("there is no entry of this number: it is too old, or is another agent's")
    row = page.told[0]
    parts = [abs(part) for memory in row.memories for part in memory.signals.values()]
    return View("injection.html", "Injection", {"row": row, "most": max(parts, default=1.0)}, every=5.0)
