"""The owner's side: other processes on the folder attach here.

A leaving owner says so first, answers what it has, and ends the connections last, when the store is closed
and the lock free, so that those who were attached find the place ready.
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
from greenroom.runtime.base.unix_socket import listening, peer_is_ours
from greenroom.runtime.base.version import program_version
from greenroom.runtime.kernel.group_commit import GroupCommit
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.mailbox import Envelope, Result
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.environment import FORMAT_VERSION
from greenroom.runtime.lmdb.keys import encode_json
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.attached_session import FollowerSession, PendingRequest
from greenroom.runtime.sharing.framed_connection import FramedConnection, PeerError
from greenroom.runtime.sharing.type_registry import TypeRegistry
from greenroom.runtime.store.store import INDEXES, Store

logger = logging.getLogger(__name__)

SOCKET_NAME: Final = "relay.sock"
BEAT_SECONDS: Final = 1.0
GREETING_SECONDS: Final = 5.0
BACKLOG: Final = 128
_RETRY_SECONDS: Final = 0.1  # when the process is out of descriptors
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Leader:
    """Takes the connections of attached processes. It goes with a runtime as its `LeaderService`.

    Args:
        types: The types that can be spoken of.
        began: Called when the runtime is there and nobody has asked it anything yet.
    """

    runtime: Runtime
    kernel: Kernel
    commits: GroupCommit
    bus: Bus
    store: Store

    def __init__(self, types: TypeRegistry, began: Callable[[Runtime], None]) -> None:
        self.types = types
        self.followers: dict[bytes, FollowerSession] = {}
        self.settled: list[tuple[PendingRequest, Result]] = []
        self.is_leaving = False
        self._began = began
        self._listener: socket.socket | None = None
        self._connections: set[FramedConnection[frames.FromFollower]] = set()
        self._own: list[Envelope] = []

    @contextmanager
    def listening(self, folder: Path) -> Iterator[None]:
        """Have a place in the folder where others can connect; the caller holds the lock.

        Without a place for a socket the owner does its main job all the same, and others are refused.
        """
        try:
            place = listening(folder, SOCKET_NAME, BACKLOG)
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
        """Start serving followers with this runtime."""
        self.runtime = runtime
        self.kernel, self.commits, self.bus, self.store = runtime.parts()
        self.kernel.callbacks.after_callbacks = self._tell
        self._began(runtime)

    def answer_own(self, relay: bytes, messages: list[Envelope]) -> None:
        """Keep the answers to the messages that this process relayed before, until they are over."""
        self._own = messages
        self.forget_answered(
            relay, [message.relay_key for message in messages if message.relay_key is not None]
        )

    def forget_answered(self, relay: bytes, wanted: Iterable[bytes]) -> None:
        """Delete the answers kept for a relay except those in the wanted rows."""
        kept = set(wanted)
        for row in self.store.keys(INDEXES, keys.RELAYED + relay):
            if row not in kept:
                self.commits.defer_delete(row)

    async def run(self) -> None:
        """Serve those who attach, for ever."""
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
        wire = FramedConnection(connection, frames.decode_from_follower)
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
            if attached is not None and self.followers.get(attached.relay) is attached:
                del self.followers[attached.relay]
            if not self.is_leaving:
                if attached is not None:
                    attached.end()
                wire.close()
                self._connections.discard(wire)

    def leave(self) -> None:
        """Take nothing new, and tell those who are attached to hold it."""
        self.is_leaving = True
        for attached in self.followers.values():
            attached.connection.send(frames.Goodbye())
            attached.connection.flush()

    async def aclose(self) -> None:
        """Return when every answer is on its way."""
        for attached in list(self.followers.values()):
            await attached.connection.drain()

    def close(self) -> None:
        """End the connections."""
        for wire in self._connections:
            wire.close()
        self._connections.clear()

    async def _greet(self, wire: FramedConnection[frames.FromFollower]) -> FollowerSession | None:
        """Return the attached process, or None when it is not taken."""
        with trio.move_on_after(GREETING_SECONDS):
            hello, *rest = await wire.receive()
            if not isinstance(hello, frames.Hello) or rest:
                raise PeerError("it did not introduce itself")
            if hello.protocol < frames.OLDEST or hello.oldest > frames.PROTOCOL:
                wire.send(frames.Reject(_no_common_protocol(hello)))
                await wire.drain()
                return None
            wire.end_greeting()
            earlier = self.followers.pop(hello.relay, None)
            if earlier is not None:
                earlier.end()
            attached = self.followers[hello.relay] = FollowerSession(self, wire, hello)
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
                )
            )
            wire.flush()
            return attached
        return None

    def _tell(self) -> None:
        """Tell what was settled in this pass, each attached process in one frame."""
        if self.settled:
            settled, self.settled = self.settled, []
            spoken_to: dict[FollowerSession, None] = {}
            for call, result in settled:
                call.session.answer(call, result)
                spoken_to[call.session] = None
            for attached in spoken_to:
                attached.connection.flush()

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            if self.followers:
                beat = frames.Heartbeat(self._statistics())
                for attached in list(self.followers.values()):
                    attached.look_after()
                    attached.connection.send_soon(beat)
            for envelope in self._own:
                if envelope.asker is None and envelope.relay_key is not None:
                    self.commits.defer_delete(envelope.relay_key)
            self._own = [envelope for envelope in self._own if envelope.asker is not None]
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


def _no_common_protocol(hello: frames.Hello) -> str:
    return (
        f"process {os.getpid()}, which owns the folder, is greenroom {program_version()} and speaks "
        f"versions {frames.OLDEST} to {frames.PROTOCOL} of the relay's protocol; greenroom {hello.program} "
        f"speaks {hello.oldest} to {hello.protocol}. End the older program, or upgrade it"
    )
