"""Saving what is sound of a damaged store, and saying exactly what is not.

The file is read without LMDB, which a damaged page can kill: each page and each record must prove itself (see
`salvage`). Where one does not there is a *gap*. It fails closed:

1. An actor that a gap may have taken something from is set aside whole: none of its records is in the new
   store, and none of its rows in shared indexes. A part of it could say what the whole did not, such as that
   something is still there that was forgotten, or is everybody's to see.
2. Some are *mended*: other records are there instead, such as all keys, revoked.
3. What outlasts restored backups is told to the new store's actors when it is opened (see
   `journal.revocations`).
4. Where rows of shared indexes are missing, the actors that are whole are told to `Restate` theirs: the tells
   wait in the new store for whoever opens it.

Records are copied as they are, so an encrypted store stays one, under the same key.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import msgspec

from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import StoreDamagedError, StoreError
from greenroom.runtime.journal.revocations import META_KEY
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec
from greenroom.runtime.lmdb.encryption import NAMES, Encryption
from greenroom.runtime.lmdb.environment import (
    ACTORS,
    FORMAT_KEY,
    INDEXES,
    META,
    MIN_SIZE,
    SEAL_KEY,
    SECRET_KEY,
    STORE_KEY,
    TABLES,
    store_error,
)
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error, sync_file
from greenroom.runtime.lmdb.key_blinding import NAME_BYTES, KeyBlinder, strip_plain_key, with_plain_key
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.maintenance.backup import publish, temporary
from greenroom.runtime.maintenance.orphan_pages import Orphans
from greenroom.runtime.maintenance.salvage import Gap, Sound, salvage
from greenroom.runtime.maintenance.table_recovery import recover_tables
from greenroom.runtime.store.integrity import TableReport, inspect_file
from greenroom.runtime.store.page_proofs import Prover

Mend = Callable[[Mapping[bytes, bytes]], Mapping[bytes, bytes]]
"""Given the sound records of an actor, by their own keys, returns those that are to take their place."""


class Restate(Message[None], frozen=True):
    """Write the rows again that the actor has in shared indexes: a repaired store may lack some of them."""


class Losses(NamedTuple):
    """How much was lost, for who is told of a repair.

    Attributes:
        missing_rows: How many rows cannot be read.
        ranges: In how many places.
        set_aside: How many actors are not in the new store.
        mended: How many are there with other records.
    """

    missing_rows: int
    ranges: int
    set_aside: int
    mended: int


Tell = Callable[[Losses], tuple[Address, Message[None]]]
"""Given what was lost, returns whom the new store is to tell of it when it is opened, and what."""

_BATCH: Final = 5_000
_OWN: Final = b"!"
_AFTER_OWN: Final = b'"'
_PARCELS: Final = (keys.TIMERS, keys.OUTBOX, keys.DEAD)


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Where something is missing.

    Attributes:
        table: Of which table.
        start: From this key on, with escapes.
        end: To before this one; empty for the end of the table.
        why: What was wrong there.
    """

    table: str
    start: str
    end: str
    why: str


@dataclass(frozen=True, slots=True)
class RepairInfo:
    """What was saved.

    Attributes:
        path: The new file, which `restore` takes.
        file_bytes: Its length.
        tables: What is in it.
        missing_rows: How many rows cannot be read.
        ranges: Where they were.
        set_aside: The actors, as ``kind/key``, from which something may be missing: nothing of them is in the
            new file. A key that an encrypted store hides is told by its digits.
        mended: Those of which something else is there instead, such as keys that are all revoked.
        restating: How many actors write their rows in shared indexes again when the new file is first opened.
    """

    path: Path
    file_bytes: int
    tables: tuple[TableReport, ...]
    missing_rows: int
    ranges: tuple[MissingRange, ...]
    set_aside: tuple[str, ...]
    mended: tuple[str, ...]
    restating: int = 0


def repair(
    folder: Path,
    destination: Path,
    *,
    encryption: Encryption | None = None,
    mends: Mapping[Address, Mend] | None = None,
    restating: Collection[str] = (),
    tell: Tell | None = None,
) -> RepairInfo:
    """Write what is sound of a store that nobody uses into a new file that `restore` takes; mode 0600.

    The store itself is left as it is.

    Args:
        folder: The folder of the store.
        destination: A file that does not exist, in a folder that does.
        encryption: Has the key of an encrypted store.
        mends: What becomes of actors that are not set aside when they may lack something.
        restating: The kinds of actors that handle `Restate`.
        tell: Whom the new store tells of the repair.

    Raises:
        StoreOwnedError: a process owns the folder; stop it first.
        StoreDamagedError: nothing can be saved, since what leads to the tables is damaged, and they cannot be
            told for certain without.
        StoreKeyError: the store is encrypted with another key.
        StoreError: the destination exists or cannot be written; there is no store in the folder.
    """
    destination = destination.absolute()
    if os.path.lexists(destination):
        raise StoreError(f"{destination} exists and is not overwritten; name a new file")
    part = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}")
    with FolderLock(folder, create=False) as owner:
        data = owner.folder / DATA_FILE
        if not data.exists():
            raise StoreError(f"there is no store in {owner.folder}")
        what = f"what is sound of {data} cannot be written to {destination}"
        try:
            with suppress(StoreDamagedError):
                owner.is_unchanged()  # if it is not, that is kept in mind
            with closing(Prover(data, None)) as prover, temporary(part):
                try:
                    damaged = _Damaged(prover, encryption, data)
                except StoreDamagedError as error:
                    raise StoreDamagedError(
                        f"nothing can be saved, for the tables are not found: {error}"
                    ) from error
                saved = _Saved(damaged, mends or {}, restating, tell)
                saved.write(part)
                name = f"what was saved of {data}"
                tables = inspect_file(part, name=name, records=True, unlock=damaged.unlock)
                sync_file(part)
                publish(part, destination)
        except OSError as error:
            raise folder_error(error, what) from error
        except lmdb.Error as error:
            raise store_error(error, what) from error
    return RepairInfo(
        path=destination,
        file_bytes=destination.stat().st_size,
        tables=tables,
        missing_rows=damaged.missing_rows,
        ranges=tuple(damaged.ranges()),
        set_aside=tuple(sorted(saved.set_aside)),
        mended=tuple(sorted(saved.mended)),
        restating=len(saved.restating),
    )


class _Damaged:
    """The store that was found.

    Attributes:
        names: What it says of itself before any codec does.
        bytes: The length of its file.
        gaps: Where something is missing, by table.
        missing_rows: How many rows.
    """

    def __init__(self, prover: Prover, encryption: Encryption | None, path: Path) -> None:
        self._prover = prover
        head = max(prover.heads())
        self.names = prover.names(head)
        try:
            self._trees = prover.tables(self.names)
            self._orphans = Orphans(prover, head, [self.names, *self._trees])
        except StoreDamagedError:
            self.names, self._trees = recover_tables(prover, head)
            self._orphans = Orphans(prover, head, self._trees, {head.root})
        self.bytes = path.stat().st_size
        self.unlock = None if encryption is None else encryption.key()
        self.codec: RecordCodec = PlainCodec()
        self.blinder: KeyBlinder | None = None
        seal = self.names.get(SEAL_KEY)
        if seal is not None:
            from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

            data_key = record_cipher.unwrap(seal, self.unlock, os.fspath(path))
            self.codec, self.blinder = (
                record_cipher.SealedCodec(data_key),
                KeyBlinder(record_cipher.derive(data_key, NAMES)),
            )
        self.gaps: list[list[Gap]] = []
        self.missing_rows = sum(tree.rows for tree in self._trees)
        for table in range(len(TABLES)):
            found: list[Gap] = []
            for each in self.salvage(table):
                if isinstance(each, Gap):
                    found.append(each)
                else:
                    self.missing_rows = max(0, self.missing_rows - 1)
            self.gaps.append(found)

    def salvage(self, table: int) -> Iterator[Sound | Gap]:
        """Yield what is sound of a table, and the gaps between, in order."""
        return salvage(self._prover, self._trees[table], self.codec, self._orphans)

    def sound(self, table: int) -> Iterator[Sound]:
        """Yield what is sound of a table."""
        return (each for each in self.salvage(table) if isinstance(each, Sound))

    def ranges(self) -> Iterator[MissingRange]:
        """Yield where something is missing, for people."""
        for name, gaps in zip(TABLES, self.gaps, strict=True):
            for gap in gaps:
                end = "" if gap.end is None else _text(gap.end)
                yield MissingRange(name.decode(), _text(gap.start), end, gap.why)

    @property
    def lacks_rows(self) -> bool:
        """Whether rows of shared indexes may be missing, and not only the runtime's own."""
        return any(gap.start < _OWN or gap.end is None or gap.end > _AFTER_OWN for gap in self.gaps[INDEXES])

    def may_lack(self, prefix: bytes) -> bool:
        """Say whether a record may be missing of the actor whose keys begin like this."""
        return any(gap.touches(prefix) for gap in self.gaps[ACTORS])

    def prefix_in(self, key: bytes) -> bytes:
        """Return what the keys of an actor begin with, one of which this is."""
        kind = key.index(0) + 1
        return key[: key.index(0, kind) + 1 if self.blinder is None else kind + NAME_BYTES]


class _Saved:
    """What is to be in the new store.

    Attributes:
        set_aside: Which actors are not, as `RepairInfo` has them.
        mended: Which are there with other records.
        restating: Which are told to write their rows again.
    """

    def __init__(
        self,
        damaged: _Damaged,
        mends: Mapping[Address, Mend],
        restating: Collection[str],
        tell: Tell | None,
    ) -> None:
        self._damaged = damaged
        self._kinds = frozenset(restating) if damaged.lacks_rows else frozenset()
        self._tell = tell
        self._last_number = 0
        self._mends = {
            keys.prefix_of(address, damaged.blinder): (address, mend) for address, mend in mends.items()
        }
        self._lacking: dict[bytes, bool] = {}
        self.set_aside: set[str] = set()
        self.mended: set[str] = set()
        self.restating: set[Address] = set()

    def write(self, path: Path) -> None:
        """Write it."""
        named = ((key, self._damaged.names.get(key)) for key in (FORMAT_KEY, SEAL_KEY, STORE_KEY, SECRET_KEY))
        with lmdb.open(
            os.fspath(path),
            subdir=False,
            lock=False,
            max_dbs=len(TABLES),
            map_size=2 * self._damaged.bytes + MIN_SIZE,
        ) as environment:
            with environment.begin(write=True) as transaction:
                for key, record in named:
                    if record is not None:
                        transaction.put(key, record)
            tables = (self._records(), chain(self._rows(), self._tells()), self._meta())
            for name, rows in zip(TABLES, tables, strict=True):
                table = environment.open_db(name)
                while batch := list(islice(rows, _BATCH)):
                    with environment.begin(write=True) as transaction, transaction.cursor(table) as cursor:
                        cursor.putmulti(batch)

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        mending: dict[bytes, dict[bytes, bytes]] = {prefix: {} for prefix in self._mends}
        for key, record in self._damaged.sound(ACTORS):
            prefix = self._damaged.prefix_in(key)
            if not self._lacks(prefix):
                self._is_whole(prefix)
                yield key, record
            elif prefix not in mending:
                kind, _, rest = prefix.partition(b"\0")
                is_hidden = self._damaged.blinder is not None
                self.set_aside.add(f"{kind.decode()}/{rest.hex() if is_hidden else _text(rest[:-1])}")
            elif key[len(prefix) :].startswith(keys.OWN):
                mending[prefix][key] = record
        for prefix, (address, mend) in self._mends.items():
            if self._lacks(prefix):
                self.mended.add(str(address))
                yield from self._mended(prefix + keys.OWN, mending[prefix], mend)

    def _mended(
        self, prefix: bytes, found: Mapping[bytes, bytes], mend: Mend
    ) -> Iterator[tuple[bytes, bytes]]:
        codec, is_hidden = self._damaged.codec, self._damaged.blinder is not None
        payloads = {}
        for key, record in found.items():
            payload = codec.open(key, record)
            payloads[key[len(prefix) :]] = strip_plain_key(payload) if is_hidden else payload
        for own, payload in sorted(mend(payloads).items()):
            key = prefix + own
            yield key, codec.seal(key, with_plain_key(own, own, payload) if is_hidden else payload)

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        for key, record in self._damaged.sound(INDEXES):
            if key.startswith(keys.OUTBOX):
                self._last_number = int.from_bytes(key[len(keys.OUTBOX) :])
            address = self._address_in(key, record)
            if address is None:
                yield key, record
                continue
            prefix = keys.prefix_of(address, self._damaged.blinder)
            if not self._lacks(prefix):
                if address.kind in self._kinds:
                    self.restating.add(address)
                yield key, record
            elif prefix not in self._mends:
                self.set_aside.add(str(address))

    def _is_whole(self, prefix: bytes) -> None:
        """Take note of an actor that lacks nothing. A key that is hidden only its rows may tell."""
        kind, _, rest = prefix.partition(b"\0")
        if self._damaged.blinder is None and kind.decode() in self._kinds:
            self.restating.add(Address(kind.decode(), rest[:-1].decode()))

    def _tells(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the tells that whoever opens the new store finds."""
        told: list[tuple[Address, Message[None]]] = []
        if self._tell is not None:
            losses = Losses(
                missing_rows=self._damaged.missing_rows,
                ranges=sum(map(len, self._damaged.gaps)),
                set_aside=len(self.set_aside),
                mended=len(self.mended),
            )
            told.append(self._tell(losses))
        told += ((address, Restate()) for address in sorted(self.restating))
        for number, (address, message) in enumerate(told, start=self._last_number + 1):
            key = keys.OUTBOX + number.to_bytes(keys.NUMBER_BYTES)
            stored = keys.StoredMessage(*address, type(message).__name__, keys.encode_json(message))
            yield key, self._damaged.codec.seal(key, keys.encode(stored))

    def _meta(self) -> Iterator[tuple[bytes, bytes]]:
        # Without it all that outlasts backups is told again.
        return ((key, record) for key, record in self._damaged.sound(META) if key != META_KEY)

    def _lacks(self, prefix: bytes) -> bool:
        found = self._lacking.get(prefix)
        if found is None:
            found = self._lacking[prefix] = self._damaged.may_lack(prefix)
        return found

    def _address_in(self, key: bytes, record: bytes) -> Address | None:
        """Return which actor a row is of, or is to be delivered to; None where that is nobody's matter."""
        payload = self._damaged.codec.open(key, record)
        kind: Any = None
        if not key.startswith(b"!"):
            kind = keys.RowRecord
        elif key.startswith(_PARCELS):
            kind = keys.StoredMessage
        if kind is None:
            return None
        found = msgspec.msgpack.decode(payload, type=kind)
        return Address(found.kind, found.key)


def _text(key: bytes) -> str:
    return key.decode("ascii", errors="backslashreplace").replace("\0", " ")
