"""JSON Lines, the format of our own, from a text or a file; or the same objects in one JSON array."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from greenroom.actors.transfer.normalize import MAX_WHOLE_BYTES, SourceError, SourceLine, read_whole

_MARK = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """A source of lines to import.

    Attributes:
        format: In which format it is.
        size: Its bytes, about; what `read` has passed is told as part of that.
        read: Reads it from the front.
        left_out: Files of a folder that are not read, since they are links out of it.
    """

    format: str
    size: int
    read: Callable[[], Iterator[SourceLine]]
    left_out: Sequence[str] = ()


def source_of_text(text: str) -> Source:
    """Return the source that is made of JSON Lines in a text."""
    data = text.encode(errors="surrogatepass")  # what is no UTF-8 is refused with the line's number
    return Source("jsonl", len(data), lambda: _read(io.BytesIO(data)))


def file_lines(path: Path) -> Iterator[SourceLine]:
    """Yield the lines of a file."""
    with path.open("rb") as file:
        yield from _read(file)


def _read(file: BinaryIO) -> Iterator[SourceLine]:
    """Yield the lines of a file that are not blank; a byte order mark at the beginning is none of them."""
    number = passed = 0
    while raw := file.readline(MAX_WHOLE_BYTES + 1):
        number += 1
        passed += len(raw)
        if number == 1:
            raw = raw.removeprefix(_MARK)
        line = raw.strip(b" \t\r\n")
        if number == 1 and line.startswith(b"["):
            file.seek(0)
            data = read_whole(file, "a JSON array", "make JSON Lines of it: jq -c '.[]' FILE")
            yield from _array(data.removeprefix(_MARK))
            return
        if len(raw) > MAX_WHOLE_BYTES:
            raise SourceError(f"line {number} has more than {MAX_WHOLE_BYTES:,} bytes")
        if line:
            yield SourceLine(f"line {number}", line, passed)


def _array(data: bytes) -> Iterator[SourceLine]:
    """Yield the elements of an array, which is read whole."""
    try:
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except RecursionError:
        raise SourceError("this array is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"this is neither JSON Lines nor a JSON array: {error}") from None
    size = len(data)
    for number, element in enumerate(elements, start=1):
        yield SourceLine(f"memory {number}", bytes(element), size * number // len(elements))
