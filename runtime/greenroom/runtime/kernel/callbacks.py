"""Requests without a task: whoever posted one is called back with its result.

Callbacks run between turns, never while the kernel is about its books, so that they may post, abandon
and do whatever else a program does.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import outcome

from greenroom.runtime.kernel.mailbox import Envelope, Result

if TYPE_CHECKING:
    from greenroom.runtime.api.client import Acceptor
    from greenroom.runtime.base.address import Address

logger = logging.getLogger(__name__)

Done = Callable[[Result], None]


class Posted(Protocol):
    """A message that was posted; `Runtime.post` returns it."""

    def abandon(self) -> None:
        """Let nobody be called any more; a message that is not begun leaves its mailbox.

        One that is begun commits whole or not at all. After the end, or a second time, it does nothing.
        """
        ...


class Pending:
    """A `Posted` and who hears of its end."""

    __slots__ = ("_done", "_envelope", "_posts")

    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self._done: Done | None = None
        self._envelope: Envelope | None = None

    def abandon(self) -> None:
        """Do as `Posted` says."""
        self._done = None
        envelope, self._envelope = self._envelope, None
        if envelope is not None and envelope.asker is self:
            self._posts.abandon(envelope)

    def wait_for(self, envelope: Envelope, done: Done) -> None:
        """Let ``done`` be called when ``envelope``, which is in its mailbox, is over."""
        self._done = done
        self._envelope = envelope
        envelope.asker = self

    def settle(self, result: Result) -> None:
        """Take the result; it is handed over between turns."""
        self._posts.settled.append((self, result))

    def hear(self, result: Result) -> None:
        """Call whoever waits, at most once; what that raises is its own affair."""
        done, self._done = self._done, None
        self._envelope = None
        if done is not None:
            try:
                done(result)
            except Exception:
                logger.exception("a callback failed; the message that it was about is over all the same")


class Posts:
    """Sends what is posted, and keeps the results that nobody was told of yet.

    Args:
        deliver: Puts a message into its actor's mailbox.
        abandon: Forgets who asked; a message that is not begun leaves its mailbox.

    Attributes:
        then: Called after each round of callbacks.
    """

    def __init__(
        self, deliver: Callable[[Address, Envelope], None], abandon: Callable[[Envelope], None]
    ) -> None:
        self._deliver = deliver
        self.abandon = abandon
        self.settled: deque[tuple[Pending, Result]] = deque()
        self.then: Callable[[], None] = _nothing

    def go_through(self, acceptor: Acceptor) -> None:
        """Send what is posted from now on another way; what was posted before is that way's affair, too."""
        self._deliver = acceptor.deliver
        self.abandon = acceptor.abandon

    def send(
        self, address: Address, envelope: Envelope, done: Done, on_accepted: Callable[[], None] | None
    ) -> Posted:
        """Deliver a message, after its question if it has one; see `Runtime.post`."""
        posted = Pending(self)
        if envelope.message.question() is None:
            self._accept(posted, address, envelope, done, on_accepted)
        else:
            self._send(posted, address, envelope, done, on_accepted)
        return posted

    def call_back(self) -> None:
        """Tell whoever waits for a result; called between turns."""
        settled = self.settled
        while settled:
            posted, result = settled.popleft()
            posted.hear(result)
        self.then()

    def _send(
        self,
        posted: Pending,
        address: Address,
        envelope: Envelope,
        done: Done,
        on_accepted: Callable[[], None] | None,
    ) -> None:
        question = envelope.message.question()
        if question is None:
            self._accept(posted, address, envelope, done, on_accepted)
            return
        whom, what = question

        def go_on(answer: Result) -> None:
            try:
                envelope.answer = answer.unwrap()
                self._accept(posted, address, envelope, done, on_accepted)
            except Exception as error:  # noqa: BLE001  whatever `Runtime.ask` would raise now
                done(outcome.Error(error))

        asking = Envelope(what, principal=envelope.principal, deadline=envelope.deadline)
        self._send(posted, whom, asking, go_on, None)

    def _accept(
        self,
        posted: Pending,
        address: Address,
        envelope: Envelope,
        done: Done,
        on_accepted: Callable[[], None] | None,
    ) -> None:
        self._deliver(address, envelope)
        if on_accepted is not None:
            on_accepted()
        posted.wait_for(envelope, done)


def _nothing() -> None:
    pass
