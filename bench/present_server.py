"""Greenroom over stdio at a given present: `python -m bench.present_server DIR MOMENT EMBEDDER [MODELS]`.

`greenroom serve` goes by the clock of the machine, and a question such as "what was it two weeks ago" has
its answer at one present only.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from pathlib import Path

import trio

from greenroom.actors import Agent, EmbedderChoice, Principal, open_greenroom, read_choice
from greenroom.transports import TOOLS, Limits, McpServer, serve_stdio


def command(data: Path, moment: str, embedder: EmbedderChoice) -> tuple[str, ...]:
    """Return the command that serves a folder so."""
    models = () if embedder.models is None else (str(embedder.models),)
    return (sys.executable, "-m", "bench.present_server", str(data), moment, embedder.kind, *models)


class Present:
    """A clock that starts at a moment and goes on as the machine's does."""

    perf = staticmethod(time.perf_counter)

    def __init__(self, moment: datetime) -> None:
        self._ahead = int(moment.timestamp() * 1e6) - time.time_ns() // 1_000

    def now(self) -> int:
        """Return the wall clock in microseconds since 1970 UTC."""
        return time.time_ns() // 1_000 + self._ahead


async def main(folder: str, moment: str, embedder: EmbedderChoice) -> None:
    """Serve a folder on standard input and output."""
    clock = Present(datetime.fromisoformat(moment))
    secrets = os.environ.get("GREENROOM_SECRETS")  # as `greenroom serve` takes it
    async with open_greenroom(folder, embedder=embedder, clock=clock, secrets=secrets) as runtime:
        agent = Agent(runtime, Principal(agent_id="bench"))
        server = McpServer(TOOLS, lambda _name: agent, now=lambda: clock.now() * 1_000)
        async with server.running():
            await serve_stdio(server, limits=Limits())


if __name__ == "__main__":
    data, present, kind, *rest = sys.argv[1:]
    trio.run(main, data, present, read_choice(kind, models=Path(rest[0]) if rest else None))
