"""The repository of a root's memories: header, partitions, ids, look-up, index documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.damage import (
    HIDDEN,
    damaged_entry,
    filter_damage,
    missing_record,
    note_damage,
    skip_damaged,
)
from greenroom.actors.core.resources.resource_uris import memories_uri, memory_uri
from greenroom.actors.memories.storage import directory, records
from greenroom.actors.memories.storage.records import (
    PLAIN,
    Entry,
    EntryDetails,
    RootHeader,
    Version,
)
from greenroom.actors.memories.storage.usage_counters import UsageCounters
from greenroom.actors.memories.storage.values import beginning, to_search_text, unpack
from greenroom.actors.search.index import Document, MemoryIndex
from greenroom.runtime import Actor, Context, RecordDamagedError, Refusal, Slices, pass_over

if TYPE_CHECKING:
    from greenroom.actors.memories.requests.map_replies import MappedMemory
    from greenroom.actors.memories.storage.vector_filters import VisibilityCache

GENERATED_KEY = re.compile(r"memory_[0-9a-f]{16}")
"""The form of a generated key; its letters are not searched."""
NEWEST = b"n"
_MAPPED_BYTES = 600  # estimate for a memory that was on a map
_FORGOTTEN_BYTES = 170
_TAIL_BYTES = 220
_SKIPPED = 65_536  # numbers that are skipped when the last ones in use are unknown
_NUMBERED = (records.UPDATES, records.DELETED)
_SINGLE_OWNER = (names.AGENT, names.USER)


def has_several_owners(root: str) -> bool:
    """Return whether memories below a root may belong to several owners."""
    return not root.startswith(_SINGLE_OWNER)


class StoredEntry(NamedTuple):
    """An entry and its record key."""

    record_key: bytes
    entry: Entry


class ReadRow(NamedTuple):
    """The entry of an index row, its newest value, and the form of the value."""

    entry: Entry
    value: bytes
    form: int


class MemoryRepository(Actor):
    """The memories below one root.

    Methods raise `RecordDamagedError` for a damaged record; the error names only what the caller may see.

    Attributes:
        address: The key of the actor's address.
        counter: The highest number in use.
        header: None before the first write, and in stores of older programs.
        embedder_notified: Whether the embedder knows that memories lack vectors.
        forgotten: Times of forgetting by entry number, perhaps outdated; None until they are needed.
        mapped: The data that maps show about memories, by update number; `map_rows` fills and bounds it.
        settled: The number of decisions about pairs since the activation.
    """

    def activate(self, context: Context) -> None:
        """Find the highest number in use; all other records stay on disk."""
        self.address = context.address.key
        self.index = MemoryIndex(MemoryPartition, self.documents)
        self.uses = UsageCounters()
        self.counter = self._highest_number(context)
        self._tails: dict[bytes, bytes] = {}  # by record key, filled after damage
        self._tails_at = -1
        self.header = context.get(records.HEADER, RootHeader)
        self._unread: list[int] | None = None
        self._agent_partition = policy.agent_partition(self.address)
        self._is_listed = False
        self.embedder_notified = False
        self.forgotten: dict[int, int] | None = None
        self._views: VisibilityCache | None = None
        self.mapped: dict[int, MappedMemory] = {}
        self.settled = 0
        self._may_have_summary = True
        self._cache_header()

    # -- the root ----------------------------------------------------------

    @property
    def indexed_to(self) -> int | None:
        """The update number up to which entries are in the index; None if all are."""
        if self.header is None:
            return 0 if self.counter else None
        return self.header.indexed_to

    def is_indexed(self, entry: Entry) -> bool:
        """Return whether an entry's newest version is in the index."""
        to = self.indexed_to
        return entry.deleted_at is None and (to is None or entry.update <= to)

    def ensure_root(self, context: Context, root: str) -> RootHeader:
        """Return the header of the root; stage a new one if there is none yet."""
        self.check_root(root)
        if self.header is None:
            secret = context.random.randbytes(records.SECRET_BYTES)
            # An agent's plain entries belong to its own partition without naming it.
            partitions = (self._agent_partition,) if root.startswith(names.AGENT) else ()
            self.put_header(context, RootHeader(root, secret, partitions, 0 if self.counter else None))
        assert self.header is not None, "it was just made"
        if not self._is_listed:
            self.drop_summary(context)
            self.list_root(context)
        return self.header

    def check_root(self, root: str) -> None:
        """Refuse the name of a root that imitates a user, an agent or a project."""
        if self.header is None and (reserved := names.find_imitated(root)) is not None:
            raise auth_errors.imitation(root, reserved)

    @property
    def imitates(self) -> str | UnsetType:
        """The reserved name that the root imitates; only a root older than the check can."""
        return names.find_imitated(self.root) or UNSET

    def name_root(self, namespace: str) -> None:
        """Set the root's name, which may be too long for the address."""
        if self.header is None and len(self.address) == names.MAX_ADDRESS:
            self._name(names.root_of(namespace))

    def put_header(self, context: Context, common: RootHeader) -> None:
        """Stage a change of the header."""
        context.put(records.HEADER, common)
        self.header = common
        self._cache_header()

    def list_root(self, context: Context) -> None:
        """Stage the root's row in the directory."""
        assert self.header is not None, "it was made before"
        directory.put(context, self.root, self.header.partitions)
        self._is_listed = True

    def relist(self, context: Context) -> None:
        """Stage the root's row in the directory again, if it has entries."""
        if self.header is not None and self._has_entries(context):
            self.list_root(context)

    def unlist_if_empty(self, context: Context) -> None:
        """Stage the effects that a message's removals have on the root; call it once.

        The root stays in the directory while it has entries, so that forgotten memories are found.
        """
        context.put(NEWEST, self.counter)  # a number is never used twice
        if not self._has_entries(context):
            directory.remove(context, self.root)
            self._is_listed = False

    @property
    def is_resource(self) -> bool:
        """Whether the root is a readable resource; only an agent's own memory is one."""
        return ":" not in self.address

    def publish(self, context: Context, *changed: Entry) -> None:
        """Publish a change of entries to those who may see the old or new state."""
        self.publish_about(context, *changed)
        if self.is_resource:
            label = policy.ChangeLabel(policy.own_audience(self.address))
            context.publish(memory_uri(self.address), label)

    def publish_about(self, context: Context, *entries: Entry) -> None:
        """Publish changes outside of the entries' records: uses, ratings, vectors, pairs."""
        places = {(self.partition(entry), self.namespace(entry.sub)) for entry in entries}
        for label in {label for place in places for label in policy.labels_of_memory(*place)}:
            context.publish(memories_uri(self.root), label)

    def record(self, context: Context, action: str, entry: Entry, **details: Any) -> None:
        """Add an audit record about an entry."""
        namespace = self.namespace(entry.sub)
        audit_record.record(context, action, entry.session_id, namespace=namespace, key=entry.key, **details)

    def namespace(self, sub: str) -> str:
        """Return the full name of a namespace below the root."""
        return f"{self.root}:{sub}" if sub else self.root

    def sub(self, namespace: str | None) -> str:
        """Return the part of a namespace below the root; None is the root."""
        return "" if namespace is None else namespace[len(names.root_of(namespace)) + 1 :]

    def drop_summary(self, context: Context) -> None:
        """Stage the removal of an older program's summary, once in an activation."""
        if self._may_have_summary:
            self._may_have_summary = False
            directory.drop_summary(context, self.tag)

    # -- partitions and ids ---------------------------------------------------

    def partition_number(self, context: Context, partition: MemoryPartition) -> int:
        """Return the number of a partition; a new partition gets a number."""
        number = self._partition_numbers.get(partition)
        if number is None:
            assert self.header is not None, "it was made before"
            number = len(self.header.partitions)
            partitions = (*self.header.partitions, partition)
            self.put_header(context, msgspec.structs.replace(self.header, partitions=partitions))
            self.list_root(context)
        return number

    def next_partition(self) -> int:
        """Return the number for the next new partition."""
        return 0 if self.header is None else len(self.header.partitions)

    def partition(self, entry: Entry) -> MemoryPartition:
        """Return the partition of an entry; a plain entry is in its agent's partition."""
        if entry.details is None:
            return self._agent_partition
        assert self.header is not None, "an entry with more came after it"
        return self.header.partitions[entry.details.partition]

    def details_of(self, context: Context, entry: Entry) -> EntryDetails:
        """Return the details of an entry; for an agent's plain entry, the defaults."""
        return entry.details or EntryDetails(
            self.partition_number(context, self._agent_partition), stored_size=entry.value_size
        )

    def may_see_partition(self, principal: Principal, number: int) -> bool:
        """Return whether ``principal`` may see anything in a partition."""
        assert self.header is not None, "a partition has its number there"
        return policy.may_see_memory(principal, self.header.partitions[number], self.root)

    def may_see(self, principal: Principal, entry: Entry) -> bool:
        """Return whether ``principal`` may see an entry."""
        return policy.may_see_memory(principal, self.partition(entry), self.namespace(entry.sub))

    def tail(self, number: int) -> bytes:
        """Return the tail, after the root's tag, of an entry's id."""
        assert self.header is not None, "ids are made of it"
        return records.tail_of_number(self.header.secret, number)

    def memory_id(self, number: int) -> str:
        """Return the id of the entry with this number."""
        return records.memory_id(self.tag, self.tail(number))

    # -- finding -----------------------------------------------------------

    def entry_key(self, prefix: bytes, partition: int) -> bytes:
        """Return the record key of an entry of this partition."""
        return prefix + records.partition_suffix(partition) if self.has_several_owners else prefix

    def places(
        self, session_id: str | None, key: str, sub: str, partition: MemoryPartition
    ) -> tuple[bytes, ...]:
        """Return the possible record keys of an entry; a new entry gets the first."""
        number = self._partition_numbers.get(partition, self.next_partition())
        keys = records.entry_keys(session_id, key, sub)
        return tuple(self.entry_key(each, number) for each in keys)

    def find(self, context: Context, sub: str, session_id: str | None, key: str) -> StoredEntry | None:
        """Return the live, visible entry of a key, or None; raises as `choose_form`.

        If a key has several entries, private ones and the caller's own come before shared ones.
        """
        found: StoredEntry | None = None
        best: tuple[bool, bool, bool, int] | None = None
        principal = context.principal
        for stored in self._visible(context, sub, session_id, key):
            entry, partition = stored.entry, self.partition(stored.entry)
            is_private, is_own = partition.scope == "private", policy.owns_memory(principal, partition)
            rank = (is_private, is_own, entry.key == key, entry.update)
            if best is None or rank > best:
                found, best = stored, rank
        if found is None or found.entry.key == key:
            return found
        return self.choose_form(key, [found, *self._other_forms(context, found.entry)])

    def find_own(self, context: Context, session_id: str | None, key: str) -> StoredEntry | None:
        """Return the entry of an agent's own key, preferably live; raises as `choose_form`."""
        places = records.entry_keys(session_id, key)
        if len(places) == 1 and not self.has_several_owners:  # the most frequent case, and the fastest
            entry = self.entry_at(context, places[0], key)
            return None if entry is None else StoredEntry(places[0], entry)
        stored = list(self.live_entries_of_key(context, places))
        there = [each for each in stored if records.is_there(each.entry, context.now)]
        return self.choose_form(key, there) if there else next(iter(stored), None)

    def choose_form(self, key: str, there: list[StoredEntry]) -> StoredEntry:
        """Choose between entries with forms of one key: the exact form comes first.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there are several, and none has the exact form.
        """
        exact = [stored for stored in there if stored.entry.key == key]
        if not exact and len(there) > 1:
            ids = [None if self.header is None else self.memory_id(each.entry.number) for each in there]
            raise auth_errors.ambiguous_key(key, [each.entry.key for each in there], ids)
        return (exact or there)[0]

    def other_forms(self, context: Context, entry: Entry) -> list[str] | UnsetType:
        """Return keys of other memories that differ from an entry's key only in Unicode form."""
        if entry.key.isascii():
            return UNSET
        return [each.entry.key for each in self._other_forms(context, entry)] or UNSET

    def _other_forms(self, context: Context, entry: Entry) -> list[StoredEntry]:
        return [
            each
            for each in self._visible(context, entry.sub, entry.session_id, entry.key)
            if each.entry.number != entry.number and self.partition(each.entry) == self.partition(entry)
        ]

    def _visible(self, context: Context, sub: str, session_id: str | None, key: str) -> Iterator[StoredEntry]:
        for stored in self.live_entries_of_key(context, records.entry_keys(session_id, key, sub), key):
            if records.is_there(stored.entry, context.now) and self.may_see(context.principal, stored.entry):
                yield stored

    def ended_version(self, context: Context, keys: Iterable[bytes]) -> int:
        """Return the highest version that ended under a key; a new memory continues above it.

        With several owners it is the highest of all keys, so that it reveals nothing about another's key.
        """
        return max(self._read_ended(context, self._ended_key(key)) for key in keys)

    def _read_ended(self, context: Context, where: bytes) -> int:
        try:
            return context.get(where, int) or 0
        except RecordDamagedError:  # each version took a number, so no version is higher than this
            return self.counter

    def note_end(self, context: Context, entry: Entry) -> None:
        """Stage that an entry ends, now or at expiry: its versions are never reused."""
        where = self._ended_key(records.entry_key(entry.session_id, entry.key, entry.sub))
        ended = self._read_ended(context, where)
        if entry.version > ended or ended == self.counter:
            context.put(where, max(entry.version, ended))

    def note_lost_end(self, context: Context, where: bytes) -> None:
        """Stage the end of a damaged entry; its versions are at most the counter."""
        context.put(self._ended_key(where[: records.end_of_digest(where)]), self.counter)

    def _ended_key(self, key: bytes) -> bytes:
        return records.ended_key(None if self.has_several_owners else key)

    def entries_of_key(
        self, context: Context, keys: Iterable[bytes], key: str | None = None
    ) -> Iterator[StoredEntry]:
        """Yield the entries under one key: live ones by partition, and forgotten ones."""
        met: list[RecordDamagedError] = []
        for prefix in keys:
            only = filter_damage(context, prefix, met.append)
            for where, entry in context.scan(Entry, prefix=prefix, on_damage=only):
                yield StoredEntry(where, entry)
            for error in met:
                if self.shows_place(context.principal, context.own_key(error, prefix)) is not False:
                    raise damaged_entry(error, "a memory", key=key)
            met.clear()

    def live_entries_of_key(
        self, context: Context, keys: Iterable[bytes], key: str | None = None
    ) -> Iterator[StoredEntry]:
        """Yield the entries under one key that may be live."""
        if self.has_several_owners:
            yield from self.entries_of_key(context, keys, key)
            return
        for where in keys:
            if (entry := self.entry_at(context, where, key)) is not None:
                yield StoredEntry(where, entry)

    def find_id(self, context: Context, memory_id: str, *, forgotten: bool = False) -> StoredEntry | None:
        """Return the entry with an id, if visible; ``forgotten`` includes forgotten ones."""
        if names.tag_of_id(memory_id) != self.tag:
            return None
        try:
            stored = self._at_tail(context, records.tail_of_id(memory_id))
        except RecordDamagedError as error:
            if error.entry == HIDDEN:
                return None
            raise
        if stored is None or not self.may_see(context.principal, stored.entry):
            return None
        there = records.is_live(stored.entry.expires_at, context.now)
        return stored if there and (forgotten or stored.entry.deleted_at is None) else None

    def not_found(
        self, context: Context, memory_id: str | None, key: str | None, namespace: str | None = None
    ) -> Refusal:
        """Return the refusal for an id or a key under which the caller sees nothing."""
        where = None if key is None else namespace or self.root
        hidden = self.hides(context, memory_id, key, namespace)
        return auth_errors.no_memory(memory_id or key, where=where, hidden=hidden)

    def hides(
        self, context: Context, memory_id: str | None, key: str | None, namespace: str | None = None
    ) -> bool:
        """Return whether an id or a key names something that only other principals may see."""
        if memory_id is None:
            assert key is not None, "one of both was given"
            keys = records.entry_keys(None, key, self.sub(namespace))
            found = list(self.live_entries_of_key(context, keys))
        else:
            here = names.tag_of_id(memory_id) == self.tag
            stored = self._at_tail(context, records.tail_of_id(memory_id)) if here else None
            found = [] if stored is None else [stored]
        return any(
            records.is_there(stored.entry, context.now) and not self.may_see(context.principal, stored.entry)
            for stored in found
        )

    def by_number(self, context: Context, number: int) -> StoredEntry | None:
        """Return the entry with a number, in any state."""
        return None if self.header is None else self._at_tail(context, self.tail(number))

    def by_update(self, context: Context, update: int) -> StoredEntry | None:
        """Return the entry whose newest version has this update number."""
        where = context.get(records.update_key(update), bytes)
        return None if where is None else StoredEntry(where, self.listed_at(context, where))

    def indexed(self, context: Context, update: int) -> StoredEntry:
        """Return the entry of an index row; if it is missing, raise as `listed_at` does."""
        stored = self.by_update(context, update)
        if stored is None:
            raise damaged_entry(missing_record("a memory", records.update_key(update)), "a memory")
        return stored

    def listed_at(self, context: Context, where: bytes) -> Entry:
        """Return the entry of an order row; if it is missing, raise `RecordDamagedError`."""
        entry = self.entry_at(context, where)
        if entry is None:
            raise damaged_entry(missing_record("a memory", where), "a memory")
        return entry

    def entry_at(self, context: Context, where: bytes, key: str | None = None) -> Entry | None:
        """Return the entry at a record key, or None."""
        try:
            return context.get(where, Entry)
        except RecordDamagedError as error:
            raise self.lost_at(context, error, where, key) from error

    def lost_at(
        self, context: Context, error: RecordDamagedError, where: bytes, key: str | None = None
    ) -> RecordDamagedError:
        """Return the error for a damaged entry; it names only what is visible."""
        memory_id = None
        suffix = where[records.end_of_digest(where) :] if self.has_several_owners else b""
        shows = self.shows_place(context.principal, suffix)
        if shows is False:
            return RecordDamagedError(error.key, str(error), HIDDEN)
        if self.header is not None and shows:
            tail = self._tail_at(context, where)
            memory_id = None if tail is None else records.memory_id(self.tag, tail)
        return damaged_entry(error, "a memory" if key is None else "the memory", key=key, memory_id=memory_id)

    def _tail_at(self, context: Context, where: bytes) -> bytes | None:
        """Return the tail of the id at a record key; reads all ids once."""
        tail = self._tails.get(where)
        if tail is not None and context.get(records.id_key(tail), bytes) == where:
            return tail
        if self._tails_at != self.counter:
            self._tails_at = self.counter
            tails = context.scan(bytes, prefix=records.id_key(b""), on_damage=pass_over)
            self._tails = {place: own[1:] for own, place in tails}
        return self._tails.get(where)

    def place_of(self, context: Context, number: int) -> bytes | None:
        """Return the record key of the entry with a number; empty if it is lost."""
        return context.get(records.id_key(self.tail(number)), bytes)

    def shows_place(self, principal: Principal, suffix: bytes) -> bool | None:
        """Return whether the caller may see an entry, judged by its place; None if unknown.

        Damage of forgotten entries is never reported.
        """
        if self.header is None:
            return True  # the agent's own, from an older program
        numbers = range(len(self.header.partitions))
        if records.is_forgotten_suffix(suffix):
            return False
        if self.has_several_owners and suffix:
            number = int.from_bytes(suffix)
            return self.may_see_partition(principal, number) if number in numbers else None
        return True if all(self.may_see_partition(principal, each) for each in numbers) else None

    def read_row(self, context: Context, update: int) -> Slices[ReadRow | None]:
        """Return the entry and value of an index row; report damage and return None."""
        return (yield from skip_damaged(context, self._row(context, update)))

    def _row(self, context: Context, update: int) -> Slices[ReadRow]:
        entry = self.indexed(context, update).entry
        value, version = yield from self.value(context, entry)
        return ReadRow(entry, value, version.form)

    def version(self, context: Context, entry: Entry) -> Version:
        """Return the newest version of an entry."""
        version = self.version_of(context, entry, entry.version)
        if version is None:
            where = records.version_key(entry.number, entry.version)
            raise self.lost(missing_record("a memory", where), entry)
        return version

    def version_of(self, context: Context, entry: Entry, number: int) -> Version | None:
        """Return a version of an entry, or None if it is gone."""
        try:
            return context.get(records.version_key(entry.number, number), Version)
        except RecordDamagedError as error:
            raise self.lost(error, entry) from error

    def lost(self, error: RecordDamagedError, entry: Entry) -> RecordDamagedError:
        """Return the error for a damaged record of an entry that the caller may see."""
        memory_id = None if self.header is None else self.memory_id(entry.number)
        return damaged_entry(error, "the memory", key=entry.key, memory_id=memory_id)

    def value(self, context: Context, entry: Entry) -> Slices[tuple[bytes, Version]]:
        """Return the newest value, uncompressed, and its version."""
        version = self.version(context, entry)
        return (yield from unpack(version.value, version.form)), version

    def beginning(self, context: Context, entry: Entry, most: int) -> Slices[str]:
        """Return the first characters of the newest value, as text."""
        value, version = yield from self.value(context, entry)
        return beginning(value, version.form, most)

    # -- the index ---------------------------------------------------------

    def document(self, entry: Entry, value: bytes, quality: records.Quality) -> Slices[Document]:
        """Return the index document of an entry; ``value`` is uncompressed."""
        details = entry.details or PLAIN
        return Document(
            id=entry.update,
            partition=self.partition(entry),
            namespace=self.namespace(details.sub),
            text=(yield from to_search_text(value, details.form)),
            key="" if GENERATED_KEY.fullmatch(entry.key) else entry.key,
            author=self.author(entry),
            tags=details.tags,
            kind=details.kind,
            conversation=details.conversation,
            position=details.position,
            number=entry.number,
            created_at=entry.created_at,
            updated_at=entry.updated_at,
            expires_at=entry.expires_at,
            importance=details.importance,
            uses=quality.uses,
            last_used=quality.last_used,
            rating=quality.rating,
            supersedes=None if details.unreviewed else details.supersedes,
            unreviewed=details.unreviewed,
        )

    def documents(self, context: Context) -> Iterator[Document | None]:
        """Yield the memories for the index, and None at points where the work may pause.

        Unreadable entries, and entries that these may hide, are missing; searches report them from `unread`.
        """
        unread: list[int] = []
        met = filter_damage(context, records.UPDATES)
        for key, where in context.scan(bytes, prefix=records.UPDATES, on_damage=met):
            try:
                entry = self.listed_at(context, where)
                if not self.is_indexed(entry):
                    continue
                self._check_successors(context, entry)
            except RecordDamagedError as error:
                if not error.entry:
                    raise
                unread.append(int.from_bytes(key[1:]))
                continue
            try:
                value, _ = yield from self.value(context, entry)
            except RecordDamagedError:  # the memory that it supersedes must stay hidden
                unread.append(entry.update)
                value = b'""'
                entry = msgspec.structs.replace(
                    entry, details=msgspec.structs.replace(self.details_of(context, entry), form=records.JSON)
                )
            yield (yield from self.document(entry, value, self.uses.quality(context, entry)))
        if unread != self.unread(context):
            context.put(records.UNREAD, unread)
        self._unread = unread

    def unread(self, context: Context) -> list[int]:
        """Return the updates that the index lacks because they could not be read."""
        if self._unread is None:
            self._unread = context.get(records.UNREAD, list[int]) or []
        return self._unread

    def note_unread(self, context: Context) -> None:
        """Report in the reply to a search which visible entries the index lacks."""
        for update in self.unread(context):
            try:
                stored = self.by_update(context, update)
                if stored is None or not records.is_there(stored.entry, context.now):
                    continue
                if self.may_see(context.principal, stored.entry):
                    self._check_successors(context, stored.entry)
                    self.version(context, stored.entry)
            except RecordDamagedError as error:
                note_damage(context, error)

    def _check_successors(self, context: Context, entry: Entry) -> None:
        """Raise an error if a superseding entry is unreadable; then the entry must stay hidden."""
        if entry.details is None or entry.details.superseded_by is None:
            return
        prefix = records.successors_prefix(entry.number)
        try:
            for key, _ in context.scan(bool, prefix=prefix):
                self.by_number(context, int.from_bytes(key[-8:]))
        except RecordDamagedError as error:
            raise self.lost(error, entry) from error

    def author(self, entry: Entry) -> str:
        """Return the author of an entry."""
        if entry.details is None or entry.details.author is None:
            return self.partition(entry).agent or self.partition(entry).user or ""
        return entry.details.author

    @property
    def views(self) -> VisibilityCache:
        """The visible rows by caller, cached."""
        if self._views is None:
            from greenroom.actors.memories.storage.vector_filters import VisibilityCache  # noqa: PLC0415 - needs numpy

            self._views = VisibilityCache()
        return self._views

    def resident_bytes(self) -> int:
        """Estimate the memory in use."""
        views = 0 if self._views is None else self._views.resident_bytes()
        kept = len(self.mapped) * _MAPPED_BYTES + len(self.forgotten or ()) * _FORGOTTEN_BYTES
        kept += len(self._tails) * _TAIL_BYTES
        return self.size + self.index.resident_bytes() + self.uses.resident_bytes() + views + kept

    # -- parts -------------------------------------------------------------

    @staticmethod
    def _has_entries(context: Context) -> bool:
        met: list[RecordDamagedError] = []
        entries = context.scan(msgspec.Raw, prefix=records.ENTRIES, on_damage=met.append)
        return next(entries, None) is not None or bool(met)

    @staticmethod
    def _highest_number(context: Context) -> int:
        """Return the highest number in use; if it may be lost, a higher number."""
        met: list[RecordDamagedError] = []
        counter, skipped = 0, 0
        try:
            counter = context.get(NEWEST, int) or 0
        except RecordDamagedError:
            skipped = _SKIPPED
        for prefix in _NUMBERED:
            highest = next(context.scan(msgspec.Raw, prefix=prefix, reverse=True, on_damage=met.append), None)
            if highest is not None:
                counter = max(counter, int.from_bytes(highest[0][1:]))
        located = [error for error in met if any(context.is_own(error, each) for each in _NUMBERED)]
        numbers = [int.from_bytes(context.own_key(error)[1:]) for error in located]
        if len(located) < len(met):  # the key itself may be damaged
            skipped = _SKIPPED
        return skipped + max([counter, *(each for each in numbers if each < counter + _SKIPPED)])

    def _cache_header(self) -> None:
        self._name(names.root_at(self.address) if self.header is None else self.header.root)
        partitions: tuple[MemoryPartition, ...] = () if self.header is None else self.header.partitions
        self._partition_numbers = {partition: number for number, partition in enumerate(partitions)}

    def _name(self, root: str) -> None:
        self.root = root
        self.tag = names.tag_of_root(root)
        self.has_several_owners = has_several_owners(root)

    def _at_tail(self, context: Context, tail: bytes) -> StoredEntry | None:
        where = context.get(records.id_key(tail), bytes)
        if where is not None and not where:  # see `derived_records`
            raise damaged_entry(missing_record("a memory", records.id_key(tail)), "a memory")
        entry = None if where is None else self.entry_at(context, where)
        return None if where is None or entry is None else StoredEntry(where, entry)
