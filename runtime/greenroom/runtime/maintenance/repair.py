"""Repair: save the sound part of a damaged store, and list exactly what is missing.

The file is read without LMDB, which a damaged page can crash: each page and record must be proven (see
`DamagedStore`). An unproven one makes a *gap*. Repair fails closed:

1. An actor that a gap may affect is set aside whole: the new store has none of its records, and none of its
   rows in shared indexes. A part of it could contradict the whole, for example show what was forgotten or is
   private.
2. For kinds with a rule (see `remains`), the rule keeps sound entries one by one.
3. Some actors are *mended*: they get other records instead, such as all keys in revoked form.
4. Revocations are replayed to the new store's actors when it is opened (see `journal.revocations`).
5. The stored reply to an idempotent request is removed if the request's effect is left out, so that a repeat
   carries it out again. All other replies stay, so that nothing is done twice.
6. If rows of shared indexes are missing, whole and partly kept actors get `Restate`: these tells wait in the
   new store until it is opened.

Records are copied as they are, so an encrypted store stays encrypted under the same key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import msgspec

from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import StoreDamagedError, StoreError
from greenroom.runtime.journal.revocations import META_KEY
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import (
    ACTORS,
    FORMAT_KEY,
    IDENTITY_KEYS,
    INDEXES,
    META,
    MIN_SIZE,
    SEAL_KEY,
    TABLES,
    store_error,
)
from greenroom.runtime.lmdb.files import folder_error, sync_file
from greenroom.runtime.lmdb.key_blinding import plain_key, strip_plain_key, with_plain_key
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.maintenance.backup import publish
from greenroom.runtime.maintenance.damaged_store import DamagedStore, MissingRange, Sound, key_text
from greenroom.runtime.maintenance.remains import Remains, RepairRule, UndoneAnswers
from greenroom.runtime.maintenance.temporary_copies import remove_left_over, temporary
from greenroom.runtime.store.integrity import TableReport, inspect_file
from greenroom.runtime.store.page_proofs import Prover

Mend = Callable[[Mapping[bytes, bytes]], Mapping[bytes, bytes]]
"""Maps the sound records of an actor, by their own keys, to their replacements."""


class Restate(Message[None], frozen=True):
    """Rewrite the actor's rows in shared indexes, because a repair may have lost some rows."""


class Losses(NamedTuple):
    """The losses of a repair: how many rows, their ranges, actors, and entries."""

    missing_rows: int
    ranges: int
    set_aside: int
    mended: int
    left_out: int


Tell = Callable[[Losses], tuple[Address, Message[None]]]
"""Returns the actor that the new store informs of the losses when it is opened, and the message."""

_BATCH: Final = 5_000
_PARCELS: Final = (keys.TIMERS, keys.OUTBOX, keys.DEAD)


@dataclass(frozen=True, slots=True)
class RepairInfo:
    """The result of a repair.

    Attributes:
        missing_rows: The number of rows that cannot be read.
        ranges: The ranges of these rows.
        set_aside: The actors, as ``kind/key``, that may lack records and are not in the new file. In an
            encrypted store, digits stand for a hidden key.
        mended: The actors that got other records instead, such as keys that are all revoked.
        restating: The number of actors that rewrite their rows in shared indexes when the new file is opened.
        left_out: Entries that are missing from actors in the new file, as ``kind/key/name``.
    """

    path: Path
    file_bytes: int
    tables: tuple[TableReport, ...]
    missing_rows: int
    ranges: tuple[MissingRange, ...]
    set_aside: tuple[str, ...]
    mended: tuple[str, ...]
    restating: int = 0
    left_out: tuple[str, ...] = ()


def repair(
    folder: Path,
    destination: Path,
    *,
    encryption: Encryption | None = None,
    mends: Mapping[Address, Mend] | None = None,
    rules: Mapping[str, RepairRule] | None = None,
    restating: Collection[str] = (),
    tell: Tell | None = None,
) -> RepairInfo:
    """Write the sound part of a stopped store into a new file for `restore`.

    The file has mode 0600. The store itself does not change.

    Args:
        folder: The folder of the store.
        destination: A file that does not exist, in a folder that does.
        encryption: Provides the key of an encrypted store.
        mends: Replaces records of these actors if they may lack some, instead of setting the actors aside.
        rules: By kind, what to keep of actors that may lack records. These kinds handle `Restate`.
        restating: The kinds of actors that handle `Restate`.
        tell: Makes the message that reports the repair in the new store.

    Raises:
        StoreDamagedError: nothing can be saved, because the tables cannot be identified.
        StoreError: see its subclasses; or the destination exists.
    """
    destination = destination.absolute()
    if os.path.lexists(destination):
        raise StoreError(f"{destination} exists and is not overwritten; name a new file")
    with FolderLock(folder, create=False) as owner:
        data = owner.store_file()
        what = f"what is sound of {data} cannot be written to {destination}"
        try:
            with suppress(StoreDamagedError):
                owner.is_unchanged()  # if the file was changed, the lock records that
            remove_left_over(owner.folder)
            with (
                closing(Prover(data, None)) as prover,
                temporary(destination.parent, of=owner.folder) as (part, _),
            ):
                try:
                    damaged = DamagedStore(prover, encryption, data)
                except StoreDamagedError as error:
                    raise StoreDamagedError(
                        f"nothing can be saved, for the tables are not found: {error}"
                    ) from error
                saved = _Saved(damaged, mends or {}, rules or {}, restating, tell)
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
        left_out=tuple(sorted(saved.left_out)),
    )


class _Saved:
    """The content of the new store."""

    def __init__(
        self,
        damaged: DamagedStore,
        mends: Mapping[Address, Mend],
        rules: Mapping[str, RepairRule],
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
        self._rules = rules
        self._named: dict[bytes, Address] | None = None
        self._partly: dict[bytes, RepairRule] = {}
        self._lacking: dict[bytes, bool] = {}
        self._undone = UndoneAnswers()
        self.set_aside: set[str] = set()
        self.mended: set[str] = set()
        self.restating: set[Address] = set()
        self.left_out: list[str] = []

    def write(self, path: Path) -> None:
        """Write the new store."""
        named = ((key, self._damaged.names.get(key)) for key in (FORMAT_KEY, SEAL_KEY, *IDENTITY_KEYS))
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
            # This key is left out, so that all revocations are replayed.
            meta = ((key, record) for key, record in self._damaged.sound(META) if key != META_KEY)
            tables = (self._records(), chain(self._rows(), self._tells()), meta)
            for name, rows in zip(TABLES, tables, strict=True):
                table = environment.open_db(name)
                while batch := list(islice(rows, _BATCH)):
                    with environment.begin(write=True) as transaction, transaction.cursor(table) as cursor:
                        cursor.putmulti(batch)

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        mending: dict[bytes, dict[bytes, bytes]] = {prefix: {} for prefix in self._mends}
        rows = self._damaged.sound(ACTORS)
        for prefix, sound in groupby(rows, lambda row: self._damaged.prefix_in(row.key)):
            if not self._lacks(prefix):
                self._note_whole(prefix)
                yield from ((key, record) for key, record in sound)
            elif prefix in mending:
                mending[prefix].update(self._decode_own(prefix, sound))
            else:
                yield from self._keep_by_rule(prefix, sound)
        for prefix, (address, mend) in self._mends.items():
            if self._lacks(prefix):
                self.mended.add(str(address))
                for own, payload in sorted(mend(mending[prefix]).items()):
                    yield self._seal(prefix + keys.OWN, own, own, payload)

    def _decode_own(self, prefix: bytes, sound: Iterable[Sound]) -> dict[bytes, bytes]:
        """Return an actor's own records, decoded, by their keys within the actor."""
        own, is_hidden = prefix + keys.OWN, self._damaged.blinder is not None
        found = {}
        for key, record in sound:
            if key.startswith(own):
                payload, hidden = self._damaged.codec.open(key, record), key[len(own) :]
                if is_hidden:
                    hidden, payload = plain_key(payload, hidden), strip_plain_key(payload)
                found[hidden] = payload
        return found

    def _seal(self, own: bytes, key: bytes, hidden: bytes, payload: bytes) -> tuple[bytes, bytes]:
        """Return the stored key and record of an actor's record; ``hidden`` is its blinded key."""
        if self._damaged.blinder is not None:
            payload = with_plain_key(key, hidden, payload)
        return own + hidden, self._damaged.codec.seal(own + hidden, payload)

    def _keep_by_rule(self, prefix: bytes, sound: Iterable[Sound]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records that a rule keeps of an incomplete actor; otherwise set it aside."""
        kind, _, rest = prefix.partition(b"\0")
        rule, address = self._rules.get(kind.decode()), self._address_at(prefix)
        kept = None
        if rule is not None and address is not None:
            own = prefix + keys.OWN
            hide = partial(rule.hide, self._damaged.blinder, own)
            records = self._decode_own(prefix, sound)
            with suppress(msgspec.DecodeError):  # another program wrote it
                kept = rule.keep(Remains(address, records, self._damaged.gaps_of(prefix), own, hide))
                self._undone.add(kept.undone)
        if rule is None or address is None or kept is None or not kept.records:
            is_hidden = address is None
            self.set_aside.add(f"{kind.decode()}/{rest.hex() if is_hidden else key_text(rest[:-1])}")
            return
        self._partly[prefix] = rule
        self.restating.add(address)
        self.left_out += (f"{address}/{name}" for name in kept.left_out)
        for key, payload in kept.records.items():
            yield self._seal(own, key, hide(key), payload)

    def _address_at(self, prefix: bytes) -> Address | None:
        """Return the address of the actor with this prefix; its rows reveal a hidden one."""
        if self._damaged.blinder is None:
            kind, _, rest = prefix.partition(b"\0")
            return Address(kind.decode(), rest[:-1].decode())
        if self._named is None:
            self._named = {}
            for key, record in self._damaged.sound(INDEXES):
                address = self._address_in(key, record)
                if address is not None and address.kind in self._rules:
                    self._named[keys.prefix_of(address, self._damaged.blinder)] = address
        return self._named.get(prefix)

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        for key, record in self._damaged.sound(INDEXES):
            if key.startswith(keys.OUTBOX):
                self._last_number = int.from_bytes(key[len(keys.OUTBOX) :])
            if self._undone.takes(key, partial(self._damaged.codec.open, key, record)):
                continue
            address = self._address_in(key, record)
            if address is None:
                yield key, record
                continue
            prefix = keys.prefix_of(address, self._damaged.blinder)
            if not self._lacks(prefix):
                if address.kind in self._kinds:
                    self.restating.add(address)
                yield key, record
            elif (rule := self._partly.get(prefix)) is not None:
                if not key.startswith(keys.TIMERS) and key.partition(b"\0")[0].decode() not in rule.indexes:
                    yield key, record
            elif prefix not in self._mends:
                self.set_aside.add(str(address))

    def _note_whole(self, prefix: bytes) -> None:
        """Record an actor that lacks nothing; if hidden, only its rows reveal its key."""
        kind = prefix[: prefix.index(0)].decode()
        if self._damaged.blinder is None and kind in self._kinds:
            address = self._address_at(prefix)
            assert address is not None, "it is in the clear"
            self.restating.add(address)

    def _tells(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the tells for the opening of the new store."""
        tells: list[tuple[Address, Message[None]]] = []
        if self._tell is not None:
            losses = Losses(
                missing_rows=self._damaged.missing_rows,
                ranges=sum(map(len, self._damaged.gaps)),
                set_aside=len(self.set_aside),
                mended=len(self.mended),
                left_out=len(self.left_out),
            )
            tells.append(self._tell(losses))
        tells += ((address, Restate()) for address in sorted(self.restating))
        for number, (address, message) in enumerate(tells, start=self._last_number + 1):
            key = keys.OUTBOX + number.to_bytes(keys.NUMBER_BYTES)
            stored = keys.StoredMessage(*address, type(message).__name__, keys.encode_json(message))
            yield key, self._damaged.codec.seal(key, keys.encode(stored))

    def _lacks(self, prefix: bytes) -> bool:
        found = self._lacking.get(prefix)
        if found is None:
            found = self._lacking[prefix] = bool(self._damaged.gaps_of(prefix))
        return found

    def _address_in(self, key: bytes, record: bytes) -> Address | None:
        """Return the actor that owns or receives a row; None if there is no actor."""
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
