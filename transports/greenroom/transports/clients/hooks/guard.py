"""The guard of a hook: exit code 0 within the time limit, whatever goes wrong.

Clients treat any other exit code as a refusal of the user's action. So the guard starts before all other
imports, and imports next to nothing itself.
"""

from __future__ import annotations

import _thread
import gc
import os
import signal
import time
from contextlib import suppress
from contextvars import ContextVar

from greenroom.transports.clients.hooks.client_json import read_object

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Final

ASKING: Final = frozenset({"session-start", "user-prompt"})
"""The hooks whose client waits for an answer."""
TELLING: Final = frozenset({"pre-compact", "post-tool", "stop", "session-end"})
"""The hooks that only tell something."""
LIMIT: Final = 3.0
"""Seconds that a hook may take by default; clients allow five and more."""
_NOTE_SECONDS: Final = 1.5
"""Seconds to wait at the end for the record of a failure, as the disk may hang."""


class Run:
    """One run of a hook, with its time limit.

    Attributes:
        folder: The data folder, once known.
        event_id: The id of the event in a request to the owner; empty without one.
    """

    def __init__(self, hook: str) -> None:
        self.folder: Path | str | None = None
        self.hook = hook
        self._given: bytes | Exception | None = None
        self.event_id = ""
        self._began = time.monotonic()
        self._seconds = LIMIT
        self._timer = self._started()

    @property
    def rest(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._seconds - (time.monotonic() - self._began))

    def read(self) -> bytes:
        """Return the input; it is read once, and if that fails, it fails again."""
        if self._given is None:
            try:
                self._given = read_object(0)
            except Exception as error:  # noqa: BLE001 - raised below
                self._given = error
        if isinstance(self._given, Exception):
            raise self._given
        return self._given

    def allow(self, seconds: float) -> None:
        """Set another time limit, counted from the start."""
        self._timer.release()
        self._seconds = seconds
        self._timer = self._started()

    def end(self) -> None:
        """Stop the time limit."""
        self._timer.release()

    def fail(self, sentence: str) -> None:
        """Record that the hook failed."""
        with suppress(Exception):  # also of a broken installation
            from greenroom.transports.clients.hooks.failures import note_failure  # noqa: PLC0415 - needed only now

            note_failure(self.folder, self.hook, sentence)

    def _started(self) -> _thread.LockType:
        """Start a time limit, which ends when the lock is released."""
        timer = _thread.allocate_lock()  # `threading` would take as long to import as a hook's work
        timer.acquire()
        rest, sentence = self.rest, f"it was not done after {self._seconds:g} s"

        def wait() -> None:
            if not timer.acquire(timeout=rest):
                self.end_now(sentence)

        _thread.start_new_thread(wait, ())
        return timer

    def end_soon(self, *_signal: object) -> None:
        """Handle a signal in another thread, because this thread may hold a lock."""
        _thread.start_new_thread(self.end_now, ("its client ended it",))

    def end_now(self, sentence: str) -> None:
        """Record the reason and exit the process, even if it waits for something."""
        noted = _thread.allocate_lock()
        noted.acquire()

        def note() -> None:
            try:
                self.fail(sentence)
            finally:
                noted.release()

        _thread.start_new_thread(note, ())
        noted.acquire(timeout=_NOTE_SECONDS)
        os._exit(os.EX_OK)


RUN: Final[ContextVar[Run]] = ContextVar("run of a hook")
"""The run of this process."""


def run_guarded(arguments: Sequence[str], carry_out: Callable[[Sequence[str]], int]) -> int:
    """Run a hook's command line and return 0, even after an error."""
    gc.disable()  # the process ends before there is much to collect
    run = Run(next((each for each in arguments[1:] if not each.startswith("-")), ""))
    RUN.set(run)
    signal.signal(signal.SIGTERM, run.end_soon)
    try:
        if (code := carry_out(arguments)) != os.EX_OK:
            run.fail(f"it ended with code {code}, and standard error says why")
    except SystemExit as end:
        if end.code:
            run.fail(f"`greenroom {' '.join(arguments)}` is not understood; see `greenroom hook --help`")
    except BaseException as error:  # noqa: BLE001 - no caller could handle it
        run.fail(sentence_of(error))
    run.end()
    return os.EX_OK


def sentence_of(error: BaseException) -> str:
    """Describe an error in a sentence; for a group of errors, describe the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
