"""Opening the folder as the settings say: owning it, or attached to the process that does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from greenroom.actors import Principal, open_greenroom
from greenroom.transports._commands._options import encryption, runtime_options
from greenroom.transports.protocol._door import NAMELESS_AGENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.actors import EmbedderChoice
    from greenroom.runtime import SharedRuntime
    from greenroom.transports._settings import Settings


_FOR_EVER: Final = 1_000_000  # days
_DRAIN_SECONDS: Final = 10.0


@asynccontextmanager
async def opened(
    settings: Settings, embedder: str | EmbedderChoice = "none", *, serves: bool = False
) -> AsyncIterator[SharedRuntime]:
    """Opens the folder, by default without an embedder, which no operator waits for.

    Args:
        settings: Those in force.
        embedder: What finds out about meaning.
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
    ) as runtime:
        yield runtime


def who(settings: Settings) -> Principal:
    """Returns who the settings say that works here."""
    return Principal(
        agent_id=settings.agent or NAMELESS_AGENT,
        agent_type=settings.agent_type,
        user=settings.user,
        projects=frozenset(settings.project) or None,
    )
