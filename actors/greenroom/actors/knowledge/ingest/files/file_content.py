"""Reading documents that others may change meanwhile: plain files, up to a size, and no links."""

from __future__ import annotations

import errno
import io
import os
from itertools import islice
from typing import Final, NamedTuple

from greenroom.actors.core.base.regular_files import (
    FILE_FLAGS,
    UnreadableFileError,
    descended,
    opened,
    opened_folder,
)
from greenroom.actors.documents import Kind, digest_of, kind_of
from greenroom.actors.ingest.identities import Identity, identity_in
from greenroom.actors.knowledge.corpora.requests.corpus_requests import IndexedFile
from greenroom.actors.knowledge.ingest.files.exclusions import EMPTY, NO_TEXT, code_reason, content_reason

MAX_TEXT: Final = 16 << 20
MAX_CONTAINER: Final = 64 << 20
"""The most bytes of a file that is read, as text or as a container of some."""
_HEAD: Final = 8_192
_CONTAINERS: Final = frozenset({"pdf", "docx"})
_LISTED_FLAGS: Final = FILE_FLAGS | os.O_DIRECTORY


def read_bounded(path: str, limit: int) -> bytes:
    """Return what a plain file holds.

    Raises:
        UnreadableFileError: it is none, or larger than ``limit``.
        OSError: it cannot be opened.
    """
    with opened(path) as file:
        return rest(file, b"", limit)


def read_document(path: str) -> tuple[Kind, bytes, int]:
    """Return the kind of a file, what it holds, and when it was changed, in microseconds.

    A file that grows or shrinks meanwhile is what was read of it.

    Raises:
        UnreadableFileError: it is no document, or too large.
        OSError: it cannot be opened or read.
    """
    with opened(path) as file:
        head = file.read(_HEAD)
        kind = kind_of(path, head)
        if (reason := content_reason(head)) is not None:
            raise UnreadableFileError(reason)
        if kind is None:
            raise UnreadableFileError(NO_TEXT)
        if kind == "code" and (reason := code_reason(path, head)) is not None:
            raise UnreadableFileError(reason)
        data = rest(file, head, MAX_CONTAINER if kind in _CONTAINERS else MAX_TEXT)
        if not data or data.isspace():
            raise UnreadableFileError(EMPTY)
        return kind, data, os.fstat(file.fileno()).st_mtime_ns // 1_000


def differs(file: IndexedFile) -> bool:
    """Return whether a file is not what was read of it; it is read only where its time alone has changed.

    Raises:
        OSError: it is gone, or cannot be opened.
    """
    try:
        with opened(file.path) as found:
            status = os.fstat(found.fileno())
            if status.st_size != file.bytes:
                return True
            if status.st_mtime_ns // 1_000 == file.modified_at:
                return False
            return digest_of(rest(found, b"", MAX_CONTAINER)) != file.digest
    except UnreadableFileError:  # a folder by now, or below a link
        return True
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link
            return True
        raise


class Entry(NamedTuple):
    """What is in a folder by one name.

    Attributes:
        is_folder: Whether it is a folder itself, and no link to one.
        is_link: Whether it is a symbolic link.
        identity: Of a folder what tells it from all others, by whatever name it is found; else None.
    """

    is_folder: bool
    is_link: bool
    identity: Identity | None


def listed(path: str, most: int) -> dict[str, Entry]:
    """Return what is in a folder, opened like a file: so nothing outside is listed in its place.

    Args:
        path: Where it is, without links.
        most: How many entries there may be; one more says that there are more.

    Raises:
        UnreadableFileError: it is no folder any more, or below a link.
        OSError: it cannot be opened.
    """
    *folders, name = ["", *(part for part in path.split("/") if part)]
    above = descended(folders[1:])
    try:
        descriptor = opened_folder(name or ".", above, _LISTED_FLAGS)
    finally:
        os.close(above)
    try:
        with os.scandir(descriptor) as entries:
            return {each.name: _entry(each) for each in islice(entries, most + 1)}
    finally:
        os.close(descriptor)


def _entry(found: os.DirEntry[str]) -> Entry:
    if not found.is_dir(follow_symlinks=False):
        return Entry(is_folder=False, is_link=found.is_symlink(), identity=None)
    try:
        own = identity_in(found.stat(follow_symlinks=False))
    except OSError:  # it is gone, or what is mounted there does not answer
        own = None
    return Entry(is_folder=True, is_link=False, identity=own)


def rest(file: io.FileIO, head: bytes, limit: int) -> bytes:
    """Return the whole file, whose beginning was read.

    Raises:
        UnreadableFileError: it is larger than ``limit``.
    """
    size = os.fstat(file.fileno()).st_size
    data = bytearray(head)
    while size <= limit and len(data) <= limit:
        piece = file.read(min(1 << 20, limit + 1 - len(data)))
        if not piece:
            return bytes(data)
        data += piece
    raise UnreadableFileError(f"it has {max(size, len(data)):,} bytes and the limit is {limit:,}")
