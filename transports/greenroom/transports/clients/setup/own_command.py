"""A client's own commands, which edit its settings safely while it may be running."""

from __future__ import annotations

import json
from typing import Any, Final

import trio

from greenroom.actors.core.auth.key_format import has_key
from greenroom.transports.clients.setup.change import SetupError, find_entry
from greenroom.transports.clients.setup.files import read
from greenroom.transports.clients.setup.programs import run
from greenroom.transports.clients.table import Client

_PATIENCE: Final = 20.0  # seconds; Claude Code takes a fifth of one
_WITHOUT_KEYS: Final = frozenset({"type", "command", "args"})


async def put_by_client(client: Client, program: str, entry: dict[str, Any]) -> str:
    """Let a client set an entry in its file; return the new text."""
    assert client.own is not None
    if find_entry(client, read(client.path())) is not None:
        await _run(program, client.own.remove)
    output = await _run(program, (*client.own.add, json.dumps(entry, ensure_ascii=False)))
    return _checked(client, entry, output)


async def remove_by_client(client: Client, program: str, earlier: Any) -> None:
    """Let a client remove our entry, and restore the earlier one if there was any."""
    assert client.own is not None
    if earlier is not None and not _may_be_argument(earlier):
        raise SetupError(
            "what stood there before may hold keys, and every user sees the arguments of programs"
        )
    output = await _run(program, client.own.remove)
    if earlier is not None:
        output = await _run(program, (*client.own.add, json.dumps(earlier, ensure_ascii=False)))
    _checked(client, earlier, output)


def _checked(client: Client, wanted: Any, output: str) -> str:
    text = read(client.path())
    if find_entry(client, text) != wanted:
        raise SetupError(f"its own command did not do it ({output or 'it printed nothing'})")
    return text or ""


def _may_be_argument(entry: Any) -> bool:
    """Return whether an entry is safe in arguments: it has no place for keys."""
    return isinstance(entry, dict) and entry.keys() <= _WITHOUT_KEYS and not has_key(json.dumps(entry))


async def _run(program: str, arguments: tuple[str, ...]) -> str:
    """Run a client's command; return the first line of its output."""
    try:
        done = await run([program, *arguments], _PATIENCE)
    except trio.TooSlowError:
        raise SetupError(f"{program} took more than {_PATIENCE:.0f} s") from None
    except OSError as error:
        raise SetupError(f"{program} cannot be run: {error.strerror}") from None
    lines = (done.stderr + b"\n" + done.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "")
