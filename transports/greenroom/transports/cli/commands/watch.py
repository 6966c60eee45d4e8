"""`greenroom watch`: a session as it grows, read where its server is: on the folder, or at a WebSocket.

Messages go to standard output; what is said about the session and the connection goes to
standard error. What is new is what comes after the last message, so none is missed and none is
printed twice, whatever becomes of the server meanwhile.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from greenroom.transports.base import exits
from greenroom.transports.cli.commands import watch_lines
from greenroom.transports.cli.commands.colours import paints
from greenroom.transports.cli.commands.error_report import reported
from greenroom.transports.cli.commands.signals import until_signal
from greenroom.transports.cli.commands.terminal_safe import visible
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.config.parsers import NotAllowedError, name

if TYPE_CHECKING:
    import argparse

    from greenroom.transports.config.load import Resolved
    from greenroom.transports.config.settings import Settings

SCHEME: Final = "session://"
_ENDED: Final = frozenset({"terminated", "archived"})


class NotWatchedError(Exception):
    """The session cannot be followed, or not any more; the message says why."""


class Seen(Protocol):
    """A session as its server shows it; what it does raises `NotWatchedError`."""

    async def read(self) -> dict[str, Any]:
        """Return the resource: the session with its newest messages."""

    async def page(self, after: int) -> dict[str, Any]:
        """Return messages that are newer than one, the oldest of them first."""

    def changes(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """Return a block in which one may wait for the next change, False when a new block is needed."""


def watch(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Prints the session's messages until it ends, or until Ctrl-C; returns the exit code."""
    _start_logging(resolved.settings.log_level)
    try:
        session_id = name(128)(chosen.session.removeprefix(SCHEME))
    except NotAllowedError as error:
        return complain("watch", f"the session is {chosen.session!r}, but {error}", exits.USAGE)
    place = _place(session_id, chosen.url, resolved.settings)
    line = watch_lines.style(json=chosen.json, colours=paints(sys.stdout))
    follow = partial(_follow, _Session(session_id), place, line)
    return reported("watch", partial(trio.run, until_signal, follow, exits.OK, strict_exception_groups=True))


def _place(session_id: str, url: str | None, settings: Settings) -> AbstractAsyncContextManager[Seen]:
    """Where the session is seen."""
    if url is None:
        from greenroom.transports.cli.commands.watch_folder import on_folder  # noqa: PLC0415 - only one is needed

        return on_folder(session_id, settings)
    from greenroom.transports.cli.commands.watch_socket import at_socket  # noqa: PLC0415 - the SDK takes a second

    return at_socket(session_id, url, settings)


def _start_logging(level: str) -> None:
    """Sends what is said of the connection to standard error, without a log's ornaments."""
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
        return SCHEME + self.id


async def _follow(
    session: _Session,
    place: AbstractAsyncContextManager[Seen],
    line: Callable[[watch_lines.Message], str],
) -> int:
    try:
        async with place as seen:
            try:
                return await _print_all(seen, session, line)
            except NotWatchedError as error:  # what is around it would put it into a group
                return complain("watch", str(error), exits.FAILED)
    except NotWatchedError as error:
        return complain("watch", str(error), exits.FAILED)
    except ValueError as error:  # a URL that is none
        return complain("watch", str(error), exits.USAGE)


async def _print_all(seen: Seen, session: _Session, line: Callable[[watch_lines.Message], str]) -> int:
    while True:
        async with seen.changes() as next_change:
            while True:
                read = await seen.read()
                if session.last is None:
                    _introduce(session, read)
                async for message in _new_messages(seen, session, read):
                    if not await _say(line(message)):
                        return exits.OK
                status = read["session"]["status"]
                if status in _ENDED:
                    remark(f"greenroom watch: {session.uri} is {status}")
                    return exits.OK
                if not await next_change():
                    break


def _introduce(session: _Session, read: dict[str, Any]) -> None:
    about, count = read["session"], read["statistics"]["message_count"]
    shown = len(read["messages"])
    which = f"the newest {shown:,} of {count:,} messages" if read["has_more"] else f"{count:,} messages"
    remark(f"greenroom watch: {session.uri} {visible(about['purpose'])!r} is {about['status']}; {which}")


async def _new_messages(
    seen: Seen, session: _Session, read: dict[str, Any]
) -> AsyncIterator[watch_lines.Message]:
    """Yields the messages after the last one, oldest first, and notes them."""
    newest: list[watch_lines.Message] = read["messages"]
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


async def _say(text: str) -> bool:
    # In a thread: a reader who pauses must not keep us from answering the server's pings.
    return await trio.to_thread.run_sync(say, text, abandon_on_cancel=True)
