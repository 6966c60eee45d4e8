from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.stores import put

from greenroom.runtime import Store, StoreError
from greenroom.runtime.lmdb.environment import MIN_SIZE
from greenroom.runtime.lmdb.files import is_remote, mount_of


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.promise("store.modes")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_modes_are_0700_and_0600_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with closing(Store(tmp_path / "data")) as store:
            store.commit([put(b"1", b"x")])
    finally:
        os.umask(before)
    assert mode(tmp_path / "data") == 0o700
    assert {entry.name: mode(entry) for entry in (tmp_path / "data").iterdir()} == {
        "greenroom.mdb": 0o600,
        "greenroom.mdb-lock": 0o600,
    }


@pytest.mark.promise("store.modes")
def test_modes_that_somebody_opened_are_narrowed_again(tmp_path: Path) -> None:
    Store(tmp_path / "data").close()
    (tmp_path / "data").chmod(0o755)
    for entry in (tmp_path / "data").iterdir():
        entry.chmod(0o644)
    Store(tmp_path / "data").close()
    assert mode(tmp_path / "data") == 0o700
    assert {mode(entry) for entry in (tmp_path / "data").iterdir()} == {0o600}


@pytest.mark.promise("store.modes")
def test_a_folder_of_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "letter.txt").touch()
    with pytest.raises(StoreError, match="holds other things"):
        Store(home)
    assert mode(home) == 0o755
    assert [entry.name for entry in home.iterdir()] == ["letter.txt"]
    with pytest.raises(StoreError, match="cannot hold a store"):
        Store(home / "letter.txt")


def test_installed_models_and_events_that_wait_are_no_other_things(tmp_path: Path) -> None:
    for each in ("models", "spool"):
        (tmp_path / each).mkdir()
    with closing(Store(tmp_path)) as store:
        store.commit([put(b"1", b"x")])
    assert {"models", "spool", "greenroom.mdb"} <= {entry.name for entry in tmp_path.iterdir()}


def test_a_data_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    elsewhere.chmod(0o644)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "greenroom.mdb").symlink_to(elsewhere)
    with pytest.raises(StoreError):
        Store(tmp_path / "data")
    assert mode(elsewhere) == 0o644


def test_remote_file_systems_are_known_by_the_longest_and_latest_mount() -> None:
    mounts = [("/", "ext4"), ("/home", "ext4"), ("/home/team", "nfs4"), ("/mnt", "cifs"), ("/mnt", "xfs")]
    assert mount_of(Path("/home/teammate/data"), mounts) == ("/home", "ext4")
    assert mount_of(Path("/home/team/data"), mounts) == ("/home/team", "nfs4")
    assert mount_of(Path("/mnt/data"), mounts) == ("/mnt", "xfs")
    assert all(
        map(is_remote, ["nfs", "nfs4", "cifs", "smbfs", "fuse.sshfs", "ceph", "9p", "afs", "fuse.glusterfs"])
    )
    assert not any(map(is_remote, ["ext4", "xfs", "btrfs", "zfs", "apfs", "overlay", "tmpfs", "fuseblk", ""]))


def test_a_quota_that_cannot_hold_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--max-size"):
        Store(tmp_path / "data", max_size=MIN_SIZE - 1)


def test_other_systems_are_refused_in_a_sentence() -> None:
    program = "import sys; sys.platform = 'sunos5'; import greenroom.runtime.lmdb.files"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError: Greenroom runs on Linux and macOS" in child.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="macOS limits no address space")
def test_without_address_space_the_store_says_what_it_cannot_do(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from greenroom.runtime.store.store import Store\n"
        "from greenroom.runtime import StoreError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))\n"
        "try: Store(Path(sys.argv[1]))\n"
        "except StoreError as error: print(error)\n"
    )
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("NOT TESTED: this process has a limit on its address space already")
    child = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "data"], capture_output=True, text=True, check=True
    )
    assert "--max-size" in child.stdout
