"""HTML of pages, from templates that escape whatever they are given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from greenroom.actors.core.replies.memory_types import author_text
from greenroom.actors.memories.requests.replies import MemoryView, VersionView
from greenroom.actors.memories.requests.review import ListedMemory
from greenroom.transports.console.path_parts import path_part
from greenroom.transports.web.console.pacing import Turns

_TEMPLATES: Final = Path(__file__).with_name("templates")
NOTHING: Final = "\N{EN DASH}"
"""What is shown for a number that is not there."""
_MOST_JSON: Final = 20_000
"""Bytes of JSON that are laid out."""
_NEVER: Final = Markup('<span class="dim">never</span>')
_UNITS: Final = ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))
_A_MINUTE: Final = timedelta(minutes=1)
_SPANS: Final = (
    (timedelta(days=365), "y"),
    (timedelta(days=30), "mo"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (_A_MINUTE, "min"),
)


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """Return a short page.

    Args:
        template: The template's name.
        values: What it is given.
    """
    return _environment().get_template(template).render(values).encode("utf-8", "replace")


async def render_long(template: str, values: Mapping[str, Any], turns: Turns) -> bytes:
    """Return a page that may be long: others are served while it is made.

    Args:
        template: The template's name.
        values: What it is given.
        turns: In which pages are made.
    """
    page = await turns.joined(_environment().get_template(template).generate(values))
    return page.encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = {
        "ago": ago,
        "when": when,
        "exact": exact,
        "number": number,
        "percent": percent,
        "bytes": size,
        "duration": duration,
        "part": path_part,
        "query": query,
        "with_query": with_query,
        "cut": cut,
        "json_text": json_text,
        "author": author,
    }
    environment.filters.update(filters)
    return environment


def author(written: MemoryView | ListedMemory | VersionView) -> str:
    """Return the author of a memory or a version, with what its source says."""
    return author_text(written.author, written.imported)


def ago(time: datetime | None) -> str:
    """Return how long ago a time is, or how long until then, in its largest unit."""
    if time is None:
        return "never"
    past = datetime.now(UTC) - time
    if past > timedelta():
        words = _span(past)
        return f"{words} ago" if words else "just now"
    words = _span(_A_MINUTE - past)  # so that what ends in a week is not said to end in 6 days
    return f"in {words}" if words else "just now"


def _span(span: timedelta) -> str | None:
    return next((f"{span // unit} {name}" for unit, name in _SPANS if span >= unit), None)


def exact(time: datetime) -> str:
    """Return a time in full, as `<time datetime>` wants it."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def when(time: datetime | None) -> Markup:
    """Return the element that says how long ago a time is, and names it in full."""
    if time is None:
        return _NEVER
    said = exact(time)  # digits and letters alone, as is what `ago` says: there is nothing to escape
    return Markup(f'<time datetime="{said}" title="{said}">{ago(time)}</time>')  # noqa: S704 - see above


def number(value: float | None) -> str:
    """Return a number with separators between thousands; a fraction to three digits that count."""
    if value is None:
        return NOTHING
    if isinstance(value, int) or abs(value) >= 1_000:  # noqa: PLR2004 - where a fraction says nothing more
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(value: float | None) -> str:
    """Return a part of one as per cent."""
    return NOTHING if value is None else f"{100 * value:.3g} %"


def size(count: float | None) -> str:
    """Return a count of bytes in its largest unit."""
    if count is None:
        return NOTHING
    unit, name = next(((unit, name) for unit, name in _UNITS if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def duration(seconds: float | None) -> str:
    """Return seconds in the unit in which they are read."""
    if seconds is None:
        return NOTHING
    if seconds < 1e-3:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1e6:.3g} \N{MICRO SIGN}s"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return _span(timedelta(seconds=seconds)) or f"{seconds:.3g} s"


def query(given: Mapping[str, Any]) -> str:
    """Return parameters as they stand behind `?`; those that are None or empty are left out."""
    kept = {name: value for name, value in given.items() if value not in (None, "", [])}
    return urlencode(kept, doseq=True) if kept else ""


def with_query(path: str, given: Mapping[str, Any]) -> str:
    """Return a path, which may have parameters, with more of them."""
    more = query(given)
    return f"{path}{'&' if '?' in path else '?'}{more}" if more else path


def cut(text: str, length: int = 200) -> str:
    """Return a text's beginning on one line, with an ellipsis where there is more."""
    line = " ".join(text[: 2 * length].split())
    return line if len(line) <= length and len(text) <= 2 * length else f"{line[: length - 1]}…"


def json_text(value: bytes | msgspec.Raw, *, whole: bool = False) -> str:
    """Return JSON laid out to be read; of much only the beginning, as it is, unless ``whole`` is wanted."""
    raw = bytes(value)
    if len(raw) > _MOST_JSON and not whole:
        return raw[:_MOST_JSON].decode(errors="replace") + "\N{HORIZONTAL ELLIPSIS}"
    return msgspec.json.format(raw, indent=2).decode()
