"""Requests without a waiting task: a callback gets the result.

Callbacks run between turns, never during the kernel's bookkeeping, so that they may post and cancel.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec
import outcome

from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.kernel.mailbox import Envelope, Result

logger = logging.getLogger(__name__)

Done = Callable[[Result], None]


class MessageSink(Protocol):
    """A destination of messages: the kernel, or the relay to another process's kernel."""

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Accept a message, or raise as `RuntimeClient.ask` does."""

    def cancel(self, envelope: Envelope) -> None:
        """Drop the caller; if the message was not begun, it never will be."""


class Ticket(Protocol):
    """A posted message, returned by `Runtime.post`."""

    def cancel(self) -> None:
        """Drop the callback; a message that was not begun leaves its mailbox.

        A begun message commits whole or not at all. After the end, or a second time, this does nothing.
        """
        ...


class PendingCallback(msgspec.Struct, eq=False):
    """A `Ticket` and the callback for its result."""

    _callbacks: CallbackQueue
    _done: Done | None = None
    _envelope: Envelope | None = None

    def cancel(self) -> None:
        """Cancel the request; see `Ticket`."""
        self._done = None
        envelope, self._envelope = self._envelope, None
        if envelope is not None and envelope.caller is self:
            self._callbacks.cancel(envelope)

    def deliver(
        self,
        deliver: Callable[[Address, Envelope], None],
        address: Address,
        envelope: Envelope,
        done: Done,
        on_accepted: Callable[[], None] | None,
    ) -> None:
        """Deliver a message; call ``done`` with its result, which may come at once."""
        self._envelope = envelope
        envelope.caller = self
        try:
            deliver(address, envelope)
            if on_accepted is not None:
                on_accepted()
        except BaseException:
            self._envelope = envelope.caller = None
            raise
        self._done = done

    def complete(self, result: Result) -> None:
        """Accept the result; the callback runs between turns."""
        self._callbacks.completed.append((self, result))

    def call(self, result: Result) -> None:
        """Call the callback, at most once; its exceptions are logged."""
        done, self._done = self._done, None
        self._envelope = None
        if done is not None:
            try:
                done(result)
            except Exception:
                logger.exception("a callback failed; its message has ended anyway")


class CallbackQueue:
    """Sends posted messages, and keeps their results until the callbacks run.

    ``afterwards`` is called once after the next round of callbacks.
    """

    def __init__(
        self, deliver: Callable[[Address, Envelope], None], abandon: Callable[[Envelope], None]
    ) -> None:
        self._deliver = deliver
        self.cancel = abandon
        self.completed: deque[tuple[PendingCallback, Result]] = deque()
        self.afterwards: Callable[[], None] | None = None

    def redirect(self, sink: MessageSink) -> None:
        """Send to another sink from now on; that sink has taken over earlier messages, too."""
        self._deliver = sink.deliver
        self.cancel = sink.cancel

    def send(
        self, address: Address, envelope: Envelope, done: Done, on_accepted: Callable[[], None] | None
    ) -> Ticket:
        """Deliver a message, after its precheck if it has one; see `Runtime.post`."""
        posted = PendingCallback(self)
        if type(envelope.message).precheck is Message.precheck:
            posted.deliver(self._deliver, address, envelope, done, on_accepted)
        else:
            self._send(posted, address, envelope, done, on_accepted)
        return posted

    def run_callbacks(self) -> None:
        """Run the callbacks of all results; called between turns."""
        completed = self.completed
        while completed:
            posted, result = completed.popleft()
            posted.call(result)
        if self.afterwards is not None:
            afterwards, self.afterwards = self.afterwards, None
            afterwards()

    def _send(
        self,
        posted: PendingCallback,
        address: Address,
        envelope: Envelope,
        done: Done,
        on_accepted: Callable[[], None] | None,
    ) -> None:
        precheck = envelope.message.precheck()
        if precheck is None:
            posted.deliver(self._deliver, address, envelope, done, on_accepted)
            return
        first, request = precheck

        def go_on(answer: Result) -> None:
            try:
                envelope.precheck_answer = answer.unwrap()
                posted.deliver(self._deliver, address, envelope, done, on_accepted)
            except Exception as error:  # noqa: BLE001  as `Runtime.ask` would raise it
                done(outcome.Error(error))

        check = Envelope(request, principal=envelope.principal, deadline=envelope.deadline)
        self._send(posted, first, check, go_on, None)
