"""The secret of a store: 32 random bytes beside the store, never in it.

A key is derived from it for each purpose: for everything that only this server may make or check. The store
alone, such as a backup, reveals none of them. The store contains the id that the secret's file is named by,
and a *mark*, which identifies the secret and reveals nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.lmdb import files

SECRET_BYTES: Final = 32
_SALT: Final = b"greenroom"
_MARK: Final = "greenroom/mark"
_MARK_BYTES: Final = 8
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022


class Secret:
    """The secret from which the keys of one store are derived. It is never displayed."""

    __slots__ = ("_derived", "_root", "is_first", "path")

    def __init__(self, root: bytes, place: Path | None = None) -> None:
        if len(root) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(root)}")
        self._root = hmac.digest(_SALT, root, hashlib.sha256)
        self._derived: dict[str, bytes] = {}
        self.path = place
        self.is_first = True  # the store has had no other one before, as far as it knows

    def derive(self, purpose: str) -> bytes:
        """Return the key for a purpose: 32 bytes by HKDF-SHA256 (RFC 5869)."""
        key = self._derived.get(purpose)
        if key is None:
            key = self._derived[purpose] = hmac.digest(self._root, purpose.encode() + b"\1", hashlib.sha256)
        return key

    @property
    def mark(self) -> str:
        """The public mark that identifies this secret."""
        return self.derive(_MARK)[:_MARK_BYTES].hex()

    def __repr__(self) -> str:
        return f"<Secret {self.mark}>"


def find_secret(places: Sequence[Path], store_id: str, mark: str, *, new: bool = False) -> Secret:
    """Return the secret of a store, created at first need in the first of ``places``.

    Args:
        places: The folders where it may be.
        store_id: The store's id, which names the file.
        mark: The mark of the store's secret; empty if the store has had none yet.
        new: Whether a new secret replaces a lost one.

    Raises:
        StoreError: the secret is lost or has another mark, cannot be read or created, or other users can read
            or replace it.
    """
    found: list[Secret] = []
    for folder in places:
        path = folder / f"{store_id}.key"
        try:
            secret = read_secret(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            what = f"the store's secret {path} cannot be read (another folder: --secrets)"
            raise files.folder_error(error, what) from error
        if mark in {"", secret.mark}:
            return secret
        found.append(secret)
    if mark and not new:
        others = [f"{each.path} has the mark {each.mark}" for each in found]
        there = "; ".join(others) or f"there is no {places[0] / f'{store_id}.key'}"
        raise StoreError(
            f"this store was used with a secret with the mark {mark}, which its API keys, passports and "
            f"audit log need, and {there}; name the folder where it is with --secrets, bring it with "
            "`greenroom secret import`, or end those keys and passports and go on with a new one: "
            "`greenroom serve --new-secret`, or `greenroom secret renew`"
        )
    try:
        if found and found[0].path == (path := places[0] / f"{store_id}.key"):
            keep_aside(path)  # as it is a former secret, with it ended keys would be active again
        return make_secret(places[0], store_id)
    except OSError as error:
        raise files.folder_error(
            error, f"the store's secret cannot be made in {places[0]} (another folder: --secrets)"
        ) from error


def is_secret_at(places: Sequence[Path], store_id: str, mark: str) -> bool:
    """Return whether the secret with this mark can be found and read."""
    for folder in places:
        with suppress(OSError, StoreError):
            if read_secret(folder / f"{store_id}.key").mark == mark:
                return True
    return False


def read_secret(path: Path) -> Secret:
    """Return the secret in a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_mode & _OTHERS or status.st_uid not in {os.geteuid(), 0}:
            raise StoreError(
                f"the store's secret {path} can be read or changed by others; make it yours alone "
                f"(chmod 600 {path}), and think of whether it is still a secret"
            )
        refuse_shared(path.parent)
        text = os.read(descriptor, 4 * SECRET_BYTES)
    finally:
        os.close(descriptor)
    with suppress(ValueError):
        return Secret(bytes.fromhex(text.decode("ascii")), path)
    raise StoreError(f"{path} is no secret of a store: it has {2 * SECRET_BYTES} hexadecimal digits")


def refuse_shared(folder: Path) -> None:
    """Refuse a folder in which others may replace or remove a secret."""
    status = folder.stat()
    if status.st_mode & _OTHERS_WRITE or status.st_uid not in {os.geteuid(), 0}:
        raise StoreError(
            f"the folder of secrets {folder} can be changed by others, who may put another secret there; "
            f"make it yours alone (chmod 700 {folder}), or name another one with --secrets"
        )


def keep_aside(path: Path) -> None:
    """Keep a former secret under its mark, to check the audit log of its time."""
    path.rename(path.with_name(f"{path.stem}.{read_secret(path).mark}.old"))
    files.sync_folder(path.parent)


def make_secret(folder: Path, store_id: str) -> Secret:
    """Create a new durable secret, or return one that another process has just created."""
    if not folder.exists():
        folder.mkdir(files.FOLDER_MODE, parents=True, exist_ok=True)
        files.sync_folder(folder.parent)
    refuse_shared(folder)
    path = folder / f"{store_id}.key"
    part = folder / f".{store_id}.{secrets.token_hex(4)}"
    files.create_file(part, secrets.token_hex(SECRET_BYTES).encode() + b"\n")
    try:
        part.chmod(files.FILE_MODE)
        files.sync_file(part)
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()
    files.sync_folder(folder)
    return read_secret(path)
