"""Reports of errors: as a sentence with an exit code, and in logs."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import select
import signal
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.base.observability.request_log import EVENT
from greenroom.transports.base.tool_names import with_tools
from greenroom.transports.ops.cli.output import complain
from greenroom.transports.ops.control.client import ControlSocketError

logger = logging.getLogger(__name__)

STANDARD_ERROR = 2

Complain = Callable[[str, str, int], int]
"""Prints the name of a command and a sentence why it failed; returns the exit code."""


class _NeverWaits:
    """Standard error as a stream that drops entries instead of waiting for room.

    A client may not read standard error. A write to a full pipe would then block the event loop for ever, and
    with it all requests and signals.
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
        with contextlib.suppress(OSError):  # the reader has ended
            # A ready descriptor takes this many bytes without blocking.
            for start in range(0, len(data), select.PIPE_BUF):
                if not self._room.poll(0):
                    self._dropped += 1
                    break
                os.write(STANDARD_ERROR, data[start : start + select.PIPE_BUF])


class _WithoutKeys(logging.Formatter):
    """Removes API keys from log entries, as a last defence: no code should log keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry's text."""
        text = super().format(record)
        if "gr_" not in text:
            return text
        return mask_keys(text)


def start_logging(level: str, *, as_json: bool = False) -> None:
    """Send the log to standard error, because MCP leaves no other stream for it.

    A log as JSON lines includes Python's warnings.
    """
    handler = logging.StreamHandler(_NeverWaits(json_of_dropped if as_json else _dropped))
    pattern = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(JsonLines() if as_json else _WithoutKeys(pattern))
    logging.basicConfig(handlers=[handler], level=level.upper())
    if as_json:
        logging.captureWarnings(capture=True)


def _dropped(count: int) -> str:
    return f"({count} entries before this one were dropped: they were not read)"


def log_complaint(command: str, sentence: str, code: int) -> int:
    """Log why a command failed, for a JSON log; return its exit code."""
    logger.error("greenroom %s: %s", command, sentence)
    return code


def run_reported(command: str, action: Callable[[], int], complain: Complain = complain) -> int:
    """Run a command's action; print an expected error as a sentence on standard error.

    The traceback of an expected error appears only at log level debug. All other errors are faults of this
    program, and their traceback always appears.
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
    """Run an async command on trio and log to standard error; return its exit code."""
    import trio  # noqa: PLC0415 - slow, and many commands do not need it

    async def reporting_refusals() -> int:
        try:
            return await work(chosen, resolved)
        except Refusal as refusal:
            return complain(chosen.command, with_flags(refusal.sentence, chosen), exit_codes.FAILED)

    start_logging(resolved.settings.log_level)
    return run_reported(chosen.command, partial(trio.run, reporting_refusals))


def run_until_signal(command: str, work: Callable[[], Awaitable[int]], interrupted: int) -> int:
    """Run async work and return its code, or `interrupted` after SIGINT or SIGTERM."""
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
"""The commands that do the same as these tools."""


def with_flags(sentence: str, chosen: argparse.Namespace) -> str:
    """Replace a field's name at the beginning of a refusal by the field's flag.

    Names of tools are replaced by commands.
    """
    sentence = with_tools(sentence, _COMMANDS.get)
    name = re.match(r"\w*", sentence)
    assert name is not None, "the pattern also matches nothing"
    return str(chosen.flags.get(name[0], name[0])) + sentence[name.end() :]


def leaf_errors(error: BaseException) -> list[BaseException]:
    """Return the errors in a group; nurseries put even a single error into one."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaf_errors(part)]


class JsonLines(logging.Formatter):
    """Formats an entry as a JSON object; exceptions are described only by type and places."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one entry as a line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        event = getattr(record, EVENT, None)
        if isinstance(event, dict):
            line.update(event)
        else:
            line.update(event="log", logger=record.name, message=record.getMessage())
        if record.exc_info is not None and record.exc_info[1] is not None:
            line.update(_described(record.exc_info[1]))
        return mask_keys(json.dumps(line, ensure_ascii=True))


def json_of_dropped(count: int) -> str:
    """Return a log line that reports dropped entries."""
    level, message = logging.WARNING, "entries before this one were dropped: they were not read"
    record = logging.LogRecord(__name__, level, "", 0, f"{count} {message}", None, None)
    return JsonLines().format(record)


def _described(error: BaseException) -> dict[str, Any]:
    """Describe an error, and the errors in its group, by type and place."""
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    frames = traceback.extract_tb(error.__traceback__)
    described: dict[str, Any] = {
        "error": type(error).__name__,
        "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if parts:
        described["errors"] = [_described(part) for part in parts]
    return described
