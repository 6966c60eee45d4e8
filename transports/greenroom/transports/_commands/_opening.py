"""Opening the folder for an operator's command: owning it, or attached to the server that does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from greenroom.actors import open_greenroom
from greenroom.transports._commands._options import encryption, runtime_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.runtime import SharedRuntime
    from greenroom.transports._settings import Settings


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[SharedRuntime]:
    """Opens the folder without an embedder, which no operator waits for; raises as `open_greenroom`."""
    async with open_greenroom(
        settings.data,
        embedder="none",
        languages=settings.language,
        options=runtime_options(settings),
        secrets=settings.secrets,
        audit_days=settings.audit_days,
        audit_bytes=settings.audit_size,
        encryption=encryption(settings),
    ) as runtime:
        yield runtime
