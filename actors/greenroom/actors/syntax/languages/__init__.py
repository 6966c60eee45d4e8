"""The table of languages: one row each, in a module of its own or with its kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.actors.syntax.languages import c, go, java, javascript, python, rust
from greenroom.actors.syntax.languages.language import ImportedName as ImportedName
from greenroom.actors.syntax.languages.language import Language as Language

LANGUAGES: Final = (
    python.PYTHON,
    javascript.JAVASCRIPT,
    javascript.TYPESCRIPT,
    javascript.TSX,
    go.GO,
    rust.RUST,
    java.JAVA,
    c.C,
    c.CPP,
)
_BY_SUFFIX: Final[Mapping[str, Language]] = {
    suffix: language for language in LANGUAGES for suffix in language.suffixes.split()
}


def language_named(name: str) -> Language | None:
    """Return the language that is called so in records; None if it is none of the table."""
    return next((each for each in LANGUAGES if each.name == name), None)


def language_of(path: str) -> Language | None:
    """Return the language of a file by the end of its name; None if it is none of the table."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(suffix.lower()) if dot and stem else None
