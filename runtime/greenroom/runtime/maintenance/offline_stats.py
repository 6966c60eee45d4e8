"""What a store that nobody owns holds, without running its actors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import check_store
from greenroom.runtime.store.store import INDEXES, Store

T = TypeVar("T")


class StoppedStore:
    """A store that nobody owns, while it is looked at; no actor is activated and no timer fires.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def statistics(self) -> StoreStatistics:
        """Return what it holds."""
        return self._store.statistics()

    def rows(self, index: str, of: type[T]) -> Iterator[T]:
        """Yield what the rows of a shared index say."""
        for _, payload in self._store.scan(INDEXES, keys.index_prefix(index)):
            yield keys.decode(keys.decode(payload, keys.RowRecord).value, of)


@contextmanager
def stopped_store(
    folder: Path, options: RuntimeOptions | None = None, *, encryption: Encryption | None = None
) -> Iterator[StoppedStore]:
    """Look at a store that nobody owns while the block runs.

    Blocks, after an unclean end as long as the check of the structure takes.

    Args:
        folder: The folder of the store; it is not made.
        options: Limits that the figures are told against.
        encryption: Has the key of a store that is encrypted.

    Raises:
        StoreOwnedError: a process owns the folder; ask its `Runtime.statistics`.
        StoreDamagedError, StoreTooNewError: it cannot be opened.
        StoreError: there is no store in the folder.
    """
    options = options if options is not None else RuntimeOptions()
    with FolderLock(folder, create=False) as owner:
        if not (owner.folder / DATA_FILE).exists():
            raise StoreError(f"there is no store in {owner.folder}")
        is_checked = check_store(owner, encryption)
        store = Store(
            owner.folder,
            encryption=encryption,
            is_checked=is_checked,
            max_size=options.max_size,
            min_free=options.min_free,
        )
        with closing(store):
            yield StoppedStore(store)
        owner.mark_clean(is_checked=is_checked)


def stopped_statistics(
    folder: Path, options: RuntimeOptions | None = None, *, encryption: Encryption | None = None
) -> StoreStatistics:
    """Return what a store that nobody owns holds; as `stopped_store`."""
    with stopped_store(folder, options, encryption=encryption) as store:
        return store.statistics()
