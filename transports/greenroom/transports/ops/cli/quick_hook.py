"""The usual `greenroom hook`, which imports next to nothing.

If a process owns the folder, that one does the work. If not, an event is enqueued here. What this cannot do,
`commands.hook` does from the start: to answer without an owner, configuration files, and whatever is wrong.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from greenroom.transports.clients.hooks.client_json import decode_loosely
from greenroom.transports.clients.hooks.guard import LIMIT, RUN, TELLING, sentence_of
from greenroom.transports.clients.hooks.switches import BadSwitchError, Switches
from greenroom.transports.ops.control.exchange import (
    ControlSocketError,
    NoOwnerError,
    SilentOwnerError,
    exchange,
)

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from greenroom.transports.clients.hooks.guard import Run

TELLING_SECONDS: Final = 1.0
_RESERVE_SECONDS: Final = 0.7
"""This part of the time limit is for the whole program, if the owner does not reply."""
_FLAGS: Final = frozenset({"--client", "--limit", "--data", "--agent", "--agent-type", "--user", "--project"})
_TO_WHOLE: Final = ("GREENROOM_CONFIG", "GREENROOM_WORKTREES_APART", "ANDROID_DATA")
"""Variables that the whole program understands."""
_PLACES: Final = {"DATA": ".local/share", "CONFIG": ".config", "STATE": ".local/state"}
_OF_TRANSCRIPTS: Final = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GREENROOM_RUN_HOOKS")
"""Variables that locate transcripts, and what the person set for hooks."""
_TAIL: Final = 4_096


class _UnableError(Exception):
    """The whole program has to do it."""


def run_quickly(arguments: Sequence[str]) -> bool:
    """Let the owner carry out a run of a hook; return whether it is done."""
    try:
        reply = _reply(arguments[1:], RUN.get())
    except _UnableError:
        return False
    data = json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    return True


def _reply(arguments: Sequence[str], run: Run) -> Any:
    """Return the object for the client."""
    name, flags = _parse(arguments)
    if any(os.environ.get(each) for each in _TO_WHOLE) or os.path.lexists(
        _own_folder("CONFIG") + "/config.toml"
    ):
        raise _UnableError
    client = flags.get("--client", "claude-code")
    run.folder = folder = _data_folder(flags)
    run.allow(_limit(flags))
    principal = _principal(flags, client)
    given = _read(run)
    if not isinstance(given, dict):
        raise _UnableError
    switches = _switches(client, given)
    if switches.off:
        return {}
    run.event_id = os.urandom(16).hex()
    request = {
        "op": "run_hook",
        "principal": principal,
        "name": name,
        "client": client,
        "given": given,
        "event_id": run.event_id,
        "folder": _working_folder(),
        "parent": os.getppid(),
        "environment": {each: os.environ[each] for each in _OF_TRANSCRIPTS if each in os.environ},
    }
    patience = max(run.rest - _RESERVE_SECONDS, run.rest / 2)
    if name in TELLING:
        return _tell(folder, request, switches, min(patience, TELLING_SECONDS), run)
    if name == "session-start" and _may_have_failures(folder):
        raise _UnableError
    try:
        return _ask(folder, request, patience)
    except (NoOwnerError, ControlSocketError):
        raise _UnableError from None


def _tell(folder: str, request: Mapping[str, Any], switches: Switches, patience: float, run: Run) -> Any:
    """Let the owner enqueue an event, or do it here and notify the owner.

    A process may become the owner meanwhile, so one is notified even if there was none.
    """
    is_silent = False
    try:
        if not switches.has_exclusions:
            return _ask(folder, request, patience)
    except SilentOwnerError:
        is_silent = True
    except (NoOwnerError, ControlSocketError):  # what the owner could not do is tried here
        pass
    try:
        if _enqueue(folder, request, switches) and not is_silent:
            with suppress(NoOwnerError, ControlSocketError):  # without an owner that replies the event waits
                _ask(folder, {"op": "drain"}, patience)
    except _UnableError:
        raise
    except Exception as error:  # noqa: BLE001 - the client needs a reply in any case
        run.fail(sentence_of(error))
    return {}


def _enqueue(folder: str, request: Mapping[str, Any], switches: Switches) -> bool:
    from greenroom.transports.clients.hooks.dialects import DIALECTS, interpret  # noqa: PLC0415 - the owner has done it in most cases, as below
    from greenroom.transports.clients.hooks.enqueue import enqueue  # noqa: PLC0415

    client = request["client"]
    if client not in DIALECTS:
        raise _UnableError
    given = interpret(client, request["given"])._replace(
        id=request["event_id"], excludes=switches.excludes, switches_of=_switches_of
    )
    return enqueue(folder, request["principal"], request["name"], client, given, os.environ)


def _read(run: Run) -> object:
    try:
        return decode_loosely(run.read())
    except Exception:  # noqa: BLE001 - the whole program meets it again
        raise _UnableError from None


def _ask(folder: str, request: Mapping[str, Any], patience: float) -> Any:
    """Send a request to the owner and return the result."""
    try:
        answer = json.loads(
            exchange(folder, json.dumps(request, ensure_ascii=False).encode() + b"\n", patience)
        )
        return answer["result"]
    except (ValueError, LookupError, TypeError):  # a text that is no UTF-8, or no such reply
        raise ControlSocketError("the owner could not do it") from None


def _parse(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the hook's name and the flags; the whole program understands more and complains."""
    names: list[str] = []
    flags: dict[str, str] = {}
    rest = iter(arguments)
    for each in rest:
        if not each.startswith("-"):
            names.append(each)
            continue
        flag, is_joined, value = each.partition("=")
        value = value if is_joined else next(rest, "")
        if flag not in _FLAGS or flag in flags or not value or (not is_joined and value.startswith("-")):
            raise _UnableError
        flags[flag] = value
    if len(names) != 1:
        raise _UnableError
    return names[0], flags


def _chosen(flags: Mapping[str, str], flag: str) -> str:
    """Return the value of a setting by its flag; empty if it is not set."""
    return flags.get(flag) or os.environ.get(f"GREENROOM_{flag[2:].upper().replace('-', '_')}", "")


def _limit(flags: Mapping[str, str]) -> float:
    written = flags.get("--limit", str(LIMIT))
    if not (written.isascii() and written.replace(".", "", 1).isdigit() and 0.01 <= float(written) <= 60):  # noqa: PLR2004
        raise _UnableError
    return float(written)


def _data_folder(flags: Mapping[str, str]) -> str:
    named = _chosen(flags, "--data")
    if "\0" in named or named.startswith("~"):
        raise _UnableError
    return os.path.abspath(named) if named else _own_folder("DATA")  # noqa: PTH100 - `pathlib` takes long to import


def _own_folder(kind: str) -> str:
    """Return the user's folder of a kind for this program, as `default_folders` does."""
    home = os.path.expanduser("~")  # noqa: PTH111 - as above
    named = os.environ.get(f"XDG_{kind}_HOME", "")
    if not home.startswith("/") or (named and not named.startswith("/")):
        raise _UnableError
    if sys.platform == "darwin":
        if any(os.environ.get(f"XDG_{each}_HOME") for each in _PLACES):
            raise _UnableError
        shared = f"{home}/Library/Application Support/greenroom"
        is_older = kind != "DATA" or os.path.lexists(f"{shared}/greenroom.mdb")
        return shared if is_older else f"{shared}/data"
    return f"{named or f'{home}/{_PLACES[kind]}'}/greenroom"


def _principal(flags: Mapping[str, str], client: str) -> dict[str, object]:
    agent = _chosen(flags, "--agent") or client
    agent_type = _chosen(flags, "--agent-type")
    user = _chosen(flags, "--user") or _login_name()
    projects = [each.strip() for each in _chosen(flags, "--project").split(",")]
    names = [(agent, 100), (agent_type or "-", 100), *((each, 128) for each in projects if projects != [""])]
    if not all(_is_name(*each) for each in names) or not (len(user) <= 128 and user.isprintable()):  # noqa: PLR2004
        raise _UnableError
    return {
        "agent_id": agent,
        "agent_type": agent_type or None,
        "user": user,
        "projects": None if projects == [""] else projects,
    }


def _is_name(text: str, longest: int) -> bool:
    return (
        1 <= len(text) <= longest and text.isascii() and all(each.isalnum() or each in "_.-" for each in text)
    )


def _login_name() -> str:
    """Return the login name, as `getpass` does."""
    found = next(filter(None, map(os.environ.get, ("LOGNAME", "USER", "LNAME", "USERNAME"))), "")
    if found:
        return found
    import pwd  # noqa: PLC0415 - most environments have a name

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise _UnableError from None


def _switches(client: str, given: Mapping[str, Any]) -> Switches:
    roots = given.get("workspace_roots") if client == "cursor" else None
    told = given.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
    folder = told if told and isinstance(told, str) else _working_folder()
    try:
        return _switches_of(folder)
    except BadSwitchError:
        raise _UnableError from None


def _switches_of(folder: str) -> Switches:
    switch = os.environ.get("GREENROOM_RUN_HOOKS") or None
    excluded = os.environ.get("GREENROOM_HOOKS_EXCLUDE", "")
    if switch not in {"on", "off", None}:
        raise _UnableError
    return Switches(folder, switch, [each.strip() for each in excluded.split(",")] if excluded else ())


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except OSError:
        raise _UnableError from None


def _may_have_failures(folder: str) -> bool:
    """Return whether a hook failed whose failure no session start has reported; in doubt, yes."""
    if os.path.lexists(f"{_own_folder('STATE')}/hooks"):
        return True
    try:
        with open(f"{folder}/spool/failures.jsonl", "rb") as file:  # noqa: PTH123 - as above
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            last = json.loads(file.read().split(b"\n")[-2])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, IndexError):
        return True
    return not isinstance(last, dict) or bool(last.get("sentence"))
