"""The later era's rules for one POST: consistent headers, and the status of errors.

Codes, sentences, statuses and the order of the rules are the same as in the SDK. The SDK's own functions
check ``Mcp-Param-*``; they are called only for tools with such a header.
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
    RequestError,
)
from greenroom.transports.mcp.frames.versions import (
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    check_version,
    envelope_of,
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
"""The HTTP status of an answer with this error code; all other answers have 200."""

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods with a ``Mcp-Name`` header, and the parameter that it repeats."""

_ROUTING: Final = (VERSION, METHOD, NAME)
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")


class Rejection(NamedTuple):
    """The refusal of a request, as a JSON-RPC error."""

    code: int
    sentence: str
    data: Any = None


def rejection_of(head: RequestHead, frame: Frame) -> Rejection | None:
    """Return the refusal of a request by the later era; None if it is accepted."""
    for name in _ROUTING:
        if head.repeats(name):
            return Rejection(HEADER_MISMATCH, f"{name.decode()} header appears more than once")
    try:
        version = envelope_of(frame.params)[VERSION_KEY]
        if mismatch := _mismatch(head, frame, version):
            return mismatch
        check_version(version)
    except RequestError as error:
        return Rejection(error.code, str(error), error.data)
    if frame.method == "initialize":  # without a connection there is no era to be fixed
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


def plain_value(value: str | None) -> str | None:
    """Decode a header's value, which may be ``=?base64?…?=``; None if it is no text."""
    if value is None or (match := _ENCODED.fullmatch(value)) is None:
        return value
    try:
        decoded = base64.b64decode(match[1], validate=True)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    # Only the canonical spelling: a proxy that compares texts must see the same header.
    return text if base64.b64encode(decoded).decode() == match[1] else None


def status_of(line: bytes, id: bytes) -> int:
    """Return the HTTP status of an answer."""
    start = line.find(b'"error":{"code":', 0, len(id) + 60)
    if start < 0 or not line.startswith(b'{"jsonrpc":"2.0","id":%b,"error"' % id):
        return 200
    code = line[start + 16 : start + 32].partition(b",")[0]
    return STATUS.get(int(code), 200) if code.lstrip(b"-").isdigit() else 200
