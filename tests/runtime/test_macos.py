"""How macOS is asked for what it does otherwise than Linux: the system's calls are played, by its headers.

They are <sys/fcntl.h>, <sys/un.h> and <sys/ucred.h> of XNU, its kernel. The other tests ask the real system,
whichever it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import platformdirs
import psutil  # type: ignore[import-untyped]  # has no types
import pytest
from platformdirs.macos import MacOS
from support.stores import put

from greenroom.actors.core.base import default_folders
from greenroom.runtime import Store, StoreFailedError
from greenroom.runtime.base.full_sync import F_FULLFSYNC, sync_descriptor
from greenroom.runtime.base.system import boot_id
from greenroom.runtime.base.unix_socket import peer_user
from greenroom.runtime.lmdb.record_lock import lock_holder


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")


class Kernel:
    """Answers `fcntl` and `fsync` as macOS does, and notes what it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: bytes | OSError = b"") -> None:
        self.asked: list[tuple[object, ...]] = []
        self._answer = answer
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fcntl(self, *asked: object) -> bytes:
        self.asked.append(("fcntl", *asked))
        if isinstance(self._answer, OSError):
            raise self._answer
        return self._answer

    def _fsync(self, descriptor: int) -> None:
        self.asked.append(("fsync", descriptor))


@pytest.mark.usefixtures("macos")
def test_a_file_is_synced_through_the_cache_of_its_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    sync_descriptor(7)
    assert kernel.asked == [("fcntl", 7, 51)]


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("unknown", [errno.ENOTSUP, errno.ENOTTY])
def test_a_disk_that_knows_no_full_sync_is_synced_as_it_can(
    monkeypatch: pytest.MonkeyPatch, unknown: int
) -> None:
    kernel = Kernel(monkeypatch, OSError(unknown, os.strerror(unknown)))
    sync_descriptor(7)
    assert kernel.asked == [("fcntl", 7, 51), ("fsync", 7)]


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC, errno.EBADF])
def test_a_full_sync_that_failed_is_never_made_good_by_a_lesser_one(
    monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    kernel = Kernel(monkeypatch, OSError(fault, os.strerror(fault)))
    with pytest.raises(OSError, match=os.strerror(fault)):
        sync_descriptor(7)
    assert kernel.asked == [("fcntl", 7, 51)]


def test_linux_is_asked_for_fsync_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    kernel = Kernel(monkeypatch)
    sync_descriptor(7)
    assert kernel.asked == [("fsync", 7)]


class Environment:
    """A real environment of LMDB that tells of each sync, and lets one fail."""

    def __init__(self, real: lmdb.Environment) -> None:
        self.syncs = 0
        self.fault: lmdb.Error | None = None
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def sync(self, force: bool) -> None:  # noqa: FBT001  LMDB's own
        assert force
        self.syncs += 1
        if self.fault is not None:
            raise self.fault
        self._real.sync(force)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Environment]:
    """The environments that are opened from now on."""
    environments: list[Environment] = []
    real_open = lmdb.open

    def open_told(*arguments: Any, **options: Any) -> Environment:
        environments.append(Environment(real_open(*arguments, **options)))
        return environments[-1]

    monkeypatch.setattr(lmdb, "open", open_told)
    return environments


@pytest.mark.promise("store.durability")
@pytest.mark.parametrize(
    ("system", "syncs", "each"), [("darwin", True, 1), ("darwin", False, 0), ("linux", True, 0)]
)
def test_each_durable_commit_is_followed_by_a_full_sync_on_macos(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: list[Environment],
    system: str,
    syncs: bool,  # noqa: FBT001  a case of the table
    each: int,
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    Kernel(monkeypatch)
    with closing(Store(tmp_path / "data", sync=syncs)) as store:
        (environment,) = opened
        for commits in range(1, 4):
            store.commit([put(b"%d" % commits, b"x")])
            assert environment.syncs == commits * each


@pytest.mark.promise("runtime.fatal-commit")
@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC])
def test_a_commit_whose_full_sync_failed_is_never_answered_and_no_other_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[Environment], fault: int
) -> None:
    Kernel(monkeypatch)
    with closing(Store(tmp_path / "data")) as store:
        opened[0].fault = lmdb.Error(os.strerror(fault))
        with pytest.raises(StoreFailedError, match=os.strerror(fault)):
            store.commit([put(b"1", b"x")])
        opened[0].fault = None
        with pytest.raises(StoreFailedError, match=os.strerror(fault)):
            store.commit([put(b"2", b"x")])


class Connection:
    """A connected socket of macOS, as far as its options go."""

    def __init__(self, answer: bytes) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self._answer = answer

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        self.asked.append((level, option, size))
        return self._answer


def xucred(user: int, *, version: int = 0) -> bytes:
    """`struct xucred` with two groups: 32 bits, 32 bits, 16 bits, 16 of padding, 16 times 32 bits."""
    return struct.pack("=IIhh", version, user, 2, 0) + struct.pack("=16I", 20, 12, *[0] * 14)


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("user", [0, 501, 0xFFFF_FFFE])
def test_the_user_at_the_other_end_of_a_socket(user: int) -> None:
    connection: Any = Connection(xucred(user))
    assert peer_user(connection) == user
    assert connection.asked == [(0, 1, 76)]


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize("answer", [xucred(0, version=1), xucred(0)[:12], xucred(0) + b"\0" * 4, b""])
def test_an_answer_in_another_layout_is_nobody_not_the_superuser(answer: bytes) -> None:
    connection: Any = Connection(answer)
    assert peer_user(connection) is None


class Held(NamedTuple):
    """What macOS answers: `struct flock` has start, length, process, type, whence."""

    answer: bytes
    holder: int | None


@pytest.mark.usefixtures("macos")
@pytest.mark.parametrize(
    "held",
    [
        Held(struct.pack("=qqihh", 0, 0, 4321, 3, 0), 4321),  # F_WRLCK
        Held(struct.pack("=qqihh", 0, 0, 0, 2, 0), None),  # F_UNLCK
        Held(struct.pack("=qqihh", 0, 0, -1, 3, 0), 0),  # of somebody on another machine
    ],
)
def test_who_holds_the_lock_of_a_file(monkeypatch: pytest.MonkeyPatch, held: Held) -> None:
    kernel = Kernel(monkeypatch, held.answer)
    assert lock_holder(5) == held.holder
    f_getlk, f_rdlck, all_of_it = 7, 1, struct.pack("=qqi", 0, 0, 0)
    assert kernel.asked == [("fcntl", 5, f_getlk, all_of_it + struct.pack("=hh", f_rdlck, 0))]


@pytest.mark.usefixtures("macos")
def test_a_start_of_the_system_is_told_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "boot_time", lambda: 1_764_000_000.0)
    assert boot_id() == "1764000000.0"


def test_the_numbers_are_those_of_this_system_where_it_is_macos() -> None:
    if sys.platform == "darwin":
        assert fcntl.F_FULLFSYNC == F_FULLFSYNC
        assert (fcntl.F_GETLK, fcntl.F_RDLCK, fcntl.F_UNLCK, fcntl.F_WRLCK) == (7, 1, 2, 3)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_user(ours) == os.geteuid()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that macOS has for what programs keep, in a home folder of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GREENROOM_MODELS", raising=False)
    monkeypatch.setattr(platformdirs, "PlatformDirs", MacOS)
    return tmp_path / "Library/Application Support/greenroom"


def test_each_file_has_its_place_in_the_one_folder_of_macos_and_the_store_one_for_itself(home: Path) -> None:
    assert default_folders.default_data_folder() == home / "data"
    assert default_folders.default_models_folder() == home / "models"
    assert default_folders.default_secrets_folder() == home / "secrets"
    assert default_folders.default_config_file() == home / "config.toml"
    assert default_folders.default_state_folder("hooks") == home / "hooks"


def test_a_store_in_that_folder_itself_is_found_there(home: Path) -> None:
    Store(home).close()
    assert default_folders.default_data_folder() == home


def test_whatever_is_there_first_the_store_is_made(home: Path) -> None:
    for folder in (
        default_folders.default_secrets_folder(),
        default_folders.default_models_folder(),
        default_folders.default_state_folder("setup"),
    ):
        folder.mkdir(parents=True)
    default_folders.default_config_file().touch()
    with closing(Store(default_folders.default_data_folder())) as store:
        assert store.folder == home / "data"
