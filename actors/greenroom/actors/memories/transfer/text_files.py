"""Decode text files of other programs: UTF-16 by its mark, else UTF-8, else Windows-1252."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from greenroom.actors.memories.transfer.normalize import (
    MAX_WHOLE_BYTES,
    BadRecord,
    RecordError,
    Remark,
    read_whole,
)

_WIDE_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
GUESSED: Final = "it is no UTF-8, and was read as Windows-1252"


class TextLine(NamedTuple):
    """A line that is not blank, its number, and the bytes read so far."""

    number: int
    text: str
    passed: int


def text_of(data: bytes) -> tuple[str, bool]:
    """Decode a text, without its mark; return also whether the encoding is a guess."""
    wide = _WIDE_MARKS.get(data[:2])
    if wide is None:
        return narrow_text(data)
    try:
        return data[2:].decode(wide), False
    except UnicodeDecodeError as error:
        raise RecordError(f"it is not UTF-16: {error.reason} at byte {error.start + 2}") from None


def narrow_text(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8, or else Windows-1252, which is a guess; raises as `text_of`."""
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError as error:
        if b"\0" not in data:
            with suppress(UnicodeDecodeError):  # in Windows-1252, five bytes are undefined
                return data.decode("cp1252"), True
        raise RecordError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


@contextmanager
def open_text(path: Path) -> Iterator[BinaryIO]:
    """Open a file after its mark; convert UTF-16 to UTF-8 in one piece.

    Raises:
        SourceError: It is in UTF-16 and too large for that.
    """
    with path.open("rb") as file:
        begin = file.read(len(codecs.BOM_UTF8))
        wide = _WIDE_MARKS.get(begin[:2])
        if wide is None:
            file.seek(len(begin) if begin == codecs.BOM_UTF8 else 0)
            yield file
            return
        file.seek(2)
        data = read_whole(file, f"{path}, which is in UTF-16,", "split it, or make UTF-8 of it: iconv")
        text = data[: len(data) // 2 * 2].decode(wide, "surrogatepass")
        # A lone surrogate becomes an escape; the check of the line refuses it with its place.
        yield io.BytesIO(text.encode(errors="backslashreplace"))


def lines(path: Path) -> Iterator[TextLine | BadRecord | Remark]:
    """Yield the lines that are not blank; skip lines that are too long."""
    number = passed = 0
    with open_text(path) as file:
        while raw := file.readline(MAX_WHOLE_BYTES + 1):
            number += 1
            passed += len(raw)
            place = f"line {number}"
            if len(raw) > MAX_WHOLE_BYTES:
                while not raw.endswith(b"\n") and (raw := file.readline(MAX_WHOLE_BYTES)):
                    passed += len(raw)
                yield BadRecord(place, f"it has more than {MAX_WHOLE_BYTES:,} bytes", passed)
                continue
            try:
                text, is_guess = narrow_text(raw)
            except RecordError as error:
                yield BadRecord(place, str(error), passed)
                continue
            if is_guess:
                yield Remark(place, GUESSED, passed)
            if stripped := text.rstrip():
                yield TextLine(number, stripped, passed)
