"""Checks of the folder: its state, its locks, and its permissions."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from greenroom.runtime import StoreError, older_stores
from greenroom.runtime.journal.secrets import find_secret, read_secret
from greenroom.runtime.lmdb.environment import FORMAT_VERSION, REMEDY, way_back
from greenroom.runtime.lmdb.files import DATA_FILE, FILE_MODE, FOLDER_MODE, OWNER_FILE, is_remote
from greenroom.runtime.maintenance.temporary_copies import left_over
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts, Place
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning
from greenroom.transports.ops.cli.support.store_texts import size

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
            sentence = f"{facts.place.path} is no folder, or something above it in its path is no folder"
            yield error(sentence, _ELSEWHERE)
        case "foreign":
            sentence = f"{facts.place.path} holds other things and no Greenroom store"
            yield error(sentence, _ELSEWHERE)
        case "closed":
            sentence = f"{facts.place.path} cannot be looked into: {facts.place.trouble}"
            remedy = "run this as the user whose folder it is, or name another folder with --data"
            yield error(sentence, remedy)


def _without(place: Place, what: str) -> Finding:
    return warning(
        f"{place.path} {what}; the first `greenroom serve` makes a store there",
        "make one: greenroom setup --yes; without a client here: greenroom serve; or, if there should "
        f"already be a store, {_ELSEWHERE}",
    )


def _file_system(place: Place) -> Iterator[Finding]:
    kind = place.file_system.lower()
    if is_remote(kind):
        yield error(
            f"{place.path} lies on {kind} (mounted at {place.mount}), where neither locks nor shared memory "
            "are reliable",
            "choose a folder on a local disk with --data",
        )
    elif kind in _GONE_AFTERWARDS:
        yield warning(
            f"{place.path} lies on {kind} (mounted at {place.mount}), which is memory: it is empty after the "
            "next start of the system",
            "choose a folder on a disk with --data",
        )


def _store(facts: Facts) -> Iterator[Finding]:
    place = facts.place
    if (place.path / DATA_FILE).is_symlink():
        sentence = f"{place.path / DATA_FILE} is a link, so the lock of the folder would not protect it"
        real = shlex.join([os.path.realpath(place.path / DATA_FILE), str(place.path / DATA_FILE)])
        yield error(sentence, f"put the file itself there, while no server uses it: mv {real}")
    if not os.access(place.path, os.W_OK | os.X_OK):
        sentence = f"{place.path} cannot be written by this user, so no server can use it"
        remedy = "run servers as the user whose folder it is, or mount its disk for writing"
        yield error(sentence, remedy)
    if facts.head_trouble is not None:
        yield refused(facts.head_trouble, "give this user the right to read it")
    elif not place.file_bytes:
        yield error(f"{place.path / DATA_FILE} is empty", REMEDY, exit_codes.DAMAGED)
    else:
        yield ok(_described(facts))
        yield from _format(facts)
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


def _format(facts: Facts) -> Iterator[Finding]:
    """Report a format that the next start changes, or that a start has changed."""
    head = facts.head
    if head is None:
        return
    if head.format < FORMAT_VERSION and facts.owner is None:
        becomes = f"the store has format {head.format}, and the next start makes it {FORMAT_VERSION}"
        yield ok(f"{becomes}, {way_back(head.format)}")
    elif head.former is not None:
        day = datetime.fromtimestamp(head.former.changed_at, UTC)
        had = f"the store had format {head.former.version} until {day:%Y-%m-%d}, and has {head.format} now"
        yield ok(f"{had}, {way_back(head.former.version)}")


def _left_over(facts: Facts) -> Iterator[Finding]:
    path = facts.place.path
    if kept := older_stores(path):
        taken = sum(each.stat().st_size for each in kept)
        yield ok(
            f"older stores that `greenroom restore` has kept: {', '.join(each.name for each in kept)} "
            f"({size(taken)}); remove them when they are not needed"
        )
    if left := [str(each) for each in left_over(path) if facts.owner is None or each.parent != path]:
        yield warning(
            f"a command that was killed has left copies of the store, or parts of one: {', '.join(left)}",
            "the next start of a server removes what it can reach; remove the rest when no command works on "
            f"the folder: rm -r {shlex.join(left)}",
        )


_NOT_UNDERSTOOD: Final = "the request cannot be understood"
_RESTORE: Final = "bring a backup back: greenroom restore FILE"
_VERIFY: Final = "check the store: greenroom verify"


def check_locks(facts: Facts) -> Iterator[Finding]:
    """Report the owner of the folder, or how the last owner left the folder."""
    if facts.lock_trouble:
        sentence = f"who owns the folder cannot be found out: {facts.lock_trouble}"
        lock = facts.place.path / OWNER_FILE
        remove = f"remove the link, a server makes the file anew: rm {shlex.quote(str(lock))}"
        yield error(sentence, remove if lock.is_symlink() else "give this user the right to read it")
    elif facts.owner is not None:
        yield from _owner(facts, facts.owner)
    elif facts.place.kind in {"store", "no store"}:
        yield from _left(facts)


def _owner(facts: Facts, owner: int) -> Iterator[Finding]:
    name = f"process {owner}" if owner else "a process of another machine or container"
    if facts.figures is not None:
        yield ok(f"{name} owns the folder and answers{_attached(facts)}")
        relay = (facts.parts or {}).get("relay")
        if relay is not None and relay.status != "ok":
            remedy = "end the attached process that hangs; see `greenroom stats`, attached pids"
            yield warning(relay.cause, remedy)
    elif facts.owner_trouble and _is_stopped(owner):
        sentence = f"{name} owns the folder and was suspended: {facts.owner_trouble}"
        yield error(sentence, f"continue it: kill -CONT {owner}", exit_codes.OWNED)
    elif _NOT_UNDERSTOOD in facts.owner_trouble:
        sentence = f"{name} owns the folder and its version does not know this request: {facts.owner_trouble}"
        yield warning(sentence, "restart the clients that started it, so that all have one version")
    elif facts.owner_trouble:
        remedy = (
            f"end it: kill {owner}; if it still runs: kill -KILL {owner}; nothing that was answered is lost"
            if owner
            else "look for it on the other machines or containers that mount this folder"
        )
        yield error(f"{name} owns the folder: {facts.owner_trouble}", remedy, exit_codes.OWNED)
    else:
        yield warning(
            f"{name} owns the folder and does not listen: it may be a server that is starting or checks the "
            "store, a command on a stopped store, or a program with a store of its own",
            "wait until it has ended, or ask again in a moment",
        )


def _attached(facts: Facts) -> str:
    relay = (facts.figures or {}).get("relay") or {}
    pids = relay.get("attached_pids") or []
    many = "process is" if len(pids) == 1 else "processes are"
    return f"; {len(pids)} other {many} attached: {', '.join(map(str, pids))}" if pids else ""


def _is_stopped(owner: int) -> bool:
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; rarely needed

    try:
        return owner > 0 and psutil.Process(owner).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def _left(facts: Facts) -> Iterator[Finding]:
    lock = facts.lock
    match None if lock is None else lock.left:
        case "lost":
            sentence = f"the store was in {facts.place.path} when its last owner left, and is gone or empty"
            remove = f"rm {shlex.quote(str(facts.place.path / OWNER_FILE))}"
            yield error(sentence, f"{_RESTORE}; or begin anew: {remove}", exit_codes.DAMAGED)
        case "doubt":
            sentence = "the last owner found damage in the store; the next start reads all of it first"
            yield error(sentence, f"{_VERIFY}; if that finds any, {_RESTORE}", exit_codes.DAMAGED)
        case "fault":
            fault = lock.fault if lock is not None else ""
            sentence = f"the last owner crashed ({fault}), perhaps because of a damaged file"
            yield warning(sentence, _VERIFY)
        case "changed":
            sentence = "the store was changed or replaced while no process owned it"
            yield warning(sentence, _VERIFY)
        case "died":
            yield ok(
                "no process owns the folder; the last one was killed or went down with the system, so the "
                "next start checks what it has to"
            )
        case "other files":
            sentence = (
                "the store was open when its last owner ended or the folder was copied; these are not "
                "the same files, or the system was restarted since, so the next start checks its structure"
            )
            yield warning(sentence, f"start a server, or {_VERIFY}")
        case _:
            yield ok("no process owns the folder, and the last one left it in order")


_OTHERS: Final = 0o077
_MOST_NAMED: Final = 3


def check_permissions(facts: Facts) -> Iterator[Finding]:
    """Report what other users may read or change, and what belongs to another user."""
    found = [*_folder(facts), *_secret(facts), *_tls_key(facts)]
    yield from found
    if not any(each.level != "ok" for each in found) and facts.place.kind == "store":
        yield ok("the folder, its files and the secrets belong to this user; other users have no access")


def _folder(facts: Facts) -> Iterator[Finding]:
    path = facts.place.path
    if facts.place.kind not in {"store", "no store"}:
        return
    status = path.stat()
    if os.geteuid() != status.st_uid:
        yield from _of_another(path, status.st_uid)
    if status.st_mode & _OTHERS:
        sentence = f"{path} has mode {stat.S_IMODE(status.st_mode):04o}: others may look into it"
        yield warning(sentence, f"chmod {FOLDER_MODE:o} {shlex.quote(str(path))}")
    loose, foreign = [], []
    for entry in os.scandir(path):
        own = entry.stat(follow_symlinks=False)
        if own.st_uid != status.st_uid:
            foreign.append(entry.name)
        if own.st_mode & _OTHERS and not entry.is_symlink():
            loose.append(entry.name)
    if loose:
        yield warning(
            f"others may read or change {_named(loose)} in {path}, if they get into it",
            f"chmod go= {shlex.join(str(path / name) for name in sorted(loose))}",
        )
    if foreign:
        sentence = f"{_named(foreign)} in {path} belongs to another user than the folder"
        yield warning(sentence, f"as root: chown -R {status.st_uid} {shlex.quote(str(path))}")


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(sorted(names)[:_MOST_NAMED]) + more


def _of_another(path: Path, user: int) -> Iterator[Finding]:
    if os.geteuid():
        sentence = f"{path} belongs to user {user}, and this is user {os.geteuid()}"
        yield error(sentence, "run this and every server as that user")
    else:
        yield warning(
            f"{path} belongs to user {user}, and this is root: that user cannot open what root makes there",
            f"run servers and commands as that user: sudo -u '#{user}' greenroom",
        )


def _secret(facts: Facts) -> Iterator[Finding]:
    """Read the store's secret like a server, which refuses a secret that others may read."""
    places = [facts.settings.secrets, facts.place.path]
    if facts.head is None:
        return
    identity = facts.head.identity
    try:
        if identity.secret_mark:
            find_secret(places, *identity)
            return
        for place in places:
            if (file := place / f"{identity.store_id}.key").exists():
                read_secret(file)
    except StoreError as failure:
        yield refused(
            failure, "bring it: greenroom secret export FILE; then here: greenroom secret import FILE"
        )
    except OSError as failure:
        sentence = f"the store's secret cannot be read: {failure.filename}: {failure.strerror or failure}"
        yield error(sentence, "name another folder of secrets with --secrets")


def _tls_key(facts: Facts) -> Iterator[Finding]:
    key = facts.settings.tls_key
    if key is None:
        return
    try:
        mode = key.stat().st_mode
    except OSError as failure:
        sentence = f"the key of --tls-key {key} cannot be looked at: {failure.strerror or failure}"
        yield error(sentence, "name the right file with --tls-key")
        return
    if mode & _OTHERS:
        remedy = f"chmod {FILE_MODE:o} {shlex.quote(str(key))}"
        yield warning(f"others may read or change the key of TLS {key}", remedy)
