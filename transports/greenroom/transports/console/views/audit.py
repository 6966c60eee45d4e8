"""The audit log: who did what when, by filters that stand in the URL, and whether the log is whole."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from greenroom.actors import GetAuditLog, GetAuditState, parse_request
from greenroom.runtime import Refusal
from greenroom.transports.console.view import Place, Reader, View

_FILTERS: Final = ("action", "outcome", "agent", "user", "key_id", "session_id", "after", "before")
_OUTCOMES: Final = ("done", "denied", "failed")
_AT_ONCE: Final = 50


async def audit(reader: Reader, place: Place) -> View:
    """Return a page of the audit log.

    It is not fetched again by itself: to read the log is a deed that the log records.
    """
    chosen = {name: place.name(name) for name in _FILTERS}
    given = {**chosen, "cursor": place.get("cursor"), "limit": _AT_ONCE}
    asked = {name: value for name, value in given.items() if value is not None}
    values: dict[str, object] = {
        "chosen": chosen,
        "outcomes": _OUTCOMES,
        "page": None,
        "mistake": "",
    }
    try:
        request = parse_request(GetAuditLog, msgspec.json.encode(asked))
    except Refusal as refusal:
        await reader.ask(GetAuditState())  # whoever may not read the log is told that, and nothing else
        values["mistake"] = str(refusal)
        return View("audit.html", "Audit", {**values, "state": None}, status=HTTPStatus.BAD_REQUEST)
    page = await reader.ask(request)
    return View("audit.html", "Audit", {**values, "page": page, "state": await reader.ask(GetAuditState())})
