"""The context of a handler: its own records, shared rows, tells, timers; nothing else.

A `Context` stages effects; the kernel commits them together when the handler
returns and forgets them when it raises. Reads see what this message effects, then
what earlier messages of the actor effects and is still on its way to disk, then
the store.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from math import inf
from typing import Any, TypeVar

import trio

from greenroom.runtime.actor.effects import ActorKeys, Effects
from greenroom.runtime.actor.message import Message, check_told
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError
from greenroom.runtime.journal.chain import entry
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.key_blinding import plain_key, strip_plain_key, with_plain_key
from greenroom.runtime.lmdb.keys import MAX_KEY_BYTES
from greenroom.runtime.lmdb.write_batch import PAGE, Changes, Revocation
from greenroom.runtime.store.store import ACTORS

T = TypeVar("T")
_COPIES = 2
"""Pages that a row may take while it is deleted: those of the commit before cannot be used yet."""


class Context:
    """The reads and effects that a handler may use while it handles one message.

    Attributes:
        address: The actor's own address.
        principal: Who sent the message, as the sender stated it; None for tells and timers.
        precheck_answer: The answer to the message's `Message.precheck`, else None.
        now: The wall clock in microseconds since 1970 UTC, the same throughout the message.
        deadline: When nobody waits for the answer any more, on trio's clock; infinite for tells and timers.
        effects: The staged effects; None until there is one.
    """

    __slots__ = (
        "_actor_keys",
        "_services",
        "address",
        "deadline",
        "effects",
        "now",
        "precheck_answer",
        "principal",
    )

    def __init__(
        self,
        services: RuntimeServices,
        actor_keys: ActorKeys,
        principal: Any,
        answer: Any,
        now: int,
        deadline: float = inf,
    ) -> None:
        self._services = services
        self._actor_keys = actor_keys
        self.address = actor_keys.address
        self.principal = principal
        self.precheck_answer = answer
        self.now = now
        self.deadline = deadline
        self.effects: Effects | None = None

    @property
    def random(self) -> random.Random:
        """The runtime's source of randomness."""
        return self._services.random

    @property
    def sidecar(self) -> Any:
        """The service that runs beside the actors (`open_runtime`); None until it has started.

        A handler may call it for what takes no waiting and has no side effect.
        """
        return self._services.sidecar

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose, 32 bytes that no store and no backup holds.

        Raises:
            StoreError: the runtime was opened without a secret.
        """
        return self._services.derive(purpose)

    def seconds_left(self) -> float:
        """Return how long the answer is waited for; what a handler leaves out for it another message does."""
        return self.deadline - trio.current_time()

    def should_yield(self) -> bool:
        """Return whether a generator handler should yield now, so that others get the event loop."""
        return self._services.should_yield()

    def get(self, key: bytes, of: type[T]) -> T | None:
        """Return the actor's own record at ``key``, or None.

        Args:
            key: At most 200 bytes.
            of: The type of the record.

        Raises:
            ValueError: the key is too long.
            StoreDamagedError: the record is damaged, or does not fit the type.
        """
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        actor_keys = self._actor_keys
        full = actor_keys.own + key if actor_keys.blinder is None else actor_keys.store_key(key)
        if self.effects is not None and full in self.effects.own:
            payload = self.effects.own[full]
        else:
            pending = actor_keys.overlay.get(full)
            payload = self._services.cached_snapshot.get(full) if pending is None else pending[1]
        if payload is None:
            return None
        return keys.decode(payload if actor_keys.blinder is None else strip_plain_key(payload), of)

    def scan(
        self, of: type[T], *, prefix: bytes = b"", start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the actor's own records whose key begins with ``prefix``, in key order.

        In an encrypted store the names within keys are blinded, so that these sort in no order that means
        anything; see `Names`.

        Args:
            of: The type of the records.
            prefix: What the keys begin with.
            start: The first key wanted, inclusive; with ``reverse`` the highest.
            reverse: From the highest key down.

        Raises:
            StoreDamagedError: a record is damaged, or does not fit the type.
        """
        actor_keys = self._actor_keys
        cut = len(actor_keys.own)
        first = None if start is None else actor_keys.store_key(start)
        begin = actor_keys.store_key(prefix)
        stored = self._services.store.scan(ACTORS, begin, start=first, reverse=reverse)
        pending = {key: payload for key, (_, payload) in actor_keys.overlay.items() if key.startswith(begin)}
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
            if actor_keys.blinder is None:
                yield key[cut:], keys.decode(payload, of)
            else:
                yield plain_key(payload, key[cut:]), keys.decode(strip_plain_key(payload), of)

    def put(self, key: bytes, value: Any) -> None:
        """Stage a write of the actor's own record at ``key``.

        Args:
            key: At most 200 bytes.
            value: Anything that msgspec encodes.

        Raises:
            ValueError: the key is too long.
        """
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        effects = self.effects or self._new_effects()
        actor_keys = self._actor_keys
        if actor_keys.blinder is None:
            effects.own[actor_keys.own + key] = keys.encode(value)
        else:
            full = actor_keys.store_key(key)
            effects.own[full] = with_plain_key(key, full[len(actor_keys.own) :], keys.encode(value))

    def delete(self, key: bytes) -> None:
        """Stage the removal of the own record at ``key``; a missing one is no error."""
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        effects = self.effects or self._new_effects()
        effects.own[self._actor_keys.store_key(key)] = None

    def put_row(self, index: str, sort_key: bytes, value: Any) -> None:
        """Stage a write of this actor's row at ``sort_key`` of a shared index.

        Args:
            index: The name of the index, one of those given to `open_runtime`.
            sort_key: At most 200 bytes; another actor's row at the same sort key is another row.
            value: Anything that msgspec encodes.

        Raises:
            ConfigurationError: there is no such index.
            ValueError: the sort key is too long.
        """
        effects = self.effects or self._new_effects()
        hidden = self._hidden(index, sort_key)
        record = self._actor_keys.row_head + keys.encode(value)
        if hidden != sort_key:
            record = keys.with_sort_key(record, sort_key)
        effects.rows[self._row_key(index, hidden)] = record

    def delete_row(self, index: str, sort_key: bytes) -> None:
        """Stage the removal of this actor's row at ``sort_key`` of a shared index."""
        effects = self.effects or self._new_effects()
        effects.rows[self._row_key(index, self._hidden(index, sort_key))] = None

    def append(self, journal: str, value: Any) -> None:
        """Stage a row of a journal; it gets its number and its link in the commit of this message."""
        if journal not in self._services.journals:
            raise ConfigurationError(f"no journal {journal!r} was given to open_runtime")
        effects = self.effects or self._new_effects()
        effects.entries.append(entry(journal, self.now, 1, value))

    def record_revocation(self, value: Any, *, until: int) -> None:
        """Record a fact that must survive restoring an older backup.

        After a restore the actor receives a `Replay` with all such values, maybe with some that it knows: the
        log is written before the store. It lies beside the store's secret, in the clear. No effect without a
        secret.

        Args:
            value: Anything that msgspec encodes as JSON.
            until: When the fact expires (microseconds since 1970).
        """
        if self._services.secret is not None:
            entry = Revocation(self.now, until, *self.address, keys.encode_json(value))
            effects = self._new_effects()
            effects.revocations = (*effects.revocations, entry)

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit: no reply waits for it, and a crash may lose it.

        It is written also when this message is refused or fails. The same row again within a second is
        counted and not written twice; a row that finds no room is dropped and counted.
        """
        self._services.append_soon(journal, value)

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Stage a message to another actor; it is delivered after the commit, also across a crash.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        key = keys.OUTBOX + self._services.next_number().to_bytes(8)
        stored = keys.StoredMessage(
            address.kind, address.key, type(message).__name__, keys.encode_json(message)
        )
        effects = self._new_effects()
        effects.rows[key] = keys.encode(stored)
        effects.tells.append((key, address, message))

    def set_timer(self, name: str, due: int, message: Message[Any]) -> None:
        """Stage a message to this actor itself at ``due`` (microseconds since 1970).

        There is one timer a name (at most 200 bytes): a second one replaces the first.

        Raises:
            TypeError: the message has a question.
        """
        check_told(message)
        self.cancel_timer(name)
        stored = keys.StoredMessage(*self.address, type(message).__name__, keys.encode_json(message), name)
        tag = keys.timer_tag(self.address, name, self._services.next_number())
        row = keys.timer_key(
            due, tag if self._actor_keys.blinder is None else self._actor_keys.blinder.tag(tag)
        )
        effects = self._new_effects()
        effects.rows[row] = keys.encode(stored)
        effects.own[self._timer_name_key(name)] = row
        effects.next_due = min(due, effects.next_due or due)

    def cancel_timer(self, name: str) -> None:
        """Stage the removal of the timer ``name``; a missing one is no error."""
        row = self.timer_row(name)
        if row is not None:
            self.stage_rows({row: None})
            self._new_effects().own[self._timer_name_key(name)] = None

    def stage_rows(self, rows: Changes) -> None:
        """Stage rows of the runtime itself; for the kernel."""
        self._new_effects().rows.update(rows)

    def timer_due(self, name: str) -> int | None:
        """Return when the timer ``name`` is due (microseconds since 1970), or None when none is set."""
        row = self.timer_row(name)
        return None if row is None else keys.timer_due(row)

    def timer_row(self, name: str) -> bytes | None:
        """Return the stored row of the timer ``name``, or None; the kernel tells by it what was set anew."""
        key = self._timer_name_key(name)
        if self.effects is not None and key in self.effects.own:
            return self.effects.own[key]
        pending = self._actor_keys.overlay.get(key)
        return self._services.cached_snapshot.get(key) if pending is None else pending[1]

    def publish(self, topic: str, label: Hashable = None) -> None:
        """Stage a notification of the subscribers of ``topic``, sent after the commit.

        It is not stored: a crash loses it, and subscribers read anew when they subscribe again.

        Args:
            topic: What changed.
            label: Decides which subscribers are notified (`Subscriber.add`). Equal ones become one.
        """
        effects = self.effects or self._new_effects()
        effects.publications[topic, label] = None

    def has_subscribers(self, topic: str) -> bool:
        """Return whether ``topic`` has a subscriber now, in any process on the folder.

        It is as of this moment and of this process's knowledge: after a takeover an attached process is known
        of once it has attached again.
        """
        return self._services.has_subscribers(topic)

    def use_reserve(self, *, dispensable: bool = False) -> None:
        """Let this message's effects use the space kept back for deletes, expiry and audit.

        Args:
            dispensable: Whether the reply leaves even when there is no room at all for the effects,
                which are then dropped and counted. For rows of shared indexes only.
        """
        effects = self._new_effects()
        effects.reserve = True
        effects.dispensable = dispensable

    def most_rows(self, most: int) -> int:
        """Return how many rows a message that may use the reserve should touch at once; at least one.

        A row that is deleted or changed takes a new page until the commit after the next one, so that
        what empties a full store has to do it in small steps.

        Args:
            most: How many it would be with plenty of room.
        """
        return max(1, min(most, self._services.store.room() // (_COPIES * PAGE)))

    def _new_effects(self) -> Effects:
        if self.effects is None:
            self.effects = self._actor_keys.new_effects()
        return self.effects

    def _timer_name_key(self, name: str) -> bytes:
        return keys.timer_name_key(self._actor_keys.prefix, name, self._actor_keys.blinder)

    def _hidden(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key as the store has it."""
        if index not in self._services.prefixes:
            raise ConfigurationError(f"no index {index!r} was given to open_runtime")
        if len(sort_key) > MAX_KEY_BYTES:
            raise keys.too_long("a row's sort key", sort_key)
        return self._services.blind(index, sort_key)

    def _row_key(self, index: str, hidden: bytes) -> bytes:
        """Return what `lmdb.keys.row_key` does."""
        return self._services.prefixes[index] + hidden.replace(b"\0", b"\0\xff") + self._actor_keys.row_tail


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
