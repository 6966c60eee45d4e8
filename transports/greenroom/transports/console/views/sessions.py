"""Sessions: the list of them, and where one of them leads."""

from __future__ import annotations

from typing import Any, Final

from greenroom.actors import FindSessions
from greenroom.runtime import Refusal
from greenroom.transports.console.views.session import TABS, transcript
from greenroom.transports.web.console.view import Place, Reader, View, not_found

STATUSES: Final = ("created", "active", "paused", "terminated", "archived")
_FILTERS: Final = {"q": "text", "status": "status", "project": "project_id", "agent": "agent", "tool": "tool"}
_READ: Final = {"q": Place.get}
_LONGEST_TEXT: Final = 128
"""Characters that a search for sessions takes."""


async def sessions(reader: Reader, place: Place) -> View:
    """Return the list of sessions, or a page of one, which its path names or the parameter ``id``."""
    session_id, _, tab = place.rest.partition("/")
    if not session_id:
        named = place.name("id")
        return await (_listed(reader, place) if named is None else _named(reader, place, named))
    found = next((each for each in TABS if each.name == tab), None)
    if found is None:
        return not_found(f"a session has no page {tab!r}")
    return await found.show(reader, place, session_id)


async def _named(reader: Reader, place: Place, session_id: str) -> View:
    """Return the page of a session; if there is none of this id, say so above those that come near to it.

    Metadata may name what was never here, is deleted, or is another program's session.
    """
    try:
        return await transcript(reader, place, session_id)
    except Refusal as refusal:
        if refusal.code != "SESSION_NOT_FOUND" and refusal.details.get("field") != "session_id":
            raise
    listed = await _listed(reader, place._replace(query={"q": [session_id[:_LONGEST_TEXT]]}))
    return listed._replace(values={**listed.values, "missing": session_id}, every=None)


async def _listed(reader: Reader, place: Place) -> View:
    given: dict[str, Any] = {
        field: _READ.get(name, Place.name)(place, name) for name, field in _FILTERS.items()
    }
    page = await reader.ask(FindSessions(**given, cursor=place.get("cursor")))
    values = {
        "place": place,
        "missing": None,
        "page": page,
        "statuses": STATUSES,
        "is_filtered": any(given.values()),
        "tools": sorted({each.tool for each in page.sessions if each.tool}),
        "agents": sorted({each.session.created_by for each in page.sessions}),
        "projects": sorted({each.session.project_id for each in page.sessions if each.session.project_id}),
    }
    return View("sessions.html", "Sessions", values, every=5.0)
