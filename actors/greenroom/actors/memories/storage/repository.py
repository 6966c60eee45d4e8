"""The repository of a root's memories: header, partitions, ids, look-up, index documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.resources.resource_uris import memories_uri, memory_uri
from greenroom.actors.index import Document, MemoryIndex
from greenroom.actors.memories.storage import directory, records
from greenroom.actors.memories.storage.records import (
    PLAIN,
    Entry,
    EntryDetails,
    RootHeader,
    RootSummary,
    Version,
)
from greenroom.actors.memories.storage.usage_counters import UsageCounters
from greenroom.actors.memories.storage.values import searched_text, unpack
from greenroom.runtime import Context, Refusal, Slices

if TYPE_CHECKING:
    from greenroom.actors.memories.requests.map_replies import MappedMemory
    from greenroom.actors.memories.storage.vector_filters import VisibilityCache

GENERATED_KEY = re.compile(r"memory_[0-9a-f]{16}")
"""The form of a generated key; its letters are not searched."""
NEWEST = b"n"
_MAPPED_BYTES = 600  # of a memory that was on a map, about
_FORGOTTEN_BYTES = 170
_SINGLE_OWNER = (names.AGENT, names.USER)


class StoredEntry(NamedTuple):
    """An entry and where it lies."""

    record_key: bytes
    entry: Entry


class MemoryRepository:
    """The memories below one root.

    Attributes:
        address: The key of the actor's address.
        counter: The highest number in use.
        header: What holds for all of them; None before the first write, and for a store of an older program.
        index: Their index.
        uses: Their uses that are not written yet.
        embedder_notified: Whether the embedder was told that some lack vectors.
        forgotten: When which entries were forgotten, by number; some are not any more. None: nobody asked.
        summarized: The generation of the summary that was put together since the actor woke; None: none was.
        mapped: What maps show of memories, by update number; `map_rows` fills it, and keeps it small.
        settled: How many decisions about pairs were taken since the actor woke.
    """

    def __init__(self, context: Context) -> None:
        """Find the highest number in use; everything else stays on disk."""
        self.address = context.address.key
        self.index = MemoryIndex(MemoryPartition, self.documents)
        self.uses = UsageCounters()
        self.counter = context.get(NEWEST, int) or 0
        for prefix in (records.UPDATES, records.DELETED):
            highest = next(context.scan(msgspec.Raw, prefix=prefix, reverse=True), None)
            if highest is not None:
                self.counter = max(self.counter, int.from_bytes(highest[0][1:]))
        self.header = context.get(records.HEADER, RootHeader)
        self._agent_partition = policy.agent_partition(self.address)
        self._is_listed = False
        self.embedder_notified = False
        self.forgotten: dict[int, int] | None = None
        self._views: VisibilityCache | None = None
        self.mapped: dict[int, MappedMemory] = {}
        self.settled = 0
        self._summary: RootSummary | None = None
        self._knows_summary = False
        self.summarized: int | None = None
        self._cache_header()

    # -- the root ----------------------------------------------------------

    @property
    def indexed_to(self) -> int | None:
        """Up to which update entries are in the index; None: all are."""
        if self.header is None:
            return 0 if self.counter else None
        return self.header.indexed_to

    def is_indexed(self, entry: Entry) -> bool:
        """Return whether an entry's newest version is in the index."""
        to = self.indexed_to
        return entry.deleted_at is None and (to is None or entry.update <= to)

    def ensure_root(self, context: Context, root: str) -> RootHeader:
        """Return what holds for all memories of the root; staged if there is nothing yet.

        Raises:
            Refusal: as `check_root`.
        """
        self.check_root(root)
        if self.header is None:
            secret = context.random.randbytes(records.SECRET_BYTES)
            # What an agent stores by key lies on its own partition without saying so.
            partitions = (self._agent_partition,) if root.startswith(names.AGENT) else ()
            self.put_header(context, RootHeader(root, secret, partitions, 0 if self.counter else None))
        assert self.header is not None, "it was just made"
        if not self._is_listed:
            self.list_root(context)
        return self.header

    def check_root(self, root: str) -> None:
        """Check the name of a root that is written to for the first time.

        Raises:
            Refusal: ``VALIDATION_ERROR``: it reads like that of a user, an agent or a project.
        """
        if self.header is None and (reserved := names.imitated(root)) is not None:
            raise auth_errors.imitation(root, reserved)

    @property
    def imitates(self) -> str | UnsetType:
        """What the root reads like, if it was made before such names were refused."""
        return names.imitated(self.root) or UNSET

    def name_root(self, namespace: str) -> None:
        """Set the root's name, which the address does not tell when it is too long for one."""
        if self.header is None and len(self.address) == names.MAX_ADDRESS:
            self._name(names.root_of(namespace))

    def put_header(self, context: Context, common: RootHeader) -> None:
        """Stage a change of what holds for all memories."""
        context.put(records.HEADER, common)
        self.header = common
        self._cache_header()

    def list_root(self, context: Context) -> None:
        """Stage the root's row in the directory."""
        assert self.header is not None, "it was made before"
        directory.put(context, self.root, self.header.partitions)
        self._is_listed = True

    def list_again(self, context: Context) -> None:
        """Stage the root's row in the directory, which may be lost, unless none belongs there."""
        if self.header is not None and self._has_entries(context):
            self.list_root(context)

    def unlist_if_empty(self, context: Context) -> bool:
        """Stage what follows from removals, and return whether no memory is left; see `removal.finish`.

        The root stays in the directory as long as there are entries: by it also forgotten ones are found.
        """
        context.put(NEWEST, self.counter)  # no number is ever used twice
        if not self._has_entries(context):
            directory.remove(context, self.root)
            self._is_listed = False
            return True
        return False

    @property
    def is_resource(self) -> bool:
        """Whether it is a resource that is read; only an agent's memory is."""
        return ":" not in self.address

    def publish(self, context: Context, *changed: Entry) -> None:
        """Publish that entries changed, as they were or are, to those who may see them."""
        self.publish_about(context, *changed)
        if self.is_resource:
            label = policy.ChangeLabel(policy.own_audience(self.address))
            context.publish(memory_uri(self.address), label)

    def publish_about(self, context: Context, *entries: Entry) -> None:
        """Publish that something changed of entries that they do not say: uses, ratings, vectors, pairs."""
        places = {(self.partition(entry), self.namespace(entry.sub)) for entry in entries}
        for label in {label for place in places for label in policy.labels_of_memory(*place)}:
            context.publish(memories_uri(self.root), label)

    def namespace(self, sub: str) -> str:
        """Return a namespace below the root in full."""
        return f"{self.root}:{sub}" if sub else self.root

    def sub(self, namespace: str | None) -> str:
        """Return what a namespace has below the root; None is the root."""
        return "" if namespace is None else namespace[len(names.root_of(namespace)) + 1 :]

    def summary(self, context: Context) -> RootSummary | None:
        """Return how far it is put together what there is; None for a root of an older program."""
        if not self._knows_summary:
            self.set_summary(context.get(records.SUMMARY, RootSummary))
        return self._summary

    def set_summary(self, summary: RootSummary | None) -> None:
        """Take note of how far it is put together, as it is staged."""
        self._summary, self._knows_summary = summary, True

    # -- partitions and ids ---------------------------------------------------

    def partition_number(self, context: Context, partition: MemoryPartition) -> int:
        """Return the number of a partition, a new one if it has none."""
        number = self._partition_numbers.get(partition)
        if number is None:
            assert self.header is not None, "it was made before"
            number = len(self.header.partitions)
            partitions = (*self.header.partitions, partition)
            self.put_header(context, msgspec.structs.replace(self.header, partitions=partitions))
            self.list_root(context)
        return number

    def next_partition(self) -> int:
        """Return the number that the next new partition gets."""
        return 0 if self.header is None else len(self.header.partitions)

    def partition(self, entry: Entry) -> MemoryPartition:
        """Return the partition of an entry; a plain one is its agent's."""
        if entry.details is None:
            return self._agent_partition
        assert self.header is not None, "an entry with more came after it"
        return self.header.partitions[entry.details.partition]

    def details_of(self, context: Context, entry: Entry) -> EntryDetails:
        """Return what an entry has besides; what an agent's plain one would have."""
        return entry.details or EntryDetails(
            self.partition_number(context, self._agent_partition), stored_size=entry.value_size
        )

    def may_see_partition(self, principal: Principal, number: int) -> bool:
        """Return whether ``principal`` may know of anything in a partition."""
        assert self.header is not None, "a partition has its number there"
        return policy.may_see_memory(principal, self.header.partitions[number], self.root)

    def may_see(self, principal: Principal, entry: Entry) -> bool:
        """Return whether ``principal`` may know of an entry."""
        return policy.may_see_memory(principal, self.partition(entry), self.namespace(entry.sub))

    def tail(self, number: int) -> bytes:
        """Return what follows the root in the id of the entry with this number."""
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
        """Return the record keys that an entry of this partition may have; a new one has the first."""
        number = self._partition_numbers.get(partition, self.next_partition())
        keys = records.entry_keys(session_id, key, sub)
        return tuple(self.entry_key(each, number) for each in keys)

    def find(self, context: Context, sub: str, session_id: str | None, key: str) -> StoredEntry | None:
        """Return the entry of a key that is there and that the sender may see.

        Where several have one under that key, it is the sender's own before what others share.

        Raises:
            Refusal: as `meant`.
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
        return self.meant(key, [found, *self._other_forms(context, found.entry)])

    def find_own(self, context: Context, session_id: str | None, key: str) -> StoredEntry | None:
        """Return the entry of a key of the agent's own, before others one that is there.

        Raises:
            Refusal: as `meant`.
        """
        places = records.entry_keys(session_id, key)
        if len(places) == 1 and not self.has_several_owners:  # as most often, and it is the fastest
            entry = context.get(places[0], Entry)
            return None if entry is None else StoredEntry(places[0], entry)
        stored = list(self.live_entries_of_key(context, places))
        there = [each for each in stored if records.is_there(each.entry, context.now)]
        return self.meant(key, there) if there else next(iter(stored), None)

    def meant(self, key: str, there: list[StoredEntry]) -> StoredEntry:
        """Return the entry that a key means, of those under forms of it: the one of this very form.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there are several, of other forms.
        """
        exact = [stored for stored in there if stored.entry.key == key]
        if not exact and len(there) > 1:
            ids = [None if self.header is None else self.memory_id(each.entry.number) for each in there]
            raise auth_errors.ambiguous_key(key, [each.entry.key for each in there], ids)
        return (exact or there)[0]

    def other_forms(self, context: Context, entry: Entry) -> list[str] | UnsetType:
        """Return keys that differ from an entry's in the form of Unicode alone, and have another memory."""
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
        for stored in self.live_entries_of_key(context, records.entry_keys(session_id, key, sub)):
            if records.is_there(stored.entry, context.now) and self.may_see(context.principal, stored.entry):
                yield stored

    def ended_version(self, context: Context, keys: Iterable[bytes]) -> int:
        """Return the highest version of what ended under a key; a new memory's first one is above it.

        Where several own memories it is that of all keys: one's own says nothing of another's then.

        Args:
            context: The message's.
            keys: As `records.entry_keys` returns them.
        """
        return max(context.get(self._ended_key(key), int) or 0 for key in keys)

    def note_end(self, context: Context, entry: Entry) -> None:
        """Stage that an entry ends, or will by itself: its version numbers are not used again."""
        where = self._ended_key(records.entry_key(entry.session_id, entry.key, entry.sub))
        if entry.version > (context.get(where, int) or 0):
            context.put(where, entry.version)

    def _ended_key(self, key: bytes) -> bytes:
        return records.ended_key(None if self.has_several_owners else key)

    def entries_of_key(self, context: Context, keys: Iterable[bytes]) -> Iterator[StoredEntry]:
        """Yield what lies under one key: of each form at most one entry a partition, and forgotten ones."""
        for prefix in keys:
            for where, entry in context.scan(Entry, prefix=prefix):
                yield StoredEntry(where, entry)

    def live_entries_of_key(self, context: Context, keys: Iterable[bytes]) -> Iterator[StoredEntry]:
        """Yield what may be there under one key; where one owner writes that is at most one of each form."""
        if self.has_several_owners:
            yield from self.entries_of_key(context, keys)
            return
        for where in keys:
            if (entry := context.get(where, Entry)) is not None:
                yield StoredEntry(where, entry)

    def find_id(self, context: Context, memory_id: str, *, forgotten: bool = False) -> StoredEntry | None:
        """Return the entry with an id if the sender may see it, also a forgotten one if that is wanted."""
        if names.tag_of_id(memory_id) != self.tag:
            return None
        stored = self._at_tail(context, records.tail_of_id(memory_id))
        if stored is None or not self.may_see(context.principal, stored.entry):
            return None
        there = records.is_live(stored.entry.expires_at, context.now)
        return stored if there and (forgotten or stored.entry.deleted_at is None) else None

    def not_found(
        self, context: Context, memory_id: str | None, key: str | None, namespace: str | None = None
    ) -> Refusal:
        """Return the refusal of an id or a key under which the sender sees nothing."""
        where = None if key is None else namespace or self.root
        hidden = self.hides(context, memory_id, key, namespace)
        return auth_errors.no_memory(memory_id or key, where=where, hidden=hidden)

    def hides(
        self, context: Context, memory_id: str | None, key: str | None, namespace: str | None = None
    ) -> bool:
        """Return whether an id or a key names something here that only others than the sender see."""
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
        """Return the entry with a number, whatever became of it."""
        return None if self.header is None else self._at_tail(context, self.tail(number))

    def by_update(self, context: Context, update: int) -> StoredEntry | None:
        """Return the entry whose newest version has this update number."""
        where = context.get(records.update_key(update), bytes)
        entry = None if where is None else context.get(where, Entry)
        return None if where is None or entry is None else StoredEntry(where, entry)

    def value(self, context: Context, entry: Entry) -> Slices[tuple[bytes, Version]]:
        """Return the newest value as it was given, and its version."""
        version = context.get(records.version_key(entry.number, entry.version), Version)
        assert version is not None, "an entry has its newest version"
        form = records.JSON if version.details is None else version.details.form
        return (yield from unpack(version.value, form, context)), version

    # -- the index ---------------------------------------------------------

    def document(
        self, context: Context, entry: Entry, value: bytes, quality: records.Quality
    ) -> Slices[Document]:
        """Return an entry as the index gets it; ``value`` is not compressed."""
        details = entry.details or PLAIN
        return Document(
            id=entry.update,
            partition=self.partition(entry),
            namespace=self.namespace(details.sub),
            text=(yield from searched_text(value, details.form, context)),
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
        """Yield the memories that the index has to have, and None when the slice is over."""
        for _, where in context.scan(bytes, prefix=records.UPDATES):
            entry = context.get(where, Entry)
            assert entry is not None, "an order row goes with its entry"
            if self.is_indexed(entry):
                value, _ = yield from self.value(context, entry)
                yield (yield from self.document(context, entry, value, self.uses.quality(context, entry)))

    def author(self, entry: Entry) -> str:
        """Return the author of an entry."""
        if entry.details is None or entry.details.author is None:
            return self.partition(entry).agent or self.partition(entry).user or ""
        return entry.details.author

    @property
    def views(self) -> VisibilityCache:
        """The visible rows of readers, cached."""
        if self._views is None:
            from greenroom.actors.memories.storage.vector_filters import VisibilityCache  # noqa: PLC0415 - needs numpy

            self._views = VisibilityCache()
        return self._views

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        views = 0 if self._views is None else self._views.resident_bytes()
        kept = len(self.mapped) * _MAPPED_BYTES + len(self.forgotten or ()) * _FORGOTTEN_BYTES
        return self.index.resident_bytes() + self.uses.resident_bytes() + views + kept

    # -- parts -------------------------------------------------------------

    @staticmethod
    def _has_entries(context: Context) -> bool:
        return next(context.scan(msgspec.Raw, prefix=records.ENTRIES), None) is not None

    def _cache_header(self) -> None:
        self._name(names.root_at(self.address) if self.header is None else self.header.root)
        partitions: tuple[MemoryPartition, ...] = () if self.header is None else self.header.partitions
        self._partition_numbers = {partition: number for number, partition in enumerate(partitions)}

    def _name(self, root: str) -> None:
        self.root = root
        self.tag = names.tag_of_root(root)
        self.has_several_owners = not root.startswith(_SINGLE_OWNER)

    def _at_tail(self, context: Context, tail: bytes) -> StoredEntry | None:
        where = context.get(records.id_key(tail), bytes)
        entry = None if where is None else context.get(where, Entry)
        return None if where is None or entry is None else StoredEntry(where, entry)
