"""Reading files that others may change meanwhile: plain ones, up to a size, and no links."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Final

from greenroom.actors.documents import Kind, digest_of, kind_of
from greenroom.actors.ingest.exclusions import EMPTY, code_reason, content_reason
from greenroom.actors.schemas.corpus import IndexedFile

MAX_TEXT: Final = 16 << 20
MAX_CONTAINER: Final = 64 << 20
"""The most bytes of a file that is read, as text or as a container of some."""
_HEAD: Final = 8_192
_CONTAINERS: Final = frozenset({"pdf", "docx"})
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS: Final = (
    getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
"""A folder on the way need not be readable, where the system can open it for nothing but that."""


class UnreadableFileError(Exception):
    """A file is not read; the sentence says why, beginning with "it"."""


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
            raise UnreadableFileError("it is no text")
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


def opened(path: str) -> io.FileIO:
    """Open a plain file from the root down, each folder in the one above it: so none can become a link.

    Raises:
        UnreadableFileError: it is none.
        OSError: it cannot be opened.
    """
    *folders, name = (part for part in path.split("/") if part)
    above = os.open("/", _FOLDER_FLAGS)
    try:
        for each in folders:
            below = _opened_folder(each, above)
            os.close(above)
            above = below
        descriptor = os.open(name, _FLAGS, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError("it is no plain file")
    return io.FileIO(descriptor)


def _opened_folder(name: str, above: int) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=above)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        raise UnreadableFileError("a folder above it is a symbolic link") from None


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
