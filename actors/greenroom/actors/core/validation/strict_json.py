"""Strict JSON: accepted values can be stored byte for byte and returned to any client.

msgspec checks types and limits and keeps values as received bytes, but accepts some doubtful JSON. So the
text is decoded once more. msgspec does this fast and finds all faults except depth and duplicate keys.
Duplicates show because encoding the result writes fewer quotes. Suspicious JSON goes to the standard
library's scanner, which decides and gives the reason. Nothing is repaired.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import isfinite
from types import NoneType
from typing import Any, NoReturn

import msgspec

from greenroom.actors.core.auth.errors import not_serializable

MAX_DEPTH = 100
"""The most levels of arrays and objects in one value."""

DOUBLE_DIGITS = 308
"""An integer with at most this many digits is surely within the range of a double."""

SHORT_BYTES = min(2 * MAX_DEPTH, DOUBLE_DIGITS)
"""JSON of at most this many bytes cannot nest too deep, and cannot contain a number that is too long."""

CANONICAL_BYTES = 16_384
"""Up to this size, JSON is normalized, so that equal JSON may differ in spelling."""

YAML_VALUE_ERRORS = (LookupError, AttributeError)
"""A YAML reader raises these besides its own errors if a value does not fit its tag, as in ``!!int ''``."""

_PLAIN = frozenset({int, bool, NoneType, msgspec.UnsetType})
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * (DOUBLE_DIGITS + 1)
_MAYBE_LONE = re.compile(r"\\u[dD][89a-fA-F]")


def check_json(raw: bytes) -> Any:
    """Parse strictly valid JSON; the values of numbers may change.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: not JSON, not UTF-8, or not representable everywhere.
    """
    try:
        value = msgspec.json.decode(raw)
        written = msgspec.json.encode(value)
    except (ValueError, OverflowError, RecursionError):  # integers beyond 64 bits raise this, but are valid
        return _read_closely(raw)
    if b"\\" in raw:
        if _quotes(written) != _quotes(raw):
            return _read_closely(raw)
    elif written.count(b'"') != raw.count(b'"'):
        return _read_closely(raw)
    if len(raw) > SHORT_BYTES:
        if _LONG in raw.translate(_DIGITS_ALIKE):
            return _read_closely(raw)
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
            _check_depth(value)
    return value


def json_fault(error: ValueError, line: int | None = None) -> str:
    """Return the fault in invalid JSON, and its place; for a given ``line``, the column."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    fault = error.msg.removesuffix(" at").removesuffix(" starting")
    column = f"column {error.colno}"
    if line is not None:
        return f"{fault} at {column}" if error.lineno == line else fault
    return f"{fault} at line {error.lineno}, {column}" if "\n" in error.doc else f"{fault} at {column}"


def check_value(value: Any) -> None:
    """Check that a Python value can be written as strictly valid, equal JSON."""
    if are_plain((value,)):
        return
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_checked_raw)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError, OverflowError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None
    _check_leaves(plain)


def are_plain(values: Iterable[Any]) -> bool:
    """Return quickly whether Python values are plain JSON; False may mean only "check closely"."""
    for value in values:
        kind = type(value)
        if not (
            kind in _PLAIN
            or (kind is str and value.isascii())
            or (kind is float and isfinite(value))
            or (kind is list and are_plain(value))
        ):
            return False
    return True


def _checked_raw(value: Any) -> None:
    """Check raw JSON within a Python value; the parsed value is not needed."""
    if not isinstance(value, msgspec.Raw):
        raise TypeError(f"it holds an object of type {type(value).__name__}")
    check_json(bytes(value))


def canonicalize(raw: bytes) -> bytes:
    """Normalize JSON for comparison: blanks and the order of keys.

    Large JSON is returned unchanged, because it would block the event loop. Numbers keep their spelling.
    """
    if len(raw) > CANONICAL_BYTES:
        return raw
    parsed = json.loads(raw, parse_int=_number, parse_float=_number)
    return json.dumps(parsed, sort_keys=True, separators=(",", ":")).encode()


def _number(digits: str) -> dict[str, str]:
    return {"number": digits}


def _quotes(raw: bytes) -> int:
    """Count the quotes around strings; a duplicate key is written only once."""
    return raw.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"')


def _read_closely(raw: bytes) -> Any:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise not_serializable(f"the JSON is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise not_serializable(f"this is not JSON: {json_fault(error)}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    if _MAYBE_LONE.search(text):
        _check_leaves(value)
    return value


def _check_depth(arguments: Any) -> None:
    """Check the depth of each argument; the outer object does not count."""
    level = [arguments]
    for _ in range(MAX_DEPTH + 1):
        arrays = chain.from_iterable(value for value in level if type(value) is list)
        objects = chain.from_iterable(value.values() for value in level if type(value) is dict)
        level = [value for value in chain(arrays, objects) if type(value) is list or type(value) is dict]
        if not level:
            return
    raise _too_deep()


def _check_leaves(value: Any) -> None:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            _check_text(one)
        elif isinstance(one, float) and not isfinite(one):
            raise not_serializable(f"{one} is no number of JSON; give a finite one")
        elif isinstance(one, dict):
            waiting.extend(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        lone = ord(text[error.start])
        raise not_serializable(
            f"a text holds the lone surrogate \\u{lone:04x} at character {error.start}; UTF-8 has none"
        ) from None


def _too_deep() -> Exception:
    return not_serializable(f"the value nests deeper than {MAX_DEPTH} levels", limit=MAX_DEPTH)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise not_serializable(f"the key {key[:100]!r} appears twice in one object", key=key[:100])
    return table


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise not_serializable(f"the number {digits[:40]} is too large for a double; send it as a string")
    return number


def _digits(digits: str) -> int:
    """Return the number of digits; Python refuses to convert thousands of them."""
    if len(digits) > DOUBLE_DIGITS:  # clients would fail to read the whole reply, or read infinity
        _finite(digits)
    return len(digits)


def _no_constant(name: str) -> NoReturn:
    raise not_serializable(f"{name} is not JSON; use null or a string")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_digits, parse_constant=_no_constant
)
