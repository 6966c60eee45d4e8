"""Builds hook events, without secrets and within limits, and puts them into the spool."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.core.git.projects import find_project
from greenroom.actors.sessions.requests.hook_limits import MAX_PROMPT
from greenroom.transports.clients.hooks.client_json import replace_surrogates
from greenroom.transports.clients.hooks.dialects import DIALECTS, HookInput
from greenroom.transports.clients.hooks.spool_writer import hold_spool
from greenroom.transports.clients.hooks.switches import BadSwitchError, Switches
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from greenroom.actors.core.auth.principal import Principal
    from greenroom.actors.sessions.requests.hook_events import HookEvent, HookName
    from greenroom.transports.clients.hooks.spool_writer import ReadOffset

_BETWEEN_WORDS = re.compile(r"[\s'\"`;|&<>()=,]+")
"""What separates paths in a command."""
_BETWEEN_PARTS = re.compile(r"[\s'\"`;|&<>()=,:@{}]+")
"""The same where paths follow a revision or a scheme, or a line number follows them."""
_MOVES = frozenset({"cd", "pushd", "-C", "--directory"})
"""The words of a command before a folder that later paths are below."""
_MAX_MOVED = 256
_MAX_PATH = 4_096
_MAX_NAME = 255


def make_event(
    hook: HookName, client: str, hook_input: HookInput, turns: Sequence[RawTurn], *, apart: bool = False
) -> HookEvent:
    """Build the event of one run of a hook."""
    import msgspec  # noqa: PLC0415 - hooks that only tell do without it, as below

    from greenroom.actors.sessions.requests.hook_events import HookEvent  # noqa: PLC0415

    return msgspec.convert(describe_event(hook, client, hook_input, turns, apart=apart), HookEvent)


def describe_event(
    hook: HookName, client: str, hook_input: HookInput, turns: Sequence[RawTurn], *, apart: bool = False
) -> dict[str, Any]:
    """Build the event of one run of a hook, as JSON.

    An empty member may be missing. If the client sent no folder, the event has the working folder of this
    process. With ``apart``, a linked work tree is a project of its own.
    """
    folder = hook_input.folder or os.getcwd()  # noqa: PTH109 - keeps the client's spelling
    project = find_project(folder, apart=apart)
    clean = cache(_clean)  # files and commands come again and again
    return {
        "id": hook_input.id or os.urandom(16).hex(),
        "name": hook,
        "client": client,
        "session": session_of(client, hook_input),
        "project": project.project_id,
        "older": list(project.older),
        "branch": project.revision.branch,
        "commit": project.revision.commit,
        "folder": folder[:_MAX_PATH],
        "at": datetime.now(UTC).isoformat(),
        "prompt": _clean(hook_input.prompt, MAX_PROMPT),
        "reason": _clean(hook_input.reason, _MAX_NAME),
        "turns": [_to_turn(turn, clean) for turn in turns],
    }


def session_of(client: str, hook_input: HookInput, parent: int | None = None) -> str:
    """Return the client's session id, or a substitute if the client sent none.

    The substitute may have the number of the hook's parent process: ``parent``, or this process's parent.
    """
    stem = os.path.basename(hook_input.transcript).partition(".")[0]  # noqa: PTH119 - the text may be no path
    return (hook_input.session or stem or f"{client}-{parent or os.getppid()}")[:_MAX_NAME]


def turns_of_event(hook_input: HookInput) -> list[RawTurn]:
    """Return the turns in an event itself, for clients without a transcript."""
    turns = (
        [RawTurn("user", hook_input.prompt), RawTurn("assistant", hook_input.reply)]
        if hook_input.reply
        else []
    )
    if hook_input.call is not None and hook_input.call.has_effect:
        turns.append(RawTurn("tool", hook_input.call.output, hook_input.call))
    return _without_excluded([turn for turn in turns if turn.text or turn.call], hook_input)


def _without_excluded(turns: list[RawTurn], hook_input: HookInput) -> list[RawTurn]:
    """Leave out the calls whose file is excluded, or whose command names an excluded one.

    The result of an unknown call may be of such a file, so it is left out, too.
    """
    excludes = hook_input.excludes
    if excludes is None:
        return turns
    return [
        turn
        for turn in turns
        if turn.call is None or (turn.call.tool and not any(map(excludes, {*_named_in(turn.call)})))
    ]


def _named_in(call: ToolCall) -> Iterator[str]:
    """Yield what a call names, also from the folders that its command moves to."""
    yield from (call.path, *call.others)
    for between in (_BETWEEN_WORDS, _BETWEEN_PARTS):
        before = last = moved = ""
        for word in between.split(call.command):
            if not word or len(word) > _MAX_PATH:
                continue
            yield from {word, os.path.join(last, word), os.path.join(moved, word)}  # noqa: PTH118 - as texts
            if before in _MOVES:
                last, moved = word, os.path.join(moved, word)[:_MAX_MOVED]  # noqa: PTH118
            before = word


def _to_turn(turn: RawTurn, clean: Callable[[str, int], str]) -> dict[str, Any]:
    call = turn.call or ToolCall("")
    members = {
        "role": turn.role,
        "text": clean(turn.text, limit_of(turn)),
        "tool": replace_surrogates(call.tool)[:_MAX_NAME],
        "command": clean(call.command, MAX_COMMAND),
        "path": clean(call.path, _MAX_PATH),
        "wrote": call.wrote,
        "failed": call.failed,
        "at": turn.at and turn.at.isoformat(),
        "by_program": turn.by_program,
    }
    return {name: value for name, value in members.items() if value}


def _clean(text: str, most: int) -> str:
    """Return a text without secrets and within a limit.

    The text is cut twice: the second cut removes any secret that the first cut has split.
    """
    if not text:
        return text
    from greenroom.actors.content.secrets.detect import without_secrets  # noqa: PLC0415 - only if there is a text

    return truncate_middle(
        without_secrets(replace_surrogates(truncate_middle(text, 2 * most, GAP)))[0], most, GAP
    )


class NothingKeptError(Exception):
    """The transcript to read does not exist; the sentence says which."""


def enqueue(
    folder: Path | str,
    principal: Principal | Mapping[str, object],
    hook: HookName,
    client: str,
    hook_input: HookInput,
    environment: Mapping[str, str],
    *,
    apart: bool = False,
) -> bool:
    """Put the new part of a session into the spool of a data folder.

    A transcript contains all tool calls, so the hook `post-tool` adds nothing for clients with a transcript.
    Turns of folders where hooks are off are left out, and those of other projects become events of their own.
    """
    place = DIALECTS[client].transcripts
    if place is None or not hook_input.transcript:
        event = describe_event(hook, client, hook_input, turns_of_event(hook_input), apart=apart)
        if not _has_news(event):
            return False
        with hold_spool(folder) as spool:
            spool.put(event["id"], _to_json(principal, event))
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
        own, *others = _by_project(turns, hook_input, environment, apart=apart)
        events = [
            describe_event("stop", client, its._replace(id=_id_of(key, kept, its)), of, apart=apart)
            for its, of in others
        ]
        events.append(describe_event(hook, client, *own, apart=apart))
        if not _has_news(events[-1]):
            events.pop()
        for event in events[:-1]:
            spool.put(event["id"], _to_json(principal, event))
        for event in events[-1:]:
            spool.put(event["id"], _to_json(principal, event), key, kept)
    return bool(events)


def _by_project(
    turns: Sequence[RawTurn], hook_input: HookInput, environment: Mapping[str, str], *, apart: bool
) -> list[tuple[HookInput, list[RawTurn]]]:
    """Group turns by their folders' projects; the event's own project comes first.

    Hooks may be off in a folder that the session has left, and words typed there are of its project.
    """
    own = hook_input.folder or os.getcwd()  # noqa: PTH109 - as above
    switch = environment.get("GREENROOM_RUN_HOOKS") or None
    switches_of = hook_input.switches_of or (lambda folder: Switches(folder, switch))

    @cache
    def find_place(folder: str) -> tuple[str, HookInput] | None:
        try:
            switches = switches_of(folder)
        except BadSwitchError:
            return None
        project = find_project(folder, apart=apart).project_id
        its = HookInput(session=hook_input.session, transcript=hook_input.transcript, folder=folder)
        return None if switches.off else (project, its._replace(excludes=switches.excludes))

    groups = {find_project(own, apart=apart).project_id: (hook_input, list[RawTurn]())}
    for turn in turns:
        if (place := find_place(turn.folder or own)) is not None:
            project, its = place
            groups.setdefault(project, (its, []))[1].extend(_without_excluded([turn], its))
    return [(its, of) for its, of in groups.values() if its is hook_input or of]


def _id_of(key: str, kept: ReadOffset | None, hook_input: HookInput) -> str:
    """Return the id of another project's event, the same if this part is read again."""
    part = f"{key}\0{kept and kept.offset}\0{hook_input.folder}"
    return blake2b(part.encode(errors="replace"), digest_size=16).hexdigest()


def _has_news(event: Mapping[str, Any]) -> bool:
    return bool(event["turns"]) or event["name"] in {"pre-compact", "session-end"}


def _to_json(principal: Principal | Mapping[str, object], event: Mapping[str, Any]) -> bytes:
    """Encode an `Entry` of the spool."""
    whose: object = principal
    if not isinstance(principal, dict):
        import msgspec  # noqa: PLC0415 - as above

        whose = msgspec.to_builtins(principal)
    entry = {"principal": whose, "event": event}
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
