"""Opening the folder as the settings say: owning it, or attached to the process that does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from greenroom.actors import Principal, open_greenroom
from greenroom.transports._commands._options import encryption, runtime_options
from greenroom.transports.protocol._door import NAMELESS_AGENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.actors import EmbedderChoice
    from greenroom.runtime import SharedRuntime
    from greenroom.transports._settings import Settings


@asynccontextmanager
async def opened(settings: Settings, embedder: str | EmbedderChoice = "none") -> AsyncIterator[SharedRuntime]:
    """Opens the folder, by default without an embedder, which no operator waits for.

    Raises:
        GreenroomError: as `open_greenroom`.
    """
    async with open_greenroom(
        settings.data,
        content_limit=settings.content_limit,
        audit_days=settings.audit_days,
        audit_bytes=settings.audit_size,
        embedder=embedder,
        languages=settings.language,
        options=runtime_options(settings),
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
