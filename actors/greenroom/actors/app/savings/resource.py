"""The savings of an owner, and the resource that shows them to the reader."""

from __future__ import annotations

from typing import Literal, Protocol

from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.app.savings.report import report
from greenroom.actors.app.savings.requests import KEPT_DAYS, SavingsReport, SavingsResource
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.client import Client
from greenroom.actors.core.resources.resources import ResourceInfo
from greenroom.runtime import Procedure


class SavingsContext(Client, Protocol):
    """A client with counted savings."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of savings."""


class ReadSavings(Procedure[SavingsResource], frozen=True, kw_only=True):
    """Read the savings of the reader's user, as a resource."""

    runs = "here"

    uri: str

    async def run(self, client: SavingsContext) -> SavingsResource:
        """Sum up stored savings, and savings that this process has not written yet."""
        said = await savings_of(client.ledger, user_namespace(client.principal), "mine", KEPT_DAYS)
        info = ResourceInfo(
            uri=self.uri, reader=client.principal.agent_id, last_updated=None, supports_subscriptions=False
        )
        return SavingsResource(savings=said, resource_info=info)


async def savings_of(ledger: Ledger, owner: str, whose: Literal["mine", "all"], days: int) -> SavingsReport:
    """Return the savings of an owner in the last ``days`` days."""
    today = ledger.today()
    since = max(0, today - days + 1)
    return report(await ledger.read(owner, since), whose, since, today, ledger.token_price)
