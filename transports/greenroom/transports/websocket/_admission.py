"""Who may connect over WebSocket, and as whom: decisions about a handshake, without I/O.

What is refused here is refused before there is a connection, with an HTTP status and a
sentence. On a loopback address nobody is authenticated; the rules keep out web pages (the
``Origin`` and ``Host`` of a browser give them away) and mistakes, not programs of this machine.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from greenroom.transports._values import NotAllowedError, name
from greenroom.transports.websocket._addresses import is_loopback, origin

SUBPROTOCOL = "mcp"
PATHS = frozenset({"", "/", "/mcp"})

_IDENTITY = {
    "agent": (b"greenroom-agent", name(100)),
    "agent_type": (b"greenroom-agent-type", name(100)),
    "project": (b"greenroom-project", name(128)),
}


class RefusedError(Exception):
    """A handshake that is refused with an HTTP status; its sentence is the body of the answer."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a connection says it is.

    Attributes:
        agent: Its agent id; None leaves it to the client's own name.
        agent_type: Its agent type, if it gave one.
        projects: The projects that it gave; empty for none.
    """

    agent: str | None = None
    agent_type: str | None = None
    projects: tuple[str, ...] = ()


class Asked(NamedTuple):
    """A client's handshake.

    Attributes:
        target: Path and query.
        host: The ``Host`` header.
        subprotocols: Those that the client offers.
        headers: The other headers, with names in lower case.
    """

    target: str
    host: str
    subprotocols: list[str]
    headers: list[tuple[bytes, bytes]]


def admit(asked: Asked, allowed_origins: frozenset[str]) -> Caller:
    """Return who connects.

    Args:
        asked: The handshake.
        allowed_origins: Origins that may connect besides loopback ones (`origin`).

    Raises:
        RefusedError: It may not.
    """
    path, _, query = asked.target.partition("?")
    if not is_loopback(_host_name(asked.host)):
        # A name that somebody pointed at this machine, so that a web page of theirs reaches it.
        sentence = f"the Host header says {asked.host[:100]!r}; this server answers to loopback names only"
        raise RefusedError(HTTPStatus.FORBIDDEN, sentence)
    for value in _values(asked.headers, b"origin"):
        if not _origin_passes(value, allowed_origins):
            sentence = f"the origin {value[:100]!r} is not allowed; --allow-origin would allow it"
            raise RefusedError(HTTPStatus.FORBIDDEN, sentence)
    if path not in PATHS:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is nothing at {path[:100]!r}; connect to / or /mcp")
    if SUBPROTOCOL not in asked.subprotocols:
        offered = ", ".join(asked.subprotocols)[:100] or "none"
        sentence = f"the WebSocket subprotocol must be {SUBPROTOCOL!r}; offered was {offered}"
        raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
    return _caller(query, asked.headers)


def _origin_passes(value: str, allowed: frozenset[str]) -> bool:
    try:
        plain = origin(value)
    except NotAllowedError:
        return False
    return plain in allowed or is_loopback(urlsplit(plain).hostname or "")


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _values(headers: list[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for name, value in headers if name == wanted]


def _caller(query: str, headers: list[tuple[bytes, bytes]]) -> Caller:
    try:
        pairs = (
            parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict") if query else []
        )
    except ValueError:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the URL's query cannot be read") from None
    given: dict[str, list[str]] = {}
    for key, value in pairs:
        if key not in _IDENTITY:
            known = ", ".join(_IDENTITY)
            sentence = f"the URL has no parameter {key[:50]!r}; it takes {known}"
            raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
        given.setdefault(key, []).append(value)
    for key, (header, _read) in _IDENTITY.items():
        values = [part.strip() for value in _values(headers, header) for part in value.split(",")]
        if values and key in given:
            sentence = f"{key} stands in the URL and in the header {header.decode()}; give it once"
            raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
        if values:
            given[key] = values
    return Caller(
        agent=_single("agent", given),
        agent_type=_single("agent_type", given),
        projects=tuple(dict.fromkeys(_checked("project", value) for value in given.get("project", ()))),
    )


def _single(key: str, given: dict[str, list[str]]) -> str | None:
    values = given.get(key, [])
    if len(values) > 1:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{key} is given {len(values)} times; give it once")
    return _checked(key, values[0]) if values else None


def _checked(key: str, value: str) -> str:
    try:
        return _IDENTITY[key][1](value)
    except NotAllowedError as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{key} is {value[:100]!r}, but {error}") from None
