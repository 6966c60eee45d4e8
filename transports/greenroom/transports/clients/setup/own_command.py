"""A client's own commands, which put a server into its settings and take it out while it may be running."""

from __future__ import annotations

import json
from typing import Any, Final

import trio

from greenroom.actors.core.auth.key_format import has_key
from greenroom.transports.clients.setup.change import SetupError, configured
from greenroom.transports.clients.setup.files import read
from greenroom.transports.clients.table import Client
from greenroom.transports.setup.run import run

_PATIENCE: Final = 20.0  # seconds; Claude Code takes a fifth of one
_WITHOUT_KEYS: Final = frozenset({"type", "command", "args"})


async def put_by_client(client: Client, program: str, entry: dict[str, Any]) -> str:
    """Have a client put an entry into its file, instead of another one there; return the text then.

    Raises:
        SetupError: The entry does not stand there afterwards.
    """
    assert client.own is not None
    if configured(client, read(client.path())) is not None:
        await _run(program, client.own.remove)
    said = await _run(program, (*client.own.add, json.dumps(entry, ensure_ascii=False)))
    return _checked(client, entry, said)


async def taken_by_client(client: Client, program: str, earlier: Any) -> None:
    """Have a client take the entry out of its file, and put back what stood there before, if anything did.

    Raises:
        SetupError: It does not stand there as before, or may hold keys, which no argument may have.
    """
    assert client.own is not None
    if earlier is not None and not _may_be_argument(earlier):
        raise SetupError(
            "what stood there before may hold keys, and every user sees the arguments of programs"
        )
    said = await _run(program, client.own.remove)
    if earlier is not None:
        said = await _run(program, (*client.own.add, json.dumps(earlier, ensure_ascii=False)))
    _checked(client, earlier, said)


def _checked(client: Client, wanted: Any, said: str) -> str:
    text = read(client.path())
    if configured(client, text) != wanted:
        raise SetupError(f"its own command did not do it ({said or 'it said nothing'})")
    return text or ""


def _may_be_argument(entry: Any) -> bool:
    """Return whether an entry may stand in arguments: it has no place for keys."""
    return isinstance(entry, dict) and entry.keys() <= _WITHOUT_KEYS and not has_key(json.dumps(entry))


async def _run(program: str, arguments: tuple[str, ...]) -> str:
    """Run a client's command; return the first line that it said."""
    try:
        done = await run([program, *arguments], _PATIENCE)
    except trio.TooSlowError:
        raise SetupError(f"{program} took more than {_PATIENCE:.0f} s") from None
    except OSError as error:
        raise SetupError(f"{program} cannot be run: {error.strerror}") from None
    lines = (done.stderr + b"\n" + done.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "")
