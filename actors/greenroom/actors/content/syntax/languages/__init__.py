"""The table of languages: one row each, in a module of its own or with its kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.actors.content.syntax.languages import (
    bash,
    c,
    csharp,
    go,
    java,
    javascript,
    kotlin,
    lua,
    php,
    python,
    ruby,
    rust,
    scala,
    swift,
)
from greenroom.actors.content.syntax.languages.language import ImportedName as ImportedName
from greenroom.actors.content.syntax.languages.language import Language as Language
from greenroom.actors.content.syntax.languages.unread import unread_title as unread_title

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
    csharp.CSHARP,
    php.PHP,
    ruby.RUBY,
    bash.BASH,
    kotlin.KOTLIN,
    lua.LUA,
    swift.SWIFT,
    scala.SCALA,
)
NO_LANGUAGE: Final = Language("", "", "", "", "", "", "", "", lambda *_: False, lambda *_: [])
"""What is known of a language that is none of the table."""
_BY_NAME: Final[Mapping[str, Language]] = {each.name: each for each in LANGUAGES}
_BY_SUFFIX: Final[Mapping[str, Language]] = {
    suffix: language for language in LANGUAGES for suffix in language.suffixes.split()
}
_BY_FILE: Final[Mapping[str, Language]] = {
    name: language for language in LANGUAGES for name in language.names.split()
}


def language_named(name: str) -> Language | None:
    """Return the language that is called so in records; None if it is none of the table."""
    return _BY_NAME.get(name)


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name or the end of it; None if it is none of the table."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return _BY_FILE.get(name) or (_BY_SUFFIX.get(suffix.lower()) if dot and stem else None)
