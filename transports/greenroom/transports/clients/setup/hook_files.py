"""Edits of a client's file of hooks as text; hooks of others are kept.

A hook is ours if its whole entry is the same. If a hook has only our command, a user edited it or it comes
from elsewhere; it is left alone, and a sentence reports it.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

from greenroom.transports.clients.hooks.guard import LIMIT
from greenroom.transports.clients.setup import json_text, toml_text
from greenroom.transports.clients.setup.change import Record, SetupError, check_edit, parse_members
from greenroom.transports.clients.setup.plugin import PLUGIN
from greenroom.transports.clients.table import HOOK_CLIENTS, SECONDS, Client

_HOOKS: Final = "hooks"
_Path = tuple[str | int, ...]


def hooks_path(name: str) -> Path:
    """Return the path of a client's file of hooks, which may not exist."""
    client = HOOK_CLIENTS[name]
    return Client(name, client.file, _HOOKS, variable=client.variable).path()


def hook_entries(name: str, command: Sequence[str], options: Sequence[str] = ()) -> dict[str, Any]:
    """Return our hook for each event of a client."""
    client = HOOK_CLIENTS[name]
    entries: dict[str, Any] = {}
    for hook, event in client.events.items():
        sooner = ["--limit", str(SECONDS[hook] - 1)] if SECONDS[hook] <= LIMIT else []
        typed = shlex.join([*command, "hook", hook, "--client", name, "--agent", name, *sooner, *options])
        matcher = {"matcher": event.matcher} if event.matcher else {}
        limit = SECONDS[hook] * client.unit
        if client.grouped:
            command_hook = {"type": "command", "command": typed, "timeout": limit}
            entries[event.name] = {**matcher, _HOOKS: [command_hook]}
        else:
            entries[event.name] = {"command": typed, **matcher, "timeout": limit}
    return entries


def stray_events(name: str, text: str | None, entries: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the events without our hook, and which of these have another command of ours."""
    held = _parsed(name, text or "")
    missing = [event for event, entry in entries.items() if _place(held, event, entry) is None]
    return missing, [event for event in missing if _has_command_of_ours(name, held, event)]


def are_off(name: str, text: str | None) -> bool:
    """Whether the client's own switch disables all hooks."""
    off = HOOK_CLIENTS[name].off
    held: Any = _parsed(name, text or "")
    for member in off[0].split(".") if off else ():
        held = held.get(member) if isinstance(held, dict) else None
    return off is not None and held is off[1]


def untrusted_events(name: str, text: str | None, entries: Mapping[str, Any], noted: str | None) -> list[str]:
    """Return the events with a hook that does not run until the user trusts it."""
    held = _parsed(name, text or "")
    notes: Any = toml_text.parse(noted or "")
    for member in (_HOOKS, "state"):
        notes = notes.get(member) if isinstance(notes, dict) else None
    path = hooks_path(name)
    found = []
    for event, entry in entries.items():
        place = _place(held, event, entry)
        if place is None:
            continue
        key = (
            f"{re.sub('(?<!^)(?=[A-Z])', '_', event).lower()}:{place[0]}:{place[2] if len(place) > 1 else 0}"
        )
        known = [(notes or {}).get(f"{each}:{key}") for each in (path, path.resolve())]
        if not any(isinstance(each, dict) and each.get("trusted_hash") for each in known):
            found.append(event)
    return found


def has_plugin(name: str, text: str | None) -> bool:
    """Whether the client has the hooks from the plugin."""
    plugins = _parsed(name, text or "").get("enabledPlugins")
    return isinstance(plugins, dict) and bool(plugins.get(PLUGIN))


def put_in(name: str, text: str | None, entries: dict[str, Any], record: Record | None) -> Record:
    """Return a record of the file's text with our hooks, and without them."""
    without = text
    if record is not None and text is not None:
        if record.entry == entries and not stray_events(name, text, entries)[0]:
            return Record(record.original, text, entries) if text == record.written else record
        without = take_out(name, text, record)
    elif not stray_events(name, text, entries)[0]:
        return Record(text, text or "", entries)
    if has_plugin(name, without):
        raise SetupError(f"{name} has the plugin {PLUGIN}, and with it the hooks")
    start = HOOK_CLIENTS[name].start
    blank = not (without or "").strip()
    edited = f"{json.dumps(start, indent=2)}\n" if blank and start else without or ""
    wanted = copy.deepcopy(_parsed(name, edited))
    for event, entry in entries.items():
        if _has_command_of_ours(name, wanted, event):
            raise SetupError(
                f"{hooks_path(name)} has a hook of Greenroom under {event} that this command did not "
                "write; remove it by hand first"
            )
        wanted.setdefault(_HOOKS, {}).setdefault(event, []).append(entry)

    def edit() -> str:
        return reduce(
            lambda text, event: json_text.add(text, (_HOOKS, event), entries[event]),
            reversed(entries),
            edited,
        )

    return Record(without, check_edit(hooks_path(name), "json", wanted, edit), entries)


def take_out(name: str, text: str, record: Record) -> str | None:
    """Return the file without our hooks; None if we created it and it is unchanged."""
    if text == record.written:
        return record.original
    wanted = copy.deepcopy(_parsed(name, text))
    original = _parsed(name, record.original or "")
    paths: list[_Path] = []
    for event, entry in record.entry.items():
        while (place := _place(wanted, event, entry)) is not None:
            paths.append(_delete(wanted, (_HOOKS, event, *place)))
        if _has_command_of_ours(name, wanted, event):
            raise SetupError(
                f"the hook of Greenroom under {event} in {hooks_path(name)} has been changed since it was "
                "set up; it is left as it is, remove it by hand"
            )
        if wanted.get(_HOOKS, {}).get(event) == [] and event not in original.get(_HOOKS, {}):
            paths.append(_delete(wanted, (_HOOKS, event)))
    if wanted.get(_HOOKS) == {} and _HOOKS not in original:
        paths.append(_delete(wanted, (_HOOKS,)))
    return check_edit(hooks_path(name), "json", wanted, lambda: reduce(json_text.take, paths, text))


def render_masked(name: str, text: str | None, record: Record | None) -> str:
    """Render the file for display; all values except ours are masked."""
    held = _parsed(name, text or "")
    places = {event: _place(held, event, entry) for event, entry in (record.entry if record else {}).items()}
    found = [(_HOOKS, event, *place) for event, place in places.items() if place is not None]
    return json_text.masked(text or "", *found)


def _delete(wanted: Any, path: _Path) -> _Path:
    """Delete the value at a path; return the path."""
    for step in path[:-1]:
        wanted = wanted[step]
    del wanted[path[-1]]
    return path


def _place(held: dict[str, Any], event: str, entry: dict[str, Any]) -> _Path | None:
    """Find a hook in an event's list: as an item, or in another group."""
    for n, item in enumerate(_items(held, event)):
        if item == entry:
            return (n,)
        within = item.get(_HOOKS) if isinstance(item, dict) else None
        if isinstance(within, list) and _HOOKS in entry and entry[_HOOKS][0] in within:
            return (n,) if len(within) == 1 else (n, _HOOKS, within.index(entry[_HOOKS][0]))
    return None


def _has_command_of_ours(name: str, held: dict[str, Any], event: str) -> bool:
    ours = re.compile(rf"\bhook \S+ --client {re.escape(name)}(?!\S)")
    return any(ours.search(command) for command in _commands(_items(held, event)))


def _items(held: dict[str, Any], event: str) -> list[Any]:
    items = held.get(_HOOKS, {}).get(event)
    return items if isinstance(items, list) else []


def _commands(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            if isinstance(item.get("command"), str):
                yield item["command"]
            if isinstance(item.get(_HOOKS), list):
                yield from _commands(item[_HOOKS])


def _parsed(name: str, text: str) -> dict[str, Any]:
    path = hooks_path(name)
    value = parse_members(path, "json", text)
    hooks = value.get(_HOOKS, {})
    if not isinstance(hooks, dict):
        raise SetupError(f"{path} has no object of hooks; it is left alone")
    for event in HOOK_CLIENTS[name].events.values():
        if not isinstance(hooks.get(event.name, []), list):
            raise SetupError(f"{path} has something else than a list under {event.name}; it is left alone")
    return value
