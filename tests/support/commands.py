"""The program `greenroom`, forked: one command at a time, or a server at pipes."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harness import clean_environment
from support.forking import forked_program

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "tester", "version": "1"},
}


class Server:
    """A `greenroom serve` with pipes, spoken to in lines."""

    def __init__(self, home: Path, *arguments: str, errors: Path | None = None, **more: str) -> None:
        self.errors = errors or home / f"stderr-{len(list(home.glob('stderr-*')))}"
        with self.errors.open("wb") as opened:
            self.process = subprocess.Popen(
                [*forked_program(), "serve", "--data", str(home / "store"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=opened,
                env=clean_environment(home, **more),
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input: IO[bytes] = self.process.stdin
        self.output: IO[bytes] = self.process.stdout
        self.number = 0

    def send(self, method: str, params: dict[str, Any]) -> int:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.input.write(json.dumps(message).encode() + b"\n")
        self.input.flush()
        return self.number

    def send_call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def receive(self) -> dict[str, Any]:
        line = self.output.readline()
        assert line, self.errors.read_text()
        message: dict[str, Any] = json.loads(line)
        return message

    def initialize(self) -> None:
        self.send("initialize", INITIALIZE)
        assert "result" in self.receive()
        self.input.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        self.input.flush()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.send_call(tool, **arguments)
        answer = self.receive()
        assert "structuredContent" in answer.get("result", {}), (answer, self.errors.read_text())
        content: dict[str, Any] = answer["result"]["structuredContent"]
        return content

    def end(self) -> int:
        self.input.close()
        return self.process.wait()


@contextlib.contextmanager
def serving(home: Path, *arguments: str, errors: Path | None = None, **more: str) -> Iterator[Server]:
    server = Server(home, *arguments, errors=errors, **more)
    try:
        server.initialize()
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        for stream in (server.input, server.output):
            with contextlib.suppress(OSError):
                stream.close()


def run(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=clean_environment(home, **more),
        check=False,
    )


def run_on_store(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run(home, *arguments, "--data", str(home / "store"), **more)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a failed command said; nothing else, no traceback."""
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
