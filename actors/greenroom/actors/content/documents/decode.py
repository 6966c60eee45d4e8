"""Decode files: their encoding, and the byte offsets of their characters.

Every byte belongs to a character. In a file with invalid bytes, these are lone surrogates while offsets are
counted, and replacement characters in results.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES: Final = 8_192
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_WIDE: Final = re.compile(r"[\x80-\U0010ffff]")
_UNREADABLE: Final = re.compile(r"[\ud800-\udfff]")


class SourceText:
    """The text of a file, with byte offsets; each invalid byte is a lone surrogate."""

    def __init__(self, data: bytes) -> None:
        mark, encoding = next((pair for pair in _MARKS if data.startswith(pair[0])), (b"", ""))
        self._mark = len(mark)
        self.encoding = encoding or _encoding_of(data)
        self._errors = "surrogatepass" if self.encoding.startswith("utf-16") else "surrogateescape"
        body = data[self._mark :]
        if self._errors == "surrogatepass" and len(body) % 2:
            body = body[:-1]
        self.text = body.decode(self.encoding, self._errors)

    @cached_property
    def line_starts(self) -> list[int]:
        """The offsets of the lines."""
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def line_of(self, offset: int) -> int:
        """Return the line of a character, from 1."""
        return bisect_right(self.line_starts, offset)

    def byte_offsets(self, offsets: list[int]) -> dict[int, int]:
        """Return the byte offsets of characters in the file."""
        if self._is_narrow:
            return {offset: self._mark + offset for offset in offsets}
        wanted = sorted({0, *offsets})
        at = {0: self._mark}
        for first, last in pairwise(wanted):
            at[last] = at[first] + len(self.text[first:last].encode(self.encoding, self._errors))
        return at

    def encoded(self, text: str) -> bytes:
        """Encode a text in the file's encoding."""
        return text.encode(self.encoding, self._errors)

    @cached_property
    def _is_narrow(self) -> bool:
        return self.encoding == "cp1252" or (self.encoding == "utf-8" and self.text.isascii())


def replace_unreadable(text: str) -> str:
    """Replace lone surrogates by replacement characters."""
    return text if text.isascii() else _UNREADABLE.sub("\ufffd", text)


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file shows that it is binary."""
    head = data[:_SNIFFED_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in head


def _encoding_of(data: bytes) -> str:
    """Return UTF-8, or Windows-1252 if that reads more characters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
        wide = len(_WIDE.findall(text))
        return "cp1252" if len(_UNREADABLE.findall(text)) * 2 > wide else "utf-8"
    return "utf-8"
