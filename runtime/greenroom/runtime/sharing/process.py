"""Which of the processes on a folder this one is, and what goes on when that changes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path

import trio

from greenroom.runtime.api.open import RuntimeFactory
from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base.errors import RuntimeClosedError, StoreError
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.kernel.callbacks import MessageSink
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.lmdb.encryption import check_mark
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.sharing.attached_side import Follower
from greenroom.runtime.sharing.owner_side import Leader
from greenroom.runtime.sharing.type_registry import TypeRegistry


class Member:
    """One process among those on a folder.

    Args:
        factory: What its runtime will be made of when it owns the folder.
        types: The types that can be spoken of.

    Attributes:
        bus: Tells its subscribers, whoever owns the folder.
        follower: Its side while it is attached.
        leader: Its side while it owns the folder.
        sink: Where messages go: to the follower, then to the own kernel.
        runtime: Its runtime, from when it owns the folder.
        became_owner: Set then.
        is_closed: Whether it has ended without owning the folder.
        secret: The store's, while this process is attached to an owner that has one.
        has_secret: Set once an owner was reached, so that keys can be derived.
    """

    def __init__(self, factory: RuntimeFactory, types: TypeRegistry) -> None:
        self.factory = factory
        self.bus = Bus(lambda: False)
        self.follower = Follower(types, self.bus)
        self.leader = Leader(types, self._begin)
        self.sink: MessageSink = self.follower
        self.runtime: Runtime | None = None
        self.became_owner = trio.Event()
        self.is_closed = False
        self.secret: Secret | None = None
        self.has_secret = trio.Event()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is taken any more."""
        return self.is_closed if self.runtime is None else self.runtime.has_ended

    def check_open(self) -> None:
        """Raise what the doors raise when nothing is taken any more.

        Raises:
            RuntimeClosedError, StoreFailedError: that is so.
        """
        if self.runtime is not None:
            self.runtime.check_open()
        elif self.is_closed:
            raise RuntimeClosedError("the runtime is closed")

    def learn_secret(self, folder: Path, store_id: str, mark: str) -> None:
        """Find the secret that the owner uses: who attaches with another one could not take over.

        Raises:
            StoreError: as `find_secret`.
        """
        if mark and (self.secret is None or self.secret.mark != mark):
            self.secret = self.factory.find_secret(folder, store_id, mark)
        self.has_secret.set()

    def check_key(self, folder: Path, mark: str | None) -> None:
        """Compare the owner's store with the encryption that this process was given.

        Raises:
            StoreKeyError: it has another key, or is not encrypted as it was to be.
        """
        if self.factory.encryption is not None:
            check_mark(self.factory.encryption, mark, str(folder))

    def acquire(
        self, place: ExitStack, lock: FolderLock, identity: tuple[int, int] | None = None
    ) -> FolderLock:
        """Own the folder until the stack is closed, and have a place where others can attach.

        Args:
            place: The stack.
            lock: The folder's.
            identity: Which folder it is to be: `identity_of` it.

        Raises:
            StoreOwnedError: another process owns it.
            StoreError: it cannot hold a store, or is another one.
        """
        with ExitStack() as stack:
            stack.callback(self.leader.close)  # last, when the lock is free
            owner = stack.enter_context(lock)
            if identity is not None and identity_of(owner.folder) != identity:
                raise StoreError(
                    f"{owner.folder} is not the folder that this process was attached to; start again"
                )
            stack.enter_context(self.leader.listening(owner.folder))
            place.push(stack.pop_all())
        return owner

    def run(self, owner: FolderLock) -> AbstractAsyncContextManager[Runtime]:
        """Run the actors on the folder that this process owns, until the block ends."""
        return self.factory.run(owner, self.leader, self.bus, self.follower.callbacks)

    def _begin(self, runtime: Runtime) -> None:
        """Take over: what was asked so far is this process's own affair from now on."""
        self.runtime = runtime
        self.sink = kernel = runtime.parts()[0]
        self.leader.answer_own(self.follower.relay, self.follower.hand_over(kernel))
        if self.follower.attachments:
            self.follower.renew_subscriptions()
        self.has_secret.set()
        self.became_owner.set()


def identity_of(folder: Path) -> tuple[int, int]:
    """Return what a folder keeps when it is renamed, and no other has."""
    status = folder.stat()
    return status.st_dev, status.st_ino
