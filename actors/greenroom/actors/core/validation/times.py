"""Times: microseconds since 1970 internally, aware UTC datetimes in replies, times in arguments."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

from greenroom.actors.core.auth.errors import check_span, invalid
from greenroom.actors.core.validation.argument_places import find_place, replace_value
from greenroom.actors.core.validation.validation_messages import part_of, parts_of

S = TypeVar("S", bound=msgspec.Struct)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST = (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)
_LAST = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR


def to_datetime(microseconds: int) -> dt.datetime:
    """Return the aware UTC time, clamped to the years 1 to 9999."""
    if not _FIRST <= microseconds <= _LAST:
        microseconds = _FIRST if microseconds < _FIRST else _LAST
    return _EPOCH + dt.timedelta(0, 0, microseconds)  # positional arguments are faster


def to_microseconds(time: dt.datetime) -> int:
    """Return microseconds since 1970, exactly."""
    return (time - _EPOCH) // dt.timedelta(microseconds=1)


def optional_datetime(microseconds: int | None) -> dt.datetime | None:
    """Return the aware UTC time, or None for None."""
    return None if microseconds is None else to_datetime(microseconds)


def with_datetime(view: type[S], record: msgspec.Struct) -> S:
    """Return a view with the fields of a record; ``at`` becomes a datetime."""
    fields = {name: getattr(record, name) for name in view.__struct_fields__}
    return view(**{**fields, "at": to_datetime(fields["at"])})


def with_microseconds(record: type[S], view: msgspec.Struct) -> S:
    """Return the record of a view, the inverse of `with_datetime`."""
    fields = msgspec.structs.asdict(view)
    return record(**{**fields, "at": to_microseconds(fields["at"])})


def parse_time(text: str, zone: dt.tzinfo = dt.UTC, *, ends_day: bool = False) -> dt.datetime:
    """Parse a time in ISO 8601, or a date, into UTC.

    With ``ends_day`` a date means the midnight at its end, not at its beginning.

    Raises:
        ValueError: the text is malformed.
        OverflowError: in UTC the time is outside of the years 1 to 9999.
    """
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        local = dt.datetime.fromisoformat(text)
    else:
        if ends_day and day == dt.date.max:
            return dt.datetime.max.replace(tzinfo=dt.UTC)
        local = dt.datetime.combine(day + dt.timedelta(days=ends_day), dt.time())
    return (local.replace(tzinfo=zone) if local.tzinfo is None else local).astimezone(dt.UTC)


def parse_time_argument(
    field: str, text: str, zone: dt.tzinfo = dt.UTC, *, ends_day: bool = False
) -> dt.datetime:
    """Parse the time in the argument ``field``, as `parse_time` does."""
    try:
        return parse_time(text, zone, ends_day=ends_day)
    except (ValueError, OverflowError):
        raise invalid(
            field,
            f"{field}: it takes a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z "
            f"and got {text[:60]!r}",
        ) from None


SPANS = (("after", "before"), ("start_time", "end_time"), ("start_date", "end_date"))
"""Names of fields for the start and the end of a span."""


def with_offset(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Return JSON with the refused time in full form; None if not a time.

    So full times cost nothing more. Times in arrays are not completed, because programs write them.
    """
    place = find_place(problem, request_type, raw)
    base, meta = parts_of(place.hint)
    names = [step for step in place.steps if isinstance(step, str)]
    if base is not dt.datetime or not place.value.startswith(b'"') or len(names) < len(place.steps):
        return None
    value = msgspec.json.decode(place.value, type=str)
    try:
        time = parse_time(value, ends_day="ends_day" in (meta.extra or {})).isoformat()
    except (ValueError, OverflowError):
        return None
    return None if time == value else replace_value(raw, place.steps, msgspec.json.encode(time))


class TimeSpan(NamedTuple):
    """Two fields of a request, or of a struct in one of its fields."""

    within: str | None
    start: str
    end: str

    def check(self, request: Any) -> None:
        """Check that the span does not end before it starts."""
        holder = request if self.within is None else getattr(request, self.within)
        if holder is None:
            return
        start, end = _instant(getattr(holder, self.start)), _instant(getattr(holder, self.end))
        if start is not None and end is not None:
            check_span(self.start if self.within is None else f"{self.within}.{self.start}", start, end)


def spans_of(request_type: type[Any]) -> tuple[TimeSpan, ...]:
    """Return the spans of a request, except spans that depend on a field ``timezone``."""
    hints = get_type_hints(request_type, include_extras=True)
    holders: dict[str | None, Any] = {name: part_of(hint) for name, hint in hints.items()}
    holders[None] = request_type
    return tuple(
        TimeSpan(within, start, end)
        for within, holder in holders.items()
        for start, end in SPANS
        if {start, end} <= (names := set(getattr(holder, "__struct_fields__", ()))) - {"timezone"} == names
    )


def _instant(value: dt.datetime | str | None) -> dt.datetime | None:
    """Return a time, parsed if it is text; None if missing or malformed."""
    if not isinstance(value, str):
        return value
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        return None
