"""Programs in namespaces of Linux, where the system has less or worse to offer to them alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

FEW_WATCHES = ["unshare", "-Ur", "sh", "-c", 'echo 2 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh"]
"""Runs a program for which the system watches two folders and no more."""


def hanging(folder: Path) -> list[str]:
    """Return what runs a program for which a folder is on a disk that never answers."""
    mount = f"mount -i -t fuse -o fd=7,rootmode=40000,user_id=0,group_id=0 hung '{folder}'"
    return ["unshare", "-rm", "sh", "-c", f'exec 7<>/dev/fuse && {mount} && exec "$@"', "sh"]


def mounted_twice(folder: Path, at: Path) -> list[str]:
    """Return what runs a program for which a folder is at another place, too."""
    return ["unshare", "-rm", "sh", "-c", f"mount --bind '{folder}' '{at}' && exec \"$@\"", "sh"]


def may_hang() -> bool:
    """Return whether there may be such a disk."""
    with TemporaryDirectory() as folder:
        return are_there(hanging(Path(folder)))


def may_mount() -> bool:
    """Return whether something may be mounted twice."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        return are_there(mounted_twice(Path(one), Path(other)))


def are_there(command: list[str]) -> bool:
    """Return whether the system lets us have such namespaces."""
    run = [*command, "true"]
    return shutil.which("unshare") is not None and not subprocess.call(run, stderr=subprocess.DEVNULL)
