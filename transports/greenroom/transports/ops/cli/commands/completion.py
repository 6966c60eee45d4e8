"""`greenroom completion`: prints the completion script for a shell."""

from __future__ import annotations

import argparse

from argcomplete.shell_integration import shellcode

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.catalogue import SHELLS
from greenroom.transports.ops.cli.output import complain, say


def completion(chosen: argparse.Namespace, _resolved: Resolved) -> int:
    """Print the script for one shell; return the exit code."""
    if chosen.shell not in SHELLS:
        known = f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]} is allowed"
        return complain("completion", f"the shell is {chosen.shell!r}, but {known}", exit_codes.USAGE)
    say(shellcode(["greenroom"], shell=chosen.shell).strip())
    return exit_codes.OK
