"""The source of `greenroom watch` at a WebSocket, through the client for programs.

The transport reconnects automatically and then reports one change.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Any, Final

from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import Implementation, TextContent, TextResourceContents

from greenroom.transports.base.config.settings import API_KEY_VARIABLE, Settings
from greenroom.transports.ops.cli.commands.watch_folder import SCHEME, WatchError
from greenroom.transports.ops.cli.support.terminal import printable
from greenroom.transports.sockets.websocket.client import WebSocketRefusedError, websocket_client

_PAGE: Final = 100  # messages per request if many are new


@asynccontextmanager
async def open_socket_source(session_id: str, url: str, settings: Settings) -> AsyncIterator[SocketSource]:
    """Connect to a server, and return the session there."""
    us = Implementation(name="greenroom-watch", version=version("greenroom"))
    key = (os.environ.get(API_KEY_VARIABLE) or "").strip()
    transport = websocket_client(
        url,
        agent=settings.agent,
        agent_type=settings.agent_type,
        projects=settings.project,
        headers={"Authorization": f"Bearer {key}"} if key else None,
    )
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(Client(transport, client_info=us, cache=None))
        except WebSocketRefusedError as error:
            raise WatchError(f"{url} refuses the connection: {printable(str(error))}") from None
        except OSError as error:
            raise WatchError(f"no server was reached at {url}: {error}") from None
        yield SocketSource(client, session_id)


class SocketSource:
    """A session at a server; the methods are the same as in `FolderSource`."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._uri = SCHEME + session_id
        self._knows_tools = False

    async def read(self) -> dict[str, Any]:
        """Return the resource: the session with its newest messages."""
        with self._translate_errors():
            (content,) = (await self._client.read_resource(self._uri)).contents
        assert isinstance(content, TextResourceContents), "a session is text"
        found: dict[str, Any] = json.loads(content.text)
        return found

    async def page(self, after: int) -> dict[str, Any]:
        """Return the messages after the message ``after``, oldest first."""
        if not self._knows_tools:
            # The list marks the tools that only read, so that these are retried after a lost connection.
            await self._client.list_tools()
            self._knows_tools = True
        arguments = {"session_id": self._session_id, "since_id": after, "limit": _PAGE}
        with self._translate_errors():
            result = await self._client.call_tool("get_messages", arguments)
        content = result.content[0]
        assert isinstance(content, TextContent), "tools answer with text"
        answer: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            raise WatchError(f"{self._uri}: {printable(answer['error'])}")
        return answer

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """Yield a function that waits for the next change; after False, open a new block."""
        with self._translate_errors():
            async with self._client.listen(resource_subscriptions=[self._uri]) as changes:

                async def next_change() -> bool:
                    return await anext(changes, None) is not None

                yield next_change

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the client's errors into sentences."""
        try:
            yield
        except MCPError as error:
            raise WatchError(f"{self._uri}: {printable(error.message)}") from None
        except SubscriptionLost:
            raise WatchError("the connection is lost permanently") from None
