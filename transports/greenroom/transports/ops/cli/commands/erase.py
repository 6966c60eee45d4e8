"""`greenroom erase`: counts and erases a person's data, and rewrites the store's file.

If a server is running, the command attaches to it and erases at once. Later, `--finish` rewrites the file.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from greenroom.actors import Agent, EraseUser, UserErased, finish_erasing
from greenroom.runtime import ExpungeInfo, StoreOwnedError, older_stores
from greenroom.runtime.maintenance.temporary_copies import left_over
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.clients.hooks.spool import names_of, remove, remove_refused
from greenroom.transports.ops.cli.output import complain, say, say_json
from greenroom.transports.ops.cli.support.audit_record import operator
from greenroom.transports.ops.cli.support.confirm import is_typed
from greenroom.transports.ops.cli.support.open_store import encryption, open_store, runtime_options
from greenroom.transports.ops.cli.support.terminal import printable

_WORDS: Final = {
    "memory_versions": "versions of these memories",
    "ratings": "ratings of others' memories",
    "sessions": "sessions, whole",
    "session_fields": "keys of the state and the metadata of these sessions",
    "messages_of_others": "messages that others wrote in these sessions",
    "session_notes": "notes, decisions and steps in others' sessions",
    "api_keys": "API keys",
    "hook_events_waiting": "events of hooks that waited for a server",
    "given": "rows of the injection log (what hooks gave)",
    "hook_events": "records of ingested events from hooks",
    "hook_sessions": "records of sessions of clients that have hooks",
}
"""The texts for counts whose names are unclear."""


async def erase(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Count, erase, or rewrite the file; return the exit code."""
    settings = resolved.settings
    if (chosen.person is None) != chosen.finish:
        return complain("erase", "name a person with --user, or give --finish alone", exit_codes.USAGE)
    if chosen.finish:
        return await _finish(chosen, settings, None)
    request = EraseUser(user=chosen.person, agents=list(chosen.agents or ()))
    if not chosen.yes:
        counted = (await _send(request, settings))[0]
        _show(chosen, settings.data, counted)
        question = "greenroom erase: that cannot be undone; to continue, type the user's name:"
        if chosen.json or not await is_typed(chosen.person, question):
            return complain("erase", "nothing was erased; --yes does it", exit_codes.FAILED)
    done, owned = await _send(msgspec.structs.replace(request, confirm=True), settings)
    if not owned:
        _show(chosen, settings.data, done)
        return exit_codes.OK
    return await _finish(chosen, settings, done)


async def _send(request: EraseUser, settings: Settings) -> tuple[UserErased, bool]:
    """Send the request; return its reply, and whether this process owns the store.

    The person's events in the spool count, too; a running server has already ingested them.
    """
    async with open_store(settings) as runtime:
        erased = await Agent(runtime, operator(settings)).ask(request)
        is_owner = runtime.role == "owner"
    waiting = await trio.to_thread.run_sync(names_of, settings.data, request.user, erased.agents)
    if waiting:
        erased = msgspec.structs.replace(
            erased, counts={**erased.counts, "hook_events_waiting": len(waiting)}
        )
    if request.confirm:
        for name in waiting:
            await trio.to_thread.run_sync(remove, settings.data, name)
        await trio.to_thread.run_sync(remove_refused, settings.data)
    return erased, is_owner


async def _finish(chosen: argparse.Namespace, settings: Settings, done: UserErased | None) -> int:
    """Rewrite the store's file, unless a server uses it."""
    try:
        async with open_store(settings) as runtime:  # delivers waiting messages to actors before the rewrite
            if runtime.role != "owner":
                return complain("erase", f"a server uses {settings.data}; stop it first", exit_codes.OWNED)
        rewrite = partial(
            finish_erasing,
            settings.data,
            secrets=settings.secrets,
            encryption=encryption(settings),
            options=runtime_options(settings),
        )
        info = await trio.to_thread.run_sync(rewrite)
    except StoreOwnedError as error:
        return complain("erase", f"the file is not rewritten yet: {error}", exit_codes.OWNED)
    if done is not None:
        done = msgspec.structs.replace(done, remains="")
    _show(chosen, settings.data, done, info)
    return exit_codes.OK


def _show(
    chosen: argparse.Namespace, folder: Path, erased: UserErased | None, info: ExpungeInfo | None = None
) -> None:
    older, left = older_stores(folder), left_over(folder)
    if chosen.json:
        say_json({"erased": erased, "file": info, "older_stores": older, "left_over": left})
        return
    if erased is not None:
        _show_counts(chosen, erased)
    if info is not None:
        say(
            f"the file was rewritten: {info.before:,} bytes before, {info.after:,} now; {info.redacted:,} "
            "records of the audit log no longer name a person"
        )
    for path in older:
        say(f"an older store still holds everything: {printable(str(path))}")
    for path in left:
        say(f"a command that was killed has left a copy that may hold everything: {printable(str(path))}")
    if older or left or (erased is not None and erased.backups):
        say("these copies, and any other copies of the files, are not changed: remove them yourself")


def _show_counts(chosen: argparse.Namespace, erased: UserErased) -> None:
    who = printable(chosen.person)
    verb = "was erased" if erased.erased else "would be erased"
    say(f"data of {who} that {verb}:" if erased.counts else f"nothing {verb}: nothing of {who} is there")
    for kind, count in erased.counts.items():
        say(f"  {count:>9,}  {_WORDS.get(kind, kind.replace('_', ' '))}")
    if erased.agents:
        say(f"agents that count as this person's: {', '.join(erased.agents)}")
    if erased.shared_agents:
        say(f"agents kept, since they may work for others (see --agents): {', '.join(erased.shared_agents)}")
    for path in erased.backups:
        say(f"a copy of the store still holds everything: {printable(path)}")
    if erased.remains:
        say(erased.remains)
