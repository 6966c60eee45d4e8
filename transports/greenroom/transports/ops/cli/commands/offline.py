"""Commands on a stopped store; each command holds the owner's lock while it runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import trio

from greenroom.actors import (
    MemoriesVerified,
    VerifyMemories,
    encrypt_greenroom,
    repair_greenroom,
    stopped_imitations,
)
from greenroom.actors.core.audit.record import LONGEST
from greenroom.actors.core.keys import actor as keys
from greenroom.actors.sessions.passports import requests as passports
from greenroom.runtime import (
    Encryption,
    GreenroomError,
    RestoreInfo,
    StoreKeyError,
    StoreOwnedError,
    backup,
    downgrade,
    key_source,
    rekey,
    renew_secret,
    restore,
    stopped_store,
    verify,
)
from greenroom.runtime.lmdb.environment import DOWNGRADED_FORMAT, FORMAT_VERSION
from greenroom.runtime.lmdb.lock_state import lock_state
from greenroom.runtime.maintenance.survey import open_survey
from greenroom.transports.base.config.parsers import KeyLocation, key_location
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.errors import InvalidValueError
from greenroom.transports.ops.cli.support.audit_record import (
    operator,
    record,
    record_afterwards,
    record_before,
)
from greenroom.transports.ops.cli.support.open_store import encryption, open_store, runtime_options
from greenroom.transports.ops.control.client import NoOwnerError, as_json, merge_verify_results

NEEDING_SECRET: Final = (keys.KIND, passports.KIND)
_STARTING_SECONDS: Final = 5.0  # a server that starts may hold the lock this long before it listens
_RETRY_SECONDS: Final = 0.05


def run_as_owner(
    chosen: argparse.Namespace, settings: Settings, ask_owner: Callable[[], dict[str, Any]] | None
) -> dict[str, Any]:
    """Run a command directly on the folder, and return the result as JSON values.

    A server that starts holds the lock before it listens. Until it listens, this tries both ways in turn.
    """
    patience_ends = time.monotonic() + _STARTING_SECONDS
    while True:
        try:
            return _carry_out(chosen, settings)
        except StoreOwnedError:
            if ask_owner is None or time.monotonic() > patience_ends:
                raise
        time.sleep(_RETRY_SECONDS)
        with contextlib.suppress(NoOwnerError):
            return ask_owner()


async def _verify_memories(settings: Settings, rebuild: bool) -> MemoriesVerified:  # noqa: FBT001  trio passes places
    async with open_store(settings) as runtime:
        await record(runtime, operator(settings), "verify_store", rebuild=rebuild)
        return await runtime.query(VerifyMemories(rebuild=rebuild))


def _key(settings: Settings) -> Encryption:
    """Return the key for a command that requires one."""
    found = encryption(settings)
    if found is None:
        raise StoreKeyError("this command needs the store's key; name it with --encryption-key")
    return found


def _new_key(text: str) -> KeyLocation:
    try:
        return key_location(text)
    except InvalidValueError as error:
        raise GreenroomError(f"the new key cannot be read: {error}") from None


def _carry_out(chosen: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    result: object
    match chosen.command:
        case "backup":
            result = backup(settings.data, Path(chosen.destination), encryption=encryption(settings))
            record_afterwards(
                settings, "backup_store", to=str(result.path)[:LONGEST], bytes=result.file_bytes
            )
        case "verify":
            checked = verify(settings.data, encryption=encryption(settings))
            result = merge_verify_results(checked, trio.run(_verify_memories, settings, chosen.rebuild))
        case "restore":
            result = _restore(Path(chosen.source), settings)
        case "repair":
            key, now = encryption(settings), time.time_ns() // 1_000
            result = repair_greenroom(settings.data, chosen.destination, encryption=key, now=now)
        case "encrypt" | "rekey" | "downgrade" | "secret":
            result = _change(chosen, settings)
        case "stats":
            options, key = runtime_options(settings), encryption(settings)
            with stopped_store(settings.data, options, encryption=key) as store:
                result = {
                    "running": False,
                    "store": store.statistics(),
                    "imitations": stopped_imitations(store),
                }
        case _:
            raise GreenroomError(
                f"no server uses {settings.data}, and nothing is set aside in a stopped store"
            )
    found: dict[str, Any] = json.loads(as_json(result))
    return found


def _change(chosen: argparse.Namespace, settings: Settings) -> object:
    """Change a stopped store's encryption, format or secret."""
    match chosen.command:
        case "encrypt":
            result = encrypt_greenroom(settings.data, _key(settings), options=runtime_options(settings))
            if result.tables:
                record_afterwards(settings, "encrypt_store")
            return result
        case "rekey":
            place = _new_key(chosen.new_key)
            folder = rekey(settings.data, _key(settings), Encryption(key_source(str(place))))
            record_afterwards(replace(settings, encryption_key=place), "rekey_store")
            return {"folder": str(folder)}
        case "downgrade":
            return _downgrade(settings)
        case _:
            made = renew_secret(settings.data, settings.secrets, max_size=settings.max_size)
            record_afterwards(settings, "renew_secret", mark=made.mark)
            return {"folder": str(settings.data), "mark": made.mark, "path": str(made.path)}


def _downgrade(settings: Settings) -> dict[str, Any]:
    """Record it before, since opening the store changes its format again."""
    with contextlib.suppress(OSError):  # the next step says what is wrong
        state = lock_state(settings.data)
        if state is not None and state.owner is not None:
            raise StoreOwnedError(settings.data, state.owner)
    with open_survey(settings.data) as found:
        changes = found.head.format == FORMAT_VERSION
    if changes:
        record_before(settings, "downgrade_store")
    changed = downgrade(settings.data, encryption=encryption(settings), options=runtime_options(settings))
    return {"folder": str(settings.data), "format": DOWNGRADED_FORMAT, "changed": changed}


def _restore(source: Path, settings: Settings) -> RestoreInfo:
    done = restore(
        source,
        settings.data,
        encryption=encryption(settings),
        secrets=settings.secrets,
        needing=NEEDING_SECRET,
    )
    if done.has_secret:  # otherwise this makes a new secret, and the right one may still be restored
        record_afterwards(settings, "restore_store", source=str(source)[:LONGEST])
    return done
