"""Error reports of commands: one sentence on standard error, and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import select
import signal
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.base.tool_names import with_tools
from greenroom.transports.ops.cli.output import complain
from greenroom.transports.ops.control.client import ControlSocketError

logger = logging.getLogger(__name__)

STANDARD_ERROR = 2

Complain = Callable[[str, str, int], int]
"""Says why a command, by its name, could not be carried out, in a sentence; returns the exit code."""


class _NeverWaits:
    """Standard error as a stream that drops what finds no room there.

    A client need not read it. Waiting for room in a full pipe would hold the event loop, and with it
    every request and every signal, for good.
    """

    def __init__(self, dropped: Callable[[int], str]) -> None:
        self._notice = dropped
        self._room = select.poll()
        self._room.register(STANDARD_ERROR, select.POLLOUT)
        self._dropped = 0

    def write(self, text: str) -> None:
        if self._dropped and self._room.poll(0):
            text = f"{self._notice(self._dropped)}\n{text}"
            self._dropped = 0
        data = text.encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # its reader has gone
            # A descriptor that is ready takes this many bytes without waiting.
            for start in range(0, len(data), select.PIPE_BUF):
                if not self._room.poll(0):
                    self._dropped += 1
                    break
                os.write(STANDARD_ERROR, data[start : start + select.PIPE_BUF])


class _WithoutKeys(logging.Formatter):
    """Whatever is logged, no API key is: the last line of defence, behind code that never has one to log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry's text."""
        text = super().format(record)
        if "gr_" not in text:
            return text
        from greenroom.actors.core.auth.key_format import without_keys  # noqa: PLC0415 - needed by few entries

        return without_keys(text)


def start_logging(level: str) -> None:
    """Send the program's log to standard error, which is all that MCP leaves for it."""
    handler = logging.StreamHandler(_NeverWaits(_dropped))
    handler.setFormatter(_WithoutKeys("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level.upper())


def start_json_log(level: str) -> None:
    """Send the program's log there as JSON, a line an entry, and Python's warnings with it."""
    from greenroom.transports.cli.support import json_log  # noqa: PLC0415 - few want it

    handler = logging.StreamHandler(_NeverWaits(json_log.dropped))
    handler.setFormatter(json_log.JsonLines())
    logging.basicConfig(handlers=[handler], level=level.upper())
    logging.captureWarnings(capture=True)


def _dropped(count: int) -> str:
    return f"({count} entries before this one were dropped: nobody read them)"


def log_complaint(command: str, sentence: str, code: int) -> int:
    """Log why a command could not be carried out, where the log is JSON; return its exit code."""
    logger.error("greenroom %s: %s", command, sentence)
    return code


def run_reported(command: str, action: Callable[[], int], complain: Complain = complain) -> int:
    """Run a command's action; an error on purpose becomes its sentence on standard error.

    The traceback of such an error is only shown at log level debug. Any other error is a
    fault of this program and always shows it.

    Args:
        command: The command.
        action: What it does.
        complain: Says what was wrong, `log_complaint` where the log is JSON.

    Returns:
        The exit code.
    """
    try:
        return action()
    except ControlSocketError as error:
        return complain(command, str(error), error.code)
    except (Exception, BaseExceptionGroup) as error:
        causes = leaf_errors(error)
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            return exit_codes.INTERRUPTED
        verdict = exit_code_for(causes)
        if verdict is None or logging.getLogger().isEnabledFor(logging.DEBUG):
            if complain is log_complaint:
                logger.exception("greenroom %s ended", command, exc_info=error)
            else:
                traceback.print_exception(error)
        code, sentence = verdict or (exit_codes.INTERNAL, f"internal fault: {type(error).__name__}: {error}")
        return complain(command, sentence, code)


def run_on_trio(
    work: Callable[[argparse.Namespace, Resolved], Awaitable[int]],
    chosen: argparse.Namespace,
    resolved: Resolved,
) -> int:
    """Run a command's work on trio, its log on standard error; return the exit code."""
    import trio  # noqa: PLC0415 - takes longer than what the commands do that need none

    async def reporting_refusals() -> int:
        try:
            return await work(chosen, resolved)
        except Refusal as refusal:
            return complain(chosen.command, with_flags(refusal.sentence, chosen), exit_codes.FAILED)

    start_logging(resolved.settings.log_level)
    return run_reported(chosen.command, partial(trio.run, reporting_refusals))


def run_until_signal(command: str, work: Callable[[], Awaitable[int]], interrupted: int) -> int:
    """Run a command's work on trio; end it, with everything let go, when SIGINT or SIGTERM comes.

    Returns:
        Its exit code, or `interrupted` when a signal came before its end.
    """
    import trio  # noqa: PLC0415 - as above

    async def working() -> int:
        code = interrupted
        async with trio.open_nursery() as nursery:

            async def end_on_signal() -> None:
                with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
                    await anext(received)
                nursery.cancel_scope.cancel()

            nursery.start_soon(end_on_signal)
            code = await work()
            nursery.cancel_scope.cancel()
        return code

    return run_reported(command, partial(trio.run, working))


_COMMANDS: Final = {
    "ingest_documents": "`greenroom ingest`",
    "list_api_keys": "`greenroom keys list`",
    "list_corpora": "`greenroom corpora list`",
}
"""The command that does what a tool does."""


def with_flags(sentence: str, chosen: argparse.Namespace) -> str:
    """Return a refusal's sentence with the flag for the request's field that it begins with.

    In the place of tools it names commands.
    """
    sentence = with_tools(sentence, _COMMANDS.get)
    name = re.match(r"\w*", sentence)
    assert name is not None, "it matches nothing, too"
    return str(chosen.flags.get(name[0], name[0])) + sentence[name.end() :]


def leaf_errors(error: BaseException) -> list[BaseException]:
    """Return the errors that a group of errors is made of: nurseries put even a single one into a group."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaf_errors(part)]
