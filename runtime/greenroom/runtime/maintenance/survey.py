"""What a store that nobody owns says of itself, read without LMDB, without its lock, and without a change.

Each page on the way is proven (see `store.page_proofs`), so a damaged file is an error and kills nobody. A
process that takes the folder meanwhile may write over what is read: an error then is to be tried again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from greenroom.runtime.base.errors import StoreDamagedError, StoreError, StoreTooNewError
from greenroom.runtime.journal.chain import ChainPosition, head_key
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import (
    FORMAT_KEY,
    FORMAT_VERSION,
    INDEXES,
    META,
    REMEDY,
    SEAL_KEY,
    SECRET_KEY,
    STORE_KEY,
    Identity,
)
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error
from greenroom.runtime.store.page_proofs import ProvenSnapshot, Prover

T = TypeVar("T")
_PLAIN: Final = re.compile(r"[0-9a-f]*")


class Head(NamedTuple):
    """What a store says of itself before its records are read.

    Attributes:
        format: The version of its format.
        identity: Its id, and the mark of the secret that it is used with.
        is_encrypted: Whether its records are.
        rows: How many rows its tables have.
    """

    format: int
    identity: Identity
    is_encrypted: bool
    rows: int


class Survey:
    """A store that is looked at.

    Args:
        prover: Reads its file.
        path: The file.

    Attributes:
        head: What it says of itself.

    Raises:
        StoreDamagedError: it is no store, or one that is damaged.
        StoreTooNewError: a newer program wrote it.
    """

    def __init__(self, prover: Prover, path: Path) -> None:
        self._prover = prover
        self._path = path
        names = prover.names(max(prover.heads()))
        found = names.get(FORMAT_KEY)
        if found is None or not found.isdigit():
            raise StoreDamagedError(
                f"{path} is no Greenroom store, or its format record is damaged; {REMEDY}"
            )
        if int(found) > FORMAT_VERSION:
            raise StoreTooNewError(
                f"{path} has store format {int(found)} and this program reads up to {FORMAT_VERSION}; "
                "upgrade Greenroom"
            )
        self._seal = names.get(SEAL_KEY)
        identity = Identity(
            *((names.get(key) or b"").decode(errors="replace") for key in (STORE_KEY, SECRET_KEY))
        )
        if not all(_PLAIN.fullmatch(word) for word in identity):  # files are named by them
            raise StoreDamagedError(f"what {path} says of its id or of its secret is damaged; {REMEDY}")
        self.head = Head(
            int(found), identity, self._seal is not None, sum(tree.rows for tree in prover.trees())
        )

    def codec(self, encryption: Encryption | None) -> RecordCodec:
        """Return what reads its records.

        Raises:
            StoreKeyError: it is encrypted, and the key is another one or cannot be had.
        """
        if self._seal is None:
            return PlainCodec()
        from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see `lmdb.encryption`

        unlock = None if encryption is None else encryption.key()
        return record_cipher.SealedCodec(record_cipher.unwrap(self._seal, unlock, str(self._path)))

    def rows(
        self, index: str, of: type[T], codec: RecordCodec, *, start: bytes = b""
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the sort keys of the rows of a shared index, from one on, and what the rows say.

        Raises:
            StoreDamagedError: a page or a record is not what was written.
        """
        prefix = keys.index_prefix(index)
        with closing(Prover(self._path, codec)) as prover:
            found = ProvenSnapshot(prover).scan(INDEXES, prefix, start=prefix + keys.sortable(start))
            for key, payload in found:
                record = keys.decode(payload, keys.RowRecord)
                place = record.sort_key or keys.sort_key_of(index, key)
                yield place, keys.decode(record.value, of)

    def journal_head(self, journal: str, codec: RecordCodec) -> ChainPosition:
        """Return where a journal ends by what the store says; nobody vouches for that here.

        Raises:
            StoreDamagedError: a page or the record is not what was written.
        """
        with closing(Prover(self._path, codec)) as prover:
            payload = ProvenSnapshot(prover).get(META, head_key(journal))
        return ChainPosition() if payload is None else keys.decode(payload, ChainPosition)


@contextmanager
def surveyed(folder: Path) -> Iterator[Survey]:
    """Look at the store of a folder while the block runs.

    Raises:
        StoreDamagedError, StoreTooNewError: as `Survey`.
        StoreError: there is none, or it cannot be read.
    """
    path = folder / DATA_FILE
    try:
        prover = Prover(path, None)
    except FileNotFoundError:
        raise StoreError(f"there is no store in {folder}") from None
    except OSError as error:
        raise folder_error(error, f"{path} cannot be read") from error
    with closing(prover):
        yield Survey(prover, path)
