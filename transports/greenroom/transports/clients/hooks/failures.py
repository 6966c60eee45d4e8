"""Failures of hooks, noted where somebody is told of them: the next session's start, and the operator.

They are lines in a file in the spool, or where that cannot be written in the user's folder of states. Beyond
a size the file becomes the older one of two, and what that was before is gone.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime.base.errors import GreenroomError
from greenroom.runtime.lmdb.files import FILE_MODE, FOLDER_MODE
from greenroom.transports.clients.hooks.spool_folder import FOLDER_FLAGS, READ_FLAGS, open_spool_folder
from greenroom.transports.hooks.loose_json import without_halves

_FILE: Final = "failures.jsonl"
_OLDER: Final = "failures.older.jsonl"
_MAX_BYTES: Final = 64 << 10
_MAX_SENTENCE: Final = 500
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Failures:
    """Failures of the hooks of a folder, as far as they are kept.

    Attributes:
        count: How many.
        last_at: When the last one was.
        last_hook: Which hook that was.
        last_sentence: What happened.
        untold: How many no session was told of at its start.
    """

    count: int = 0
    last_at: datetime | None = None
    last_hook: str = ""
    last_sentence: str = ""
    untold: int = 0


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure, or, without a sentence, that all before it were told."""

    at: datetime
    hook: str = ""
    sentence: str = ""


def note_failure(folder: Path | None, hook: str, sentence: str) -> None:
    """Note that a hook failed. This raises nothing: nobody is left to tell.

    Args:
        folder: The data folder; None if it is not known, for then the sentence says more than that.
        hook: The hook's name, or what was given for it.
        sentence: What happened.
    """
    said = [_clean(each) for each in (hook, sentence)]
    _append(folder, _Line(at=_now(), hook=said[0], sentence=said[1]))


def _clean(text: str) -> str:
    """Return a text without secrets, which the client or its user may have put into a name or an option."""
    try:
        from greenroom.actors.content.secrets.detect import without_secrets  # noqa: PLC0415 - where something failed

        return without_secrets(without_halves(text[: 4 * _MAX_SENTENCE]))[0][:_MAX_SENTENCE]
    except Exception:  # noqa: BLE001 - of a broken installation, say; nobody is left to tell
        return "it cannot be said what, since secrets in it cannot be told"


def note_told(folder: Path) -> None:
    """Note that a session was told of the failures at its start. This raises nothing."""
    _append(folder, _Line(at=_now()))


def failures_of(folder: Path) -> Failures:
    """Return what failed; what cannot be read is no failure."""
    found = sorted((line for place in _places(folder) for line in _lines(*place)), key=lambda line: line.at)
    failures = [line for line in found if line.sentence]
    told = max((line.at for line in found if not line.sentence), default=None)
    if not failures:
        return Failures()
    last = failures[-1]
    untold = sum(told is None or line.at > told for line in failures)
    return Failures(len(failures), last.at, last.hook, last.sentence, untold)


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _append(folder: Path | None, line: _Line) -> None:
    data = b"\n" + msgspec.json.encode(line) + b"\n"  # what a disk had no room for stays a line of its own
    for place in _places(folder):
        try:
            with _opened(*place, create=True) as above:
                _append_in(above, data)
        except (OSError, GreenroomError):
            continue
        return


def _append_in(above: int, data: bytes) -> None:
    with suppress(FileNotFoundError):
        if os.stat(_FILE, dir_fd=above, follow_symlinks=False).st_size > _MAX_BYTES:
            os.rename(_FILE, _OLDER, src_dir_fd=above, dst_dir_fd=above)
    descriptor = os.open(_FILE, _WRITE_FLAGS, FILE_MODE, dir_fd=above)
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError("the line is not whole")
    finally:
        os.close(descriptor)


def _places(folder: Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield the folders in which failures may be noted, the better one first, and whether it has a spool."""
    if folder is not None:
        yield folder, True
    from greenroom.actors.core.base.default_folders import default_states  # noqa: PLC0415 - where something failed, and once in a session

    states = default_states("hooks")
    if folder is not None:
        yield states / hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16], False
    yield states, False


@contextmanager
def _opened(folder: Path, has_spool: bool, *, create: bool = False) -> Iterator[int]:  # noqa: FBT001 - of a pair
    if has_spool:
        descriptor = open_spool_folder(folder, create=create)
    else:
        if create:
            folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(folder, FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lines(folder: Path, has_spool: bool) -> list[_Line]:  # noqa: FBT001 - of a pair
    found: list[_Line] = []
    with suppress(OSError, GreenroomError), _opened(folder, has_spool) as above:
        for name in (_OLDER, _FILE):
            for line in _read(name, above).splitlines():
                with suppress(msgspec.DecodeError, UnicodeDecodeError):  # of a disk that was full
                    found.append(msgspec.json.decode(line, type=_Line))
    return found


def _read(name: str, above: int) -> bytes:
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=above)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return file.read(2 * _MAX_BYTES)
