"""The audit log: filters in the URL, its records, and whether it is intact."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from greenroom.actors import AuditLines, ExportAuditLog, GetAuditLog, GetAuditState, parse_request
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Place, Reader, View

_FILTERS: Final = ("action", "outcome", "agent", "user", "key_id", "session_id", "after", "before")
_OUTCOMES: Final = ("done", "denied", "failed")
_AT_ONCE: Final = 50


async def audit(reader: Reader, place: Place) -> View:
    """Return a page of the audit log.

    It is not fetched again automatically, because each read of the log is itself audited.
    """
    chosen = _chosen(place)
    given = {**chosen, "cursor": place.get("cursor"), "limit": _AT_ONCE}
    values: dict[str, object] = {
        "chosen": chosen,
        "outcomes": _OUTCOMES,
        "page": None,
        "mistake": "",
    }
    reader.check_scope(GetAuditLog)
    try:
        request = parse_request(GetAuditLog, _encode(given))
    except Refusal as refusal:
        values["mistake"] = str(refusal)
        return View("audit.html", "Audit", {**values, "state": None}, status=HTTPStatus.BAD_REQUEST)
    page = await reader.ask(request)
    return View("audit.html", "Audit", {**values, "page": page, "state": await reader.ask(GetAuditState())})


def audit_export(reader: Reader, place: Place) -> tuple[str, str, Callable[[], Awaitable[bytes]]]:
    """Return the matching records as a file, in the format of `greenroom audit export`."""
    reader.check_scope(ExportAuditLog)
    request = parse_request(ExportAuditLog, _encode(_chosen(place)))
    return "greenroom-audit.jsonl", "application/x-ndjson", AuditLines(reader.ask, request).more


def _chosen(place: Place) -> dict[str, str | None]:
    return {name: place.name(name) for name in _FILTERS}


def _encode(given: dict[str, Any]) -> bytes:
    return msgspec.json.encode({name: value for name, value in given.items() if value is not None})
