"""The table of file kinds: the extensions and first bytes of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from greenroom.actors.content.documents.decode import is_binary

Kind = Literal["markdown", "text", "rst", "html", "notebook", "csv", "code", "pdf", "docx"]

_EXTENSIONS: Final[Mapping[Kind, str]] = {
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
    suffix: kind for kind, suffixes in _EXTENSIONS.items() for suffix in suffixes.split()
}
CONTAINERS: Final[Mapping[str, bytes]] = {"pdf": b"%PDF-", "docx": b"PK"}
"""Kinds that hold text in a binary format, with bytes near the file's beginning. All other kinds are text."""
PROSE: Final = frozenset({"markdown", "rst", "html", "notebook"})
"""Kinds of text with headings, written for people."""
DATA: Final = frozenset(["cfg", "conf", "ini", "json", "jsonl", "properties", "toml", "xml", "yaml", "yml"])
"""Extensions that are of kind code but hold data and settings, not programs."""
_SNIFFED: Final = 1_024


class UnreadableDocumentError(Exception):
    """A file has no readable text; the error's sentence begins with "it" and says why."""


class MissingReaderError(UnreadableDocumentError):
    """The reader for a kind is not installed; the error's sentence says what to do."""


def suffix_of(path: str) -> str:
    """Return a file's extension in small letters; empty for names such as ``.profile``."""
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return suffix.lower() if stem else ""


def kind_by_name(name: str) -> Kind:
    """Return the kind of a file by its name; ``text`` by default."""
    return _BY_SUFFIX.get(suffix_of(name), "text")


def is_known_name(name: str) -> bool:
    """Return whether a file's extension is in the table."""
    return suffix_of(name) in _BY_SUFFIX


def kind_of(name: str, head: bytes) -> Kind | None:
    """Return a file's kind by its name and beginning; None if it has no text."""
    kind = kind_by_name(name)
    if kind in CONTAINERS:
        return kind if CONTAINERS[kind] in head[:_SNIFFED] else None
    return None if is_binary(head) else kind
