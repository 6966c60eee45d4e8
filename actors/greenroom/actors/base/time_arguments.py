"""Times in arguments: what one means that names no offset, and that none ends before it begins."""

from __future__ import annotations

import re
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple, get_type_hints

import msgspec

from greenroom.actors.auth.errors import check_span
from greenroom.actors.base.times import read_time
from greenroom.actors.base.validation_messages import part_of, parts_of

_PATH = re.compile(r" - at `\$\.([\w.]+)`$")
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

SPANS = (("after", "before"), ("start_time", "end_time"), ("start_date", "end_date"))
"""Names of fields that say from when on and until when."""


def with_offset(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Return JSON in which the time that msgspec has found wanting is written in full; None if it is no time.

    So nothing is spent on what is written in full. Times in arrays, which programs write, are not looked at.
    """
    path = _PATH.search(problem)
    if path is None:
        return None
    steps = path[1].split(".")
    base, meta = parts_of(reduce(part_of, steps, request_type))
    value = reduce(lambda inside, step: inside[step], steps, msgspec.json.decode(raw))
    if base is not datetime or not isinstance(value, str):
        return None
    try:
        time = read_time(value, ends_day="ends_day" in (meta.extra or {})).isoformat()
    except (ValueError, OverflowError):
        return None
    return None if time == value else _replaced(raw, steps, msgspec.json.encode(time))


def _replaced(raw: bytes, steps: list[str], value: bytes) -> bytes:
    if not steps:
        return value
    members = _split(raw)
    members[steps[0]] = msgspec.Raw(_replaced(bytes(members[steps[0]]), steps[1:], value))
    return msgspec.json.encode(members)


class Span(NamedTuple):
    """Two fields of a request, or of the struct that one of its fields holds."""

    within: str | None
    start: str
    end: str

    def check(self, request: Any) -> None:
        """Check that it does not end before it begins.

        Raises:
            Refusal: ``VALIDATION_ERROR``: it does.
        """
        holder = request if self.within is None else getattr(request, self.within)
        if holder is None:
            return
        start, end = _instant(getattr(holder, self.start)), _instant(getattr(holder, self.end))
        if start is not None and end is not None:
            check_span(self.start if self.within is None else f"{self.within}.{self.start}", start, end)


def spans_of(request_type: type[Any]) -> tuple[Span, ...]:
    """Return the spans that a request has, but those that a field ``timezone`` is needed to understand."""
    hints = get_type_hints(request_type, include_extras=True)
    holders: dict[str | None, Any] = {name: part_of(hint) for name, hint in hints.items()}
    holders[None] = request_type
    return tuple(
        Span(within, start, end)
        for within, holder in holders.items()
        for start, end in SPANS
        if {start, end} <= (names := set(getattr(holder, "__struct_fields__", ()))) - {"timezone"} == names
    )


def _instant(given: datetime | str | None) -> datetime | None:
    """Return a time as it is or read from its text; None for none, and for one that is refused later."""
    if not isinstance(given, str):
        return given
    try:
        return read_time(given)
    except (ValueError, OverflowError):
        return None
