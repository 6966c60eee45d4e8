"""`greenroom review`: memories that rules found in transcripts, looked at by the person they are of.

A running server has the folder: then we attach to it, as any other process does. What hooks left is
taken first.
"""

from __future__ import annotations

import argparse
import json
from typing import Final

import msgspec

from greenroom.actors import Agent, ForgetMemory, ListMemories, Principal, UpdateMemory
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.replies.memory_types import author_text, changer
from greenroom.actors.memories.requests.replies import MemoryFilters, MemoryView
from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.cli.support.acting import acting_principal
from greenroom.transports.cli.support.json_output import say_json
from greenroom.transports.clients.hooks.drain import take_waiting
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support.error_report import with_flags
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable

_UNREVIEWED: Final = MemoryFilters(unreviewed=True)
_PAGE: Final = 200
_TAKING_SECONDS: Final = 5.0  # for what hooks left


async def review(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Carry one of the actions out; return the exit code."""
    async with open_store(resolved.settings) as runtime:
        principal = await acting_principal(runtime, resolved.settings, "greenroom review", "memory:read")
        await take_waiting(runtime, resolved.settings.data, _TAKING_SECONDS)
        agent = Agent(runtime, principal)
        found = await _unreviewed(agent, principal)
        if chosen.action == "list":
            _show(found, as_json=chosen.json)
            return exit_codes.OK
        waiting = {memory.memory_id: memory for memory in found}
        code = exit_codes.OK
        for memory_id in dict.fromkeys(chosen.memory_ids):
            try:
                await _decide(agent, chosen.action, waiting.get(memory_id), memory_id)
            except Refusal as refusal:
                code = complain("review", with_flags(printable(refusal.sentence), chosen), exit_codes.FAILED)
    return code


async def _unreviewed(agent: Agent, principal: Principal) -> list[MemoryView]:
    """Return all that are, newest first."""
    found: list[MemoryView] = []
    request = ListMemories(namespace=user_namespace(principal), filters=_UNREVIEWED, limit=_PAGE)
    while True:
        page = await agent.ask(request)
        found += page.memories
        if page.next_cursor is None:
            return found
        request = msgspec.structs.replace(request, cursor=page.next_cursor)


async def _decide(agent: Agent, action: str, memory: MemoryView | None, memory_id: str) -> None:
    """Accept or forget one memory, and say so.

    Raises:
        Refusal: It is not unreviewed, or was changed since it was listed.
    """
    if memory is None:
        raise Refusal(
            "MEMORY_NOT_FOUND", f"no memory {memory_id!r} is unreviewed; `greenroom review list` shows those"
        )
    if action == "accept":
        accepted = UpdateMemory(memory_id=memory_id, unreviewed=False, expected_version=memory.version)
        await agent.ask(accepted)
    else:
        await agent.ask(ForgetMemory(memory_id=memory_id, expected_version=memory.version))
    say(f"{memory_id} is {'accepted' if action == 'accept' else 'forgotten'}")


def _show(found: list[MemoryView], *, as_json: bool) -> None:
    if as_json:
        say_json(found)
        return
    for memory in found:
        say(f"{memory.memory_id}  {memory.created_at:%Y-%m-%d %H:%M} UTC  {_source(memory)}")
        say(f"    {printable(' '.join(_text(memory).split()))}")
    if not found:
        say("nothing is unreviewed")


def _source(memory: MemoryView) -> str:
    """Return where a memory comes from, as far as it says so."""
    told = json.loads(bytes(memory.metadata or b"{}"))
    provenance = told.get("provenance")
    if not isinstance(provenance, dict):
        changed_by = changer(memory.author, memory.updated_by)
        written = author_text(memory.author, memory.imported, changed_by)
        return printable(written if memory.imported else f"by {written or 'nobody'}")
    client, rule = (printable(str(provenance.get(name, "?"))) for name in ("client", "rule"))
    return f"{rule}, from {client}, in {printable(memory.namespace)}"


def _text(memory: MemoryView) -> str:
    """Return what a memory says, whole: whoever accepts it must have seen all of it."""
    if memory.withheld:
        return f"({memory.size_bytes:,} bytes, too large for a list; `greenroom export` writes it)"
    return memory.text
