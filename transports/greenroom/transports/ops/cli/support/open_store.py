"""Opens the store as owner or attached process, with the options in the settings."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import msgspec
import trio

from greenroom.actors import EmbedderChoice, PassportOptions, open_greenroom, read_choice
from greenroom.runtime import (
    Encryption,
    RuntimeOptions,
    SharedRuntime,
    StoreKeyError,
    StoreOwnedError,
    key_source,
)
from greenroom.runtime.lmdb.files import BESIDES
from greenroom.runtime.lmdb.lock_state import lock_state
from greenroom.transports.base.config.settings import (
    EMBEDDER_KEY_VARIABLE,
    PASSPORT_SECRET_VARIABLE,
    Settings,
)
from greenroom.transports.ops.cli.output import remark

# All requests are drained before the runtime closes. Only tells and timers remain; these are stored and
# continue at the next start, so an end by a signal need not wait for them.
_SERVER_DRAIN_SECONDS: Final = 0.2
LEAST_SECRET: Final = 16
_FOR_EVER: Final = 1_000_000  # days
_COMMAND_DRAIN_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 1.0  # besides the five seconds in which an owner must accept


@asynccontextmanager
async def open_store(
    settings: Settings,
    embedder: str | EmbedderChoice = "none",
    *,
    may: Literal["create", "own", "attach"] = "own",
    serves: bool = False,
    new_secret: bool = False,
) -> AsyncIterator[SharedRuntime]:
    """Open the folder; by default without an embedder, because most commands need none.

    Args:
        settings: The settings in force.
        embedder: The embedder.
        may: As in `open_shared_runtime`. A command that writes nothing new must report a mistyped folder, and
            must not create a store there.
        serves: Whether a server opens the folder, not a command. A command does not shorten the audit log, as
            servers may keep more of it; and it waits for work that it has begun.
        new_secret: Whether a store whose secret is lost goes on with a new one.

    Raises:
        StoreOwnedError: the owner of the folder does not answer; only a command raises this.
        GreenroomError: as in `open_greenroom`.
    """
    options = runtime_options(settings)
    if not serves:
        options = msgspec.structs.replace(options, drain_seconds=_COMMAND_DRAIN_SECONDS)
    async with open_greenroom(
        settings.data,
        content_limit=settings.content_limit,
        conversation_tiers=settings.conversation_tiers,
        audit_days=settings.audit_days if serves else _FOR_EVER,
        audit_bytes=settings.audit_size if serves else None,
        embedder=embedder,
        languages=settings.language,
        reviewed_only=settings.reviewed_only,
        options=options,
        secrets=settings.secrets,
        new_secret=new_secret,
        encryption=encryption(settings),
        may=may,
    ) as runtime:
        if not serves:
            await _until_reached(runtime, settings.data, inf if settings.wait else _PATIENCE_SECONDS)
        yield runtime


async def _until_reached(runtime: SharedRuntime, folder: Path, patience: float) -> None:
    """Wait until the owner of the folder is reached."""
    with trio.move_on_after(patience) as waiting:
        await runtime.wait_until_reached()
    if waiting.cancelled_caught:
        state = lock_state(folder)
        pid = 0 if state is None else state.owner or 0
        name = f"process {pid}" if pid else "another process"
        how = f": kill -CONT {pid}" if pid else ""
        raise StoreOwnedError(
            folder,
            pid,
            f"{folder} is in use by {name}, which does not answer; --wait waits for it. If it was suspended, "
            f"continue it{how}",
        )


@asynccontextmanager
async def open_for_dry_run(
    command: str, settings: Settings, embedder: str | EmbedderChoice
) -> AsyncIterator[SharedRuntime]:
    """Open the folder for a dry run; without a store, open a temporary empty one.

    Args:
        command: The command's name, for a message that there is no store.
        settings: The settings in force.
        embedder: The embedder.

    Raises:
        GreenroomError: as in `open_greenroom`.
    """
    if _holds_something(settings.data):
        async with open_store(settings, embedder) as runtime:
            yield runtime
        return
    remark(f"greenroom {command}: there is no store at {settings.data}; this goes by an empty one")
    with TemporaryDirectory(prefix="greenroom-") as folder:
        elsewhere = replace(settings, data=Path(folder, "data"), secrets=Path(folder, "secrets"))
        async with open_store(elsewhere, embedder, may="create") as runtime:
            yield runtime


def _holds_something(folder: Path) -> bool:
    with suppress(OSError):  # opening the folder reports the problem
        return folder.exists() and not (
            folder.is_dir() and {each.name for each in folder.iterdir()} <= BESIDES
        )
    return True


def own_folders(settings: Settings) -> tuple[str, ...]:
    """Return the real paths of the program's own folders, which no one may ingest."""
    return tuple(os.path.realpath(each) for each in (settings.data, settings.secrets, settings.models))


def runtime_options(settings: Settings) -> RuntimeOptions:
    """Return the runtime options in the settings."""
    return RuntimeOptions(
        durability=settings.durability,
        max_size=settings.max_size,
        min_free=settings.min_free,
        drain_seconds=_SERVER_DRAIN_SECONDS,
    )


def encryption(settings: Settings) -> Encryption | None:
    """Return the encryption in the settings."""
    if settings.encryption_key is not None:
        return Encryption(key_source(str(settings.encryption_key)), required=settings.encrypt)
    if settings.encrypt:
        raise StoreKeyError(
            "--encrypt needs a key, which is not kept in the store: put what `openssl rand -base64 32` "
            "prints into a file that is yours alone, and name it with --encryption-key file:PATH"
        )
    return None


def embedder_choice(settings: Settings, environment: Mapping[str, str]) -> EmbedderChoice:
    """Return the embedder in the settings."""
    if str(settings.embedder).startswith("http") and settings.embedder_model is None:
        raise ValueError(f"--embedder {settings.embedder} needs the name of its model: --embedder-model NAME")
    return read_choice(
        str(settings.embedder),
        model=settings.embedder_model,
        key=environment.get(EMBEDDER_KEY_VARIABLE) or None,
        models=settings.models,
    )


def passport_options(settings: Settings, environment: Mapping[str, str]) -> PassportOptions:
    """Return the passport options in the settings."""
    shared = environment.get(PASSPORT_SECRET_VARIABLE)
    if shared and len(shared) < LEAST_SECRET:
        raise ValueError(f"{PASSPORT_SECRET_VARIABLE} has fewer than {LEAST_SECRET} characters")
    return PassportOptions(settings.trust_signer, shared.encode() if shared else None)
