"""The command with which clients start this program, and the notices of `greenroom serve`."""

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
    """Explain to a user at a terminal that the server waits for a client."""
    remark(
        f"Greenroom keeps its data in {resolved.settings.data}\n"
        "and waits for an MCP client on standard input. A client starts the server itself; its\n"
        f"configuration for a server like this one, which Ctrl-C ends:\n\n{_as_json(_own_entry(resolved))}\n"
    )


def explain_sockets(resolved: Resolved, urls: Sequence[tuple[str, str]], *, needs_key: bool) -> None:
    """Print the data folder and a client's entry for the sockets; print nothing without sockets."""
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
        + "\n\n".join(map(_as_json, entries))
        + "\n"
    )


def _as_json(entry: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {"greenroom": entry}}, indent=2, ensure_ascii=False)


def _own_entry(resolved: Resolved) -> dict[str, Any]:
    """Return a client's entry for a server with this server's data folder and flags."""
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
    """Return the absolute path and the first arguments with which a client starts this program."""
    # The installed script is next to the interpreter; the PATH of a client may contain neither of them.
    script = Path(sys.executable).with_name("greenroom")
    if os.access(script, os.X_OK):
        return str(script), []
    return sys.executable, ["-m", "greenroom.transports.cli"]


def start_command(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the command that starts a server, without folder and user if these are defaults."""
    command, before = program()
    options = owner_options(resolved)
    for key in ("secrets", "encryption_key"):  # of the last only the place is named
        if resolved.sources[key].kind != "default":
            options += [flag(key), str(getattr(resolved.settings, key))]
    return command, [*before, "serve", "--agent", name.removesuffix("-project"), *options]


def owner_options(resolved: Resolved) -> list[str]:
    """Return the options for folder and user, unless they are the defaults."""
    options = []
    if resolved.sources["data"].kind != "default":
        options += ["--data", str(resolved.settings.data.absolute())]
    if resolved.sources["user"].kind != "default":
        options += ["--user", resolved.settings.user]
    return options
