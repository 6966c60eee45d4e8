"""The store opened as the settings say: owned, or attached to; and the options that the settings give it."""

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

# Requests were drained before the runtime closes; what it still holds are tells and timers,
# which are stored and go on at the next start. So a signal need not wait for them.
_SERVER_DRAIN_SECONDS: Final = 0.2
LEAST_SECRET: Final = 16
_FOR_EVER: Final = 1_000_000  # days
_COMMAND_DRAIN_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 1.0  # after the five that opening gives an owner to take the connection


@asynccontextmanager
async def open_store(
    settings: Settings,
    embedder: str | EmbedderChoice = "none",
    *,
    may: Literal["create", "own", "attach"] = "own",
    serves: bool = False,
) -> AsyncIterator[SharedRuntime]:
    """Open the folder, by default without an embedder, which no operator waits for.

    Args:
        settings: Those in force.
        embedder: What finds out about meaning.
        may: As in `open_shared_runtime`. Where nothing new is written, a mistyped folder is to be told
            and not made a store.
        serves: Whether it is for a server, and not for one command. A command leaves the audit log as long
            as it is, since the servers may have been told to keep more, and waits for what it began.

    Raises:
        StoreOwnedError: (of a command) the process that owns the folder does not answer.
        GreenroomError: as `open_greenroom`.
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
        options=options,
        secrets=settings.secrets,
        encryption=encryption(settings),
        may=may,
    ) as runtime:
        if not serves:
            await _until_reached(runtime, settings.data, inf if settings.wait else _PATIENCE_SECONDS)
        yield runtime


async def _until_reached(runtime: SharedRuntime, folder: Path, patience: float) -> None:
    """Wait for the process that owns the folder.

    Raises:
        StoreOwnedError: it does not answer.
    """
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
            f"let it go on{how}",
        )


@asynccontextmanager
async def open_for_dry_run(
    command: str, settings: Settings, embedder: str | EmbedderChoice
) -> AsyncIterator[SharedRuntime]:
    """Open the folder for what changes nothing there; without a store, an empty one that is gone afterwards.

    Args:
        command: Remarks that there is none.
        settings: Those in force.
        embedder: What finds out about meaning.

    Raises:
        GreenroomError: as `open_greenroom`.
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
    with suppress(OSError):  # whatever is in the way is told when the folder is opened
        return folder.exists() and not (
            folder.is_dir() and {each.name for each in folder.iterdir()} <= BESIDES
        )
    return True


def own_folders(settings: Settings) -> tuple[str, ...]:
    """Return the folders that hold what is the program's own, without links: nobody has them ingested."""
    return tuple(os.path.realpath(each) for each in (settings.data, settings.secrets, settings.models))


def runtime_options(settings: Settings) -> RuntimeOptions:
    """Return the runtime options that the settings ask for."""
    return RuntimeOptions(
        durability=settings.durability,
        max_size=settings.max_size,
        min_free=settings.min_free,
        drain_seconds=_SERVER_DRAIN_SECONDS,
    )


def encryption(settings: Settings) -> Encryption | None:
    """Return the encryption that the settings ask for.

    Raises:
        StoreKeyError: It is wanted, and there is no key.
    """
    if settings.encryption_key is not None:
        return Encryption(key_source(str(settings.encryption_key)), required=settings.encrypt)
    if settings.encrypt:
        raise StoreKeyError(
            "--encrypt needs a key, which is not kept in the store: put what `openssl rand -base64 32` "
            "prints into a file that is yours alone, and name it with --encryption-key file:PATH"
        )
    return None


def embedder_choice(settings: Settings, environment: Mapping[str, str]) -> EmbedderChoice:
    """Return the embedder that the settings ask for.

    Raises:
        ValueError: They do not go together.
    """
    if str(settings.embedder).startswith("http") and settings.embedder_model is None:
        raise ValueError(f"--embedder {settings.embedder} needs the name of its model: --embedder-model NAME")
    return read_choice(
        str(settings.embedder),
        model=settings.embedder_model,
        key=environment.get(EMBEDDER_KEY_VARIABLE) or None,
        models=settings.models,
    )


def passport_options(settings: Settings, environment: Mapping[str, str]) -> PassportOptions:
    """Return the passport options that the settings ask for.

    Raises:
        ValueError: The shared secret is too short to be one.
    """
    shared = environment.get(PASSPORT_SECRET_VARIABLE)
    if shared and len(shared) < LEAST_SECRET:
        raise ValueError(f"{PASSPORT_SECRET_VARIABLE} has fewer than {LEAST_SECRET} characters")
    return PassportOptions(settings.trust_signer, shared.encode() if shared else None)
