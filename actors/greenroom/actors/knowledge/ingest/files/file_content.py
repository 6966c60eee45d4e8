"""Read documents safely although they may change: only plain files of bounded size, no links."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from greenroom.actors.content.documents import MASKING, Kind, Marks, digest_of, kind_of
from greenroom.actors.content.documents.kinds import CONTAINERS
from greenroom.actors.core.base.regular_files import (
    FILE_FLAGS,
    UnreadableFileError,
    open_folder,
    open_folder_path,
    open_regular_file,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import DocumentListed, IndexedFile
from greenroom.actors.knowledge.ingest.files.exclusions import EMPTY, NO_TEXT, code_reason, content_reason
from greenroom.actors.knowledge.ingest.files.places import Identity, identity_in

MAX_TEXT: Final = 16 << 20
MAX_CONTAINER: Final = 64 << 20
"""Maximum bytes of a text file (`MAX_TEXT`) and of a container of texts."""
_HEAD: Final = 8_192
_LISTED_FLAGS: Final = FILE_FLAGS | os.O_DIRECTORY


def read_bounded(path: str, limit: int) -> bytes:
    """Return the content of a plain file.

    Raises:
        UnreadableFileError: The path is not a plain file, or the file is larger than ``limit``.
        OSError: The file cannot be opened.
    """
    with open_regular_file(path) as file:
        return read_rest(file, b"", limit)


def read_document(path: str) -> tuple[Kind, bytes, int]:
    """Return the kind of a file, its content, and its time of change in microseconds.

    If the file changes during the read, the result is the bytes that were read.

    Raises:
        UnreadableFileError: The file is not a document, or is too large.
        OSError: The file cannot be opened or read.
    """
    with open_regular_file(path) as file:
        head = file.read(_HEAD)
        kind = kind_of(path, head)
        if (reason := content_reason(head)) is not None:
            raise UnreadableFileError(reason)
        if kind is None:
            raise UnreadableFileError(NO_TEXT)
        if kind == "code" and (reason := code_reason(path, head)) is not None:
            raise UnreadableFileError(reason)
        data = read_rest(file, head, MAX_CONTAINER if kind in CONTAINERS else MAX_TEXT)
        if not data or data.isspace():
            raise UnreadableFileError(EMPTY)
        return kind, data, os.fstat(file.fileno()).st_mtime_ns // 1_000


def read_unchanged(root: str, files: Sequence[DocumentListed]) -> list[bytes | None]:
    """Return the contents of indexed files as they were indexed, with secrets masked.

    A file that is changed, whose secrets must be looked for, or that cannot be read is None. Each folder is
    opened once for neighbours, which takes a third of the time of `read_document`.
    """
    contents: list[bytes | None] = []
    opened: str | None = None
    folder = -1
    try:
        for file in files:
            path, _, name = file.path.rpartition("/")
            if path != opened:
                opened, folder = path, _reopen(folder, f"{root}/{path}")
            contents.append(_read_if_unchanged(name, folder, file))
    finally:
        _close(folder)
    return contents


def _reopen(folder: int, path: str) -> int:
    """Close a folder and open another; return -1 if that is not possible."""
    _close(folder)
    try:
        return open_folder_path([each for each in path.split("/") if each])
    except (OSError, UnreadableFileError):
        return -1


def _close(folder: int) -> None:
    if folder >= 0:
        os.close(folder)


def _read_if_unchanged(name: str, folder: int, file: DocumentListed) -> bytes | None:
    is_unknown = file.masked and not file.marks
    if folder < 0 or is_unknown or file.masking != MASKING or file.kind in CONTAINERS:
        return None
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_size, status.st_mtime_ns // 1_000) != (
            file.bytes,
            file.modified_at,
        ):
            return None
        data = os.read(descriptor, file.bytes + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return Marks(file.marks, []).put_into(data) if len(data) == file.bytes else None


def differs(file: IndexedFile) -> bool:
    """Return whether a file has changed; read it only if just its time differs.

    Raises:
        OSError: The file is gone, or cannot be opened.
    """
    try:
        with open_regular_file(file.path) as found:
            status = os.fstat(found.fileno())
            if status.st_size != file.bytes:
                return True
            if status.st_mtime_ns // 1_000 == file.modified_at:
                return False
            return digest_of(read_rest(found, b"", MAX_CONTAINER)) != file.digest
    except UnreadableFileError:  # it is now a folder, or below a link
        return True
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link
            return True
        raise


class Entry(NamedTuple):
    """An entry of a folder; a folder has an identity independent of its name."""

    is_folder: bool
    is_link: bool
    identity: Identity | None


def list_folder(path: str, most: int) -> dict[str, Entry]:
    """List a folder by its descriptor, so that no link can redirect the listing.

    If there are more than ``most`` entries, it returns one more than ``most``.

    Raises:
        UnreadableFileError: The path is no longer a folder, or is below a link.
        OSError: The folder cannot be opened.
    """
    *folders, name = ["", *(part for part in path.split("/") if part)]
    above = open_folder_path(folders[1:])
    try:
        descriptor = open_folder(name or ".", above, _LISTED_FLAGS)
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
    except OSError:  # gone, or a mount that does not reply
        own = None
    return Entry(is_folder=True, is_link=False, identity=own)


def read_rest(file: io.FileIO, head: bytes, limit: int) -> bytes:
    """Return the whole content of a file; ``head`` is the beginning, which was already read.

    Raises:
        UnreadableFileError: The file is larger than ``limit``.
    """
    size = os.fstat(file.fileno()).st_size
    data = bytearray(head)
    while size <= limit and len(data) <= limit:
        piece = file.read(min(1 << 20, limit + 1 - len(data)))
        if not piece:
            return bytes(data)
        data += piece
    raise UnreadableFileError(f"it has {max(size, len(data)):,} bytes and the limit is {limit:,}")
