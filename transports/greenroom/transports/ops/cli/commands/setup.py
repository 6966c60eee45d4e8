"""`greenroom setup`: adds Greenroom to clients' files, tries the server, and can undo it."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from greenroom.runtime import GreenroomError
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.setup.change import (
    Record,
    SetupError,
    find_entry,
    put_in,
    render_masked,
    take_out,
)
from greenroom.transports.clients.setup.faults import start_of
from greenroom.transports.clients.setup.files import check_below, keep_record, read, record_of, replace
from greenroom.transports.clients.setup.plugin import MANIFEST, PLUGIN, is_plugin, plugin_files
from greenroom.transports.clients.setup.programs import put_by_client, remove_by_client, try_start
from greenroom.transports.clients.table import BY_HAND, CLIENTS, SERVER, Client
from greenroom.transports.ops.cli.commands.setup_hooks import (
    has_hooks,
    hooks_record,
    own_hook_entries,
    set_up_hooks,
    take_back_hooks,
)
from greenroom.transports.ops.cli.commands.setup_plan import Change, Plan, show_change
from greenroom.transports.ops.cli.commands.setup_questions import (
    DEFAULT_TOOLS,
    MORE_TOOLS,
    CancelledError,
    ask_clients,
    ask_consent,
    ask_hooks,
    ask_tools,
    can_ask,
    held_tools,
    list_found,
)
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.startup_notice import start_command
from greenroom.transports.ops.cli.support.terminal import printable

TRY_NOW: Final = (
    'Say to your agent: "Remember that we deploy on Thursdays." '
    'In another client, or tomorrow: "When do we deploy?"'
)


async def setup(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Set up, check or undo each client; one failure does not stop the others."""
    unfit = _unfit(chosen)
    if unfit is not None:
        return complain("setup", unfit, exit_codes.USAGE)
    if chosen.plugin:
        return _write_plugin(chosen, resolved)
    names = list(dict.fromkeys(chosen.clients)) or _find_clients(every=chosen.check, recorded=chosen.undo)
    if not names:
        known = f"no client is found here; name the one to set up: {_known_names()}"
        nothing = "nothing is set up" if chosen.undo else known
        return complain("setup", nothing, exit_codes.FAILED)
    if chosen.check:
        from greenroom.transports.ops.cli.commands.setup_check import check  # noqa: PLC0415 - slow, and only to check

        return await check(names, resolved, as_json=chosen.json)
    try:
        answers = _ask(names, chosen, resolved)
        if chosen.url is not None:
            from greenroom.transports.ops.cli.commands.setup_remote import (  # noqa: PLC0415 - imports the SDK
                learn_server,
            )

            await learn_server(chosen, resolved.settings)
    except (CancelledError, GreenroomError) as error:
        return complain("setup", printable(str(error)), exit_codes.FAILED)
    return await _carry_out(answers, resolved)


def _ask(names: list[str], chosen: argparse.Namespace, resolved: Resolved) -> argparse.Namespace:
    """Return the options with the user's answers to what they leave open."""
    answers = argparse.Namespace(**vars(chosen), names=names)
    asks = can_ask() and not (chosen.yes or chosen.only_print or chosen.undo)
    if not (chosen.clients or chosen.undo):
        list_found(names)
        answers.names = ask_clients(names) if asks else names
    answers.profiles = _named_profiles(resolved)
    asks = asks and chosen.url is None  # the other machine's server has its own tools, hooks need one here
    if asks and answers.profiles is None:
        answers.profiles = ask_tools(answers.names)
    answers.with_hooks = answers.names if chosen.hooks and not chosen.undo else []
    if asks and not (chosen.hooks or chosen.no_hooks):
        answers.with_hooks = ask_hooks([name for name in answers.names if not has_hooks(name)])
    return answers


def _named_profiles(resolved: Resolved) -> tuple[str, ...] | None:
    return None if resolved.sources["tools"].kind == "default" else resolved.settings.tools


async def _carry_out(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Show all changes, ask for consent once, write, and try the server."""
    code, plan = exit_codes.OK, Plan()
    for name in chosen.names:
        for part in [_one, set_up_hooks] if name in chosen.with_hooks else [_one]:
            try:
                part(name, chosen, resolved, plan)
            except SetupError as error:
                code = _failed(name, error)
    if chosen.only_print:
        return code
    if plan.changes and not _is_agreed(chosen):
        return exit_codes.FAILED
    for change in list(plan.changes):
        try:
            await change.carry_out()
        except SetupError as error:
            code = _failed(change.client, error)
            plan.changes.remove(change)
        else:
            say(f"{change.client}: {change.done}")
    if chosen.undo or (code != exit_codes.OK and not plan.changes):
        return code
    return max(code, await _try_out(plan.changes))


def _failed(name: str, error: SetupError) -> int:
    return complain("setup", f"{name}: {printable(str(error))}", exit_codes.FAILED)


def _is_agreed(chosen: argparse.Namespace) -> bool:
    """Ask for consent, if there is a terminal; else say what it would need."""
    nothing = f"nothing was {'taken back' if chosen.undo else 'written'}"
    if chosen.yes:
        return True
    if not can_ask():
        remark(f"greenroom setup: {nothing}: there is no terminal to ask on, and --yes is not given")
        if not chosen.undo:
            remark(
                "greenroom setup: besides --yes it takes the names of clients, "
                f"--tools {','.join(MORE_TOOLS)} for documents and code as well, and --hooks"
            )
        return False
    question = "Take this back?" if chosen.undo else "Write this?"
    with suppress(CancelledError):
        if ask_consent(question):
            return True
    complain("setup", nothing, exit_codes.FAILED)
    return False


async def _try_out(changes: Sequence[Change]) -> int:
    """Start the server once, and print what to do now.

    The servers of the clients differ in the agents' names alone.
    """
    start = next((each.start for each in changes if each.start is not None), None)
    if start is not None:
        try:
            found = await try_start(*start)
        except SetupError as error:
            return complain("setup", printable(str(error)), exit_codes.FAILED)
        say(f"greenroom {found.version} starts and lists {found.tools} tools")
    for each in changes:
        say(f"{each.client}: now {each.after}")
    say(TRY_NOW)
    return exit_codes.OK


def _unfit(chosen: argparse.Namespace) -> str | None:
    """Return why the options of the command line conflict; None if they do not."""
    has_url = chosen.url is not None
    unfit = {
        "take one of --undo, --check and --print": chosen.undo + chosen.check + chosen.only_print > 1,
        "--plugin takes no client, --undo or --check": chosen.plugin
        and (chosen.clients or chosen.undo or chosen.check),
        "take one of --hooks and --no-hooks": chosen.hooks and chosen.no_hooks,
        "--url takes no --undo, --check, --plugin or --hooks: hooks need a server on this machine": has_url
        and (chosen.undo or chosen.check or chosen.plugin or chosen.hooks),
        "--json goes with --check": chosen.json and not chosen.check,
    }
    for sentence, is_so in unfit.items():
        if is_so:
            return sentence
    unknown = [name for name in chosen.clients if name not in CLIENTS and name not in BY_HAND]
    return f"there is no client {unknown[0]!r}; known are {_known_names()}" if unknown else None


def _known_names() -> str:
    return ", ".join([*CLIENTS, *BY_HAND])


def _find_clients(*, every: bool, recorded: bool) -> list[str]:
    if recorded:
        return [name for name, client in CLIENTS.items() if record_of(client.path()) or hooks_record(name)]
    return [
        name for name, client in CLIENTS.items() if every or (client.is_installed() and not client.project)
    ]


def _one(name: str, chosen: argparse.Namespace, resolved: Resolved, plan: Plan) -> None:
    if name in BY_HAND:
        command, arguments = _start(name, chosen, resolved)
        entry = {"mcpServers": {SERVER: {"command": command, "args": arguments}}}
        say(BY_HAND[name])
        say(json.dumps(entry, indent=2, ensure_ascii=False))
        return
    client = CLIENTS[name]
    if client.project:
        check_below(client.path(), Path.cwd())
    if chosen.undo:
        _undo(name, client, chosen, plan)
    else:
        _set_up(name, client, chosen, resolved, plan)


def _start(name: str, chosen: argparse.Namespace, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the command that a client starts, with the chosen tools or its own."""
    if chosen.url is not None:
        from greenroom.transports.ops.cli.commands.setup_remote import (  # noqa: PLC0415 - likewise
            bridge_command,
        )

        return bridge_command(chosen.url, resolved)
    command, arguments = start_command(name, resolved)
    tools = ",".join(chosen.profiles or ())
    if chosen.profiles is None and name in CLIENTS:
        tools = held_tools(CLIENTS[name]) or ""
    if tools not in {"", ",".join(DEFAULT_TOOLS)}:
        arguments += ["--tools", tools]
    return command, arguments


def _set_up(name: str, client: Client, chosen: argparse.Namespace, resolved: Resolved, plan: Plan) -> None:
    path, text = client.path(), plan.text_of(client.path())
    held = start_of(client, find_entry(client, text))
    if held is not None and held.is_bridge and chosen.url is None and name not in chosen.clients:
        say(f"{name}: it uses the server of another machine, and stays so; name it to change that")
        return
    command, arguments = _start(name, chosen, resolved)
    known = record_of(path)
    wanted, record = put_in(client, text, client.entry(command, arguments), known)
    if wanted == text:
        say(f"{name}: {printable(str(path))} has it already")
        return
    _show(client, text, wanted, ours_before=known is not None, ours_after=True)
    if client.own is not None and client.program() is not None:
        say(f"{name}: with its own command, `{client.programs[0]} {' '.join(client.own.add)} …`")

    async def carry_out() -> None:
        keep_record(path, record)  # stored first, so that every change can be undone
        await _put(name, client, text, wanted, record)

    plan.add(Change(name, carry_out, "written", client.after, (command, arguments)), path, wanted)


async def _put(name: str, client: Client, text: str | None, wanted: str | None, record: Record) -> None:
    """Add the entry with the client's own command if possible, else directly to its file."""
    path, program = client.path(), client.program()
    if client.own is not None and program is not None:
        try:
            written = await put_by_client(client, program, record.entry)
        except SetupError as error:
            remark(f"greenroom setup: {name}: {printable(str(error))}; its file is edited instead")
            text = read(path)  # the command may have made only a part of the change
            wanted, _ = put_in(client, text, record.entry, None)
            keep_record(path, msgspec.structs.replace(record, written=wanted or ""))
        else:
            keep_record(path, msgspec.structs.replace(record, written=written, by_client=True))
            return
    replace(path, text, wanted)


def _undo(name: str, client: Client, chosen: argparse.Namespace, plan: Plan) -> None:
    """Plan to undo a setup, last change first: entry and hooks may share a file."""
    path, record = client.path(), None if chosen.hooks else record_of(client.path())
    if record is None and hooks_record(name) is None:
        raise SetupError("it was not set up by this command, so nothing is taken back")
    take_back_hooks(name, plan)
    if record is None:
        return
    text = plan.text_of(path)
    without = None if text is None else take_out(client, text, record)
    if without != text:
        _show(client, text, without, ours_before=True, ours_after=False)

    async def carry_out() -> None:
        if without != text:
            await _take(name, client, text, without, record)
        keep_record(path, None)

    plan.add(Change(name, carry_out, "taken back"), path, without)


async def _take(name: str, client: Client, text: str | None, without: str | None, record: Record) -> None:
    """Remove the entry with the client's command if that added it, else from the file."""
    path, program = client.path(), client.program()
    if record.by_client and program is not None:
        try:
            await remove_by_client(client, program, find_entry(client, record.original))
        except SetupError as error:
            remark(f"greenroom setup: {name}: {printable(str(error))}; its file is edited instead")
            text = read(path)
            without = None if text is None else take_out(client, text, record)
        else:
            return
    if without != text:
        replace(path, text, without)


def _show(
    client: Client, before: str | None, after: str | None, *, ours_before: bool, ours_after: bool
) -> None:
    """Print the change; values of other servers are masked, since they may be keys."""
    show_change(
        client.path(),
        render_masked(client, before, ours=ours_before),
        render_masked(client, after, ours=ours_after),
    )


def _write_plugin(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Write the plugin into a new or empty folder, or replace an earlier plugin."""
    name, folder = "claude-code", Path(chosen.plugin).absolute()
    chosen.profiles = _named_profiles(resolved)
    start = _start(name, chosen, resolved)
    files = plugin_files(CLIENTS[name].entry(*start), own_hook_entries(name, resolved))
    try:
        _check_free(folder)
        for path, text in files.items():
            if chosen.only_print:
                say(f"--- {printable(str(folder / path))}\n{text}")
            else:
                replace(folder / path, read(folder / path), text)
    except SetupError as error:
        return complain("setup", printable(str(error)), exit_codes.FAILED)
    if not chosen.only_print:
        shown = printable(shlex.quote(str(folder)))
        say(f"plugin: {len(files)} files are in {printable(str(folder))}")
        say(f"plugin: now `claude plugin marketplace add {shown}`, `claude plugin install {PLUGIN}`")
        if record_of(CLIENTS[name].path()) or hooks_record(name):
            say(f"plugin: and `greenroom setup --undo {name}` first, or all is there twice")
    return exit_codes.OK


def _check_free(folder: Path) -> None:
    try:
        is_free = not folder.exists() or not any(folder.iterdir()) or is_plugin(read(folder / MANIFEST))
    except OSError as error:
        raise SetupError(f"{folder} cannot be used: {error.strerror}") from None
    if not is_free:
        raise SetupError(f"{folder} holds something else than the plugin; name a new folder")
