"""The tools that say how the server is, and what was saved; and the resource that says the latter."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET

from greenroom.actors.app.administration import server as schemas
from greenroom.actors.app.administration.health import packages_health, parts_of, serving_status, worst_of
from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.app.savings.report import report
from greenroom.actors.app.savings.requests import KEPT_DAYS, Days, SavingsReport
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.scopes import ADMIN, allows
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.schemas.resources import ResourceInfo, SavingsResource
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.runtime import RuntimeClient

USUAL_DAYS = 30


class GetStats(
    ClientOrchestration[schemas.ServerStats], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Tell what was saved, and to an administrator the server's statistics."""

    writes: ClassVar[bool] = False

    days: Days = USUAL_DAYS
    whose: schemas.Whose = "mine"

    async def carry_out(self, client: ClientSessionState) -> schemas.ServerStats:
        """Sum up what is kept, and what this process has not written yet.

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


class HealthCheck(ClientOrchestration[schemas.Health], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Tell how every part of the server is."""

    writes: ClassVar[bool] = False

    async def carry_out(self, client: ClientSessionState) -> schemas.Health:
        """Look at the statistics; names and sizes are for administrators."""
        runtime, server = client.runtime, client.server
        parts = parts_of(
            runtime.statistics(),
            await runtime.query(GetEmbedding()),
            is_sound=runtime.is_sound,
            names=allows(client.principal.scopes, ADMIN),
        )
        parts.append(await read_in_thread(packages_health))
        is_stopping = server is not None and server.is_stopping
        return schemas.Health(
            status=serving_status(is_sound=runtime.is_sound, is_stopping=is_stopping),
            worst=worst_of(parts),
            parts=parts,
            checked_at=to_datetime(client.ledger.now()),
        )


async def figures_of(client: ClientSessionState) -> dict[str, Any]:
    """Return what `greenroom stats --json` says; what a runtime that nobody serves has of it."""
    if client.server is not None:
        return await client.server.figures()
    return await runtime_figures(client.runtime)


async def runtime_figures(runtime: RuntimeClient) -> dict[str, Any]:
    """Return the statistics of a runtime and its embedder, as JSON's values."""
    embedding = await runtime.query(GetEmbedding())
    return {**msgspec.to_builtins(runtime.statistics()), "embedding": msgspec.to_builtins(embedding)}


async def savings_of(ledger: Ledger, owner: str, whose: Literal["mine", "all"], days: int) -> SavingsReport:
    """Return what an owner saved in so many days."""
    today = ledger.today()
    since = max(0, today - days + 1)
    return report(await ledger.read(owner, since), whose, since, today, ledger.token_price)


async def savings_resource(client: ClientSessionState, uri: str) -> SavingsResource:
    """Return what the caller's user saved, as a resource."""
    said = await savings_of(client.ledger, user_namespace(client.principal), "mine", KEPT_DAYS)
    info = ResourceInfo(
        uri=uri, reader=client.principal.agent_id, last_updated=None, supports_subscriptions=False
    )
    return SavingsResource(savings=said, resource_info=info)
