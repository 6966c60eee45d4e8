"""The check of permissions: owners and modes of the folder, its files and secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from greenroom.runtime import StoreError
from greenroom.runtime.journal.secrets import find_secret, read_secret
from greenroom.runtime.lmdb.files import FILE_MODE, FOLDER_MODE
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, refused, warning

_TOPIC: Final = "permissions"
_OTHERS: Final = 0o077
_MOST_NAMED: Final = 3


def check(facts: Facts) -> Iterator[Finding]:
    """Report what others may read or change, and what belongs to another user."""
    found = [*_folder(facts), *_secret(facts), *_tls_key(facts)]
    yield from found
    if not any(each.level != "ok" for each in found) and facts.place.kind == "store":
        yield ok(_TOPIC, "the folder, its files and the secrets are this user's alone")


def _folder(facts: Facts) -> Iterator[Finding]:
    path = facts.place.path
    if facts.place.kind not in {"store", "no store"}:
        return
    status = path.stat()
    if os.geteuid() != status.st_uid:
        yield from _of_another(path, status.st_uid)
    if status.st_mode & _OTHERS:
        sentence = f"{path} has mode {stat.S_IMODE(status.st_mode):04o}: others may look into it"
        yield warning(_TOPIC, sentence, f"chmod {FOLDER_MODE:o} {path}")
    loose, foreign = [], []
    for entry in os.scandir(path):
        own = entry.stat(follow_symlinks=False)
        if own.st_uid != status.st_uid:
            foreign.append(entry.name)
        if own.st_mode & _OTHERS and not entry.is_symlink():
            loose.append(entry.name)
    if loose:
        yield warning(
            _TOPIC,
            f"others may read or change {_named(loose)} in {path}, if they get into it",
            f"chmod go= {' '.join(str(path / name) for name in sorted(loose))}",
        )
    if foreign:
        sentence = f"{_named(foreign)} in {path} belongs to another user than the folder"
        yield warning(_TOPIC, sentence, f"as root: chown -R {status.st_uid} {path}")


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(sorted(names)[:_MOST_NAMED]) + more


def _of_another(path: Path, user: int) -> Iterator[Finding]:
    if os.geteuid():
        sentence = f"{path} belongs to user {user}, and this is user {os.geteuid()}"
        yield error(
            _TOPIC,
            sentence,
            "run this and every server as that user",
            exit_codes.NO_ACCESS,
        )
    else:
        yield warning(
            _TOPIC,
            f"{path} belongs to user {user}, and this is root: what root makes there that user cannot open",
            f"run servers and commands as that user: sudo -u '#{user}' greenroom",
        )


def _secret(facts: Facts) -> Iterator[Finding]:
    """Read the store's secret as a server does; it refuses one that others may read."""
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
        yield refused(_TOPIC, failure, "bring the right file back from a copy")
    except OSError as failure:
        sentence = f"the store's secret cannot be read: {failure.filename}: {failure.strerror or failure}"
        yield error(_TOPIC, sentence, "name another folder of secrets with --secrets", exit_codes.NO_ACCESS)


def _tls_key(facts: Facts) -> Iterator[Finding]:
    key = facts.settings.tls_key
    if key is None:
        return
    try:
        mode = key.stat().st_mode
    except OSError as failure:
        sentence = f"the key of --tls-key {key} cannot be looked at: {failure.strerror or failure}"
        yield error(_TOPIC, sentence, "name the right file with --tls-key", exit_codes.NO_ACCESS)
        return
    if mode & _OTHERS:
        yield warning(_TOPIC, f"others may read or change the key of TLS {key}", f"chmod {FILE_MODE:o} {key}")
