"""Front matter: YAML before a Markdown text, with anchors, and placeholders of templates as texts."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from greenroom.actors.base.yaml_errors import MALFORMED
from greenroom.actors.transfer.normalize import MAX_DIGITS, RecordError, as_text, too_long

MAX_FRONT_MATTER: Final = 65_536
"""The most characters that are read, and that anchors may make of them."""
MAX_DEPTH: Final = 50
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_:]*)")
_PLACEHOLDER: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>")


def cut(text: str) -> tuple[str, str]:
    """Return the YAML before a text, and the text behind it; nothing and all of it where there is none."""
    found = _FRONT_MATTER.match(text)
    return ("", text) if found is None else (found[1], text[found.end() :])


def read_front_matter(front: str) -> dict[str, Any] | None:
    """Return what front matter says; None if it is none, but a text between two rules.

    Raises:
        RecordError: it is no YAML, or would cost too much.
    """
    if not front:
        return {}
    import yaml  # noqa: PLC0415  only who imports Markdown waits for it

    if len(front) > MAX_FRONT_MATTER:
        raise RecordError(
            f"its front matter has {len(front):,} characters and {MAX_FRONT_MATTER:,} are the most"
        )
    plain, placeholders = _without_placeholders(front)
    try:
        _check_cost(plain)
        about = yaml.safe_load(plain)
    except RecursionError:
        raise RecordError("its front matter is nested too deeply") from None
    except (yaml.YAMLError, ValueError, *MALFORMED) as error:
        raise RecordError(f"its front matter is no YAML: {error}") from None
    if about is not None and not isinstance(about, dict):
        return None
    return {as_text(key): value for key, value in _restored(about or {}, placeholders).items()}


def _without_placeholders(front: str) -> tuple[str, dict[str, str]]:
    """Return YAML with words in the place of a template's placeholders, and what each stands for."""
    stem = "placeholder"
    while stem in front:
        stem += "x"
    placeholders: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        word = f"{stem}{len(placeholders)}z"
        placeholders[word] = found[0]
        return word

    return _PLACEHOLDER.sub(named, front), placeholders


def _restored(value: Any, placeholders: dict[str, str]) -> Any:
    """Return a value with the placeholders again."""
    if not placeholders:
        return value
    words = re.compile("|".join(placeholders))

    def restored(value: Any) -> Any:
        if isinstance(value, str):
            return words.sub(lambda found: placeholders[found[0]], value)
        if isinstance(value, dict):
            return {restored(key): restored(member) for key, member in value.items()}
        if isinstance(value, list):
            return [restored(member) for member in value]
        return tuple(map(restored, value)) if isinstance(value, tuple) else value

    return restored(value)


class _Cost(NamedTuple):
    """How large a value is with all that its aliases stand for, and how deep."""

    size: int
    depth: int


class _Costs:
    """What the values of a YAML text cost to load and to keep, by its events alone."""

    def __init__(self) -> None:
        self._of_anchors: dict[str, _Cost | None] = {}
        self._open: list[tuple[str | None, _Cost]] = [(None, _Cost(0, 0))]

    def begin(self, anchor: str | None) -> None:
        """Begin an array or an object."""
        self._open.append((anchor, _Cost(1, 1)))
        if anchor is not None:
            self._of_anchors[anchor] = None
        self._check()

    def end(self) -> None:
        """End the one that was begun last."""
        self.add(*self._open.pop())

    def refer(self, anchor: str | None) -> None:
        """Add what an alias stands for; of one that is not known the parser tells."""
        cost = self._of_anchors.get(anchor or "", _Cost(0, 0))
        if cost is None:
            raise RecordError("its front matter refers to itself")
        self.add(None, cost)

    def add(self, anchor: str | None, cost: _Cost) -> None:
        """Add a value to the one that it is in."""
        if anchor is not None:
            self._of_anchors[anchor] = cost
        outer, before = self._open.pop()
        self._open.append((outer, _Cost(before.size + cost.size, max(before.depth, cost.depth + 1))))
        self._check()

    def _check(self) -> None:
        cost = self._open[-1][1]
        if cost.size > 2 * MAX_FRONT_MATTER or len(self._open) - 1 + cost.depth > MAX_DEPTH + 1:
            raise RecordError("its front matter is nested too deeply, or its aliases stand for too much")


def _check_cost(text: str) -> None:
    """Refuse what would cost too much to load or to keep."""
    import yaml  # noqa: PLC0415  as above

    costs = _Costs()
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            costs.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            costs.end()
        elif isinstance(event, yaml.AliasEvent):
            costs.refer(event.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            if event.tag or not event.style:
                _check_integer(event.value)
            costs.add(event.anchor, _Cost(1 + len(event.value), 0))


def _check_integer(text: str) -> None:
    if len(text) > MAX_DIGITS and _INTEGER.fullmatch(text):
        raise RecordError(f"its front matter cannot be read: {too_long(len(text))}")
