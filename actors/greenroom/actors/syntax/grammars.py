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
    """A package is not installed, or of no use; the sentence says what to do, or why."""


class Grammar(NamedTuple):
    """What reads a language, and its queries."""

    language: tree_sitter.Language
    definitions: tree_sitter.Query
    uses: tree_sitter.Query


def part_of(language: Language) -> Part:
    """Return what reads a language."""
    return Part(f"reading {language.title} by syntax", ("tree-sitter", language.package.replace("_", "-")))


@cache
def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language.

    Raises:
        MissingGrammarError: it is not installed, or of no use.
    """
    try:
        import tree_sitter  # noqa: PLC0415  with the first file, and it may be missing

        package = import_module(language.package)
    except ImportError:
        raise MissingGrammarError(part_of(language).lack or _BROKEN) from None
    try:
        loaded = tree_sitter.Language(getattr(package, language.function)())
        queries = [tree_sitter.Query(loaded, text) for text in (language.definitions, language.uses)]
    except (AttributeError, TypeError, ValueError) as error:  # of a version that fits not the others
        raise MissingGrammarError(f"what reads {language.title} cannot be used: {error}") from None
    return Grammar(loaded, *queries)
