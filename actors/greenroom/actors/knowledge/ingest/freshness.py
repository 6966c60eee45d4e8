"""Which files differ on disk from what a corpus has of them: looked at where the client is connected.

Only documents that were read from files are looked at, never texts that were sent, whatever they are called;
and only where whoever asks might have files read.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.knowledge.corpora.requests.corpus_requests import FreshnessView, IndexedFile
from greenroom.actors.knowledge.ingest.files.places import Reach, may_look

SECONDS: Final = 0.25
"""What was not looked at by then is left out."""
_AT_ONCE: Final = 2
"""Answers whose files are looked at; a file system that hangs holds no other threads."""
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("files looked at")


async def with_changes(said: FreshnessView, files: Sequence[IndexedFile], reach: Reach) -> FreshnessView:
    """Return how fresh an answer is, with those of its files that changed since, where they may be looked at.

    Args:
        said: What the corpus says.
        files: Those of the answer.
        reach: What may be read for whoever asked.
    """
    if not files or (reach.roots == () and not reach.takes_client_folders):
        return said
    return with_states(said, await states_of(files, reach))


async def states_of(files: Sequence[IndexedFile], reach: Reach) -> dict[str, bool | None]:
    """Return of each file that could be looked at whether it differs from what was read; None: it is gone."""
    look = _Look(files, reach)
    with trio.move_on_after(SECONDS):
        await trio.to_thread.run_sync(look.run, limiter=_threads(), abandon_on_cancel=True)
    return look.end()


def with_states(said: FreshnessView, states: Mapping[str, bool | None]) -> FreshnessView:
    """Return how fresh an answer is, with what `states_of` its files says."""
    return msgspec.structs.replace(
        said,
        files_checked=len(states),
        changed_files=[path for path, differs in states.items() if differs] or UNSET,
        missing_files=[path for path, differs in states.items() if differs is None] or UNSET,
    )


def _threads() -> trio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_AT_ONCE)
        _limiter.set(limiter)
        return limiter


class _Look:
    """A look at files, one after the other, in a thread that nobody may wait for any more."""

    def __init__(self, files: Sequence[IndexedFile], reach: Reach) -> None:
        self._files = files
        self._reach = reach
        self._is_over = threading.Event()
        self._states: dict[str, bool | None] = {}

    def run(self) -> None:
        """Look at them, until it is over."""
        from greenroom.actors.knowledge.ingest.files.file_content import differs  # noqa: PLC0415 - slow, and in a thread by now

        for file in self._files:
            if self._is_over.is_set():
                return
            if not may_look(file.path, self._reach):
                continue
            try:
                self._states[file.path] = differs(file)
            except OSError as error:
                if error.errno in _GONE:
                    self._states[file.path] = None

    def end(self) -> dict[str, bool | None]:
        """End it, and return what it found so far."""
        self._is_over.set()
        return dict(self._states)
