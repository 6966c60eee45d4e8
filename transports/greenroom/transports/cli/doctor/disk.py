"""Disk: how much is free, against where writes stop; and how near the store is to its own limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from greenroom.actors.app.administration.health import FULL, LITTLE_DISK
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning
from greenroom.transports.ops.cli.support.store_texts import size

_TOPIC: Final = "disk"
_FEW_FILES: Final = 1_000


def check(facts: Facts) -> Iterator[Finding]:
    """Tell what room there is."""
    place = next(each for each in (facts.place.path, *facts.place.path.parents) if each.exists())
    yield from _free(place, facts.settings.min_free)
    yield from _limit(facts)


def _free(place: Path, min_free: int) -> Iterator[Finding]:
    system = os.statvfs(place)
    free = system.f_bavail * system.f_frsize
    room = f"{size(free)} are free on the disk of {place}"
    remedy = "make room there; see also `--min-free` and, for what can be erased, `greenroom stats`"
    if free < min_free:
        yield error(_TOPIC, f"{room}, and below {size(min_free)} writes stop", remedy, exit_codes.NO_ACCESS)
    elif free < max(LITTLE_DISK, 2 * min_free):
        yield warning(_TOPIC, f"only {room}; below {size(min_free)} writes stop", remedy)
    else:
        yield ok(_TOPIC, f"{room}; below {size(min_free)} writes stop")
    if system.f_files and system.f_favail < _FEW_FILES:
        sentence = f"the disk of {place} has room for {system.f_favail:,} more files only"
        yield warning(_TOPIC, sentence, "remove files there, whatever their size")


def _limit(facts: Facts) -> Iterator[Finding]:
    """Compare what is in the store with how large it may grow; the owner knows, of others the file tells."""
    if facts.place.kind != "store":
        return
    store = (facts.figures or {}).get("store") or {}
    used = store.get("used_bytes", facts.place.file_bytes)
    most = store.get("map_bytes", facts.settings.max_size)
    what = f"the store has {size(used)} of the {size(most)} that --max-size lets it have"
    if used > FULL * most:
        remedy = "give a larger --max-size at the next start, or forget what is not needed"
        yield warning(_TOPIC, f"{what}; at 95 % writes stop", remedy)
    else:
        yield ok(_TOPIC, what)
