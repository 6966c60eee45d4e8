"""Connections to servers that never wait, and one loop over many of them."""

from __future__ import annotations

import os
import resource
import select
import selectors
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.harness import check
from bench.servers import environment
from bench.wires import GIBBERISH, HttpWire, Kind, Lines, WebSocketWire, Wire

CHUNK = 64 * 1024  # what a pipe holds
CONNECT_SECONDS = 60.0


class Ends(NamedTuple):
    """The descriptors of a connection, which may be one and the same, and how it is hung up."""

    incoming: int
    outgoing: int
    hang_up: Callable[[], None]


class Channel:
    """One connection: messages out and in, without waiting.

    Attributes:
        ended: Whether it is over; what is posted from then on goes nowhere.
    """

    def __init__(self, wire: Wire, connect: Callable[[], Ends]) -> None:
        self._wire = wire
        self._connect = connect
        self._ends = connect()
        self._unsent = bytearray(wire.opening())
        self._waiting: deque[tuple[Kind, bytes]] = deque()
        self.ended = False

    @property
    def incoming(self) -> int:
        """The descriptor to read from."""
        return self._ends.incoming

    @property
    def outgoing(self) -> int:
        """The descriptor to write to."""
        return self._ends.outgoing

    @property
    def unsent(self) -> bool:
        """Whether the system has not taken everything yet."""
        return bool(self._unsent)

    def post(self, kind: Kind, body: bytes) -> None:
        """Send a message with the next `flush`, or when the wire is ready for it."""
        if self._wire.ready:
            self._unsent += self._wire.encode(kind, body)
        else:
            self._waiting.append((kind, body))

    def flush(self) -> None:
        """Write what the system takes."""
        if not self._unsent or self.ended:
            return
        try:
            written = os.write(self._ends.outgoing, self._unsent)
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self._unsent.clear()  # reading will say the same
            return
        del self._unsent[:written]

    def receive(self) -> list[bytes]:
        """Read what has come, as far as one system call brings it, and return the messages that are whole."""
        try:
            data = os.read(self._ends.incoming, CHUNK)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            return []
        try:
            messages = self._wire.decode(data)
        except GIBBERISH:
            self.ended = True
            return []
        self._unsent += self._wire.owed()
        self._go_on()
        return messages

    def renew(self) -> bool:
        """Connect again after the end, if the wire allows it; return whether it did."""
        if not self._wire.renew():
            return False
        self._ends.hang_up()
        self._ends = self._connect()
        self._unsent = bytearray(self._wire.opening())
        self.ended = False
        self._go_on()
        return True

    def wait(self, seconds: float) -> list[bytes]:
        """Return the next messages, after having written everything.

        Raises:
            WrongAnswerError: the connection ended, or nothing came in time.
        """
        deadline = time.monotonic() + seconds
        messages: list[bytes] = []
        while not messages:
            messages = self._some(deadline)
        return messages

    def settle(self, seconds: float) -> None:
        """Write everything, and wait until the wire is ready for more; see `wait`."""
        deadline = time.monotonic() + seconds
        self.flush()
        while self._unsent or not self._wire.ready:
            self._some(deadline)

    def close(self) -> None:
        """Hang up."""
        self._ends.hang_up()

    def _some(self, deadline: float) -> list[bytes]:
        """Write, wait for something to read or for room to write, and return what is read."""
        self.flush()
        poll = select.poll()
        poll.register(self._ends.incoming, select.POLLIN)
        if self._unsent:
            poll.register(self._ends.outgoing, select.POLLOUT | self._also_in())
        check(poll.poll(max(0, deadline - time.monotonic()) * 1e3), "no answer in time")
        messages = self.receive()
        check(not self.ended or self.renew(), "the server ended before it had answered")
        return messages

    def _also_in(self) -> int:
        return select.POLLIN if self._ends.incoming == self._ends.outgoing else 0

    def _go_on(self) -> None:
        while self._waiting and self._wire.ready:
            self._unsent += self._wire.encode(*self._waiting.popleft())
        self.flush()


class Exchange:
    """Waits for many channels at once."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        self._selector = selectors.DefaultSelector()
        self._posted: set[int] = set()
        self._full: set[int] = set()
        for number, channel in enumerate(channels):
            self._selector.register(channel.incoming, selectors.EVENT_READ, number)

    def post(self, number: int, kind: Kind, body: bytes) -> None:
        """Send a message on a channel with the next `flush`."""
        self._channels[number].post(kind, body)
        self._posted.add(number)

    def flush(self) -> None:
        """Write what was posted."""
        for number in self._posted:
            channel = self._channels[number]
            channel.flush()
            self._watch(number, channel)
        self._posted.clear()

    def turn(self, seconds: float | None = None) -> list[tuple[int, list[bytes]]]:
        """Wait until something comes, and return it by the channel's number.

        Args:
            seconds: How long to wait at most; to the microsecond, which the selectors cannot.
        """
        if seconds is not None:
            select.select([self._selector.fileno()], [], [], max(0.0, seconds))
        come = []
        for key, events in self._selector.select(0 if seconds is not None else None):
            number: int = key.data
            channel = self._channels[number]
            if events & selectors.EVENT_WRITE:
                channel.flush()
            if events & selectors.EVENT_READ:
                come.append((number, channel.receive()))
                if channel.ended:
                    self._over(number, channel)
            self._watch(number, channel)
        return come

    def close(self) -> None:
        """Give the selector back; the channels stay."""
        self._selector.close()

    def _over(self, number: int, channel: Channel) -> None:
        for descriptor in {channel.incoming, channel.outgoing} & self._selector.get_map().keys():
            self._selector.unregister(descriptor)
        self._full.discard(number)
        if channel.renew():
            self._selector.register(channel.incoming, selectors.EVENT_READ, number)

    def _watch(self, number: int, channel: Channel) -> None:
        """Wait for a channel to be writable for just as long as it has something to write."""
        full = channel.unsent and not channel.ended
        if full == (number in self._full):
            return
        shared = channel.incoming == channel.outgoing
        if full:
            self._full.add(number)
            if shared:
                both = selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.modify(channel.incoming, both, number)
            else:
                self._selector.register(channel.outgoing, selectors.EVENT_WRITE, number)
        else:
            self._full.discard(number)
            if shared:
                self._selector.modify(channel.incoming, selectors.EVENT_READ, number)
            else:
                self._selector.unregister(channel.outgoing)


@contextmanager
def exchanging(channels: Sequence[Channel]) -> Iterator[Exchange]:
    """Wait for these channels within the block."""
    exchange = Exchange(channels)
    try:
        yield exchange
    finally:
        exchange.close()


def allow_channels() -> None:
    """Allow this process as many descriptors as it may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def to_process(process: subprocess.Popen[bytes]) -> Channel:
    """Return the channel to a process through its pipes, which must be unbuffered; see `spawn`."""
    assert process.stdin is not None
    assert process.stdout is not None
    incoming, outgoing = process.stdout.fileno(), process.stdin.fileno()
    os.set_blocking(incoming, False)
    os.set_blocking(outgoing, False)
    return Channel(Lines(), lambda: Ends(incoming, outgoing, process.stdin.close))  # type: ignore[union-attr]  # asserted above


def spawn(command: Sequence[str], *, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a server on pipes; ``errors`` is the descriptor for what it says on standard error."""
    return subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment(),
    )


def to_websocket(url: str) -> Channel:
    """Connect to a ``ws://`` URL."""
    host, port, named, path = _parts(url, "ws")
    return Channel(WebSocketWire(named, path), lambda: _connected(host, port))


def to_http(url: str, *, modern: bool, version: str) -> Channel:
    """Connect to an ``http://`` URL."""
    host, port, named, path = _parts(url, "http")
    return Channel(HttpWire(named, path, modern=modern, version=version), lambda: _connected(host, port))


def to_port(wire: Wire, host: str, port: int) -> Channel:
    """Connect a wire to a port."""
    return Channel(wire, lambda: _connected(host, port))


def _parts(url: str, scheme: str) -> tuple[str, int, str, str]:
    parts = urlsplit(url)
    if parts.scheme != scheme or not parts.hostname:
        raise ValueError(f"{url!r} is no {scheme}:// URL")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.hostname, parts.port or 80, parts.netloc, path


def _connected(host: str, port: int) -> Ends:
    connection = socket.create_connection((host, port), CONNECT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return Ends(connection.fileno(), connection.fileno(), connection.close)
