"""The handshake era over HTTP: POST sends, GET streams, DELETE ends a session."""

from __future__ import annotations

from contextlib import nullcontext
from http import HTTPStatus

from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import retry_later
from greenroom.transports.mcp.frames.frames import INVALID_REQUEST, Frame, FrameError, parse_frame
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.endpoint import HttpService, one_line
from greenroom.transports.sockets.http.request_head import LAST_EVENT_ID, SESSION_ID, RequestHead
from greenroom.transports.sockets.http.responses import (
    JSON,
    Response,
    RpcRefusedError,
    rpc_error,
    rpc_refusals,
)
from greenroom.transports.sockets.http.sessions import Session, SessionResponse, Sessions, StreamReader
from greenroom.transports.sockets.http.stateless_rules import STATUS


class StatefulEndpoint:
    """Serves requests of the handshake era."""

    def __init__(self, service: HttpService, sessions: Sessions) -> None:
        self._service = service
        self._sessions = sessions
        self._methods = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one HTTP request."""
        session = self._session(exchange.head, caller)
        serve = self._methods.get(exchange.head.method)
        if serve is None:
            raise RpcRefusedError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                INVALID_REQUEST,
                "Method Not Allowed",
                Allow="GET, POST, DELETE",
            )
        with nullcontext() if session is None else session.in_use():
            await serve(exchange, caller, session)

    def _session(self, head: RequestHead, caller: Caller) -> Session | None:
        named = head.text(SESSION_ID)
        if named is None:
            return None
        session = self._sessions.find(named, caller)
        if session is None:
            if named in self._sessions:
                self._service.authenticator.record_denial(
                    caller, head.lines, HTTPStatus.NOT_FOUND, "take_http_session"
                )
            raise RpcRefusedError(HTTPStatus.NOT_FOUND, INVALID_REQUEST, "Session not found")
        return session

    # -- POST ------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, caller: Caller, session: Session | None) -> None:
        exchange.head.check_content_type()
        exchange.head.check_accept(json=True)
        body = await exchange.body(self._service.limits.max_message_bytes)
        try:
            frame = parse_frame(one_line(body))
        except FrameError as error:
            status = STATUS.get(error.code, HTTPStatus.BAD_REQUEST)
            await exchange.reply(Response(status, [JSON], rpc_error(error.code, str(error), id=error.id)))
            return
        wait = 0.0
        if frame is not None and frame.is_request:
            wait = self._service.count_request(caller, frame)
            if (limited := self._service.rate_limited_response(frame, wait)) is not None:
                await exchange.reply(limited)
                return
        if session is not None:
            await self._take(exchange, session, frame, wait)
        elif frame is not None and frame.is_request and frame.method == "initialize":
            await self._open(exchange, caller, frame)
        else:
            raise _no_session()

    async def _take(self, exchange: Exchange, session: Session, frame: Frame | None, wait: float) -> None:
        if frame is None or not frame.is_request:
            if frame is not None:
                session.client.take(frame, session)
            await exchange.reply(Response(202, (), b""))
            return
        if session.client.is_full and wait <= 0:  # beyond the rate limit, requests are refused at once
            await session.until(lambda: not session.client.is_full)
        await self._settle(exchange, session, frame, opens=False, wait=wait)

    async def _open(self, exchange: Exchange, caller: Caller, frame: Frame) -> None:
        if self._sessions.is_full:
            with rpc_refusals():
                raise retry_later("Too many open sessions", status=HTTPStatus.SERVICE_UNAVAILABLE)
        session = Session(self._service, caller)
        self._sessions.add(session)
        session.hold_connection(lambda _: self._sessions.end(session))
        try:
            with session.in_use():
                await self._settle(exchange, session, frame, opens=True)
        finally:
            if session.client.identity.initialize is None:
                self._sessions.end(session)

    async def _settle(
        self, exchange: Exchange, session: Session, frame: Frame, *, opens: bool, wait: float = 0.0
    ) -> None:
        assert frame.id is not None, "it is a request"

        def whole(line: bytes) -> Response:
            if session.client.identity.initialize is None:  # no client will learn its id
                self._sessions.end(session)
                return Response(200, [JSON], line[:-1])
            return Response(200, [JSON, *answer.headers], line[:-1])

        answer = SessionResponse(exchange, session, frame.id, opens=opens)
        try:
            exchange.is_recorded = True
            session.client.take(frame, answer, wait)
            await exchange.settle(answer, whole)
        finally:
            answer.disconnect()

    # -- GET and DELETE --------------------------------------------------------------------------

    async def _get(self, exchange: Exchange, _caller: Caller, session: Session | None) -> None:
        exchange.head.check_accept(json=False)
        if session is None:
            raise _no_session()
        await exchange.body(self._service.limits.max_message_bytes)  # a disconnect is received after the body
        reader = self._reader(exchange, session)
        try:
            await exchange.settle(reader, lambda line: Response(200, [JSON], line))
        finally:
            reader.disconnect()

    def _reader(self, exchange: Exchange, session: Session) -> StreamReader:
        last = exchange.head.headers.get(LAST_EVENT_ID)
        if last:
            stream = session.log.find(last)
            if stream is None:
                sentence = "Bad Request: Nothing follows the event that Last-Event-ID names"
                raise RpcRefusedError(HTTPStatus.BAD_REQUEST, INVALID_REQUEST, sentence)
            return StreamReader(exchange, session, stream, is_resumed=True)
        if session.log.own.reader is not None:
            sentence = "Conflict: Only one SSE stream is allowed per session"
            raise RpcRefusedError(HTTPStatus.CONFLICT, INVALID_REQUEST, sentence)
        return StreamReader(exchange, session, session.log.own)

    async def _delete(self, exchange: Exchange, _caller: Caller, session: Session | None) -> None:
        if session is None:
            raise _no_session()
        await exchange.body(self._service.limits.max_message_bytes)
        self._sessions.end(session)
        await exchange.reply(Response(200, (), b""))


def _no_session() -> RpcRefusedError:
    return RpcRefusedError(HTTPStatus.BAD_REQUEST, INVALID_REQUEST, "Bad Request: Missing session ID")
