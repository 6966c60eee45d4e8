"""The records of a root's memories, their keys, and the ids of memories.

        k                       the header of the root: its name, the secret of the ids, the partitions
        e scope hash [place]    an entry, without its values
        v entry version         the value of a version
        o scope update          the entry with this update number, by scope
        a update                the same over all scopes
        x time entry version    a version that expires
        d entry                 a purged entry of which versions are left on disk
        u id                    where the entry with this id is stored (the id without the root's tag)
        s entry partition later     the link to a later entry, in the partition, that supersedes the entry
        q entry                 the uses of an entry, and the sum of its ratings
        r entry rater           one rating
        p entry other           a pair of memories that a person accepted
        t [keys]                the highest version of ended entries under some keys; see `ended_key`
        i …                     the index
        y                       the updates that the index lacks because they could not be read
        w                       the state of an older program's summary; see `directory.drop_summary`
        j staging …             lines of imports that are not applied yet; see `import_staging`

Entries and updates are numbered by one counter. A key may have 1,020 bytes, of which the store takes 200, so
an entry is stored under a digest of its key. All Unicode forms of a key have one digest, except in records of
older programs; see `entry_keys`. A *scope* is a session of an agent, or the part of the namespace below the
root. The *place* separates entries with the same key. Where several principals write, it is the partition, so
that a caller does not learn of a hidden key. For a forgotten entry, the place is its number.

Fields that were added later have defaults and stand at the end of a record, so that older stores can be read.

An id is a UUID of version 8: its first 48 bits are the tag of the root, so that the id leads to the actor.
The rest is computed from the entry's number and a secret of the actor. So an id costs no storage, looks
random, and reveals neither how many memories there are nor their order.
"""

from __future__ import annotations

import functools
from hashlib import blake2b

import msgspec

from greenroom.actors.core.auth.namespaces import ROOT_TAG_BYTES
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.base.unicode_forms import mixed_forms
from greenroom.actors.core.replies import replies
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE, MemoryKind
from greenroom.actors.core.validation.times import optional_datetime, to_datetime

HEADER = b"k"
SUMMARY = b"w"
UNREAD = b"y"
ENTRIES = b"e"
ORDER = b"o"
UPDATES = b"a"
EXPIRIES = b"x"
DELETED = b"d"
VERSIONS = b"v"
QUALITIES = b"q"
RATINGS = b"r"
SUCCESSORS = b"s"
PAIRS = b"p"
ENDED = b"t"
IDS = b"u"
GLOBAL = b"g"
SESSION = b"s"

JSON = 0
"""A value is the bytes of its JSON."""
TEXT = 1
"""A value is a content, as UTF-8."""
COMPRESSED = 2
"""Added to `JSON` or `TEXT`: the stored bytes are compressed with zlib."""

NOTHING = 0
"""No entry has this number."""

_HASH_BYTES = 32
_SUB_BYTES = 16
_DIGEST_BYTES = 16
_PARTITION_BYTES = 4
_UPDATE_BYTES = 8
_FORGOTTEN = b"~"
GROUPS = 1 << 10
"""The number of groups of keys; for each group, a root stores the highest version that ended."""
_GROUP_BYTES = 2
SECRET_BYTES = 16
_TAIL_BYTES = 16 - ROOT_TAG_BYTES


class RootHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header record of a root.

    Attributes:
        root: The first two segments of its memories' namespaces.
        secret: The key from which ids are made.
        indexed_to: Entries up to this update are in the index; None for all. Only older stores have a number.
    """

    root: str
    secret: bytes
    partitions: tuple[MemoryPartition, ...]
    indexed_to: int | None = None


class RootSummary(msgspec.Struct, frozen=True, array_like=True):
    """The state of the summary of a root that an older program wrote into `directory.SUMMARIES`.

    Attributes:
        parts: The number of rows about all memories.
        cleared: The last update without rows of its own.
    """

    rules: str
    upto: int = 0
    parts: int = 0
    cleared: int = 0


class EntryDetails(msgspec.Struct, frozen=True, array_like=True):
    """Fields of an entry that an agent's plain key-value entry does not have.

    Attributes:
        partition: The number of its partition.
        sub: Its namespace below the root.
        author: The author that the caller named; None for the agent.
        supersedes: The number of the entry that it supersedes.
        superseded_by: The last entry that superseded it; the link tells whether it still does.
        form: `JSON` or `TEXT`, and whether `COMPRESSED`.
        by_owner: Whether its owner wrote the newest version, as far as is known.
        unreviewed: Whether a rule made it and no person has reviewed it.
        deleted_by: Who forgot it; None in records of older programs.
        imported: The author according to the source of an import; the author is then the importer.
        is_dated: Whether the time of creation came with an import.
        own_version: If another user wrote the newest version: the owner's last one; None if unknown.
        changed_by: Who wrote the newest version then: the user, or the agent without a user.
    """

    partition: int
    sub: str = ""
    kind: MemoryKind = "semantic"
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    author: str | None = None
    conversation: str | None = None
    position: int | None = None
    supersedes: int | None = None
    superseded_by: int | None = None
    deleted_at: int | None = None
    form: int = JSON
    stored_size: int = 0
    by_owner: bool = False
    unreviewed: bool = False
    deleted_by: str | None = None
    imported: str | None = None
    is_dated: bool = False
    own_version: int | None = None
    changed_by: str | None = None


PLAIN = EntryDetails(0)
"""The details of an agent's plain entry."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A key's current state; ``number`` never changes, ``update`` belongs to the newest version.

    ``skipped`` counts the version numbers below ``version`` that belong to other entries.
    """

    key: str
    session_id: str | None
    number: int
    update: int
    version: int
    created_at: int
    updated_at: int
    expires_at: int | None
    value_size: int
    details: EntryDetails | None = None
    skipped: int = 0

    @property
    def versions(self) -> int:
        """The number of versions it has had."""
        return self.version - self.skipped

    @property
    def sub(self) -> str:
        """The namespace below the root."""
        return "" if self.details is None else self.details.sub

    @property
    def stored_size(self) -> int:
        """The bytes of the newest value as it is stored."""
        return self.value_size if self.details is None else self.details.stored_size

    @property
    def deleted_at(self) -> int | None:
        """When it was forgotten; None if it was not."""
        return None if self.details is None else self.details.deleted_at


class VersionDetails(msgspec.Struct, frozen=True, array_like=True):
    """Fields of a version that an agent's plain key-value entry does not have.

    Attributes:
        size: The bytes as received.
        supersedes: `NOTHING` for none; None in records of older programs.
        imported: The author according to the source of an import.
    """

    update: int
    form: int
    size: int
    author: str | None = None
    task_id: str | None = None
    kind: MemoryKind = "semantic"
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    unreviewed: bool = False
    supersedes: int | None = None
    imported: str | None = None


class Version(msgspec.Struct, frozen=True, array_like=True):
    """One version: its metadata and value; their JSON texts are as received."""

    stored_at: int
    expires_at: int | None
    metadata: bytes
    value: bytes
    details: VersionDetails | None = None

    @property
    def form(self) -> int:
        """`JSON` or `TEXT`, and whether `COMPRESSED`."""
        return JSON if self.details is None else self.details.form


class VersionTimes(msgspec.Struct, frozen=True, array_like=True):
    """The times of a version, read without its value, which may be large."""

    stored_at: int
    expires_at: int | None


class Quality(msgspec.Struct, frozen=True, array_like=True):
    """Usage and ratings of an entry: counts, last use, sum of ratings."""

    uses: int = 0
    last_used: int | None = None
    rated: float = 0.0
    ratings: int = 0

    @property
    def rating(self) -> float:
        """The mean rating, 0 without any."""
        return self.rated / self.ratings if self.ratings else 0.0


class Rating(msgspec.Struct, frozen=True, array_like=True):
    """One rater's rating and note, and the rating and note that they replaced."""

    at: int
    rater: str
    rating: float
    note: str | None
    before: tuple[float, str | None] | None = None


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return where a key holds scopes, and digests of keys, raters and imports."""
    letter = key[:1]
    if letter in {b"e", b"o"} and len(key) > 1:
        end = _end_of_scope(key)
        return ((1, end + _HASH_BYTES if letter == b"e" else end),)
    if letter == ENDED and len(key) > 1:
        return ((1, 1 + _GROUP_BYTES),)
    start = {b"r": 9, b"j": 1}.get(letter, len(key))
    return ((start, start + _DIGEST_BYTES),) if len(key) > start else ()


def scope_bytes(session_id: str | None, sub: str = "") -> bytes:
    """Return the bytes of a scope within keys."""
    if sub:
        return b"n" + blake2b(sub.encode(), digest_size=_SUB_BYTES).digest()
    return GLOBAL if session_id is None else SESSION + session_id.encode() + b"\0"


def scope_name(session_id: str | None) -> replies.Scope:
    """Return the scope's name on the wire."""
    return "global" if session_id is None else "session"


def entry_key(session_id: str | None, key: str, sub: str = "") -> bytes:
    """Return the record key of a new entry; with several owners, only its prefix."""
    return entry_keys(session_id, key, sub)[0]


@functools.lru_cache(maxsize=1_024)
def entry_keys(session_id: str | None, key: str, sub: str = "") -> tuple[bytes, ...]:
    """Return the possible record keys of an entry, the composed form first.

    Older programs stored each Unicode form of a key separately.
    """
    return keys_in_scope(scope_bytes(session_id, sub), key)


def keys_in_scope(scope: bytes, key: str) -> tuple[bytes, ...]:
    """Return the possible record keys of an entry in a scope, as `entry_keys` does."""
    return tuple(
        ENTRIES + scope + blake2b(form.encode(), digest_size=_HASH_BYTES).digest()
        for form in mixed_forms(key)
    )


def partition_suffix(partition: int) -> bytes:
    """Return the suffix of an entry's record key where several principals write."""
    return partition.to_bytes(_PARTITION_BYTES)


def forgotten_suffix(number: int) -> bytes:
    """Return the record key suffix of a forgotten entry; its key is in use again."""
    return _FORGOTTEN + number.to_bytes(8)


def is_forgotten_suffix(suffix: bytes) -> bool:
    """Return whether a suffix belongs to a forgotten entry whose key is in use again."""
    return suffix.startswith(_FORGOTTEN) and len(suffix) > _PARTITION_BYTES


def end_of_digest(where: bytes) -> int:
    """Return the offset in an entry's record key where the place begins."""
    return _end_of_scope(where) + _HASH_BYTES


def scope_of_entry(where: bytes) -> bytes:
    """Return the bytes of the scope in an entry's record key."""
    return where[len(ENTRIES) : _end_of_scope(where)]


def _end_of_scope(key: bytes) -> int:
    """Return where the scope in the key of an entry or an update ends."""
    return {GLOBAL: 2, b"n": 2 + _SUB_BYTES}.get(key[1:2]) or key.find(0, 2) + 1 or len(key) + 1


def ended_key(key: bytes | None) -> bytes:
    """Return the key of a group's row with the highest ended version.

    Groups bound the number of rows and hide the keys: 1 of 1,024 other keys is in the same group. None stands
    for all keys.
    """
    if key is None:
        return ENDED
    group = int.from_bytes(blake2b(key, digest_size=_GROUP_BYTES).digest()) % GROUPS
    return ENDED + group.to_bytes(_GROUP_BYTES)


def ended_keys() -> list[bytes]:
    """Return the keys of all groups."""
    return [ENDED + group.to_bytes(_GROUP_BYTES) for group in range(GROUPS)]


def versions_prefix(number: int) -> bytes:
    """Return the key prefix of an entry's values; the version number follows it."""
    return VERSIONS + number.to_bytes(8)


def version_key(number: int, version: int) -> bytes:
    """Return the record key of a value."""
    return VERSIONS + number.to_bytes(8) + version.to_bytes(8)


def updates_prefix(session_id: str | None, sub: str = "") -> bytes:
    """Return the key prefix of the updates of one scope."""
    return ORDER + scope_bytes(session_id, sub)


def scope_of_update(key: bytes) -> bytes:
    """Return the bytes of the scope in the key of an order row."""
    return key[len(ORDER) : -_UPDATE_BYTES]


def update_key(update: int) -> bytes:
    """Return the key of the row that names the entry with an update number."""
    return UPDATES + update.to_bytes(8)


def order_keys(entry: Entry) -> tuple[bytes, bytes]:
    """Return the keys of an entry's rows in both orders: by scope and overall."""
    update = entry.update.to_bytes(8)
    return updates_prefix(entry.session_id, entry.sub) + update, UPDATES + update


def expiry_key(expires_at: int, number: int, version: int) -> bytes:
    """Return the key of a version's expiry row."""
    return EXPIRIES + expires_at.to_bytes(8) + number.to_bytes(8) + version.to_bytes(8)


def deleted_key(number: int) -> bytes:
    """Return the key of the mark for a purged entry that still has versions."""
    return DELETED + number.to_bytes(8)


def successors_prefix(number: int) -> bytes:
    """Return the key prefix of the links to entries that supersede an entry."""
    return SUCCESSORS + number.to_bytes(8)


def successor_key(number: int, partition: int, later: int) -> bytes:
    """Return the key of the link from an entry to one that supersedes it."""
    return successors_prefix(number) + partition_suffix(partition) + later.to_bytes(8)


def id_key(tail: bytes) -> bytes:
    """Return the key of the row that names the entry with an id."""
    return IDS + tail


def quality_key(number: int) -> bytes:
    """Return the record key of an entry's uses and ratings."""
    return QUALITIES + number.to_bytes(8)


def ratings_prefix(number: int) -> bytes:
    """Return the key prefix of an entry's ratings; the rater follows it."""
    return RATINGS + number.to_bytes(8)


def rating_key(number: int, rater: str) -> bytes:
    """Return the record key of one rater's rating of an entry."""
    return ratings_prefix(number) + blake2b(rater.encode(), digest_size=_DIGEST_BYTES).digest()


def pairs_prefix(number: int) -> bytes:
    """Return the key prefix of an entry's accepted pairs; the other number follows it."""
    return PAIRS + number.to_bytes(8)


def pair_key(number: int, other: int) -> bytes:
    """Return the key of an accepted pair; each of its entries has such a key."""
    return pairs_prefix(number) + other.to_bytes(8)


def is_live(expires_at: int | None, now: int) -> bool:
    """Return whether a record has not expired; at the moment of expiry, it has expired."""
    return expires_at is None or now < expires_at


def is_there(entry: Entry, now: int) -> bool:
    """Return whether an entry exists for readers: neither expired nor forgotten."""
    return is_live(entry.expires_at, now) and entry.deleted_at is None


def view(entry: Entry) -> replies.MemoryEntry:
    """Return an entry as its owner sees it in a list."""
    return replies.MemoryEntry(
        key=entry.key,
        scope=scope_name(entry.session_id),
        session_id=entry.session_id,
        version=entry.version,
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(entry.updated_at),
        expires_at=optional_datetime(entry.expires_at),
        value_size=entry.value_size,
    )


def tail_of_number(secret: bytes, number: int) -> bytes:
    """Return the tail of an entry's id: the part after the root's tag."""
    tail = bytearray(blake2b(number.to_bytes(8), digest_size=_TAIL_BYTES, key=secret).digest())
    tail[0] = tail[0] & 0x0F | 0x80  # the UUID's version
    tail[2] = tail[2] & 0x3F | 0x80  # the UUID's variant
    return bytes(tail)


def memory_id(tag: bytes, tail: bytes) -> str:
    """Return the id as text from the root's tag and the tail."""
    text = (tag + tail).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def tail_of_id(memory_id: str) -> bytes:
    """Return the tail of an id: the part after the root's tag."""
    return bytes.fromhex(memory_id[14:18] + memory_id[19:23] + memory_id[24:])
