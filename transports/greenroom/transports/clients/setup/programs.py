"""Programs of clients and the configured server, run with a time limit."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from greenroom.actors.core.auth.key_format import has_key
from greenroom.transports.clients.setup.change import SetupError, find_entry
from greenroom.transports.clients.setup.files import read
from greenroom.transports.clients.table import Client


async def run(command: Sequence[str], patience: float) -> subprocess.CompletedProcess[bytes]:
    """Run a program without input and return its output."""
    with trio.fail_after(patience):
        return await trio.run_process(
            command,
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            deliver_cancel=_kill,
        )


async def _kill(process: trio.Process) -> None:
    process.kill()


_VERSION_SECONDS: Final = 10.0  # the slowest known client takes two
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


async def version_of(client: Client) -> str | None:
    """Return the version that a client's program or its VS Code extension reports."""
    program = client.program()
    if program is not None:
        try:
            done = await run([program, "--version"], _VERSION_SECONDS)
        except (OSError, trio.TooSlowError):
            return None
        found = _VERSION.search(done.stdout.decode(errors="replace"))
        return None if found is None else found[0]
    versions = [
        found[0]
        for folder in client.extension_folders()
        if (found := _VERSION.search(folder.name)) is not None
    ]
    return max(versions, key=lambda each: [int(part) for part in re.findall(r"\d+", each)], default=None)


_TRIAL_SECONDS: Final = 60.0  # the first start creates a store


class Found(NamedTuple):
    """The version and the number of tools of a server."""

    version: str
    tools: int


async def try_start(command: str, arguments: list[str]) -> Found:
    """Start a server as a desktop program would, with a minimal environment; list its tools."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - a slow import for one command

    environment = {"HOME": str(Path.home()), "PATH": "/usr/bin:/bin"}
    server = StdioServerParameters(command=command, args=arguments, env=environment)
    try:
        with trio.fail_after(_TRIAL_SECONDS):
            async with Client(server) as client:
                listed = await client.list_tools()
                info = client.server_info
                return Found(info.version if info else "of no version", len(listed.tools))
    except Exception as error:  # noqa: BLE001 - any failure of a foreign program becomes one sentence
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        why = f"{command} does not answer as a server ({first})"
        raise SetupError(f"{why}; see why on a terminal: {shlex.join([command, *arguments])}") from None


_COMMAND_SECONDS: Final = 20.0  # seconds; Claude Code takes a fifth of one
_WITHOUT_KEYS: Final = frozenset({"type", "command", "args"})


async def put_by_client(client: Client, program: str, entry: dict[str, Any]) -> str:
    """Let a client set an entry in its file; return the new text."""
    assert client.own is not None
    if find_entry(client, read(client.path())) is not None:
        await _run(program, client.own.remove)
    output = await _run(program, (*client.own.add, json.dumps(entry, ensure_ascii=False)))
    return _checked(client, entry, output)


async def remove_by_client(client: Client, program: str, earlier: Any) -> None:
    """Let a client remove our entry, and restore the earlier entry if there was one."""
    assert client.own is not None
    # An entry is safe in arguments if it has no place for keys.
    is_plain = isinstance(earlier, dict) and earlier.keys() <= _WITHOUT_KEYS
    if earlier is not None and not (is_plain and not has_key(json.dumps(earlier))):
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


async def _run(program: str, arguments: tuple[str, ...]) -> str:
    """Run a client's command; return the first line of its output."""
    try:
        done = await run([program, *arguments], _COMMAND_SECONDS)
    except trio.TooSlowError:
        raise SetupError(f"{program} took more than {_COMMAND_SECONDS:.0f} s") from None
    except OSError as error:
        raise SetupError(f"{program} cannot be run: {error.strerror}") from None
    lines = (done.stderr + b"\n" + done.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "")
