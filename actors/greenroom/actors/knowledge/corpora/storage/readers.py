"""What reads a file here, and in which version: so it is known which files are read better now than before.

A reader is a name, our version of it, and the versions of the packages that it needs; where one of these
is missing it is a name and 0. A last ``!`` says that a file was too much for it. It is newer than another if
none of its versions is older and one is newer. So no two programs undo each other's work, and what a newer
one made stays when an older one opens the folder. Files of languages that nothing reads are counted by these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Final

from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.content.documents.pdf import PDF
from greenroom.actors.core.base.optional_packages import Part
from greenroom.actors.documents import Kind
from greenroom.actors.entities import NAMES
from greenroom.actors.syntax import (
    EXPRESSIONS,
    LANGUAGES,
    Language,
    language_named,
    language_of,
    part_of,
    unread_title,
)

SYNTAX: Final = 1
"""Our version of what is read of trees. Raise it when that becomes more; a language has one of its own."""
MATCHING: Final = 1
"""Our version of how names of entities are found in texts."""
_EXTRACTORS: Final[Mapping[Kind, int]] = {"docx": 3}
"""Our versions of what reads other files, where that is not the first."""
_SYNTAX: Final = "syntax:"
_TEXT: Final = "text:"
_MARKUP: Final = "markup 2"
"""Markup in a workspace, which the first version read like a document."""
_NONE: Final = " 0"
_TOO_MUCH: Final = "!"
_NUMBER: Final = re.compile("[0-9]+")


def reader_of(path: str, kind: Kind, *, is_source: bool) -> str:
    """Return what reads a file.

    Args:
        path: Its path; the end of the name tells a language.
        kind: Its kind.
        is_source: Whether source code is read by its syntax.
    """
    language = language_of(path) if is_source else None
    if is_source and kind_by_name(path) == "html":
        return _MARKUP
    return _of_kind(kind) if language is None else _of_language(language)


def is_newer(reader: str, than: str) -> bool:
    """Return whether a reader reads more, or better, than another one; an empty one was not noted."""
    name, *versions = reader.split() or [""]
    other, *others = than.split() or [name, "1"]
    if not name or name != other:
        return name.startswith(_SYNTAX) and not other.startswith(_SYNTAX)
    pairs = [tuple(map(_numbers, each)) for each in zip_longest(versions, others, fillvalue="")]
    return all(ours >= theirs for ours, theirs in pairs) and any(ours > theirs for ours, theirs in pairs)


def too_much_for(reader: str) -> str:
    """Return what is noted of a file that a reader of its syntax did not read."""
    return f"{reader} {_TOO_MUCH}" if reader.startswith(_SYNTAX) and not reader.endswith(_NONE) else reader


def counted_reader(path: str, reader: str) -> str:
    """Return the reader of a file, or the language that its syntax is of where nothing reads that."""
    title = unread_title(path)
    return f"{_TEXT}{title}" if title else reader


def unread_by(reader: str) -> str:
    """Return the reader of a file whose syntax was not read, without its versions; else empty."""
    if reader.startswith(_TEXT):
        return reader
    name, *versions = reader.split() or [""]
    is_unread = versions[-1:] in ([_TOO_MUCH], ["0"]) and language_named(name.removeprefix(_SYNTAX))
    return f"{name} {versions[-1]}" if is_unread else ""


def why_unread(reader: str) -> str:
    """Return why the symbols of a file are not known, and what helps; empty where they are."""
    found = unread_by(reader)
    return _why([found]) if found else ""


_UNREAD: Final = "the symbols of "


def unread_sentence(counts: Mapping[str, int]) -> str:
    """Return of how many files the symbols are not known, why, and what helps; empty where of none.

    Args:
        counts: How many files by `unread_by`.
    """
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
    said: list[str] = []
    for readers in filter(None, (lacking, waiting, others, texts)):
        files = " and ".join(_files(each, counts[each]) for each in readers)
        said.append(f"{_UNREAD}{files} are not known: {_why(readers)}")
    return "; ".join(said)


def is_of_unread(reason: str) -> bool:
    """Return whether an answer is partial for files whose symbols are not known, and for nothing before."""
    return reason.startswith(_UNREAD)


def _why(readers: Sequence[str]) -> str:
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


def was_lacking(reason: str) -> bool:
    """Return whether a file failed for want of a reader that is here now, by the reason that was given."""
    return reason.startswith(PDF.does) and not PDF.missing


@cache
def matcher() -> str:
    """Return what finds names of entities here, as a reader."""
    return f"names {MATCHING} {NAMES.versions}" if NAMES.versions else f"names{_NONE}"


def lacking() -> Part | None:
    """Return what of the default install is left out here, as one part; None where nothing is."""
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
