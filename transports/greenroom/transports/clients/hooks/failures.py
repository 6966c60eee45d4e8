"""Failures of hooks, reported at the next session's start and to the operator.

Each failure is a line of a file in the spool, or in the user's state folder if the spool cannot be written. A
full file replaces the older one, so there are at most two files.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime.base.errors import GreenroomError
from greenroom.runtime.lmdb.files import FILE_MODE, FOLDER_MODE, SPOOL_FOLDER
from greenroom.transports.clients.hooks.client_json import replace_surrogates
from greenroom.transports.clients.hooks.spool_folder import (
    FOLDER_FLAGS,
    READ_FLAGS,
    closed_after,
    open_spool_folder,
)

_FILE: Final = "failures.jsonl"
_OLDER: Final = "failures.older.jsonl"
_MAX_BYTES: Final = 64 << 10
_MAX_SENTENCE: Final = 500
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Failures:
    """The recorded failures of a folder's hooks."""

    count: int = 0
    last_at: datetime | None = None
    last_hook: str = ""
    last_sentence: str = ""
    untold: int = 0  # how many of these no session start has reported


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failure. Without a sentence, it marks that all failures before it were reported."""

    at: datetime
    hook: str = ""
    sentence: str = ""


def note_failure(folder: Path | str | None, hook: str, sentence: str) -> None:
    """Record a failure of a hook. This raises no errors: no caller could handle them."""
    name, sentence = (_clean(each) for each in (hook, sentence))
    _append(None if folder is None else Path(folder), _Line(at=_now(), hook=name, sentence=sentence))


def _clean(text: str) -> str:
    """Remove secrets and private parts, which a name or option may contain."""
    try:
        from greenroom.actors.content.secrets.detect import without_secrets  # noqa: PLC0415 - needed only after a failure
        from greenroom.actors.content.text.private_parts import cut_private  # noqa: PLC0415 - as above

        shown = cut_private(replace_surrogates(text))[: 4 * _MAX_SENTENCE]
        return without_secrets(shown)[0][:_MAX_SENTENCE]
    except Exception:  # noqa: BLE001 - such as a broken installation; no one could handle it
        return "the failure cannot be shown, because secrets in it cannot be removed"


def note_reported(folder: Path) -> None:
    """Record that a session start has reported the failures. This raises no errors."""
    _append(folder, _Line(at=_now()))


def failures_of(folder: Path) -> Failures:
    """Return the recorded failures; unreadable lines are skipped."""
    found = sorted((line for place in _places(folder) for line in _lines(*place)), key=lambda line: line.at)
    failures = [line for line in found if line.sentence]
    reported = max((line.at for line in found if not line.sentence), default=None)
    if not failures:
        return Failures()
    last = failures[-1]
    untold = sum(reported is None or line.at > reported for line in failures)
    return Failures(len(failures), last.at, last.hook, last.sentence, untold)


def failure_files(folder: Path) -> list[Path]:
    """Return the files with failures of a folder's hooks."""
    found = (
        (place / SPOOL_FOLDER if has_spool else place) / name
        for place, has_spool in _places(folder)
        for name in (_OLDER, _FILE)
    )
    return [path for path in found if path.exists()]


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _append(folder: Path | None, line: _Line) -> None:
    data = b"\n" + msgspec.json.encode(line) + b"\n"  # a line cut by a full disk stays separate
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
    with closed_after(os.open(_FILE, _WRITE_FLAGS, FILE_MODE, dir_fd=above)) as descriptor:
        if os.write(descriptor, data) < len(data):
            raise OSError("the line is not whole")


def _places(folder: Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield the folders for failures, the preferred one first, and whether each has a spool."""
    if folder is not None:
        yield folder, True
    from greenroom.actors.core.base.default_folders import default_state_folder  # noqa: PLC0415 - needed only after a failure, and once in a session

    states = default_state_folder("hooks")
    if folder is not None:
        yield states / hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16], False
    yield states, False


def _opened(folder: Path, has_spool: bool, *, create: bool = False) -> AbstractContextManager[int]:  # noqa: FBT001 - one of a pair from `_places`
    if has_spool:
        return closed_after(open_spool_folder(folder, create=create))
    if create:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    return closed_after(os.open(folder, FOLDER_FLAGS))


def _lines(folder: Path, has_spool: bool) -> list[_Line]:  # noqa: FBT001 - one of a pair from `_places`
    found: list[_Line] = []
    with suppress(OSError, GreenroomError), _opened(folder, has_spool) as above:
        for name in (_OLDER, _FILE):
            for line in _read(name, above).splitlines():
                with suppress(msgspec.DecodeError, UnicodeDecodeError):  # cut by a full disk
                    found.append(msgspec.json.decode(line, type=_Line))
    return found


def _read(name: str, above: int) -> bytes:
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=above)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return file.read(2 * _MAX_BYTES)
