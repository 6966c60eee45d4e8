"""Open a runtime: build its parts on a folder that this process owns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Required, TypedDict, Unpack

import trio

from greenroom.runtime.actor.actor import Actor, kinds_by_name
from greenroom.runtime.api.runtime import RelayService, Runtime
from greenroom.runtime.base.arguments import check_options
from greenroom.runtime.base.clock import Clock, SystemClock
from greenroom.runtime.base.errors import ConfigurationError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.supervision import Group, groups_by_kind
from greenroom.runtime.journal.chain import Journal, journal_table
from greenroom.runtime.journal.secrets import Secret, find_secret
from greenroom.runtime.kernel.callbacks import CallbackQueue
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.files import DATA_FILE, sync_file
from greenroom.runtime.lmdb.keys import Index, index_table
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.maintenance.temporary_copies import remove_left_over, remove_unfinished_encryption
from greenroom.runtime.store.committer import Committer, ThreadCommitter
from greenroom.runtime.store.integrity import check_store
from greenroom.runtime.store.record_damage import StoreCheck
from greenroom.runtime.store.store import Store

_AT_ONCE_BYTES: Final = 16 << 20
"""A file of this size is read in 5 ms, too fast to need a thread."""


async def _check_store(owner: FolderLock, encryption: Encryption | None) -> StoreCheck:
    """Check the store that the last owner left.

    If that owner died, it may have died between a commit and its fsync. So the file is synced before it is
    read.
    """
    data = owner.folder / DATA_FILE
    is_small = not data.exists() or data.stat().st_size <= _AT_ONCE_BYTES
    if is_small and not owner.unclean:
        return check_store(owner, encryption)
    found = await trio.to_thread.run_sync(check_store, owner, encryption)
    if owner.unclean:
        await trio.to_thread.run_sync(sync_file, data)
    return found


class CommonConfig(TypedDict, total=False):
    """The options of every function that opens a runtime.

    Attributes:
        groups: The kinds that are supervised together; any other kind is on its own.
        clock: A clock instead of the system's.
        committer: A committer instead of the writer thread's.
        codec: A record codec instead of the plain one with checksums.
        encryption: The store's encryption and its key; the key is read when this process owns the folder.
    """

    groups: Iterable[Group]
    options: RuntimeOptions | None
    clock: Clock | None
    committer: Committer | None
    codec: RecordCodec | None
    encryption: Encryption | None


class RuntimeConfig(CommonConfig, total=False):
    """The keyword arguments of a runtime: the options of `CommonConfig`, and the parts.

    Attributes:
        sidecar: Makes a context manager, entered once the actors run and left before they drain, which yields
            `Context.sidecar`.
        secrets: The folder of the store's secret, or several where it may be; a new one is made in the first.
            Not the store's folder: anyone who has both has everything. None for a runtime that derives no
            keys. Every process on a shared folder must find the same secret.
        new_secret: Whether a store whose secret is lost goes on with a new one; otherwise it is refused.
        journals: The append-only journals, linked by keys of the secret.
        settings: What handlers, queries and procedures need from `current_settings`, for each store its own.
    """

    actors: Required[Iterable[type[Actor]]]
    indexes: Iterable[Index]
    sidecar: Callable[[Runtime], AbstractAsyncContextManager[Any]] | None
    secrets: Path | Sequence[Path] | None
    new_secret: bool
    journals: Iterable[Journal]
    settings: Any


class RuntimeFactory:
    """Run a runtime of one configuration on a folder, whenever this process owns it.

    Raises:
        ConfigurationError: the actors, indexes, groups or journals contradict each other.
    """

    def __init__(self, **config: Unpack[RuntimeConfig]) -> None:
        secrets = config.get("secrets")
        self.sidecar = config.get("sidecar")
        self.settings = config.get("settings")
        self.secrets = [secrets] if isinstance(secrets, Path) else list(secrets or ())
        self._new_secret = config.get("new_secret", False)
        self.journals = journal_table(config.get("journals", ()))
        self.encryption = config.get("encryption")
        self.kinds = kinds_by_name(tuple(config["actors"]))
        self.groups = groups_by_kind(self.kinds, config.get("groups", ()))
        self.indexes = index_table(config.get("indexes", ()))
        self.options = config.get("options") or RuntimeOptions()
        self.clock = config.get("clock") or SystemClock()
        self.committer = config.get("committer") or ThreadCommitter()
        self.codec = config.get("codec")
        if self.codec is not None and self.encryption is not None:
            raise ConfigurationError(
                "codec and encryption are both given, but one codec seals a store; give one of them"
            )

    def find_secret(self, folder: Path, store_id: str, mark: str, *, new: bool = False) -> Secret | None:
        """Return the secret of the store in a folder; None for a runtime without one."""
        if not self.secrets:
            return None
        return find_secret(list(dict.fromkeys([*self.secrets, folder])), store_id, mark, new=new)

    @asynccontextmanager
    async def run(
        self,
        owner: FolderLock,
        relay: RelayService | None = None,
        bus: Bus | None = None,
        callbacks: CallbackQueue | None = None,
    ) -> AsyncIterator[Runtime]:
        """Run the actors on a folder that is locked, until the block ends.

        A process that was attached passes its bus with subscribers, and its posted messages with their
        callbacks.
        """
        options = self.options
        remove_left_over(owner.folder)
        remove_unfinished_encryption(owner.folder)
        check = await _check_store(owner, self.encryption)
        store = Store(
            owner.folder,
            codec=self.codec,
            encryption=self.encryption,
            check=check,
            max_size=options.max_size,
            min_free=options.min_free,
            sync=options.durability == "power",
        )
        owner.mark_open()
        store.writer.check_held = owner.check_held
        try:
            before = store.secret_mark
            secret = self.find_secret(owner.folder, store.id, before, new=self._new_secret)
            if secret is not None:
                store.mark_secret(secret.mark)
                secret.is_first = store.first_secret_mark in {"", secret.mark}
            runtime = Runtime(
                self.kinds,
                self.groups,
                self.indexes,
                store,
                self.committer,
                self.clock,
                options,
                bus,
                callbacks,
                secret,
                self.journals,
                self.settings,
            )
            if secret is not None and before != secret.mark:
                runtime.lost_secret = before
        except BaseException:
            store.close()
            raise
        try:
            async with (
                runtime._run_parts(owner, options.drain_seconds, relay),  # noqa: SLF001  two halves of one interface
                runtime._run_sidecar(self.sidecar),  # noqa: SLF001
            ):
                yield runtime
        finally:
            self.committer.close()
            if runtime.has_found_damage:
                owner.mark_doubtful()
            if runtime.is_sound:
                runtime.record_checkpoints()
            store.close()
            if runtime.is_sound:
                owner.mark_clean(is_checked=store.is_checked, is_damaged=bool(store.damage.found))


@check_options(RuntimeConfig)
@asynccontextmanager
async def open_runtime(
    path: str | Path,
    **config: Unpack[RuntimeConfig],
) -> AsyncIterator[Runtime]:
    """Own a folder and run actors on it, inside an ``async with`` block.

    The folder is created if missing, with mode 0700. Leaving the block refuses new messages, handles the
    accepted ones (for at most ``options.drain_seconds``; not if cancelled), and closes the store.

    Raises:
        TypeError: there is no such option; the call itself raises it.
        StoreFailedError: a commit failed permanently while the block ran.
        StoreError: the folder cannot hold a store, or what the raised subclass says.
    """
    factory = RuntimeFactory(**config)
    with FolderLock(Path(path)) as owner:
        async with factory.run(owner) as runtime:
            yield runtime
