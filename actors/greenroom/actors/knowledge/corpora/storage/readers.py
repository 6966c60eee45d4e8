"""Readers of files and their versions show which stored files can be read better now.

A reader is a text: a name, our version of the reader, and the versions of the packages that it needs. If a
package is missing, it is the name and 0. A ``!`` at the end marks a file that was too much for the reader. A
reader is newer than another if none of its versions is older and at least one is newer. So two programs never
undo each other's work, and documents that a newer program read stay when an older program opens the folder.
Files in languages without a reader are counted by language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Final

from greenroom.actors.content.documents import Kind
from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.content.documents.pdf import PDF
from greenroom.actors.content.syntax import (
    EXPRESSIONS,
    LANGUAGES,
    Language,
    language_named,
    language_of,
    part_of,
    unread_title,
)
from greenroom.actors.core.base.optional_packages import Part
from greenroom.actors.knowledge.entities import NAMES

SYNTAX: Final = 2
"""Version of the syntax facts. Raise it when facts are added; each language also has its own version."""
MATCHING: Final = 1
"""Version of the matching of entities' names in texts."""
_EXTRACTORS: Final[Mapping[Kind, int]] = {"docx": 3}
"""Versions of the readers of other files, if the version is not 1."""
_SYNTAX: Final = "syntax:"
_TEXT: Final = "text:"
_MARKUP: Final = "markup 2"
"""Markup in a workspace; version 1 read it like a document."""
_NONE: Final = " 0"
_TOO_MUCH: Final = "!"
_NUMBER: Final = re.compile("[0-9]+")


def get_reader(path: str, kind: Kind, *, is_source: bool) -> str:
    """Return the reader of a file."""
    language = language_of(path) if is_source else None
    if is_source and kind_by_name(path) == "html":
        return _MARKUP
    return _of_kind(kind) if language is None else _of_language(language)


def is_newer(reader: str, than: str) -> bool:
    """Return whether a reader reads more, or better, than another; empty means unknown."""
    name, *versions = reader.split() or [""]
    other, *others = than.split() or [name, "1"]
    if not name or name != other:
        return name.startswith(_SYNTAX) and not other.startswith(_SYNTAX)
    pairs = [tuple(map(_numbers, each)) for each in zip_longest(versions, others, fillvalue="")]
    return all(ours >= theirs for ours, theirs in pairs) and any(ours > theirs for ours, theirs in pairs)


def mark_too_much(reader: str) -> str:
    """Return the reader to record for a file that a parser failed to read."""
    return f"{reader} {_TOO_MUCH}" if reader.startswith(_SYNTAX) and not reader.endswith(_NONE) else reader


def reader_to_count(path: str, reader: str) -> str:
    """Return the reader under which a file is counted: a language, if nothing parses it."""
    title = unread_title(path)
    return f"{_TEXT}{title}" if title else reader


def unread_by(reader: str) -> str:
    """Return the reader of an unparsed file without versions; empty for a parsed file."""
    if reader.startswith(_TEXT):
        return reader
    name, *versions = reader.split() or [""]
    is_unread = versions[-1:] in ([_TOO_MUCH], ["0"]) and language_named(name.removeprefix(_SYNTAX))
    return f"{name} {versions[-1]}" if is_unread else ""


def explain_unread(reader: str) -> str:
    """Return why a file's symbols are unknown, and what helps; empty if known."""
    found = unread_by(reader)
    return _explain([found]) if found else ""


_UNREAD: Final = "the symbols of "


def describe_unread(counts: Mapping[str, int]) -> str:
    """Describe why files have no known symbols, and what helps; `unread_by` gives the keys."""
    lacking: list[str] = []
    waiting: list[str] = []
    others: list[str] = []
    texts: list[str] = []
    for reader in sorted(counts, key=lambda each: (-counts[each], each)):
        if reader.startswith(_TEXT):
            texts.append(reader)
            continue
        is_lacking = any(part_of(each).missing for each in _languages([reader]))
        (lacking if is_lacking else waiting if reader.endswith(_NONE) else others).append(reader)
    sentences: list[str] = []
    for readers in filter(None, (lacking, waiting, others, texts)):
        files = " and ".join(_files(each, counts[each]) for each in readers)
        sentences.append(f"{_UNREAD}{files} are not known: {_explain(readers)}")
    return "; ".join(sentences)


def is_of_unread(reason: str) -> bool:
    """Return whether a partial reply's first reason is about files without symbols."""
    return reason.startswith(_UNREAD)


def _explain(readers: Sequence[str]) -> str:
    if readers[0].startswith(_TEXT):
        return "there is no parser for them here, and they are read as text"
    languages = _languages(readers)
    if lack := _syntax_of(languages).lack:
        return lack
    if readers[0].endswith(_NONE):
        return "they were read where no parser was installed, and are read again in the background"
    titles = ", ".join(each.title for each in languages)
    return f"what reads {titles} failed, so they were read as text"


def _files(reader: str, count: int) -> str:
    title = reader.removeprefix(_TEXT) if reader.startswith(_TEXT) else _languages([reader])[0].title
    return f"{count:,} {title} file{'' if count == 1 else 's'}"


def _languages(readers: Iterable[str]) -> list[Language]:
    named = (language_named(each.removeprefix(_SYNTAX).split(" ")[0]) for each in readers)
    return [each for each in named if each is not None]


def was_missing(reason: str) -> bool:
    """Return whether a file failed because a package was missing that is installed now."""
    return reason.startswith(PDF.does) and not PDF.missing


@cache
def matcher() -> str:
    """Return the matcher of entities' names, in the form of a reader."""
    return f"names {MATCHING} {NAMES.versions}" if NAMES.versions else f"names{_NONE}"


def find_missing() -> Part | None:
    """Return the missing parts of the default installation as one; None if complete."""
    languages = [each for each in LANGUAGES if not each.extra and part_of(each).missing]
    parts = [_syntax_of(languages)] if languages else []
    parts += [each for each in (EXPRESSIONS, NAMES, PDF) if each.missing]
    packages = dict.fromkeys(package for each in parts for package in each.packages)
    return Part(", ".join(each.does for each in parts), tuple(packages)) if parts else None


def _syntax_of(languages: Sequence[Language]) -> Part:
    packages = dict.fromkeys(package for each in languages for package in part_of(each).packages)
    return Part(f"reading {', '.join(each.title for each in languages)} by syntax", tuple(packages))


@cache
def _of_kind(kind: Kind) -> str:
    if kind != "pdf":
        return f"{kind} {_EXTRACTORS.get(kind, 1)}"
    return f"pdf {_EXTRACTORS.get(kind, 1)} {PDF.versions}" if PDF.versions else f"pdf{_NONE}"


@cache
def _of_language(language: Language) -> str:
    versions = part_of(language).versions
    return f"{_SYNTAX}{language.name}" + (f" {SYNTAX}.{language.version} {versions}" if versions else _NONE)


@cache
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(version)))
