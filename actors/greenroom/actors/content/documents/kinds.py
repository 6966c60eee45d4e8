"""The kinds of files that are read as documents, told by a file's name and its first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from greenroom.actors.content.documents.decode import is_binary

Kind = Literal["markdown", "text", "rst", "html", "notebook", "csv", "code", "pdf", "docx"]

_SUFFIXES: Final[Mapping[Kind, str]] = {
    "markdown": "md markdown mdown mkd mdx qmd rmd",
    "text": "txt text adoc asciidoc org tex log srt vtt",
    "rst": "rst rest",
    "html": "html htm xhtml",
    "notebook": "ipynb",
    "csv": "csv tsv",
    "code": "asm astro awk bash bat bats c cc cfg clj cmake conf cpp cs cshtml css csx cxx dart diff "
    "eex ejs el elm erb erl ex exs f90 fish fs ftl gemspec go gotmpl gradle graphql groovy h "
    "haml handlebars hbs heex hpp hs hxx inc ini j2 java jbuilder jinja jinja2 jl js json "
    "jsonl jsp jsx ksh kt kts less liquid lisp lua m mill mjs ml mustache nim nix njk patch "
    "php php5 phtml pl pm podspec properties proto ps1 pug py pyi r rake razor rb rs ru sass "
    "sbt sc scala scm scss sh slim sql svelte swift tcl tf thrift tmpl toml tpl ts tsx twig v "
    "vb vim vue xml yaml yml zig zsh",
    "pdf": "pdf",
    "docx": "docx",
}
_BY_SUFFIX: Final[Mapping[str, Kind]] = {
    suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
_CONTAINERS: Final = frozenset({"pdf", "docx"})
_LEAST: Final[Mapping[Kind, bytes]] = {"pdf": b"%PDF-", "docx": b"PK"}
_SEARCHED: Final = 1_024


def kind_by_name(name: str) -> Kind:
    """Return the kind that a file has by its name, if it is a document at all."""
    stem, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(suffix.lower(), "text") if dot and stem else "text"


def is_known_name(name: str) -> bool:
    """Return whether a file's name says that it is a document."""
    stem, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return bool(dot and stem) and suffix.lower() in _BY_SUFFIX


def kind_of(name: str, head: bytes) -> Kind | None:
    """Return the kind of a file by its name and its beginning; None if it is nothing that has a text."""
    kind = kind_by_name(name)
    if kind in _CONTAINERS:
        return kind if _LEAST[kind] in head[:_SEARCHED] else None
    return None if is_binary(head) else kind
