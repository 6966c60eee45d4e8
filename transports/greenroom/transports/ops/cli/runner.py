"""Runs one command of the table in `catalogue`.

The commands are in `commands`, and each is imported only when it runs: `greenroom serve` does not load what
only `greenroom stats` needs, and no command loads trio to print its help.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import SettingsError, resolve
from greenroom.transports.ops.cli.catalogue import COMMANDS, runner_of
from greenroom.transports.ops.cli.output import complain, remark
from greenroom.transports.ops.cli.parsing import make_parser


def run_command(arguments: Sequence[str]) -> int:
    """Parse a command line, run its command and return the exit code."""
    # The program has its own threads for computation; numpy's threads would only spin next to them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.platform not in {"linux", "darwin"}:
        return complain(
            "on this system", f"Linux and macOS are supported, {sys.platform} is not", exit_codes.FAILED
        )
    chosen, unknown = make_parser(next(iter(arguments), None)).parse_known_args(arguments)
    if unknown:
        chosen.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    name = " ".join(filter(None, (chosen.command, getattr(chosen, "action", None))))
    if name not in COMMANDS:  # the command or action is missing
        remark(chosen.parser.format_help().rstrip())
        return exit_codes.USAGE
    if name == "serve" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Before the server handles signals there is nothing to clean up, and an exception would appear in
        # the middle of an import.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        # Help is shown with wrong settings, too.
        resolved: Any = None if name == "help" else resolve(vars(chosen), os.environ)
        carry_out = _imported(*runner_of(name))
        if iscoroutinefunction(carry_out):
            from greenroom.transports.ops.cli.support.error_report import run_on_trio  # noqa: PLC0415 - not for help

            return run_on_trio(carry_out, chosen, resolved)
        code: int = carry_out(chosen, resolved)
    except SettingsError as error:
        return complain(chosen.command, str(error), exit_codes.USAGE)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return code


def _imported(module: str, function: str) -> Callable[..., Any]:
    """Import the function in `commands` that runs a command."""
    gc.disable()  # imports leave no garbage; to search for it takes a seventh of the start
    try:
        found: Callable[..., Any] = getattr(
            import_module(f"greenroom.transports.ops.cli.commands.{module}"), function
        )
    finally:
        gc.freeze()  # later collections skip the imported objects, too
        gc.enable()
    return found
