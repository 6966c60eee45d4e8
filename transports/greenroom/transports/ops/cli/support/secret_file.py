"""A store's secret in a file to carry to another machine, encrypted by a passphrase.

The file holds what lies in the folder of secrets under the store's id: the secret, the list of what ended,
the ends of journals that were seen, and former secrets for the audit log. The cipher is AES-256-GCM under a
key by scrypt; the rest of the file is associated data.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.runtime import GreenroomError, Secret
from greenroom.runtime.journal import checkpoints, revocations
from greenroom.runtime.journal.secrets import read_secret, refuse_shared
from greenroom.runtime.lmdb import files
from greenroom.runtime.lmdb.lock_file import ownership_error

KEY_SUFFIX: Final = ".key"
SUFFIXES: Final = (KEY_SUFFIX, revocations.SUFFIX, checkpoints.SUFFIX)
_FORMER: Final = re.compile(r"\.[0-9a-f]{1,64}\.old")
MAX_BYTES: Final = 256 << 20
LEAST_WORDS: Final = 8
"""The fewest characters of a passphrase."""
_N: Final = 1 << 17
_R: Final = 8
_SCRYPT_BYTES: Final = 256 * _N * _R
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_PLAIN: Final = re.compile(r"[0-9a-f]{1,64}")


class SecretFileError(GreenroomError):
    """A file with a secret was not taken; nothing was changed."""


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    greenroom: Literal["secret"] = "secret"
    version: Literal[1] = 1
    store_id: str
    mark: str
    salt: Annotated[bytes, Meta(min_length=_SALT_BYTES, max_length=_SALT_BYTES)]
    nonce: Annotated[bytes, Meta(min_length=_NONCE_BYTES, max_length=_NONCE_BYTES)]


class _SecretFile(_Head, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    data: bytes


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that was brought.

    Attributes:
        is_new: Whether it was not here before.
        kept: Files that were here already, and differ from the brought ones.
    """

    store_id: str
    mark: str
    path: str
    is_new: bool
    kept: list[str]


def seal(secret: Secret, store_id: str, passphrase: str) -> bytes:
    """Return the content of the file for a store's secret and what lies beside it."""
    assert secret.path is not None, "it was read from a file"
    contents = {
        suffix: place.read_bytes()
        for place in secret.path.parent.glob(f"{store_id}.*")
        if _is_carried(suffix := place.name.removeprefix(store_id))
    }
    head = _Head(
        store_id=store_id,
        mark=secret.mark,
        salt=secrets.token_bytes(_SALT_BYTES),
        nonce=secrets.token_bytes(_NONCE_BYTES),
    )
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - takes 30 ms

    data = AESGCM(_key(head, passphrase)).encrypt(head.nonce, msgspec.json.encode(contents), _bound(head))
    sealed = _SecretFile(**msgspec.structs.asdict(head), data=data)
    return msgspec.json.format(msgspec.json.encode(sealed)) + b"\n"


def unseal(content: bytes, passphrase: str) -> tuple[str, str, dict[str, bytes]]:
    """Return the store's id, the secret's mark, and the files by their suffixes."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    sealed = parse(content)
    head = _Head(**{name: getattr(sealed, name) for name in _Head.__struct_fields__})
    try:
        plain = AESGCM(_key(head, passphrase)).decrypt(head.nonce, sealed.data, _bound(head))
    except InvalidTag:
        raise SecretFileError("the passphrase is not the one of the file, or the file was changed") from None
    return sealed.store_id, sealed.mark, msgspec.json.decode(plain, type=dict[str, bytes])


def parse(content: bytes) -> _SecretFile:
    """Parse the file without its passphrase."""
    try:
        sealed = msgspec.json.decode(content, type=_SecretFile)
    except (msgspec.DecodeError, ValueError):
        raise SecretFileError("the file is none that `greenroom secret export` made") from None
    if not (_PLAIN.fullmatch(sealed.store_id) and _PLAIN.fullmatch(sealed.mark)):
        raise SecretFileError("the file is none that `greenroom secret export` made")
    return sealed


def put(store_id: str, mark: str, contents: dict[str, bytes], folder: Path, data: Path) -> Imported:
    """Put the files beside those of other stores; replace none that is there.

    The list of what ended gets the lines of the brought one.

    Raises:
        SecretFileError: The folder has another secret of this store, or the list gets lines while a process
            uses the store in ``data``.
        StoreError: Others may write the folder, or it cannot be written.
    """
    try:
        if not folder.exists():
            folder.mkdir(files.FOLDER_MODE, parents=True)
            files.sync_folder(folder.parent)
        refuse_shared(folder)
        key = folder / f"{store_id}{KEY_SUFFIX}"
        is_new = not _has_content(key)
        if not is_new and (here := read_secret(key).mark) != mark:
            raise SecretFileError(
                f"{key} is another secret of this store, with the mark {here}, and the file has {mark}; if "
                "nothing needs the one that is here, move it away first"
            )
        kept: list[str] = []
        # The secret comes last: with it the store can be opened, and then it needs the list of what ended.
        for suffix in sorted(filter(_is_carried, contents), key=lambda each: each == KEY_SUFFIX):
            path = folder / f"{store_id}{suffix}"
            if path.exists() and suffix == revocations.SUFFIX:
                _add(path, contents[suffix], data)
            elif not _has_content(path):
                path.unlink(missing_ok=True)
                _write(path, contents[suffix], replaces=False)
            elif path.read_bytes() != contents[suffix]:
                kept.append(str(path))
    except OSError as error:
        raise files.folder_error(error, f"the secret cannot be put into {folder}") from error
    return Imported(store_id=store_id, mark=mark, path=str(key), is_new=is_new, kept=kept)


def _is_carried(suffix: str) -> bool:
    return suffix in SUFFIXES or _FORMER.fullmatch(suffix) is not None


def _has_content(path: Path) -> bool:
    """Return whether a file is there; an empty one is what a crash left."""
    return path.exists() and path.stat().st_size > 0


def _add(path: Path, brought: bytes, data: Path) -> None:
    """Add what only the brought list has: a revocation must stay on every machine."""
    merged = revocations.merge_log(path, brought)
    if merged == path.read_bytes():
        return
    # An owner numbers its next lines by the list as it was.
    refused = ownership_error(data) if (data / files.DATA_FILE).exists() else None
    if refused is not None:
        raise SecretFileError(f"{path} has to change, which needs a stopped store: {refused}") from refused
    _write(path, merged, replaces=True)


def _write(path: Path, content: bytes, *, replaces: bool) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    files.create_file(part, content)
    try:
        files.sync_file(part)
        if replaces:
            part.replace(path)
        else:
            path.hardlink_to(part)  # which a server may have made meanwhile
    finally:
        part.unlink(missing_ok=True)
    files.sync_folder(path.parent)


def _bound(head: _Head) -> bytes:
    return msgspec.json.encode(head)


def _key(head: _Head, passphrase: str) -> bytes:
    words = unicodedata.normalize("NFC", passphrase).encode()  # macOS and Linux may compose it otherwise
    return hashlib.scrypt(words, salt=head.salt, n=_N, r=_R, p=1, maxmem=_SCRYPT_BYTES, dklen=_KEY_BYTES)
