"""Grammars and queries, loaded with the first file of their language. An extra has their packages."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.syntax.languages import Language

if TYPE_CHECKING:
    import tree_sitter

MISSING = "reading code by its syntax takes tree-sitter and its grammars: pip install 'greenroom[code]'"


class MissingGrammarError(Exception):
    """A package of the extra is not installed; the sentence says what to do."""


class Grammar(NamedTuple):
    """What reads a language, and its queries."""

    language: tree_sitter.Language
    definitions: tree_sitter.Query
    uses: tree_sitter.Query


@cache
def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language.

    Raises:
        MissingGrammarError: it is not installed.
    """
    try:
        import tree_sitter  # noqa: PLC0415  of an extra

        package = import_module(language.package)
    except ImportError:
        raise MissingGrammarError(MISSING) from None
    loaded = tree_sitter.Language(getattr(package, language.function)())
    return Grammar(
        loaded, tree_sitter.Query(loaded, language.definitions), tree_sitter.Query(loaded, language.uses)
    )
