"""Requests without a waiting task: a callback gets the result.

Callbacks run between turns, never while the kernel is about its books, so that they may post, abandon
and do whatever else a program does.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

import outcome

from greenroom.runtime.base.address import Address
from greenroom.runtime.kernel.mailbox import Envelope, Result

logger = logging.getLogger(__name__)

Done = Callable[[Result], None]


class MessageSink(Protocol):
    """Takes messages to their actors: the kernel, or what relays them to another process's kernel."""

    @property
    def callbacks(self) -> CallbackQueue:
        """Sends what is posted."""

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Take a message on; raises what the doors say when it is not accepted."""

    def cancel(self, envelope: Envelope) -> None:
        """Forget who asked; a message that is not begun is not begun any more."""


class Ticket(Protocol):
    """A message that was posted; `Runtime.post` returns it."""

    def cancel(self) -> None:
        """Call no callback any more; a message that is not begun leaves its mailbox.

        One that is begun commits whole or not at all. After the end, or a second time, it does nothing.
        """
        ...


class PendingCallback:
    """A `Ticket` and the callback for its result."""

    __slots__ = ("_callbacks", "_done", "_envelope")

    def __init__(self, callbacks: CallbackQueue) -> None:
        self._callbacks = callbacks
        self._done: Done | None = None
        self._envelope: Envelope | None = None

    def cancel(self) -> None:
        """Cancel the request; see `Ticket`."""
        self._done = None
        envelope, self._envelope = self._envelope, None
        if envelope is not None and envelope.asker is self:
            self._callbacks.cancel(envelope)

    def wait_for(self, envelope: Envelope, done: Done) -> None:
        """Let ``done`` be called when ``envelope``, which is in its mailbox, is over."""
        self._done = done
        self._envelope = envelope
        envelope.asker = self

    def settle(self, result: Result) -> None:
        """Take the result; it is handed over between turns."""
        self._callbacks.settled.append((self, result))

    def call(self, result: Result) -> None:
        """Call the callback, at most once; its exceptions are logged."""
        done, self._done = self._done, None
        self._envelope = None
        if done is not None:
            try:
                done(result)
            except Exception:
                logger.exception("a callback failed; the message that it was about is over all the same")


class CallbackQueue:
    """Sends what is posted, and keeps the results whose callbacks have not run yet.

    Args:
        deliver: Puts a message into its actor's mailbox.
        abandon: Forgets who asked; a message that is not begun leaves its mailbox.

    Attributes:
        after_callbacks: Called after each round of callbacks.
    """

    def __init__(
        self, deliver: Callable[[Address, Envelope], None], abandon: Callable[[Envelope], None]
    ) -> None:
        self._deliver = deliver
        self.cancel = abandon
        self.settled: deque[tuple[PendingCallback, Result]] = deque()
        self.after_callbacks: Callable[[], None] = _nothing

    def redirect(self, sink: MessageSink) -> None:
        """Send to another sink from now on; it has taken over what was posted before, too."""
        self._deliver = sink.deliver
        self.cancel = sink.cancel

    def send(
        self, address: Address, envelope: Envelope, done: Done, on_accepted: Callable[[], None] | None
    ) -> Ticket:
        """Deliver a message, after its question if it has one; see `Runtime.post`."""
        posted = PendingCallback(self)
        if envelope.message.precheck() is None:
            self._accept(posted, address, envelope, done, on_accepted)
        else:
            self._send(posted, address, envelope, done, on_accepted)
        return posted

    def run_callbacks(self) -> None:
        """Run the callbacks of all results that are there; called between turns."""
        settled = self.settled
        while settled:
            posted, result = settled.popleft()
            posted.call(result)
        self.after_callbacks()

    def _send(
        self,
        posted: PendingCallback,
        address: Address,
        envelope: Envelope,
        done: Done,
        on_accepted: Callable[[], None] | None,
    ) -> None:
        question = envelope.message.precheck()
        if question is None:
            self._accept(posted, address, envelope, done, on_accepted)
            return
        whom, what = question

        def go_on(answer: Result) -> None:
            try:
                envelope.precheck_answer = answer.unwrap()
                self._accept(posted, address, envelope, done, on_accepted)
            except Exception as error:  # noqa: BLE001  whatever `Runtime.ask` would raise now
                done(outcome.Error(error))

        asking = Envelope(what, principal=envelope.principal, deadline=envelope.deadline)
        self._send(posted, whom, asking, go_on, None)

    def _accept(
        self,
        posted: PendingCallback,
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
