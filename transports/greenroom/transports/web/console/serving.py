"""Construction of the endpoints for browsers: the interface below `/api`, and the console."""

from __future__ import annotations

from collections.abc import Callable

from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.sockets.http.endpoint import Endpoint
from greenroom.transports.web.console.endpoint import ConsoleEndpoint, FrontPage
from greenroom.transports.web.rest.browser_checks import SessionCookie
from greenroom.transports.web.rest.browser_path import MountedEndpoints
from greenroom.transports.web.rest.browser_sessions import BrowserSessions
from greenroom.transports.web.rest.dispatch import Dispatcher
from greenroom.transports.web.rest.endpoint import ApiEndpoint
from greenroom.transports.web.rest.visitors import Visitors


def browser_endpoints(
    server: McpServer,
    agent_for: Callable[[Caller, str], AgentPort],
    authenticator: Authenticator,
    sessions: BrowserSessions,
    *,
    limits: Limits,
    base_url: str | None = None,
    path: str | None = None,
) -> tuple[Endpoint, ...]:
    """Return the endpoints of `/api` and of the console."""
    scheme, _, rest = (base_url or "").partition("://")
    authority, slash, above = rest.rstrip("/").partition("/")
    origin = None if base_url is None else f"{scheme}://{authority}".lower()
    dispatcher = Dispatcher(
        agent_for,
        authenticator,
        sessions,
        server.meter,
        server.log,
        request_timeout=server.request_timeout,
        debounce=server.debounce,
    )

    def visitors(cookie: SessionCookie | None) -> Visitors:
        return Visitors(authenticator, sessions, cookie=cookie, own_origin=origin)

    def api(comes: Visitors) -> Endpoint:
        return ApiEndpoint(comes, dispatcher, frame=limits.max_message_bytes)

    if path is None:
        people = visitors(SessionCookie(None))
        return api(people), ConsoleEndpoint(people, dispatcher)
    people = visitors(SessionCookie(f"{slash}{above}{path}"))
    below = MountedEndpoints(path, api(people), ConsoleEndpoint(people, dispatcher))
    return api(visitors(None)), FrontPage(), below
