"""Renders HTML pages from templates that escape every value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import UnsetType

from greenroom.actors.app.administration.replies import LateDecision
from greenroom.actors.memories.requests.replies import MemoryView, VersionView
from greenroom.actors.memories.requests.review import ListedMemory
from greenroom.actors.sessions.requests.session_context import DecisionView
from greenroom.transports.web.console.markdown import Beginning, beginning, markdown
from greenroom.transports.web.console.memory_scopes import readers_of
from greenroom.transports.web.console.page_cache import Turns

_TEMPLATES: Final = Path(__file__).with_name("templates")
NOTHING: Final = "\N{EN DASH}"
"""Shown where a number is missing."""
_MOST_JSON: Final = 20_000
"""The most bytes of JSON that are indented."""
_NEVER: Final = Markup('<span class="dim">never</span>')
_JSON: Final = re.compile(r'\{"|\{\}|\[["{\[\d\]]')
_CODE: Final = re.compile(r"`([^`]+)`")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
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
    """Render a short page."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace")


async def render_long(template: str, values: Mapping[str, Any], turns: Turns) -> bytes:
    """Render a page that may be long, in slices."""
    page = await turns.join(_environment().get_template(template).generate(values))
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
        "claimed": claimed,
        "coded": coded,
        "anchor": anchor,
        "readers": readers_of,
        "beginning": memory_beginning,
        "markdown": markdown,
        "is_date": is_date,
        "pairs": lambda names: [(name, name) for name in names],
    }
    environment.filters.update(filters)
    return environment


def claimed(written: MemoryView | ListedMemory | VersionView) -> str | None:
    """Return the author that an import claims; None if it was not imported."""
    return None if isinstance(written.imported, UnsetType) else written.imported.created_by


def memory_beginning(text: str | None, key: str) -> Beginning:
    """Return a memory's title and what follows it; the title of JSON is the key."""
    if text is None or _JSON.match(text):
        return Beginning(key, text or "")
    found = beginning(text)
    return found if found.title else Beginning(key, found.rest)


def is_date(text: str) -> bool:
    """Return whether a date field can show a text, such as 2026-11-26."""
    return _DAY.fullmatch(text) is not None


def ago(time: datetime | None) -> str:
    """Return how far a time is from now, in the largest unit."""
    if time is None:
        return "never"
    past = datetime.now(UTC) - time
    if past > timedelta():
        words = _span(past)
        return f"{words} ago" if words else "just now"
    words = _span(_A_MINUTE - past)  # round up: "in 7 d" and not "in 6 d" for a week
    return f"in {words}" if words else "just now"


def _span(span: timedelta) -> str | None:
    return next((f"{span // unit} {name}" for unit, name in _SPANS if span >= unit), None)


def exact(time: datetime) -> str:
    """Return a time in full, in the format that `<time datetime>` requires."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def when(time: datetime | None) -> Markup:
    """Return an element with a time's distance from now, and the full time as title."""
    if time is None:
        return _NEVER
    full = exact(time)  # `exact` and `ago` return digits and letters only: there is nothing to escape
    return Markup(f'<time datetime="{full}" title="{full}">{ago(time)}</time>')  # noqa: S704 - see above


def number(value: float | None) -> str:
    """Return a number with thousands separators, and a fraction with three significant digits."""
    if value is None:
        return NOTHING
    if isinstance(value, int) or abs(value) >= 1_000:  # noqa: PLR2004 - a fraction would add nothing
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(value: float | None) -> str:
    """Return a fraction of one as per cent."""
    return NOTHING if value is None else f"{100 * value:.3g} %"


def size(count: float | None) -> str:
    """Return a number of bytes in the largest unit that fits."""
    if count is None:
        return NOTHING
    unit, name = next(((unit, name) for unit, name in _UNITS if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def duration(seconds: float | None) -> str:
    """Return seconds in a readable unit."""
    if seconds is None:
        return NOTHING
    if seconds < 1e-3:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1e6:.3g} \N{MICRO SIGN}s"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return _span(timedelta(seconds=seconds)) or f"{seconds:.3g} s"


def query(given: Mapping[str, Any]) -> str:
    """Return URL-encoded parameters without those that are None or empty."""
    kept = {name: value for name, value in given.items() if value not in (None, "", [])}
    return urlencode(kept, doseq=True) if kept else ""


def with_query(path: str, given: Mapping[str, Any]) -> str:
    """Return a path with these parameters added to its own."""
    more = query(given)
    return f"{path}{'&' if '?' in path else '?'}{more}" if more else path


def cut(text: str, length: int = 200) -> str:
    """Return the beginning of a text on one line; an ellipsis marks a cut."""
    line = " ".join(text[: 2 * length].split())
    return line if len(line) <= length and len(text) <= 2 * length else f"{line[: length - 1]}…"


def coded(sentence: str) -> Markup:
    """Return a sentence with each part between backticks as code."""
    parts = _CODE.split(sentence)
    marked = (
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )
    return Markup("").join(marked)


def anchor(decision: DecisionView | LateDecision) -> str:
    """Return the id of a decision's element on the page of its session's context."""
    named = f"{decision.at.timestamp()} {decision.what}".encode(errors="replace")
    return f"decision-{blake2b(named, digest_size=8).hexdigest()}"


def json_text(value: bytes | msgspec.Raw, *, whole: bool = False) -> str:
    """Return indented JSON; long JSON is cut and not indented, unless ``whole``."""
    raw = bytes(value)
    if len(raw) > _MOST_JSON and not whole:
        return raw[:_MOST_JSON].decode(errors="replace") + "\N{HORIZONTAL ELLIPSIS}"
    return msgspec.json.format(raw, indent=2).decode()


_MARK: Final = "~"
"""Added to names that consist of dots: browsers resolve `.` and `..`, even percent-encoded."""
_STEPS: Final = frozenset({".", ".."})


def path_part(name: object) -> str:
    """Encode a name as one part of a path; `name_of` reverses this after percent-decoding."""
    text = str(name)
    return quote(_MARK + text if text.lstrip(_MARK) in _STEPS else text, safe="")


def name_of(part: str) -> str:
    """Return the name in a part of a path that is already percent-decoded."""
    is_marked = part.startswith(_MARK) and part.lstrip(_MARK) in _STEPS
    return part[len(_MARK) :] if is_marked else part
