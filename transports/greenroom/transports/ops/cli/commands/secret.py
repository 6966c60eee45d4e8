"""`greenroom secret export` and `import`: carry a store's secret to another machine, encrypted."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime import Secret, StoreError
from greenroom.runtime.journal.secrets import find_secret
from greenroom.runtime.lmdb.files import create_file, sync_file, sync_folder
from greenroom.runtime.maintenance.survey import Head, open_survey
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.errors import FileAccessError
from greenroom.transports.ops.cli.output import remark, say, say_json
from greenroom.transports.ops.cli.support import secret_file
from greenroom.transports.ops.cli.support.audit_record import operator, record
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.passphrase import read_passphrase

_TRIES: Final = 5
"""The number of tries to read a store's head while a server writes it."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that was exported."""

    file: str
    store_id: str
    mark: str


async def export_secret(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Write the store's secret into a new encrypted file; return the exit code."""
    settings, path = resolved.settings, Path(chosen.file)
    _check_new(path)
    secret, store_id = _secret_of(settings)
    words = read_passphrase(twice=True, least=secret_file.LEAST_WORDS)
    async with open_store(settings) as runtime:
        await record(runtime, operator(settings), "export_secret", mark=secret.mark)
    _write(path, secret_file.seal(secret, store_id, words))
    if chosen.json:
        say_json(Exported(file=str(path), store_id=store_id, mark=secret.mark))
    else:
        say(f"{path} has the secret with the mark {secret.mark}, encrypted by your passphrase")
        remark(
            "greenroom secret: this file and its passphrase are as good as every key; remove it afterwards"
        )
    return exit_codes.OK


async def import_secret(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Put the secret from a file into the folder of secrets; return the exit code."""
    content = _read(Path(chosen.file))
    secret_file.parse(content)  # before the question
    found = secret_file.unseal(content, read_passphrase(twice=False))
    done = secret_file.put(*found, resolved.settings.secrets, resolved.settings.data)
    if chosen.json:
        say_json(done)
        return exit_codes.OK
    state = "is now" if done.is_new else "was already"
    say(f"{done.path} {state} the secret of the store {done.store_id}, with the mark {done.mark}")
    for kept in done.kept:
        remark(f"greenroom secret: {kept} was here and is left as it is")
    return exit_codes.OK


def _check_new(path: Path) -> None:
    if path.exists():
        raise FileAccessError(f"{path} exists and is not overwritten; name a new file")


def _write(path: Path, content: bytes) -> None:
    try:
        create_file(path, content)
        sync_file(path)
        sync_folder(path.parent)
    except OSError as error:
        raise FileAccessError(f"{path} cannot be written: {error.strerror or error}") from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(secret_file.MAX_BYTES)
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}") from None


def _secret_of(settings: Settings) -> tuple[Secret, str]:
    """Return the store's secret and the store's id; change nothing."""
    identity = _head(settings.data).identity
    if not identity.secret_mark:
        raise StoreError(f"the store in {settings.data} has no secret yet; the first server makes it")
    return find_secret([settings.secrets, settings.data], *identity), identity.store_id


def _head(folder: Path) -> Head:
    for _ in range(_TRIES - 1):
        with suppress(StoreError), open_survey(folder) as found:
            return found.head
    with open_survey(folder) as found:
        return found.head
