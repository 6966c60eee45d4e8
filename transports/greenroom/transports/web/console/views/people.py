"""People and keys: known users and agents, API keys, and logged-in browsers."""

from __future__ import annotations

from typing import Any, Final

from greenroom.actors import GetOwnKey, ListApiKeys, ListPeople
from greenroom.actors.core.auth.scopes import ADMIN, SCOPES, SERVER, WILDCARDS, allows
from greenroom.transports.web.console.view import Place, Reader, View

_STATUSES: Final = ("active", "expired", "revoked", "all")
_AT_ONCE: Final = 100


async def people(reader: Reader, place: Place) -> View:
    """Return the users and keys of the store; without ``admin``, only one's own key.

    It is not fetched again automatically, because each list of keys is audited.
    """
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
        "keys": fitting[start : start + _AT_ONCE],
        "found": len(fitting),
        "start": start,
        "at_once": _AT_ONCE,
        "status": status,
        "statuses": _STATUSES,
        "counts": {each: sum(each in {"all", key.status} for key in keys) for each in _STATUSES},
        "scopes": (*SCOPES, *WILDCARDS),
    }
    return View("people.html", "People and keys", values)
