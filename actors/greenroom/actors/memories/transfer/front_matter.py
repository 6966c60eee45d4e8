"""Front matter: YAML before a Markdown text, with anchors, and placeholders of templates as texts.

A plain value with a colon, such as ``title: Meeting: the second``, is no YAML, and yet means one thing: that
text.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.base.yaml_errors import MALFORMED
from greenroom.actors.memories.transfer.normalize import MAX_DIGITS, RecordError, as_text, too_long

if TYPE_CHECKING:
    import yaml

MAX_FRONT_MATTER: Final = 65_536
"""The most characters that are read, and that anchors may make of them."""
MAX_DEPTH: Final = 50
MOST_QUOTED: Final = 20
"""How many values with a colon are taken as texts; for each the whole is parsed again."""
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_:]*)")
_PLAIN_VALUE: Final = re.compile(r"""([^:#'"]*:[ \t]+)([^\s'"\[\]{}&*!|>%@`#,?-].*?)((?:[ \t]+#.*)?\s*)""")
_FIRST_LINE: Final = 2
"""The line of the file that front matter begins in, behind its rule."""
_PLACEHOLDER: Final = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}|<%[^%\n]*%>")
"""What no placeholder may hold keeps this linear: none is looked for twice in the same characters."""
_PRIVATE_USE: Final = range(0xE000, 0xF900)


class FrontMatter(NamedTuple):
    """What front matter says, and in which lines of the file a value with a colon was read as text."""

    values: dict[str, Any]
    quoted: list[int]


def cut(text: str) -> tuple[str, str]:
    """Return the YAML before a text, and the text behind it; nothing and all of it where there is none."""
    found = _FRONT_MATTER.match(text)
    return ("", text) if found is None else (found[1], text[found.end() :])


def read_front_matter(front: str) -> FrontMatter | None:
    """Return what front matter says; None if it is none, but a text between two rules.

    Raises:
        RecordError: it is no YAML, or would cost too much.
    """
    if not front:
        return FrontMatter({}, [])
    import yaml  # noqa: PLC0415  only who imports Markdown waits for it

    if len(front) > MAX_FRONT_MATTER:
        raise RecordError(
            f"its front matter has {len(front):,} characters and {MAX_FRONT_MATTER:,} are the most"
        )
    plain, placeholders = _without_placeholders(front)
    quoted: list[int] = []
    try:
        about = _loaded(plain, placeholders, quoted)
    except RecursionError:
        raise RecordError("its front matter is nested too deeply") from None
    except (yaml.YAMLError, ValueError, *MALFORMED) as error:
        raise RecordError(f"its front matter is no YAML{_fault(error)}") from None
    if about is not None and not isinstance(about, dict):
        return None
    values = {as_text(key): value for key, value in placeholders.restored(about or {}).items()}
    return FrontMatter(values, sorted(quoted))


def _loaded(text: str, placeholders: _Placeholders, quoted: list[int]) -> Any:
    """Return what YAML says, with plain values with colons as texts, whose lines are added to a list.

    Raises:
        RecordError: it would cost too much.
        yaml.YAMLError: it is none. Others as `read_front_matter` expects them.
    """
    import yaml  # noqa: PLC0415  as above

    while True:
        try:
            _check_cost(text, placeholders)
            return yaml.safe_load(text)
        except yaml.scanner.ScannerError as error:
            mark = error.problem_mark
            if len(quoted) == MOST_QUOTED or mark is None or (mended := _with_quotes(text, mark)) is None:
                raise
            quoted.append(mark.line + _FIRST_LINE)
            text = mended


def _with_quotes(text: str, mark: yaml.Mark) -> str | None:
    """Return YAML with quotes around the plain value that a mark lies in; None where it lies in none."""
    lines = text.split("\n")
    found = _PLAIN_VALUE.fullmatch(lines[mark.line]) if mark.line < len(lines) else None
    if found is None or not found.start(2) <= mark.column < found.end(2):
        return None
    lines[mark.line] = found[1] + "'" + found[2].replace("'", "''") + "'" + found[3]
    return "\n".join(lines)


def _fault(error: Exception) -> str:
    """Return in which line of the file front matter is wrong, and why; that may be all that is known."""
    import yaml  # noqa: PLC0415  as above

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        hint = "; put a value with a colon in quotes" if "mapping values" in (error.problem or "") else ""
        return f", line {error.problem_mark.line + _FIRST_LINE}: {error.problem}{hint}"
    return ": " + str(error).split("\n", 1)[0]


class _Placeholders(NamedTuple):
    """The placeholders of a template, in the order of the words that stand for them.

    Attributes:
        mark: What stands around the number of each; it is nowhere else in the text.
        texts: What they are.
    """

    mark: str
    texts: list[str]

    def restored(self, value: Any) -> Any:
        """Return a value with the placeholders again."""
        if not self.texts:
            return value
        if isinstance(value, str):
            return re.sub(f"{self.mark}([0-9]+){self.mark}", lambda found: self.texts[int(found[1])], value)
        if isinstance(value, dict):
            return {self.restored(key): self.restored(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.restored(member) for member in value]
        return tuple(map(self.restored, value)) if isinstance(value, tuple) else value


def _without_placeholders(front: str) -> tuple[str, _Placeholders]:
    """Return YAML with words in the place of a template's placeholders, and what each stands for."""
    used = set(front)
    mark = next((chr(code) for code in _PRIVATE_USE if chr(code) not in used), "")
    found = _Placeholders(mark, _PLACEHOLDER.findall(front) if mark else [])
    numbers = itertools.count()
    return (_PLACEHOLDER.sub(lambda _: f"{mark}{next(numbers)}{mark}", front) if mark else front), found


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


def _check_cost(text: str, placeholders: _Placeholders) -> None:
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
            costs.add(event.anchor, _Cost(1 + len(placeholders.restored(event.value)), 0))


def _check_integer(text: str) -> None:
    if len(text) > MAX_DIGITS and _INTEGER.fullmatch(text):
        raise RecordError(f"its front matter cannot be read: {too_long(len(text))}")
