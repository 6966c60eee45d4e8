"""Changes of clients' files that were shown, and wait for the user's consent."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from greenroom.transports.clients.setup.files import read
from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.terminal import printable


class Change(NamedTuple):
    """A change of a client's file."""

    client: str
    carry_out: Callable[[], Awaitable[None]]
    done: str  # what it has done, in words
    after: str = ""  # what the user does then
    start: tuple[str, list[str]] | None = None  # the server that the client starts then


class Plan:
    """The changes to come, and what the files will be after them."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._texts: dict[Path, str | None] = {}

    def text_of(self, path: Path) -> str | None:
        """Return a file's text after the changes; server and hooks may share a file."""
        return self._texts[path] if path in self._texts else read(path)

    def add(self, change: Change, path: Path, text: str | None) -> None:
        """Add a change, after which a file has this text."""
        self.changes.append(change)
        self._texts[path] = text


def show_change(path: Path, before: str, after: str) -> None:
    """Print the difference between two texts of a file; these contain no secrets."""
    name = str(path)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=2, lineterm="")
    for line in lines:
        say(printable(line.replace("\t", "    ")))
