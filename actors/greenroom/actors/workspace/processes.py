"""Which process keeps a workspace, told so that others of the same system see when it has died."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import Final

import psutil  # type: ignore[import-untyped]  # has no types

_SLACK_SECONDS: Final = 2.0
"""When a process began is told by a clock that may be set."""


def new_mark() -> str:
    """Return what tells a keeper of this process from any other."""
    began = psutil.Process().create_time()
    return f"{secrets.token_hex(8)} {os.getpid()} {began:.2f} {_namespace()}"


def has_died(mark: str) -> bool:
    """Return whether the process of a keeper is gone for sure; False of one of another container."""
    _, _, process = mark.partition(" ")
    number, _, rest = process.partition(" ")
    began, _, namespace = rest.partition(" ")
    if not number.isdecimal() or namespace != _namespace():
        return False
    try:
        found = psutil.Process(int(number))
        is_same = abs(found.create_time() - float(began)) <= _SLACK_SECONDS
        return not is_same or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


def _namespace() -> str:
    """Return what has the numbers of processes that we see: a container has its own."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    return os.uname().nodename
