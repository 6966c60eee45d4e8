"""`greenroom setup --check`: shows the state of each client, its last use, and its problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
import trio

from greenroom.actors import Agent, GetAuditLog
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.clients.setup.change import SetupError, find_entry
from greenroom.transports.clients.setup.faults import Start, faults, may_be_run, start_of
from greenroom.transports.clients.setup.files import read, record_of
from greenroom.transports.clients.setup.programs import try_start, version_of
from greenroom.transports.clients.table import BY_HAND, CLIENTS
from greenroom.transports.ops.cli.commands.setup_hooks import hooks_state
from greenroom.transports.ops.cli.output import complain, remark, say, say_json
from greenroom.transports.ops.cli.support.audit_record import operator
from greenroom.transports.ops.cli.support.error_report import leaf_errors
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.startup_notice import start_command
from greenroom.transports.ops.cli.support.terminal import printable


class Checked(msgspec.Struct, kw_only=True):
    """The state of a client."""

    client: str  # the client's name in `greenroom setup`
    file: str
    found: bool  # whether it seems to be installed
    configured: bool = False  # whether Greenroom is among its servers
    version: str | None = None  # the client's version; None if it cannot be found quickly
    # The version of Greenroom that the client's entry starts; None if it was not or could not be started.
    server: str | None = None
    tools: int | None = None  # the number of that server's tools
    hooks: str | None = None  # the state of the client's hooks; None without hooks
    # When the client's agent last acted in the folder; None without a record.
    last_seen: datetime | None = None
    wrong: list[str] = msgspec.field(default_factory=list)  # its problems, one sentence each


async def check(names: Sequence[str], resolved: Resolved, *, as_json: bool) -> int:
    """Print the state of each client; the exit code says whether there are problems."""
    found = [inspect_client(name, resolved) for name in names if name not in BY_HAND]
    for each in found:
        await try_out(each, resolved)
    await _ask_versions(found)
    await _ask_audit_log(found, resolved)
    if as_json:
        say_json(found)
    else:
        for name in names:
            if name in BY_HAND:
                say(f"{name}: is set up by hand, so its state is unknown")
        for each in found:
            _show(each)
    return exit_codes.FAILED if any(each.wrong for each in found) else exit_codes.OK


def uses_bridge(name: str) -> bool | None:
    """Whether a client uses the server of another machine; None if unknown."""
    client = CLIENTS[name]
    with suppress(SetupError):
        start = start_of(client, find_entry(client, read(client.path())))
        return None if start is None else start.is_bridge
    return None


def inspect_client(name: str, resolved: Resolved) -> Checked:
    """Return the state of a client from its files, without starting a server."""
    client = CLIENTS[name]
    result = Checked(client=name, file=str(client.path()), found=client.is_installed())
    try:
        record, entry = record_of(client.path()), find_entry(client, read(client.path()))
        result.configured = entry is not None
        result.wrong += faults(client, entry, record, Start(*start_command(name, resolved)))
    except SetupError as error:
        result.wrong.append(str(error))
    try:
        result.hooks, wrong = hooks_state(name, resolved)
        result.wrong += wrong
    except SetupError as error:
        result.wrong.append(str(error))
    return result


async def try_out(result: Checked, resolved: Resolved) -> None:
    """Start the server of a configured client as the client does; add the outcome."""
    client = CLIENTS[result.client]
    try:
        record, entry = record_of(client.path()), find_entry(client, read(client.path()))
        wanted, start = Start(*start_command(result.client, resolved)), start_of(client, entry)
        if start is None:
            return
        if may_be_run(client, entry, record, wanted):
            answer = await try_start(*start)
            result.server, result.tools = answer.version, answer.tools
        elif start.command == wanted.command:
            result.wrong.append("its entry is not what this command writes, and is not tried")
    except SetupError as error:
        if str(error) not in result.wrong:  # an unreadable file is reported once
            result.wrong.append(str(error))


async def _ask_versions(found: Iterable[Checked]) -> None:
    async def ask(result: Checked) -> None:
        result.version = await version_of(CLIENTS[result.client])

    async with trio.open_nursery() as nursery:
        for each in found:
            nursery.start_soon(ask, each)


async def _ask_audit_log(found: Iterable[Checked], resolved: Resolved) -> None:
    """Find when each configured client was last active here, if there is a store."""
    configured = [each for each in found if each.configured]
    folder = resolved.settings.data
    if not configured or not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        async with open_store(resolved.settings) as runtime:
            agent = Agent(runtime, operator(resolved.settings))
            for each in configured:
                name = each.client.removesuffix("-project")
                page = await agent.ask(GetAuditLog(agent=name, limit=1))
                each.last_seen = next((record.time for record in page.records), None)
    except (Exception, BaseExceptionGroup) as error:
        verdict = exit_code_for(leaf_errors(error))
        if verdict is None:
            raise
        remark(f"greenroom setup: their last use is not known: {verdict[1]}")


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
