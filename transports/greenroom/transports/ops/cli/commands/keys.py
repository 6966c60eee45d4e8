"""`greenroom keys`: creates, lists, rotates and revokes API keys.

If a server is running, the command attaches to it; the change takes effect at once in every process.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from greenroom.actors import (
    Agent,
    ApiKeyMade,
    ApiKeyView,
    CreateApiKey,
    ListApiKeys,
    RevokeApiKey,
    RotateApiKey,
)
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.audit_record import operator
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable


async def keys(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on keys; return the exit code."""
    settings = resolved.settings
    request, show = _request(chosen, settings)
    async with open_store(settings, may="create" if chosen.action == "create" else "own") as runtime:
        reply = await Agent(runtime, operator(settings)).ask(request)
    if chosen.json:
        say(json.dumps(msgspec.to_builtins(reply), indent=2))
    else:
        show(reply)
    return exit_codes.OK


def _request(chosen: argparse.Namespace, settings: Settings) -> tuple[Any, Callable[[Any], None]]:
    """Make the request of an action, and return the function that prints its reply."""
    show_made = partial(_show_made, settings=settings)
    arguments = {field: flag.strip("-").replace("-", "_").lower() for field, flag in chosen.flags.items()}
    values = {field: getattr(chosen, argument) for field, argument in arguments.items()}
    given = {field: value for field, value in values.items() if value is not None}
    match chosen.action:
        case "create":
            given["scopes"] = _parts(chosen.scopes)
            if chosen.for_project is not None:
                given["projects"] = _parts(chosen.for_project)
            return CreateApiKey(**({"name": "unnamed"} | given)), show_made
        case "rotate":
            return RotateApiKey(**given), show_made
        case "revoke":
            return RevokeApiKey(**given), _show_revoked
        case _:
            return ListApiKeys(), _show_list


def _parts(text: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]


def _show_made(reply: ApiKeyMade, settings: Settings) -> None:
    key = reply.key
    say(reply.api_key)
    remark(f"greenroom keys: this is the key {key.key_id}, shown only once; keep it like a password")
    remark(f"greenroom keys: {', '.join(key.scopes)}; until {key.expires_at:%Y-%m-%d}; {_holder(key)}")
    rate = key.limits.get("rate", settings.rate_limit)
    burst = key.limits.get("burst", settings.rate_burst)
    remark(
        f"greenroom keys: {rate:,} requests a minute and {burst:,} at once; to give a key more, make it with "
        "--rate and --burst"
    )
    if key.replaces is not None:
        remark(f"greenroom keys: it replaces {key.replaces}, which stays valid for a while")
        remark("greenroom keys: `greenroom keys list` shows until when")


def _show_revoked(reply: Any) -> None:
    say(f"the key {reply.key.key_id} ({printable(reply.key.name)}) is no longer valid")


def _show_list(reply: Any) -> None:
    if not reply.keys:
        say("there is no API key; every program of this machine may connect")
    for key in reply.keys:
        used = "never used" if key.last_used_at is None else f"used {key.last_used_at:%Y-%m-%d %H:%M}"
        say(
            f"{key.key_id}  {key.status:<8}  until {key.expires_at:%Y-%m-%d %H:%M}  {used}  "
            f"{printable(key.name)}: {', '.join(key.scopes)}; {_holder(key)}"
        )
    if any(key.status == "unusable" for key in reply.keys):
        remark(
            "greenroom keys: keys that are unusable were made with another secret of this store; make new "
            "ones, or bring that secret back with `greenroom secret import`"
        )


def _holder(key: ApiKeyView) -> str:
    bound = {"agent": key.agent, "type": key.agent_type, "user": key.user}
    words = [f"{what} {printable(name)}" for what, name in bound.items() if name is not None]
    if key.projects is None:
        words.append("every project")
    else:
        words.append(f"projects {', '.join(map(printable, key.projects))}" if key.projects else "no project")
    if key.tools:
        words.append(f"tools {', '.join(key.tools)}")
    if key.schemas:
        words.append(f"{key.schemas} schemas")
    return ", ".join([*words, *(f"{what.replace('_', ' ')} {most:,}" for what, most in key.limits.items())])
