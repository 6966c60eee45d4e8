"""`greenroom hook`: answers a client's event, or enqueues it for the next owner.

This does what `quick_hook` could not do: without an owner of the folder it opens the store, without an
embedder. `hooks.guard` ensures that the client never waits.
"""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookAnswer, HookEvent, HookName
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.clients.hooks.answers import texts_of
from greenroom.transports.clients.hooks.client_json import claim_output
from greenroom.transports.clients.hooks.dialects import DIALECTS, HookInput, answer, read
from greenroom.transports.clients.hooks.enqueue import enqueue, make_event
from greenroom.transports.clients.hooks.failures import failures_of, note_reported
from greenroom.transports.clients.hooks.guard import ASKING, RUN, Run, sentence_of
from greenroom.transports.clients.hooks.switches import BadSwitchError, Switches
from greenroom.transports.ops.cli.output import complain
from greenroom.transports.ops.cli.support.identity import principal_of
from greenroom.transports.ops.control.client import ControlSocketError, Drain, Hook, NoOwnerError, call

_POKE_SECONDS: Final = 1.0
_RESERVE_SECONDS: Final = 0.2
"""This part of the time limit is reserved in case the owner does not reply."""
_TAKING_SECONDS: Final = 0.5
"""Draining the spool takes at most this long, and at most a third of the remaining time."""


def hook(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Answer or enqueue one event; return the exit code."""
    run = RUN.get()
    run.folder = resolved.settings.data
    run.allow(chosen.limit)
    known = {"hook": (chosen.name, get_args(HookName)), "client": (chosen.client, tuple(DIALECTS))}
    for what, (named, names) in known.items():
        if named not in names:
            return complain(
                "hook", f"there is no {what} {named!r}; known are {', '.join(names)}", exit_codes.USAGE
            )
    output = claim_output()
    context = message = ""
    try:
        hook_input = read(chosen.client, run.read())
        folder = hook_input.folder or os.getcwd()  # noqa: PTH109 - keeps the client's spelling
        switches = _switches(resolved.settings, folder)
        if not switches.off:
            hook_input = hook_input._replace(
                id=run.event_id,
                excludes=switches.excludes,
                switches_of=lambda folder: _switches(resolved.settings, folder),
            )
            context, message = _carry_out(chosen, resolved.settings, hook_input, run)
    except BadSwitchError as error:
        sentence = f"{error}; so hooks do nothing there"
        complain("hook", sentence, exit_codes.OK)
        if chosen.name == "session-start":  # one report for each session
            run.fail(sentence)
    except Exception as error:  # noqa: BLE001 - the client needs a reply in any case
        run.fail(sentence_of(error))
    if chosen.name == "session-start":
        context, message = _with_failures(chosen.client, resolved.settings.data, context, message)
    with os.fdopen(output, "wb") as stream:
        stream.write(answer(chosen.client, chosen.name, context, message) + b"\n")
    return exit_codes.OK


def _switches(settings: Settings, folder: str) -> Switches:
    return Switches(folder, settings.run_hooks, settings.hooks_exclude)


def _carry_out(
    chosen: argparse.Namespace, settings: Settings, hook_input: HookInput, run: Run
) -> tuple[str, str]:
    """Answer or enqueue an event; return the texts for the model and for the user."""
    principal = principal_of(replace(settings, agent=settings.agent or chosen.client))
    apart = settings.worktrees_apart
    if chosen.name in ASKING:
        event = make_event(chosen.name, chosen.client, hook_input, [], apart=apart)
        return _answer(settings, principal, event, run)
    is_new = enqueue(
        settings.data, principal, chosen.name, chosen.client, hook_input, os.environ, apart=apart
    )
    if is_new:
        with suppress(NoOwnerError, ControlSocketError):  # without an owner that replies the event waits
            call(settings.data, Drain(), patience=_POKE_SECONDS)
    return "", ""


def _answer(settings: Settings, principal: Principal, event: HookEvent, run: Run) -> tuple[str, str]:
    request = Hook(principal=principal, event=event)
    try:
        reply = call(settings.data, request, patience=max(run.rest - _RESERVE_SECONDS, _RESERVE_SECONDS))
    except NoOwnerError:
        if not (settings.data / DATA_FILE).exists():  # there is no store yet
            return "", ""
        found = _answer_here(settings, principal, event, run)
    else:
        found = msgspec.json.decode(reply, type=HookAnswer)
    return texts_of(found)


def _answer_here(settings: Settings, principal: Principal, event: HookEvent, run: Run) -> HookAnswer:
    """Query the store without the control socket: attached, or as owner without an embedder.

    The spool is drained before a session starts, so that the new session knows the one before.
    """
    import trio  # noqa: PLC0415 - slow to import, and not needed with an owner

    from greenroom.actors import AnswerHook  # noqa: PLC0415 - likewise
    from greenroom.transports.clients.hooks.drain import drain_spool  # noqa: PLC0415 - likewise
    from greenroom.transports.ops.cli.support.open_store import open_store  # noqa: PLC0415 - likewise

    async def ask() -> HookAnswer:
        async with open_store(settings) as runtime:
            if event.name == "session-start":
                await drain_spool(runtime, settings.data, min(run.rest / 3, _TAKING_SECONDS))
            found = await runtime.query(AnswerHook(event=event), principal=principal)
            return msgspec.structs.replace(found, partial=found.partial or runtime.role == "owner")

    return trio.run(ask)


def _with_failures(client: str, folder: Path, context: str, message: str) -> tuple[str, str]:
    """Add the unreported failures to the user's line, else to the model's text.

    The text for the model contains nothing that others wrote.
    """
    failed = failures_of(folder)
    if not failed.untold:
        return context, message
    note_reported(folder)
    many = "a hook" if failed.untold == 1 else f"{failed.untold} hooks"
    if not DIALECTS[client].message:
        said = f"(Greenroom: {many} failed lately. Tell the user that `greenroom doctor` says why.)"
        return f"{context}\n{said}".lstrip(), message
    said = (
        f"Greenroom: {many} failed since the last report; the last was {failed.last_hook}, "
        f"{failed.last_at:%Y-%m-%d %H:%M} UTC: {failed.last_sentence}. `greenroom doctor` has details."
    )
    return context, f"{said} {message}".rstrip()
