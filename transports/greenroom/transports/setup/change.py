"""What is changed in a client's file, decided on texts: the entry put in, and what was ours taken back."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any, Final

import msgspec

from greenroom.runtime import GreenroomError
from greenroom.transports.setup import json_text, toml_text, yaml_text
from greenroom.transports.setup.clients import SERVER, Client, Format

_TEXTS: Final[dict[Format, ModuleType]] = {"json": json_text, "yaml": yaml_text, "toml": toml_text}


class SetupError(GreenroomError):
    """A client's file that is left as it is, and why."""


class Record(msgspec.Struct, frozen=True):
    """What was done to a client's file.

    Attributes:
        original: The text before; None where there was no file.
        written: The text that was written.
        entry: What stands under the server's name in that text.
    """

    original: str | None
    written: str
    entry: dict[str, Any]


def configured(client: Client, text: str | None) -> Any:
    """Return what stands under the server's name, or None; raise SetupError where the file cannot be read."""
    held = _parsed(client, text or "").get(client.key)
    return held.get(SERVER) if isinstance(held, dict) else None


def put_in(client: Client, text: str | None, entry: dict[str, Any], record: Record | None) -> Record:
    """Return what the file is to be with the entry, and what it is without."""
    without = text
    if record is not None and text is not None and configured(client, text) == record.entry:
        if record.entry == entry:
            return Record(record.original, text, entry) if text == record.written else record
        without = taken_out(client, text, record)
    before = _parsed(client, without or "")
    if not isinstance(before.get(client.key, {}), dict | None):
        raise SetupError(
            f"{client.path()} has something else than servers under {client.key}; it is left alone"
        )
    wanted = copy.deepcopy(before)
    wanted[client.key] = {**(before.get(client.key) or {}), SERVER: entry}
    if before == wanted:
        return Record(without, without or "", entry)
    written = _sound(client, wanted, "put", without or "", (client.key, SERVER), entry)
    return Record(without, written, entry)


def taken_out(client: Client, text: str, record: Record) -> str | None:
    """Return the file without what was ours; None where there was none before and nothing else is in it.

    Raises:
        SetupError: The entry is not the one that was written.
    """
    if text == record.written:
        return record.original
    now = _parsed(client, text)
    held = configured(client, text)
    if held is None:
        return text
    if held != record.entry:
        raise SetupError(
            f"{SERVER} in {client.path()} has been changed since it was set up; it is left "
            "as it is, remove it by hand"
        )
    original = _parsed(client, record.original or "")
    earlier = (original.get(client.key) or {}).get(SERVER)
    wanted = copy.deepcopy(now)
    if earlier is not None:
        wanted[client.key][SERVER] = earlier
        return _sound(client, wanted, "put", text, (client.key, SERVER), earlier)
    del wanted[client.key][SERVER]
    if wanted[client.key] or client.key in original:
        return _sound(client, wanted, "take", text, (client.key, SERVER))
    del wanted[client.key]
    return _sound(client, wanted, "take", text, (client.key,))


def _parsed(client: Client, text: str) -> dict[str, Any]:
    try:
        value = _TEXTS[client.format].parse(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(
            f"{client.path()} cannot be read as {client.format.upper()} ({error}); "
            "it is left alone, mend it first"
        ) from None
    if not isinstance(value, dict):
        raise SetupError(f"{client.path()} has no members but one value; it is left alone")
    return value


def _sound(client: Client, wanted: dict[str, Any], deed: str, *arguments: Any) -> str:
    """Return the edited text, when it says what is wanted and nothing else."""
    try:
        edited: str = getattr(_TEXTS[client.format], deed)(*arguments)
        if _TEXTS[client.format].parse(edited) == wanted:
            return edited
        reason = "the edit would change something else"
    except (ValueError, LookupError, AttributeError) as error:
        reason = str(error)
    raise SetupError(
        f"{client.path()} is written in a way that is not edited safely ({reason}); edit it by hand"
    )
