"""JSON of other programs, which may have what no text may: bytes that are no UTF-8, and half a character."""

from __future__ import annotations

import msgspec


def decoded(data: bytes) -> object:
    """Return what JSON says, with what is no UTF-8 replaced; None if it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        import json  # noqa: PLC0415 - takes half a surrogate pair, and few need it

        try:
            return json.loads(data.decode("utf-8", "replace").lstrip("\ufeff"))
        except (ValueError, RecursionError):
            return None


def without_halves(text: str) -> str:
    """Return a text in which half a surrogate pair is replaced, since none can be written down."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
