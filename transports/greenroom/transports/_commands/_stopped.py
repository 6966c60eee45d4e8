"""What an operator does with a store that no server uses; each takes the owner's lock meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.runtime import GreenroomError, backup, restore, stopped_statistics, verify
from greenroom.transports._commands._options import runtime_options
from greenroom.transports._door import as_json

if TYPE_CHECKING:
    import argparse

    from greenroom.transports._settings import Settings


def on_stopped_store(chosen: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """Carries a command out on the folder itself and returns the result as JSON's values.

    Raises:
        StoreOwnedError: a server uses the folder after all, but does not answer at its control socket.
        GreenroomError: the command cannot be carried out.
    """
    result: object
    match chosen.command:
        case "backup":
            result = backup(settings.data, Path(chosen.destination))
        case "verify":
            result = verify(settings.data)
        case "restore":
            result = restore(Path(chosen.source), settings.data)
        case "stats":
            result = {"running": False, "store": stopped_statistics(settings.data, runtime_options(settings))}
        case _:
            raise GreenroomError(
                f"no server uses {settings.data}, and nothing is set aside in a stopped store"
            )
    found: dict[str, Any] = json.loads(as_json(result))
    return found
