"""The parameters of a URL, the method and type of a request, and forms."""

from __future__ import annotations

import json
from collections.abc import Collection
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.request_head import CONTENT_TYPE, RequestHead

LOG_IN_SIZE: Final = 16_384
"""The most bytes of a log-in's body; an access token may have thousands of bytes."""
_FORM: Final = "application/x-www-form-urlencoded"


def check_method(head: RequestHead, method: str) -> None:
    """Check the method of a request."""
    if head.method != method:
        sentence = f"this path takes {method}"
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow=method)


def content_type(head: RequestHead) -> str:
    """Return the type of a request's body, without its parameters."""
    return (head.text(CONTENT_TYPE) or "").partition(";")[0].strip().lower()


def query(head: RequestHead, *known: str, beside: Collection[str] = ()) -> dict[str, list[str]]:
    """Parse the parameters of a URL; return the values of each parameter."""
    found = _fields(head.query, "the URL")
    found = {name: values for name, values in found.items() if name not in beside}
    _check_known(found, known, "the URL")
    return found


def any_query(head: RequestHead) -> dict[str, list[str]]:
    """Parse the parameters of a page's URL, which may include unknown ones."""
    return _fields(head.query, "the URL")


async def form(exchange: Exchange, *known: str, most: int = LOG_IN_SIZE) -> dict[str, str]:
    """Parse a form of at most ``most`` bytes; return its fields."""
    if content_type(exchange.head) != _FORM:
        raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this is no form of a page of this server")
    text = (await exchange.body(most)).decode("latin-1")
    found = _fields(text, "the form")
    _check_known(found, known, "the form")
    return {name: values[0] for name, values in found.items()}


def _fields(text: str, where: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    except ValueError:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, f"{where} cannot be read") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _check_known(found: dict[str, list[str]], known: tuple[str, ...], where: str) -> None:
    for name in found:
        if name not in known:
            sentence = f"{where} has no parameter {json.dumps(name[:50])}; it takes {', '.join(known)}"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
