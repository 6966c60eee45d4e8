"""Find the sessions of a project that a user can resume."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.memories.storage.injection_log import KIND
from greenroom.actors.sessions.requests import handover
from greenroom.actors.sessions.requests.handover import Offer
from greenroom.actors.sessions.requests.hook_messages import LastSessions, LookAtKept, session_id_of
from greenroom.actors.sessions.storage import directory, migrations
from greenroom.actors.sessions.summary.retained_messages import HOOKS_APP, is_of_same_user
from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    IndexReader,
    Procedure,
    ProcedureContext,
    Row,
    Slices,
)

MOST_OFFERS: Final = 5
MOST_ASKED: Final = 50
"""The most sessions to query, the last resumed first."""
MOST_UNLISTED: Final = 200
"""The number of recently active sessions to scan for those that older programs did not index."""


class FindOffers(Procedure[list[handover.Offer]], frozen=True, kw_only=True):
    """Find the caller's open, non-empty sessions of a project; internal.

    Sessions with messages come first, then those with observed files or searches; the last used first.
    """

    project_id: str | None
    token: str

    async def run(self, context: ProcedureContext) -> list[handover.Offer]:
        """Find the sessions, and query each for its contents."""
        offers: list[handover.Offer] = []
        spoken = 0
        for session_id in await context.query(FindOpen(project_id=self.project_id)):
            try:
                offer = await context.ask(
                    Address("session", session_id), handover.LookAtWork(token=self.token)
                )
            except (ActorFailedError, ActorQuarantinedError):  # the others are there all the same
                continue
            if offer is not None:
                offers.append(offer)
                spoken += offer.has_words
                if spoken == MOST_OFFERS:
                    break
        offers.sort(key=lambda offer: (offer.has_words, offer.last_used), reverse=True)
        return offers[:MOST_OFFERS]


class FindOpen(Procedure[list[str]], frozen=True, kw_only=True):
    """Find the caller's open sessions of a project, the last resumed first; internal."""

    runs = "snapshot"

    project_id: str | None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the index of recent sessions, and the newest part of the directory."""
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
                and base.app_name != HOOKS_APP
                and policy.may_see_session(reader.principal, base.project_id)
                and (row.value is not None or is_of_same_user(base, reader.principal))
            ):
                found[row.address.key] = None
                if len(found) == MOST_ASKED:
                    break
            yield
        return list(found)


MOST: Final = 3


class FindKept(Procedure[list[Offer]], frozen=True, kw_only=True):
    """Find the sessions that hooks stored of the caller's user in a project; internal."""

    project_id: str

    async def run(self, context: ProcedureContext) -> list[Offer]:
        """Find the client sessions, and query each for its contents, newest first."""
        offers: list[Offer] = []
        address = Address(KIND, user_namespace(context.principal))
        try:
            earlier = await context.ask(address, LastSessions(project=self.project_id))
        except (ActorFailedError, ActorQuarantinedError):  # start without these offers
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
