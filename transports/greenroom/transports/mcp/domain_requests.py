"""Requests of one client on their way into the domain, and what they are answered with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import trio

from greenroom.actors import PROGRESS_CALLBACK, Orchestration
from greenroom.runtime import Procedure, Query, Refusal, StoreFailedError
from greenroom.transports.mcp.client_identity import ClientIdentity
from greenroom.transports.mcp.clients.ordering import OrderedQueue
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR
from greenroom.transports.mcp.progress import report_for

logger = logging.getLogger(__name__)

_NOT_OF_ONE_ACTOR = (Query, Procedure, Orchestration)

Done = Callable[[Call, Any], None]
"""Told what a request was answered with: the reply, or an exception."""


class Spawn(Protocol):
    """Starts a task that ends with the client."""

    def __call__(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Start `work(*args)`, which may be an async function."""


class DomainRequests:
    """Asks the domain on behalf of one client.

    Args:
        identity: The client, whose agent asks.
        queue: The order of its calls; a call leaves it when its request is accepted.
        spawn: Starts a task that ends with the client.
        fail: Answers a call with an error of the protocol.
        on_failure: Called when the store has failed for good and nothing more may be answered.

    Attributes:
        failed: Why the store failed for good, once it did.
    """

    def __init__(
        self,
        identity: ClientIdentity,
        queue: OrderedQueue,
        spawn: Spawn,
        fail: Callable[[Call, int, str], None],
        on_failure: Callable[[], None],
    ) -> None:
        self.failed: StoreFailedError | None = None
        self._identity = identity
        self._queue = queue
        self._spawn = spawn
        self._fail = fail
        self._on_failure = on_failure

    def denial(self, request: type[Any], arguments: bytes = b"") -> Exception | None:
        """Return why the client may not ask a type of request; None where it may."""
        try:
            self._identity.agent.check_scope(request, arguments)
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            return error
        return None

    def ask(self, call: Call, request: Any, done: Done) -> None:
        """Send a request into the domain; its turn has come.

        Args:
            call: What brought it.
            request: A checked request.
            done: Called with the reply or the error that it was answered with.
        """
        leave = partial(self._queue.leave, call)
        try:
            agent = self._identity.agent
            if isinstance(request, _NOT_OF_ONE_ACTOR):
                leave()
                self._await(call, partial(agent.ask, request, checked=True), done)
            elif agent.must_ask(request):
                self._await(call, partial(agent.ask, request, checked=True, on_accepted=leave), done)
            else:
                replied = partial(self._replied, call, request, done)
                posted = agent.post(request, replied, on_accepted=leave, deadline=call.deadline)
                call.cancel_work = posted.cancel
        except StoreFailedError as error:
            self._store_failed(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
            self._complete(call, done, error)

    async def ask_for_sdk(self, call: Call, request_for: Callable[[], Any]) -> Any:
        """Return the reply to a request that came by way of the SDK, asked when its turn has come.

        Args:
            call: What brought it.
            request_for: Makes the checked request.

        Raises:
            Exception: whatever making or asking it raised, except that a failed store ends everything.
        """
        await self._queue.turn(call)
        request = request_for()
        PROGRESS_CALLBACK.set(report_for(call))
        leave = partial(self._queue.leave, call)
        try:
            return await self._identity.agent.ask(request, checked=True, on_accepted=leave)
        except StoreFailedError as error:
            self._store_failed(error)
            await trio.sleep_forever()

    def _replied(self, call: Call, request: Any, done: Done, result: Any) -> None:
        call.cancel_work = None
        try:
            reply = result.unwrap()
        except StoreFailedError as error:
            self._store_failed(error)
            return
        except Refusal as refusal:
            reply = refusal
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            self._complete(call, done, error)
            return
        fallback = self._identity.agent.fallback(request, reply)
        if fallback is None:
            self._complete(call, done, reply)
        else:
            self._await(call, fallback, done)

    def _await(self, call: Call, asking: Callable[[], Awaitable[Any]], done: Done) -> None:
        """Let a request be answered with what ``asking`` returns or raises."""
        scope = trio.CancelScope(deadline=call.deadline)
        call.cancel_work = scope.cancel

        async def ask() -> None:
            PROGRESS_CALLBACK.set(report_for(call))
            with scope:
                try:
                    reply: Any = await asking()
                except StoreFailedError as error:
                    self._store_failed(error)
                    return
                except Exception as error:  # noqa: BLE001  (as in `ask`)
                    reply = error
                call.cancel_work = None
                self._complete(call, done, reply)

        self._spawn(ask)

    def _complete(self, call: Call, done: Done, reply: Any) -> None:
        """Let a request be answered; a reply that cannot be told must not leave it open."""
        if not call.settled:
            try:
                done(call, reply)
            except Exception:
                logger.exception("what %s was answered with cannot be told", call.frame.method)
                if not call.settled:
                    self._fail(call, INTERNAL_ERROR, "Internal server error")

    def _store_failed(self, error: StoreFailedError) -> None:
        """Answer nothing any more: what is on disk is not known."""
        if self.failed is None:
            self.failed = error
            self._on_failure()
