"""Find passwords on command lines, by the program and its options.

A line is scanned once, from its first program on. Quoted commands in it are scanned as separate lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.programs import OUTPUTS, PLACES, PROGRAMS, TAKES_INPUT
from greenroom.actors.content.secrets.values import Span, compile_pattern, is_placeholder

_NAME: Final = r"(?<![a-z0-9_.-])[a-z0-9][a-z0-9_.-]*+(?=\\{0,3}[\"']?[ \t])"
_ENDS: Final = r"(?:\.exe)?\\{0,3}[\"']?[ \t]"
_WORDS: Final = (
    r"(?P<end>\n|\|{1,2}|;|&{1,2}|(?<!\\)\\n)|(?:[ \t<>()`]|\\\r?\n)++"
    r"|(?P<word>(?:\\{1,3}\"[^\"\n]{0,2000}?\\{1,3}\"|\"(?:[^\"\\\n]|\\[^\n]){0,2000}+\"|'[^'\n]{0,2000}+'"
    r"|\\(?!n)[^\n]|[^\s\"'|;&<>()`\\]|[\"'])++)|."
)
_ECHO: Final = (
    r"(?:\becho|\bprintf|\byes)(?: -[neE]{1,3})?(?: [\"']%s(?:\\n)?[\"'])? "
    r"([\"']?)(?P<value>[^\n|]{3,120}?)\1\s?\|(?P<to>[^\n|;]{1,200})"
)
_HERE: Final = r"<<<\s?\\{0,2}[\"']?(?P<value>[^\s\"'\\]{3,200})"
_LONGEST_COMMAND: Final = 200
"""At most this many characters before ``<<<`` are searched for the command that reads the string."""
_HEREDOC: Final = (
    r"(?P<to>[^\n]{0,200})<<-?\s?[\"']?[A-Za-z_]\w{0,20}[\"']?[^\n]{0,100}\n(?P<value>[^\n]{3,200})"
)
_ENCODED: Final = r"(?=\S*[0-9])\S{6,}|[\w.@-]{2,60}:\S{4,}"
"""Values that people encode in base64 by hand."""
_OUTPUT: Final = r"[ \t]{0,9}\r?\n([^\s$#>]\S{5,400})(?=[ \t]{0,9}(?:\n|$))"
_DEEPEST: Final = 2
_LEAST: Final = 3
_MOST_CALLED: Final = 4
"""A word may be an option of the last programs before it in a line: at most this many."""
_PROSE: Final = frozenset(("option", "flag", "switch", "argument", "parameter", "with", "without", "public"))


class _Word(NamedTuple):
    """A word of a command line, without its outer quotes, and where it starts."""

    text: str
    first: int


class _Rules(NamedTuple):
    """The parsed rules of a program."""

    follows: frozenset[str]
    joined: tuple[str, ...]
    pairs: tuple[str, ...]
    words: frozenset[str]
    separator: str
    leading: bool


@cache
def _by_name() -> dict[str, list[_Rules]]:
    found: dict[str, list[_Rules]] = {}
    for program in PROGRAMS:
        rules = _Rules(
            frozenset(program.follows.split()),
            tuple(program.joined.split()),
            tuple(program.pairs.split()),
            frozenset(program.words.split()),
            program.separator,
            program.leading,
        )
        for name in program.names.split():
            found.setdefault(name, []).append(rules)
    return found


def command_secrets(text: str) -> Iterator[Span]:
    """Find passwords on command lines."""
    names = _by_name().keys() & _called_names(text)
    done = 0
    for start in sorted({start for name in names for start in _calls(text, name)}):
        if start >= done:
            done = _end_of_line(text, start)
            yield from _in_line(text, start, done)
    for table, rest in ((PLACES, ""), (OUTPUTS, _OUTPUT)):
        for part, pattern in table:
            if part in text:
                yield from _placed(text, pattern.replace(" ", r"[ \t]{1,9}") + rest)
    yield from _text_blocks(text)


def _text_blocks(text: str) -> Iterator[Span]:
    """Find passwords that commands read from standard input."""
    if "|" in text and ("echo" in text or "printf" in text or "yes " in text):
        for found in compile_pattern(_ECHO.replace(" ", r"[ \t]{1,9}")).finditer(text):
            yield from _read(text, found["to"], *found.span("value"))
    if "<<<" in text and compile_pattern(TAKES_INPUT).search(text):
        yield from _here_strings(text)
    if "<<" in text and "chpasswd" in text:
        for found in compile_pattern(_HEREDOC).finditer(text):
            first, last = found.span("value")
            if "chpasswd" in text[found.start() : first]:
                yield from _value(text, first + text[first:last].find(":") + 1, last)


def _placed(text: str, pattern: str) -> Iterator[Span]:
    for found in compile_pattern(pattern).finditer(text):
        yield from _value(text, *found.span(1))


def _calls(text: str, name: str) -> Iterator[int]:
    """Yield the positions of a program's name that other words follow."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before = text[at - 1] if at else " "
        if compile_pattern(_ENDS).match(text, end) and not (before.isalnum() or before in "._-=@$%"):
            yield at
        at = text.find(name, end)


def _end_of_line(text: str, at: int) -> int:
    """Return the end of a line; backslashes at line ends continue it."""
    at = (text.find("\n", at) + 1) or len(text)
    while text[at - 2 : at] == "\\\n" and at < len(text):
        at = (text.find("\n", at) + 1) or len(text)
    return at


def _in_line(text: str, first: int, last: int, depth: int = 0) -> Iterator[Span]:
    """Yield the passwords in a span that begins with a program's name."""
    called: dict[str, list[_Call]] = {}
    programs = _by_name()
    for found in compile_pattern(_WORDS).finditer(text, first, last):
        word = found["word"]
        if not word:
            if found["end"]:
                called = {}
            continue
        if (
            (" " in word or "\t" in word)
            and depth < _DEEPEST
            and not _called_names(word).isdisjoint(programs)
        ):
            yield from _in_line(text, found.start() + 1, found.end() - 1, depth + 1)
            continue
        for calls in called.values():
            for call in calls:
                at = call.password(word)
                if at is not None:
                    yield from _value(text, found.start() + at, found.end())
        name = word if word in programs else _program_name(word)
        if name in programs:
            called.pop(name, None)
            called[name] = [*map(_Call, programs[name])]
            if len(called) > _MOST_CALLED:
                del called[next(iter(called))]


def _program_name(word: str) -> str:
    """Return the program's name in a word with a path, quotes or an extension."""
    return word.strip("\\\"'").replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def _called_names(text: str) -> set[str]:
    return {name.removesuffix(".exe") for name in compile_pattern(_NAME).findall(text)}


class _Call:
    """A call of a program; it finds passwords in the words, one by one."""

    __slots__ = ("_next", "_open", "_rules")

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._open = not rules.words
        self._next = ""

    def password(self, word: str) -> int | None:
        """Return the start of the password in a word, if there is one."""
        if self._next:
            expected, self._next = self._next, ""
            if word.startswith("-"):
                return None
            return 0 if expected == "value" else self._behind_user(word)
        rules = self._rules
        if word in rules.words:
            self._open = True
        if not self._open:
            return None
        if word in rules.follows:
            self._next = "value"
        elif word in rules.pairs:
            self._next = "pair"
        elif rules.joined or rules.pairs or rules.leading:
            return self._within(word)
        return None

    def _within(self, word: str) -> int | None:
        """Return the start of a password that directly follows an option in the same word."""
        rules = self._rules
        bare = word.lstrip("\\\"'")
        for option in rules.joined:
            if bare.startswith(option) and bare != option:
                return len(word) - len(bare) + len(option)
        for option in rules.pairs:
            if word.startswith(option):
                return self._behind_user(word, len(option) + 1)
        if rules.leading and not word.startswith("-"):
            self._open = False
        return None

    def _behind_user(self, word: str, first: int = 0) -> int | None:
        at = word.find(self._rules.separator, first)
        return None if at < 0 else at + len(self._rules.separator)


def _here_strings(text: str) -> Iterator[Span]:
    """Yield passwords in here-strings."""
    at, done, command = text.find("<<<"), 0, ""
    while at >= 0:
        first = max(0, at - _LONGEST_COMMAND)
        first = max(first, *(text.rfind(mark, first, at) + 1 for mark in "\n|;"))
        if first >= done or not compile_pattern(TAKES_INPUT).search(command):
            command = text[max(first, done) : at]  # the part before is already searched
        found = compile_pattern(_HERE).match(text, at)
        if found is not None:
            yield from _read(text, command, *found.span("value"))
        done = at + 3 if found is None else found.end()
        at = text.find("<<<", done)


def _read(text: str, command: str, first: int, last: int) -> Iterator[Span]:
    """Yield an input as a password if the command reads a password."""
    reader = compile_pattern(TAKES_INPUT).search(command)
    if reader is None or (
        reader[0] == "base64" and not compile_pattern(_ENCODED).fullmatch(text, first, last)
    ):
        return
    if "chpasswd" in command:
        first += text[first:last].find(":") + 1
    yield from _value(text, first, last)


def _value(text: str, first: int, last: int) -> Iterator[Span]:
    """Yield a password without its quotes, unless the password is a placeholder."""
    value = text[first:last]
    stripped = value.lstrip("\\\"'")
    first += len(value) - len(stripped)
    value = stripped.rstrip("\\\"'`,.)]}")
    if len(value) >= _LEAST and value not in _PROSE and "`" not in value and not is_placeholder(value):
        yield Span(first, first + len(value), "password", 1)
