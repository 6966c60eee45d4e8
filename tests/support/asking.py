"""Asks that run in tasks of their own while the test looks on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import trio

from greenroom.runtime import Address, GreenroomError, Message, Runtime, RuntimeClient

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

R = TypeVar("R")


class Open(Protocol):
    """`open_runtime` on the test's folder, with shared actors, an inline committer and a virtual clock."""

    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Runtime]: ...


class Pending(Generic[R]):
    """An ask under way.

    Attributes:
        over: Set when it is over, whichever way.
        error: What it raised, if anything.
        scope: Cancel it to give up.
    """

    def __init__(self) -> None:
        self.over = trio.Event()
        self.accepted = False
        self.error: BaseException | None = None
        self.scope = trio.CancelScope()
        self._reply: list[R] = []

    @property
    def is_answered(self) -> bool:
        return bool(self._reply)

    @property
    def the_reply(self) -> R:
        """The reply of an ask that `is_answered`."""
        return self._reply[0]

    async def reply(self) -> R:
        """Wait for the reply, or raise what the ask raised."""
        await self.over.wait()
        if self.error is not None:
            raise self.error
        return self._reply[0]

    async def run(
        self,
        runtime: RuntimeClient,
        address: Address,
        message: Message[R],
        options: dict[str, Any],
        task_status: trio.TaskStatus[None],
    ) -> None:
        def accepted() -> None:
            self.accepted = True
            task_status.started()

        try:
            with self.scope:
                self._reply.append(await runtime.ask(address, message, on_accepted=accepted, **options))
        except GreenroomError as error:
            self.error = error
        if not self.accepted:
            task_status.started()
        self.over.set()


async def post(
    nursery: trio.Nursery, runtime: RuntimeClient, address: Address, message: Message[R], **options: Any
) -> Pending[R]:
    """Ask in a task of ``nursery``; return once the message is in the mailbox (or was refused there)."""
    pending: Pending[R] = Pending()
    await nursery.start(pending.run, runtime, address, message, options)
    return pending
