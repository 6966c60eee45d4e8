"""The guard of a hook: exit code 0 within the time limit, whatever goes wrong.

Clients treat any other exit code as a refusal of the user's action. So the guard starts before all imports
except the import of the module that records failures.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from greenroom.transports.clients.hooks.failures import note_failure

LIMIT: Final = 3.0
"""Seconds that a hook may take by default; clients allow five and more."""
_NOTE_SECONDS: Final = 1.5
"""Seconds to wait at the end for the record of a failure, as the disk may hang."""


class Run:
    """One run of a hook, with its time limit."""

    def __init__(self, hook: str) -> None:
        self.folder: Path | None = None
        self.hook = hook
        self._began = time.monotonic()
        self._seconds = LIMIT
        self._timer = self._started()

    @property
    def rest(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._seconds - (time.monotonic() - self._began))

    def allow(self, seconds: float) -> None:
        """Set another time limit, counted from the start."""
        self._timer.cancel()
        self._seconds = seconds
        self._timer = self._started()

    def end(self) -> None:
        """Stop the time limit."""
        self._timer.cancel()

    def fail(self, sentence: str) -> None:
        """Record that the hook failed."""
        note_failure(self.folder, self.hook, sentence)

    def _started(self) -> threading.Timer:
        timer = threading.Timer(self.rest, self.end_now, [f"it was not done after {self._seconds:g} s"])
        timer.daemon = True
        timer.start()
        return timer

    def end_soon(self, *_signal: object) -> None:
        """Handle a signal in another thread, because this thread may hold a lock."""
        threading.Thread(target=self.end_now, args=("its client ended it",), daemon=True).start()

    def end_now(self, sentence: str) -> None:
        """Record the reason and exit the process, even if it waits for something."""
        noting = threading.Thread(target=self.fail, args=(sentence,), daemon=True)
        noting.start()
        noting.join(_NOTE_SECONDS)
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
