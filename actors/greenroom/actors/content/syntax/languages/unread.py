"""Known languages without a parser: replies say that they were read as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _TITLES.get(suffix.lower(), "") if dot and stem else ""
