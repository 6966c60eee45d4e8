"""Read parts of a workspace's files by checked paths; follow no links.

The whole file is searched for secrets, since a line far above may show that another line is a secret. A file
that is too long to be indexed is searched only near the requested lines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.actors.content.documents import Marks, digest_of
from greenroom.actors.content.documents.decode import SourceText, is_binary, replace_unreadable
from greenroom.actors.core.base.regular_files import UnreadableFileError, open_regular_file
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.attributes import select_rules
from greenroom.actors.knowledge.ingest.files.exclusions import content_reason
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded, read_rest
from greenroom.actors.knowledge.ingest.parsing.masking import open_masking

MAX_BYTES: Final = 64 << 20
"""Maximum bytes of a file that is read in parts."""
_WHOLE: Final = 16 << 20
"""Maximum bytes of a file that is searched for secrets as a whole."""
_NEAR: Final = 256 << 10
"""Bytes searched before and after the requested lines of a longer file."""
_MAX_ATTRIBUTES: Final = 256 << 10
_HEAD: Final = 8_192
_LONGEST: Final = 4
"""Maximum bytes of a character in UTF-8."""
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_MAX_WIDE: Final = 16 << 20


class FilePart(NamedTuple):
    """Some masked lines of a file; line numbers count from 1.

    ``lines``, ``bytes`` and ``digest`` describe the whole file.
    """

    text: str
    first: int
    last: int
    lines: int
    bytes: int
    digest: str
    modified_at: int
    masked: list[int] = []  # noqa: RUF012 - a tuple's default is never changed


class _File(NamedTuple):
    """A file as it was read; UTF-16 is converted to UTF-8."""

    data: bytes
    lines: int
    bytes: int
    digest: str
    modified_at: int


async def read_part(
    path: str, first: int, last: int | None, room: int, *, is_allowed: bool = False
) -> FilePart:
    """Return as many lines of a file as fit into ``room``, but at least one.

    Args:
        path: The file's path, without links.
        first: The first line, counted from 1.
        last: The last line; None for the end of the file.
        room: The maximum number of characters.
        is_allowed: Whether the file may be read unmasked although it looks like a secret.

    Raises:
        UnreadableFileError: The file is not text, is too large, may hold secrets or has fewer lines, or the
        search for secrets took too long.
        OSError: The file cannot be opened or read.
    """
    file = await read_in_thread(_read, path, first, is_allowed)
    if is_allowed:
        return await read_in_thread(_make_part, file, Marks([], []), first, last, room)
    marks = await _find_marks(file.data, first, room)
    return await read_in_thread(_make_part, file, marks, first, last, room)


async def _find_marks(data: bytes, first: int, room: int) -> Marks:
    begin, end, before = 0, len(data), 0
    if end > _WHOLE:
        at = await read_in_thread(_find_line, data, 0, first - 1)
        begin = data.rfind(b"\n", 0, max(0, at - _NEAR)) + 1
        end = min(end, at + _LONGEST * room + _NEAR)
        before = data.count(b"\n", 0, begin)
    async with open_masking() as masking:
        found = await masking.find_marks(data[begin:end])
    places = [(first + begin, last + begin, mark) for first, last, mark in found.places]
    return Marks(places, [line + before for line in found.lines])


def _read(path: str, first: int, is_allowed: bool) -> _File:  # noqa: FBT001
    with open_regular_file(path) as file:
        head = file.read(_HEAD)
        if not is_allowed and (reason := content_reason(head)) is not None:
            raise UnreadableFileError(reason)
        if is_binary(head):
            raise UnreadableFileError(f"it is no text: there is a NUL in its first {_HEAD:,} bytes")
        data = read_rest(file, head, _MAX_WIDE if head.startswith(_WIDE) else MAX_BYTES)
        modified_at = os.fstat(file.fileno()).st_mtime_ns // 1_000
    digest, size = digest_of(data), len(data)
    if head.startswith(_WIDE):
        data = replace_unreadable(SourceText(data).text).encode()
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    if first > max(1, lines):
        raise UnreadableFileError(f"it has {lines:,} lines")
    return _File(data, lines, size, digest, modified_at)


def _make_part(file: _File, marks: Marks, first: int, last: int | None, room: int) -> FilePart:
    data, lines = marks.put_into(file.data), file.lines
    begin = _find_line(data, 0, first - 1)
    end, at = begin, first - 1
    while at < (lines if last is None else min(lines, last)):
        after = _find_line(data, end, 1)
        if at >= first and after - begin > room:
            break
        end, at = after, at + 1
    text = replace_unreadable(SourceText(data[begin:end]).text)
    hidden = [line for line in marks.lines if first <= line <= at]
    return FilePart(
        text=text[: max(room, 1)],
        first=first if lines else 0,
        last=at,
        lines=lines,
        bytes=file.bytes,
        digest=file.digest,
        modified_at=file.modified_at,
        masked=hidden,
    )


def version_key(path: str, size: int, modified_at: int) -> str:
    """Return a key that differs between versions of a file; the file is not read."""
    return f"{path}\0{size}\0{modified_at}"


def list_versions(root: str, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return version keys and sizes of files below a folder; leave out missing files."""
    found: list[tuple[str, int]] = []
    for name in names:
        path = f"{root}/{name}"
        with suppress(OSError, ValueError):
            status = Path(path).lstat()
            version = version_key(path, status.st_size, status.st_mtime_ns // 1_000)
            found.append((version, status.st_size))
    return found


def read_attributes(root: str) -> tuple[str, ...]:
    """Return what the `.gitattributes` of a folder says about who wrote its files."""
    try:
        return select_rules(read_bounded(f"{root}/.gitattributes", _MAX_ATTRIBUTES).decode(errors="replace"))
    except (OSError, UnreadableFileError):
        return ()


def compute_digest(path: str) -> str | None:
    """Return the digest of a file, or None if the file cannot be read."""
    try:
        with open_regular_file(path) as file:
            return digest_of(read_rest(file, b"", MAX_BYTES))
    except (OSError, UnreadableFileError):
        return None


def _find_line(data: bytes, at: int, lines: int) -> int:
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at
