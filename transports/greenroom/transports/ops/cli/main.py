"""The program `greenroom`: its start.

A client waits for each hook. So this imports nothing before it knows the command: the time limit of a hook
starts first, and `quick_hook` does most hooks without the rest of the program.
"""

from __future__ import annotations

import atexit
import os
import sys

from greenroom.transports.ops.cli.output import prepare, say

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in the arguments; return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    prepare()
    if "_ARGCOMPLETE" in os.environ:  # set by a shell that completes a line, see `greenroom completion`
        from greenroom.transports.ops.cli.commands.completion import complete  # noqa: PLC0415 - only for completion

        complete()
    if given[:1] == ["hook"]:
        from greenroom.transports.clients.hooks.guard import run_guarded  # noqa: PLC0415 - only for hooks

        return run_guarded(given, _run_hook)
    if given == ["--version"]:
        from greenroom.runtime.base.system import program_version  # noqa: PLC0415 - only for this

        say(f"greenroom {program_version()}")
        return os.EX_OK
    return _run(given)


def _run_hook(arguments: Sequence[str]) -> int:
    from greenroom.transports.ops.cli.quick_hook import run_quickly  # noqa: PLC0415 - only for hooks

    if not run_quickly(arguments):
        return _run(arguments)
    # To take the interpreter apart would take half as long as its start.
    atexit._run_exitfuncs()  # noqa: SLF001 - such as that which saves what `coverage` measured
    os._exit(os.EX_OK)


def _run(arguments: Sequence[str]) -> int:
    from greenroom.transports.ops.cli.runner import run_command  # noqa: PLC0415 - see the module's docstring

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
