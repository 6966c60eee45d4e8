"""Sizes in bytes, in the form that people write, and the bounds of settings."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MIB: Final = 1 << 20
_TIB: Final = 1 << 40
_SIZE: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)", re.ASCII)
_UNITS: Final[dict[str, int]] = {
    "b": 1,
    **{f"{letter}b": 1_000 ** (n + 1) for n, letter in enumerate("kmgt")},
    **{f"{letter}ib": 1 << (10 * (n + 1)) for n, letter in enumerate("kmgt")},
}


class SizeRange(NamedTuple):
    """A range of sizes in bytes."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        """The allowed sizes, as a sentence."""
        return (
            "a size is a number of bytes, plain or with a unit such as 64MB or 256GiB, "
            f"from {format_size(self.least)} to {format_size(self.most)}"
        )

    def read(self, value: str | int) -> int:
        """Parse a size into bytes."""
        size = _parse(value) if isinstance(value, str) else value
        if not self.least <= size <= self.most:
            raise ValueError(value)
        return size


STORE_SIZES: Final = SizeRange(_MIB, 16 * _TIB)
FREE_SIZES: Final = SizeRange(0, 16 * _TIB)
AUDIT_SIZES: Final = SizeRange(_MIB, 16 * _TIB)


def _parse(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    unit = _UNITS[(match[2] or "b").lower()]
    whole, _, fraction = match[1].partition(".")
    # Exact arithmetic: a float would round sizes above 2**53.
    part: int = int(fraction or 0) * unit // 10 ** len(fraction)
    return int(whole) * unit + part


def format_size(size: int) -> str:
    """Format a number of bytes as the shortest exact text that `SizeRange.read` parses."""
    spellings = [str(size)]
    for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"):
        count, rest = divmod(size, _UNITS[unit.lower()])
        if count and not rest:
            spellings.append(f"{count}{unit}")
    return min(spellings, key=len)
