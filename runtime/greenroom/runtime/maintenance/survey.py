"""Read a stopped store without running its actors.

A `Survey` needs neither LMDB nor the lock, and changes nothing. Each page on the way is proven (see
`store.page_proofs`), so a damaged file causes an error, not a crash. A process that acquires the folder
during the survey may overwrite what is read: retry after an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from greenroom.runtime.base.errors import StoreDamagedError, StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.journal.chain import ChainPosition, head_key
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec, pass_over
from greenroom.runtime.lmdb.encryption import Encryption, unseal
from greenroom.runtime.lmdb.environment import (
    FORMAT_KEY,
    FORMER_KEY,
    INDEXES,
    META,
    REMEDY,
    SEAL_KEY,
    SECRET_KEY,
    STORE_KEY,
    FormerFormat,
    Identity,
    parse_format,
)
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import check_store, inspect_file
from greenroom.runtime.store.page_proofs import ProvenSnapshot, Prover
from greenroom.runtime.store.recent_table import read_recent
from greenroom.runtime.store.record_damage import DamagedRecord
from greenroom.runtime.store.store import Store

T = TypeVar("T")
_PLAIN: Final = re.compile(r"[0-9a-f]*")


class Head(NamedTuple):
    """The facts about a store that are readable without its key."""

    format: int
    identity: Identity
    is_encrypted: bool
    rows: int
    former: FormerFormat | None = None


class Survey:
    """A reader of a stopped store that is sound and not too new."""

    def __init__(self, prover: Prover, path: Path) -> None:
        self._prover = prover
        self._path = path
        names = prover.names(max(prover.heads()))
        version = parse_format(names.get(FORMAT_KEY), path)
        self._seal = names.get(SEAL_KEY)
        identity = Identity(
            *((names.get(key) or b"").decode(errors="replace") for key in (STORE_KEY, SECRET_KEY))
        )
        if not all(_PLAIN.fullmatch(word) for word in identity):  # the words become parts of file names
            raise StoreDamagedError(f"what {path} says of its id or of its secret is damaged; {REMEDY}")
        former = FormerFormat.parse(names.get(FORMER_KEY))
        rows = sum(tree.rows for tree in prover.trees())
        self.head = Head(version, identity, self._seal is not None, rows, former)

    def codec(self, encryption: Encryption | None) -> RecordCodec:
        """Return the codec of its records."""
        if self._seal is None:
            return PlainCodec()
        unlock = None if encryption is None else encryption.key()
        return unseal(self._seal, unlock, str(self._path)).codec

    def rows(
        self, index: str, of: type[T], codec: RecordCodec, *, start: bytes = b""
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the sort keys and values of a shared index's rows, from ``start`` on."""
        prefix = keys.index_prefix(index)
        with closing(Prover(self._path, codec)) as prover:
            recent, _ = read_recent(self._path, codec)
            found = ProvenSnapshot(prover, recent=recent).scan(
                INDEXES, prefix, start=prefix + keys.sortable(start)
            )
            for key, payload in found:
                record = keys.decode(payload, keys.RowRecord)
                place = record.sort_key or keys.sort_key_of(index, key)
                yield place, keys.decode(record.value, of)

    def journal_head(self, journal: str, codec: RecordCodec) -> ChainPosition:
        """Return the end of a journal according to its head, without checking the signature."""
        with closing(Prover(self._path, codec)) as prover:
            recent, _ = read_recent(self._path, codec)
            payload = ProvenSnapshot(prover, recent=recent).get(META, head_key(journal))
        return ChainPosition() if payload is None else keys.decode(payload, ChainPosition)


def damaged_records_of(
    folder: Path, encryption: Encryption | None, poll: Callable[[], None]
) -> tuple[DamagedRecord, ...]:
    """Read all of a store in a child; return its damaged records."""
    found: list[DamagedRecord] = []
    unlock = None if encryption is None else encryption.key()
    inspect_file(folder / DATA_FILE, records=True, unlock=unlock, poll=poll, on_damage=found.append)
    return tuple(found)


@contextmanager
def open_survey(folder: Path) -> Iterator[Survey]:
    """Open the survey of a folder's store while the block runs."""
    path = folder / DATA_FILE
    try:
        prover = Prover(path, None)
    except FileNotFoundError:
        raise StoreError(f"there is no store in {folder}") from None
    except OSError as error:
        raise folder_error(error, f"{path} cannot be read") from error
    with closing(prover):
        yield Survey(prover, path)


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

    This blocks; after an unclean end it also waits for the check of the structure.

    Raises:
        StoreOwnedError: a process owns the folder; use its `Runtime.statistics`.
        StoreError: see its subclasses.
    """
    options = options if options is not None else RuntimeOptions()
    with FolderLock(folder, create=False) as owner:
        owner.store_file()
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
    """Return the statistics of a stopped store; see `stopped_store`."""
    with stopped_store(folder, options, encryption=encryption) as store:
        return store.statistics()
