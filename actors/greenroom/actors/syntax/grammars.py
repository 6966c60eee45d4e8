"""Grammars and queries, loaded with the first file of their language."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.base.packages import Part
from greenroom.actors.syntax.languages import Language

if TYPE_CHECKING:
    import tree_sitter

_BROKEN = "the packages that read code by its syntax cannot be imported"


class MissingGrammarError(Exception):
    """A package is not installed; the sentence says what to do."""


class Grammar(NamedTuple):
    """What reads a language, and its queries."""

    language: tree_sitter.Language
    definitions: tree_sitter.Query
    uses: tree_sitter.Query


def part_of(language: Language) -> Part:
    """Return what reads a language."""
    return Part(f"reading {language.title} by syntax", ("tree-sitter", language.package.replace("_", "-")))


@cache
def loaded(language: Language) -> tree_sitter.Language:
    """Return the grammar of a language, without its queries, which take longer.

    Raises:
        MissingGrammarError: it is not installed.
    """
    try:
        import tree_sitter  # noqa: PLC0415  with the first file, and it may be missing

        package = import_module(language.package)
    except ImportError:
        raise MissingGrammarError(part_of(language).lack or _BROKEN) from None
    return tree_sitter.Language(getattr(package, language.function)())


@cache
def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language with its queries.

    Raises:
        MissingGrammarError: it is not installed.
    """
    grammar = loaded(language)
    import tree_sitter  # noqa: PLC0415  as above

    return Grammar(
        grammar, tree_sitter.Query(grammar, language.definitions), tree_sitter.Query(grammar, language.uses)
    )
