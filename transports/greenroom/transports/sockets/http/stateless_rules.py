"""The later era's rules for one POST: what head and body must say alike, and which status an error has.

The codes, the sentences, the statuses and the order of the rules are those of the SDK. The rules
for ``Mcp-Param-*`` are the SDK's own functions, and are only asked where a tool has such a header.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

from greenroom.transports.mcp.frames.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Frame,
)
from greenroom.transports.mcp.frames.versions import (
    CAPABILITIES_KEY,
    MODERN_VERSION,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
)
from greenroom.transports.sockets.http.request_head import METHOD, NAME, VERSION, RequestHead

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021

STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The HTTP status of an answer that is an error with this code; 200 for every other."""

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose ``Mcp-Name`` says what stands in this one of the parameters."""

_ROUTING: Final = (VERSION, METHOD, NAME)
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")


class Rejection(NamedTuple):
    """Why a request is not served, as an error of JSON-RPC."""

    code: int
    sentence: str
    data: Any = None


def rejection_of(head: RequestHead, frame: Frame) -> Rejection | None:
    """Return why a request is not served by the later era; None when it is."""
    for name in _ROUTING:
        if head.repeats(name):
            return Rejection(HEADER_MISMATCH, f"{name.decode()} header appears more than once")
    meta = (frame.params or {}).get("_meta")
    if not isinstance(meta, dict):
        keys = f"{VERSION_KEY!r} and {CAPABILITIES_KEY!r}"
        sentence = f"params._meta must be an object carrying the required {keys} envelope keys"
        return Rejection(INVALID_PARAMS, sentence)
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        sentence = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        return Rejection(INVALID_PARAMS, sentence)
    if rejection := _mismatch(head, frame, meta[VERSION_KEY]) or unsupported(meta[VERSION_KEY]):
        return rejection
    if frame.method == "initialize":  # there is no connection whose era it could be too late to choose
        return Rejection(METHOD_NOT_FOUND, "Method not found", frame.method)
    return None


def _mismatch(head: RequestHead, frame: Frame, version: Any) -> Rejection | None:
    if VERSION not in head.headers or head.text(VERSION) != version:
        sentence = f"{VERSION.decode()} header does not match the request envelope's protocol version"
        return Rejection(HEADER_MISMATCH, sentence)
    if head.text(METHOD) != frame.method:
        sentence = f"{METHOD.decode()} header does not match the request body's method"
        return Rejection(HEADER_MISMATCH, sentence)
    key = NAMED.get(frame.method)
    if key is not None:
        wanted = (frame.params or {}).get(key)
        if wanted is not None and plain_value(head.text(NAME)) != wanted:
            sentence = f"{NAME.decode()} header does not match the request body's {key!r} parameter"
            return Rejection(HEADER_MISMATCH, sentence)
    return None


def unsupported(version: str) -> Rejection | None:
    """Return why a revision of the protocol is not served; None when it is."""
    if version == MODERN_VERSION:
        return None
    data = {"supported": [MODERN_VERSION], "requested": version}
    return Rejection(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def plain_value(value: str | None) -> str | None:
    """Return the value of a header, which may be written as ``=?base64?…?=``; None for what is no text."""
    if value is None or (match := _ENCODED.fullmatch(value)) is None:
        return value
    try:
        decoded = base64.b64decode(match[1], validate=True)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    # A second spelling of the same bytes would be another header to whoever compares the text.
    return text if base64.b64encode(decoded).decode() == match[1] else None


def status_of(line: bytes, id: bytes) -> int:
    """Return the HTTP status of an answer.

    Args:
        line: The answer's line.
        id: The request's id as it was received.
    """
    start = line.find(b'"error":{"code":', 0, len(id) + 60)
    if start < 0 or not line.startswith(b'{"jsonrpc":"2.0","id":%b,"error"' % id):
        return 200
    code = line[start + 16 : start + 32].partition(b",")[0]
    return STATUS.get(int(code), 200) if code.lstrip(b"-").isdigit() else 200
