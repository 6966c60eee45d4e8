"""Front matter: YAML before a Markdown text, with anchors, and with template placeholders as texts.

A plain value with a colon, such as ``title: Meeting: the second``, is not valid YAML, but clearly means a
text.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from greenroom.actors.core.validation.strict_json import YAML_VALUE_ERRORS
from greenroom.actors.memories.transfer.normalize import MAX_DIGITS, RecordError, as_text, too_long

if TYPE_CHECKING:
    import yaml

MAX_FRONT_MATTER: Final = 65_536
"""At most this many characters are read, also after anchors are expanded."""
MAX_DEPTH: Final = 50
MOST_QUOTED: Final = 20
"""At most this many values with a colon are read as texts; each of them costs another parse of the whole."""
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_:]*)")
_PLAIN_VALUE: Final = re.compile(r"""([^:#'"]*:[ \t]+)([^\s'"\[\]{}&*!|>%@`#,?-].*?)((?:[ \t]+#.*)?\s*)""")
_FIRST_LINE: Final = 2
"""The first line of front matter in the file, after its rule."""
_PLACEHOLDER: Final = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}|<%[^%\n]*%>")
"""The excluded characters keep this linear: no character is scanned twice."""
_PRIVATE_USE: Final = range(0xE000, 0xF900)


class FrontMatter(NamedTuple):
    """The values of front matter, and the lines that were read as text."""

    values: dict[str, Any]
    quoted: list[int]


def cut(text: str) -> tuple[str, str]:
    """Split a file into its front matter, which may be empty, and its text."""
    found = _FRONT_MATTER.match(text)
    return ("", text) if found is None else (found[1], text[found.end() :])


def read_front_matter(front: str) -> FrontMatter | None:
    """Parse front matter; None for ordinary text between two rules.

    Raises:
        RecordError: It is not YAML, or too expensive to load.
    """
    if not front:
        return FrontMatter({}, [])
    import yaml  # noqa: PLC0415  only imports of Markdown need it

    if len(front) > MAX_FRONT_MATTER:
        raise RecordError(
            f"its front matter has {len(front):,} characters and {MAX_FRONT_MATTER:,} are the most"
        )
    plain, placeholders = _without_placeholders(front)
    quoted: list[int] = []
    try:
        about = _load(plain, placeholders, quoted)
    except RecursionError:
        raise RecordError("its front matter is nested too deeply") from None
    except (yaml.YAMLError, ValueError, *YAML_VALUE_ERRORS) as error:
        raise RecordError(f"its front matter is no YAML{_fault(error)}") from None
    if about is not None and not isinstance(about, dict):
        return None
    values = {as_text(key): value for key, value in placeholders.restore(about or {}).items()}
    return FrontMatter(values, sorted(quoted))


def _load(text: str, placeholders: _Placeholders, quoted: list[int]) -> Any:
    """Load YAML; read plain values with colons as texts, and add their lines to ``quoted``.

    Raises:
        RecordError: It is too expensive to load.
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
    """Quote the plain value at a mark of YAML; return None if there is none."""
    lines = text.split("\n")
    found = _PLAIN_VALUE.fullmatch(lines[mark.line]) if mark.line < len(lines) else None
    if found is None or not found.start(2) <= mark.column < found.end(2):
        return None
    lines[mark.line] = found[1] + "'" + found[2].replace("'", "''") + "'" + found[3]
    return "\n".join(lines)


def _fault(error: Exception) -> str:
    """Return the line and the reason of an error, as far as they are known."""
    import yaml  # noqa: PLC0415  as above

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        hint = "; put a value with a colon in quotes" if "mapping values" in (error.problem or "") else ""
        return f", line {error.problem_mark.line + _FIRST_LINE}: {error.problem}{hint}"
    return ": " + str(error).split("\n", 1)[0]


class _Placeholders(NamedTuple):
    """The placeholders of a template, in the order of the words that replace them.

    Each word is the number of a placeholder between two ``mark``s, which are nowhere else in the text.
    """

    mark: str
    texts: list[str]

    def restore(self, value: Any) -> Any:
        """Put the placeholders back into a value."""
        if not self.texts:
            return value
        if isinstance(value, str):
            return re.sub(f"{self.mark}([0-9]+){self.mark}", lambda found: self.texts[int(found[1])], value)
        if isinstance(value, dict):
            return {self.restore(key): self.restore(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.restore(member) for member in value]
        return tuple(map(self.restore, value)) if isinstance(value, tuple) else value


def _without_placeholders(front: str) -> tuple[str, _Placeholders]:
    """Replace the placeholders of a template in YAML by words; return both."""
    used = set(front)
    mark = next((chr(code) for code in _PRIVATE_USE if chr(code) not in used), "")
    found = _Placeholders(mark, _PLACEHOLDER.findall(front) if mark else [])
    numbers = itertools.count()
    return (_PLACEHOLDER.sub(lambda _: f"{mark}{next(numbers)}{mark}", front) if mark else front), found


class _Cost(NamedTuple):
    """The size and the depth of a value, with its aliases expanded."""

    size: int
    depth: int


class _Costs:
    """The cost of loading the values of a YAML text, from its events."""

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
        """End the innermost array or object."""
        self.add(*self._open.pop())

    def refer(self, anchor: str | None) -> None:
        """Add the cost of an alias; the parser reports an unknown one."""
        cost = self._of_anchors.get(anchor or "", _Cost(0, 0))
        if cost is None:
            raise RecordError("its front matter refers to itself")
        self.add(None, cost)

    def add(self, anchor: str | None, cost: _Cost) -> None:
        """Add a value to the value around it."""
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
    """Refuse a text that is too expensive to load or store."""
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
            is_plain = event.tag or not event.style
            if is_plain and len(event.value) > MAX_DIGITS and _INTEGER.fullmatch(event.value):
                raise RecordError(f"its front matter cannot be read: {too_long(len(event.value))}")
            costs.add(event.anchor, _Cost(1 + len(placeholders.restore(event.value)), 0))
