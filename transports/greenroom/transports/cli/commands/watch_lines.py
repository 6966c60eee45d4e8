"""How `greenroom watch` prints a message: a line for a pipe, colours for a terminal, JSON for programs."""

from __future__ import annotations

import datetime as dt
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from greenroom.transports.cli.support.terminal import paint, printable

Message = dict[str, Any]

_SENDERS: Final = ("green", "cyan", "blue", "magenta", "yellow")
_VISIBILITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "public": ("dim",),
    "private": ("bold", "yellow"),
    "agent_only": ("bold", "magenta"),
}
_MARGIN: Final = (
    "    | "  # before each further line of a message, so that none looks like a message of its own
)


def as_json(message: Message) -> str:
    """Return a message as the server tells it, on one line."""
    return json.dumps(message)


def plain(message: Message) -> str:
    """Return a message on one line without a terminal's commands."""
    return "  ".join(
        [
            printable(str(message["timestamp"])),
            printable(message["sender"]),
            printable(message["visibility"]),
            printable(message["content"]),
        ]
    )


def coloured(message: Message) -> str:
    """Return a message for a terminal, its time that of this place."""
    sender, visibility = printable(message["sender"]), printable(message["visibility"])
    colour = _SENDERS[zlib.crc32(sender.encode(errors="replace")) % len(_SENDERS)]
    first, *others = message["content"].split("\n")
    head = [
        paint(_local(message["timestamp"]), "dim"),
        paint(f"{sender:<12}", "bold", colour),
        paint(f"{visibility:<10}", *_VISIBILITIES.get(message["visibility"], ())),
        printable(first),
    ]
    return "\n".join(["  ".join(head), *(paint(_MARGIN, "dim") + printable(other) for other in others)])


def style(*, json: bool, colours: bool) -> Callable[[Message], str]:
    """Return the way to print messages."""
    if json:
        return as_json
    return coloured if colours else plain


def _local(timestamp: str) -> str:
    return dt.datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")
