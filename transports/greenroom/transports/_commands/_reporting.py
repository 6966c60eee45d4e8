"""What a command says when it cannot do its work: one sentence on standard error, and an exit code."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING

from greenroom.transports import _exits
from greenroom.transports._door import DoorError
from greenroom.transports._output import complain
from greenroom.transports._verdicts import judge

if TYPE_CHECKING:
    from collections.abc import Callable


def start_logging(level: str) -> None:
    """Sends the program's log to standard error, which is all that MCP leaves for it."""
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def reported(command: str, action: Callable[[], int]) -> int:
    """Runs a command's action; an error on purpose becomes its sentence on standard error.

    The traceback of such an error is only shown at log level debug. Any other error is a
    fault of this program and always shows it.

    Returns:
        The exit code.
    """
    try:
        return action()
    except DoorError as error:
        return complain(command, str(error), error.code)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - nobody else is left to tell
        causes = leaves(error)
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            return _exits.INTERRUPTED
        verdict = judge(causes)
        if verdict is None or logging.getLogger().isEnabledFor(logging.DEBUG):
            traceback.print_exception(error)
        code, sentence = verdict or (_exits.INTERNAL, f"internal fault: {type(error).__name__}: {error}")
        return complain(command, sentence, code)


def leaves(error: BaseException) -> list[BaseException]:
    """The errors that a group of errors is made of: nurseries put even a single one into a group."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaves(part)]
