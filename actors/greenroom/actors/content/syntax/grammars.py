"""Grammars and queries of tree-sitter; the first file of a language loads them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.content.syntax.languages import Language
from greenroom.actors.core.base.optional_packages import Part

if TYPE_CHECKING:
    import tree_sitter

_BROKEN = "the packages that read code by its syntax cannot be imported"


class MissingGrammarError(Exception):
    """A package is missing or unusable; the error's sentence says what to do, or why."""


class Grammar(NamedTuple):
    """The grammar of a language, and its queries."""

    language: tree_sitter.Language
    definitions: tree_sitter.Query
    uses: tree_sitter.Query


def part_of(language: Language) -> Part:
    """Return the optional packages for a language."""
    return Part(f"reading {language.title} by syntax", ("tree-sitter", language.package.replace("_", "-")))


@cache
def load_grammar(language: Language) -> tree_sitter.Language:
    """Load a grammar without its queries, which take longer; may raise `MissingGrammarError`."""
    try:
        import tree_sitter  # noqa: PLC0415  with the first file, and it may be missing

        package = import_module(language.package)
    except ImportError:
        raise MissingGrammarError(part_of(language).lack or _BROKEN) from None
    try:
        return tree_sitter.Language(getattr(package, language.function)())
    except (AttributeError, TypeError, ValueError) as error:  # incompatible versions raise these
        raise _unusable(language, error) from None


@cache
def grammar_of(language: Language) -> Grammar:
    """Load the grammar of a language with its queries."""
    grammar = load_grammar(language)
    import tree_sitter  # noqa: PLC0415  as above

    try:
        queries = [tree_sitter.Query(grammar, text) for text in (language.definitions, language.uses)]
    except ValueError as error:
        raise _unusable(language, error) from None
    return Grammar(grammar, *queries)


def _unusable(language: Language, error: Exception) -> MissingGrammarError:
    return MissingGrammarError(f"what reads {language.title} cannot be used: {error}")
