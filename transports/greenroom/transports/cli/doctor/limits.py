"""Limits of the system: open files, watched folders, address space."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning
from greenroom.transports.ops.cli.support.store_texts import size

_TOPIC: Final = "limits"
_FEW_OPEN: Final = 256
_MOSTLY_USED: Final = 0.8
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
_LEAST: Final = {"max_user_watches": 8_192, "max_user_instances": 64}


def check(facts: Facts) -> Iterator[Finding]:
    """Tell the limits, and how near the owner is to them."""
    yield from of_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], "a server started like this one")
    if facts.owner:
        yield from _of_owner(facts.owner)
    yield from of_address_space(resource.getrlimit(resource.RLIMIT_AS)[0], facts.settings.max_size)
    if sys.platform == "linux":
        yield from _watches()


def of_files(most: int, who: str) -> Iterator[Finding]:
    """Judge how many files a process may have open; -1 stands for any number."""
    said = "any number of" if most == resource.RLIM_INFINITY else f"{most:,}"
    if most != resource.RLIM_INFINITY and most < _FEW_OPEN:
        sentence = f"{who} may have {said} files open, which is soon too few"
        yield warning(_TOPIC, sentence, "allow more, as with `ulimit -n 4096` or LimitNOFILE= of systemd")
    else:
        yield ok(_TOPIC, f"{who} may have {said} files open")


def _of_owner(owner: int) -> Iterator[Finding]:
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; only an owner needs it

    with suppress(psutil.Error, AttributeError, OSError):
        process = psutil.Process(owner)
        used, most = process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]
        if most > 0 and used > _MOSTLY_USED * most:
            sentence = f"process {owner}, which owns the folder, has {used:,} of {most:,} files open"
            yield warning(_TOPIC, sentence, "allow it more at its next start, as with `ulimit -n`")


def of_address_space(most: int, max_size: int) -> Iterator[Finding]:
    """Judge how much address space a process may have; -1 stands for any."""
    if most != resource.RLIM_INFINITY and most < max_size:
        yield error(
            _TOPIC,
            f"a process may have {size(most)} of address space, and the store reserves {size(max_size)}",
            "allow more with `ulimit -v`, or reserve less with --max-size",
            exit_codes.NO_ACCESS,
        )


def _watches() -> Iterator[Finding]:
    for name, least in _LEAST.items():
        with suppress(OSError, ValueError):
            most = int((_INOTIFY / name).read_text())
            yield from of_watches(name, most, least)


def of_watches(name: str, most: int, least: int) -> Iterator[Finding]:
    """Judge a limit of the kernel on watched folders; more than the least is no finding."""
    if most < least:
        yield warning(
            _TOPIC,
            f"the kernel's fs.inotify.{name} is {most:,}: changes in large folders are noticed late",
            f"as root: sysctl fs.inotify.{name}={least * 8}",
        )
