"""A WebSocket client that costs next to nothing, and the servers it speaks to."""

from __future__ import annotations

import base64
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from bench.harness import check
from bench.stdio_client import GRACE_SECONDS, Client

HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: mcp\r\n\r\n"
).encode()
SHORT, TWO_BYTES = 126, 1 << 16


class Server:
    """A server process and its port."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it and wait until it listens."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GREENROOM_")}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        found = None
        while found is None:
            line = self.process.stdout.readline().decode()
            check(line, "the server ended before it listened")
            found = re.search(r"listening on ws://127\.0\.0\.1:(\d+)/", line)
        self.port = int(found[1])

    def resident_kb(self) -> int:
        """Return its anonymous memory."""
        with open(f"/proc/{self.process.pid}/status") as status:  # noqa: PTH123  (a name is enough)
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


class SocketClient(Client):
    """One connection, blocking."""

    def __init__(self, port: int) -> None:  # no process of its own
        """Connect and shake hands."""
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(HANDSHAKE)
        self._file = self._socket.makefile("rb", 1 << 16)
        self._last_id = 0
        while line := self._file.readline().strip():
            check(not line.startswith(b"HTTP") or b" 101" in line, f"refused: {line!r}")

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self._write({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def receive(self) -> bytes:
        """Return the next message."""
        while True:
            first, size = self._file.read(2)
            if size == SHORT:
                size = int.from_bytes(self._file.read(2))
            elif size > SHORT:
                size = int.from_bytes(self._file.read(8))
            payload: bytes = self._file.read(size)
            if first == 0x81:
                return payload
            check(first == 0x89, f"neither text nor a ping: {first:x}")
            self._send(0x8A, payload)

    def echoes(self, text: str, in_flight: int, seconds: float) -> float:
        """Return the echoes a second of a server that does nothing else."""
        message = msgspec.json.encode(text)
        count = 0
        began = time.perf_counter()
        for _ in range(in_flight):
            self._send(0x81, message)
        while (elapsed := time.perf_counter() - began) < seconds:
            check(self.receive() == message, "the echo is another message")
            self._send(0x81, message)
            count += 1
        for _ in range(in_flight):
            self.receive()
        return count / elapsed

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        self._send(0x81, msgspec.json.encode(message))

    def _send(self, first: int, payload: bytes) -> None:
        size = len(payload)
        if size < SHORT:
            head = bytes([first, 0x80 | size])
        elif size < TWO_BYTES:
            head = bytes([first, 0xFE]) + size.to_bytes(2)
        else:
            head = bytes([first, 0xFF]) + size.to_bytes(8)
        self._socket.sendall(head + bytes(4) + payload)  # masked with zeros


@contextmanager
def listening(command: Sequence[str]) -> Iterator[Server]:
    """Run a server; end it afterwards."""
    server = Server(command)
    try:
        yield server
        server.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(GRACE_SECONDS)
    finally:
        server.process.kill()
        server.process.wait()
        assert server.process.stdout is not None
        server.process.stdout.close()
