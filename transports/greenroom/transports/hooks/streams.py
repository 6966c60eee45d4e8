"""What a client writes to a hook and reads from it: one JSON object each way."""

from __future__ import annotations

import os
import select
from typing import Final

from greenroom.transports.clients.hooks.dialects import NotUnderstoodError
from greenroom.transports.hooks.loose_json import decoded

MAX_INPUT: Final = 32 << 20
"""Bytes of what a client says; it holds what a tool answered."""
_CHUNK: Final = 1 << 20


def claim_output() -> int:
    """Return a descriptor of standard output, to which nothing else in this process writes from now on."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own


def read_object(descriptor: int) -> bytes:
    """Return what is written, until its end, or until it is an object and nothing more comes at once.

    A client may keep its end open.

    Raises:
        NotUnderstoodError: It is too long.
        OSError: It cannot be read.
    """
    data = bytearray()
    while part := os.read(descriptor, _CHUNK):
        data += part
        if len(data) > MAX_INPUT:
            raise NotUnderstoodError(f"standard input has more than {MAX_INPUT:,} bytes")
        if part.rstrip().endswith(b"}") and not _has_more(descriptor) and decoded(bytes(data)) is not None:
            break
    return bytes(data)


def _has_more(descriptor: int) -> bool:
    """Return whether it can be read at once; its end can."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(0))
