"""Opening an older store, killed at each commit that gives corpora their prefixes; what is left is looked at.

See `killed_commits`.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import Any

import trio
from data.make_corpora import ANN, SEVERAL
from support.agents import FAST
from support.archives import unpack
from support.killed_commits import kill_at_each

from greenroom.actors import Agent, GetFullContent, open_greenroom
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora
from greenroom.runtime import Refusal


def _opened(home: Path) -> Any:
    return open_greenroom(home / "store", secrets=home / "secrets", embedder="none", options=FAST)


async def _open(home: Path) -> None:
    async with _opened(home):
        await trio.lowlevel.checkpoint()


async def _look(home: Path) -> dict[str, Any]:
    async with _opened(home) as runtime:
        prefixes = [row.id_prefix for row in await runtime.query(AllCorpora())]
        try:
            await Agent(runtime, ANN).ask(GetFullContent(chunk_ids=[1]))
        except Refusal as refusal:
            return {"prefixes": prefixes, "small": refusal.code}
    return {"prefixes": prefixes, "small": "opened"}


if __name__ == "__main__":
    home = Path(sys.argv[1])
    with tarfile.open(SEVERAL) as archive:
        unpack(archive, home / "begun")
    kill_at_each(home, _open, _look, begun=home / "begun")
