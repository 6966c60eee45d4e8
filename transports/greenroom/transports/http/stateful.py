"""The handshake era over HTTP: sessions, which POST speaks in, GET listens to, and DELETE ends."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from greenroom.transports.auth.origin_check import Caller
from greenroom.transports.http.asgi_exchange import Exchange
from greenroom.transports.http.request_head import LAST_EVENT_ID, SESSION_ID, Head
from greenroom.transports.http.response_sinks import ResumedStream, SessionAnswer, StreamReader
from greenroom.transports.http.responses import JSON, RefusedRpcError, Reply, rpc_error
from greenroom.transports.http.service import Service, one_line
from greenroom.transports.http.sessions import Session, Sessions
from greenroom.transports.http.stateless_rules import STATUS
from greenroom.transports.mcp.frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    FrameError,
    parse_frame,
)

_RETRY_AFTER: Final = "5"


class HandshakeEra:
    """Serves requests of the handshake era.

    Args:
        service: What they share with all others.
        sessions: The sessions.
    """

    def __init__(self, service: Service, sessions: Sessions) -> None:
        self._service = service
        self._sessions = sessions
        self._methods = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one HTTP request.

        Raises:
            RefusedError: it is not answered.
            ClientGoneError: the client hung up before it was whole.
        """
        session = self._session(exchange.head, caller)
        serve = self._methods.get(exchange.head.method)
        if serve is None:
            raise RefusedRpcError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                INVALID_REQUEST,
                "Method Not Allowed",
                Allow="GET, POST, DELETE",
            )
        if session is None:
            await serve(exchange, caller, None)
            return
        session.enter()
        try:
            await serve(exchange, caller, session)
        finally:
            session.leave()

    def _session(self, head: Head, caller: Caller) -> Session | None:
        named = head.text(SESSION_ID)
        if named is None:
            return None
        session = self._sessions.find(named, caller)
        if session is None:
            if named in self._sessions:
                self._service.gate.turn_away(caller, head.lines, HTTPStatus.NOT_FOUND, "take_http_session")
            raise RefusedRpcError(HTTPStatus.NOT_FOUND, INVALID_REQUEST, "Session not found")
        return session

    # -- POST ------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, caller: Caller, session: Session | None) -> None:
        exchange.head.check_content_type()
        exchange.head.check_accept(json=True)
        body = await exchange.body(self._service.limits.frame)
        try:
            frame = parse_frame(one_line(body))
        except FrameError as error:
            status = STATUS.get(error.code, HTTPStatus.BAD_REQUEST)
            await exchange.reply(Reply(status, [JSON], rpc_error(error.code, str(error), id=error.id)))
            return
        if frame is not None and frame.is_request and frame.method != "ping":
            assert frame.id is not None, "a request has an id"
            if (limited := self._service.limited(caller, frame.id)) is not None:
                await exchange.reply(limited)
                return
        if session is not None:
            await self._take(exchange, session, frame)
        elif frame is not None and frame.is_request and frame.method == "initialize":
            await self._open(exchange, caller, frame)
        else:
            raise _no_session()

    async def _take(self, exchange: Exchange, session: Session, frame: Frame | None) -> None:
        if frame is None or not frame.is_request:
            if frame is not None:
                session.client.take(frame, session)
            await exchange.reply(Reply(202, (), b""))
            return
        if session.client.is_full:
            await session.until(lambda: not session.client.is_full)
        await self._settle(exchange, session, frame, opens=False)

    async def _open(self, exchange: Exchange, caller: Caller, frame: Frame) -> None:
        if self._sessions.is_full:
            raise RefusedRpcError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                INTERNAL_ERROR,
                "Too many open sessions",
                **{"Retry-After": _RETRY_AFTER},
            )
        service = self._service
        session = Session(service, caller)
        self._sessions.add(session)
        session.hold_place(lambda _: self._sessions.end(session))
        session.enter()
        try:
            await self._settle(exchange, session, frame, opens=True)
        finally:
            session.leave()
            if session.client.initialize is None:
                self._sessions.end(session)

    async def _settle(self, exchange: Exchange, session: Session, frame: Frame, *, opens: bool) -> None:
        assert frame.id is not None, "it is a request"

        def whole(line: bytes) -> Reply:
            if session.client.initialize is None:  # nobody will be told its id
                self._sessions.end(session)
                return Reply(200, [JSON], line[:-1])
            return Reply(200, [JSON, *answer.headers], line[:-1])

        answer = SessionAnswer(exchange, session, frame.id, opens=opens)
        session.readers.add(answer)
        try:
            session.client.take(frame, answer)
            await exchange.settle(answer, whole)
        finally:
            session.readers.discard(answer)
            answer.part()

    # -- GET and DELETE --------------------------------------------------------------------------

    async def _get(self, exchange: Exchange, _caller: Caller, session: Session | None) -> None:
        exchange.head.check_accept(json=False)
        if session is None:
            raise _no_session()
        await exchange.body(self._service.limits.frame)  # a client that hangs up is heard behind it
        reader = self._reader(exchange, session)
        session.readers.add(reader)
        try:
            await exchange.settle(reader, lambda line: Reply(200, [JSON], line))
        finally:
            session.readers.discard(reader)
            reader.part()

    def _reader(self, exchange: Exchange, session: Session) -> StreamReader:
        last = exchange.head.headers.get(LAST_EVENT_ID)
        if last:
            stream = session.log.find(last)
            if stream is None:
                sentence = "Bad Request: Nothing follows the event that Last-Event-ID names"
                raise RefusedRpcError(HTTPStatus.BAD_REQUEST, INVALID_REQUEST, sentence)
            return ResumedStream(exchange, session, stream)
        if session.log.own.reader is not None:
            sentence = "Conflict: Only one SSE stream is allowed per session"
            raise RefusedRpcError(HTTPStatus.CONFLICT, INVALID_REQUEST, sentence)
        return StreamReader(exchange, session, session.log.own)

    async def _delete(self, exchange: Exchange, _caller: Caller, session: Session | None) -> None:
        if session is None:
            raise _no_session()
        await exchange.body(self._service.limits.frame)
        self._sessions.end(session)
        await exchange.reply(Reply(200, (), b""))


def _no_session() -> RefusedRpcError:
    return RefusedRpcError(HTTPStatus.BAD_REQUEST, INVALID_REQUEST, "Bad Request: Missing session ID")
