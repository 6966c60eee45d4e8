"""`greenroom hook`: an event of a client answered, or kept for the next owner of the folder.

An answer comes from the process that owns the folder, through its control socket; where none does, this one
opens the store, without an embedder. `hooks.guard` sees to it that the client is never kept waiting.
"""

from __future__ import annotations

import argparse
import os
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
from greenroom.transports.clients.hooks.dialects import DIALECTS, Said, answer, read
from greenroom.transports.clients.hooks.failures import Failures, failures_of, note_told
from greenroom.transports.clients.hooks.guard import RUN, Run, sentence_of
from greenroom.transports.hooks.events import make_event
from greenroom.transports.hooks.streams import claim_output, read_object
from greenroom.transports.hooks.telling import keep
from greenroom.transports.ops.cli.output import complain
from greenroom.transports.ops.cli.support.identity import principal_of
from greenroom.transports.ops.control.client import ControlSocketError, Drain, Hook, NoOwnerError, call

_ASKING: Final = frozenset({"session-start", "user-prompt"})
_POKE_SECONDS: Final = 1.0
_RESERVE_SECONDS: Final = 0.2
"""Of the time limit, for what is done after the owner did not answer."""
_TAKING_SECONDS: Final = 0.5
"""At most, and no more than a third of what is left of the time limit."""
_PARTIAL: Final = "(Greenroom: partial, since it was found by words alone.)"


def hook(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Answer or keep one event; return the exit code."""
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
        said = read(chosen.client, read_object(0))
        context, found = _carry_out(chosen, resolved.settings, said, run)
        message = _of_findings(found) if found else ""
    except Exception as error:  # noqa: BLE001 - an answer is due all the same
        run.fail(sentence_of(error))
    if chosen.name == "session-start" and (failed := failures_of(resolved.settings.data)).untold:
        note_told(resolved.settings.data)
        if DIALECTS[chosen.client].message:
            message = f"{_told_to_person(failed)} {message}".rstrip()
        else:
            context = f"{context}\n{_told_to_model(failed)}".lstrip()
    with os.fdopen(output, "wb") as stream:
        stream.write(answer(chosen.client, chosen.name, context, message) + b"\n")
    return exit_codes.OK


def _carry_out(chosen: argparse.Namespace, settings: Settings, said: Said, run: Run) -> tuple[str, int]:
    """Answer or keep an event; return what the client's model is given, and how much was found meanwhile."""
    principal = principal_of(replace(settings, agent=settings.agent or chosen.client))
    if chosen.name in _ASKING:
        event = make_event(chosen.name, chosen.client, said, [])
        return _asked(settings, principal, event, run)
    if keep(settings.data, principal, chosen.name, chosen.client, said, os.environ):
        _poke(settings.data)
    return "", 0


def _asked(settings: Settings, principal: Principal, event: HookEvent, run: Run) -> tuple[str, int]:
    request = Hook(principal=principal, event=event)
    try:
        told = call(settings.data, request, patience=max(run.rest - _RESERVE_SECONDS, _RESERVE_SECONDS))
    except NoOwnerError:
        if not (settings.data / DATA_FILE).exists():  # nothing is known yet
            return "", 0
        found = _found_here(settings, principal, event, run)
    else:
        found = msgspec.json.decode(told, type=HookAnswer)
    is_partial = found.context and found.partial
    return f"{found.context}\n{_PARTIAL}" if is_partial else found.context, found.found


def _found_here(settings: Settings, principal: Principal, event: HookEvent, run: Run) -> HookAnswer:
    """Ask a store without a control socket: attached to its owner, or as the owner, without an embedder.

    What other hooks left is taken before a session starts, so that it knows of the one before.
    """
    import trio  # noqa: PLC0415 - as long to import as all else, and an owner makes it needless

    from greenroom.actors import AnswerHook  # noqa: PLC0415 - likewise
    from greenroom.transports.clients.hooks.drain import take_waiting  # noqa: PLC0415 - likewise
    from greenroom.transports.ops.cli.support.open_store import open_store  # noqa: PLC0415 - likewise

    async def ask() -> HookAnswer:
        async with open_store(settings) as runtime:
            if event.name == "session-start":
                await take_waiting(runtime, settings.data, min(run.rest / 3, _TAKING_SECONDS))
            found = await runtime.query(AnswerHook(event=event), principal=principal)
            return msgspec.structs.replace(found, partial=found.partial or runtime.role == "owner")

    return trio.run(ask)


def _poke(folder: Path) -> None:
    """Tell the owner that something waits. Without one, or one that is busy, it waits for the next."""
    try:
        call(folder, Drain(), patience=_POKE_SECONDS)
    except (NoOwnerError, ControlSocketError):
        return


def _of_findings(number: int) -> str:
    what = "one thing that may be" if number == 1 else f"{number} things that may be"
    return (
        f"Greenroom: {what} worth remembering came up since your last session. `greenroom review list` "
        "shows them; no session is given them before you accept them."
    )


def _told_to_person(failed: Failures) -> str:
    return (
        f"Greenroom: {_counted(failed)} failed since you were last told; the last was {failed.last_hook}, "
        f"{failed.last_at:%Y-%m-%d %H:%M} UTC: {failed.last_sentence}. `greenroom doctor` says more."
    )


def _told_to_model(failed: Failures) -> str:
    """Return as much for the model of a client that shows its user nothing, in words that are ours alone."""
    return f"(Greenroom: {_counted(failed)} failed lately. Tell the user that `greenroom doctor` says why.)"


def _counted(failed: Failures) -> str:
    return "a hook" if failed.untold == 1 else f"{failed.untold} hooks"
