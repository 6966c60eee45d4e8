"""Events made of what a client said and of its transcript: cut to their limits, and without secrets."""

from __future__ import annotations

import os
import secrets as randomness
from collections.abc import Sequence
from datetime import UTC, datetime

from greenroom.actors.base.two_ends import two_ends
from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.core.auth.namespaces import project_of_path
from greenroom.actors.sessions.requests.hook_events import MAX_PROMPT, HookEvent, HookName, Turn
from greenroom.transports.clients.hooks.dialects import Said
from greenroom.transports.clients.hooks.tool_calls import ToolCall
from greenroom.transports.clients.hooks.transcript import GAP, MAX_COMMAND, limit_of
from greenroom.transports.clients.hooks.turns import RawTurn
from greenroom.transports.hooks.loose_json import without_halves

_MAX_PATH = 4_096
_MAX_NAME = 255


def make_event(hook: HookName, client: str, said: Said, turns: Sequence[RawTurn]) -> HookEvent:
    """Return the event that a run of a hook tells now.

    A client that told no folder works in that of this process.

    Args:
        hook: The hook.
        client: The client's name.
        said: What it said.
        turns: What is told of its session.
    """
    folder = said.folder or os.getcwd()  # noqa: PTH109 - a text, as below
    return HookEvent(
        id=randomness.token_hex(16),
        name=hook,
        client=client,
        session=session_of(client, said),
        project=project_of_path(project_folder(folder)),
        folder=folder[:_MAX_PATH],
        at=datetime.now(UTC),
        prompt=_clean(said.prompt, MAX_PROMPT),
        reason=_clean(said.reason, _MAX_NAME),
        turns=[_finished(turn) for turn in turns],
    )


def session_of(client: str, said: Said) -> str:
    """Return the client's id of its session, or where it told none what stands for that."""
    stem = os.path.basename(said.transcript).partition(".")[0]  # noqa: PTH119 - of a text that may be anything
    return (said.session or stem or f"{client}-{os.getppid()}")[:_MAX_NAME]


def project_folder(folder: str) -> str:
    """Return the folder of the git work tree that a folder is in, or itself if it is in none."""
    at = folder
    while at and at != os.path.dirname(at):  # noqa: PTH120 - it is named as the client named it
        if os.path.lexists(os.path.join(at, ".git")):  # noqa: PTH118
            return at
        at = os.path.dirname(at)  # noqa: PTH120
    return folder


def own_turns(said: Said) -> list[RawTurn]:
    """Return what an event itself tells of a session, where no transcript is read."""
    turns = [RawTurn("user", said.prompt), RawTurn("assistant", said.reply)] if said.reply else []
    if said.call is not None and said.call.is_telling:
        turns.append(RawTurn("tool", said.call.output, said.call))
    return [turn for turn in turns if turn.text or turn.call]


def _finished(turn: RawTurn) -> Turn:
    call = turn.call or ToolCall("")
    return Turn(
        role=turn.role,
        text=_clean(turn.text, limit_of(turn)),
        tool=without_halves(call.tool)[:_MAX_NAME],
        command=_clean(call.command, MAX_COMMAND),
        path=_clean(call.path, _MAX_PATH),
        wrote=call.wrote,
        failed=call.failed,
        at=turn.at,
    )


def _clean(text: str, most: int) -> str:
    """Return a text without secrets and within a limit.

    It is cut twice: a secret that the first cut parts is gone after the second.
    """
    return two_ends(without_secrets(without_halves(two_ends(text, 2 * most, GAP)))[0], most, GAP)
