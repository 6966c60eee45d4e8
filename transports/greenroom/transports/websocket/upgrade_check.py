"""Whether a WebSocket upgrade is allowed, and who the caller is. No I/O.

What is refused here is refused before there is a connection.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from greenroom.transports.auth.caller import Caller, caller_of, header_values
from greenroom.transports.auth.origin_check import check_host, check_origin
from greenroom.transports.base.errors import HttpRefusedError

SUBPROTOCOL = "mcp"
PATHS = frozenset({"", "/", "/mcp"})


class UpgradeRequest(NamedTuple):
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


def check_upgrade(
    asked: UpgradeRequest, allowed_origins: frozenset[str], *, any_host: bool = False
) -> Caller:
    """Return the caller of an allowed upgrade.

    Args:
        asked: The handshake.
        allowed_origins: Origins that may connect besides loopback ones.
        any_host: Whether the server has other names than this machine's.

    Raises:
        HttpRefusedError: It may not.
    """
    path, _, query = asked.target.partition("?")
    if not any_host:
        check_host(asked.host, HTTPStatus.FORBIDDEN)
    for value in header_values(asked.headers, b"origin"):
        check_origin(value, allowed_origins)
    if path not in PATHS:
        raise HttpRefusedError(
            HTTPStatus.NOT_FOUND, f"there is nothing at {path[:100]!r}; connect to / or /mcp"
        )
    if SUBPROTOCOL not in asked.subprotocols:
        offered = ", ".join(asked.subprotocols)[:100] or "none"
        sentence = f"the WebSocket subprotocol must be {SUBPROTOCOL!r}; offered was {offered}"
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
    return caller_of(query, asked.headers)
