"""Sessions: the list of them, and where one of them leads."""

from __future__ import annotations

from typing import Any, Final

from greenroom.actors import FindSessions
from greenroom.transports.console.view import Place, Reader, View, not_found
from greenroom.transports.console.views.session import TABS

STATUSES: Final = ("created", "active", "paused", "terminated", "archived")
_FILTERS: Final = {"q": "text", "status": "status", "project": "project_id", "agent": "agent", "tool": "tool"}


async def sessions(reader: Reader, place: Place) -> View:
    """Return the list of sessions, or a page of one."""
    session_id, _, tab = place.rest.partition("/")
    if not session_id:
        return await _listed(reader, place)
    found = next((each for each in TABS if each.name == tab), None)
    if found is None:
        return not_found(f"a session has no page {tab!r}")
    return await found.show(reader, place, session_id)


async def _listed(reader: Reader, place: Place) -> View:
    given: dict[str, Any] = {field: place.get(name) for name, field in _FILTERS.items()}
    page = await reader.ask(FindSessions(**given, cursor=place.get("cursor")))
    values = {
        "page": page,
        "statuses": STATUSES,
        "is_filtered": any(given.values()),
        "tools": sorted({each.tool for each in page.sessions if each.tool}),
        "agents": sorted({each.session.created_by for each in page.sessions}),
        "projects": sorted({each.session.project_id for each in page.sessions if each.session.project_id}),
    }
    return View("sessions.html", "Sessions", values, every=5.0)
