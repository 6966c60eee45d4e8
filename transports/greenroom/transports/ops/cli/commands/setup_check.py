"""`greenroom setup --check`: what each client has, when it was last here, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
import trio

from greenroom.actors import Agent, GetAuditLog
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.cli.support.client_entry import started
from greenroom.transports.cli.support.json_output import say_json
from greenroom.transports.clients.setup.change import SetupError, configured
from greenroom.transports.clients.setup.faults import Start, faults, is_tried, start_of
from greenroom.transports.clients.setup.files import read, record_of
from greenroom.transports.clients.table import BY_HAND, CLIENTS
from greenroom.transports.ops.cli.commands.setup_hooks import hooks_state
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.audit_record import operator
from greenroom.transports.ops.cli.support.error_report import leaf_errors
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable
from greenroom.transports.setup.trial import tried
from greenroom.transports.setup.versions import version_of


class Checked(msgspec.Struct, kw_only=True):
    """What is known of a client.

    Attributes:
        client: What `greenroom setup` calls it.
        file: Where its servers are.
        found: Whether there are signs of it on this machine.
        configured: Whether Greenroom is among its servers.
        version: Its own version; None where nothing tells that cheaply.
        server: The version of Greenroom that its entry starts; None where it was not tried, or in vain.
        tools: How many tools that has.
        hooks: What it has of hooks; None where it has none.
        last_seen: When an agent of its name last did something in the folder; None where no record tells.
        wrong: What is wrong, one sentence each.
    """

    client: str
    file: str
    found: bool
    configured: bool = False
    version: str | None = None
    server: str | None = None
    tools: int | None = None
    hooks: str | None = None
    last_seen: datetime | None = None
    wrong: list[str] = msgspec.field(default_factory=list)


async def check(names: Sequence[str], resolved: Resolved, *, as_json: bool) -> int:
    """Say of each client what is known; return the exit code, which tells whether something is wrong."""
    found = [await _checked(name, resolved) for name in names if name not in BY_HAND]
    await _ask_versions(found)
    await _ask_audit_log(found, resolved)
    if as_json:
        say_json(found)
    else:
        for name in names:
            if name in BY_HAND:
                say(f"{name}: is set up by hand, so nothing is known of it")
        for each in found:
            _show(each)
    return exit_codes.FAILED if any(each.wrong for each in found) else exit_codes.OK


async def _checked(name: str, resolved: Resolved) -> Checked:
    result = looked_at(name, resolved)
    await try_out(result, resolved)
    return result


def looked_at(name: str, resolved: Resolved) -> Checked:
    """Return what the files of a client tell; nothing is started."""
    client = CLIENTS[name]
    result = Checked(client=name, file=str(client.path()), found=client.is_installed())
    try:
        record, entry = record_of(client.path()), configured(client, read(client.path()))
        result.configured = entry is not None
        result.wrong += faults(client, entry, record, Start(*started(name, resolved)))
    except SetupError as error:
        result.wrong.append(str(error))
    try:
        result.hooks, wrong = hooks_state(name, resolved)
        result.wrong += wrong
    except SetupError as error:
        result.wrong.append(str(error))
    return result


async def try_out(result: Checked, resolved: Resolved) -> None:
    """Start the server of a client that is configured as it would, and add what that tells."""
    client = CLIENTS[result.client]
    try:
        record, entry = record_of(client.path()), configured(client, read(client.path()))
        wanted, start = Start(*started(result.client, resolved)), start_of(client, entry)
        if start is None:
            return
        if is_tried(client, entry, record, wanted):
            answer = await tried(*start)
            result.server, result.tools = answer.version, answer.tools
        elif start.command == wanted.command:
            result.wrong.append("its entry is not what this command writes, and is not tried")
    except SetupError as error:
        if str(error) not in result.wrong:  # that a file cannot be read is told once
            result.wrong.append(str(error))


async def _ask_versions(found: Iterable[Checked]) -> None:
    async def ask(result: Checked) -> None:
        result.version = await version_of(CLIENTS[result.client])

    async with trio.open_nursery() as nursery:
        for each in found:
            nursery.start_soon(ask, each)


async def _ask_audit_log(found: Iterable[Checked], resolved: Resolved) -> None:
    """Learn when each client that is configured was last here, if there is a folder that can be asked."""
    asked = [each for each in found if each.configured]
    folder = resolved.settings.data
    if not asked or not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        async with open_store(resolved.settings) as runtime:
            agent = Agent(runtime, operator(resolved.settings))
            for each in asked:
                name = each.client.removesuffix("-project")
                page = await agent.ask(GetAuditLog(agent=name, limit=1))
                each.last_seen = next((record.time for record in page.records), None)
    except (Exception, BaseExceptionGroup) as error:
        verdict = exit_code_for(leaf_errors(error))
        if verdict is None:
            raise
        remark(f"greenroom setup: when they were last here is not known: {verdict[1]}")


def _show(result: Checked) -> None:
    if result.configured:
        state = ["configured"]
    else:
        state = ["found, not configured" if result.found else "not found"]
    if result.server is not None:
        state[0] += f", greenroom {result.server} starts and lists {result.tools} tools"
    if result.hooks is not None:
        state.append(result.hooks)
    if result.version is not None:
        state.append(f"its version {printable(result.version)}")
    if result.last_seen is not None:
        state.append(f"last seen {result.last_seen:%Y-%m-%d %H:%M:%S} UTC")
    say(f"{result.client}: {'; '.join(state)}")
    for sentence in result.wrong:
        complain("setup", f"{result.client}: {printable(sentence)}", exit_codes.FAILED)
