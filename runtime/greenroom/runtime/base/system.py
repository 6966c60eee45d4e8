"""The operating system, identities of a boot and a process, and this program's version."""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from pathlib import Path


def is_macos() -> bool:
    """Return whether this is macOS; read at each call, so that tests can replace it."""
    return sys.platform == "darwin"


def boot_id() -> str:
    """Return the id of this boot of the system; empty if unknown."""
    with suppress(OSError):
        if not is_macos():
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
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
        start = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        return f"{boot_id()} {Path('/proc/self/ns/pid').readlink()} {pid} {start}"
    except (OSError, IndexError):
        return ""


@functools.cache
def program_version() -> str:
    """Return the installed version; ``unknown`` if the package is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes long to import

    try:
        return version("greenroom")
    except PackageNotFoundError:
        return "unknown"
