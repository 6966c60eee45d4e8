"""Which of the two systems this is, Linux or macOS, and what identifies a start of it or of a process."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def is_macos() -> bool:
    """Return whether this is macOS; it is asked at each call, so that either's side can be tested on both."""
    return sys.platform == "darwin"


def boot_id() -> str:
    """Return what the system says at this start of it and at no other, or nothing."""
    with suppress(OSError):
        if not is_macos():
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; loaded already

        return str(psutil.boot_time())
    return ""


def process_identity(pid: int) -> str:
    """Return what no other process has, before or after, in this container or another.

    Empty if there is no such process here; on macOS always, where the kernel names the holders of locks.
    """
    if is_macos():
        return ""
    try:
        # The name of the program, in parentheses, may hold anything; the 20th field after it is the start.
        start = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        return f"{boot_id()} {Path('/proc/self/ns/pid').readlink()} {pid} {start}"
    except (OSError, IndexError):
        return ""
