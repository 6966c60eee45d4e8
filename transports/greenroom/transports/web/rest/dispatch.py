"""Sends visitors' requests to their agents, and returns replies, files and streams of changes."""

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

from greenroom.runtime import GreenroomError, Refusal, StoreFailedError
from greenroom.transports.auth.authenticator import Authenticator, unauthorized
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError, retry_later
from greenroom.transports.base.observability.meter import API, RequestMeter
from greenroom.transports.base.observability.request_log import RequestLog, trace_id_of
from greenroom.transports.base.tool_names import with_tools
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.tool_calls import LARGE_ARGUMENTS
from greenroom.transports.mcp.tools.offered_tools import open_to
from greenroom.transports.mcp.tools.tool_errors import (
    Failure,
    rate_limit_refusal,
    timeout_failure,
    tool_failure,
)
from greenroom.transports.sockets.http.asgi_exchange import ClientGoneError, Exchange
from greenroom.transports.sockets.http.responses import JSON, Header, Response
from greenroom.transports.web.rest.browser_sessions import BrowserSessions, principal_for
from greenroom.transports.web.rest.confirmation import ConfirmedAgent
from greenroom.transports.web.rest.events import EventStream
from greenroom.transports.web.rest.impersonation import ImpersonatedAgent, ImpersonationAudit, VisitorAgent
from greenroom.transports.web.rest.problems import failure_response
from greenroom.transports.web.rest.visitors import Visitor

logger = logging.getLogger(__name__)

MOST_STREAMS: Final = 64
"""The most streams of changes that one key, or one browser with a link, may have open."""

R = TypeVar("R", Response, Response | None)

Work = Callable[[VisitorAgent], Awaitable[Response]]
"""Sends requests to one agent and makes the response."""
More = Callable[[], Awaitable[bytes]]
"""Returns the next part of a file; an empty part is the end."""
FileMaker = Callable[[VisitorAgent], tuple[Sequence[Header], More]]
"""Makes a file from requests to one agent; returns its headers, and the function for its parts."""
Failed = Callable[[Failure], Response]
"""Renders a failure."""
STOPPING: Final = "the server is stopping"


class Dispatcher:
    """Sends requests to the domain for visitors."""

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
        self._impersonations = ImpersonationAudit(sessions.note)
        self._open: set[trio.CancelScope] = set()
        self._streams: set[EventStream] = set()
        self._streams_of: Counter[str] = Counter()

    def stop(self) -> None:
        """End all streams."""
        for stream in list(self._streams):
            stream.end(STOPPING)

    def fail_open_requests(self) -> None:
        """Cancel the open requests; each of them gets a response."""
        for scope in list(self._open):
            scope.cancel()

    def check_rate(self, visitor: Visitor, failed: Failed = failure_response) -> Response | None:
        """Count a request; return the rendered failure if the rate limit is exceeded.

        The folder's owner with a link has the limit of a local program without a key, which is very high.
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
        """Handle one request to the domain; return its reply as JSON."""
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
        """Run ``work`` with the visitor's agent; return its response."""
        return await self._metered(exchange, visitor, name, partial(self._answer, visitor, work, failed))

    async def download(
        self, exchange: Exchange, visitor: Visitor, name: str, made: FileMaker, failed: Failed
    ) -> Response | None:
        """Send a file in parts, or return a response if it is refused.

        A failure after the first part breaks the connection: the client must not take the file as complete.

        Args:
            exchange: The HTTP exchange; a client that hangs up cancels the request.
            visitor: The caller.
            name: The name for metrics.
            made: Makes the file.
            failed: Renders a failure of the first part.

        Raises:
            ClientGoneError: the client hung up.
            HttpRefusedError: the credential has ended.
            StoreFailedError: the store has failed permanently.
        """
        work = partial(self._send_file, exchange, visitor, made, failed)
        return await self._metered(exchange, visitor, name, work)

    async def _metered(
        self, exchange: Exchange, visitor: Visitor, name: str, work: Callable[[], Awaitable[R]]
    ) -> R:
        """Run work while the client is connected, and record it; None for a sent file."""
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
        self, exchange: Exchange, visitor: Visitor, made: FileMaker, failed: Failed
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
            logger.warning("a file was not sent completely", exc_info=error)
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
        raise _not_read_within(self._request_timeout)

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
            except Exception as error:  # noqa: BLE001  (every error becomes a response)
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
        """Describe an error: to browsers without tool names, to programs with tools they may call."""
        failure = tool_failure(error)
        if visitor.session is not None:
            return msgspec.structs.replace(failure, error=with_tools(failure.error, lambda _: None))
        if visitor.impersonator is not None:  # as itself, an administrator may call everything
            return failure
        scopes = principal_for(visitor.caller, visitor.agent).scopes
        return msgspec.structs.replace(failure, error=open_to(failure.error, scopes))

    def agent(self, visitor: Visitor) -> VisitorAgent:
        """Return the agent of a visitor; the caller must close it.

        Reads of an impersonated agent are audited. Sensitive actions of a browser need a confirmation.
        """
        is_person = visitor.session is not None
        caller = msgspec.structs.replace(visitor.caller, is_single_request=True, is_person=is_person)
        agent = VisitorAgent(self._agent_for(caller, visitor.agent))
        if visitor.impersonator is not None and caller.credential is not None:
            seen = caller.credential.grant
            record = partial(self._impersonations.record, visitor.holder, visitor.impersonator, seen)
            agent = ImpersonatedAgent(agent, record)
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

    async def stream_changes(
        self, exchange: Exchange, visitor: Visitor, uris: Sequence[str], *, comes_back: bool
    ) -> Response | None:
        """Stream changes until either side ends it; return a response if it is refused.

        Args:
            exchange: The HTTP exchange.
            visitor: The subscriber.
            uris: The resources.
            comes_back: Whether the visitor had a stream before and may have missed changes.

        Raises:
            HttpRefusedError: the visitor has too many streams.
        """
        if self._streams_of[visitor.holder] >= MOST_STREAMS:
            sentence = f"{MOST_STREAMS} streams are open by this key; end some"
            raise retry_later(sentence)
        agent = self.agent(visitor)
        with ExitStack() as stack:
            stack.callback(agent.close)
            try:
                subscriber = stack.enter_context(agent.subscriber(self._debounce))
                for uri in uris:
                    subscriber.add(uri)
                await subscriber.wait_heard()
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
        """End a browser's session and its streams if the session's time is over.

        A stream of an impersonated agent ends when the confirmation expires.
        """
        session = visitor.session
        if session is None:
            return
        self._sessions.end_if_expired(session)
        if visitor.impersonation is not None and not session.may_impersonate(visitor.impersonation):
            end(f"what the agent {visitor.impersonation.agent!r} sees is to be confirmed again")

    def _held(self, visitor: Visitor, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Return a block during which `end` is called if the visitor's credential ends."""
        if visitor.session is None:
            return self._authenticator.hold_connection(visitor.caller, end)
        return visitor.session.hold(end)


async def _reply(
    body: bytes, request: type[Any], parse: Callable[[bytes], Any], agent: VisitorAgent
) -> Response:
    agent.check_scope(request, body)
    if len(body) > LARGE_ARGUMENTS:
        checked = await trio.to_thread.run_sync(parse, body, abandon_on_cancel=True)
    else:
        checked = parse(body)
    reply = await agent.ask(checked, checked=True)
    return Response(HTTPStatus.OK, [JSON], msgspec.json.encode(reply))


def _never_whole(_line: bytes) -> Response:
    raise AssertionError("a stream has no single response")


def _not_read_within(seconds: float) -> Refusal:
    """Make the refusal of a file that was not read in time, without any change."""
    sentence = f"The file was not read within {seconds:g} s; nothing was changed. Repeat it, or ask for less."
    return Refusal("DEADLINE_EXCEEDED", sentence, deadline_ms=round(seconds * 1_000), outcome="not_done")
