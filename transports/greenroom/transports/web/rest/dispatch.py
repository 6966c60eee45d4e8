"""What visitors ask of the domain: requests with an answer, and streams of changes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.runtime import DeadlineExceededError, GreenroomError, StoreFailedError
from greenroom.transports.auth.authenticator import Authenticator, unauthorized
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.observability.meter import API, RequestMeter
from greenroom.transports.base.observability.request_log import RequestLog, trace_id_of
from greenroom.transports.base.tool_names import with_tools
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.fast_path import LARGE_ARGUMENTS, rate_limit_refusal
from greenroom.transports.mcp.named_tools import open_to
from greenroom.transports.mcp.tools.tool_errors import Failure, timeout_failure, tool_failure
from greenroom.transports.sockets.http.asgi_exchange import ClientGoneError, Exchange
from greenroom.transports.sockets.http.responses import JSON, Header, Response
from greenroom.transports.web.rest.browser_sessions import BrowserSessions, principal_for
from greenroom.transports.web.rest.confirmation import ConfirmedAgent
from greenroom.transports.web.rest.events import EventStream
from greenroom.transports.web.rest.impersonation import Asked, LookedAt, Onlooker
from greenroom.transports.web.rest.problems import failure_response
from greenroom.transports.web.rest.visitors import Visitor

logger = logging.getLogger(__name__)

MOST_STREAMS: Final = 64
"""Streams of changes that one key, or one browser that came by a link, may have open."""

R = TypeVar("R", Response, Response | None)

Work = Callable[[Asked], Awaitable[Response]]
"""Asks the domain in the name of one agent, and makes the answer."""
More = Callable[[], Awaitable[bytes]]
"""Returns the next part of a file; nothing at its end."""
MadeFile = Callable[[Asked], tuple[Sequence[Header], More]]
"""Makes a file by asking the domain in the name of one agent: headers, and its parts."""
Failed = Callable[[Failure], Response]
"""Makes the answer of a failure."""
STOPPING: Final = "the server is stopping"


class Asking:
    """Asks the domain in the name of visitors.

    Args:
        agent_for: Returns a caller's agent, given its own name made to fit.
        authenticator: Says how often somebody may ask, and until when.
        sessions: The browsers that have logged in.
        meter: Counts requests that are over.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one event.
    """

    def __init__(
        self,
        agent_for: Callable[[Caller, str], AgentPort],
        authenticator: Authenticator,
        sessions: BrowserSessions,
        meter: RequestMeter,
        log: RequestLog | None = None,
        *,
        request_timeout: float,
        debounce: float,
    ) -> None:
        self._agent_for = agent_for
        self._authenticator = authenticator
        self._sessions = sessions
        self._meter = meter
        self._log = log
        self._request_timeout = request_timeout
        self._debounce = debounce
        self._looked_at = LookedAt(sessions.note)
        self._open: set[trio.CancelScope] = set()
        self._streams: set[EventStream] = set()
        self._streams_of: Counter[str] = Counter()

    def stop(self) -> None:
        """End the streams."""
        for stream in list(self._streams):
            stream.end(STOPPING)

    def fail_open_requests(self) -> None:
        """Give up the requests that are under way, and have them answered so."""
        for scope in list(self._open):
            scope.cancel()

    def limited(self, visitor: Visitor, failed: Failed = failure_response) -> Response | None:
        """Count a request; return the answer, as `failed` makes it, to one that comes too soon, else None.

        The folder's owner, who came by a link, is limited as little as programs that need no key.
        """
        limit = self._authenticator.rate_limit(visitor.caller)
        wait = 0.0 if limit is None else limit.request(trio.current_time())
        return failed(tool_failure(rate_limit_refusal(wait))) if wait > 0 else None

    async def request(
        self,
        exchange: Exchange,
        visitor: Visitor,
        name: str,
        body: bytes,
        request: type[Any],
        parse: Callable[[bytes], Any],
    ) -> Response:
        """Return the answer to one request, as JSON.

        Args:
            exchange: What it came by; when its client hangs up, it is given up.
            visitor: Who asks.
            name: What it is counted under.
            body: What the request is made of.
            request: Its type.
            parse: Makes a checked request of it, or refuses it.

        Raises:
            ClientGoneError: the client hung up.
            HttpRefusedError: what it came by has ended while its body was read.
            StoreFailedError: the store failed for good.
        """
        work = partial(_reply, body, request, parse)
        return await self.answer(exchange, visitor, name, work, failure_response)

    async def answer(
        self,
        exchange: Exchange,
        visitor: Visitor,
        name: str,
        work: Work,
        failed: Failed,
    ) -> Response:
        """Return the answer that is made by asking the domain.

        Args:
            exchange: What asked for it; when its client hangs up, it is given up.
            visitor: Who asks.
            name: What it is counted under.
            work: Asks an agent, and makes the answer.
            failed: Makes the answer when that fails.

        Raises:
            ClientGoneError: the client hung up.
            HttpRefusedError: what it came by has ended.
            StoreFailedError: the store failed for good.
        """
        return await self._metered(exchange, visitor, name, partial(self._answer, visitor, work, failed))

    async def download(
        self, exchange: Exchange, visitor: Visitor, name: str, made: MadeFile, failed: Failed
    ) -> Response | None:
        """Send a file in parts while the visitor may have it; return the answer instead if it is refused.

        What fails or ends after the first part breaks the connection off, so that nobody takes it for whole.

        Args:
            exchange: What asked for it; when its client hangs up, it is given up.
            visitor: Who asks.
            name: What it is counted under.
            made: Makes it.
            failed: Makes the answer when the first part fails.

        Raises:
            ClientGoneError: the client hung up.
            HttpRefusedError: what it came by has ended.
            StoreFailedError: the store failed for good.
        """
        work = partial(self._send_file, exchange, visitor, made, failed)
        return await self._metered(exchange, visitor, name, work)

    async def _metered(
        self, exchange: Exchange, visitor: Visitor, name: str, work: Callable[[], Awaitable[R]]
    ) -> R:
        """Return what is made of a request while its client is there; None is a file that was sent."""
        self._check_still(visitor)
        began = trio.current_time()
        outcome: Any = "cancelled"
        try:
            response = await exchange.while_there(work)
            is_ok = response is None or response.status < HTTPStatus.BAD_REQUEST
            outcome = "ok" if is_ok else "tool_error"
        except HttpRefusedError:
            outcome = "tool_error"
            raise
        finally:
            seconds = trio.current_time() - began
            self._meter.record(API, name, outcome, seconds)
            if self._log is not None:
                agent = principal_for(visitor.caller, visitor.agent).agent_id
                self._log.record(API, outcome, seconds, trace_id_of(), tool=name, agent=agent)
                exchange.is_recorded = True
        return response

    async def _send_file(
        self, exchange: Exchange, visitor: Visitor, made: MadeFile, failed: Failed
    ) -> Response | None:
        agent = self.agent(visitor)
        has_begun = False
        try:
            with trio.CancelScope() as scope, self._held(visitor, lambda _why: scope.cancel()):
                self._open.add(scope)
                headers, more = made(agent)
                part = await self._part(more)
                has_begun = True
                await exchange.send_part(part, headers)
                while part:
                    part = await self._part(more)
                    await exchange.send_part(part)
                return None
        except (ClientGoneError, StoreFailedError, HttpRefusedError):
            raise
        except Exception as error:
            if not has_begun:
                return failed(self._failure(error, visitor))
            logger.warning("a file was not sent whole", exc_info=error)
        finally:
            self._open.discard(scope)
            agent.close()
        if not has_begun:
            raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
        exchange.abort()
        raise ClientGoneError

    async def _part(self, more: More) -> bytes:
        with trio.move_on_after(self._request_timeout):
            return await more()
        raise DeadlineExceededError("a part of the file was not there in time")

    async def _answer(self, visitor: Visitor, work: Work, failed: Failed) -> Response:
        agent = self.agent(visitor)
        response: Response | None = None
        time = trio.CancelScope(deadline=trio.current_time() + self._request_timeout)
        with trio.CancelScope() as scope, time:
            self._open.add(scope)
            try:
                response = await work(agent)
            except (StoreFailedError, HttpRefusedError):
                raise
            except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
                response = failed(self._failure(error, visitor))
            finally:
                self._open.discard(scope)
                agent.close()
        if response is not None:
            return response
        if time.cancelled_caught:
            return failed(timeout_failure(self._request_timeout))
        raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)

    def _failure(self, error: Exception, visitor: Visitor) -> Failure:
        """Return what tells of an error: pages name no tools, other answers those that may be called."""
        failure = tool_failure(error)
        if visitor.session is not None:
            return msgspec.structs.replace(failure, error=with_tools(failure.error, lambda _: None))
        if visitor.looker is not None:  # an administrator, who is told what to ask as itself
            return failure
        scopes = principal_for(visitor.caller, visitor.agent).scopes
        return msgspec.structs.replace(failure, error=open_to(failure.error, scopes))

    def agent(self, visitor: Visitor) -> Asked:
        """Return what asks the domain in the name of a visitor; close it.

        What a visitor sees as another agent is recorded. Some things a browser confirms.
        """
        is_person = visitor.session is not None
        caller = msgspec.structs.replace(visitor.caller, is_single_request=True, is_person=is_person)
        agent: Asked = self._agent_for(caller, visitor.agent)
        if visitor.looker is not None and caller.credential is not None:
            seen = caller.credential.grant
            looked = partial(self._looked_at.record, visitor.holder, visitor.looker, seen)
            agent = Onlooker(agent, looked)
        if visitor.session is None or visitor.confirm is None:
            return agent
        scopes = principal_for(caller, visitor.agent).scopes
        return ConfirmedAgent(agent, visitor.session, scopes, visitor.confirm)

    def _check_still(self, visitor: Visitor) -> None:
        ended: list[str] = []
        with self._held(visitor, ended.append):
            if ended:
                has_shown = visitor.caller.credential is not None
                raise unauthorized(
                    ended[0], error="invalid_token" if has_shown else None, header=not has_shown
                )

    # -- changes ---------------------------------------------------------------------------------

    async def tell_changes(
        self, exchange: Exchange, visitor: Visitor, uris: Sequence[str], *, comes_back: bool
    ) -> Response | None:
        """Send changes of resources until somebody ends it; return the answer instead if it is refused.

        Args:
            exchange: What asked for them.
            visitor: Who hears of them.
            uris: The resources.
            comes_back: Whether it heard of them before, and may have missed some.

        Raises:
            HttpRefusedError: it has too many streams.
        """
        if self._streams_of[visitor.holder] >= MOST_STREAMS:
            sentence = f"{MOST_STREAMS} streams are open by this key; end some"
            raise HttpRefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence, **{"Retry-After": "5"})
        agent = self.agent(visitor)
        with ExitStack() as stack:
            stack.callback(agent.close)
            try:
                subscriber = stack.enter_context(agent.subscriber(self._debounce))
                for uri in uris:
                    subscriber.add(uri)
            except GreenroomError as error:
                return failure_response(self._failure(error, visitor))
            stream = EventStream(
                exchange.wake,
                lambda: self._check(visitor, stream.end),
                uris if comes_back else (),
            )
            stack.enter_context(self._held(visitor, stream.end))
            stack.enter_context(self._counted(visitor.holder, stream))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.follow, subscriber)
                await exchange.settle(stream, _never_whole)
                nursery.cancel_scope.cancel()
        return None

    @contextmanager
    def _counted(self, holder: str, stream: EventStream) -> Iterator[None]:
        self._streams.add(stream)
        self._streams_of[holder] += 1
        try:
            yield
        finally:
            self._streams.discard(stream)
            self._streams_of[holder] -= 1
            if not self._streams_of[holder]:
                del self._streams_of[holder]

    def _check(self, visitor: Visitor, end: Callable[[str], None]) -> None:
        """End a browser's session and its streams once its time is over.

        A stream that is seen as another agent ends with the confirmation of that.
        """
        session = visitor.session
        if session is None:
            return
        self._sessions.ended_by_time(session)
        if visitor.seen is not None and not session.sees(visitor.seen):
            end(f"what the agent {visitor.seen.agent!r} sees is to be confirmed again")

    def _held(self, visitor: Visitor, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Return a block within which `end` is called when what a visitor came by ends, or has ended."""
        if visitor.session is None:
            return self._authenticator.hold_connection(visitor.caller, end)
        return visitor.session.hold(end)


async def _reply(body: bytes, request: type[Any], parse: Callable[[bytes], Any], agent: Asked) -> Response:
    agent.check_scope(request, body)
    if len(body) > LARGE_ARGUMENTS:
        asked = await trio.to_thread.run_sync(parse, body, abandon_on_cancel=True)
    else:
        asked = parse(body)
    reply = await agent.ask(asked, checked=True)
    return Response(HTTPStatus.OK, [JSON], msgspec.json.encode(reply))


def _never_whole(_line: bytes) -> Response:
    raise AssertionError("a stream is never answered whole")
