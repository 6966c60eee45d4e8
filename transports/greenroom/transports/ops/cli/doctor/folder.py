"""The check of the folder: its state, file system, format and size."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import Final

from greenroom.runtime import older_stores
from greenroom.runtime.lmdb.environment import FORMAT_VERSION, REMEDY
from greenroom.runtime.lmdb.files import DATA_FILE, is_remote
from greenroom.runtime.maintenance.temporary_copies import left_over
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts, Place
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning
from greenroom.transports.ops.cli.support.store_texts import size

_TOPIC: Final = "folder"
_GONE_AFTERWARDS: Final = frozenset({"tmpfs", "ramfs"})
_ELSEWHERE: Final = "name another folder with --data"


def check(facts: Facts) -> Iterator[Finding]:
    """Report the state of the folder."""
    yield from _file_system(facts.place)
    match facts.place.kind:
        case "store":
            yield from _store(facts)
        case "no store" if facts.lock is None or facts.lock.left != "lost":
            yield _without(facts.place, "has no store yet")
        case "missing":
            yield _without(facts.place, "is not there yet")
        case "empty":
            yield _without(facts.place, "is empty")
        case "no folder":
            sentence = f"{facts.place.path} is no folder, or is below something that is none"
            yield error(_TOPIC, sentence, _ELSEWHERE, exit_codes.NO_ACCESS)
        case "foreign":
            sentence = f"{facts.place.path} holds other things and no Greenroom store"
            yield error(_TOPIC, sentence, _ELSEWHERE, exit_codes.NO_ACCESS)
        case "closed":
            sentence = f"{facts.place.path} cannot be looked into: {facts.place.trouble}"
            remedy = "run this as the user whose folder it is, or name another folder with --data"
            yield error(_TOPIC, sentence, remedy, exit_codes.NO_ACCESS)


def _without(place: Place, what: str) -> Finding:
    return warning(
        _TOPIC,
        f"{place.path} {what}; the first `greenroom serve` makes a store there",
        f"if there should be one, {_ELSEWHERE}",
    )


def _file_system(place: Place) -> Iterator[Finding]:
    kind = place.file_system.lower()
    if is_remote(kind):
        yield error(
            _TOPIC,
            f"{place.path} lies on {kind} (mounted at {place.mount}), where neither locks nor shared memory "
            "are sure",
            "choose a folder on a local disk with --data",
            exit_codes.NO_ACCESS,
        )
    elif kind in _GONE_AFTERWARDS:
        yield warning(
            _TOPIC,
            f"{place.path} lies on {kind} (mounted at {place.mount}), which is memory: it is empty after the "
            "next start of the system",
            "choose a folder on a disk with --data",
        )


def _store(facts: Facts) -> Iterator[Finding]:
    place = facts.place
    if (place.path / DATA_FILE).is_symlink():
        sentence = f"{place.path / DATA_FILE} is a link, so the lock of the folder would not protect it"
        yield error(_TOPIC, sentence, "put the file itself there", exit_codes.NO_ACCESS)
    if not os.access(place.path, os.W_OK | os.X_OK):
        sentence = f"{place.path} cannot be written by this user, so no server can use it"
        remedy = "run servers as the user whose folder it is, or mount its disk for writing"
        yield error(_TOPIC, sentence, remedy, exit_codes.NO_ACCESS)
    if facts.head_trouble is not None:
        yield refused(_TOPIC, facts.head_trouble, "give this user the right to read it")
    elif not place.file_bytes:
        yield error(_TOPIC, f"{place.path / DATA_FILE} is empty", REMEDY, exit_codes.DAMAGED)
    else:
        yield ok(_TOPIC, _described(facts))
    yield from _left_over(facts)


def _described(facts: Facts) -> str:
    place, head = facts.place, facts.head
    on = f" on {place.file_system}" if place.file_system else ""
    if head is None:
        return f"{place.path} is a store of {size(place.file_bytes)}{on}"
    encrypted = ", encrypted" if head.is_encrypted else ""
    return (
        f"{place.path} is a store of {size(place.file_bytes)}{on}, {head.rows:,} rows, format {head.format} "
        f"of up to {FORMAT_VERSION}{encrypted}"
    )


def _left_over(facts: Facts) -> Iterator[Finding]:
    path = facts.place.path
    if kept := older_stores(path):
        taken = sum(each.stat().st_size for each in kept)
        yield ok(
            _TOPIC,
            f"older stores that `greenroom restore` has kept: {', '.join(each.name for each in kept)} "
            f"({size(taken)}); remove them when they are not needed",
        )
    if left := [str(each) for each in left_over(path) if facts.owner is None or each.parent != path]:
        yield warning(
            _TOPIC,
            f"a command that was killed has left copies of the store, or parts of one: {', '.join(left)}",
            "the next start of a server removes what it can reach; remove the rest when no command works on "
            f"the folder: rm -r {shlex.join(left)}",
        )
