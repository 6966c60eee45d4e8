"""JSON that clients write: decode it, and read the standard input of a hook."""

from __future__ import annotations

import json
import os
import select

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from typing import Final

MAX_INPUT: Final = 32 << 20
"""The most bytes of a hook's input, which may contain a tool's output."""
_CHUNK: Final = 1 << 20


class NotUnderstoodError(Exception):
    """A client's input cannot be parsed; the sentence says why."""


def claim_output() -> int:
    """Return a descriptor of standard output that nothing else in this process writes to."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own


def read_object(descriptor: int) -> bytes:
    """Read the input until its end, or until it is a complete object.

    The client may keep its end of the pipe open.
    """
    data = bytearray()
    while part := os.read(descriptor, _CHUNK):
        data += part
        if len(data) > MAX_INPUT:
            raise NotUnderstoodError(f"standard input has more than {MAX_INPUT:,} bytes")
        if (
            part.rstrip().endswith(b"}")
            and not _has_more(descriptor)
            and decode_loosely(bytes(data)) is not None
        ):
            break
    return bytes(data)


def _has_more(descriptor: int) -> bool:
    """Return whether the descriptor is readable now, also at the end of input."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(0))


def decode_loosely(data: bytes) -> object:
    """Decode JSON, and replace invalid UTF-8; return None if the JSON is invalid."""
    try:
        return json.loads(data.decode("utf-8", "replace").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
