"""What was given to whom, when and why."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from greenroom.actors.auth.namespaces import user_namespace
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.schemas.hook_work import GivenRead, ReadGiven
from greenroom.runtime import Procedure, ProcedureContext


class WhyGiven(Procedure[GivenRead], frozen=True, kw_only=True):
    """Read what hooks gave to the sessions of the caller's user, newest first.

    Attributes:
        session: Only what was given to the client's session of this id, or one that begins so.
    """

    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20

    async def run(self, context: ProcedureContext) -> GivenRead:
        """Ask the user's ledger."""
        address = hook_address(user_namespace(context.principal))
        return await context.ask(address, ReadGiven(session=self.session, limit=self.limit))
