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

from greenroom.runtime import _rows
from greenroom.runtime._actor import check_told
from greenroom.runtime._errors import UnknownKindError
from greenroom.runtime._rows import MAX_KEY_BYTES
from greenroom.runtime._staged import Staged
from greenroom.runtime._store import ACTORS
from greenroom.runtime._work import PAGE

if TYPE_CHECKING:
    from greenroom.runtime._actor import Message
    from greenroom.runtime._address import Address
    from greenroom.runtime._reading import Glance
    from greenroom.runtime._rows import Index
    from greenroom.runtime._store import Store
    from greenroom.runtime._work import Changes

T = TypeVar("T")
_COPIES = 2
"""Pages that a row may take while it is deleted: those of the commit before cannot be used yet."""
Overlay = dict[bytes, tuple[int, bytes | None]]
"""Own records on their way to disk: full key -> (number of the work, payload or None for a delete)."""


class Domain:
    """What all contexts of one runtime share.

    Attributes:
        companion: What runs beside the actors, once it does.
        glance: The view of the actors' records that the present pass of the dispatcher reads.
        prefixes: The bytes before each row, by index.
    """

    def __init__(
        self,
        store: Store,
        indexes: Mapping[str, Index],
        randomness: random.Random,
        slice_over: Callable[[], bool],
    ) -> None:
        self.store = store
        self.glance: Glance = store.glance(ACTORS)
        self.indexes = indexes
        self.prefixes = {name: _rows.index_prefix(name) for name in indexes}
        self.random = randomness
        self.slice_over = slice_over
        self.last_number = 0
        self.companion: Any = None

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
        overlay: Own records on their way to disk.
        row_head: What its rows in shared indexes begin with, once it writes.
        row_tail: What the keys of its rows end with, once it writes.
    """

    __slots__ = ("address", "overlay", "own", "prefix", "row_head", "row_tail")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.prefix = address.prefix()
        self.own = self.prefix + _rows.OWN
        self.overlay: Overlay = {}
        self.row_head = self.row_tail = b""

    def stage(self) -> Staged:
        """Return effects of this actor, none yet."""
        if not self.row_tail:  # not before it writes, since most actors are only read
            self.row_head = _rows.row_head(self.address)
            self.row_tail = _rows.END_OF_SORT_KEY + _rows.address_tag(self.address)
        return Staged()


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

    def slice_over(self) -> bool:
        """Return whether a generator handler should yield now, so that others get the event loop."""
        return self._domain.slice_over()

    def get(self, key: bytes, of: type[T]) -> T | None:
        """Return the own record at ``key`` (at most 200 bytes), or None."""
        if len(key) > MAX_KEY_BYTES:
            raise _rows.too_long("a record's key", key)
        full = self._home.own + key
        if self.effects is not None and full in self.effects.own:
            payload = self.effects.own[full]
        else:
            pending = self._home.overlay.get(full)
            payload = self._domain.glance.get(full) if pending is None else pending[1]
        return None if payload is None else _rows.decode(payload, of)

    def scan(
        self, of: type[T], *, prefix: bytes = b"", start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the own records whose key begins with ``prefix``, in key order.

        Args:
            of: The type of the records.
            prefix: What the keys begin with.
            start: The first key wanted, inclusive; with ``reverse`` the highest.
            reverse: From the highest key down.
        """
        own = self._home.own
        cut = len(own)
        first = None if start is None else own + start
        stored = self._domain.store.scan(ACTORS, own + prefix, start=first, reverse=reverse)
        pending = {
            key: payload for key, (_, payload) in self._home.overlay.items() if key.startswith(own + prefix)
        }
        if self.effects is not None:
            pending.update(
                (key, payload) for key, payload in self.effects.own.items() if key.startswith(own + prefix)
            )
        if first is not None:
            pending = {
                key: payload
                for key, payload in pending.items()
                if (key <= first if reverse else key >= first)
            }
        for key, payload in _merged(stored, pending, reverse=reverse) if pending else stored:
            yield key[cut:], _rows.decode(payload, of)

    def put(self, key: bytes, value: Any) -> None:
        """Stage ``value`` (anything msgspec encodes) as the own record at ``key`` (at most 200 bytes)."""
        if len(key) > MAX_KEY_BYTES:
            raise _rows.too_long("a record's key", key)
        staged = self.effects or self._staged()
        staged.own[self._home.own + key] = _rows.encode(value)

    def delete(self, key: bytes) -> None:
        """Stage the removal of the own record at ``key``; a missing one is no error."""
        if len(key) > MAX_KEY_BYTES:
            raise _rows.too_long("a record's key", key)
        staged = self.effects or self._staged()
        staged.own[self._home.own + key] = None

    def put_row(self, index: str, sort_key: bytes, value: Any) -> None:
        """Stage a row of a shared index under (``sort_key``, this actor); a sort key takes 200 bytes."""
        staged = self.effects or self._staged()
        staged.rows[self._row_key(index, sort_key)] = self._home.row_head + _rows.encode(value)

    def delete_row(self, index: str, sort_key: bytes) -> None:
        """Stage the removal of this actor's row at ``sort_key`` of a shared index."""
        staged = self.effects or self._staged()
        staged.rows[self._row_key(index, sort_key)] = None

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Stage a message that another actor gets after the commit, also when the process dies between.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        key = _rows.OUTBOX + self._domain.next_number().to_bytes(8)
        parcel = _rows.Parcel(address.kind, address.key, type(message).__name__, _rows.encode_json(message))
        staged = self._staged()
        staged.rows[key] = _rows.encode(parcel)
        staged.tells.append((key, address, message))

    def set_timer(self, name: str, due: int, message: Message[Any]) -> None:
        """Stage a message to this actor itself at ``due`` (microseconds since 1970).

        There is one timer a name (at most 200 bytes): a second one replaces the first.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        self.cancel_timer(name)
        parcel = _rows.Parcel(*self.address, type(message).__name__, _rows.encode_json(message), name)
        row = _rows.timer_key(due, self.address, name, self._domain.next_number())
        staged = self._staged()
        staged.rows[row] = _rows.encode(parcel)
        staged.own[_rows.timer_name_key(self.address, name)] = row
        staged.next_due = min(due, staged.next_due or due)

    def cancel_timer(self, name: str) -> None:
        """Stage the removal of the timer ``name``; a missing one is no error."""
        row = self.timer_row(name)
        if row is not None:
            self.stage_rows({row: None})
            self._staged().own[_rows.timer_name_key(self.address, name)] = None

    def stage_rows(self, rows: Changes) -> None:
        """Stage rows of the runtime itself; for the kernel."""
        self._staged().rows.update(rows)

    def timer_due(self, name: str) -> int | None:
        """Return when the timer ``name`` is due (microseconds since 1970), or None when none is set."""
        row = self.timer_row(name)
        return None if row is None else _rows.timer_due(row)

    def timer_row(self, name: str) -> bytes | None:
        """Return the stored row of the timer ``name``, or None; the kernel tells by it what was set anew."""
        key = _rows.timer_name_key(self.address, name)
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

    def _row_key(self, index: str, sort_key: bytes) -> bytes:
        """Return what `_rows.row_key` does."""
        prefix = self._domain.prefixes.get(index)
        if prefix is None:
            raise UnknownKindError(f"no index {index!r} was given to open_runtime")
        if len(sort_key) > MAX_KEY_BYTES:
            raise _rows.too_long("a row's sort key", sort_key)
        return prefix + sort_key.replace(b"\0", b"\0\xff") + self._home.row_tail


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
