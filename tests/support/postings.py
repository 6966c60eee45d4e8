"""Messages that are posted, and what whoever posted them is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from greenroom.runtime import Result, Ticket


class Posting:
    """One posted message.

    Attributes:
        posted: What posting it returned.
        accepted: Whether it is in its mailbox.
    """

    posted: Ticket

    def __init__(self) -> None:
        self.accepted = False
        self._told: list[Result] = []
        self._over = trio.Event()

    def accept(self) -> None:
        self.accepted = True

    def done(self, result: Result) -> None:
        assert not self._told, "it was over before"
        self._told.append(result)
        self._over.set()

    @property
    def is_over(self) -> bool:
        return bool(self._told)

    async def reply(self) -> Any:
        """Wait for the reply, or raise what came instead."""
        await self._over.wait()
        return self._told[0].unwrap()


def posting(post: Callable[..., Ticket], *arguments: Any, **options: Any) -> Posting:
    """Post a message through ``post``, which takes these arguments and then the callback."""
    one = Posting()
    one.posted = post(*arguments, one.done, on_accepted=one.accept, **options)
    return one
