"""Opening the folder as the settings say: owning it, or attached to the process that does."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from greenroom.actors import Principal, open_greenroom
from greenroom.transports.auth.caller import NAMELESS_AGENT
from greenroom.transports.cli.commands.runtime_options import encryption, runtime_options
from greenroom.transports.cli.output import remark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.actors import EmbedderChoice
    from greenroom.runtime import SharedRuntime
    from greenroom.transports.config.settings import Settings


_FOR_EVER: Final = 1_000_000  # days
_DRAIN_SECONDS: Final = 10.0


@asynccontextmanager
async def open_store(
    settings: Settings,
    embedder: str | EmbedderChoice = "none",
    *,
    may: Literal["create", "own", "attach"] = "own",
    serves: bool = False,
) -> AsyncIterator[SharedRuntime]:
    """Opens the folder, by default without an embedder, which no operator waits for.

    Args:
        settings: Those in force.
        embedder: What finds out about meaning.
        may: As in `open_shared_runtime`. Where nothing new is written, a mistyped folder is to be told
            and not made a store.
        serves: Whether it is for a server, and not for one command. A command leaves the audit log as long
            as it is, since the servers may have been told to keep more, and waits for what it began.

    Raises:
        GreenroomError: as `open_greenroom`.
    """
    options = runtime_options(settings)
    if not serves:
        options = msgspec.structs.replace(options, drain_seconds=_DRAIN_SECONDS)
    async with open_greenroom(
        settings.data,
        content_limit=settings.content_limit,
        audit_days=settings.audit_days if serves else _FOR_EVER,
        audit_bytes=settings.audit_size if serves else None,
        embedder=embedder,
        languages=settings.language,
        options=options,
        secrets=settings.secrets,
        encryption=encryption(settings),
        may=may,
    ) as runtime:
        yield runtime


@asynccontextmanager
async def open_for_dry_run(
    command: str, settings: Settings, embedder: str | EmbedderChoice
) -> AsyncIterator[SharedRuntime]:
    """Opens the folder for what changes nothing there; without a store, an empty one that is gone afterwards.

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
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    return True


def principal_of(settings: Settings) -> Principal:
    """Returns who the settings say that works here."""
    return Principal(
        agent_id=settings.agent or NAMELESS_AGENT,
        agent_type=settings.agent_type,
        user=settings.user,
        projects=frozenset(settings.project) or None,
    )
