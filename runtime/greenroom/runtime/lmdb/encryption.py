"""The encryption of a store: the operator's key, and the seal in the store.

The *seal* is the store's wrapped data key, in LMDB's unnamed table. A store with a seal is encrypted. The
seal is written before anything else, or comes with a rewritten file. It is never added to a store with
records in the clear.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import lmdb

from greenroom.runtime.base.errors import StoreKeyError
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec
from greenroom.runtime.lmdb.environment import SEAL_KEY
from greenroom.runtime.lmdb.key_blinding import KeyBlinder

KEY_BYTES: Final = 32
KEYRING_SERVICE: Final = "greenroom"
NAMES: Final = b"greenroom names"
KEY_SOURCES: Final = "file:PATH, env:NAME or keyring:NAME"

_OTHERS: Final = 0o077
_MOST_BYTES: Final = 1_024
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]{64}")


@dataclass(frozen=True)
class Encryption:
    """The encryption that a folder's store should have.

    Attributes:
        key: Returns the key-encryption key, 32 bytes; called whenever a store is opened. See `key_source`.
        required: Whether a new store is encrypted, and a store in the clear is refused. If False, the key
            only opens a store that is encrypted already.
    """

    key: Callable[[], bytes]
    required: bool = False


def key_source(text: str) -> Callable[[], bytes]:
    """Return a function that reads a key-encryption key.

    A key has 32 bytes: raw (in a file only), in base64, or as 64 hexadecimal digits.

    Args:
        text: ``file:PATH`` for a file that no one else can read, ``env:NAME`` for an environment variable,
            ``keyring:NAME`` for the password of that name in the system's keyring.

    Raises:
        ValueError: ``text`` is none of these.
        StoreKeyError: (when called) there is no such key.
    """
    kind, _, name = text.partition(":")
    if kind not in _READERS or not name:
        raise ValueError(f"{KEY_SOURCES} is allowed")
    if kind == "file":  # the working directory may change before the key is read
        name = os.path.abspath(Path(name).expanduser())  # noqa: PTH100 - as in the command's settings
    read = _READERS[kind]
    return lambda: _key(read(name), text)


def _key(found: bytes, source: str) -> bytes:
    if len(found) == KEY_BYTES:
        return found
    word = found.strip()
    if _HEXADECIMAL.fullmatch(word):
        return bytes.fromhex(word.decode())
    with suppress(binascii.Error):
        key = base64.b64decode(
            word + b"=" * (-len(word) % 4),
            altchars=b"-_" if b"_" in word or b"-" in word else None,
            validate=True,
        )
        if len(key) == KEY_BYTES:
            return key
    raise StoreKeyError(
        f"{source} holds no key: a key has {KEY_BYTES} bytes, in base64 or as {2 * KEY_BYTES} hexadecimal "
        "digits; `openssl rand -base64 32` makes one"
    )


def _from_file(name: str) -> bytes:
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise StoreKeyError(
                    f"the key in {path} can be read or changed by others; make it yours alone "
                    f"(chmod 600 {path}), and think of whether it is still a secret"
                )
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise StoreKeyError(f"the key in {path} cannot be read: {error.strerror or error}") from error


def _from_environment(name: str) -> bytes:
    text = os.environ.get(name, "")
    if not text:
        raise StoreKeyError(f"the environment variable {name}, which is to hold the store's key, is not set")
    return os.fsencode(text) + b"\n"  # with a newline, so that 32 characters never count as raw bytes


def _from_keyring(name: str) -> bytes:
    try:
        import keyring  # noqa: PLC0415 - an extra
        import keyring.errors  # noqa: PLC0415
    except ImportError as error:
        raise StoreKeyError(
            f"keyring:{name} needs the library keyring; pip install 'greenroom[keyring]'"
        ) from error
    try:
        text = keyring.get_password(KEYRING_SERVICE, name)
    except keyring.errors.KeyringError as error:
        raise StoreKeyError(f"the system's keyring cannot be read for {name}: {error}") from error
    if not text:
        raise StoreKeyError(
            f"the system's keyring has no password {name}; `keyring set {KEYRING_SERVICE} {name}` sets one"
        )
    return str(text).encode() + b"\n"


_READERS: Final[dict[str, Callable[[str], bytes]]] = {
    "file": _from_file,
    "env": _from_environment,
    "keyring": _from_keyring,
}


@dataclass(frozen=True)
class Opened:
    """The codec and keys of an open store."""

    codec: RecordCodec
    unlock: bytes | None = field(default=None, repr=False)
    blinder: KeyBlinder | None = None


def unseal(wrapped: bytes | None, unlock: bytes | None, name: str) -> Opened:
    """Return the codec and keys of a store; read them from its seal, if any."""
    if wrapped is None:
        return Opened(PlainCodec())
    from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

    data_key = record_cipher.unwrap(wrapped, unlock, name)
    return Opened(
        record_cipher.SealedCodec(data_key), unlock, KeyBlinder(record_cipher.derive(data_key, NAMES))
    )


def open_seal(
    environment: lmdb.Environment, tables: Sequence[Any], encryption: Encryption | None, name: str
) -> Opened:
    """Open a store's seal; create one in a new store if encryption is required."""
    with environment.begin() as transaction:
        wrapped = transaction.get(SEAL_KEY)
        is_empty = not any(transaction.stat(table)["entries"] for table in tables)
    if wrapped is None and (encryption is None or not encryption.required):
        return Opened(PlainCodec())
    unlock = None if encryption is None else encryption.key()
    if wrapped is None:
        if not is_empty:
            raise _in_the_clear(name)
        if unlock is None or len(unlock) != KEY_BYTES:
            raise StoreKeyError(
                f"{name} is not made: the given key has not {KEY_BYTES} bytes; give another one"
            )
        from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

        wrapped = record_cipher.wrap(os.urandom(KEY_BYTES), unlock)
        with environment.begin(write=True) as transaction:
            transaction.put(SEAL_KEY, wrapped)
    return unseal(wrapped, unlock, name)


def check_mark(encryption: Encryption, mark: str | None, name: str) -> None:
    """Check the key of a store that another process has open.

    ``mark`` is the mark of the store's key: empty for a store in the clear, None if unknown.
    """
    if mark:
        from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

        record_cipher.check_mark(encryption.key(), mark, name)
    elif encryption.required and mark is None:
        raise StoreKeyError(
            f"the process that owns {name} does not say whether the store is encrypted; start it again with "
            "this version of Greenroom"
        )
    elif encryption.required:
        raise _in_the_clear(name)


def _in_the_clear(name: str) -> StoreKeyError:
    return StoreKeyError(
        f"{name} is not encrypted, and --encrypt (in Python: encryption_key) asks for a store that is; "
        "`greenroom encrypt` rewrites it, or open it without"
    )


def rewrap(environment: lmdb.Environment, unlock: bytes, new: bytes, name: str) -> bytes:
    """Wrap the data key of a store with the key ``new``, in one transaction.

    Return the old wrapped key; it is still in the file, but nothing refers to it.
    """
    from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

    with environment.begin(write=True) as transaction:
        wrapped: bytes = transaction.get(SEAL_KEY) or b""
        data_key = record_cipher.unwrap(wrapped, unlock, name)
        transaction.put(SEAL_KEY, record_cipher.wrap(data_key, new))
    return wrapped
