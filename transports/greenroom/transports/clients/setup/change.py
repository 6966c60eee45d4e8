"""Edits of a client's file as text: add our entry, and remove it again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from greenroom.runtime import GreenroomError
from greenroom.transports.clients.setup import json_text, toml_text, yaml_text
from greenroom.transports.clients.table import SERVER, Client, Format

_TEXTS: Final[dict[Format, ModuleType]] = {"json": json_text, "yaml": yaml_text, "toml": toml_text}

LEFT_ALONE: Final = "it is left alone"
"""What happens to a file that cannot be edited."""


class SetupError(GreenroomError):
    """A client's file was left unchanged; the sentence says why."""


class Record(msgspec.Struct, frozen=True):
    """The record of an edit of a client's file.

    Attributes:
        original: The text before the edit; None if there was no file.
        written: The text that was written.
        entry: The server's entry in ``written``.
        by_client: Whether the client wrote the text, with other changes of its own.
    """

    original: str | None
    written: str
    entry: dict[str, Any]
    by_client: bool = False


def find_entry(client: Client, text: str | None) -> Any:
    """Return the server's entry or None; raise SetupError if the file cannot be parsed."""
    held = _parsed(client, text or "").get(client.key)
    return held.get(SERVER) if isinstance(held, dict) else None


def put_in(
    client: Client, text: str | None, entry: dict[str, Any], record: Record | None
) -> tuple[str | None, Record]:
    """Return the text of the file with the entry, and the record of the edit."""
    without = text
    held = find_entry(client, text)
    if record is not None and text is not None and held is not None:
        if held == entry == record.entry:
            return text, record
        # Also of an entry that was changed since: it is replaced, and what was there before it is kept.
        without = take_out(client, text, msgspec.structs.replace(record, entry=held))
    before = _parsed(client, without or "")
    if not isinstance(before.get(client.key), dict | None):
        raise SetupError(f"{client.path()} has something else than servers under {client.key}; {LEFT_ALONE}")
    wanted = copy.deepcopy(before)
    wanted[client.key] = {**(before.get(client.key) or {}), SERVER: entry}
    if before == wanted:
        return without, Record(without, without or "", entry)
    edit = partial(_TEXTS[client.format].put, without or "", (client.key, SERVER), entry)
    written = check_edit(client.path(), client.format, wanted, edit)
    return written, Record(without, written, entry)


def take_out(client: Client, text: str, record: Record) -> str | None:
    """Return the file without our entry; None if it would be empty and is ours."""
    if text == record.written and not record.by_client:
        return record.original
    now = _parsed(client, text)
    if not is_ours(client, text, record):
        return text
    earlier = find_entry(client, record.original)
    wanted, texts = copy.deepcopy(now), _TEXTS[client.format]
    edit = partial(texts.take, text, (client.key, SERVER))
    if earlier is not None:
        wanted[client.key][SERVER] = earlier
        edit = partial(texts.put, text, (client.key, SERVER), earlier)
    else:
        del wanted[client.key][SERVER]
        if not wanted[client.key] and client.key not in _parsed(client, record.original or ""):
            del wanted[client.key]
            edit = partial(texts.take, text, (client.key,))
    return check_edit(client.path(), client.format, wanted, edit)


def is_ours(client: Client, text: str | None, record: Record) -> bool:
    """Return whether the file still has our entry, unchanged; False if there is none."""
    held = find_entry(client, text)
    if held is not None and held != record.entry:
        raise SetupError(
            f"{SERVER} in {client.path()} has been changed since it was set up; it is left "
            "as it is, remove it by hand"
        )
    return held is not None


def render_masked(client: Client, text: str | None, *, ours: bool) -> str:
    """Render a file for display; values of others are masked, as they may be keys."""
    entry = (client.key, SERVER) if ours and find_entry(client, text) is not None else None
    masked: str = _TEXTS[client.format].masked(text or "", entry)
    return masked


def parse_members(path: Path, text_format: Format, text: str) -> dict[str, Any]:
    """Parse the members of a file."""
    try:
        value = _TEXTS[text_format].parse(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} cannot be read as {text_format.upper()} ({error}); {LEFT_ALONE}") from None
    if not isinstance(value, dict):
        raise SetupError(f"{path} has no members but one value; {LEFT_ALONE}")
    return value


def check_edit(path: Path, text_format: Format, wanted: dict[str, Any], edit: Callable[[], str]) -> str:
    """Return an edited text, checked to have the wanted content and nothing else."""
    try:
        edited = edit()
        if _TEXTS[text_format].parse(edited) == wanted:
            return edited
        reason = "the edit would change something else"
    except (ValueError, LookupError, AttributeError) as error:
        reason = str(error)
    raise SetupError(f"{path} is written in a way that is not edited safely ({reason}); edit it by hand")


def _parsed(client: Client, text: str) -> dict[str, Any]:
    return parse_members(client.path(), client.format, text)
