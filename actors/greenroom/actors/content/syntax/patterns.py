r"""Patterns of code: definitions, calls, imports or texts, and their matches.

    function load*        functions and methods        calls Store.add      where it is called
    class *Error          classes and similar types    imports os.path      its imports
    inherits Base*        its subclasses               string *timeout*     string literals
    regex ^def \w+         lines, in the syntax of RE2   (call) @found        a query of tree-sitter
    load*                 symbols of any kind, as symbol load* does

In a name `*` means anything. A name with dots is the end of a path: `Store.add` fits `shop.Store.add`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, get_args

import msgspec

from greenroom.actors.content.syntax.source import Import, Kind, Role, Source
from greenroom.actors.core.base.unicode_forms import compose

What = Literal["symbols", "uses", "imports", "string", "regex", "query"]
MAX_PATTERN: Final = 2_000
_CLASSES: Final[frozenset[Kind]] = frozenset({"class", "struct", "interface", "trait", "enum"})
_KINDS: Final[Mapping[str, frozenset[Kind]]] = {
    **{kind: frozenset((kind,)) for kind in get_args(Kind)},
    "function": frozenset({"function", "method"}),
    "class": _CLASSES,
    "symbol": frozenset(get_args(Kind)),
}
_ROLES: Final[Mapping[str, Role]] = {"calls": "call", "inherits": "inherits"}
_NAME: Final = re.compile(r"[\w.*$!?#@~:-]+")
_TEXTS: Final[Mapping[str, What]] = {"imports": "imports", "string": "string", "regex": "regex"}


class PatternError(ValueError):
    """A pattern is malformed; the error's sentence says why."""


class Pattern(msgspec.Struct, frozen=True, array_like=True):
    """A parsed pattern. `match_names` finds the first three targets; `search_bytes`, the others."""

    what: What
    text: str
    kinds: frozenset[Kind] = frozenset()
    role: Role | None = None
    is_bare: bool = False


class Found(msgspec.Struct, frozen=True, array_like=True):
    """A match of a pattern.

    Attributes:
        name: The matched name, or the capture of a query; else empty.
        symbol: The path of the matched symbol, or of the enclosing one; empty if unknown.
        text: The matched text: a signature, an import, a line.
    """

    line: int
    last_line: int
    name: str
    symbol: str
    text: str


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern."""
    text = text.strip()
    if len(text) > MAX_PATTERN:
        raise PatternError(f"the pattern has {len(text)} characters, and may have {MAX_PATTERN}")
    if text.startswith(("(", "[")):
        return Pattern("query", text)
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    known = [*_KINDS, *_ROLES, *_TEXTS]
    if word not in known and _NAME.fullmatch(text):
        return Pattern("symbols", text, kinds=_KINDS["symbol"], is_bare=True)
    if word not in known:
        raise PatternError(
            f"a pattern begins with one of {', '.join(sorted(known))}, or is a name alone or a query of "
            f"tree-sitter in parentheses; {text[:80]!r} is none of these"
        )
    if not rest:
        raise PatternError(f"what {word!r} is to find is missing: a name, such as {word} load*")
    if word in _KINDS:
        return Pattern("symbols", rest, kinds=_KINDS[word])
    return Pattern(_TEXTS.get(word, "uses"), rest, role=_ROLES.get(word))


def match_names(pattern: Pattern, source: Source) -> Iterator[Found]:
    """Yield the matches of a pattern in a file, for patterns that match names."""
    if pattern.what == "symbols":
        for each in source.symbols:
            if each.kind in pattern.kinds and is_path(pattern.text, each.path):
                yield Found(each.line, each.last_line, each.name, each.path, each.signature)
    elif pattern.what == "uses":
        for use in source.references:
            path = f"{use.qualifier}.{use.name}"
            if use.role == pattern.role and is_path(pattern.text, path):
                yield Found(use.line, use.line, use.name, use.symbol, path.removeprefix("."))
    elif pattern.what == "imports":
        yield from (_import(each) for each in source.imports if _is_import(pattern, each))
    else:
        raise PatternError(f"{pattern.what!r} is found in the bytes of a file")


def is_like(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in which ``*`` means anything."""
    name = compose(name)
    first, *others = compose(pattern).split("*")
    if not others:
        return first == name
    *middle, last = others
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at = len(first)
    for part in middle:
        found = name.find(part, at, len(name) - len(last))
        if found < 0:
            return False
        at = found + len(part)
    return True


def is_path(pattern: str, path: str) -> bool:
    """Return whether the end of a path matches a pattern, name by name."""
    return is_like(pattern, ".".join(path.split(".")[-1 - pattern.count(".") :]))


def _is_import(pattern: Pattern, brought: Import) -> bool:
    module = brought.module.strip('"<>')
    whole = module.replace("::", ".")
    names = {module, brought.module, whole, brought.name, brought.alias, f"{whole}.{brought.name}"} - {""}
    return any(is_like(pattern.text, name) for name in names)


def _import(brought: Import) -> Found:
    name = f" {brought.name}" if brought.name else ""
    alias = f" as {brought.alias}" if brought.alias else ""
    return Found(
        brought.line, brought.line, brought.alias or brought.name, "", f"{brought.module}{name}{alias}"
    )
