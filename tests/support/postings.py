"""Messages that are posted, and what whoever posted them is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import outcome
import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from greenroom.actors import Agent
    from greenroom.runtime import Result, Ticket


class Posting:
    """One posted message.

    Attributes:
        posted: What posting it returned, unless it goes on in a task.
        accepted: Whether it is in its mailbox.
    """

    posted: Ticket

    def __init__(self) -> None:
        self.accepted = False
        self._told: list[Result] = []
        self._over = trio.Event()

    def accept(self) -> None:
        assert not self.accepted, "it was accepted before"
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


def asking(agent: Agent, request: Any, **options: Any) -> Posting:
    """Post a request through an agent, whose tasks run beside the test."""
    one = Posting()

    async def run(further: Callable[[], Awaitable[Any]]) -> None:
        one.done(await outcome.acapture(further))

    def in_task(further: Callable[[], Awaitable[Any]]) -> None:
        trio.lowlevel.spawn_system_task(run, further)

    ticket = agent.post(request, one.done, in_task, on_accepted=one.accept, **options)
    if ticket is not None:
        one.posted = ticket
    return one


async def posted(agent: Agent, request: Any) -> Any:
    """Return the reply to a request that is posted through an agent, or raise what comes instead."""
    return await asking(agent, request).reply()
