"""Read and replace clients' files, and keep the records of our edits."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from codecs import BOM_UTF8
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.actors.core.base.default_folders import default_state_folder
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.transports.clients.setup.change import Record, SetupError

MAX_BYTES: Final = 16 << 20
"""The most bytes of a client's file; the largest files have megabytes of history."""


def read(path: Path) -> str | None:
    """Read a file's text without a byte order mark; None if the file is missing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            os.close(descriptor)
            raise SetupError(f"{path} is no plain file of at most {MAX_BYTES:,} bytes; it is left alone")
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read(MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise SetupError(f"{path} is no UTF-8 text; it is left alone") from None
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from None


def check_below(path: Path, folder: Path) -> None:
    """Check that a project's file is in the project's folder, and not behind a link."""
    real = os.path.realpath(path)
    if not Path(real).is_relative_to(os.path.realpath(folder)):
        raise SetupError(f"{path} is a link to {real}, out of the project; it is left alone")


def replace(path: Path, seen: str | None, text: str | None) -> None:
    """Replace a file's text atomically, or remove the file; keep mode, owner and links."""
    real = Path(os.path.realpath(path))
    try:
        if text is None:
            _check_unchanged(path, seen)
            real.unlink()
            return
        real.parent.mkdir(parents=True, exist_ok=True)
        _write(real, text, path, seen)
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}") from None


def record_of(path: Path, part: str = "") -> Record | None:
    """Return the record of our edit of a file or of one part, else None."""
    place = _record_path(path, part)
    text = read(place)
    try:
        return None if text is None else msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise SetupError(f"{place} is damaged; remove it, and edit {path} by hand") from None


def keep_record(path: Path, record: Record | None, part: str = "") -> None:
    """Store the record of an edit, with the original text; None deletes the record."""
    place = _record_path(path, part)
    if record is None:
        place.unlink(missing_ok=True)
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(place, msgspec.json.encode(record).decode(), place, read(place))
    except OSError as error:
        raise SetupError(f"{place} cannot be written: {error.strerror}") from None


def _record_path(path: Path, part: str) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return default_state_folder("setup") / f"{name}{part}.json"


def _check_unchanged(path: Path, seen: str | None) -> None:
    if read(path) != seen:
        raise SetupError(f"{path} was changed meanwhile, by another program; nothing was done, try again")


def _mark_of(path: Path) -> bytes:
    """Return the byte order mark of a file; empty if it has none."""
    with path.open("rb") as opened:
        return BOM_UTF8 if opened.read(len(BOM_UTF8)) == BOM_UTF8 else b""


def _write(real: Path, text: str, path: Path, seen: str | None) -> None:
    """Write a temporary file and rename it; keep a byte order mark."""
    descriptor, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            with suppress(FileNotFoundError):
                opened.write(_mark_of(real))
            opened.write(text.encode())
            with suppress(FileNotFoundError):
                old = real.stat()
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
            opened.flush()
            sync_descriptor(descriptor)
        _check_unchanged(path, seen)
        Path(temporary).replace(real)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
