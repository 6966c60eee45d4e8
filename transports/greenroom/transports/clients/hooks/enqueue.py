"""Builds hook events, without secrets and within limits, and puts them into the spool."""

from __future__ import annotations

import os
import secrets as randomness
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.core.auth.namespaces import project_of_path
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import MAX_PROMPT, HookEvent, HookName, Turn
from greenroom.transports.clients.hooks.client_json import replace_surrogates
from greenroom.transports.clients.hooks.dialects import DIALECTS, HookInput
from greenroom.transports.clients.hooks.spool import Entry, hold_spool
from greenroom.transports.clients.hooks.tool_calls import ToolCall
from greenroom.transports.clients.hooks.transcript import (
    GAP,
    MAX_COMMAND,
    check_path,
    key_of,
    limit_of,
    read_tail,
)
from greenroom.transports.clients.hooks.turns import RawTurn

_MAX_PATH = 4_096
_MAX_NAME = 255


def make_event(hook: HookName, client: str, hook_input: HookInput, turns: Sequence[RawTurn]) -> HookEvent:
    """Build the event of one run of a hook.

    If the client sent no folder, the event has the working folder of this process.
    """
    folder = hook_input.folder or os.getcwd()  # noqa: PTH109 - keeps the client's spelling
    return HookEvent(
        id=randomness.token_hex(16),
        name=hook,
        client=client,
        session=session_of(client, hook_input),
        project=project_of_path(project_folder(folder)),
        folder=folder[:_MAX_PATH],
        at=datetime.now(UTC),
        prompt=_clean(hook_input.prompt, MAX_PROMPT),
        reason=_clean(hook_input.reason, _MAX_NAME),
        turns=[_to_turn(turn) for turn in turns],
    )


def session_of(client: str, hook_input: HookInput) -> str:
    """Return the client's session id, or a substitute if the client sent none."""
    stem = os.path.basename(hook_input.transcript).partition(".")[0]  # noqa: PTH119 - the text may be no path
    return (hook_input.session or stem or f"{client}-{os.getppid()}")[:_MAX_NAME]


def project_folder(folder: str) -> str:
    """Return the git work tree that contains a folder, or the folder itself."""
    at = folder
    while at and at != os.path.dirname(at):  # noqa: PTH120 - keeps the client's spelling
        if os.path.lexists(os.path.join(at, ".git")):  # noqa: PTH118
            return at
        at = os.path.dirname(at)  # noqa: PTH120
    return folder


def turns_of_event(hook_input: HookInput) -> list[RawTurn]:
    """Return the turns in an event itself, for clients without a transcript."""
    turns = (
        [RawTurn("user", hook_input.prompt), RawTurn("assistant", hook_input.reply)]
        if hook_input.reply
        else []
    )
    if hook_input.call is not None and hook_input.call.has_effect:
        turns.append(RawTurn("tool", hook_input.call.output, hook_input.call))
    return [turn for turn in turns if turn.text or turn.call]


def _to_turn(turn: RawTurn) -> Turn:
    call = turn.call or ToolCall("")
    return Turn(
        role=turn.role,
        text=_clean(turn.text, limit_of(turn)),
        tool=replace_surrogates(call.tool)[:_MAX_NAME],
        command=_clean(call.command, MAX_COMMAND),
        path=_clean(call.path, _MAX_PATH),
        wrote=call.wrote,
        failed=call.failed,
        at=turn.at,
        by_program=turn.by_program,
    )


def _clean(text: str, most: int) -> str:
    """Return a text without secrets and within a limit.

    The text is cut twice: the second cut removes any secret that the first cut has split.
    """
    return truncate_middle(
        without_secrets(replace_surrogates(truncate_middle(text, 2 * most, GAP)))[0], most, GAP
    )


class NothingKeptError(Exception):
    """The transcript to read does not exist; the sentence says which."""


def enqueue(
    folder: Path,
    principal: Principal,
    hook: HookName,
    client: str,
    hook_input: HookInput,
    environment: Mapping[str, str],
) -> bool:
    """Put the new part of a session into the spool of a data folder.

    A transcript contains all tool calls, so the hook `post-tool` adds nothing for clients with a transcript.
    """
    place = DIALECTS[client].transcripts
    if place is None or not hook_input.transcript:
        event = make_event(hook, client, hook_input, turns_of_event(hook_input))
        if not _has_news(event):
            return False
        with hold_spool(folder) as spool:
            spool.put(Entry(principal=principal, event=event))
        return True
    if hook == "post-tool":
        return False
    path = check_path(hook_input.transcript, place, environment)
    key = key_of(client, session_of(client, hook_input), path)
    turns: list[RawTurn] = []
    kept = None
    with hold_spool(folder) as spool:
        if hook == "session-end":
            spool.forget_old()
        try:
            turns, kept = read_tail(path, place, spool.read_offset(key))
        except FileNotFoundError:
            if hook != "session-end":  # a session may end before its first message
                raise NothingKeptError(
                    f"there is no transcript {path[:200]!r}, so nothing of it is kept"
                ) from None
        event = make_event(hook, client, hook_input, turns)
        if not _has_news(event):
            return False
        spool.put(Entry(principal=principal, event=event), key, kept)
    return True


def _has_news(event: HookEvent) -> bool:
    return bool(event.turns) or event.name in {"pre-compact", "session-end"}
