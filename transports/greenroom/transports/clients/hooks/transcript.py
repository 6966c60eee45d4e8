"""The tail of a transcript: what was added to it since it was last told, in bounded time and memory.

The file is another program's, which writes it meanwhile: it may end within a line, be cut, written anew or
removed, and hold anything. It is read only in the client's own folder, and through no link.
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from greenroom.actors.base.two_ends import two_ends
from greenroom.actors.core.base.regular_files import UnreadableFileError, opened
from greenroom.actors.sessions.requests.hook_events import MAX_TURN, MAX_TURNS
from greenroom.transports.clients.hooks.dialects import Transcripts
from greenroom.transports.clients.hooks.spool import Kept
from greenroom.transports.clients.hooks.turns import Conversation, RawTurn

MAX_SCAN: Final = 16 << 20
"""Bytes of a tail that are looked at, the newest ones."""
MAX_LINE: Final = 2 << 20
"""Bytes of a line that is read; longer ones are passed over."""
MAX_TEXT: Final = 400_000
"""Characters of the turns together, the newest ones."""
MAX_OUTPUT: Final = 2_000
"""Characters of what a tool answered: more of it is worth nothing to a later session."""
MAX_COMMAND: Final = 2_000
GAP: Final = "\n[...]\n"
"""Stands for the middle of a text that is too long; its two ends are lines of their own."""
_CHUNK: Final = 1 << 20
_MARK_BYTES: Final = 256
_SUFFIX: Final = ".jsonl"


class TranscriptRefusedError(Exception):
    """A transcript is not read; the sentence says why."""


class Tail(NamedTuple):
    """What a transcript has that was not told.

    Attributes:
        turns: The newest of its turns, oldest first.
        kept: How far it was read.
    """

    turns: list[RawTurn]
    kept: Kept


def checked_path(named: str, place: Transcripts, environment: Mapping[str, str]) -> str:
    """Return the path of a transcript without links.

    Args:
        named: What the client calls it.
        place: Where the client keeps them.
        environment: Says where its folder is, if it is not in the home folder.

    Raises:
        TranscriptRefusedError: It is elsewhere, or has another name than transcripts have.
    """
    home = environment.get(place.variable) or os.path.expanduser(f"~/{place.home}")  # noqa: PTH111 - texts, as below
    folder = os.path.realpath(os.path.join(home, place.below))  # noqa: PTH118
    if "\0" in named or not os.path.isabs(named):  # noqa: PTH117
        raise TranscriptRefusedError(f"the transcript {named[:200]!r} is no path from / on")
    path = os.path.realpath(named)
    if not path.startswith(folder + "/") or not path.endswith(_SUFFIX):
        raise TranscriptRefusedError(
            f"the transcript {named[:200]!r} is no {_SUFFIX} file in {folder}, and nothing else is read"
        )
    return path


def key_of(client: str, session: str, path: str) -> str:
    """Return the key under which it is kept how far a transcript was told."""
    return blake2b(f"{client}\0{session}\0{path}".encode(errors="replace"), digest_size=16).hexdigest()


def read_tail(path: str, place: Transcripts, kept: Kept | None) -> Tail:
    """Return what a transcript has beyond what was told; all of it if it was written anew.

    Args:
        path: As `checked_path` returns it.
        place: Says how its lines are spelled.
        kept: How far it was told.

    Raises:
        FileNotFoundError: There is none.
        TranscriptRefusedError: It is no plain file, or below a link by now.
        OSError: It cannot be read.
    """
    try:
        file = opened(path)
    except UnreadableFileError as error:
        raise TranscriptRefusedError(f"the transcript {path[:200]!r} is not read: {error}") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        start = kept.offset if kept is not None and _is_as_told(file, kept, size) else 0
        talk = Conversation(place.reader)
        lines = _Lines(file, start, size)
        turns = _newest(turn for line in lines for turn in talk.turns_in(line))
        return Tail(turns, Kept(offset=lines.end, mark=_mark(file, lines.end)))


class _Lines:
    """The whole lines of a part of a file; `end` is where the last one ended."""

    def __init__(self, file: io.FileIO, start: int, size: int) -> None:
        self._file = file
        self._size = size
        self._start = max(start, size - MAX_SCAN)
        self._passes_over = self._start > start  # within a line
        self.end = start

    def __iter__(self) -> Iterator[bytes]:
        rest = bytearray()
        at = self._start
        while at < self._size:
            chunk = os.pread(self._file.fileno(), min(_CHUNK, self._size - at), at)
            if not chunk:  # it was cut meanwhile
                return
            begin = 0
            while (end := chunk.find(b"\n", begin)) >= 0:
                if not self._passes_over and len(rest) + end - begin <= MAX_LINE:
                    yield bytes(rest) + chunk[begin:end]
                rest.clear()
                self._passes_over = False
                begin = end + 1
                self.end = at + begin
            at += len(chunk)
            if not self._passes_over:
                rest += chunk[begin:]
            if len(rest) > MAX_LINE:
                rest.clear()
                self._passes_over = True


def _is_as_told(file: io.FileIO, kept: Kept, size: int) -> bool:
    return kept.offset <= size and _mark(file, kept.offset) == kept.mark


def _mark(file: io.FileIO, offset: int) -> str:
    """Return a digest of the bytes before a place, by which a file that was written anew is told."""
    first = max(0, offset - _MARK_BYTES)
    return blake2b(os.pread(file.fileno(), offset - first, first), digest_size=16).hexdigest()


def _newest(turns: Iterable[RawTurn]) -> list[RawTurn]:
    """Return the newest turns within the limits, each no longer than is looked at for secrets."""
    kept: deque[RawTurn] = deque()
    size = 0
    for turn in turns:
        kept.append(_shortened(turn))
        size += _size(kept[-1])
        while len(kept) > 1 and (size > MAX_TEXT or len(kept) > MAX_TURNS):
            size -= _size(kept.popleft())
    return list(kept)


def _shortened(turn: RawTurn) -> RawTurn:
    call = turn.call
    if call is not None:
        call = call._replace(command=two_ends(call.command, 2 * MAX_COMMAND, GAP), output="")
    return turn._replace(text=two_ends(turn.text, 2 * limit_of(turn), GAP), call=call)


def _size(turn: RawTurn) -> int:
    return len(turn.text) + (len(turn.call.command) + len(turn.call.path) if turn.call else 0)


def limit_of(turn: RawTurn) -> int:
    """Return how many characters of a turn's text are kept."""
    return MAX_OUTPUT if turn.role == "tool" else MAX_TURN
