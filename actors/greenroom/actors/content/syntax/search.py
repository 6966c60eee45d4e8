"""Search the bytes of a file: string literals, lines, and queries of tree-sitter.

A hostile pattern in a hostile file may take long, so files are searched in a process that can be killed. RE2
matches expressions in linear time and lets other threads run; other engines do not, so queries may not have
expressions. `make_sieve` needs no process: it passes over most files, whose sending would take longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from greenroom.actors.content.documents import mask_bytes
from greenroom.actors.content.syntax.grammars import MissingGrammarError, load_grammar
from greenroom.actors.content.syntax.languages import LANGUAGES, Language, language_of
from greenroom.actors.content.syntax.parse import as_utf8, cursor_of, parse_tree
from greenroom.actors.content.syntax.patterns import Found, Pattern, PatternError, is_like
from greenroom.actors.content.syntax.source import Lines
from greenroom.actors.core.base.optional_packages import Part
from greenroom.actors.core.base.unicode_forms import compose, compose_bytes

if TYPE_CHECKING:
    from tree_sitter import Node, Query

EXPRESSIONS: Final = Part("searching by an expression", ("google-re2",))
MAX_FOUND: Final = 1_000
MAX_LINE: Final = 300
_MOST_MEMORY: Final = 8 << 20
_MOST_EMPTY: Final = 100_000
_EXPRESSION: Final = re.compile(r"#(?:any-)?(?:not-)?match\?")
_QUOTES: Final = "'\"`"
_PREFIX: Final = re.compile(r"^[a-zA-Z]{0,3}#*(?=[\"'`])")


def search_bytes(pattern: Pattern, path: str, data: bytes, most: int = MAX_FOUND) -> list[Found]:
    """Return the matches of a pattern in a file's bytes, in order.

    Raises:
        PatternError: the pattern is malformed.
        MissingGrammarError: a package is missing.
    """
    data = mask_bytes(as_utf8(data)).data
    lines = Lines(data)
    if pattern.what == "regex":
        there = compose_bytes(data)  # the number of lines stays the same
        spans = _matched(compose(pattern.text), there)
        of = lines if there == data else Lines(there)
        found = (
            _match_in_lines(data, lines, of.of(first), of.of(max(first, last - 1)), "")
            for first, last in spans
        )
    else:
        language = language_of(path)
        if language is None:
            return []
        captured = (
            _strings(pattern, data, language)
            if pattern.what == "string"
            else _captured(pattern, data, language)
        )
        found = (
            _match_in_lines(
                data,
                lines,
                lines.of(node.start_byte),
                lines.of(max(node.start_byte, node.end_byte - 1)),
                name,
            )
            for name, node in captured
        )
    return list(islice(found, most))


def make_sieve(pattern: Pattern) -> Callable[[bytes], bool] | None:
    """Return a quick test of a file's bytes, or None if there is none.

    False means that the pattern matches nothing there. The bytes must have their secrets masked, as
    `search_bytes` masks them.

    Raises:
        PatternError: the pattern is malformed.
        MissingGrammarError: a package is missing.
    """
    if pattern.what == "regex":
        expression = compose(pattern.text)
        compile_expression(expression)
        return lambda data: next(_matched(expression, compose_bytes(as_utf8(data))), None) is not None
    longest = max(pattern.text.split("*"), key=len).encode()
    if pattern.what == "string" and longest and longest.isascii():  # other letters have several forms
        return lambda data: longest in compose_bytes(as_utf8(data))
    return None


def _match_in_lines(data: bytes, lines: Lines, line: int, last_line: int, name: str) -> Found:
    begin = lines.start_of(line)
    end = data.find(b"\n", begin)
    text = data[begin : len(data) if end < 0 else end].decode(errors="replace").strip()
    return Found(line, last_line, name, "", text[:MAX_LINE])


def _matched(expression: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of the non-empty matches of an expression."""
    matches = compile_expression(expression).finditer(data)
    for found in islice(matches, _MOST_EMPTY):
        if found.end() > found.start():
            yield found.span()


@lru_cache(maxsize=16)
def compile_expression(expression: str) -> Any:
    """Compile an expression for RE2; `^` and `$` match at line ends."""
    try:
        import re2  # noqa: PLC0415  the package may be missing
    except ImportError:
        raise MissingGrammarError(EXPRESSIONS.lack) from None
    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    try:
        return re2.compile(f"(?m:{expression})", options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        sentence = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(f"{expression[:80]!r} is no expression of RE2: {sentence[:200]}") from None


def _strings(pattern: Pattern, data: bytes, language: Language) -> Iterator[tuple[str, Node]]:
    root = parse_tree(data, language)
    query = _query(language, language.strings)
    nodes = cursor_of(query).captures(root).get("string", []) if root is not None else []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        text = _PREFIX.sub("", data[slice(*node.byte_range)].decode(errors="replace")).strip("#")
        if is_like(pattern.text, text.strip(_QUOTES)):
            yield "", node


def _captured(pattern: Pattern, data: bytes, language: Language) -> Iterator[tuple[str, Node]]:
    if _EXPRESSION.search(pattern.text):
        raise PatternError("#match? is not read in queries, since it may take for ever: compare with #eq?")
    try:
        query = _query(language, pattern.text)
    except ValueError as error:
        if any(_is_query(other, pattern.text) for other in LANGUAGES):
            return
        raise PatternError(f"the query is none of any language: {str(error)[:200]}") from None
    root = parse_tree(data, language)
    captures = cursor_of(query).captures(root) if root is not None else {}
    yield from sorted(
        ((name, node) for name, nodes in captures.items() if name[0] != "_" for node in nodes),
        key=lambda found: (found[1].start_byte, -found[1].end_byte),
    )


def _is_query(language: Language, text: str) -> bool:
    try:
        _query(language, text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=64)
def _query(language: Language, text: str) -> Query:
    import tree_sitter  # noqa: PLC0415  as in `grammars`

    return tree_sitter.Query(load_grammar(language), text)
