"""Which of the two systems this is, Linux or macOS, and what tells one start of it from another."""

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
