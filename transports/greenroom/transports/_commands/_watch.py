"""`greenroom watch`: a session as it grows, followed over WebSocket by the client that programs have.

Messages go to standard output; what is said about the session and the connection goes to
standard error. The transport connects again by itself and then tells of one change, so a
message is neither missed nor printed twice: what is new is what comes after the last one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import trio
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import Implementation, TextContent, TextResourceContents

from greenroom.transports import WebSocketRefusedError, _exits, websocket_client
from greenroom.transports._commands import _watch_lines
from greenroom.transports._commands._paint import paints
from greenroom.transports._commands._reporting import reported
from greenroom.transports._commands._signals import until_signal
from greenroom.transports._commands._visible import visible
from greenroom.transports._output import complain, remark, say
from greenroom.transports._settings import API_KEY_VARIABLE
from greenroom.transports._values import NotAllowedError, name

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable

    from greenroom.transports._resolving import Resolved
    from greenroom.transports._settings import Settings

_SCHEME: Final = "session://"
_ENDED: Final = frozenset({"terminated", "archived"})
_PAGE: Final = 100  # messages at once when many were written since the last look


def watch(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Prints the session's messages until it ends, or until Ctrl-C; returns the exit code."""
    _start_logging(resolved.settings.log_level)
    try:
        session_id = name(128)(chosen.session.removeprefix(_SCHEME))
    except NotAllowedError as error:
        return complain("watch", f"the session is {chosen.session!r}, but {error}", _exits.USAGE)
    line = _watch_lines.style(json=chosen.json, colours=paints(sys.stdout))
    follow = partial(_follow, _Session(session_id), chosen.url, resolved.settings, line)
    return reported("watch", partial(trio.run, until_signal, follow, _exits.OK, strict_exception_groups=True))


def _start_logging(level: str) -> None:
    """Sends what the transport says of the connection to standard error, without a log's ornaments."""
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="greenroom watch: %(message)s")
    logging.getLogger("greenroom").setLevel(level.upper())


@dataclass
class _Session:
    """What is known of the session.

    Attributes:
        id: Its id.
        last: The newest message that was printed; 0 before the first, and nothing was printed yet
            while it is None.
    """

    id: str
    last: int | None = None

    @property
    def uri(self) -> str:
        """The resource whose changes are followed."""
        return _SCHEME + self.id


async def _follow(
    session: _Session, url: str, settings: Settings, line: Callable[[_watch_lines.Message], str]
) -> int:
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
        except ValueError as error:
            return complain("watch", str(error), _exits.USAGE)
        except WebSocketRefusedError as error:
            return complain("watch", f"{url} does not take us: {visible(str(error))}", _exits.FAILED)
        except OSError as error:
            return complain("watch", f"no server was reached at {url}: {error}", _exits.FAILED)
        return await _print_all(client, session, line)
    return _exits.OK


async def _print_all(client: Client, session: _Session, line: Callable[[_watch_lines.Message], str]) -> int:
    try:
        while True:
            async with client.listen(resource_subscriptions=[session.uri]) as changes:
                while True:
                    read = await _read(client, session)
                    is_first = session.last is None
                    if is_first:
                        _introduce(session, read)
                    async for message in _new_messages(client, session, read):
                        if not await _say(line(message)):
                            return _exits.OK
                    status = read["session"]["status"]
                    if status in _ENDED:
                        remark(f"greenroom watch: {session.uri} is {status}")
                        return _exits.OK
                    if await anext(changes, None) is None:
                        break  # the server closed the stream; a new one says what was missed
    except MCPError as error:
        return complain("watch", f"{session.uri}: {visible(error.message)}", _exits.FAILED)
    except SubscriptionLost:
        return complain("watch", "the connection is lost for good", _exits.FAILED)


def _introduce(session: _Session, read: dict[str, Any]) -> None:
    about, count = read["session"], read["statistics"]["message_count"]
    shown = len(read["messages"])
    which = f"the newest {shown:,} of {count:,} messages" if read["has_more"] else f"{count:,} messages"
    remark(f"greenroom watch: {session.uri} {visible(about['purpose'])!r} is {about['status']}; {which}")


async def _read(client: Client, session: _Session) -> dict[str, Any]:
    (content,) = (await client.read_resource(session.uri)).contents
    assert isinstance(content, TextResourceContents), "a session is text"
    found: dict[str, Any] = json.loads(content.text)
    return found


async def _new_messages(
    client: Client, session: _Session, read: dict[str, Any]
) -> AsyncIterator[_watch_lines.Message]:
    """Yields the messages after the last one, oldest first, and notes them."""
    newest: list[_watch_lines.Message] = read["messages"]
    if session.last is not None and read["has_more"] and newest[0]["message_id"] > session.last:
        await client.list_tools()  # says which tools only read, so that a lost connection is no failure
        page: dict[str, Any] = {"next_cursor": None}
        while True:
            arguments = {"session_id": session.id, "since_id": session.last, "limit": _PAGE}
            page = await _call(client, "get_messages", arguments)
            for message in page["messages"]:
                session.last = message["message_id"]
                yield message
            if page["next_cursor"] is None:
                break
    for message in newest:
        if message["message_id"] > (session.last or 0):
            session.last = message["message_id"]
            yield message
    session.last = session.last or 0


async def _call(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    content = result.content[0]
    assert isinstance(content, TextContent), "tools answer with text"
    answer: dict[str, Any] = json.loads(content.text)
    if result.is_error:
        raise MCPError(0, answer["error"])
    return answer


async def _say(text: str) -> bool:
    # In a thread: a reader who pauses must not keep us from answering the server's pings.
    return await trio.to_thread.run_sync(say, text, abandon_on_cancel=True)
