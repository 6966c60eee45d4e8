"""Records of JSON in texts of other programs, each alone: one that is broken costs none of the others.

A text is one value, an array, or values one after another, in lines or joined in one. An array's elements
are records like any others. Of an array that breaks off, what stands before that is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from greenroom.actors.transfer.normalize import BadRecord, next_value, parsed

_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_BEFORE_ARRAY: Final = re.compile(r'\s*(?:\{\s*"\w+"\s*:\s*)?\[')


class Record(NamedTuple):
    """A value, and where it stands."""

    place: str
    value: Any


def in_line(place: str, line: str, passed: int) -> Iterator[Record | BadRecord]:
    """Yield the values of a line one after another; what follows a broken one cannot be told from it."""
    values: list[Any] = []
    fault = ""
    position = _end_of(_BETWEEN, line, 0)
    while position < len(line) and not fault:
        try:
            value, position = next_value(line, position)
        except ValueError as error:
            fault = str(error)
        else:
            values.append(value)
            position = _end_of(_BETWEEN, line, position)
    is_one = len(values) == 1 and not fault
    for number, value in enumerate(values, start=1):
        yield Record(place if is_one else f"{place}, value {number}", value)
    if fault:
        at = f"{place}, value {len(values) + 1}" if values else place
        yield BadRecord(at, f"this is no JSON: {fault}", passed)


def in_text(text: str, size: int) -> Iterator[Record | BadRecord]:
    """Yield the records of a text that is held whole, which has so many bytes."""
    if not text.strip():
        return
    try:
        whole = parsed(text)
    except ValueError as error:
        yield from _in_broken(text, size, error)
        return
    if not isinstance(whole, list):
        yield Record("record 1", whole)
        return
    for number, value in enumerate(whole, start=1):
        yield Record(f"record {number}", value)


def _in_broken(text: str, size: int, error: ValueError) -> Iterator[Record | BadRecord]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first = list(in_line("", lines[0][1], 0)) if lines else []
    if any(isinstance(each, Record) and isinstance(each.value, dict) for each in first) or _are_records(
        lines
    ):
        for number, line in lines:
            yield from in_line(f"line {number}", line, size)
        return
    position = _end_of(_BEFORE_ARRAY, text, 0)
    number = 0
    while (position := _end_of(_BETWEEN, text, position)) < len(text):
        try:
            value, position = next_value(text, position)
        except ValueError as fault:
            error = fault
            break
        number += 1
        yield Record(f"record {number}", value)
    at = f"line {text.count(chr(10), 0, position) + 1}"
    yield BadRecord(at, f"from here on this is no JSON: {error}", size)


def _are_records(lines: list[tuple[int, str]]) -> bool:
    """Return whether other lines than the first are whole records, as where only that one is broken."""
    return any(
        isinstance(each, Record) and isinstance(each.value, dict)
        for _, line in lines[1:3]
        for each in in_line("", line, 0)
    )


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()
