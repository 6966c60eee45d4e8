"""The version of a client, as its program tells it, or the folder of an extension."""

from __future__ import annotations

import re
from typing import Final

import trio

from greenroom.transports.clients.table import Client
from greenroom.transports.setup.run import run

_PATIENCE: Final = 10.0  # seconds; the slowest known takes two
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


async def version_of(client: Client) -> str | None:
    """Return a client's version, if its program tells it in time or it is an extension of VS Code."""
    program = client.program()
    if program is not None:
        try:
            done = await run([program, "--version"], _PATIENCE)
        except (OSError, trio.TooSlowError):
            return None
        found = _VERSION.search(done.stdout.decode(errors="replace"))
        return None if found is None else found[0]
    versions = [
        found[0]
        for folder in client.extension_folders()
        if (found := _VERSION.search(folder.name)) is not None
    ]
    return max(versions, key=_order, default=None)


def _order(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
