"""Checks of the machine: free space, the clock, and limits of the system."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.actors.app.administration.health import FULL, LITTLE_DISK
from greenroom.actors.core.audit.record import JOURNAL
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning
from greenroom.transports.ops.cli.doctor.store import day, seen_of
from greenroom.transports.ops.cli.support.store_texts import size

_FEW_FILES: Final = 1_000


def check_disk(facts: Facts) -> Iterator[Finding]:
    """Report the free space."""
    place = next(each for each in (facts.place.path, *facts.place.path.parents) if each.exists())
    yield from _free(place, facts.settings.min_free)
    yield from _limit(facts)


def _free(place: Path, min_free: int) -> Iterator[Finding]:
    system = os.statvfs(place)
    free = system.f_bavail * system.f_frsize
    room = f"{size(free)} are free on the disk of {place}"
    remedy = "make room there; see also `--min-free` and, for what can be erased, `greenroom stats`"
    if free < min_free:
        yield error(f"{room}, and below {size(min_free)} writes stop", remedy)
    elif free < max(LITTLE_DISK, 2 * min_free):
        yield warning(f"only {room}; below {size(min_free)} writes stop", remedy)
    else:
        yield ok(f"{room}; below {size(min_free)} writes stop")
    if system.f_files and system.f_favail < _FEW_FILES:
        sentence = f"the disk of {place} has room for {system.f_favail:,} more files only"
        yield warning(sentence, "remove files there, whatever their size")


def _limit(facts: Facts) -> Iterator[Finding]:
    """Compare the store's size with its limit; use the owner's figures or the file's size."""
    if facts.place.kind != "store":
        return
    store = (facts.figures or {}).get("store") or {}
    used = store.get("used_bytes", facts.place.file_bytes)
    most = store.get("map_bytes", facts.settings.max_size)
    what = f"the store has {size(used)} of the {size(most)} that --max-size lets it have"
    if used > FULL * most:
        remedy = "give a larger --max-size at the next start, or forget what is not needed"
        yield warning(f"{what}; at 95 % writes stop", remedy)
    else:
        yield ok(what)


_TOLERANCE: Final = 60.0  # seconds by which times may differ
_MICROSECONDS: Final = 1_000_000
_CLOCK_REMEDY: Final = "set the clock right and keep it so, as with `timedatectl set-ntp true`"


def check_clock(facts: Facts) -> Iterator[Finding]:
    """Compare the clock with stored times."""
    ahead = {what: time for what, time in _stored_times(facts) if time > facts.now + _TOLERANCE}
    if ahead:
        what, time = max(ahead.items(), key=lambda found: found[1])
        yield warning(
            f"{what} is of {day(time)}, and the clock says {day(facts.now)}: it was set back, or ran ahead",
            f"{_CLOCK_REMEDY}; what is written until then gets the time of what is there",
        )
    else:
        yield ok(f"nothing is from the future; it is {day(facts.now)}")
    yield from _drift(facts)


def _stored_times(facts: Facts) -> Iterator[tuple[str, float]]:
    if facts.place.modified:
        yield "the store's file", facts.place.modified
    if facts.head is not None:
        for each in seen_of(facts).checkpoints(JOURNAL)[-1:]:
            yield f"audit record {each.count:,}", each.time / _MICROSECONDS


def _drift(facts: Facts) -> Iterator[Finding]:
    """Compare the owner's uptime on the wall clock with its real uptime."""
    clock = (facts.figures or {}).get("clock") or {}
    if not {"started_at", "up_seconds"} <= clock.keys():
        return
    drift = facts.now - clock["started_at"] - clock["up_seconds"]
    if abs(drift) > _TOLERANCE:
        way = "forward" if drift > 0 else "back"
        yield warning(
            f"the clock was set {way} by {abs(drift):,.0f} s since the owner of the folder was started",
            "nothing, if that set it right; else " + _CLOCK_REMEDY,
        )


_FEW_OPEN: Final = 256
_MOSTLY_USED: Final = 0.8
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
_LEAST: Final = {"max_user_watches": 8_192, "max_user_instances": 64}


def check_limits(facts: Facts) -> Iterator[Finding]:
    """Report the limits of the system, and how close the owner is to them."""
    yield from of_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], "a server started like this one")
    if facts.owner:
        yield from _of_owner(facts.owner)
    yield from of_address_space(resource.getrlimit(resource.RLIMIT_AS)[0], facts.settings.max_size)
    if sys.platform == "linux":
        yield from _watches()


def of_files(most: int, who: str) -> Iterator[Finding]:
    """Check the limit of open files; -1 means unlimited."""
    number = "any number of" if most == resource.RLIM_INFINITY else f"{most:,}"
    if most != resource.RLIM_INFINITY and most < _FEW_OPEN:
        sentence = f"{who} may have {number} files open, which is soon too few"
        yield warning(sentence, "allow more, as with `ulimit -n 4096` or LimitNOFILE= of systemd")
    else:
        yield ok(f"{who} may have {number} files open")


def _of_owner(owner: int) -> Iterator[Finding]:
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; only an owner needs it

    with suppress(psutil.Error, AttributeError, OSError):
        process = psutil.Process(owner)
        used, most = process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]
        if most > 0 and used > _MOSTLY_USED * most:
            sentence = f"process {owner}, which owns the folder, has {used:,} of {most:,} files open"
            yield warning(sentence, "allow it more at its next start, as with `ulimit -n`")


def of_address_space(most: int, max_size: int) -> Iterator[Finding]:
    """Check the limit of address space; -1 means unlimited."""
    if most != resource.RLIM_INFINITY and most < max_size:
        yield error(
            f"a process may have {size(most)} of address space, and the store reserves {size(max_size)}",
            "allow more with `ulimit -v`, or reserve less with --max-size",
        )


def _watches() -> Iterator[Finding]:
    for name, least in _LEAST.items():
        with suppress(OSError, ValueError):
            most = int((_INOTIFY / name).read_text())
            yield from of_watches(name, most, least)


def of_watches(name: str, most: int, least: int) -> Iterator[Finding]:
    """Check a kernel limit of watched folders; a sufficient limit yields no finding."""
    if most < least:
        yield warning(
            f"the kernel's fs.inotify.{name} is {most:,}: changes in large folders are noticed late",
            f"as root: sysctl fs.inotify.{name}={least * 8}",
        )
