"""MCP over standard input and output, WebSocket and HTTP; the command line.

For programs there is the client's side of WebSocket, and what serves MCP beside their own work: an
`McpServer` behind an `HttpServer`, a `WebSocketServer` or `serve_stdio`. The door to a runtime in the same
process is `greenroom.actors`, and the one for people the command `greenroom`. Tests serve the tools with
`greenroom.testing`.
"""

from __future__ import annotations

from greenroom.runtime.base.lazy import exports

TYPE_CHECKING = False  # see `lazy`
if TYPE_CHECKING:
    from greenroom.transports.auth.authenticator import KeyAuthenticator as KeyAuthenticator
    from greenroom.transports.auth.caller import Caller as Caller
    from greenroom.transports.auth.caller import ToolChoice as ToolChoice
    from greenroom.transports.base.observability.tracing import Tracer as Tracer
    from greenroom.transports.mcp.agent_port import AgentPort as AgentPort
    from greenroom.transports.mcp.agent_port import Cancellable as Cancellable
    from greenroom.transports.mcp.agent_port import SubscriberPort as SubscriberPort
    from greenroom.transports.mcp.clients.subscriptions import ListChanges as ListChanges
    from greenroom.transports.mcp.frames.calls import Limits as Limits
    from greenroom.transports.mcp.server import McpServer as McpServer
    from greenroom.transports.mcp.server_info import ServerInfo as ServerInfo
    from greenroom.transports.mcp.tools.tools import TOOLS as TOOLS
    from greenroom.transports.mcp.tools.tools import Tool as Tool
    from greenroom.transports.sockets.http.app import HttpApp as HttpApp
    from greenroom.transports.sockets.http.app import HttpOptions as HttpOptions
    from greenroom.transports.sockets.http.server import HttpServer as HttpServer
    from greenroom.transports.sockets.http.timed_connection import Timeouts as Timeouts
    from greenroom.transports.sockets.stdio.server import serve_stdio as serve_stdio
    from greenroom.transports.sockets.websocket.client import CertificateChangedError as CertificateChangedError
    from greenroom.transports.sockets.websocket.client import WebSocketRefusedError as WebSocketRefusedError
    from greenroom.transports.sockets.websocket.client import websocket_client as websocket_client
    from greenroom.transports.sockets.websocket.server import WebSocketOptions as WebSocketOptions
    from greenroom.transports.sockets.websocket.server import WebSocketServer as WebSocketServer
    from greenroom.transports.web.console.endpoint import browser_endpoints as browser_endpoints
    from greenroom.transports.web.rest.browser_sessions import BrowserSessions as BrowserSessions

    __version__: str
else:  # a type checker would take it for any name at all
    __getattr__, __dir__ = exports(__name__)
