"""The hooks in a client's own file."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any, Final

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.setup.change import Record, SetupError
from greenroom.transports.clients.setup.files import keep_record, read, record_of, replace
from greenroom.transports.clients.setup.hook_files import (
    are_off,
    has_plugin,
    hook_entries,
    hooks_path,
    put_in,
    render_masked,
    stray_events,
    take_out,
    untrusted_events,
)
from greenroom.transports.clients.table import HOOK_CLIENTS
from greenroom.transports.ops.cli.commands.setup_plan import Change, Plan, show_change
from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.startup_notice import owner_options, program
from greenroom.transports.ops.cli.support.terminal import printable

_PART: Final = "hooks"


def set_up_hooks(name: str, chosen: argparse.Namespace, resolved: Resolved, plan: Plan) -> None:
    """Show and plan a client's hooks, or print that it has none."""
    if name not in HOOK_CLIENTS:
        nothing = f"its hooks are not known; those that can be set up are {', '.join(HOOK_CLIENTS)}"
        if name in chosen.clients:
            raise SetupError(nothing)
        say(f"{name}: {nothing}")
        return
    path, known = hooks_path(name), hooks_record(name)
    text = plan.text_of(path)
    record = put_in(name, text, own_hook_entries(name, resolved), known)
    if record.written == text:
        say(f"{name}: {printable(str(path))} has them already")
        return
    show_change(path, render_masked(name, text, known), render_masked(name, record.written, record))

    async def carry_out() -> None:
        keep_record(path, record, _PART)  # stored first, so that every change can be undone
        replace(path, text, record.written)

    change = Change(name, carry_out, "hooks are set up", HOOK_CLIENTS[name].after)
    plan.add(change, path, record.written)


def take_back_hooks(name: str, plan: Plan) -> None:
    """Show and plan the removal of the hooks that this command added."""
    record = hooks_record(name)
    if record is None:
        return
    path = hooks_path(name)
    text = plan.text_of(path)
    left = None if text is None else take_out(name, text, record)
    if left != text:
        show_change(path, render_masked(name, text, record), render_masked(name, left, None))

    async def carry_out() -> None:
        if left != text:
            replace(path, text, left)
        keep_record(path, None, _PART)

    plan.add(Change(name, carry_out, "hooks taken back"), path, left)


def hooks_state(name: str, resolved: Resolved) -> tuple[str | None, list[str]]:
    """Return the state of a client's hooks and their problems; None without hooks."""
    if name not in HOOK_CLIENTS:
        return None, []
    text, entries = read(hooks_path(name)), own_hook_entries(name, resolved)
    missing, changed = stray_events(name, text, entries)
    if not missing:
        return "hooks set up", _stopped(name, text, entries)
    if len(missing) == len(entries) and not changed and hooks_record(name) is None:
        return ("hooks by the plugin" if has_plugin(name, text) else None), []
    wrong, again = [], f"greenroom setup {name} --hooks --yes"
    if changed:
        others = f"its hooks under {', '.join(changed)} are not what this command writes"
        wrong.append(f"{others}; remove them from {hooks_path(name)}, then: {again}")
    gone = [event for event in missing if event not in changed]
    if gone:
        wrong.append(f"its hooks under {', '.join(gone)} are missing; set them up again: {again}")
    return "hooks set up in part", wrong


def _stopped(name: str, text: str | None, entries: dict[str, Any]) -> list[str]:
    """Return the reasons why a client does not run hooks that are in its file."""
    wrong = []
    if are_off(name, text):
        member = (HOOK_CLIENTS[name].off or ("",))[0]
        wrong.append(f"its hooks are switched off, all of them; remove {member} from {hooks_path(name)}")
    trust = HOOK_CLIENTS[name].trust
    if trust is not None:
        noted = hooks_path(name).with_name(trust)
        try:
            untrusted = untrusted_events(name, text, entries, read(noted))
        except ValueError as error:
            raise SetupError(f"{noted} cannot be read as TOML ({error})") from None
        if untrusted:
            events = ", ".join(untrusted)
            wrong.append(f"its hooks under {events} do not run yet; start it, and trust them with `/hooks`")
    return wrong


def hooks_record(name: str) -> Record | None:
    """Return the record of the hooks in a client's file; None if there is none."""
    return record_of(hooks_path(name), _PART) if name in HOOK_CLIENTS else None


def has_hooks(name: str) -> bool:
    """Whether a client has hooks of this command or of the plugin."""
    if name not in HOOK_CLIENTS:
        return False
    with suppress(SetupError):  # which is reported when the file is to be changed
        return hooks_record(name) is not None or has_plugin(name, read(hooks_path(name)))
    return False


def own_hook_entries(name: str, resolved: Resolved) -> dict[str, Any]:
    """Return the hooks that run this program, for each event of a client."""
    command, before = program()
    return hook_entries(name, [command, *before], owner_options(resolved))
