"""Finding the sessions of a project that a user can take up again."""

from __future__ import annotations

from greenroom.actors import _policy
from greenroom.actors._namespaces import user_namespace
from greenroom.actors._times import to_datetime
from greenroom.actors.directory import _rows as directory
from greenroom.actors.requests._passports import Offer
from greenroom.actors.session import _moves
from greenroom.actors.session._lifecycle import CLOSED
from greenroom.runtime import IndexReader, Query, Slices

MOST_OFFERS = 5


class FindOffers(Query[list[Offer]], frozen=True, kw_only=True):
    """Find the asker's open sessions of a project, the last taken up first; internal."""

    project_id: str | None

    def run(self, reader: IndexReader) -> Slices[list[Offer]]:
        """Read the index of work."""
        offers: list[Offer] = []
        prefix = _moves.prefix_of(user_namespace(reader.principal), self.project_id)
        for row in reader.rows(_moves.INDEX, _moves.WorkRow, prefix=prefix):
            base = reader.get(directory.INDEX, directory.BASE, row.address, directory.BaseRow)
            if (
                base is not None
                and base.status not in CLOSED
                and base.project_id == self.project_id
                and _policy.may_see_session(reader.principal, base.project_id)
            ):
                offer = Offer(
                    session_id=row.address.key,
                    purpose=base.purpose,
                    status=base.status,
                    tool=row.value.tool,
                    last_used=to_datetime(row.value.at),
                )
                offers.append(offer)
                if len(offers) == MOST_OFFERS:
                    break
            if reader.slice_over():
                yield
        return offers
