"""`backup`, `restore`, `repair`, `verify`, `stats`, `readmit` and other commands on a store.

The owner of a running store gets a request at its control socket; this needs neither trio nor the runtime
here. `offline` opens a stopped store with the owner's lock.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from typing import Any, Final

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.store_texts import TEXTS, differs
from greenroom.transports.ops.control.client import (
    Backup,
    ControlSocketError,
    NoOwnerError,
    Readmit,
    Request,
    Stats,
    Verify,
    call,
)

_PATIENCE: Final = 8.0  # the most seconds without a reply or a sign of the owner


def run(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run the command through the store's owner, or as the owner; return the exit code."""
    request = _request(chosen)
    ask = partial(_ask_owner, resolved.settings, request) if request is not None else None
    if ask is not None:
        try:
            return _show(chosen, ask())
        except ControlSocketError as error:
            return complain(chosen.command, str(error), error.code)
        except NoOwnerError:
            pass
    # This imports trio, which takes longer than everything before it.
    from greenroom.transports.ops.cli.commands.offline import run_as_owner  # noqa: PLC0415
    from greenroom.transports.ops.cli.support.error_report import run_reported, start_logging  # noqa: PLC0415

    start_logging(resolved.settings.log_level)
    return run_reported(chosen.command, lambda: _show(chosen, run_as_owner(chosen, resolved.settings, ask)))


def _ask_owner(settings: Settings, request: Request) -> dict[str, Any]:
    patience = None if settings.wait else _PATIENCE
    found: dict[str, Any] = json.loads(call(settings.data, request, patience=patience))
    return found


def _request(chosen: argparse.Namespace) -> Request | None:
    """Make the request to the owner; return None for commands that need a stopped store."""
    match chosen.command:
        case "backup":
            return Backup(destination=os.path.abspath(chosen.destination))  # noqa: PTH100 - follows no link
        case "verify":
            return Verify(rebuild=chosen.rebuild)
        case "stats":
            return Stats()
        case "readmit":
            return Readmit(kind=chosen.kind, key=chosen.key)
    return None


def _show(chosen: argparse.Namespace, result: dict[str, Any]) -> int:
    if result.get("readmitted") is False:
        return complain(chosen.command, f"{chosen.kind} {chosen.key} was not set aside", exit_codes.FAILED)
    text = json.dumps(result, indent=2) if chosen.json else TEXTS[chosen.command](result)
    say(text)
    if chosen.command == "secret":
        remark("greenroom secret: API keys and passports made before end; keep a copy of the file")
    is_damaged = differs(result) or result.get("ranges") or result.get("damaged")
    return exit_codes.DAMAGED if is_damaged else exit_codes.OK
