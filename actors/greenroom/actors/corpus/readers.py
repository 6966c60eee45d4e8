"""What reads a file here, and in which version: so it is known which files are read better now than before.

A reader is a name, our version of it, and the versions of the packages that it needs; where one of these is
missing it is a name and 0. A last ``!`` says that a file was too much for it. It is newer than another if none
of its versions is older and one is newer. So no two programs undo each other's work, and what a newer one made
stays when an older one opens the folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from typing import Final

from greenroom.actors.base.packages import Part
from greenroom.actors.documents import Kind
from greenroom.actors.documents.pdf import PDF
from greenroom.actors.entities import NAMES
from greenroom.actors.syntax import EXPRESSIONS, LANGUAGES, Language, language_named, language_of, part_of

SYNTAX: Final = 1
"""Our version of what is read of trees. Raise it when that becomes more; a language has one of its own."""
_EXTRACTORS: Final[Mapping[Kind, int]] = {}
"""Our versions of what reads other files, where that is not the first."""
_SYNTAX: Final = "syntax:"
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
    return _of_kind(kind) if language is None else _of_language(language)


def is_newer(reader: str, than: str) -> bool:
    """Return whether a reader reads more, or better, than another one; an empty one was not noted."""
    name, *versions = reader.split()
    other, *others = than.split() or [name, "1"]
    if name != other:
        return name.startswith(_SYNTAX) and not other.startswith(_SYNTAX)
    pairs = [tuple(map(_numbers, each)) for each in zip_longest(versions, others, fillvalue="")]
    return all(ours >= theirs for ours, theirs in pairs) and any(ours > theirs for ours, theirs in pairs)


def too_much_for(reader: str) -> str:
    """Return what is noted of a file that a reader of its syntax did not read."""
    return f"{reader} {_TOO_MUCH}" if reader.startswith(_SYNTAX) and not reader.endswith(_NONE) else reader


def unread_language(reader: str) -> str:
    """Return the language that a reader was to read by its syntax and did not; else empty."""
    name, *versions = reader.split() or [""]
    is_unread = name.startswith(_SYNTAX) and versions[-1:] in ([_TOO_MUCH], ["0"])
    return name.removeprefix(_SYNTAX) if is_unread else ""


def why_unread(reader: str) -> str:
    """Return why the symbols of a file are not known, and what helps; empty where they are."""
    language = language_named(unread_language(reader))
    if language is None:
        return ""
    lack = part_of(language).lack
    if reader.endswith(_NONE):
        return lack or "it was read where no parser was installed; it is read again in the background"
    return lack or f"it was too much for what reads {language.title}; it was read as text"


def missing_parts() -> list[Part]:
    """Return the parts of the default install of which packages are missing here."""
    parts = [*map(part_of, LANGUAGES), EXPRESSIONS, NAMES, PDF]
    return [each for each in parts if each.missing]


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
