"""Folders of Markdown files, such as an Obsidian vault: a memory for each section that has text.

The file's path without its ending, and the heading, become the key (``notes.atlas.Open questions``); a
file is a conversation, its sections in their order. YAML before the text (*front matter*) gives ``tags``,
``created``, ``updated``, ``author``, ``importance``, ``kind``, ``scope``, ``expires``, ``key``; what else
it says is kept as metadata. Without it the file's own time counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from greenroom.actors.base.yaml_errors import MALFORMED
from greenroom.actors.transfer.normalize import (
    KINDS,
    MAX_DIGITS,
    SourceError,
    SourceLine,
    fraction_of,
    key_of,
    name_of,
    read_whole,
    source_line,
    tags_of,
    time_of,
    too_long,
)

SUFFIXES: Final = frozenset({".md", ".markdown", ".mdown"})
MAX_FRONT_MATTER: Final = 65_536
MAX_FRONT_MATTER_DEPTH: Final = 50
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_:]*)")
_SCOPES: Final = frozenset({"private", "shared", "public"})


class _Field(NamedTuple):
    """A field that the sections of a file have in common.

    Attributes:
        names: What the front matter calls it; the first one that is there counts.
        read: Returns its value, None for what is none.
        kept_as: Under which name what is none is kept as metadata; None: `source_line` keeps it.
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
    "created_by": _Field(("author", "created_by"), name_of),
    "expires_at": _Field(("expires", "expires_at"), time_of),
}
_KEY: Final = ("key", "id")
_TAGS: Final = ("tags", "tag")
_CREATED: Final = ("created", "created_at", "date")
_KNOWN: Final = frozenset(
    {*_KEY, *_TAGS, *_CREATED, *(name for field in _FIELDS.values() for name in field.names)}
)


class _Section(NamedTuple):
    """A heading with what is below it, up to the next one; `headings` has those above it, too."""

    headings: tuple[str, ...]
    text: str
    has_body: bool


def files(path: Path) -> list[Path]:
    """Return the Markdown files of a folder by name, without what is hidden; of a file itself.

    A link out of the folder is not followed: who filled the folder may not be who imports it.
    """
    if not path.is_dir():
        return [path]
    return [each for each in _candidates(path) if _is_inside(each, path)]


def left_out(path: Path) -> list[str]:
    """Return the Markdown files of a folder that are links out of it."""
    if not path.is_dir():
        return []
    return [each.relative_to(path).as_posix() for each in _candidates(path) if not _is_inside(each, path)]


def _candidates(path: Path) -> list[Path]:
    return sorted(
        each
        for each in path.rglob("*")
        if each.suffix.lower() in SUFFIXES
        and each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )


def _is_inside(file: Path, folder: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve())


def read(path: Path) -> Iterator[SourceLine]:
    """Yield the sections of all files."""
    passed = 0
    taken: dict[str, int] = {}
    for file in files(path):
        name = file.name if file == path else file.relative_to(path).as_posix()
        with file.open("rb") as opened:
            data = read_whole(opened, name)
        passed += len(data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None
        about, body = _front_matter(name, text)
        created = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        yield from _sections_of(name, body, about, created, passed, taken)


def _front_matter(name: str, text: str) -> tuple[dict[str, Any], str]:
    """Return what the YAML before a text says, and the text; a text that begins with a rule has none."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text
    import yaml  # noqa: PLC0415  only who imports Markdown waits for it

    try:
        _check_front_matter(name, found[1])
        about = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, *MALFORMED) as error:
        raise SourceError(f"{name}: its front matter is no YAML: {error}") from None
    if about is not None and not isinstance(about, dict):  # another rule further down
        return {}, text
    return {str(key): value for key, value in (about or {}).items()}, text[found.end() :]


def _check_front_matter(name: str, text: str) -> None:
    """Refuse what would cost too much to load, by its events alone."""
    import yaml  # noqa: PLC0415  as above

    if len(text) > MAX_FRONT_MATTER:
        raise SourceError(f"{name}: its front matter is too large")
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.ScalarEvent) and (event.tag or not event.style):
            _check_integer(name, event.value)
        if depth > MAX_FRONT_MATTER_DEPTH or isinstance(event, yaml.AliasEvent):
            raise SourceError(f"{name}: its front matter is nested too deeply, or refers to itself")


def _check_integer(name: str, text: str) -> None:
    if len(text) > MAX_DIGITS and _INTEGER.fullmatch(text):
        raise SourceError(f"{name}: its front matter cannot be read: {too_long(len(text))}")


def _sections_of(
    name: str, body: str, about: dict[str, Any], changed: datetime, passed: int, taken: dict[str, int]
) -> Iterator[SourceLine]:
    sections = [section for section in _sections(body) if section.has_body]
    base = _base_key(name, about)
    fields, rest = _common(about, changed)
    for position, section in enumerate(sections):
        heading = section.headings[-1] if section.headings else ""
        key = base if len(sections) == 1 or not heading else key_of(base, heading)
        metadata = {"path": name, **rest}
        if section.headings:
            metadata["heading"] = " > ".join(section.headings)
        yield source_line(
            f"{name}, section {position + 1}",
            passed,
            key=_untaken(key, taken),
            content=section.text,
            conversation_id=name_of(name),
            position=position,
            metadata=metadata,
            **fields,
        )


def _base_key(name: str, about: dict[str, Any]) -> str:
    """Return the key of a file: what its front matter gives, or else its path without the ending."""
    given = _first(about, _KEY)
    return key_of(name.rpartition(".")[0].replace("/", ".") if given is None or given == "" else given)


def _untaken(key: str, taken: dict[str, int]) -> str:
    """Return a key that no section before had, and count it."""
    taken[key] = taken.get(key, 0) + 1
    return key if taken[key] == 1 else key_of(f"{key[:240]}~{taken[key]}")


def _common(about: dict[str, Any], changed: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that a file's front matter gives all its sections, and what else it says."""
    fields: dict[str, Any] = {"tags": tags_of(*(about.get(name) for name in _TAGS))}
    rest = {key: _plain(value) for key, value in about.items() if key not in _KNOWN}
    for name, field in _FIELDS.items():
        given = _first(about, field.names)
        fields[name] = field.read(given)
        if fields[name] is None and field.kept_as is not None and given is not None:
            rest[field.kept_as] = _plain(given)
    created = time_of(_first(about, _CREATED))
    if created is not None and not isinstance(created, datetime):
        rest["created"] = _plain(created)
    return {**fields, "created_at": created if isinstance(created, datetime) else changed}, rest


def _first(about: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((about[name] for name in names if name in about), None)


def _sections(body: str) -> Iterator[_Section]:
    """Cut a text before each of its headings; what stands in a fenced block of code is none."""
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
    """Return what YAML made as JSON has it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | set | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value
