"""The new part of a transcript, read in bounded time and memory.

Another program writes the file at the same time. So the file may end within a line, be truncated, rewritten
or removed, and contain anything. Only a file in the client's own folder is read, and never through a link.
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.core.base.regular_files import UnreadableFileError, open_regular_file
from greenroom.actors.sessions.requests.hook_limits import MAX_TURN, MAX_TURNS
from greenroom.transports.clients.hooks.dialects import Transcripts
from greenroom.transports.clients.hooks.spool_writer import ReadOffset
from greenroom.transports.clients.hooks.turns import Conversation, RawTurn

MAX_SCAN: Final = 16 << 20
"""At most this many bytes of the new part are read: the newest ones."""
MAX_LINE: Final = 2 << 20
"""The most bytes of a line that is read; longer lines are skipped."""
MAX_TEXT: Final = 400_000
"""All turns together have at most this many characters; the newest turns are kept."""
MAX_OUTPUT: Final = 2_000
"""The most characters of a tool's output; later sessions do not need more."""
MAX_COMMAND: Final = 2_000
GAP: Final = "\n[...]\n"
"""Replaces the middle of a long text; both ends become lines of their own."""
_CHUNK: Final = 1 << 20
_MARK_BYTES: Final = 256
_SUFFIX: Final = ".jsonl"


class TranscriptRefusedError(Exception):
    """A transcript may not be read; the sentence says why."""


def check_path(named: str, place: Transcripts, environment: Mapping[str, str]) -> str:
    """Return the real path of a transcript.

    Args:
        named: The path that the client sent.
        place: The location of the client's transcripts.
        environment: The environment variables; one of them may name the client's folder.

    Raises:
        TranscriptRefusedError: The path is in another folder, or has another extension.
    """
    user = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - as texts
    home = environment.get(place.variable) or f"{user}/{place.home}"
    folder = os.path.realpath(os.path.join(home, place.below))  # noqa: PTH118
    if "\0" in named or not os.path.isabs(named):  # noqa: PTH117
        raise TranscriptRefusedError(f"the transcript {named[:200]!r} is no absolute path")
    path = os.path.realpath(named)
    if not path.startswith(folder + "/") or not path.endswith(_SUFFIX):
        raise TranscriptRefusedError(
            f"the transcript {named[:200]!r} is no {_SUFFIX} file in {folder}, and nothing else is read"
        )
    return path


def key_of(client: str, session: str, path: str) -> str:
    """Return the key of a transcript's read offset."""
    return blake2b(f"{client}\0{session}\0{path}".encode(errors="replace"), digest_size=16).hexdigest()


def read_tail(path: str, place: Transcripts, kept: ReadOffset | None) -> tuple[list[RawTurn], ReadOffset]:
    """Return the part of a transcript after an offset; all of it if rewritten.

    Args:
        path: The result of `check_path`.
        place: The format of the transcript's lines.
        kept: The last read offset.

    Raises:
        FileNotFoundError: The transcript does not exist.
        TranscriptRefusedError: The transcript is no plain file, or has become a link.
        OSError: The transcript cannot be read.
    """
    try:
        file = open_regular_file(path)
    except UnreadableFileError as error:
        raise TranscriptRefusedError(f"the transcript {path[:200]!r} is not read: {error}") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        is_known = kept is not None and kept.offset <= size and _mark(file, kept.offset) == kept.mark
        start = kept.offset if kept is not None and is_known else 0
        first = b""
        if place.reader == "rollout":  # its first line tells who began the session
            first = next(iter(_Lines(file, 0, min(size, _CHUNK))), b"")
        lines = _Lines(file, start, size)
        talk = Conversation(place.reader)
        turns = _turns(talk, first, lines)
        if talk.lacks_call:  # its line was read before, or follows that of the result
            talk = Conversation(place.reader)
            _turns(talk, first, _Lines(file, max(0, start - _CHUNK), lines.end))
            turns = _turns(Conversation(place.reader, talk.calls), first, _Lines(file, start, lines.end))
        return turns, ReadOffset(offset=lines.end, mark=_mark(file, lines.end))


def _turns(talk: Conversation, first: bytes, lines: Iterable[bytes]) -> list[RawTurn]:
    """Return the newest turns of lines; the file's first line tells more of them."""
    list(talk.turns_in(first))
    return _newest(turn for line in lines for turn in talk.turns_in(line))


class _Lines:
    """The complete lines of a part of a file; `end` follows the last complete line."""

    def __init__(self, file: io.FileIO, start: int, size: int) -> None:
        self._file = file
        self._size = size
        self._start = max(start, size - MAX_SCAN)
        self._passes_over = self._start > start  # the start may be within a line
        self.end = start

    def __iter__(self) -> Iterator[bytes]:
        rest = bytearray()
        at = self._start
        while at < self._size:
            chunk = os.pread(self._file.fileno(), min(_CHUNK, self._size - at), at)
            if not chunk:  # the file was truncated
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


def _mark(file: io.FileIO, offset: int) -> str:
    """Return a digest of the bytes before an offset, to detect a rewritten file."""
    first = max(0, offset - _MARK_BYTES)
    return blake2b(os.pread(file.fileno(), offset - first, first), digest_size=16).hexdigest()


def _newest(turns: Iterable[RawTurn]) -> list[RawTurn]:
    """Return the newest turns within the limits, each short enough for the search for secrets."""
    kept: deque[RawTurn] = deque()
    size = 0
    for turn in turns:
        kept.append(_shorten(turn))
        size += _size(kept[-1])
        while len(kept) > 1 and (size > MAX_TEXT or len(kept) > MAX_TURNS):
            size -= _size(kept.popleft())
    return list(kept)


def _shorten(turn: RawTurn) -> RawTurn:
    call = turn.call
    if call is not None:
        call = call._replace(command=truncate_middle(call.command, 2 * MAX_COMMAND, GAP), output="")
    return turn._replace(text=truncate_middle(turn.text, 2 * limit_of(turn), GAP), call=call)


def _size(turn: RawTurn) -> int:
    return len(turn.text) + (len(turn.call.command) + len(turn.call.path) if turn.call else 0)


def limit_of(turn: RawTurn) -> int:
    """Return how many characters of a turn's text are kept."""
    return MAX_OUTPUT if turn.role == "tool" else MAX_TURN
