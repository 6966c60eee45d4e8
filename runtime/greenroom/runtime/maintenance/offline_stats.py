"""What a store that nobody owns holds, without running its actors."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import check_store
from greenroom.runtime.store.store import Store


def stopped_statistics(
    folder: Path, options: RuntimeOptions | None = None, *, encryption: Encryption | None = None
) -> StoreStatistics:
    """Return what a store that nobody owns holds; no actor is activated and no timer fires.

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
            statistics = store.statistics()
        owner.mark_clean(is_checked=is_checked)
    return statistics
