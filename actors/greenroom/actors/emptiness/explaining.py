"""The reasons of empty answers, by the request that was answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import trio

from greenroom.actors.base.emptiness import EmptyBecause
from greenroom.actors.emptiness.narrowing import Asker, Filter, Listing
from greenroom.actors.schemas.replies import ListReply
from greenroom.actors.session.directory import ListSessions
from greenroom.runtime import GreenroomError

R = TypeVar("R", bound=ListReply)

SECONDS: Final = 1.0
"""How long is looked why an answer is empty; it is told without a reason then."""


class Explained(NamedTuple):
    """How it is found out why an answer is empty.

    Attributes:
        explain: Returns the reason.
        filters: The parameters of the request that may leave nothing; ``outer.inner`` is a member of an object.
    """

    explain: Callable[[Asker, Any, Any], Awaitable[EmptyBecause]]
    filters: tuple[str, ...] = ()


def _listing(what: str, **filters: Filter) -> Explained:
    listing = Listing(what, {name.replace("__", "."): each for name, each in filters.items()})
    return Explained(listing.explain, tuple(listing.filters))


EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    ListSessions: _listing(
        "sessions",
        status=Filter(lambda found: (each.status for each in found.sessions)),
        project_id=Filter(lambda found: (each.project_id for each in found.sessions)),
    ),
}
"""Of each request whose answer may be empty."""


async def explained(asker: Asker, request: Any, reply: R) -> R:
    """Return an empty answer with the reason why it is empty."""
    reason: EmptyBecause | None = None
    with trio.move_on_after(SECONDS):
        try:
            reason = await EXPLAINED[type(request)].explain(asker, request, reply)
        except GreenroomError:  # what could not be looked up costs nobody the answer
            reason = None
    return msgspec.structs.replace(reply, empty_because=reason or asker.because("unexplained"))
