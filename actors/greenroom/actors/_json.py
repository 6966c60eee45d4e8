"""Strict JSON: what is let in can be kept byte for byte and given back to any client.

msgspec checks types and limits and keeps values as the bytes received, but lets
through what JSON only half allows. So the text is read once more with the
standard library's scanner, which sees duplicate keys, numbers beyond a double,
NaN, lone surrogates and depth. Nothing is repaired: it is refused with the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from greenroom.actors._refusals import not_serializable

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 100
"""How deep arrays and objects of one value may nest."""

_MAYBE_LONE = re.compile(r"\\u[dD][89a-fA-F]")


def check_json(raw: bytes) -> Any:
    """Return the parsed value of strictly valid JSON; integers come back as their number of digits.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: not JSON, not UTF-8, or not representable everywhere.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise not_serializable(f"the JSON is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise not_serializable(f"this is not JSON: {error}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    if _MAYBE_LONE.search(text):
        _check_surrogates(value)
    return value


def _check_depth(arguments: Any) -> None:
    """Each argument is a value of its own, so the object that holds them all does not count."""
    level: list[Any] = list(_children(arguments))
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [child for value in level for child in _children(value)]
    raise _too_deep()


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_surrogates(value: Any) -> None:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            _check_text(one)
        elif isinstance(one, dict):
            waiting.extend(one)
        waiting.extend(_children(one))


def _check_text(text: str) -> None:
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


def _no_constant(name: str) -> NoReturn:
    raise not_serializable(f"{name} is not JSON; use null or a string")


# Integers are not converted: Python refuses thousands of digits, and nobody here needs the number.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=len, parse_constant=_no_constant
)
