"""`greenroom preferences`: shows and changes the preferences that a user has for every tool.

If a server is running, the command attaches to it.
"""

from __future__ import annotations

import argparse
import json

import msgspec

from greenroom.actors import Agent, SetPreferences
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import open_store


async def preferences(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on preferences; return the exit code."""
    settings = resolved.settings
    request = SetPreferences(
        preferences=_patch(chosen), expected_version=getattr(chosen, "expected_version", None)
    )
    async with open_store(settings) as runtime:
        principal = await acting_principal(runtime, settings, "greenroom preferences", "memory:write")
        reply = await Agent(runtime, principal).ask(request)
    document = json.loads(bytes(reply.preferences))
    if chosen.json:
        say(json.dumps({"preferences": document, "version": reply.version}, indent=2))
    elif chosen.action == "get":
        say(json.dumps(document, indent=2))
    else:
        say(f"the preferences are at version {reply.version}")
    return exit_codes.OK


def _patch(chosen: argparse.Namespace) -> msgspec.Raw:
    """Return the merge patch of an action; an empty patch only reads."""
    if chosen.action == "get":
        return msgspec.Raw(b"{}")
    patch = "null" if chosen.action == "remove" else _as_json(chosen.value)
    for name in reversed(chosen.name.split(".")):
        patch = f"{{{json.dumps(name)}:{patch}}}"
    return msgspec.Raw(patch.encode(errors="surrogatepass"))


def _as_json(text: str) -> str:
    """Return a text unchanged if it is JSON; otherwise, return it as a JSON string."""
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text)
    return text
