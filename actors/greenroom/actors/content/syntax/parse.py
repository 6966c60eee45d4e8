"""Parse a source file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.syntax.chunks import chunks_of_text, chunks_of_tree
from greenroom.actors.content.syntax.comments import Above, summary_of
from greenroom.actors.content.syntax.grammars import Grammar, MissingGrammarError, grammar_of, load_grammar
from greenroom.actors.content.syntax.languages import Language, language_of
from greenroom.actors.content.syntax.origins import origin_of
from greenroom.actors.content.syntax.source import Lines, Source
from greenroom.actors.content.syntax.symbols import Captures, Symbols, definitions_in
from greenroom.actors.content.syntax.uses import imports_of, references_of

if TYPE_CHECKING:
    from tree_sitter import Node, Query, QueryCursor

MAX_BYTES: Final = 2 << 20
"""A parsed file has at most this many bytes; a tree takes about 40 times as much memory, at worst 300."""
MAX_SYMBOLS: Final = 10_000
MAX_IMPORTS: Final = 10_000
MAX_REFERENCES: Final = 100_000
AS_TEXT: Final = "it was read as text: "
TOO_LONG: Final = f"{AS_TEXT}it is longer than {MAX_BYTES >> 20} MiB"
TOO_MANY: Final = "it has more names than are kept"
TOO_BROKEN: Final = f"{AS_TEXT}too much of it is not of its language"
_MOST_UNFINISHED: Final = 10_000
_MOST_DEPTH: Final = 300
"""A tree is searched to this depth; the time of a query grows with the square of the depth."""
_MOST_ADRIFT: Final = 10**9
"""The most that the squares of children in error nodes may add up to: about a second of queries."""


def read_source(path: str, data: bytes) -> Source:
    """Parse a source file; the result depends only on the file's name and bytes.

    Every file has a result. A file that is too long or has no parser has only chunks. A file with syntax
    errors has everything that could be parsed. Lines end with a line feed. Byte offsets count in the file if
    it is in UTF-8, else in its text as UTF-8.
    """
    data = as_utf8(data)
    lines = Lines(data)
    language = language_of(path)
    notice = TOO_LONG if language and len(data) > MAX_BYTES else ""
    if language is not None and not notice:
        try:
            return _read(path, data, lines, language, grammar_of(language))
        except MissingGrammarError as error:
            notice = f"{AS_TEXT}{error}"
    name = language.name if language else ""
    origin = origin_of(data) if language else None
    return Source(path, name, [], [], [], chunks_of_text(data, lines), notice=notice, origin=origin)


def _read(path: str, data: bytes, lines: Lines, language: Language, grammar: Grammar) -> Source:
    origin = origin_of(data)
    root = parse_tree(data, language)
    if root is None:
        chunks = chunks_of_text(data, lines)
        return Source(path, language.name, [], [], [], chunks, "", True, TOO_BROKEN, origin)
    uses = cursor_of(grammar.uses).captures(root)
    matches = cursor_of(grammar.definitions).matches(root)
    above = Above(data, lines, uses.get("above", ()))
    makes = Symbols(data, lines, above, language)
    symbols = makes.of(definitions_in(matches), MAX_SYMBOLS)
    imports = imports_of(
        data, lines, language, [each for _, each in matches if "import" in each], MAX_IMPORTS
    )
    references = references_of(data, lines, language, uses, makes, imports, MAX_REFERENCES)
    is_cut = (
        len(symbols) == MAX_SYMBOLS
        or len(imports.imports) == MAX_IMPORTS
        or len(references) == MAX_REFERENCES
    )
    return Source(
        path=path,
        language=language.name,
        symbols=symbols,
        references=references,
        imports=imports.imports,
        chunks=chunks_of_tree(data, root, lines, symbols),
        summary=_about(data, [each for _, each in matches]),
        is_broken=root.has_error,
        notice=TOO_MANY if is_cut else "",
        origin=origin,
    )


def parse_tree(data: bytes, language: Language) -> Node | None:
    """Return the root of the tree of UTF-8; None if too long or broken."""
    grammar = load_grammar(language)
    import tree_sitter  # noqa: PLC0415  as in `grammars`

    if len(data) > MAX_BYTES:
        return None
    root = tree_sitter.Parser(grammar).parse(data).root_node
    return None if _is_adrift(root) else root


def cursor_of(query: Query) -> QueryCursor:
    """Return a cursor for a query, with limits."""
    import tree_sitter  # noqa: PLC0415  as in `grammars`

    cursor = tree_sitter.QueryCursor(query, match_limit=_MOST_UNFINISHED)
    cursor.set_max_start_depth(_MOST_DEPTH)
    return cursor


def _is_adrift(root: Node) -> bool:
    """Return whether a tree is too broken to be searched in reasonable time."""
    cost = 0
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.has_error and node.child_count:
            cost += node.child_count**2 if node.is_error else 0
            if cost > _MOST_ADRIFT:
                return True
            nodes.extend(node.children)
    return False


def _about(data: bytes, matches: list[Captures]) -> str:
    for captures in matches:
        if "about" in captures:
            return summary_of(data[slice(*captures["about"][0].byte_range)])
    return ""


def as_utf8(data: bytes) -> bytes:
    """Convert a text in any encoding to UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return SourceText(data).text.encode(errors="replace")
    return data
