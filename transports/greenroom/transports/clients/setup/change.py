"""What is changed in a client's file, decided on texts: the entry put in, and what was ours taken back."""

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


class SetupError(GreenroomError):
    """A client's file that is left as it is, and why."""


class Record(msgspec.Struct, frozen=True):
    """What was done to a client's file.

    Attributes:
        original: The text before; None where there was no file.
        written: The text that was written.
        entry: What stands under the server's name in that text.
        by_client: Whether the client wrote that text, with more in it that is its own.
    """

    original: str | None
    written: str
    entry: dict[str, Any]
    by_client: bool = False


def configured(client: Client, text: str | None) -> Any:
    """Return what stands under the server's name, or None; raise SetupError where the file cannot be read."""
    held = _parsed(client, text or "").get(client.key)
    return held.get(SERVER) if isinstance(held, dict) else None


def put_in(
    client: Client, text: str | None, entry: dict[str, Any], record: Record | None
) -> tuple[str | None, Record]:
    """Return what the file is to be with the entry, and the record of that."""
    without = text
    if record is not None and text is not None and configured(client, text) == record.entry:
        if record.entry == entry:
            return text, record
        without = taken_out(client, text, record)
    before = _parsed(client, without or "")
    if not isinstance(before.get(client.key), dict | None):
        raise SetupError(
            f"{client.path()} has something else than servers under {client.key}; it is left alone"
        )
    wanted = copy.deepcopy(before)
    wanted[client.key] = {**(before.get(client.key) or {}), SERVER: entry}
    if before == wanted:
        return without, Record(without, without or "", entry)
    edit = partial(_TEXTS[client.format].put, without or "", (client.key, SERVER), entry)
    written = sound(client.path(), client.format, wanted, edit)
    return written, Record(without, written, entry)


def taken_out(client: Client, text: str, record: Record) -> str | None:
    """Return the file without what was ours; None where there was none before and nothing else is in it.

    Raises:
        SetupError: The entry is not the one that was written.
    """
    if text == record.written and not record.by_client:
        return record.original
    now = _parsed(client, text)
    if not is_ours(client, text, record):
        return text
    earlier = entry_before(client, record)
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
    return sound(client.path(), client.format, wanted, edit)


def is_ours(client: Client, text: str | None, record: Record) -> bool:
    """Return whether the entry that was written still stands there; False where none does.

    Raises:
        SetupError: It is another one.
    """
    held = configured(client, text)
    if held is not None and held != record.entry:
        raise SetupError(
            f"{SERVER} in {client.path()} has been changed since it was set up; it is left "
            "as it is, remove it by hand"
        )
    return held is not None


def entry_before(client: Client, record: Record) -> Any:
    """Return what stood under the server's name before, or None."""
    return configured(client, record.original)


def shown(client: Client, text: str | None, *, ours: bool) -> str:
    """Return a text of the file as it may be shown: without the values of others, which may be keys.

    Args:
        client: Whose file it is.
        text: What is in it.
        ours: Whether the entry under the server's name is shown.
    """
    entry = (client.key, SERVER) if ours and configured(client, text) is not None else None
    masked: str = _TEXTS[client.format].masked(text or "", entry)
    return masked


def parsed(path: Path, text_format: Format, text: str) -> dict[str, Any]:
    """Return the members of a file.

    Raises:
        SetupError: Its text cannot be read, or has none.
    """
    try:
        value = _TEXTS[text_format].parse(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(
            f"{path} cannot be read as {text_format.upper()} ({error}); it is left alone, mend it first"
        ) from None
    if not isinstance(value, dict):
        raise SetupError(f"{path} has no members but one value; it is left alone")
    return value


def sound(path: Path, text_format: Format, wanted: dict[str, Any], edit: Callable[[], str]) -> str:
    """Return an edited text, when it says what is wanted and nothing else.

    Raises:
        SetupError: It does not, or cannot be edited.
    """
    try:
        edited = edit()
        if _TEXTS[text_format].parse(edited) == wanted:
            return edited
        reason = "the edit would change something else"
    except (ValueError, LookupError, AttributeError) as error:
        reason = str(error)
    raise SetupError(f"{path} is written in a way that is not edited safely ({reason}); edit it by hand")


def _parsed(client: Client, text: str) -> dict[str, Any]:
    return parsed(client.path(), client.format, text)
