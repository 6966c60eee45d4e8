"""Bytes to text and back: in which encoding a file is, and where its characters are in its bytes.

Every byte has its character, also in a file that breaks its encoding: what cannot be read becomes a lone
surrogate while offsets are counted, and a replacement character in what is shown.
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
    """The text of a file, and where its characters are.

    Attributes:
        text: All of it, with a lone surrogate for each byte that is not in the encoding.
        encoding: In which encoding it is.
    """

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
        """The offsets at which the lines begin."""
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def line_of(self, offset: int) -> int:
        """Return the number of the line that a character is in, from 1 on."""
        return bisect_right(self.line_starts, offset)

    def byte_offsets(self, offsets: list[int]) -> dict[int, int]:
        """Return where in the file's bytes some characters begin."""
        if self._is_narrow:
            return {offset: self._mark + offset for offset in offsets}
        wanted = sorted({0, *offsets})
        at = {0: self._mark}
        for first, last in pairwise(wanted):
            at[last] = at[first] + len(self.text[first:last].encode(self.encoding, self._errors))
        return at

    def shown(self, first: int, last: int) -> str:
        """Return a part of the text as it is shown."""
        return shown(self.text[first:last])

    @cached_property
    def _is_narrow(self) -> bool:
        return self.encoding == "cp1252" or (self.encoding == "utf-8" and self.text.isascii())


def shown(text: str) -> str:
    """Return a text with replacement characters where it could not be read."""
    return text if text.isascii() else _UNREADABLE.sub("\ufffd", text)


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file shows that it is no text."""
    head = data[:_SNIFFED_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in head


def _encoding_of(data: bytes) -> str:
    """Return UTF-8, or Windows' encoding of Western Europe where more is read by that."""
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
        wide = len(_WIDE.findall(text))
        return "cp1252" if len(_UNREADABLE.findall(text)) * 2 > wide else "utf-8"
    return "utf-8"
