"""What a handler may use: its own records, shared rows, tells, timers; nothing else.

A `Context` stages effects; the kernel commits them together when the handler
returns and forgets them when it raises. Reads see what this message staged, then
what earlier messages of the actor staged and is still on its way to disk, then
the store.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from greenroom.runtime._tracks import Tracks
from greenroom.runtime.actor.actor import check_told
from greenroom.runtime.actor.effects import Staged
from greenroom.runtime.base.errors import StoreError, UnknownKindError
from greenroom.runtime.journal.chain import entry
from greenroom.runtime.journal.revocations import LastingEntry
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.key_blinding import Names, Veil, key_of, no_names, unwrapped, wrapped
from greenroom.runtime.lmdb.keys import MAX_KEY_BYTES
from greenroom.runtime.lmdb.write_batch import PAGE
from greenroom.runtime.store.store import ACTORS

if TYPE_CHECKING:
    from greenroom.runtime.actor.actor import Message
    from greenroom.runtime.actor.audit_buffer import Notes
    from greenroom.runtime.base.address import Address
    from greenroom.runtime.base.errors import Refusal
    from greenroom.runtime.journal.chain import Keys
    from greenroom.runtime.journal.checkpoints import Seen
    from greenroom.runtime.journal.secrets import Secret
    from greenroom.runtime.lmdb.keys import Index
    from greenroom.runtime.lmdb.snapshot import Glance
    from greenroom.runtime.lmdb.write_batch import Changes
    from greenroom.runtime.store.store import Store

T = TypeVar("T")
_COPIES = 2
"""Pages that a row may take while it is deleted: those of the commit before cannot be used yet."""
Overlay = dict[bytes, tuple[int, bytes | None]]
"""Own records on their way to disk: full key -> (number of the work, payload or None for a delete)."""


class Domain:
    """What all contexts of one runtime share.

    Attributes:
        companion: What runs beside the actors, once it does.
        is_heard: Says whether somebody wants to hear of a topic.
        glance: The view of the actors' records that the present pass of the dispatcher reads.
        prefixes: The bytes before each row, by index.
        veil: Hides names in the keys of an encrypted store.
        secret: The store's, if it is used with one.
        journals: The runtime's, by name.
        notes: What waits to be appended to them.
        keys: The keys of each journal.
        seen: What was seen of the journals before.
        tracks: Which actors wrote rows that somebody keeps in memory.
        kept: What queries keep in memory, by what made it.
    """

    def __init__(
        self,
        store: Store,
        indexes: Mapping[str, Index],
        randomness: random.Random,
        slice_over: Callable[[], bool],
        notes: Notes,
        secret: Secret | None = None,
    ) -> None:
        self.store = store
        self.notes = notes
        self.journals = notes.journals
        self.keys: Mapping[str, Keys] = {}
        self.seen: Seen | None = None
        self.secret = secret
        self.glance: Glance = store.glance(ACTORS)
        self.indexes = indexes
        self.prefixes = {name: keys.index_prefix(name) for name in indexes}
        self.veil = store.veil
        self.random = randomness
        self.slice_over = slice_over
        self.last_number = 0
        self.tracks = Tracks()
        self.kept: dict[Callable[[], Any], Any] = {}
        self.companion: Any = None
        self.is_heard: Callable[[str], bool] = lambda _: False

    def note(self, journal: str, value: Any) -> None:
        """Have a row of a journal follow soon, as `Context.note` does."""
        if journal not in self.journals:
            raise UnknownKindError(f"no journal {journal!r} was given to open_runtime")
        self.notes.add(journal, value)

    def deny(self, principal: Any, address: Address | None, message: Any, refusal: Refusal) -> None:
        """Note a denial in the journals that want to know; whom the refusal reaches then notes it no more."""
        for name, journal in self.journals.items():
            if journal.denied is not None:
                refusal.is_denial = False
                self.notes.add(name, journal.denied(principal, address, message, refusal))

    def derive(self, purpose: str) -> bytes:
        """Return the key for a purpose, as `Doors.derive` does."""
        if self.secret is None:
            raise StoreError("the runtime was opened without a secret")
        return self.secret.derive(purpose)

    def hidden(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key, or the beginning of one, as the store has it."""
        if self.veil is None:
            return sort_key
        return self.veil.hidden(self.prefixes[index], sort_key, self.indexes[index].names)

    def next_number(self) -> int:
        """Return a number for a tell or a timer, above all that are in the store."""
        self.last_number += 1
        return self.last_number


class Home:
    """Where in the store an actor lives, and what of its records is on its way there.

    Attributes:
        address: The actor's address.
        prefix: The bytes before each of its keys.
        own: The bytes before each of its own records' keys.
        veil: Hides names in keys, in an encrypted store.
        names: Which parts of its records' keys are names.
        overlay: Own records on their way to disk.
        row_head: What its rows in shared indexes begin with, once it writes.
        row_tail: What the keys of its rows end with, once it writes.
    """

    __slots__ = ("address", "names", "overlay", "own", "prefix", "row_head", "row_tail", "veil")

    def __init__(self, address: Address, names: Names = no_names, veil: Veil | None = None) -> None:
        self.address = address
        self.names = names
        self.veil = veil
        self.prefix = keys.prefix_of(address, veil)
        self.own = self.prefix + keys.OWN
        self.overlay: Overlay = {}
        self.row_head = self.row_tail = b""

    def stage(self) -> Staged:
        """Return effects of this actor, none yet."""
        if not self.row_tail:  # not before it writes, since most actors are only read
            self.row_head = keys.row_head(self.address)
            self.row_tail = keys.END_OF_SORT_KEY + keys.tag_of(self.address, self.veil)
        return Staged()

    def place(self, key: bytes) -> bytes:
        """Return where in the store the own record at ``key`` lies, or what a scan begins with."""
        return self.own + (key if self.veil is None else self.veil.hidden(self.own, key, self.names))


class Context:
    """Everything that a handler may use while it handles one message.

    Attributes:
        address: The actor's own address.
        principal: Who sent the message, as the sender stated it; None for tells and timers.
        answer: The answer to the message's `Message.question`, else None.
        now: The wall clock in microseconds since 1970 UTC, the same throughout the message.
        effects: What is staged; None as long as nothing is.
    """

    __slots__ = ("_domain", "_home", "address", "answer", "effects", "now", "principal")

    def __init__(self, domain: Domain, home: Home, principal: Any, answer: Any, now: int) -> None:
        self._domain = domain
        self._home = home
        self.address = home.address
        self.principal = principal
        self.answer = answer
        self.now = now
        self.effects: Staged | None = None

    @property
    def random(self) -> random.Random:
        """The runtime's source of randomness."""
        return self._domain.random

    @property
    def companion(self) -> Any:
        """What runs beside the actors, as `open_runtime` was told; None until it does.

        A handler may ask it what takes no waiting, and what leaves no trace.
        """
        return self._domain.companion

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose, 32 bytes that no store and no backup holds.

        Raises:
            StoreError: the runtime was opened without a secret.
        """
        return self._domain.derive(purpose)

    def slice_over(self) -> bool:
        """Return whether a generator handler should yield now, so that others get the event loop."""
        return self._domain.slice_over()

    def get(self, key: bytes, of: type[T]) -> T | None:
        """Return the own record at ``key`` (at most 200 bytes), or None."""
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        home = self._home
        full = home.own + key if home.veil is None else home.place(key)
        if self.effects is not None and full in self.effects.own:
            payload = self.effects.own[full]
        else:
            pending = home.overlay.get(full)
            payload = self._domain.glance.get(full) if pending is None else pending[1]
        if payload is None:
            return None
        return keys.decode(payload if home.veil is None else unwrapped(payload), of)

    def scan(
        self, of: type[T], *, prefix: bytes = b"", start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the own records whose key begins with ``prefix``, in key order; names sort anyhow.

        Args:
            of: The type of the records.
            prefix: What the keys begin with.
            start: The first key wanted, inclusive; with ``reverse`` the highest.
            reverse: From the highest key down.
        """
        home = self._home
        cut = len(home.own)
        first = None if start is None else home.place(start)
        begin = home.place(prefix)
        stored = self._domain.store.scan(ACTORS, begin, start=first, reverse=reverse)
        pending = {key: payload for key, (_, payload) in home.overlay.items() if key.startswith(begin)}
        if self.effects is not None:
            pending.update(
                (key, payload) for key, payload in self.effects.own.items() if key.startswith(begin)
            )
        if first is not None:
            pending = {
                key: payload
                for key, payload in pending.items()
                if (key <= first if reverse else key >= first)
            }
        for key, payload in _merged(stored, pending, reverse=reverse) if pending else stored:
            if home.veil is None:
                yield key[cut:], keys.decode(payload, of)
            else:
                yield key_of(payload, key[cut:]), keys.decode(unwrapped(payload), of)

    def put(self, key: bytes, value: Any) -> None:
        """Stage ``value`` (anything msgspec encodes) as the own record at ``key`` (at most 200 bytes)."""
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        staged = self.effects or self._staged()
        home = self._home
        if home.veil is None:
            staged.own[home.own + key] = keys.encode(value)
        else:
            full = home.place(key)
            staged.own[full] = wrapped(key, full[len(home.own) :], keys.encode(value))

    def delete(self, key: bytes) -> None:
        """Stage the removal of the own record at ``key``; a missing one is no error."""
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        staged = self.effects or self._staged()
        staged.own[self._home.place(key)] = None

    def put_row(self, index: str, sort_key: bytes, value: Any) -> None:
        """Stage a row of a shared index under (``sort_key``, this actor); a sort key takes 200 bytes."""
        staged = self.effects or self._staged()
        hidden = self._hidden(index, sort_key)
        record = self._home.row_head + keys.encode(value)
        if hidden != sort_key:
            record = keys.with_sort_key(record, sort_key)
        staged.rows[self._row_key(index, hidden)] = record

    def delete_row(self, index: str, sort_key: bytes) -> None:
        """Stage the removal of this actor's row at ``sort_key`` of a shared index."""
        staged = self.effects or self._staged()
        staged.rows[self._row_key(index, self._hidden(index, sort_key))] = None

    def append(self, journal: str, value: Any) -> None:
        """Stage a row of a journal, which gets its number and its link when this message is committed."""
        if journal not in self._domain.journals:
            raise UnknownKindError(f"no journal {journal!r} was given to open_runtime")
        staged = self.effects or self._staged()
        staged.entries.append(entry(journal, self.now, 1, value))

    def lasting(self, value: Any, *, until: int) -> None:
        """Stage what an older store that is brought back is not to undo: this actor is told it `Again` then.

        It is kept in a list beside the store's secret, in the clear; a runtime without a secret keeps none.
        The actor may be told what it knows, since the list is written before the store.

        Args:
            value: Anything that msgspec encodes as JSON.
            until: When it means nothing any more (microseconds since 1970).
        """
        if self._domain.secret is not None:
            entry = LastingEntry(self.now, until, *self.address, keys.encode_json(value))
            staged = self._staged()
            staged.lasting = (*staged.lasting, entry)

    def note(self, journal: str, value: Any) -> None:
        """Have a row of a journal follow soon: no reply waits for it, and a crash may lose it.

        It stands also when this message is refused or fails. The same again within a second counts and is
        not kept twice; what finds no room is dropped and counted.
        """
        self._domain.note(journal, value)

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Stage a message that another actor gets after the commit, also when the process dies between.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        key = keys.OUTBOX + self._domain.next_number().to_bytes(8)
        parcel = keys.Parcel(address.kind, address.key, type(message).__name__, keys.encode_json(message))
        staged = self._staged()
        staged.rows[key] = keys.encode(parcel)
        staged.tells.append((key, address, message))

    def set_timer(self, name: str, due: int, message: Message[Any]) -> None:
        """Stage a message to this actor itself at ``due`` (microseconds since 1970).

        There is one timer a name (at most 200 bytes): a second one replaces the first.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        self.cancel_timer(name)
        parcel = keys.Parcel(*self.address, type(message).__name__, keys.encode_json(message), name)
        tag = keys.timer_tag(self.address, name, self._domain.next_number())
        row = keys.timer_key(due, tag if self._home.veil is None else self._home.veil.tag(tag))
        staged = self._staged()
        staged.rows[row] = keys.encode(parcel)
        staged.own[self._timer_name_key(name)] = row
        staged.next_due = min(due, staged.next_due or due)

    def cancel_timer(self, name: str) -> None:
        """Stage the removal of the timer ``name``; a missing one is no error."""
        row = self.timer_row(name)
        if row is not None:
            self.stage_rows({row: None})
            self._staged().own[self._timer_name_key(name)] = None

    def stage_rows(self, rows: Changes) -> None:
        """Stage rows of the runtime itself; for the kernel."""
        self._staged().rows.update(rows)

    def timer_due(self, name: str) -> int | None:
        """Return when the timer ``name`` is due (microseconds since 1970), or None when none is set."""
        row = self.timer_row(name)
        return None if row is None else keys.timer_due(row)

    def timer_row(self, name: str) -> bytes | None:
        """Return the stored row of the timer ``name``, or None; the kernel tells by it what was set anew."""
        key = self._timer_name_key(name)
        if self.effects is not None and key in self.effects.own:
            return self.effects.own[key]
        pending = self._home.overlay.get(key)
        return self._domain.glance.get(key) if pending is None else pending[1]

    def publish(self, topic: str, label: Hashable = None) -> None:
        """Stage word to the subscribers of ``topic`` that it changed, handed over after the commit.

        It is not stored: after a crash nobody hears of it, and who subscribes anew reads anew.

        Args:
            topic: What changed.
            label: What subscribers decide by whether they may hear of it. Equal ones become one.
        """
        staged = self.effects or self._staged()
        staged.publications[topic, label] = None

    def is_heard(self, topic: str) -> bool:
        """Return whether a subscriber wants to hear of ``topic`` now, in whichever process on the folder.

        It is as of this moment and of this process's knowledge: after a takeover an attached process is known
        of once it has attached again.
        """
        return self._domain.is_heard(topic)

    def use_reserve(self, *, dispensable: bool = False) -> None:
        """Let this message's effects use the space kept back for deletes, expiry and audit.

        Args:
            dispensable: Whether the reply leaves even when there is no room at all for the effects,
                which are then dropped and counted. For rows of shared indexes only.
        """
        staged = self._staged()
        staged.reserve = True
        staged.dispensable = dispensable

    def most_rows(self, most: int) -> int:
        """Return how many rows a message that may use the reserve should touch at once; at least one.

        A row that is deleted or changed takes a new page until the commit after the next one, so that
        what empties a full store has to do it in small steps.

        Args:
            most: How many it would be with plenty of room.
        """
        return max(1, min(most, self._domain.store.room() // (_COPIES * PAGE)))

    def _staged(self) -> Staged:
        if self.effects is None:
            self.effects = self._home.stage()
        return self.effects

    def _timer_name_key(self, name: str) -> bytes:
        return keys.timer_name_key(self._home.prefix, name, self._home.veil)

    def _hidden(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key as the store has it."""
        if index not in self._domain.prefixes:
            raise UnknownKindError(f"no index {index!r} was given to open_runtime")
        if len(sort_key) > MAX_KEY_BYTES:
            raise keys.too_long("a row's sort key", sort_key)
        return self._domain.hidden(index, sort_key)

    def _row_key(self, index: str, hidden: bytes) -> bytes:
        """Return what `lmdb.keys.row_key` does."""
        return self._domain.prefixes[index] + hidden.replace(b"\0", b"\0\xff") + self._home.row_tail


def _merged(
    stored: Iterator[tuple[bytes, bytes]], pending: dict[bytes, bytes | None], *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Yield stored records in key order, with pending puts and deletes laid over them."""
    waiting = sorted(pending, reverse=not reverse)  # the next one is at the end
    for key, payload in stored:
        while waiting and (waiting[-1] > key if reverse else waiting[-1] < key):
            fresh = waiting.pop()
            if (added := pending[fresh]) is not None:
                yield fresh, added
        if key not in pending:
            yield key, payload
    for fresh in reversed(waiting):
        if (added := pending[fresh]) is not None:
            yield fresh, added
