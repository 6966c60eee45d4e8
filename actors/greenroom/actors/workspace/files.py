"""Reading a workspace's files in parts, in a thread. What may be read was checked; no link is followed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.actors.content.documents.decode import SourceText, is_binary, shown
from greenroom.actors.core.base.regular_files import UnreadableFileError, opened
from greenroom.actors.documents import digest_of
from greenroom.actors.knowledge.ingest.files.exclusions import content_reason
from greenroom.actors.knowledge.ingest.files.file_content import rest

MAX_BYTES: Final = 64 << 20
"""The most bytes of a file that is read in parts."""
_HEAD: Final = 8_192
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_MAX_WIDE: Final = 16 << 20


class FilePart(NamedTuple):
    """Some lines of a file.

    Attributes:
        text: What they say.
        first: The first one, counted from 1; 0 in an empty file.
        last: The last one.
        lines: How many the file has.
        bytes: How many it has of these.
        digest: Of all its bytes.
        modified_at: When it was changed, in microseconds.
    """

    text: str
    first: int
    last: int
    lines: int
    bytes: int
    digest: str
    modified_at: int


def read_part(path: str, first: int, last: int | None, room: int, *, is_allowed: bool = False) -> FilePart:
    """Return some lines of a file, as many as there is room for, one at least.

    Args:
        path: Where it is, without links.
        first: The first line, counted from 1.
        last: The last one; None for that of the file.
        room: How many characters there may be.
        is_allowed: Whether it is read though it may hold secrets.

    Raises:
        UnreadableFileError: it is no text, too large, may hold secrets or has fewer lines.
        OSError: it cannot be opened or read.
    """
    with opened(path) as file:
        head = file.read(_HEAD)
        if not is_allowed and (reason := content_reason(head)) is not None:
            raise UnreadableFileError(reason)
        if is_binary(head):
            raise UnreadableFileError(f"it is no text: there is a NUL in its first {_HEAD:,} bytes")
        data = rest(file, head, _MAX_WIDE if head.startswith(_WIDE) else MAX_BYTES)
        modified_at = os.fstat(file.fileno()).st_mtime_ns // 1_000
    digest, size = digest_of(data), len(data)
    if head.startswith(_WIDE):
        data = shown(SourceText(data).text).encode()
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    if first > max(1, lines):
        raise UnreadableFileError(f"it has {lines:,} lines")
    begin = _start_of(data, 0, first - 1)
    end, at = begin, first - 1
    while at < (lines if last is None else min(lines, last)):
        after = _start_of(data, end, 1)
        if at >= first and after - begin > room:
            break
        end, at = after, at + 1
    text = shown(SourceText(data[begin:end]).text)
    return FilePart(text[: max(room, 1)], first if lines else 0, at, lines, size, digest, modified_at)


def version_of(path: str, size: int, modified_at: int) -> str:
    """Return what tells a version of a file from others, without reading it."""
    return f"{path}\0{size}\0{modified_at}"


def versions_at(root: str, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the version and the size of files below a folder; those that are gone are left out."""
    found: list[tuple[str, int]] = []
    for name in names:
        path = f"{root}/{name}"
        with suppress(OSError, ValueError):
            status = Path(path).lstat()
            version = version_of(path, status.st_size, status.st_mtime_ns // 1_000)
            found.append((version, status.st_size))
    return found


def digest_at(path: str) -> str | None:
    """Return what tells a file's bytes from others; None where it cannot be read."""
    try:
        with opened(path) as file:
            return digest_of(rest(file, b"", MAX_BYTES))
    except (OSError, UnreadableFileError):
        return None


def _start_of(data: bytes, at: int, lines: int) -> int:
    """Return where the line begins that is so many after one that begins at a place."""
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at
