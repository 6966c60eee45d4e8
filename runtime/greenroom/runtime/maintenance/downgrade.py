"""Give a stopped store the format before recent rows, which earlier programs open.

The rows themselves are the same in both formats. The newest changes, which lie in the table of recent rows
after an unclean end, go into their tables first; then one transaction removes that table and writes the
format's number. So this program opens the store whenever it is interrupted.
"""

from __future__ import annotations

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


def downgrade(
    folder: Path, *, encryption: Encryption | None = None, options: RuntimeOptions | None = None
) -> bool:
    """Give a stopped store the format that earlier programs open.

    Returns:
        Whether it had another one.

    Raises:
        StoreError: see its subclasses; or it has something that no store of that format has.
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
        return changes
