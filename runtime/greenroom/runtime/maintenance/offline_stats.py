"""Read a stopped store without running its actors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import pass_over
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import check_store
from greenroom.runtime.store.store import INDEXES, Store

T = TypeVar("T")


class StoppedStore:
    """A stopped store; no actor is activated and no timer fires."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def statistics(self) -> StoreStatistics:
        """Return its statistics."""
        return self._store.statistics()

    def rows(self, index: str, of: type[T]) -> Iterator[T]:
        """Yield the values of the rows of a shared index."""
        for _, payload in self._store.scan(INDEXES, keys.index_prefix(index), on_damage=pass_over):
            yield keys.decode(keys.decode(payload, keys.RowRecord).value, of)


@contextmanager
def stopped_store(
    folder: Path, options: RuntimeOptions | None = None, *, encryption: Encryption | None = None
) -> Iterator[StoppedStore]:
    """Open a stopped store while the block runs.

    Blocks; after an unclean end also for the check of the structure.

    Raises:
        StoreOwnedError: a process owns the folder; use its `Runtime.statistics`.
        StoreDamagedError, StoreTooNewError: it cannot be opened.
        StoreError: there is no store in the folder.
    """
    options = options if options is not None else RuntimeOptions()
    with FolderLock(folder, create=False) as owner:
        if not (owner.folder / DATA_FILE).exists():
            raise StoreError(f"there is no store in {owner.folder}")
        check = check_store(owner, encryption)
        store = Store(
            owner.folder,
            encryption=encryption,
            check=check,
            max_size=options.max_size,
            min_free=options.min_free,
        )
        with closing(store):
            yield StoppedStore(store)
        owner.mark_clean(is_checked=store.is_checked, is_damaged=bool(store.damage.found))


def stopped_statistics(
    folder: Path, options: RuntimeOptions | None = None, *, encryption: Encryption | None = None
) -> StoreStatistics:
    """Return the statistics of a stopped store; as `stopped_store`."""
    with stopped_store(folder, options, encryption=encryption) as store:
        return store.statistics()
