"""Check hosts and origins by the rules that WebSocket and HTTP share. No I/O.

A refusal has an HTTP status and a message. Callers on a loopback address are not authenticated. These rules
keep out web pages, which the browser's ``Origin`` and ``Host`` reveal, and mistakes. They do not keep out
programs of this machine.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from greenroom.transports.base.errors import AccessDeniedError
from greenroom.transports.base.net.addresses import host_of, is_loopback, origin_parts

_REMEMBERED: Final = 256  # a client sends the same headers with each of its requests


def check_host(host: str, status: HTTPStatus) -> None:
    """Refuse a request with a ``Host`` that is not a loopback name."""
    if not _means_this_machine(host):
        # DNS rebinding: a foreign name that resolves to this machine, so that a web page reaches it.
        sentence = (
            f"the Host header says {host[:100]!r}; this server answers to loopback names only; "
            "--behind-proxy allows every name, and so does an address that is not loopback"
        )
        raise AccessDeniedError(status, sentence)


def check_origin(value: str, allowed: frozenset[str]) -> None:
    """Refuse a request from a web page of a foreign origin."""
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
