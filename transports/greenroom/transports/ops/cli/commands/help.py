"""`greenroom help`: lists common commands or all, or shows the help of one."""

from __future__ import annotations

import argparse

from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.parsing import help_of_everything, make_parser


def show_help(chosen: argparse.Namespace, _resolved: None) -> int:
    """Print help; return the exit code."""
    if chosen.every_command:
        say(help_of_everything())
    else:
        make_parser(next(iter(chosen.words), None)).parse_args([*chosen.words, "--help"])
    return exit_codes.OK
