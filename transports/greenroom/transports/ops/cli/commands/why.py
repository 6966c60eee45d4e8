"""`greenroom why`: what hooks and recalls gave to agents, why, and whether agents used it.

If a server is running, the command attaches to it. The spool is drained first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

from greenroom.actors import GivenRead, GivenView, MemoryGiven, WhyGiven
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.hooks.drain import drain_spool
from greenroom.transports.ops.cli.output import say, say_json
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable

_TAKING_SECONDS: Final = 5.0  # for draining the spool


async def why(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print the injections, newest first; return the exit code."""
    settings = resolved.settings
    request = WhyGiven(session=chosen.session or "", limit=chosen.limit)
    async with open_store(settings) as runtime:
        await drain_spool(runtime, settings.data, _TAKING_SECONDS)
        principal = await acting_principal(runtime, settings, "greenroom why", "memory:read")
        reply = await runtime.query(request, principal=principal)
    if chosen.json:
        say_json(reply)
    else:
        say("\n".join(_text(reply, chosen.session)))
    return exit_codes.OK


def _text(reply: GivenRead, session: str | None) -> Iterable[str]:
    if not reply.given:
        yield f"nothing was given to {f'a session {printable(session)}' if session else 'any session'}"
        return
    for given in reply.given:
        yield from _row(given)
    if reply.total > len(reply.given):
        yield f"({reply.total - len(reply.given):,} more; --limit shows more)"


def _row(given: GivenView) -> Iterable[str]:
    what = [_counted(len(given.memories), "memory", "memories"), _counted(given.lines, "line", "lines")]
    reason = f" ({given.reason})" if given.reason else ""
    words = ", by words alone" if given.partial else ""
    of = f" of {given.client}, session {given.session}, agent" if given.session else " by agent"
    yield printable(
        f"{given.at:%Y-%m-%d %H:%M:%S} UTC  {given.hook}{reason}{of} {given.agent}: "
        f"{' and '.join(filter(None, what)) or 'nothing'}, {given.tokens:,} tokens{words}"
    )
    if given.query:
        yield printable(f"  for the {'prompt' if given.session else 'task'}: {given.query}")
    yield from (_memory(memory, is_watched=bool(given.session)) for memory in given.memories)
    for why_not, count in given.left_out.items():
        yield f"  {count} left out: {why_not}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}" if number else ""


def _memory(memory: MemoryGiven, *, is_watched: bool) -> str:
    score = "" if memory.score is None else f", score {memory.score:.2f}"
    signals = ", ".join(f"{name} {value:g}" for name, value in memory.signals.items())
    used = ""
    if is_watched:
        used = ": not seen to be used"
        if memory.used is not None:
            used = f": used by {memory.used:%Y-%m-%d %H:%M:%S} UTC"
    return printable(
        f"  {memory.key or memory.memory_id} in {memory.namespace}, version {memory.version}{score}"
        f"{f' ({signals})' if signals else ''}{used}"
    )
