"""The tools for the server's health and savings."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec
from msgspec import UNSET

from greenroom.actors.app.administration import replies as schemas
from greenroom.actors.app.administration.health import (
    format_health,
    packages_health,
    parts_of,
    serving_status,
    worst_of,
)
from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.app.savings.requests import Days
from greenroom.actors.app.savings.resource import savings_of
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.scopes import ADMIN, allows
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.runtime import Procedure, ProcedureContext, RuntimeClient

USUAL_DAYS = 30


@operation(
    "get_stats",
    scope="server:read",
    tool=ToolText(
        title="Statistics",
        description="See what your calls saved: tokens, cost and time by operation, and cache "
        "hits; administrators also see the server's figures.",
        weight=1,
    ),
)
class GetStats(Procedure[schemas.ServerStats], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Report savings, and to administrators the server's statistics."""

    runs = "here"

    days: Days = USUAL_DAYS
    whose: schemas.Whose = "mine"

    async def run(self, client: ClientContext) -> schemas.ServerStats:
        """Sum up stored savings, and savings that this process has not written yet.

        Raises:
            Refusal: ``PERMISSION_DENIED``: everybody's figures are for administrators.
        """
        if self.whose == "all":
            client.check_scope("everybody's figures", ADMIN)
        is_admin = allows(client.principal.scopes, ADMIN)
        owner = EVERYBODY if self.whose == "all" else user_namespace(client.principal)
        said = await savings_of(client.ledger, owner, self.whose, self.days)
        server = await figures_of(client) if is_admin else UNSET
        return schemas.ServerStats(version=version("greenroom"), savings=said, server=server)


class TakeFormerFormat(Procedure[int], frozen=True, kw_only=True):
    """Return the store's format before this program changed it, only once; else 0."""

    async def run(self, context: ProcedureContext) -> int:
        """Take it at the owner of the store."""
        return await context.take_former_format()


@operation(
    "health_check",
    scope="server:read",
    tool=ToolText(
        title="Health check",
        description="See whether the server and each part of it is well, and if not, why.",
    ),
)
class HealthCheck(Procedure[schemas.Health], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Report the health of every part of the server."""

    runs = "here"

    async def run(self, client: ClientContext) -> schemas.Health:
        """Evaluate the statistics; names and sizes are for administrators."""
        runtime, server = client.runtime, client.server
        statistics = runtime.statistics()
        parts = parts_of(
            statistics,
            await runtime.query(GetEmbedding()),
            is_sound=runtime.is_sound,
            names=allows(client.principal.scopes, ADMIN),
        )
        parts.append(await read_in_thread(packages_health))
        if statistics.store.former_format and (former := await runtime.query(TakeFormerFormat())):
            parts.append(format_health(former))
        is_stopping = server is not None and server.is_stopping
        return schemas.Health(
            status=serving_status(is_sound=runtime.is_sound, is_stopping=is_stopping),
            worst=worst_of(parts),
            parts=parts,
            checked_at=to_datetime(client.ledger.now()),
        )


async def figures_of(client: ClientContext) -> dict[str, Any]:
    """Return the figures of `greenroom stats --json`; without a server, the figures of the runtime."""
    if client.server is not None:
        return await client.server.figures()
    return await runtime_figures(client.runtime)


async def runtime_figures(runtime: RuntimeClient) -> dict[str, Any]:
    """Return the statistics of a runtime and its embedder, as JSON values."""
    embedding = await runtime.query(GetEmbedding())
    return {**msgspec.to_builtins(runtime.statistics()), "embedding": msgspec.to_builtins(embedding)}
