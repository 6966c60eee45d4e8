"""The operating system, identities of a boot and a process, and this program's version."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False  # see `lazy`
if TYPE_CHECKING:
    from typing import Final


_VERSION: Final = "Version: "


def is_macos() -> bool:
    """Return whether this is macOS; read at each call, so that tests can replace it."""
    return sys.platform == "darwin"


def boot_id() -> str:
    """Return the id of this boot of the system; empty if unknown."""
    with suppress(OSError):
        if not is_macos():
            with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - `pathlib` takes long to import
                return file.read().strip()
        import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loaded already

        return str(psutil.boot_time())
    return ""


def process_identity(pid: int) -> str:
    """Return an identity that no other process ever has, even in another container.

    Empty if there is no such process here, and on macOS, where the kernel itself names lock holders.
    """
    if is_macos():
        return ""
    try:
        # The program's name, in parentheses, may contain anything; the 20th field after it is the start time.
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # noqa: PTH123 - as above, and below
            start = file.read().rpartition(")")[2].split()[19]
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')} {pid} {start}"  # noqa: PTH115
    except (OSError, IndexError):
        return ""


@functools.cache
def program_version() -> str:
    """Return the installed version; ``unknown`` if the package is not installed."""
    for place in sys.path:
        with suppress(OSError, ValueError, StopIteration):
            (found,) = filter(_is_ours, os.listdir(place or "."))  # noqa: PTH208
            with open(os.path.join(place, found, "METADATA"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
                return next(line[len(_VERSION) :].strip() for line in file if line.startswith(_VERSION))
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes 40 ms to import

    try:
        return version("greenroom")
    except PackageNotFoundError:
        return "unknown"


def _is_ours(name: str) -> bool:
    return name.startswith("greenroom-") and name.endswith(".dist-info")
