"""The revocation log: facts that survive restoring an older backup.

A restored older store lacks all later changes. Usually that is wanted, but a revocation must stay. The log
lies beside the store's secret, and has a line for each `Context.record_revocation`:

    checksum [number, when, until, kind, key, value]      ``<store id>.lasting``, one line each

1. A line is on disk before its commit, and so before the reply.
2. That commit stores the number of the newest line. A store with a lower number is older, or its process died
   between the two steps. Its actors get the missing lines as `Replay` before any other request, and ignore
   lines that they know.
3. A line is dropped one day after it expires, because clocks may be set back.

Anyone who can change the list can also read the secret; the checksums protect against accidents. An
incomplete last line was never acknowledged, and is dropped. Any other fault prevents opening the store.
"""

from __future__ import annotations

import logging
import os
import secrets
from binascii import crc32
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.runtime.lmdb import files
from greenroom.runtime.lmdb.write_batch import Revocation

logger = logging.getLogger(__name__)

SUFFIX: Final = ".lasting"
META_KEY: Final = b"lasting"
"""The key of the number of the newest line that the store knows."""
GRACE: Final = 86_400 * 1_000_000
LEAST_LINES: Final = 1_000
"""While the store is open, expired lines are searched for only if there are at least this many lines."""
_CHECKSUM: Final = 8


class RevocationEntry(msgspec.Struct, frozen=True, array_like=True):
    """A line of the log; times are in microseconds since 1970 UTC, ``value`` is JSON."""

    number: int
    when: int
    until: int
    kind: str
    key: str
    value: msgspec.Raw


class RevocationLog:
    """The revocation log of one store, for the process that owns it.

    Args:
        known: The number of the newest line that the store knows.
        now: The time in microseconds since 1970 UTC.

    Attributes:
        missed: The lines that the store does not know, oldest first.
        head: The number to store with the next commit; None if it is stored.

    Raises:
        StoreError: the log cannot be read, or is damaged.
    """

    def __init__(self, path: Path, known: int, now: int) -> None:
        self._path = path
        self._synced = False
        lines, is_torn = _read(path)
        last = lines[-1].number if lines else 0
        if last < known:
            logger.warning(
                "the list %s lacks lines that the store knows; restoring a backup may bring back what they "
                "revoked",
                path,
            )
        self.missed = [line for line in lines if line.number > known and not _is_expired(line, now)]
        self.head: int | None = None
        self._number = max(last, known)
        self._count = len(lines)
        self._most = max(LEAST_LINES, 2 * len(lines))
        if is_torn or 2 * sum(_is_expired(line, now) for line in lines) > len(lines):
            with _log_failure(path):
                self._rewrite(lines, now)

    def append(self, entries: Sequence[Revocation]) -> None:
        """Write lines to disk; a failure is logged, and the revocations still happen."""
        number = self._number
        text = b""
        for entry in entries:
            number += 1
            text += _render_line(RevocationEntry(number, *entry[:-1], msgspec.Raw(entry.value)))
        with _log_failure(self._path):
            if self._count >= self._most:
                self._rewrite(_read(self._path)[0], entries[-1].when)
            self._put(text)
            self._count += len(entries)
            self._number = self.head = number

    def mark_caught_up(self) -> None:
        """Record that the actors have received the missed lines."""
        self.missed.clear()
        self.head = self._number

    def mark_stored(self, head: int) -> None:
        """Record that the store knows the log up to ``head``."""
        if self.head == head:
            self.head = None

    def _put(self, text: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, files.FILE_MODE)
        try:
            size = os.fstat(descriptor).st_size
            try:
                while text:
                    text = text[os.write(descriptor, text) :]
                sync_descriptor(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
        if not self._synced:
            files.sync_folder(self._path.parent)
            self._synced = True

    def _rewrite(self, lines: Sequence[RevocationEntry], now: int) -> None:
        """Drop expired lines, except the last line: the next number derives from it."""
        kept = [line for line in lines[:-1] if not _is_expired(line, now)] + list(lines[-1:])
        part = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        files.create_file(part, b"".join(map(_render_line, kept)))
        try:
            files.sync_file(part)
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)
        files.sync_folder(self._path.parent)
        self._count = len(kept)
        self._most = max(LEAST_LINES, 2 * len(kept))


def has_revocation_log(places: Sequence[Path], store_id: str) -> bool:
    """Return whether a store has a revocation log."""
    return any((folder / f"{store_id}{SUFFIX}").exists() for folder in places)


def merge_log(path: Path, brought: bytes) -> bytes:
    """Return the log in a file with the lines of a brought one.

    Stores get all new lines as `Replay`. Lines that only one log has get new, higher numbers, unless they
    continue the log of the file: a store that knows the number may know another line by it.

    Raises:
        StoreError: a log cannot be read, or is damaged.
    """
    here, theirs = _read(path)[0], _parse(path, brought)[0]
    both = set(map(_render_line, here)) & set(map(_render_line, theirs))
    known = [line for line in here if _render_line(line) in both]
    facts = set(map(_fact, here))
    new = [line for line in theirs if _fact(line) not in facts]
    last = here[-1].number if here else 0
    if (len(known) < len(here) and len(both) < len(theirs)) or any(line.number <= last for line in new):
        number = max(last, theirs[-1].number)
        moved = [line for line in here if _render_line(line) not in both] + new
        new = [msgspec.structs.replace(line, number=number + n) for n, line in enumerate(moved, start=1)]
        here = known
    return b"".join(map(_render_line, here + new))


def _fact(line: RevocationEntry) -> tuple[int, int, str, str, bytes]:
    return line.when, line.until, line.kind, line.key, bytes(line.value)


@contextmanager
def _log_failure(path: Path) -> Iterator[None]:
    """Log an error of writing; the revocation itself still happens."""
    try:
        yield
    except (OSError, StoreError):
        logger.exception("%s cannot be written, and a restored backup may undo revocations", path)


def _is_expired(line: RevocationEntry, now: int) -> bool:
    return line.until + GRACE < now


def _read(path: Path) -> tuple[list[RevocationEntry], bool]:
    """Return the lines, and whether the last one is incomplete."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        with _log_failure(path):
            files.create_file(path)
        return [], False
    except OSError as error:
        raise files.folder_error(error, f"{path} cannot be read") from error
    return _parse(path, content)


def _parse(path: Path, content: bytes) -> tuple[list[RevocationEntry], bool]:
    *whole, tail = content.split(b"\n")
    return [_line(path, place, text) for place, text in enumerate(whole, start=1)], bool(tail)


def _line(path: Path, place: int, text: bytes) -> RevocationEntry:
    body = text[_CHECKSUM + 1 :]
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        if text[:_CHECKSUM] == _checksum(body):
            return msgspec.json.decode(body, type=RevocationEntry)
    raise StoreError(
        f"line {place} of {path} is damaged, the list of what no restored backup may bring back; put a copy "
        "of it there, or remove it and check what has come back (`greenroom keys list`) before "
        "you start the server"
    )


def _render_line(line: RevocationEntry) -> bytes:
    body = msgspec.json.encode(line)
    return _checksum(body) + b" " + body + b"\n"


def _checksum(body: bytes) -> bytes:
    return b"%08x" % crc32(body)
