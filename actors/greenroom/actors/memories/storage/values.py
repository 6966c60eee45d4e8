"""Contents and values as bytes: compression, and the text for the index."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import msgspec

from greenroom.actors.core.replies.paging import tokens_of_size
from greenroom.actors.memories.storage.records import COMPRESSED, TEXT
from greenroom.runtime import Slices

COMPRESSED_FROM_TOKENS = 1_000
SMALL_BYTES = 2_048
"""Values up to this many bytes are handled without a yield."""
_PACKED_AT_ONCE = 32_768  # takes about a millisecond
_UNPACKED_AT_ONCE = 262_144
_PARSED_BYTES = 262_144
"""JSON up to this size is parsed for its words (4 ms); larger JSON is searched as unescaped text."""
_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = rf"\\(?:{_PAIR}|u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}|[\"\\/bfnrt])"
_ESCAPES = re.compile(f"{_ESCAPE}(?:{_ESCAPE}){{0,999}}")  # decoding this many takes a third of a millisecond


_read = json.JSONDecoder(parse_int=str, parse_float=str).decode
_read_string = msgspec.json.Decoder(str).decode


def compression_ratio(stored: int, given: int) -> float:
    """Return the ratio of stored to received bytes: 1 without compression."""
    return round(stored / given, 4) if given else 1.0


def pack(value: bytes) -> Slices[bytes | None]:
    """Compress ``value``; return None if it is small or does not shrink."""
    if tokens_of_size(len(value)) <= COMPRESSED_FROM_TOKENS:
        return None
    packer = zlib.compressobj()
    pieces = []
    for at in range(0, len(value), _PACKED_AT_ONCE):
        pieces.append(packer.compress(value[at : at + _PACKED_AT_ONCE]))
        yield
    pieces.append(packer.flush())
    packed = b"".join(pieces)
    return packed if len(packed) < len(value) else None


def unpack(stored: bytes, form: int) -> Slices[bytes]:
    """Return the uncompressed bytes of a stored value."""
    if not form & COMPRESSED:
        return stored
    unpacker = zlib.decompressobj()
    pieces = []
    rest = stored
    while not unpacker.eof:
        pieces.append(unpacker.decompress(rest, _UNPACKED_AT_ONCE))
        rest = unpacker.unconsumed_tail
        yield
    return b"".join(pieces)


def to_search_text(value: bytes, form: int) -> Slices[str]:
    """Return the text of an uncompressed content or JSON value: strings, numbers, field names."""
    if form & TEXT:
        return value.decode()
    if len(value) <= _PARSED_BYTES:
        return json_text(value)
    text, at = value.decode(), 0
    pieces: list[str] = []
    for escapes in _ESCAPES.finditer(text):
        pieces += (text[at : escapes.start()], _unescape(escapes))
        at = escapes.end()
        yield
    return "".join((*pieces, text[at:]))


def beginning(value: bytes, form: int, most: int) -> str:
    """Return the first characters of the search text, at most ``most``; deterministic, without yields."""
    if form & TEXT:
        return value[: 4 * most].decode(errors="ignore")[:most]
    if len(value) <= _PARSED_BYTES:
        return json_text(value)[:most]
    return _ESCAPES.sub(_unescape, value[: 6 * most].decode(errors="ignore"))[:most]


def _unescape(escapes: re.Match[str]) -> str:
    return _read_string(f'"{escapes[0]}"')


def json_text(value: bytes) -> str:
    """Return the strings, numbers and field names of a JSON value, without ``null``."""
    lines: list[str] = []
    waiting: list[Any] = [_read(value.decode())]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            for name, member in reversed(one.items()):
                waiting.append(member)
                waiting.append(name)
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        elif isinstance(one, bool):
            lines.append("true" if one else "false")
        elif one is not None:
            lines.append(one)
    return "\n".join(lines)
