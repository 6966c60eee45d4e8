"""JSON Lines, the format of our own, from a text or a file; or the same objects in one JSON array."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from greenroom.actors.exchange._lines import MAX_LINE_BYTES
from greenroom.actors.exchange._making import Made, SourceError

if TYPE_CHECKING:
    from pathlib import Path


class Source(NamedTuple):
    """What is to be imported.

    Attributes:
        format: In which format it is.
        size: Its bytes, about; what `read` has passed is told as part of that.
        read: Reads it from the front.
    """

    format: str
    size: int
    read: Callable[[], Iterator[Made]]


def source_of_text(text: str) -> Source:
    """Return the source that is made of JSON Lines in a text."""
    data = text.encode(errors="surrogatepass")  # what is no UTF-8 is refused with the line's number
    return Source("jsonl", len(data), lambda: _read(io.BytesIO(data)))


def file_lines(path: Path) -> Iterator[Made]:
    """Yield the lines of a file."""
    with path.open("rb") as file:
        yield from _read(file)


def _read(file: io.BufferedIOBase | io.BytesIO) -> Iterator[Made]:
    """Yield the lines of a file that are not blank; a byte order mark at the beginning is none of them."""
    number = passed = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        passed += len(raw)
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        line = raw.strip(b" \t\r\n")
        if number == 1 and line.startswith(b"["):
            yield from _array(raw + file.read())
            return
        if len(raw) > MAX_LINE_BYTES:
            raise SourceError(f"line {number} has more than {MAX_LINE_BYTES:,} bytes")
        if line:
            yield Made(f"line {number}", line, passed)


def _array(data: bytes) -> Iterator[Made]:
    """Yield the elements of an array, which is read whole."""
    try:
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"this is neither JSON Lines nor a JSON array: {error}") from None
    size = len(data)
    for number, element in enumerate(elements, start=1):
        yield Made(f"memory {number}", bytes(element), size * number // len(elements))
