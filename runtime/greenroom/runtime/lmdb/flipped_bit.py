"""Find the one flipped bit of a record by its wrong checksum.

A checksum is linear: how a flipped bit changes it depends only on the bit's place. So each place is tried,
from the end backwards. If a single bit was flipped, the place that fits is its place.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

MOST_BYTES: Final = 1 << 16
"""The most bytes of key and payload. In up to 11,450 bytes no two or three flipped bits look like one. In
this many bytes, one pair of 8,000 does."""

_ONES: Final = 0xFFFFFFFF
_STEPS: Final = [crc32(bytes([byte]), _ONES) ^ _ONES for byte in range(256)]
_BACK: Final = {step >> 24: byte for byte, step in enumerate(_STEPS)}
_BITS: Final = {_STEPS[1 << bit]: 1 << bit for bit in range(8)}
_REMAINDER: Final = 0xE1 << 120


class Bit(NamedTuple):
    """One bit: the place of its byte, and its mask."""

    place: int
    mask: int


def flip(content: bytes, bit: Bit) -> bytes:
    """Flip one bit of some bytes."""
    return content[: bit.place] + bytes([content[bit.place] ^ bit.mask]) + content[bit.place + 1 :]


def in_crc(difference: int, size: int) -> Bit | None:
    """Find the flipped bit of ``size`` bytes; None if not exactly one was flipped.

    The difference is the stored CRC-32 xor the computed one.
    """
    if size > MOST_BYTES:
        return None
    for place in range(size - 1, -1, -1):
        if difference in _BITS:
            return Bit(place, _BITS[difference])
        byte = _BACK[difference >> 24]
        difference = ((difference ^ _STEPS[byte]) << 8 | byte) & _ONES
    return None


def in_ghash(difference: int, factor: int, blocks: int) -> Bit | None:
    """Find the flipped bit of blocks with a GCM tag; None if not exactly one.

    Args:
        difference: The stored tag xor the computed one.
        factor: GCM's hash key; each block is multiplied by it once more than the block after it.
        blocks: The number of blocks of 16 bytes, without the last block, which contains the lengths.
    """
    power = factor
    for block in range(blocks - 1, -1, -1):
        power = shifted = _multiply(power, factor)
        for bit in range(128):
            if shifted == difference:
                return Bit(16 * block + bit // 8, 0x80 >> bit % 8)
            shifted = _shift(shifted)
    return None


def _shift(number: int) -> int:
    return (number >> 1) ^ _REMAINDER if number & 1 else number >> 1


def _multiply(one: int, other: int) -> int:
    """Multiply in GCM's field, with the highest bit last."""
    total = 0
    for bit in range(127, -1, -1):
        if other >> bit & 1:
            total ^= one
        one = _shift(one)
    return total
