"""The folders that a client works in, asked for when a session is to start in one, or files are named.

This is the one thing that Greenroom asks of clients by itself, and only of those that offer it, in the
handshake era. It needs no SDK: one request, whose id no other request of the server has.
"""

from __future__ import annotations

import itertools
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import trio

from greenroom.transports.mcp.client_identity import ClientIdentity
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.response_encoder import encode

PATIENCE_SECONDS: Final = 2.0
"""How long a client may take to say where it works; a session without a project is better than none."""
MAX_PATH: Final = 4_096
MAX_FOLDERS: Final = 100
_PREFIX: Final = "greenroom/roots/"


class Roots:
    """The requests for its roots that one client was sent.

    Args:
        who: The client.
    """

    def __init__(self, who: ClientIdentity) -> None:
        self._can_be_asked = _offers_roots(who)
        offered = ((who.initialize or {}).get("capabilities") or {}).get("roots") or {}
        self._hears_changes = offered.get("listChanged") is True
        self._otherwise = () if who.folder is None else (who.folder,)
        self._numbers = itertools.count(1)
        self._waiting: dict[str, trio.Event] = {}
        self._told: dict[str, Any] = {}
        self._known: tuple[str, ...] | None = None

    def take_response(self, frame: Frame) -> bool:
        """Take a response; return whether it answers one of these requests."""
        if not isinstance(frame.key, str) or not frame.key.startswith(_PREFIX):
            return False
        event = self._waiting.get(frame.key)
        if event is not None:
            self._told[frame.key] = (frame.params or {}).get("result")
            event.set()
        return True

    async def folder(self, call: Call) -> str | None:
        """Return the path of the first folder that a client works in, if it says so in time."""
        return next(iter(await self.folders(call)), None)

    async def known_folders(self, call: Call) -> tuple[str, ...]:
        """Return the paths of the folders that a client works in, as it said last if it tells of changes."""
        if self._known is not None:
            return self._known
        known = await self.folders(call)
        if self._hears_changes and known:
            self._known = known
        return known

    def forget(self) -> None:
        """Ask again when they are wanted: the client says that they changed."""
        self._known = None

    async def folders(self, call: Call) -> tuple[str, ...]:
        """Return the paths of the folders that a client works in, as it says in time or its process did."""
        if not self._can_be_asked:
            return self._otherwise
        key = f"{_PREFIX}{next(self._numbers)}"
        event = self._waiting[key] = trio.Event()
        try:
            call.sink.send(encode({"jsonrpc": "2.0", "id": key, "method": "roots/list"}) + b"\n")
            with trio.move_on_after(PATIENCE_SECONDS):
                await event.wait()
            return folders_of(self._told.pop(key, None)) or self._otherwise
        finally:
            del self._waiting[key]


def needs_folder(call: Call, who: ClientIdentity) -> bool:
    """Return whether a call that starts a session does so in a folder that only its client can tell."""
    return b'"workspace_path"' not in call.frame.arguments and tells_folders(who)


def tells_folders(who: ClientIdentity) -> bool:
    """Return whether a client's folders can be known: it can be asked, or its process told one."""
    return who.folder is not None or _offers_roots(who)


def _offers_roots(who: ClientIdentity) -> bool:
    if who.era is not Era.HANDSHAKE:
        return False
    capabilities = (who.initialize or {}).get("capabilities")
    return isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)


def folders_of(result: Any) -> tuple[str, ...]:
    """Return the paths of the folders in a result of ``roots/list``."""
    found: list[str] = []
    roots = result.get("roots") if isinstance(result, dict) else None
    for root in roots if isinstance(roots, list) else ():
        uri = root.get("uri") if isinstance(root, dict) else None
        if isinstance(uri, str) and uri.startswith("file:"):
            try:
                parts = urlsplit(uri)
                path = unquote(parts.path, errors="strict")
            except ValueError:
                continue
            is_here = parts.netloc in {"", "localhost"}
            if is_here and 0 < len(path) <= MAX_PATH and "\0" not in path:
                found.append(path)
    return tuple(found[:MAX_FOLDERS])
