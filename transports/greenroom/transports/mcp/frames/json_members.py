"""Split a JSON object into its members as raw bytes, and refuse repeated keys.

msgspec parses the object, and so checks the syntax. It silently keeps the last of two equal keys, so the
object's own keys are scanned once more.
"""

from __future__ import annotations

import json
import re

import msgspec

# Splitting an object that msgspec rejects costs about 0.3 µs a token; with more tokens, it fails.
MAX_SCANNED_TOKENS = 50_000

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KEY = re.compile(rb'[ \t\r\n]*"((?:[^"\\]++|\\.)*+)"[ \t\r\n]*:[ \t\r\n]*')
_AFTER = re.compile(rb"[ \t\r\n]*(.?)")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]')
_SCALAR = re.compile(rb"[^\[\]{},\s]++")


class RepeatedKeyError(Exception):
    """An object has a key twice."""


class ScanError(Exception):
    """The shallow scanner cannot split the object into members."""


def members_of(raw: bytes) -> dict[str, bytes]:
    """Split an object into its raw members, and check its syntax.

    msgspec cannot parse some valid JSON: an escaped lone surrogate, or nesting beyond the interpreter's
    recursion. Such an object is split without parsing its members, so that the reader of the member can
    refuse the request under its id.

    Raises:
        UnicodeDecodeError: The bytes are not UTF-8.
        msgspec.DecodeError: They are not JSON, or (`msgspec.ValidationError`) not an object.
        RepeatedKeyError: A key occurs twice.
        ScanError: The object is nested too deeply to be split.
    """
    if not raw.isascii():
        raw.decode()
    try:
        found = _MEMBERS.decode(raw)
    except RecursionError:
        return _cut(raw)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\ud" not in raw.lower() or not _is_json(raw):
            raise
        try:
            return _cut(raw)
        except ScanError:
            pass
        raise
    members = {key: bytes(value) for key, value in found.items()}
    _refuse_repeated_keys(raw, members)
    return members


def _is_json(raw: bytes) -> bool:
    """Return whether this is valid JSON; lone surrogates and deep nesting are valid."""
    try:
        json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_repeated_keys(raw: bytes, members: dict[str, bytes]) -> None:
    """Scan the object's own keys, because msgspec silently keeps the last of two equal keys."""
    seen: set[str] = set()
    position = raw.index(b"{") + 1
    while len(seen) < len(members):
        match = _KEY.match(raw, position)
        assert match is not None, "msgspec read an object here"
        key = _key_text(match[1])
        if key in seen or not raw.startswith(members[key], match.end()):
            raise RepeatedKeyError(f"names {key[:50]!r} twice")
        seen.add(key)
        position, mark = _next_mark(raw, match.end() + len(members[key]))
        if mark not in b",}":  # a repeated key; its last value is a prefix of its first value
            raise RepeatedKeyError(f"names {key[:50]!r} twice")
    if members and raw[position - 1 : position] != b"}":
        raise RepeatedKeyError("names a key twice")


def _next_mark(raw: bytes, position: int) -> tuple[int, bytes]:
    """Return the next character that is not a blank, and the position after it."""
    match = _AFTER.match(raw, position)
    assert match is not None, "the pattern matches the empty string"
    return match.end(), match[1]


def _key_text(quoted: bytes) -> str:
    return str(msgspec.json.decode(b'"%b"' % quoted)) if b"\\" in quoted else quoted.decode()


def _cut(raw: bytes) -> dict[str, bytes]:
    """Split an object at its own commas, by brackets and strings only."""
    position, mark = _next_mark(raw, 0)
    if mark != b"{":
        raise ScanError("it is nested too deeply")
    members: dict[str, bytes] = {}
    while mark != b"}":
        match = _KEY.match(raw, position)
        if match is None:
            raise ScanError("it is nested too deeply, or not JSON")
        try:
            key = _key_text(match[1])
        except msgspec.DecodeError:
            raise ScanError("a key is not valid Unicode") from None
        if key in members:
            raise RepeatedKeyError(f"names {key[:50]!r} twice")
        end = _end_of_value(raw, match.end())
        members[key] = raw[match.end() : end]
        position, mark = _next_mark(raw, end)
        if mark not in (b",", b"}"):
            raise ScanError("it is nested too deeply, or not JSON")
    if raw[position:].strip():
        raise ScanError("something follows the object")
    return members


def _end_of_value(raw: bytes, start: int) -> int:
    """Return the end of the value that begins at `start`, without recursion."""
    if raw[start : start + 1] not in (b"{", b"[", b'"'):
        scalar = _SCALAR.match(raw, start)
        if scalar is None:
            raise ScanError("a value is missing")
        return scalar.end()
    depth = 0
    for count, token in enumerate(_TOKEN.finditer(raw, start)):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return token.end()
        if count > MAX_SCANNED_TOKENS:
            break
    raise ScanError("it is nested too deeply, or a bracket is not closed")
