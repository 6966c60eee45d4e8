"""`greenroom review`: lets the user review memories that rules found in transcripts.

If a server is running, the command attaches to it. The spool is drained first.
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
from greenroom.transports.clients.hooks.drain import drain_spool
from greenroom.transports.ops.cli.output import complain, say, say_json
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.error_report import with_flags
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable

_UNREVIEWED: Final = MemoryFilters(unreviewed=True)
_PAGE: Final = 200
_TAKING_SECONDS: Final = 5.0  # for draining the spool


async def review(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action of the review; return the exit code."""
    async with open_store(resolved.settings) as runtime:
        principal = await acting_principal(runtime, resolved.settings, "greenroom review", "memory:read")
        await drain_spool(runtime, resolved.settings.data, _TAKING_SECONDS)
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
    """Return all unreviewed memories, newest first."""
    found: list[MemoryView] = []
    request = ListMemories(namespace=user_namespace(principal), filters=_UNREVIEWED, limit=_PAGE)
    while True:
        page = await agent.ask(request)
        found += page.memories
        if page.next_cursor is None:
            return found
        request = msgspec.structs.replace(request, cursor=page.next_cursor)


async def _decide(agent: Agent, action: str, memory: MemoryView | None, memory_id: str) -> None:
    """Accept or forget one memory, and print the decision."""
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
        text = memory.text  # the whole text, since a reviewer must see all of it
        if memory.withheld:
            text = f"({memory.size_bytes:,} bytes, too large for a list; `greenroom export` writes it)"
        say(f"    {printable(' '.join(text.split()))}")
    if not found:
        say("nothing is unreviewed")


def _source(memory: MemoryView) -> str:
    """Return the source of a memory, if it is known."""
    metadata = json.loads(bytes(memory.metadata or b"{}"))
    provenance = metadata.get("provenance")
    if not isinstance(provenance, dict):
        changed_by = changer(memory.author, memory.updated_by)
        written = author_text(memory.author, memory.imported, changed_by)
        return printable(written if memory.imported else f"by {written or 'unknown'}")
    client, rule = (printable(str(provenance.get(name, "?"))) for name in ("client", "rule"))
    return f"{rule}, from {client}, in {printable(memory.namespace)}"
