"""Which hosts and origins may speak to a socket, by the rules that WebSocket and HTTP share. No I/O.

What is refused here is refused with an HTTP status and a sentence. On a loopback address nobody
is authenticated; the rules keep out web pages (the ``Origin`` and ``Host`` of a browser give
them away) and mistakes, not programs of this machine.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from greenroom.transports.base.errors import AccessDeniedError
from greenroom.transports.base.net.addresses import host_of, is_loopback, origin_parts

_REMEMBERED: Final = 256  # a client sends the same headers with each of its requests


def check_host(host: str, status: HTTPStatus) -> None:
    """Refuse a request whose ``Host`` is none of this machine's names.

    Raises:
        AccessDeniedError: with this status.
    """
    if not _means_this_machine(host):
        # A name that somebody pointed at this machine, so that a web page of theirs reaches it.
        sentence = (
            f"the Host header says {host[:100]!r}; this server answers to loopback names only; "
            "--behind-proxy allows every name, and so does an address that is not loopback"
        )
        raise AccessDeniedError(status, sentence)


def check_origin(value: str, allowed: frozenset[str]) -> None:
    """Refuse a request that a web page of another origin sends.

    Args:
        value: The ``Origin`` header.
        allowed: Origins that may connect besides loopback ones (`origin`).

    Raises:
        AccessDeniedError: it may not.
    """
    if not _origin_passes(value, allowed):
        sentence = f"the origin {value[:100]!r} is not allowed; --allow-origin would allow it"
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, sentence)


@lru_cache(_REMEMBERED)
def _means_this_machine(host: str) -> bool:
    return is_loopback(host_of(host) or "")


@lru_cache(_REMEMBERED)
def _origin_passes(value: str, allowed: frozenset[str]) -> bool:
    plain = value.lower()
    if plain in allowed:
        return True
    parts = origin_parts(plain)
    return parts is not None and parts.is_loopback
