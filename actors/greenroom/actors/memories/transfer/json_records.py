"""JSON records in texts of other programs; a broken record does not affect the others.

A text is one value, an array, or a sequence of values, on separate lines or not. The elements of an array are
records. If an array, or an object with arrays of objects, is cut off, the records before the end are read.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from greenroom.actors.core.validation.strict_json import json_fault
from greenroom.actors.memories.transfer.normalize import BadRecord, next_value, parse

_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_OBJECT_OF_LISTS: Final = re.compile(r'\s*\{\s*(?:\n|"\w+"\s*:\s*\[\s*\{)')
_BETWEEN_MEMBERS: Final = re.compile(r"[\s,{}]*")
_COLON: Final = re.compile(r"\s*:\s*")
_BETWEEN_ELEMENTS: Final = re.compile(r"[\s,]*")


class Record(NamedTuple):
    """A value and its place."""

    place: str
    value: Any


def in_line(place: str, line: str, passed: int) -> Iterator[Record | BadRecord]:
    """Yield the values of a line; the rest after a broken value is skipped."""
    number, held, fault = 0, None, ""
    position = _end_of(_BETWEEN, line, 0)
    while position < len(line) and not fault:
        try:
            value, position = next_value(line, position)
        except ValueError as error:
            fault = json_fault(error)
            continue
        if number:
            yield Record(f"{place}, value {number}", held)
        number, held = number + 1, value
        position = _end_of(_BETWEEN, line, position)
    if number:
        yield Record(place if number == 1 and not fault else f"{place}, value {number}", held)
    if fault:
        at = f"{place}, value {number + 1}" if number else place
        yield BadRecord(at, f"this is no JSON: {fault}", passed)


def in_text(text: str, size: int) -> Iterator[Record | BadRecord]:
    """Yield the records of a whole text, which has ``size`` bytes."""
    if not text.strip():
        return
    try:
        whole = parse(text)
    except ValueError as error:
        yield from _in_broken(text, size, error)
        return
    if not isinstance(whole, list):
        yield Record("record 1", whole)
        return
    for number, value in enumerate(whole, start=1):
        yield Record(f"record {number}", value)


def _in_broken(text: str, size: int, error: ValueError) -> Iterator[Record | BadRecord]:
    first = [line for _, line in islice(_lines(text), 3)]
    is_object = _OBJECT_OF_LISTS.match(text) is not None and not begins_with_object(first[0])
    if not is_object and any(map(begins_with_object, first)):
        for number, line in _lines(text):
            yield from in_line(f"line {number}", line, size)
        return
    position = number = 0
    if is_object:
        lists, position, error = _lists_in(text, error)
        if lists:
            yield Record("record 1", lists)
    else:
        while (position := _end_of(_BETWEEN, text, position)) < len(text):
            try:
                value, position = next_value(text, position)
            except ValueError as fault:
                error = fault
                break
            number += 1
            yield Record(f"record {number}", value)
    at = text.count("\n", 0, position) + 1
    yield BadRecord(f"line {at}", f"from here on this is no JSON: {json_fault(error, at)}", size)


def _lists_in(text: str, error: ValueError) -> tuple[dict[str, Any], int, ValueError]:
    """Return the lists in an object that is cut off, the position, and the fault."""
    lists: dict[str, list[Any]] = {}
    position = 0
    try:
        while (position := _end_of(_BETWEEN_MEMBERS, text, position)) < len(text):
            name, behind = next_value(text, position)
            position = _end_of(_COLON, text, behind)
            if not text.startswith("[", position):
                _, position = next_value(text, position)
                continue
            elements = lists.setdefault(str(name), [])
            position += 1
            while not text.startswith("]", position := _end_of(_BETWEEN_ELEMENTS, text, position)):
                value, position = next_value(text, position)
                elements.append(value)
            position += 1
    except ValueError as fault:
        error = fault
    found = {name: held for name, held in lists.items() if any(isinstance(each, dict) for each in held)}
    return found, position, error


def begins_with_object(line: str) -> bool:
    """Return whether a line begins with a whole object, as in JSON Lines."""
    found = next(in_line("", line, 0), None)
    return isinstance(found, Record) and isinstance(found.value, dict)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line.rstrip()) for number, line in enumerate(io.StringIO(text), 1) if line.strip())


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()
