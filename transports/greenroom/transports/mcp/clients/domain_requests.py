"""Send one client's requests to the actors, and answer with the replies."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

import msgspec
import trio

from greenroom.actors import PROGRESS_CALLBACK, ProgressCallback, StartSession
from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS
from greenroom.runtime import StoreFailedError
from greenroom.transports.mcp.clients.client_identity import ClientIdentity
from greenroom.transports.mcp.clients.ordering import OrderedQueue
from greenroom.transports.mcp.clients.roots import Roots, ServerRequests
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR, Frame
from greenroom.transports.mcp.response_encoder import encode

logger = logging.getLogger(__name__)

PROGRESS_SECONDS: Final = 0.1
"""The least time between two progress notifications, in seconds."""

Done = Callable[[Call, Any], None]
"""Called with the outcome of a request: the reply, or an exception."""


class Spawn(Protocol):
    """Starts a task that ends with the client."""

    def __call__(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Start `work(*args)`, which may be an async function."""


class DomainRequests:
    """Sends one client's requests to the actors.

    Args:
        queue: The order of its calls; a call leaves it when its request is accepted.
        on_failure: Called when the store has failed permanently, and no further answer is allowed.

    Attributes:
        failed: Why the store failed permanently; None if it did not.
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
        self._server_requests: ServerRequests | None = None
        self._roots: Roots | None = None
        self._identity = identity
        self._queue = queue
        self._spawn = spawn
        self._fail = fail
        self._on_failure = on_failure

    def denial(self, request: type[Any], arguments: bytes = b"") -> Exception | None:
        """Return why the client may not send this type of request; None if it may."""
        try:
            self._identity.agent.check_scope(request, arguments)
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            return error
        return None

    def ask(self, call: Call, request: Any, done: Done, *, knows_folders: bool = False) -> None:
        """Send a request to its actor, now that its turn has come.

        If it needs the client's working folders, they are requested first.
        """
        if type(request) is StartSession:
            needs_folders = b'"workspace_path"' not in call.frame.arguments
        else:
            needs_folders = getattr(request, "needs_folders", False)
        if needs_folders and not knows_folders and self._folders().can_be_known:
            self._spawn(self._ask_with_folders, call, request, done)
            return
        leave = partial(self._queue.leave, call)
        try:
            ticket = self._identity.agent.post(
                request,
                partial(self._replied, call, done),
                partial(self._await, call, done),
                on_accepted=leave,
                deadline=call.deadline,
            )
            if ticket is not None:
                call.cancel_work = ticket.cancel
        except StoreFailedError as error:
            self._store_failed(error)
        except Exception as error:  # noqa: BLE001  (every error becomes the answer)
            self._complete(call, done, error)

    async def _ask_with_folders(self, call: Call, request: Any, done: Done) -> None:
        """Start a session in the client's first folder; pass all folders to file requests."""
        with call.cancellable():
            if isinstance(request, StartSession):
                folders = await self._folders().folders(call)
                request = msgspec.structs.replace(request, workspace_path=next(iter(folders), None))
            else:
                CLIENT_FOLDERS.set(await self._folders().read_cached(call))
        if not call.settled:
            self.ask(call, request, done, knows_folders=True)

    def _folders(self) -> Roots:
        if self._roots is None or not self._roots.can_be_known:
            self._roots = Roots(self._identity, self.server_requests)
        return self._roots

    @property
    def server_requests(self) -> ServerRequests:
        """The server's own requests to the client."""
        if self._server_requests is None:
            self._server_requests = ServerRequests()
        return self._server_requests

    def take_response(self, frame: Frame) -> None:
        """Take the client's response to a request of the server."""
        if self._server_requests is not None:
            self._server_requests.take_response(frame)

    def forget_folders(self) -> None:
        """Forget the folders when the client reports a change or a new identity."""
        self._roots = None

    def _replied(self, call: Call, done: Done, result: Any) -> None:
        call.cancel_work = None
        try:
            reply = result.unwrap()
        except StoreFailedError as error:
            self._store_failed(error)
            return
        except Exception as error:  # noqa: BLE001  (as in `ask`)
            reply = error
        self._complete(call, done, reply)

    def _await(self, call: Call, done: Done, asking: Callable[[], Awaitable[Any]]) -> None:
        """Answer a request with the result or the error of ``asking``."""
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
        """Answer a request; a reply that cannot be encoded must not leave it open."""
        if not call.settled:
            try:
                done(call, reply)
            except Exception:
                logger.exception("the reply to %s cannot be encoded", call.frame.method)
                if not call.settled:
                    self._fail(call, INTERNAL_ERROR, "Internal server error")

    def _store_failed(self, error: StoreFailedError) -> None:
        """Answer no further request: the state on disk is unknown."""
        if self.failed is None:
            self.failed = error
            self._on_failure()


def report_for(call: Call) -> ProgressCallback | None:
    """Return the callback that sends progress to a call's client; None if it requested none."""
    token = _token_of(call.frame.params)
    if token is None:
        return None
    said, not_before = -1.0, -1.0

    def report(done: float, total: float, words: str) -> None:
        nonlocal said, not_before
        now = trio.current_time()
        # The protocol requires each progress value to exceed the one before.
        if call.settled or done <= said or (now < not_before and done < total):
            return
        said, not_before = done, now + PROGRESS_SECONDS
        progress = {"progressToken": token, "progress": done, "total": total, "message": words}
        call.sink.send(
            encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}) + b"\n"
        )

    return report


def _token_of(params: dict[str, Any] | None) -> int | str | None:
    meta = None if params is None else params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if type(token) in {int, str} else None
