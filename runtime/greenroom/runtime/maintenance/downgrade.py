"""Take a stopped store back to the format before recent rows, so that earlier programs open it.

The rows themselves are the same in both formats. The newest changes, which lie in the table of recent rows
after an unclean end, go into their tables first; then one transaction removes that table and writes the
format's number. So this program opens the store whenever it is interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import (
    DOWNGRADED_FORMAT,
    FORMAT_VERSION,
    format_of,
    write_downgraded_format,
)
from greenroom.runtime.lmdb.files import sync_file
from greenroom.runtime.maintenance.backup import translate_errors
from greenroom.runtime.maintenance.reencrypt import own_store
from greenroom.runtime.store.store import Store


@dataclass(frozen=True, slots=True)
class DowngradeInfo:
    """A store that has an earlier format now; ``changed`` is False if it had it before."""

    folder: Path
    format: int
    changed: bool


def downgrade(
    folder: Path, *, encryption: Encryption | None = None, options: RuntimeOptions | None = None
) -> DowngradeInfo:
    """Take a stopped store back to the format that programs before recent rows open.

    Args:
        folder: The folder of the store.
        encryption: Provides the key of an encrypted store.
        options: Limits of the store.

    Raises:
        StorageFullError: there is no room for the newest changes in their tables.
        StoreError: see its subclasses; or the store has something that the earlier format does not have.
    """
    limits = options if options is not None else RuntimeOptions()
    with own_store(folder, encryption) as (owner, check):
        data = owner.store_file()
        found = format_of(data)
        changes = found == FORMAT_VERSION
        if not changes and found != DOWNGRADED_FORMAT:
            raise StoreError(
                f"{data} has neither store format {FORMAT_VERSION} nor {DOWNGRADED_FORMAT}, so nothing was "
                "changed; to go back further, `greenroom restore` a backup of before"
            )
        if changes:
            Store(
                owner.folder,
                encryption=encryption,
                check=check,
                max_size=limits.max_size,
                min_free=limits.min_free,
            ).close()  # writes recent rows into their tables
            with translate_errors(f"{data} cannot be written"):
                write_downgraded_format(data)
                sync_file(data)
        owner.mark_clean(is_checked=check.is_whole, is_damaged=bool(check.damaged))
        return DowngradeInfo(owner.folder, DOWNGRADED_FORMAT, changes)
