"""The owner's side, to which other processes on the folder attach.

A leaving owner sends `Goodbye` and answers the requests that it has. It ends the connections last, after the
store is closed and the lock is released. So attached processes find the lock free.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import trio

from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base.system import program_version
from greenroom.runtime.base.unix_socket import bind_socket, peer_is_ours
from greenroom.runtime.kernel.commit_queue import GroupCommit
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.mailbox import Envelope, Result
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import pass_over
from greenroom.runtime.lmdb.environment import FORMAT_VERSION, INDEXES
from greenroom.runtime.lmdb.keys import encode_json
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.attached_session import AttachedSession, PendingRequest
from greenroom.runtime.sharing.framed_connection import FramedConnection, PeerError
from greenroom.runtime.sharing.type_registry import TypeRegistry
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

SOCKET_NAME: Final = "relay.sock"
BEAT_SECONDS: Final = 1.0
GREETING_SECONDS: Final = 5.0
BACKLOG: Final = 128
_RETRY_SECONDS: Final = 0.1  # the pause while the process has no free descriptors
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class OwnerSide:
    """The server of attached processes, a runtime's `RelayService`."""

    runtime: Runtime
    kernel: Kernel
    commits: GroupCommit
    bus: Bus
    store: Store

    def __init__(self, types: TypeRegistry, began: Callable[[Runtime], None]) -> None:
        self.types = types
        self.attached: dict[bytes, AttachedSession] = {}
        self._completed: list[tuple[PendingRequest, Result]] = []
        self.is_leaving = False
        self._began = began
        self._listener: socket.socket | None = None
        self._connections: set[FramedConnection[frames.FromAttached]] = set()
        self._own: list[Envelope] = []

    @contextmanager
    def listen(self, folder: Path) -> Iterator[None]:
        """Bind a socket in the folder for other processes; the caller holds the lock.

        If this fails, the owner still serves its own requests, and other processes are refused.
        """
        try:
            place = bind_socket(folder, SOCKET_NAME, BACKLOG)
            self._listener = place.__enter__()
        except OSError as error:
            logger.warning("no other process can attach to this one: %s", error)
            yield
            return
        try:
            yield
        finally:
            place.__exit__(None, None, None)

    def begin(self, runtime: Runtime) -> None:
        """Start serving attached processes with this runtime."""
        self.runtime = runtime
        self.kernel, self.commits, self.bus, self.store = runtime.parts()
        self._began(runtime)

    def answer_own(self, relay: bytes, messages: list[Envelope]) -> None:
        """Keep the replies to messages that this process relayed before, until the messages end."""
        self._own = messages
        self.forget_answered(
            relay, [message.relay_key for message in messages if message.relay_key is not None]
        )

    def forget_answered(self, relay: bytes, wanted: Iterable[bytes]) -> None:
        """Delete the replies stored for a relay, except those in the wanted rows."""
        kept = set(wanted)
        for row, _ in self.store.scan(INDEXES, keys.RELAYED + relay, on_damage=pass_over):
            if row not in kept:
                self.commits.defer_delete(row)

    async def run(self) -> None:
        """Serve processes that attach, forever."""
        async with trio.open_nursery() as nursery:
            if self._listener is not None:
                nursery.start_soon(self._beat)
                while True:
                    connection = await self._accept(self._listener)
                    if peer_is_ours(connection):
                        nursery.start_soon(self.attend, connection)
                    else:
                        connection.close()

    async def attend(self, connection: socket.socket) -> None:
        """Serve one attached process until its connection ends."""
        wire = FramedConnection(connection, frames.decode_from_attached)
        self._connections.add(wire)
        attached = None
        try:
            with suppress(PeerError, trio.ClosedResourceError):
                attached = await self._greet(wire)
                if attached is not None:
                    try:
                        await attached.serve()
                    except* (PeerError, trio.ClosedResourceError):
                        pass
        finally:
            if attached is not None and self.attached.get(attached.relay) is attached:
                del self.attached[attached.relay]
            if not self.is_leaving:
                if attached is not None:
                    attached.end()
                wire.close()
                self._connections.discard(wire)

    def leave(self) -> None:
        """Accept nothing new, and send `Goodbye` to attached processes."""
        self.is_leaving = True
        for attached in self.attached.values():
            attached.connection.send(frames.Goodbye())
            attached.connection.flush()

    async def aclose(self) -> None:
        """Wait until every reply is sent."""
        for attached in list(self.attached.values()):
            await attached.connection.drain()

    def close(self) -> None:
        """End the connections."""
        for wire in self._connections:
            wire.close()
        self._connections.clear()

    async def _greet(self, wire: FramedConnection[frames.FromAttached]) -> AttachedSession | None:
        """Return the attached process, or None if it is refused."""
        with trio.move_on_after(GREETING_SECONDS):
            hello, *rest = await wire.receive()
            if not isinstance(hello, frames.Hello) or rest:
                raise PeerError("it did not introduce itself")
            if hello.protocol < frames.OLDEST or hello.oldest > frames.PROTOCOL:
                sentence = (
                    f"process {os.getpid()}, which owns the folder, is greenroom {program_version()} and "
                    f"speaks versions {frames.OLDEST} to {frames.PROTOCOL} of the relay's protocol; "
                    f"greenroom {hello.program} speaks {hello.oldest} to {hello.protocol}. End the older "
                    "program, or upgrade it"
                )
                wire.send(frames.Reject(sentence))
                await wire.drain()
                return None
            wire.end_greeting()
            earlier = self.attached.pop(hello.relay, None)
            if earlier is not None:
                earlier.end()
            attached = self.attached[hello.relay] = AttachedSession(self, wire, hello)
            self.forget_answered(
                hello.relay, (attached.prefix + number.to_bytes(8) for number in hello.unanswered)
            )
            protocol = min(frames.PROTOCOL, hello.protocol)
            wire.send(
                frames.Welcome(
                    protocol,
                    program_version(),
                    FORMAT_VERSION,
                    os.getpid(),
                    self._statistics(),
                    self.store.id,
                    self.store.secret_mark,
                    self.store.key_mark,
                    confirms_watches=True,
                )
            )
            wire.flush()
            return attached
        return None

    def complete(self, call: PendingRequest, result: Result) -> None:
        """Accept the result of an attached process's request; it is sent after the pass."""
        self._completed.append((call, result))
        self.kernel.callbacks.afterwards = self._send_results

    def _send_results(self) -> None:
        """Send the results of this pass, to each attached process in one frame."""
        completed, self._completed = self._completed, []
        sessions: dict[AttachedSession, None] = {}
        for call, result in completed:
            call.session.answer(call, result)
            sessions[call.session] = None
        for attached in sessions:
            attached.connection.flush()

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            if self.attached:
                beat = frames.Heartbeat(self._statistics())
                for attached in list(self.attached.values()):
                    attached.look_after()
                    attached.connection.send_soon(beat)
            for envelope in self._own:
                if envelope.caller is None and envelope.relay_key is not None:
                    self.commits.defer_delete(envelope.relay_key)
            self._own = [envelope for envelope in self._own if envelope.caller is not None]
            self.commits.attach_deferred()
            self.commits.flush()

    def _statistics(self) -> bytes:
        return encode_json(self.runtime.statistics())

    async def _accept(self, listener: socket.socket) -> socket.socket:
        while True:
            await trio.lowlevel.wait_readable(listener)
            try:
                return listener.accept()[0]
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS:
                    raise
                logger.warning("no other process can attach now: %s", error)
                await trio.sleep(_RETRY_SECONDS)
