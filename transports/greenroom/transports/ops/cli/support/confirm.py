"""Questions of commands that destroy something."""

from __future__ import annotations

import sys

import trio

from greenroom.transports.ops.cli.output import remark


async def is_typed(wanted: str, question: str) -> bool:
    """Ask a person at the terminal to type something; False without a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(question)
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return typed.removesuffix("\n") == wanted
