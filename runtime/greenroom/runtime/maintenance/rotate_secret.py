"""Giving a stopped store another secret: when the old one is lost, or no secret any more."""

from __future__ import annotations

from pathlib import Path

import lmdb

from greenroom.runtime.journal.secrets import Secret, make_secret, read_secret
from greenroom.runtime.lmdb.environment import SECRET_KEY, STORE_KEY, open_environment, store_error
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error, sync_folder
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import check_store


def renew_secret(folder: Path, secrets: Path, *, max_size: int) -> Secret:
    """Make a new secret for the store in a folder that nobody owns; the old file is kept under its mark.

    What was signed with the old one proves nothing any more: API keys and passports end, and the records of
    the audit log up to now can be checked with the old secret only.

    Args:
        folder: The store's.
        secrets: Where its secret is, or was.
        max_size: As the store is opened with, in bytes.

    Raises:
        StoreOwnedError: a process owns the folder; stop it first.
        StoreError: there is no store, or it, or the secret, could not be written.
    """
    with FolderLock(folder, create=False) as owner:
        is_checked = check_store(owner)
        try:
            environment = open_environment(owner.folder, max_size=max_size, sync=True)
        except lmdb.Error as error:
            raise store_error(error, f"{owner.folder / DATA_FILE} cannot be opened") from error
        with environment:
            with environment.begin() as transaction:
                store_id = (transaction.get(STORE_KEY) or b"").decode()
            try:
                secret = _renewed(secrets, store_id)
            except OSError as error:
                raise folder_error(error, f"the store's secret cannot be made in {secrets}") from error
            try:
                with environment.begin(write=True) as transaction:
                    transaction.put(SECRET_KEY, secret.mark.encode())
            except lmdb.Error as error:
                raise store_error(error, f"{owner.folder / DATA_FILE} cannot be written") from error
        owner.mark_clean(is_checked=is_checked)
        return secret


def _renewed(secrets: Path, store_id: str) -> Secret:
    path = secrets / f"{store_id}.key"
    try:
        mark = read_secret(path).mark
    except FileNotFoundError:
        pass
    else:
        path.rename(path.with_name(f"{store_id}.{mark}.old"))
        sync_folder(secrets)
    return make_secret(secrets, store_id)
