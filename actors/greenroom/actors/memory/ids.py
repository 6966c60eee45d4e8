"""Memory ids: UUIDs of version 8 that begin with what stands for the namespace's root.

48 bits stand for the root, so that the actor can be found by the id alone. The rest looks random to
everyone: it is made of the entry's number with a secret of the actor, so that an id costs nothing to
store and tells neither how many memories there are nor which came first.
"""

from __future__ import annotations

from hashlib import blake2b

from greenroom.actors.auth.namespaces import ROOT_TAG_BYTES

SECRET_BYTES = 16
_TAIL_BYTES = 16 - ROOT_TAG_BYTES


def tail_of_number(secret: bytes, number: int) -> bytes:
    """Return the tail, which follows the root's tag, of the id of the entry with this number."""
    made = bytearray(blake2b(number.to_bytes(8), digest_size=_TAIL_BYTES, key=secret).digest())
    made[0] = made[0] & 0x0F | 0x80  # the version
    made[2] = made[2] & 0x3F | 0x80  # the variant
    return bytes(made)


def memory_id(tag: bytes, tail: bytes) -> str:
    """Return the id as text, of the root's part and of what follows."""
    text = (tag + tail).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def tail_of_id(given: str) -> bytes:
    """Return the tail of an id, which follows the root's tag."""
    return bytes.fromhex(given[14:18] + given[19:23] + given[24:])
