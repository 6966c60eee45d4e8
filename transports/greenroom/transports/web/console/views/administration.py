"""Pages about the server: overview, people and keys, injection log, audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from greenroom.actors import (
    AuditLines,
    ExportAuditLog,
    FindSessions,
    GetAuditLog,
    GetAuditState,
    GetOverview,
    GetOwnKey,
    ListApiKeys,
    ListPeople,
    ListTold,
    MemoriesTold,
    parse_request,
)
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import ADMIN, SCOPES, SERVER, WILDCARDS, allows
from greenroom.runtime import Refusal
from greenroom.transports.web.console.agent_names import AgentNames
from greenroom.transports.web.console.view import Place, Reader, View, not_found, whole_number

_EVERY: Final = 10.0
_MOST_OPERATIONS: Final = 6
"""This many operations have their own line in a chart; all others share one line."""


async def overview(reader: Reader, _place: Place) -> View:
    """Return the first page of the console."""
    reply = await reader.ask(GetOverview())
    savings = reply.savings
    periods = savings.days if len(savings.days) > 1 else savings.hours
    names = [each.operation for each in savings.report.operations]
    shown = list(dict.fromkeys(names))[:_MOST_OPERATIONS]
    values = {
        "overview": reply,
        "periods": periods,
        "period": "day" if periods is savings.days else "hour",
        "shown_operations": shown,
        "others": {
            each.begins: sum(saved for name, saved in each.by_operation.items() if name not in shown)
            for each in periods
        },
        "levels": sorted({level for each in periods for level in each.hit_rates}),
    }
    return View("overview.html", "Overview", values, every=_EVERY)


_STATUSES: Final = ("active", "expired", "revoked", "unusable", "all")
_WIDE: Final = {"*:read": "read everything", "*:write": "change everything", "*": "everything"}
_KEYS_AT_ONCE: Final = 100


async def people(reader: Reader, place: Place) -> View:
    """Return the users and keys of the store, or one agent.

    Without ``admin``, the only key is the visitor's own.
    The page is not fetched again automatically, because each list of keys is audited.
    """
    if place.rest:
        return await _agent(reader, place.rest)
    if not allows(reader.who.scopes, ADMIN):
        may_ask = allows(reader.who.scopes, SERVER)
        own = (await reader.ask(GetOwnKey())).key if may_ask else None
        return View("own_key.html", "People and keys", {"key": own})
    chosen = place.get("status")
    status = chosen if chosen in _STATUSES else "active"
    keys = (await reader.ask(ListApiKeys())).keys
    fitting = [key for key in reversed(keys) if status in {"all", key.status}]
    start = place.number("from") or 0
    values: dict[str, Any] = {
        "people": await reader.ask(ListPeople()),
        "keys": fitting[start : start + _KEYS_AT_ONCE],
        "found": len(fitting),
        "start": start,
        "at_once": _KEYS_AT_ONCE,
        "status": status,
        "statuses": _STATUSES,
        "counts": {each: sum(each in {"all", key.status} for key in keys) for each in _STATUSES},
        "scopes": {**_WIDE, **dict.fromkeys(each for each in (*WILDCARDS, *SCOPES) if each not in _WIDE)},
    }
    return View("people.html", "People and keys", values)


async def _agent(reader: Reader, agent: str) -> View:
    """Return the page of an agent, with its whole id."""
    own = user_namespace(Principal(agent_id=reader.who.agent, user=reader.who.user))
    values: dict[str, Any] = {"agent": agent, "user": None, "sessions": None, "own_namespace": own}
    if allows(reader.who.scopes, ADMIN):
        people = (await reader.ask(ListPeople())).people
        values["user"] = next((each for each in people if agent in {it.agent for it in each.agents}), None)
    if reader.may("find_sessions"):
        values["sessions"] = await reader.ask(FindSessions(agent=agent))
    return View("agent.html", AgentNames().of(agent).name, values)


async def injection_log(reader: Reader, place: Place) -> View:
    """Return the list of injections, or one injection."""
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


_FILTERS: Final = ("action", "outcome", "agent", "user", "key_id", "session_id", "after", "before")
_OUTCOMES: Final = ("done", "denied", "failed")
_RECORDS_AT_ONCE: Final = 50


async def audit(reader: Reader, place: Place) -> View:
    """Return a page of the audit log.

    The page is not fetched again automatically, because each read of the log is audited, too.
    """
    chosen = _chosen(place)
    given = {**chosen, "cursor": place.get("cursor"), "limit": _RECORDS_AT_ONCE}
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
