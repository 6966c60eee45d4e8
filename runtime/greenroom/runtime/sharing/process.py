"""One process on a shared folder: its state in both roles, and its change."""

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
from greenroom.runtime.sharing.attached_side import AttachedSide
from greenroom.runtime.sharing.owner_side import OwnerSide
from greenroom.runtime.sharing.type_registry import TypeRegistry


class SharedProcess:
    """One process among those on a folder.

    Attributes:
        sink: The destination of messages: the attached side, later the own kernel.
        became_owner: Set once it owns the folder.
        secret: The store's secret, while this process is attached to an owner with one.
        has_secret: Set once an owner was reached, so that keys can be derived.
    """

    def __init__(self, factory: RuntimeFactory, types: TypeRegistry) -> None:
        self.factory = factory
        self.bus = Bus(lambda: False)
        self.attached_side = AttachedSide(types, self.bus)
        self.owner_side = OwnerSide(types, self._begin)
        self.sink: MessageSink = self.attached_side
        self.runtime: Runtime | None = None
        self.became_owner = trio.Event()
        self.is_closed = False
        self.secret: Secret | None = None
        self.has_secret = trio.Event()

    def check_open(self) -> None:
        """Raise why no request is accepted any more, if so."""
        if self.runtime is not None:
            self.runtime.check_open()
        elif self.is_closed:
            raise RuntimeClosedError("the runtime is closed")

    def learn_secret(self, folder: Path, store_id: str, mark: str) -> None:
        """Find the owner's secret: a process with another one could not take over.

        Raises:
            StoreError: as `find_secret`.
        """
        if mark and (self.secret is None or self.secret.mark != mark):
            self.secret = self.factory.find_secret(folder, store_id, mark)
        self.has_secret.set()

    def check_key(self, folder: Path, mark: str | None) -> None:
        """Check the owner's store against the encryption of this process."""
        if self.factory.encryption is not None:
            check_mark(self.factory.encryption, mark, str(folder))

    def acquire(
        self, place: ExitStack, lock: FolderLock, identity: tuple[int, int] | None = None
    ) -> FolderLock:
        """Own the folder until the stack is closed, and let other processes attach.

        Raises:
            StoreOwnedError: another process owns it.
            StoreError: it cannot hold a store, or is another folder.
        """
        with ExitStack() as stack:
            stack.callback(self.owner_side.close)  # last, after the lock is released
            owner = stack.enter_context(lock)
            if identity is not None and identity_of(owner.folder) != identity:
                raise StoreError(
                    f"{owner.folder} is not the folder that this process was attached to; start again"
                )
            stack.enter_context(self.owner_side.listen(owner.folder))
            place.push(stack.pop_all())
        return owner

    def run(self, owner: FolderLock) -> AbstractAsyncContextManager[Runtime]:
        """Run the actors on the folder that this process owns, until the block ends."""
        return self.factory.run(owner, self.owner_side, self.bus, self.attached_side.callbacks)

    def _begin(self, runtime: Runtime) -> None:
        """Take over: this process now answers its pending requests itself."""
        self.runtime = runtime
        self.sink = kernel = runtime.parts()[0]
        self.owner_side.answer_own(self.attached_side.relay, self.attached_side.hand_over(kernel))
        if self.attached_side.attachments:
            self.attached_side.renew_subscriptions()
        self.has_secret.set()
        self.became_owner.set()


def identity_of(folder: Path) -> tuple[int, int]:
    """Return the identity of a folder, which a rename keeps."""
    status = folder.stat()
    return status.st_dev, status.st_ino
