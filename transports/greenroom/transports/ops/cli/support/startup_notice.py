"""What `greenroom serve` tells somebody at a terminal: where its data are, and how a client finds it."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from greenroom.transports.auth.authenticator import HEADER
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.base.config.settings import all_settings, flag
from greenroom.transports.ops.cli.output import remark


def explain_stdio(resolved: Resolved) -> None:
    """Say what a server without a client waits for: somebody typed the command to see what happens."""
    remark(
        f"Greenroom keeps its data in {resolved.settings.data}\n"
        "and waits for an MCP client on standard input. A client starts the server itself; its\n"
        f"configuration for a server like this one, which Ctrl-C ends:\n\n{_shown(_started(resolved))}\n"
    )


def explain_sockets(resolved: Resolved, urls: Sequence[tuple[str, str]], *, needs_key: bool) -> None:
    """Say where a server's data are and what a client is told that is to find it; nothing without sockets.

    Args:
        resolved: The settings in force.
        urls: The type of each transport, as clients call it, and where it is.
        needs_key: Whether a client is to send a key.
    """
    if not urls:
        return
    name, _, value = HEADER.partition(": ")
    more = {"headers": {name: value}} if needs_key else {}
    here = socket.gethostname()
    entries = (
        {
            "type": kind,
            "url": url.replace("//0.0.0.0:", f"//{here}:").replace("//[::]:", f"//{here}:"),
            **more,
        }
        for kind, url in urls
    )
    remark(
        f"Greenroom keeps its data in {resolved.settings.data}\n"
        "and waits for MCP clients; Ctrl-C ends it. The configuration of one:\n\n"
        + "\n\n".join(map(_shown, entries))
        + "\n"
    )


def _shown(entry: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {"greenroom": entry}}, indent=2, ensure_ascii=False)


def _started(resolved: Resolved) -> dict[str, Any]:
    """Return a client's entry for a server with the same data and the same flags as this one."""
    arguments = ["serve", "--data", str(resolved.settings.data)]
    for key, setting in all_settings().items():
        if key != "data" and resolved.sources[key].kind == "flag":
            value = getattr(resolved.settings, key)
            if setting.reader is boolean:
                arguments.append(flag(key))
                continue
            for each in value if setting.reader.repeatable else [setting.reader.show(value)]:
                arguments += [flag(key), each]
    if resolved.config is not None:
        arguments += ["--config", str(resolved.config)]
    command, before = program()
    return {"command": command, "args": [*before, *arguments]}


def program() -> tuple[str, list[str]]:
    """Return the absolute path by which a client starts this program, and the arguments that come first."""
    # The installed script stands beside the interpreter; a client's PATH may know neither.
    script = Path(sys.executable).with_name("greenroom")
    if os.access(script, os.X_OK):
        return str(script), []
    return sys.executable, ["-m", "greenroom.transports.ops.cli"]
