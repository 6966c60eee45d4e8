"""`greenroom watch`: follows a session on the server of a folder, or at a WebSocket.

Messages go to standard output; remarks on the session and the connection go to standard error. Each read
continues after the last message, so no message is missed or printed twice, even if the server restarts.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import logging
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Union

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.parsers import name
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.errors import InvalidValueError
from greenroom.transports.ops.cli.commands.watch_folder import (
    SCHEME,
    FolderSource,
    WatchError,
    open_folder_source,
)
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.error_report import run_until_signal
from greenroom.transports.ops.cli.support.terminal import paint, printable, shows_colours

if TYPE_CHECKING:
    from greenroom.transports.ops.cli.commands.watch_socket import SocketSource

Message = dict[str, Any]
_Source = Union[FolderSource, "SocketSource"]
_Place = AbstractAsyncContextManager[_Source]

_SENDERS: Final = ("green", "cyan", "blue", "magenta", "yellow")
_VISIBILITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "public": ("dim",),
    "private": ("bold", "yellow"),
    "agent_only": ("bold", "magenta"),
}
_MARGIN: Final = "    | "  # precedes all further lines of a message: no line looks like a new message
_ENDED: Final = frozenset({"terminated", "archived"})


def watch(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print the session's messages until it ends, or until Ctrl-C; return the exit code."""
    # Problems of the connection go to standard error, without a log's prefix.
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="greenroom watch: %(message)s")
    logging.getLogger("greenroom").setLevel(resolved.settings.log_level.upper())
    try:
        session_id = name(128)(chosen.session.removeprefix(SCHEME))
    except InvalidValueError as error:
        return complain("watch", f"the session is {chosen.session!r}, but {error}", exit_codes.USAGE)
    place = _place(session_id, chosen.url, resolved.settings)
    line: Callable[[Message], str] = coloured if shows_colours(sys.stdout) else plain
    if chosen.json:
        line = json.dumps
    follow = partial(_follow, _Session(session_id), place, line)
    return run_until_signal("watch", follow, exit_codes.OK)


def _place(session_id: str, url: str | None, settings: Settings) -> _Place:
    """Return the source of the session."""
    if url is None:
        return open_folder_source(session_id, settings)
    from greenroom.transports.ops.cli.commands.watch_socket import open_socket_source  # noqa: PLC0415 - the SDK takes a second

    return open_socket_source(session_id, url, settings)


@dataclass
class _Session:
    """The state of the session."""

    id: str
    # The id of the last printed message; 0 before the first one, None before the first read.
    last: int | None = None

    @property
    def uri(self) -> str:
        """The URI of the resource to follow."""
        return SCHEME + self.id


async def _follow(
    session: _Session,
    place: _Place,
    line: Callable[[Message], str],
) -> int:
    try:
        async with place as seen:
            try:
                return await _print_all(seen, session, line)
            except WatchError as error:  # caught here, because nurseries would put it into a group
                return complain("watch", str(error), exit_codes.FAILED)
    except WatchError as error:
        return complain("watch", str(error), exit_codes.FAILED)
    except ValueError as error:  # the URL is invalid
        return complain("watch", str(error), exit_codes.USAGE)


async def _print_all(seen: _Source, session: _Session, line: Callable[[Message], str]) -> int:
    while True:
        async with seen.changes() as next_change:
            while True:
                read = await seen.read()
                if session.last is None:
                    _introduce(session, read)
                async for message in _new_messages(seen, session, read):
                    # Printing in a thread: if the reader pauses, this process must still answer pings.
                    if not await trio.to_thread.run_sync(say, line(message), abandon_on_cancel=True):
                        return exit_codes.OK
                status = read["session"]["status"]
                if status in _ENDED:
                    remark(f"greenroom watch: {session.uri} is {status}")
                    return exit_codes.OK
                if not await next_change():
                    break


def _introduce(session: _Session, read: dict[str, Any]) -> None:
    about, count = read["session"], read["statistics"]["message_count"]
    shown = len(read["messages"])
    which = f"the newest {shown:,} of {count:,} messages" if read["has_more"] else f"{count:,} messages"
    remark(f"greenroom watch: {session.uri} {printable(about['purpose'])!r} is {about['status']}; {which}")


async def _new_messages(seen: _Source, session: _Session, read: dict[str, Any]) -> AsyncIterator[Message]:
    """Yield the messages after the last printed one, oldest first, and update the state."""
    newest: list[Message] = read["messages"]
    if session.last is not None and read["has_more"] and newest[0]["message_id"] > session.last:
        while True:
            page = await seen.page(session.last)
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


def plain(message: Message) -> str:
    """Render a message as one plain line."""
    return "  ".join(
        [
            printable(str(message["timestamp"])),
            printable(message["sender"]),
            printable(message["visibility"]),
            printable(message["content"]),
        ]
    )


def coloured(message: Message) -> str:
    """Render a message for a terminal, with local time."""
    sender, visibility = printable(message["sender"]), printable(message["visibility"])
    colour = _SENDERS[zlib.crc32(sender.encode(errors="replace")) % len(_SENDERS)]
    first, *others = message["content"].split("\n")
    at = dt.datetime.fromisoformat(message["timestamp"]).astimezone()
    head = [
        paint(f"{at:%Y-%m-%d %H:%M:%S}", "dim"),
        paint(f"{sender:<12}", "bold", colour),
        paint(f"{visibility:<10}", *_VISIBILITIES.get(message["visibility"], ())),
        printable(first),
    ]
    return "\n".join(["  ".join(head), *(paint(_MARGIN, "dim") + printable(other) for other in others)])
