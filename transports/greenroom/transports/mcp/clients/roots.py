"""The server's own requests to a client, and the working folders that it reports.

Folders are requested when a session starts in a folder, or a request names files. Only clients of the
handshake era that offer to report folders get this request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import trio

from greenroom.transports.mcp.clients.client_identity import ClientIdentity
from greenroom.transports.mcp.frames.calls import Call, ResponseSink
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.response_encoder import encode

PATIENCE_SECONDS: Final = 2.0
"""Seconds that a client has to report its folders; a session without a project is better than no session."""
MAX_PATH: Final = 4_096
MAX_FOLDERS: Final = 100


class ServerRequests:
    """The server's requests that one client has not answered."""

    __slots__ = ("_arrived", "_count", "_responses")

    def __init__(self) -> None:
        self._count = 0
        self._arrived: dict[str, trio.Event] = {}
        self._responses: dict[str, dict[str, Any]] = {}

    async def ask(
        self, sink: ResponseSink, method: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request; return the client's ``result`` or ``error``."""
        self._count += 1
        key = f"greenroom/{method.partition('/')[0]}/{self._count}"
        message = {"jsonrpc": "2.0", "id": key, "method": method}
        arrived = self._arrived[key] = trio.Event()
        try:
            sink.send(encode(message if params is None else {**message, "params": params}) + b"\n")
            await arrived.wait()
            return self._responses[key]
        finally:
            del self._arrived[key]
            self._responses.pop(key, None)

    def take_response(self, frame: Frame) -> None:
        """Take a client's response; ignore a response without a request."""
        key = frame.key
        if isinstance(key, str) and key in self._arrived and key not in self._responses:
            self._responses[key] = frame.params or {}
            self._arrived[key].set()


class Roots:
    """The working folders of one client."""

    def __init__(self, who: ClientIdentity, requests: ServerRequests) -> None:
        self._requests = requests
        self._can_be_asked = _offers_roots(who)
        offered = ((who.initialize or {}).get("capabilities") or {}).get("roots") or {}
        self._hears_changes = offered.get("listChanged") is True
        self._otherwise = () if who.folder is None else (who.folder,)
        self._known: tuple[str, ...] | None = None

    @property
    def can_be_known(self) -> bool:
        """Whether the client can report folders, or its process revealed a folder."""
        return self._can_be_asked or bool(self._otherwise)

    async def read_cached(self, call: Call) -> tuple[str, ...]:
        """Return the paths of the folders; cached for clients that report changes."""
        if self._known is not None:
            return self._known
        known = await self.folders(call)
        if self._hears_changes and known:
            self._known = known
        return known

    async def folders(self, call: Call) -> tuple[str, ...]:
        """Return the folders that the client reports in time, or that its process reveals."""
        if not self._can_be_asked:
            return self._otherwise
        response: dict[str, Any] = {}
        with trio.move_on_after(PATIENCE_SECONDS):
            response = await self._requests.ask(call.sink, "roots/list")
        return folders_of(response.get("result")) or self._otherwise


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
