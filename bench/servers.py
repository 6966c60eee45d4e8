"""The processes of servers that are measured, and what the system knows of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no hints

from bench.harness import check

GRACE_SECONDS = 120.0
ECHO = (sys.executable, "-m", "bench.echo_server")
BARE = (sys.executable, "-m", "bench.bare_server")
ASGI = (sys.executable, "-m", "bench.asgi_servers")
ECHO_WEBSOCKET = (sys.executable, "-m", "bench.echo_websocket")

_ADDRESS = re.compile(rb"listening on ((?:ws|http)://\S+)")


class Memory(msgspec.Struct, frozen=True):
    """A process's resident memory in MB: its own, mapped files', and all."""

    anonymous: float
    file: float
    all: float

    def row(self) -> list[float]:
        """Return the three."""
        return [self.anonymous, self.file, self.all]


class Listening(NamedTuple):
    """A server process that listens."""

    url: str
    pid: int


def greenroom(data: Path, *flags: str) -> tuple[str, ...]:
    """Return the command that serves a folder, over stdio unless the flags say otherwise."""
    return (sys.executable, "-m", "greenroom.transports.cli", "serve", "--data", str(data), *flags)


def greenroom_websocket(data: Path) -> tuple[str, ...]:
    """Return the command that serves a folder over WebSocket at any free port."""
    return greenroom(data, "--ws", "127.0.0.1:0")


def environment() -> dict[str, str]:
    """Return the environment without settings for Greenroom, but for where secrets and models lie.

    Programs keep their bytecode, as they do where they are installed; otherwise each start compiles them.
    """
    unwanted = "GREENROOM_", "PYTHONDONTWRITEBYTECODE"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    place = Path(tempfile.gettempdir())
    return kept | {
        "GREENROOM_SECRETS": str(place / "greenroom-bench-secrets"),
        "GREENROOM_MODELS": str(
            place / "greenroom-bench-models"
        ),  # where none is, unless a flag says otherwise
    }


@contextmanager
def listening(command: Sequence[str]) -> Iterator[Listening]:
    """Start a server, wait until it says where it listens, and end it afterwards."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    assert process.stderr is not None
    try:
        said = b""
        while (found := _ADDRESS.search(said)) is None:
            line = process.stderr.readline()
            check(line, f"the server says no address but {said!r}")
            said += line
        yield Listening(found[1].decode(), process.pid)
        process.terminate()
        process.wait(GRACE_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def memory_of(pid: int | str) -> Memory:
    """Return what a process holds now; without /proc all that is resident, which is not told apart.

    Raises:
        OSError: it has ended.
    """
    if sys.platform != "linux":
        resident = _resident(None if pid == "self" else int(pid))
        return Memory(resident, 0, resident)
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    if "RssAnon" not in fields:
        raise ProcessLookupError(f"process {pid} has ended, but nobody has waited for it")
    anonymous, file, all_ = (int(fields[name].split()[0]) / 1e3 for name in ("RssAnon", "RssFile", "VmRSS"))
    return Memory(anonymous, file, all_)


def _resident(pid: int | None) -> float:
    try:
        return psutil.Process(pid).memory_info().rss / 1e6  # type: ignore[no-any-return]  # has no types
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(str(error)) from None


def processor_seconds(pid: int) -> float:
    """Return how long a process has computed, its threads and the system for it included."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
