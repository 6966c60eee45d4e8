"""Offering what hooks keep to another agent of the same user, in the same project."""

from __future__ import annotations

from typing import Final

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.extraction.turns import session_id_of
from greenroom.actors.schemas.hook_work import LastSessions, LookAtKept
from greenroom.actors.sessions.requests.session_context import Offer
from greenroom.runtime import ActorFailedError, ActorQuarantinedError, Address, Procedure, ProcedureContext

MOST: Final = 3


class FindKept(Procedure[list[Offer]], frozen=True, kw_only=True):
    """Find what hooks kept of the asker's user in a project, the newest first; internal."""

    project_id: str

    async def run(self, context: ProcedureContext) -> list[Offer]:
        """Look which sessions there were, and ask each what is in it."""
        offers: list[Offer] = []
        address = hook_address(user_namespace(context.principal))
        try:
            earlier = await context.ask(address, LastSessions(project=self.project_id))
        except (ActorFailedError, ActorQuarantinedError):  # a session begins without them
            return offers
        for each in earlier:
            kept = Address("session", session_id_of(each, context.principal))
            try:
                offer = await context.ask(kept, LookAtKept(project_id=self.project_id))
            except (ActorFailedError, ActorQuarantinedError):  # the others are there all the same
                continue
            if offer is not None:
                offers.append(offer)
            if len(offers) == MOST:
                break
        return offers
