"""The listening sockets of `greenroom serve`, and the servers behind them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from greenroom.actors import Agent
from greenroom.runtime import RuntimeClient, SharedRuntime
from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.net.listen import Listener, allow_descriptors, listen, tls_context, url_of
from greenroom.transports.base.observability.scrape import metrics_app
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.ops.cli.support.authentication import is_reachable_by_others
from greenroom.transports.web.rest.browser_sessions import BrowserSessions

if TYPE_CHECKING:
    from greenroom.transports.sockets.http.passport_links import OpenLink

METRICS: Final = "/metrics"


class Sockets:
    """The sockets of a server."""

    def __init__(self, settings: Settings, websocket: list[Listener], http: list[Listener]) -> None:
        self._settings = settings
        self._websocket = websocket
        self._http = http

    async def serve(
        self,
        nursery: trio.Nursery,
        server: McpServer,
        observed: ObservedServer,
        agent_for: Callable[[Caller, str], Agent],
        limits: Limits,
        stop: trio.Event,
        authenticator: Authenticator,
        open_link: OpenLink,
        sessions: BrowserSessions,
        runtime: SharedRuntime,
    ) -> None:
        """Start serving; it ends within `Limits.stop` seconds after `stop` is set."""
        settings = self._settings
        listens = bool(self._websocket or self._http)
        allow_descriptors(settings.max_connections * (listens + bool(self._http)))
        any_host, origins = is_reachable_by_others(settings), frozenset(settings.allow_origin)
        upgrade = None
        if listens:  # HTTP hands WebSockets over, so that one address serves both
            from greenroom.transports.sockets.websocket.server import (  # noqa: PLC0415 - takes 15 ms; stdio does not need it
                WebSocketOptions,
                WebSocketServer,
            )

            options = WebSocketOptions(
                limits=limits,
                connections=settings.max_connections,
                origins=origins,
                ping_interval=settings.ping_interval,
                authenticator=authenticator,
                any_host=any_host,
            )
            websockets = WebSocketServer(server, agent_for, options)
            observed.add_transport("websocket", websockets.statistics)
            await nursery.start(websockets.serve, self._websocket, stop)
            upgrade = websockets.take
        if self._http:
            from greenroom.transports.sockets.http.app import HttpApp, HttpOptions  # noqa: PLC0415 - these take 0.1 s
            from greenroom.transports.sockets.http.server import HttpServer  # noqa: PLC0415 - likewise
            from greenroom.transports.web.console.endpoint import browser_endpoints  # noqa: PLC0415 - likewise

            await runtime.wait_until_reached()  # the store's secret determines the console's path
            browsers = browser_endpoints(
                server,
                agent_for,
                authenticator,
                sessions,
                limits=limits,
                base_url=self.base_url(),
                path=self.browser_path(runtime),
            )
            http_options = HttpOptions(
                limits=limits,
                origins=origins,
                sessions=settings.max_connections,
                session_idle=settings.http_session_idle,
                sound=lambda: observed.runtime.is_sound,
                routes={METRICS: metrics_app(observed)},
                authenticator=authenticator,
                documents=_issuer_documents(settings),
                any_host=any_host,
                open_link=open_link if self.base_url() is not None else None,
                endpoints=browsers,
            )
            app = HttpApp(server, agent_for, http_options)
            https = HttpServer(app, connections=settings.max_connections, stop=limits.stop, upgrade=upgrade)
            observed.add_transport("http", https.statistics)
            await nursery.start(https.serve, self._http, stop)

    def base_url(self) -> str | None:
        """Return the URL at which clients reach HTTP; None without HTTP or if unknown."""
        settings = self._settings
        if settings.http is None:
            return None
        if settings.base_url is not None:
            return settings.base_url.rstrip("/")
        if settings.behind_proxy or settings.http.is_unspecified:
            return None
        return url_of(self._http[0], "http", "")

    def browser_path(self, runtime: RuntimeClient) -> str | None:
        """Return the secret path of the console; None with TLS."""
        settings = self._settings
        has_tls = settings.tls_cert is not None or (settings.base_url or "").startswith("https:")
        if has_tls or settings.behind_proxy:
            return None
        from greenroom.transports.web.rest.browser_path import browser_path  # noqa: PLC0415 - not for stdio

        return browser_path(runtime)

    def urls(self) -> list[tuple[str, str]]:
        """Return each transport's type, as clients' configuration files name it, and its URL."""
        return [
            *(("ws", url_of(listener, "ws", "/")) for listener in self._websocket),
            *(("http", url_of(listener, "http", "/mcp")) for listener in self._http),
        ]


async def open_sockets(settings: Settings, stack: AsyncExitStack) -> Sockets:
    """Open the sockets in the settings; they listen, but do not accept connections yet."""
    tls = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        tls = tls_context(settings.tls_cert, settings.tls_key)
    opened: list[list[Listener]] = []
    for address in (settings.ws, settings.http):
        opened.append([] if address is None else await listen(address, tls))
        for listener in opened[-1]:
            stack.push_async_callback(listener.aclose)
    return Sockets(settings, *opened)


def _issuer_documents(settings: Settings) -> dict[str, bytes]:
    """Return the documents in which clients find the issuer of tokens for this server."""
    if settings.oauth_issuer is None or settings.oauth_resource is None:
        return {}
    from greenroom.actors.core.auth.scopes import SCOPES  # noqa: PLC0415 - few servers have an issuer
    from greenroom.transports.auth import jwt  # noqa: PLC0415 - likewise

    document = jwt.protected_resource(settings.oauth_resource, settings.oauth_issuer, SCOPES)
    return dict.fromkeys(jwt.metadata_paths(settings.oauth_resource), msgspec.json.encode(document))
