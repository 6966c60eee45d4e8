"""The table of languages; each language, or group of related languages, has a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.actors.content.syntax.languages import (
    bash,
    c,
    csharp,
    go,
    javascript,
    jvm,
    lua,
    php,
    python,
    ruby,
    rust,
    swift,
)
from greenroom.actors.content.documents.kinds import suffix_of
from greenroom.actors.content.syntax.languages.language import ImportedName as ImportedName
from greenroom.actors.content.syntax.languages.language import Language as Language
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import

LANGUAGES: Final = (
    python.PYTHON,
    javascript.JAVASCRIPT,
    javascript.TYPESCRIPT,
    javascript.TSX,
    go.GO,
    rust.RUST,
    jvm.JAVA,
    c.C,
    c.CPP,
    csharp.CSHARP,
    php.PHP,
    ruby.RUBY,
    bash.BASH,
    jvm.KOTLIN,
    lua.LUA,
    swift.SWIFT,
    jvm.SCALA,
)
NO_LANGUAGE: Final = Language("", "", "", "", "", "", "", lambda *_: False, lambda *_: [])
"""The entry for a file without a language."""
_BY_NAME: Final[Mapping[str, Language]] = {each.name: each for each in LANGUAGES}
_BY_SUFFIX: Final[Mapping[str, Language]] = {
    suffix: language for language in LANGUAGES for suffix in language.suffixes.split()
}
_BY_FILE: Final[Mapping[str, Language]] = {
    name: language for language in LANGUAGES for name in language.names.split()
}


def language_named(name: str) -> Language | None:
    """Return a language by its name in records; None if unknown."""
    return _BY_NAME.get(name)


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name or extension; None if unknown."""
    return _BY_FILE.get(path.rpartition("/")[2]) or _BY_SUFFIX.get(suffix_of(path))


def resolve_import(imported: Import, importer: str, language: str, places: Places) -> list[str]:
    """Return the files that an import means, by the rules of its language.

    In most languages this is one file; for a package of Go, or a whole package of Java, it is several. There
    is none if the target is outside the workspace, or needs more than paths and manifests: search paths,
    build results, re-exports.
    """
    found = (language_named(language) or NO_LANGUAGE).resolve(imported, importer, places)
    return [path for path in found if path != importer]


_SUFFIXES: Final[Mapping[str, str]] = {
    "Assembly": "asm",
    "AWK": "awk",
    "Batch": "bat cmd",
    "Clojure": "clj cljs cljc",
    "Dart": "dart",
    "Elixir": "ex exs",
    "Elm": "elm",
    "Erlang": "erl",
    "F#": "fs fsx",
    "Fish": "fish",
    "Fortran": "f90 f95",
    "GraphQL": "graphql gql",
    "Groovy": "groovy gradle",
    "Haskell": "hs",
    "Julia": "jl",
    "Lisp": "lisp el scm",
    "Nim": "nim",
    "Nix": "nix",
    "Objective-C": "m mm",
    "OCaml": "ml mli",
    "Perl": "pl pm",
    "PowerShell": "ps1 psm1",
    "Protocol Buffers": "proto",
    "R": "r",
    "SQL": "sql",
    "Svelte": "svelte",
    "Tcl": "tcl",
    "Terraform": "tf",
    "Thrift": "thrift",
    "Visual Basic": "vb",
    "Vim script": "vim",
    "Vue": "vue",
    "Zig": "zig",
}
_TITLES: Final[Mapping[str, str]] = {
    suffix: title for title, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}


def unread_title(path: str) -> str:
    """Return the title of a file's language if it has no parser; else empty."""
    return _TITLES.get(suffix_of(path), "")
