"""Finding the sessions of a project that a user can take up again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.kept_words import APP as HOOKS
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.storage.records import CLOSED
from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    IndexReader,
    Procedure,
    ProcedureContext,
    Query,
    Row,
    Slices,
)

MOST_OFFERS: Final = 5
MOST_ASKED: Final = 50
"""So many sessions, the last taken up first, are asked what is in them."""
MOST_UNLISTED: Final = 200
"""Among so many of the sessions that were last active those are found that older programs listed nowhere."""


class FindOffers(Procedure[list[travel.Offer]], frozen=True, kw_only=True):
    """Find the asker's open sessions of a project that have work in them; internal.

    Those in which something was said come first, then those in which the server saw files or searches; of
    each, the last used first.
    """

    project_id: str | None
    token: str

    async def run(self, context: ProcedureContext) -> list[travel.Offer]:
        """Look which there are, and ask each what is in it."""
        offers: list[travel.Offer] = []
        spoken = 0
        for session_id in await context.query(FindOpen(project_id=self.project_id)):
            try:
                offer = await context.ask(Address("session", session_id), travel.LookAtWork(token=self.token))
            except (ActorFailedError, ActorQuarantinedError):  # the others are there all the same
                continue
            if offer is not None:
                offers.append(offer)
                spoken += offer.has_words
                if spoken == MOST_OFFERS:
                    break
        offers.sort(key=lambda offer: (offer.has_words, offer.last_used), reverse=True)
        return offers[:MOST_OFFERS]


class FindOpen(Query[list[str]], frozen=True, kw_only=True):
    """Find the asker's open sessions of a project, the last taken up first; internal."""

    project_id: str | None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the index of work, and the newest part of the directory."""
        found: dict[str, None] = {}
        mine = migrations.prefix_of(user_namespace(reader.principal), self.project_id)
        listed = reader.rows(migrations.INDEX, migrations.RecentSessionRow, prefix=mine)
        active = reader.rows(directory.INDEX, type(None), prefix=directory.sort_prefix(policy.PUBLIC))
        rows: Iterator[Row[Any]] = chain(listed, islice(active, MOST_UNLISTED))
        for row in rows:
            base = reader.get(directory.INDEX, directory.BASE, row.address, directory.BaseRow)
            if (
                base is not None
                and base.status not in CLOSED
                and base.project_id == self.project_id
                and base.app_name != HOOKS
                and policy.may_see_session(reader.principal, base.project_id)
                and (row.value is not None or _is_own(reader.principal, base))
            ):
                found[row.address.key] = None
                if len(found) == MOST_ASKED:
                    break
            if reader.should_yield():
                yield
        return list(found)


def _is_own(principal: Principal, base: directory.BaseRow) -> bool:
    """Return whether a session is of the same user, or of the same agent where nobody knows the user."""
    return base.user_id == principal.user and (
        principal.user is not None or base.created_by == principal.agent_id
    )
