"""What answers to browsers, put together: the interface below `/api`, and the console."""

from __future__ import annotations

from collections.abc import Callable

from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.console.endpoint import ConsoleEndpoint
from greenroom.transports.http.endpoint import Endpoint
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.limits import Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.rest.asking import Asking
from greenroom.transports.rest.browser_sessions import BrowserSessions
from greenroom.transports.rest.endpoint import ApiEndpoint
from greenroom.transports.rest.visitors import Visitors


def browser_endpoints(
    server: McpServer,
    agent_for: Callable[[Caller, str], AgentPort],
    authenticator: Authenticator,
    sessions: BrowserSessions,
    *,
    limits: Limits,
    base_url: str | None = None,
    is_secure: bool = False,
) -> tuple[Endpoint, ...]:
    """Return what answers below `/api` and the console, beside the tools that a server serves.

    Args:
        server: The server, whose times and figures hold here, too.
        agent_for: Returns a caller's agent, given its own name made to fit.
        authenticator: Knows keys and tokens.
        sessions: The browsers that have logged in.
        limits: What one client may take.
        base_url: The URL by which browsers reach the server, where that is known.
        is_secure: Whether they come over TLS.
    """
    scheme, _, rest = (base_url or "").lower().partition("://")
    origin = None if base_url is None else f"{scheme}://{rest.partition('/')[0]}"
    visitors = Visitors(authenticator, sessions, is_secure=is_secure, own_origin=origin)
    asking = Asking(
        agent_for,
        authenticator,
        sessions,
        server.meter,
        request_timeout=server.request_timeout,
        debounce=server.debounce,
    )
    return ApiEndpoint(visitors, asking, frame=limits.frame), ConsoleEndpoint(visitors, asking)
