"""The used names in a tree, and its imports."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.content.syntax.languages import ImportedName, Language
from greenroom.actors.content.syntax.source import Import, Lines, Reference, Role
from greenroom.actors.content.syntax.symbols import MAX_NAME, Captures, Extent, Symbols

if TYPE_CHECKING:
    from tree_sitter import Node

_ROLES: Final[tuple[Role, ...]] = ("inherits", "call", "type", "other")
"""If several roles fit a name, the first of them counts."""
_MOST_BEFORE: Final = 100
_MOST_READ: Final = 20_000
"""At most this many bytes of an import statement are read."""


class ImportsFound(NamedTuple):
    """Imports, and the spans of their statements, in order."""

    imports: list[Import]
    spans: list[tuple[int, int]]


def imports_of(
    data: bytes, lines: Lines, language: Language, matches: list[Captures], most: int
) -> ImportsFound:
    """Return the imports of a file from the matches of a query, at most ``most``."""
    found: dict[tuple[int, str, str], Import] = {}
    spans: set[tuple[int, int]] = set()
    for captures in matches:
        statement = captures["import"][0]
        at = captures["from"][0].start_byte if "from" in captures else statement.start_byte
        spans.add(statement.byte_range)
        line = lines.of(at)
        for name in _names(data, language, statement, captures):
            found.setdefault((at, name.name, name.alias), Import(name.module, name.name, name.alias, line))
    named = {at for at, name, alias in found if name or alias}
    in_order = sorted(found, key=lambda key: key[0])
    imports = [found[key] for key in in_order if key[0] not in named or key[1] or key[2]]
    return ImportsFound(imports[:most], sorted(spans))


def _names(data: bytes, language: Language, statement: Node, captures: Captures) -> list[ImportedName]:
    if language.names_of is not None:
        first, last = statement.byte_range
        return language.names_of(data[first : min(last, first + _MOST_READ)].decode(errors="replace"))
    text = {
        part: data[slice(*nodes[0].byte_range)].decode(errors="replace")[:MAX_NAME]
        for part, nodes in captures.items()
    }
    if "default" in text:
        return [ImportedName(text["from"], "default", text["default"])]
    return [ImportedName(text["from"], text.get("name", ""), text.get("alias", text.get("star", "")))]


class _Before(NamedTuple):
    """The operators before a name, and a chain of names and operators, spelled backwards."""

    ends: bytes
    reversed: re.Pattern[bytes]
    between: re.Pattern[str]


@cache
def _before(joins: str) -> _Before:
    found = sorted(joins.split(), key=len, reverse=True)
    backwards = "|".join(re.escape(each[::-1]) + ("" if each == "\\" else r"\s*+") for each in found)
    between = "|".join(map(re.escape, found))
    return _Before(
        "".join(each[-1] for each in found).encode(),
        re.compile(rf"(?:\s*+(?:{backwards})(?:\)\()?[\w$]++)+".encode()),
        re.compile(rf"\s*(?:{between})\s*"),
    )


def references_of(
    data: bytes,
    lines: Lines,
    language: Language,
    captures: Mapping[str, list[Node]],
    symbols: Symbols,
    brought: ImportsFound,
    most: int,
) -> list[Reference]:
    """Return the references of a file in order, at most ``most``."""
    known = {each.path.rpartition(".")[2].encode() for each in symbols.extents}
    known.update((each.alias or each.name or each.module).encode() for each in brought.imports)
    taken = set(symbols.names_at)
    found: list[tuple[int, bytes, Role]] = []
    for role in _ROLES:
        for node in captures.get(role, ()):
            first, last = node.byte_range
            name = data[first : min(last, first + MAX_NAME)]
            if role == "other" and not (name in known or name[:1].isupper()):
                continue
            if first not in taken and not _is_within(brought.spans, first):
                taken.add(first)
                found.append((first, name, role))
    found.sort()
    before = _before(language.joins)
    return [
        Reference(
            name.decode(errors="replace"), role, lines.of(first), symbol, _qualifier(data, before, first)
        )
        for symbol, first, name, role in _placed(symbols.extents, found[: 2 * most])
    ][:most]


def _placed(
    extents: list[Extent], found: list[tuple[int, bytes, Role]]
) -> Iterator[tuple[str, int, bytes, Role]]:
    """Yield names with their symbols; in each symbol, a name of role ``other`` comes once."""
    around: list[Extent] = []
    seen: set[tuple[str, bytes]] = set()
    following = iter([*extents, None])
    upcoming = next(following)
    for first, name, role in found:
        while upcoming is not None and upcoming.first <= first:
            around = [each for each in around if each.last > upcoming.first]
            around.append(upcoming)
            upcoming = next(following)
        while around and around[-1].last <= first:
            around.pop()
        symbol = around[-1].path if around else ""
        if role != "other" or (symbol, name) not in seen:
            yield symbol, first, name, role
        if role == "other":
            seen.add((symbol, name))


def _qualifier(data: bytes, before: _Before, first: int) -> str:
    if not first or data[first - 1] not in before.ends:
        return ""
    found = before.reversed.match(data[max(0, first - _MOST_BEFORE) : first][::-1])
    if found is None:
        return ""
    return ".".join(before.between.split(found[0][::-1].decode(errors="replace"))[:-1])


def _is_within(spans: list[tuple[int, int]], offset: int) -> bool:
    at = bisect_right(spans, (offset, offset))
    return at > 0 and offset < spans[at - 1][1]
