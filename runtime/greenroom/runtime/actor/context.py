"""The context of a handler: its own records, shared rows, tells and timers.

A `Context` stages effects. The kernel commits them together when the handler returns, and drops them when it
raises. Reads look first at the effects of this message, then at effects of the actor's earlier messages that
are on their way to disk, then in the store.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from math import inf
from typing import Any, TypeVar

import trio

from greenroom.runtime.actor.effects import ActorKeys, Effects
from greenroom.runtime.actor.message import Message, check_tellable
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, RecordDamagedError
from greenroom.runtime.journal.chain import entry
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.environment import ACTORS
from greenroom.runtime.lmdb.key_blinding import plain_key, strip_plain_key, with_plain_key
from greenroom.runtime.lmdb.keys import MAX_KEY_BYTES
from greenroom.runtime.lmdb.recent import merge_over
from greenroom.runtime.lmdb.snapshot import OnDamage, is_among
from greenroom.runtime.lmdb.write_batch import PAGE, Changes, Revocation

T = TypeVar("T")
_COPIES = 2
"""The deletion of a row may take this many pages: pages that the last commit freed cannot be reused yet."""


class Context:
    """The reads and effects that a handler may use while it handles one message.

    Attributes:
        principal: The identity that the caller stated; None for tells and timers.
        precheck_answer: The reply to `Message.precheck`, else None.
        now: Microseconds since 1970 UTC, the same throughout the message.
        deadline: When the caller stops waiting, on trio's clock; infinite for tells and timers.
        effects: The staged effects; None until there is one.
        damage: The damaged records that were skipped; the reply should name them.
    """

    __slots__ = (
        "_actor_keys",
        "_kept",
        "_services",
        "address",
        "damage",
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
        self.damage: Sequence[RecordDamagedError] = ()
        self._kept: Effects | None = None

    def note_damage(self, error: RecordDamagedError) -> None:
        """Record damage that the reply should name, once for each record or entry."""
        if all(error.key != known.key or error.entry != known.entry for known in self.damage):
            self.damage = (*self.damage, error)

    def is_own(self, error: RecordDamagedError, prefix: bytes = b"") -> bool:
        """Return whether a damaged record has a key of this actor that begins with ``prefix``.

        A scan also meets records whose original key is unknown (`OnDamage`), maybe another actor's.
        """
        return error.key.startswith(self._actor_keys.store_key(prefix))

    def own_key(self, error: RecordDamagedError, prefix: bytes = b"") -> bytes:
        """Return a damaged record's own key without ``prefix``; raise ``error`` if `is_own` is false."""
        if not self.is_own(error, prefix):
            raise error
        return error.key[len(self._actor_keys.store_key(prefix)) :]

    def own_key_of(self, key: bytes) -> bytes:
        """Return one of the actor's own keys with its names as stored, like `own_key`."""
        return self._actor_keys.store_key(key)[len(self._actor_keys.own) :]

    def keys(self, prefix: bytes, *, start: bytes | None = None) -> Iterator[bytes]:
        """Yield the keys of the actor's own records that begin with ``prefix``, in order.

        Their records may be damaged. In an encrypted store, keys have digests instead of names.
        """
        first = None if start is None else self._actor_keys.store_key(start)
        begin = self._actor_keys.store_key(prefix)
        cut = len(self._actor_keys.own)
        stored = self._services.store.keys(ACTORS, begin, start=first)
        pending = self._find_pending(begin, first)
        if not pending:
            yield from (key[cut:] for key in stored)
            return
        for key, _ in merge_over(((key, b"") for key in stored), iter(sorted(pending.items())), pending):
            yield key[cut:]

    def _find_pending(self, begin: bytes, first: bytes | None, *, reverse: bool = False) -> Changes:
        """Return the staged and uncommitted changes of keys that a scan covers."""
        own = {} if self.effects is None else self.effects.own
        pending: Changes = {
            key: payload
            for key, (_, payload) in self._actor_keys.overlay.items()
            if is_among(key, begin, first, reverse=reverse)
        }
        pending.update(
            (key, payload) for key, payload in own.items() if is_among(key, begin, first, reverse=reverse)
        )
        return pending

    def keep_effects(self) -> None:
        """Make `roll_back` return to the current effects."""
        self._kept = None if self.effects is None else self.effects.copy()

    def roll_back(self) -> None:
        """Drop the effects staged since the message began, or since `keep_effects`, and the damage."""
        self.effects, self.damage = None if self._kept is None else self._kept.copy(), ()

    @property
    def random(self) -> random.Random:
        """The runtime's source of randomness."""
        return self._services.random

    @property
    def settings(self) -> Any:
        """The settings given to `open_runtime`."""
        return self._services.settings

    @property
    def sidecar(self) -> Any:
        """The service that runs beside the actors (`open_runtime`); None until it has started.

        A handler may call it if the call neither waits nor has side effects.
        """
        return self._services.sidecar

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose: 32 bytes that no store or backup holds."""
        return self._services.derive(purpose)

    @property
    def has_first_secret(self) -> bool:
        """Whether the store's secret is the one that it began with."""
        return self._services.secret is None or self._services.secret.is_first

    def seconds_left(self) -> float:
        """Return the seconds until the caller stops waiting; a second message may do remaining work."""
        return self.deadline - trio.current_time()

    def count_rows(self) -> int:
        """Return how many records the message has staged so far."""
        return 0 if self.effects is None else len(self.effects.own)

    def has_callers(self, *, besides: type[Message[Any]]) -> bool:
        """Return whether principals wait for this actor, so that background work should end its turn.

        Messages of the type ``besides`` do not count.
        """
        return self._actor_keys.has_callers(besides)

    def should_yield(self) -> bool:
        """Return whether a generator handler should yield now, so that others get the event loop."""
        return self._services.should_yield()

    def get(self, key: bytes, of: type[T]) -> T | None:
        """Return the actor's own record at ``key`` (at most 200 bytes), or None.

        Raises:
            StoreDamagedError: the record is damaged, or does not fit the type.
        """
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        actor_keys = self._actor_keys
        full = actor_keys.own + key if actor_keys.blinder is None else actor_keys.store_key(key)
        payload = self._payload(full)
        if payload is None:
            return None
        return keys.decode(payload if actor_keys.blinder is None else strip_plain_key(payload), of)

    def scan(
        self,
        of: type[T],
        *,
        prefix: bytes = b"",
        start: bytes | None = None,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, T]]:
        """Yield the actor's own records whose key begins with ``prefix``, in key order.

        In an encrypted store the order is arbitrary; see `Names`. It begins at ``start``, inclusive. With
        ``on_damage`` it goes on after damaged records; see `OnDamage` and `is_own`.

        Raises:
            StoreDamagedError: a record is damaged, or does not fit the type.
        """
        actor_keys = self._actor_keys
        cut = len(actor_keys.own)
        first = None if start is None else actor_keys.store_key(start)
        begin = actor_keys.store_key(prefix)
        report = self._skip_written(on_damage)
        stored = self._services.store.scan(ACTORS, begin, start=first, reverse=reverse, on_damage=report)
        pending = self._find_pending(begin, first, reverse=reverse)
        if pending:
            fresh = iter(sorted(pending.items(), reverse=reverse))
            stored = merge_over(stored, fresh, pending, reverse=reverse)
        for key, payload in stored:
            if actor_keys.blinder is None:
                yield key[cut:], keys.decode(payload, of)
            else:
                yield plain_key(payload, key[cut:]), keys.decode(strip_plain_key(payload), of)

    def _skip_written(self, on_damage: OnDamage | None) -> OnDamage:
        """Return a callback that skips damaged records which an uncommitted change replaces."""

        def report(error: RecordDamagedError) -> None:
            if self._is_written(error):
                return
            if on_damage is None:
                raise error
            on_damage(error)

        return report

    def _is_written(self, error: RecordDamagedError) -> bool:
        if self.effects is not None and error.key in self.effects.own:
            return True
        return error.key in self._actor_keys.overlay

    def _payload(self, full: bytes) -> bytes | None:
        """Return the payload at a key: staged, else on its way to disk, else stored."""
        if self.effects is not None and full in self.effects.own:
            return self.effects.own[full]
        pending = self._actor_keys.overlay.get(full)
        if pending is not None:
            return pending[1]
        try:
            return self._services.cached_snapshot.get(full)
        except RecordDamagedError as error:
            return self._stored_beside(full, error)

    def _stored_beside(self, full: bytes, error: RecordDamagedError) -> bytes | None:
        """Return the stored payload at a key, unless a damaged neighbour may be this record."""
        if error.key == full or not self._is_written(error):
            raise error

        def report(error: RecordDamagedError) -> None:
            if not self._is_written(error) and (error.key == full or not error.is_key_known):
                raise error

        with self._services.store.snapshot() as snapshot:
            found = snapshot.scan(ACTORS, full, start=full, on_damage=report)
            return next((payload for key, payload in found if key == full), None)

    def put(self, key: bytes, value: Any) -> None:
        """Stage a write of the actor's own record at ``key`` (at most 200 bytes)."""
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
        """Stage the removal of the actor's record at ``key``; a missing record is no error."""
        if len(key) > MAX_KEY_BYTES:
            raise keys.too_long("a record's key", key)
        effects = self.effects or self._new_effects()
        effects.own[self._actor_keys.store_key(key)] = None

    def put_row(self, index: str, sort_key: bytes, value: Any) -> None:
        """Stage a write of this actor's row of a shared index at ``sort_key``.

        The sort key has at most 200 bytes. Rows of several actors may have the same sort key.
        """
        effects = self.effects or self._new_effects()
        hidden = self._blind(index, sort_key)
        record = self._actor_keys.row_head + keys.encode(value)
        if hidden != sort_key:
            record = keys.with_sort_key(record, sort_key)
        effects.rows[self._row_key(index, hidden)] = record

    def delete_row(self, index: str, sort_key: bytes) -> None:
        """Stage the removal of this actor's row at ``sort_key`` of a shared index."""
        effects = self.effects or self._new_effects()
        effects.rows[self._row_key(index, self._blind(index, sort_key))] = None

    def append(self, journal: str, value: Any) -> None:
        """Stage a row of a journal; it gets its number and link in the commit."""
        if journal not in self._services.journals:
            raise ConfigurationError(f"no journal {journal!r} was given to open_runtime")
        effects = self.effects or self._new_effects()
        effects.entries.append(entry(journal, self.now, 1, value))

    def record_revocation(self, value: Any, *, until: int) -> None:
        """Record a fact that must survive restoring an older backup.

        After a restore the actor receives these values in a `Replay`, also those it has. The log lies beside
        the store's secret, in the clear; without a secret this has no effect.

        Args:
            value: Anything that msgspec encodes as JSON.
            until: When the fact expires (microseconds since 1970).
        """
        if self._services.secret is not None:
            entry = Revocation(self.now, until, *self.address, keys.encode_json(value))
            effects = self._new_effects()
            effects.revocations = (*effects.revocations, entry)

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit; a crash may lose it.

        No reply waits for it, and it is written even if this message fails. A repeat within a second is only
        counted; so is a row for which there is no room.
        """
        self._services.append_soon(journal, value)

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Stage a message to another actor, delivered after the commit, also across a crash.

        Raises:
            TypeError: the message has a precheck.
        """
        check_tellable(message)
        key = keys.OUTBOX + self._services.next_number().to_bytes(8)
        stored = keys.StoredMessage(
            address.kind, address.key, type(message).__name__, keys.encode_json(message)
        )
        effects = self._new_effects()
        effects.rows[key] = keys.encode(stored)
        effects.tells.append((key, address, message))

    def set_timer(self, name: str, due: int, message: Message[Any]) -> None:
        """Stage a message to this actor itself at ``due`` (microseconds since 1970).

        A timer replaces an earlier one of the same name (at most 200 bytes).

        Raises:
            TypeError: the message has a precheck.
        """
        check_tellable(message)
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
        """Stage the removal of the timer ``name``; a missing timer is no error."""
        try:
            row = self.timer_row(name)
        except RecordDamagedError:  # without this record the stored row counts as cancelled
            self._new_effects().own[self._timer_name_key(name)] = None
            return
        if row is not None:
            self.stage_rows({row: None})
            self._new_effects().own[self._timer_name_key(name)] = None

    def stage_rows(self, rows: Changes) -> None:
        """Stage rows that belong to the runtime itself; only the kernel calls this."""
        self._new_effects().rows.update(rows)

    def timer_due(self, name: str) -> int | None:
        """Return when the timer ``name`` is due (microseconds since 1970), or None."""
        try:
            row = self.timer_row(name)
        except RecordDamagedError:
            return None
        return None if row is None else keys.timer_due(row)

    def timer_row(self, name: str) -> bytes | None:
        """Return the stored row of the timer ``name``, or None."""
        return self._payload(self._timer_name_key(name))

    def publish(self, topic: str, label: Hashable = None) -> None:
        """Stage a notification of the subscribers of ``topic``, sent after the commit.

        A crash loses it; subscribers read again when they subscribe again. The label decides who is notified
        (`Subscriber.add`); equal labels are merged.
        """
        effects = self.effects or self._new_effects()
        effects.publications[topic, label] = None

    def has_subscribers(self, topic: str) -> bool:
        """Return whether ``topic`` has a subscriber now, in any process on the folder.

        After a takeover, attached processes count once they have attached again.
        """
        return self._services.has_subscribers(topic)

    def use_reserve(self, *, dispensable: bool = False) -> None:
        """Let this message's effects use the space reserved for deletes, expiry and audit.

        Args:
            dispensable: Whether effects without room are dropped and counted, and the reply leaves; for rows
                of shared indexes only.
        """
        effects = self._new_effects()
        effects.reserve = True
        effects.dispensable = dispensable

    def most_rows(self, most: int) -> int:
        """Return how many of ``most`` rows one message that uses the reserve should touch.

        A changed row takes a new page for two commits, so a full store is emptied in small steps.
        """
        return max(1, min(most, self._services.store.room() // (_COPIES * PAGE)))

    def _new_effects(self) -> Effects:
        if self.effects is None:
            self.effects = self._actor_keys.new_effects()
        return self.effects

    def _timer_name_key(self, name: str) -> bytes:
        return keys.timer_name_key(self._actor_keys.prefix, name, self._actor_keys.blinder)

    def _blind(self, index: str, sort_key: bytes) -> bytes:
        """Return a sort key as stored."""
        if index not in self._services.prefixes:
            raise ConfigurationError(f"no index {index!r} was given to open_runtime")
        if len(sort_key) > MAX_KEY_BYTES:
            raise keys.too_long("a row's sort key", sort_key)
        return self._services.blind(index, sort_key)

    def _row_key(self, index: str, hidden: bytes) -> bytes:
        """Return the store's key of a row, as `lmdb.keys.row_key` does."""
        return self._services.prefixes[index] + hidden.replace(b"\0", b"\0\xff") + self._actor_keys.row_tail
