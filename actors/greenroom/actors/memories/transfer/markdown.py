"""Folders of Markdown files, such as an Obsidian vault: a memory per section.

The file's path without its suffix, and the heading, become the key (``notes.atlas.Open questions``). The
sections of a file form a conversation. YAML before the text (*front matter*) may have ``tags``, ``created``,
``updated``, ``author``, ``importance``, ``kind``, ``scope``, ``expires``, ``key``; other values become
metadata. Without ``created`` the file's own time counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.memories.transfer.front_matter import FrontMatter, cut, read_front_matter
from greenroom.actors.memories.transfer.normalize import (
    KINDS,
    MAX_WHOLE_BYTES,
    BadRecord,
    Item,
    RecordError,
    Remark,
    SourceLine,
    as_text,
    fraction_of,
    key_of,
    name_of,
    source_line,
    tags_of,
    time_of,
)
from greenroom.actors.memories.transfer.text_files import GUESSED, text_of

NO_TEXT: Final = "it has no text"
_BINARY: Final = "it is binary: a text has no NUL bytes, unless it is UTF-16 with its mark"
COLON_AS_TEXT: Final = "a value with a colon and without quotes was read as text"
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_SCOPES: Final = frozenset({"private", "shared", "public"})


class _Field(NamedTuple):
    """A field that the sections of a file have in common.

    Attributes:
        names: Its names in front matter; the first that is present counts.
        kept_as: The metadata's name for an invalid value; None if `source_line` adds it to the metadata.
    """

    names: tuple[str, ...]
    read: Callable[[Any], Any]
    kept_as: str | None = None


def _one_of(words: frozenset[str]) -> Callable[[Any], str | None]:
    return lambda given: given if isinstance(given, str) and given in words else None


_FIELDS: Final = {
    "kind": _Field(("kind", "type"), _one_of(KINDS), "type"),
    "scope": _Field(("scope",), _one_of(_SCOPES), "scope"),
    "importance": _Field(("importance",), fraction_of, "importance"),
    "updated_at": _Field(("updated", "updated_at", "modified"), time_of),
    "created_by": _Field(("author", "created_by"), name_of, "author"),
    "expires_at": _Field(("expires", "expires_at"), time_of),
}
_KEY: Final = ("key", "id")
_TAGS: Final = ("tags", "tag")
_CREATED: Final = ("created", "created_at", "date")
_KNOWN: Final = frozenset(
    {*_KEY, *_TAGS, *_CREATED, *(name for field in _FIELDS.values() for name in field.names)}
)


class _Section(NamedTuple):
    """A heading with its text; `headings` also has the headings above it."""

    headings: tuple[str, ...]
    text: str
    has_body: bool


def files(path: Path) -> list[Path]:
    """Return the visible Markdown files of a folder, sorted; for a file, only the file.

    A link out of the folder is not followed, since someone else may have filled the folder.
    """
    return _list(path)[0]


def _list(path: Path) -> tuple[list[Path], list[BadRecord]]:
    """Return the files, and what was left out of the folder."""
    if not path.is_dir():
        return [path], []
    found: list[Path] = []
    left_out: list[BadRecord] = []

    def note(error: OSError) -> None:
        name = Path(error.filename).relative_to(path).as_posix()
        left_out.append(BadRecord(name, f"it cannot be read: {error.strerror}", 0))

    for folder, folders, names in os.walk(path, onerror=note):
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if not name.startswith(".") and name not in linked]
        for each in (Path(folder, name) for name in (*linked, *names) if not name.startswith(".")):
            is_note = kind_by_name(each.name) == "markdown" and each.is_file()
            if not is_note and each.name not in linked:
                continue
            if not each.resolve().is_relative_to(path.resolve()):
                left_out.append(
                    BadRecord(each.relative_to(path).as_posix(), f"it is a link out of {path}", 0)
                )
            elif is_note:
                found.append(each)
    return sorted(found), sorted(left_out)


def read(path: Path) -> Iterator[Item]:
    """Yield the sections of all files."""
    passed = 0
    taken: dict[str, int] = {}
    found, left_out = _list(path)
    yield from left_out
    for file in found:
        name = file.name if file == path else file.relative_to(path).as_posix()
        try:
            data, changed = _read_file(file)
            text, is_guess = text_of(data)
        except RecordError as error:
            yield BadRecord(name, str(error), passed)
            continue
        except OSError as error:
            yield BadRecord(name, f"it cannot be read: {error.strerror}", passed)
            continue
        if "\0" in text:
            yield BadRecord(name, _BINARY, passed)
            continue
        passed += len(data)
        if is_guess:
            yield Remark(name, GUESSED, passed)
        yield from _file(name, text, changed, passed, taken)


def _read_file(file: Path) -> tuple[bytes, datetime]:
    """Return the content of a file, and when it was changed."""
    with file.open("rb") as opened:
        data = opened.read(MAX_WHOLE_BYTES + 1)
        if len(data) > MAX_WHOLE_BYTES:
            raise RecordError(f"it has more than {MAX_WHOLE_BYTES:,} bytes; split it")
        return data, datetime.fromtimestamp(os.fstat(opened.fileno()).st_mtime, UTC)


def _file(name: str, text: str, changed: datetime, passed: int, taken: dict[str, int]) -> Iterator[Item]:
    front, body = cut(text)
    try:
        about = read_front_matter(front)
    except RecordError as error:
        # Count the keys of this file, so that the keys of other files do not change when it is corrected.
        for _ in _sections_of(name, body, {}, changed, passed, taken):
            pass
        yield BadRecord(name, str(error), passed)
        return
    if about is None:  # two horizontal rules (---) with text between them
        about, body = FrontMatter({}, []), text
    for line in about.quoted:
        yield Remark(f"{name}, line {line}", COLON_AS_TEXT, passed)
    count = 0
    for made in _sections_of(name, body, about.values, changed, passed, taken):
        count += 1
        yield made
    if not count:
        yield BadRecord(name, NO_TEXT, passed)


def _sections_of(
    name: str, body: str, about: dict[str, Any], changed: datetime, passed: int, taken: dict[str, int]
) -> Iterator[SourceLine | BadRecord]:
    sections = [section for section in _sections(body) if section.has_body]
    base = key_of(name_of(_first(about, _KEY)) or name.rpartition(".")[0].replace("/", "."))
    fields, rest = _common(about, changed)
    for position, section in enumerate(sections):
        heading = section.headings[-1] if section.headings else ""
        key = base if len(sections) == 1 or not heading else key_of(base, heading)
        metadata = {"path": name, **rest}
        if section.headings:
            metadata["heading"] = " > ".join(section.headings)
        place = f"{name}, section {position + 1}"
        taken[key] = taken.get(key, 0) + 1
        if taken[key] > 1:
            key = key_of(f"{key[:240]}~{taken[key]}")
        try:
            yield source_line(
                place,
                passed,
                key=key,
                content=section.text,
                conversation_id=name,
                position=position,
                metadata=metadata,
                **fields,
            )
        except RecordError as error:
            yield BadRecord(place, str(error), passed)


def _common(about: dict[str, Any], changed: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields from front matter that all sections share, and the other values."""
    fields: dict[str, Any] = {"tags": tags_of(*(about.get(name) for name in _TAGS))}
    rest = {key: _plain(value) for key, value in about.items() if key not in _KNOWN}
    for name, field in _FIELDS.items():
        given = _first(about, field.names)
        fields[name] = field.read(given)
        if fields[name] is None and field.kept_as is not None and given is not None:
            rest[field.kept_as] = _plain(given)
    key = _first(about, _KEY)
    if key is not None and name_of(key) is None:
        rest["key"] = _plain(key)
    created = time_of(_first(about, _CREATED))
    if created is not None and not isinstance(created, datetime):
        rest["created"] = _plain(created)
    return {**fields, "created_at": created if isinstance(created, datetime) else changed}, rest


def _first(about: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((about[name] for name in names if name in about), None)


def _sections(body: str) -> Iterator[_Section]:
    """Cut a text before each of its headings, except those in fenced code."""
    above: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in body.splitlines(keepends=True):
        marks = _FENCE.match(line)
        if marks is not None and (not fence or (marks[1][0] == fence[0] and len(marks[1]) >= len(fence))):
            fence = "" if fence else marks[1]
        found = None if fence or marks else _HEADING.match(line.rstrip("\r\n"))
        if found is not None:
            yield _section(above, lines)
            above = [(level, text) for level, text in above if level < len(found[1])]
            above.append((len(found[1]), found[2]))
            lines = []
        lines.append(line)
    yield _section(above, lines)


def _section(above: list[tuple[int, str]], lines: list[str]) -> _Section:
    text = "".join(lines).strip()
    begins_with_heading = bool(lines) and bool(above) and _HEADING.match(lines[0].rstrip("\r\n")) is not None
    has_body = any(line.strip() for line in lines[1 if begins_with_heading else 0 :])
    return _Section(tuple(heading for _, heading in above if heading), text, has_body)


def _plain(value: Any) -> Any:
    """Convert a value from YAML to one that JSON has."""
    if isinstance(value, dict):
        return {as_text(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | set | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    is_json = value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
    return value if is_json else as_text(value)
