"""Command lines as shapes: what is done, without what it is done to.

A shape keeps names of programs, subcommands and options and puts a word in angle brackets for every other
argument: ``git checkout <word>``, ``curl -H <string> <url>``. A word that nobody else knows is kept only
where a name belongs and once it came often (`Word`); what stands behind an option or in quotes, holds a
digit or belongs to a password never is. A shape has itself as its shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.actors.workflow.vocabulary import (
    NAMING_OPTIONS,
    OPTIONS,
    PROGRAMS,
    SECRETIVE,
    SUBCOMMANDS,
    WRAPPERS,
)

LONGEST: Final = 200
"""Characters of a shape."""
MOST_SEGMENTS: Final = 8
"""Commands of one line that a shape has."""
MOST_NAMES: Final = 2
"""Words after a program that may be names, as in ``docker compose up``."""
NAMELESS: Final = "<program>"
_LINES: Final = "<lines>"
_PROGRAMS: Final = PROGRAMS | SECRETIVE | WRAPPERS
_KNOWN: Final = PROGRAMS | SUBCOMMANDS

_PLACEHOLDER = "<(?:program|path|number|hash|url|string|value|word|variable|lines)>"
_PART = rf"""{_PLACEHOLDER}|"(?:[^"\\]|\\.)*"?|'[^']*'?|\\.?|[^\s"'\\|&;<>()]"""
_TOKEN = re.compile(rf"(?P<word>(?:{_PART})+)|(?P<operator>[|&;()]+|[<>]+[&|(]?)", re.DOTALL)
_IS_PLACEHOLDER = re.compile(_PLACEHOLDER)
_NAME = re.compile(r"[A-Za-z][A-Za-z_.:+-]{0,39}")
_SUBCOMMAND = re.compile(r"[a-z][a-z:_-]{0,23}")
_ASSIGNMENT = re.compile(r"([A-Za-z_]{1,30})=.*", re.DOTALL)
_LONG_OPTION = re.compile(r"(--[a-z]{2,}(?:-[a-z]+){0,5})(=.*)?", re.DOTALL)
_SHORT_OPTION = re.compile(r"-[A-Za-z]{1,3}")
_GLUED_OPTION = re.compile(r"(-[A-Za-z]).+", re.DOTALL)
_SECRET = re.compile(r"pass|pwd|secret|token|auth|cred|key|login|bearer", re.IGNORECASE)
_KINDS: Final = (
    (re.compile(r"""["'].*|.*=["'].*""", re.DOTALL), "<string>"),
    (re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL), "<url>"),
    (re.compile(r"[+-]?[0-9][0-9.,:_]*[A-Za-z%]?"), "<number>"),
    (re.compile(r"(?=[^0-9]*[0-9])(?:[0-9a-f]{7,}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"), "<hash>"),
    (re.compile(r"\$.*", re.DOTALL), "<variable>"),
    (re.compile(r"[^\s=:]*/.*|~.*|\.{1,2}|[^\s=:@]*\.[a-z]{1,5}", re.DOTALL), "<path>"),
    (_SUBCOMMAND, "<word>"),
)


class Word(NamedTuple):
    """A word where a name belongs that is kept only once it came often; of which program, and the word."""

    program: str
    word: str


class Shape(NamedTuple):
    """The shape of a command line, and the words in it that may be names and were left out."""

    text: str
    words: tuple[Word, ...] = ()


def shape_of(command: str, is_frequent: Callable[[Word], bool], *, passed: bool = True) -> Shape:
    """Return the shape of a command line.

    Args:
        command: As it was given, whatever it is.
        is_frequent: Says whether a word came so often that it may be kept.
        passed: Whether the command did what it was to do. A program that nobody knows is kept by name then:
            a password that was typed for a command does not pass.
    """
    line, more, _ = command.strip().partition("\n")
    shaper = _Shaper(is_frequent, passed=passed)
    for found in _TOKEN.finditer(line):
        if not shaper.has_room:
            break
        if found["operator"] is not None:
            shaper.operator(found["operator"])
        else:
            shaper.word(found["word"])
    if more:
        shaper.put(_LINES)
    return shaper.shape()


class _Shaper:
    """Puts the words of one command line into its shape."""

    def __init__(self, is_frequent: Callable[[Word], bool], *, passed: bool) -> None:
        self._is_frequent = is_frequent
        self._passed = passed
        self._shape: list[str] = []
        self._words: list[Word] = []
        self._segments = 1
        self._begin()

    def _begin(self) -> None:
        self._program: str | None = None
        self._wrapper: str | None = None
        self._may_be_value = False
        self._names = 0
        self._takes_names = True
        self._is_secret = False
        self._is_target = False

    @property
    def has_room(self) -> bool:
        return self._segments <= MOST_SEGMENTS and sum(map(len, self._shape)) < LONGEST

    def put(self, text: str) -> None:
        """Add to the shape; the same placeholder twice in a row is one."""
        if not (self._shape and self._shape[-1] == text and _IS_PLACEHOLDER.fullmatch(text)):
            self._shape.append(text)

    def operator(self, text: str) -> None:
        """Take what joins commands, or redirects one."""
        if self._is_target:
            self.word("<path>")
        if text[0] in "<>":
            self.put(text[0])
            self._is_target = True
            return
        joint = text[:2] if text[:2] in {"&&", "||"} else text[0] if text[0] in "|&;" else ";"
        if self._program is not None or self._wrapper is not None:
            self.put(joint)
            self._segments += 1
        self._begin()

    def word(self, text: str) -> None:
        """Take a word."""
        if text == _LINES:
            self.put(text)
        elif self._is_target:
            self._is_target = False
            self.put("<number>" if text.isdigit() or text == "<number>" else "<path>")
        elif self._program is None:
            self._take_program(text)
        else:
            self._take_argument(text)

    def _take_program(self, text: str) -> None:
        if (assigned := _ASSIGNMENT.fullmatch(text)) is not None:
            self.put(f"{assigned[1]}=<value>")
            return
        if self._wrapper is not None and self._is_for_wrapper(text):
            self._may_be_value = True
            self.put(self._option(text))
            return
        name = text.rpartition("/")[2] if not text.endswith("/") else text
        is_named = "/" not in text
        if name not in _PROGRAMS and _NAME.fullmatch(name) is None:
            name = NAMELESS
        elif name not in _PROGRAMS and not (is_named and self._passed):
            name = self._name("", name, NAMELESS)
        self.put(name)
        if name in WRAPPERS:
            self._wrapper = name
        else:
            self._program = name
            self._is_secret = name in SECRETIVE or name == NAMELESS

    def _is_for_wrapper(self, text: str) -> bool:
        """Return whether a word behind a program such as ``sudo`` is no program, as far as one can tell."""
        if text == NAMELESS or text in _PROGRAMS:
            return False
        return self._may_be_value or text.startswith("-") or _IS_PLACEHOLDER.fullmatch(text) is not None

    def _take_argument(self, text: str) -> None:
        assert self._program is not None, "arguments follow a program"
        if _IS_PLACEHOLDER.fullmatch(text) is not None:
            self._take_masked(text)
        elif text.startswith("-") and len(text) > 1:
            self._takes_names = (self._program, text) in NAMING_OPTIONS
            self.put(self._option(text))
        elif self._is_secret:
            self.put("<value>")
        elif self._takes_names and self._names < MOST_NAMES and _SUBCOMMAND.fullmatch(text):
            self._names += 1
            self.put(text if text in _KNOWN else self._name(self._program, text, "<word>"))
            self._is_secret = _SECRET.search(text) is not None
        else:
            self._takes_names = False
            self.put(_kind(text))

    def _take_masked(self, text: str) -> None:
        """Take what stands for an argument already."""
        if text == "<word>" and self._takes_names and self._names < MOST_NAMES:
            self._names += 1
        else:
            self._takes_names = False
        self.put("<value>" if self._is_secret else text)

    def _option(self, text: str) -> str:
        """Return what stands for an option, or for its value."""
        if not text.startswith("-"):
            return text if _IS_PLACEHOLDER.fullmatch(text) is not None else "<value>"
        if (long := _LONG_OPTION.fullmatch(text)) is not None:
            self._is_secret = self._is_secret or _SECRET.search(long[1]) is not None
            return long[1] + ("=<value>" if long[2] else "")
        if _SHORT_OPTION.fullmatch(text) is not None or text in OPTIONS:
            return text
        if (glued := _GLUED_OPTION.fullmatch(text)) is not None:
            return glued[1] + "<value>"
        return _kind(text)

    def _name(self, program: str, word: str, otherwise: str) -> str:
        """Return a word that may be a name where it came often."""
        named = Word(program, word)
        if _SECRET.search(word) is None and self._is_frequent(named):
            return word
        self._words.append(named)
        return otherwise

    def shape(self) -> Shape:
        """Return the shape of what was taken."""
        while self._shape and self._shape[-1] in {"|", "&", ";", "&&", "||", "<", ">"}:
            self._shape.pop()
        text = " ".join(self._shape) or NAMELESS
        return Shape(
            text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] or NAMELESS,
            tuple(self._words),
        )


def _kind(text: str) -> str:
    """Return what stands for an argument."""
    for pattern, placeholder in _KINDS:
        if pattern.fullmatch(text) is not None:
            return placeholder
    return "<value>"
