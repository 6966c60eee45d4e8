"""The program `greenroom`: it runs one command of the table in `catalogue`.

The commands are in `commands`, and each is imported only when it runs: `greenroom serve` does not load what
only `greenroom stats` needs, and no command loads trio to print its help. The time limit of a hook starts
before the table is imported.
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

from greenroom.transports.ops.cli.output import complain, prepare, remark


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in the arguments; return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    prepare()
    if "_ARGCOMPLETE" in os.environ:  # set by a shell that completes a line, see `greenroom completion`
        from greenroom.transports.ops.cli.commands.completion import complete  # noqa: PLC0415 - only for completion

        complete()
    if given[:1] == ["hook"]:
        from greenroom.transports.clients.hooks.guard import run_guarded  # noqa: PLC0415 - only for hooks

        return run_guarded(given, _carry_out)
    return _carry_out(given)


def _carry_out(arguments: Sequence[str]) -> int:
    """Parse a command line, run its command and return the exit code."""
    from greenroom.transports.base import exit_codes  # noqa: PLC0415 - see the module's docstring, as below
    from greenroom.transports.base.config.load import SettingsError, resolve  # noqa: PLC0415
    from greenroom.transports.ops.cli.catalogue import COMMANDS, runner_of  # noqa: PLC0415
    from greenroom.transports.ops.cli.parsing import make_parser  # noqa: PLC0415

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
        resolved: Any = (
            None if name == "help" else resolve(vars(chosen), os.environ)
        )  # help works with wrong ones
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


if __name__ == "__main__":
    sys.exit(main())
