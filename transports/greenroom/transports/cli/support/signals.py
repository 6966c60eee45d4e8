"""Commands that a signal ends, quietly and with everything let go."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import trio


async def run_until_signal(work: Callable[[], Awaitable[int]], interrupted: int) -> int:
    """Return the exit code of `work`, or `interrupted` when SIGINT or SIGTERM came before its end."""
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
