"""The records of a root's memories, their keys, and the ids of memories.

    k                       what holds for all of them: the root, the secret of the ids, the partitions
    e scope hash [place]    an entry, without its values
    v entry version         one version's value
    o scope update          the entry updated so-manyth, by scope
    a update                the same over all scopes
    x time entry version    a version that expires
    d entry                 the versions of a purged entry that are still on disk
    u id                    where the entry with this id lies (of the id, what follows the root)
    s entry partition later     the later entry, which lies in the partition, takes the place of the entry
    q entry                 how often an entry was used, and its ratings together
    r entry rater           one rating
    p entry other           the two may stand beside each other, as somebody said
    t [keys]                the highest version of what ended under some keys; see `ended_key`
    i …                     the index
    w                       how far it is put together what there is; see `root_summary`
    j staging …             lines of imports that are not applied yet; see `import_staging`

Entries and updates are numbered by one counter. A key may have 1,020 bytes and the store's
take 200, so an entry lies under a digest of its key. All Unicode forms of a key have one digest, but for what
older programs stored; see `entry_keys`. A *scope* is a session of an agent, or the part
of the namespace below the root. The place tells apart entries of one key: where several write, the
partition, so that nobody learns of a key that is hidden from it; of a forgotten one, its number.

Records end with what came later: fields with a default, so that older stores can be read.

An id is a UUID of version 8: 48 bits stand for the root, so that the actor can be found by the id alone.
The rest looks random to everyone: it is made of the entry's number with a secret of the actor, so that an
id costs nothing to store and tells neither how many memories there are nor which came first.
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
ENTRIES = b"e"
ORDER = b"o"
UPDATES = b"a"
EXPIRIES = b"x"
DELETED = b"d"
VERSIONS = b"v"
QUALITIES = b"q"
RATINGS = b"r"
GLOBAL = b"g"
SESSION = b"s"

JSON = 0
"""A value is the bytes of its JSON."""
TEXT = 1
"""A value is a content, as UTF-8."""
COMPRESSED = 2
"""Added to either: what is stored is compressed with zlib."""

NOTHING = 0
"""No entry has this number."""

_HASH_BYTES = 32
_SUB_BYTES = 16
_DIGEST_BYTES = 16
_PARTITION_BYTES = 4
_UPDATE_BYTES = 8
_FORGOTTEN = b"~"
_ENDED = b"t"
GROUPS = 1 << 10
"""Of so many groups of keys a root keeps how far versions went that ended."""
_GROUP_BYTES = 2
SECRET_BYTES = 16
_TAIL_BYTES = 16 - ROOT_TAG_BYTES


class RootHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header record of a root: what holds for all its memories.

    Attributes:
        root: The first two segments of their namespaces.
        secret: What their ids are made with.
        partitions: Their partitions, by number.
        indexed_to: Entries updated up to here are in the index; None: all, as it is but for older stores.
    """

    root: str
    secret: bytes
    partitions: tuple[MemoryPartition, ...]
    indexed_to: int | None = None


class RootSummary(msgspec.Struct, frozen=True, array_like=True):
    """What the root's rows of the index of summaries are.

    Attributes:
        rules: By which rules texts became terms; empty if the rows do not tell of all memories.
        upto: The update up to which memories are put together.
        parts: In how many rows.
        cleared: Up to which of them rows of their own are gone.
        space: The space of the vectors that were put together; None if some were missing.
        generation: How often they were put together: that tells whoever has read them that they changed.
    """

    rules: str
    upto: int = 0
    parts: int = 0
    cleared: int = 0
    space: str | None = None
    generation: int = 0


class EntryDetails(msgspec.Struct, frozen=True, array_like=True):
    """Fields of an entry beyond those of an agent's plain key-value entry.

    Attributes:
        partition: The number of its partition.
        sub: Its namespace below the root.
        kind: What kind of memory it is.
        tags: As given.
        importance: 0 to 1.
        author: Who is said to have written it; None: the agent.
        conversation: Which conversation it belongs to.
        position: Its place there.
        supersedes: The number of the entry that it takes the place of.
        superseded_by: The number of the entry that took its place last; whether it still does, its link says.
        deleted_at: When it was forgotten.
        form: `JSON` or `TEXT`, and whether `COMPRESSED`.
        stored_size: The bytes of the stored value.
        by_owner: Whether its owner wrote the newest version, as far as that is known.
        unreviewed: Whether a rule found it and nobody has looked at it since.
        deleted_by: Who forgot it; None where an older program did not say.
        imported: Who wrote it as the source of an import says, where the author is who imported it.
        is_dated: Whether its time of creation came with an import, and is not the one when it was stored.
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


PLAIN = EntryDetails(0)
"""What an agent's plain entry has."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A key's current state. ``number`` is the entry's for good, ``update`` that of its newest version.

    ``skipped`` is how many numbers below ``version`` are those of other entries.
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
        """How many versions it has had."""
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
        """When it was forgotten, None for one that is there."""
        return None if self.details is None else self.details.deleted_at


class VersionDetails(msgspec.Struct, frozen=True, array_like=True):
    """Fields of a version beyond those of an agent's plain key-value entry.

    Attributes:
        update: Its update number.
        form: As `EntryDetails.form`.
        size: The bytes as given.
        author: Who wrote this version.
        task_id: For which task.
        kind: As the entry had it then.
        tags: As the entry had them then.
        importance: As the entry had it then.
        unreviewed: As the entry was then.
        supersedes: The number of the entry that it took the place of then, `NOTHING` of none; None where an
            older program did not say.
        imported: Who wrote this version as the source of an import says, where its author imported it.
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
    """One value; both JSON texts are as received."""

    stored_at: int
    expires_at: int | None
    metadata: bytes
    value: bytes
    details: VersionDetails | None = None


class VersionTimes(msgspec.Struct, frozen=True, array_like=True):
    """The times of a version, read without its value, which may be large."""

    stored_at: int
    expires_at: int | None


class Quality(msgspec.Struct, frozen=True, array_like=True):
    """Usage and ratings of an entry: how often it was used, last when, the sum of its ratings."""

    uses: int = 0
    last_used: int | None = None
    rated: float = 0.0
    ratings: int = 0

    @property
    def rating(self) -> float:
        """The mean rating, 0 without any."""
        return self.rated / self.ratings if self.ratings else 0.0


class Rating(msgspec.Struct, frozen=True, array_like=True):
    """One rater's opinion, and the one that it replaced: the rating and its note."""

    at: int
    rater: str
    rating: float
    note: str | None
    before: tuple[float, str | None] | None = None


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a key scopes, and digests of keys, raters and imports are."""
    letter = key[:1]
    if letter in {b"e", b"o"} and len(key) > 1:
        end = {GLOBAL: 2, b"n": 2 + _SUB_BYTES}.get(key[1:2]) or key.find(0, 2) + 1 or len(key) + 1
        return ((1, end + _HASH_BYTES if letter == b"e" else end),)
    if letter == _ENDED and len(key) > 1:
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
    """Return the record key of a new entry, or the prefix of those of several owners."""
    return entry_keys(session_id, key, sub)[0]


@functools.lru_cache(maxsize=1_024)
def entry_keys(session_id: str | None, key: str, sub: str = "") -> tuple[bytes, ...]:
    """Return where an entry may lie: under its key's composed form, or as older programs had it.

    Those told a key's forms apart, so that one store may have several of them. ASCII has but one.
    """
    return keys_in_scope(scope_bytes(session_id, sub), key)


def keys_in_scope(scope: bytes, key: str) -> tuple[bytes, ...]:
    """Return where an entry of a scope may lie, as `entry_keys` does."""
    return tuple(
        ENTRIES + scope + blake2b(form.encode(), digest_size=_HASH_BYTES).digest()
        for form in mixed_forms(key)
    )


def partition_suffix(partition: int) -> bytes:
    """Return the key's suffix of an entry in a partition, where several write."""
    return partition.to_bytes(_PARTITION_BYTES)


def forgotten_suffix(number: int) -> bytes:
    """Return the key's suffix of a forgotten entry whose key was taken anew."""
    return _FORGOTTEN + number.to_bytes(8)


def ended_key(key: bytes | None) -> bytes:
    """Return the key of the row with the highest version of what ended under a group of keys.

    Groups bound how many rows there are, and tell of no key: 1 of 1,024 others is in the same.

    Args:
        key: As `entry_key` returns it; None for all keys together.
    """
    if key is None:
        return _ENDED
    group = int.from_bytes(blake2b(key, digest_size=_GROUP_BYTES).digest()) % GROUPS
    return _ENDED + group.to_bytes(_GROUP_BYTES)


def versions_prefix(number: int) -> bytes:
    """Return the bytes before the version numbers of an entry's values."""
    return VERSIONS + number.to_bytes(8)


def version_key(number: int, version: int) -> bytes:
    """Return the record key of a value."""
    return versions_prefix(number) + version.to_bytes(8)


def updates_prefix(session_id: str | None, sub: str = "") -> bytes:
    """Return the bytes before the updates of one scope."""
    return ORDER + scope_bytes(session_id, sub)


def scope_of_update(key: bytes) -> bytes:
    """Return the bytes of the scope in the key of an update in its scope's order."""
    return key[len(ORDER) : -_UPDATE_BYTES]


def update_key(update: int) -> bytes:
    """Return the key of the row that names the entry with an update number."""
    return UPDATES + update.to_bytes(8)


def order_keys(entry: Entry) -> tuple[bytes, bytes]:
    """Return the keys of an entry's rows in its scope's order and in the order of all."""
    update = entry.update.to_bytes(8)
    return updates_prefix(entry.session_id, entry.sub) + update, UPDATES + update


def expiry_key(expires_at: int, number: int, version: int) -> bytes:
    """Return the key of a version's expiry row."""
    return EXPIRIES + expires_at.to_bytes(8) + number.to_bytes(8) + version.to_bytes(8)


def deleted_key(number: int) -> bytes:
    """Return the key of the row for a purged entry that has versions left on disk."""
    return DELETED + number.to_bytes(8)


def successors_prefix(number: int) -> bytes:
    """Return the bytes before the partitions and numbers of what took an entry's place."""
    return b"s" + number.to_bytes(8)


def successor_key(number: int, partition: int, later: int) -> bytes:
    """Return the key of the link from an entry to the later one, in this partition, that takes its place."""
    return successors_prefix(number) + partition_suffix(partition) + later.to_bytes(8)


def id_key(tail: bytes) -> bytes:
    """Return the key of the row that names the entry with an id."""
    return b"u" + tail


def quality_key(number: int) -> bytes:
    """Return the record key of an entry's uses and ratings."""
    return QUALITIES + number.to_bytes(8)


def ratings_prefix(number: int) -> bytes:
    """Return the bytes before the raters of an entry."""
    return RATINGS + number.to_bytes(8)


def rating_key(number: int, rater: str) -> bytes:
    """Return the record key of one rater's rating of an entry."""
    return ratings_prefix(number) + blake2b(rater.encode(), digest_size=_DIGEST_BYTES).digest()


def pairs_prefix(number: int) -> bytes:
    """Return the bytes before the numbers of those that may stand beside an entry."""
    return b"p" + number.to_bytes(8)


def pair_key(number: int, other: int) -> bytes:
    """Return the key of what says that an entry may stand beside another one; the other has it, too."""
    return pairs_prefix(number) + other.to_bytes(8)


def is_live(expires_at: int | None, now: int) -> bool:
    """Return whether something is there for readers: no longer from the very moment it expires."""
    return expires_at is None or now < expires_at


def is_there(entry: Entry, now: int) -> bool:
    """Return whether an entry is there for readers: neither expired nor forgotten."""
    return is_live(entry.expires_at, now) and entry.deleted_at is None


def view(entry: Entry) -> replies.MemoryEntry:
    """Return an entry as its owner gets it in a listing."""
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
    """Return the tail, which follows the root's tag, of the id of the entry with this number."""
    made = bytearray(blake2b(number.to_bytes(8), digest_size=_TAIL_BYTES, key=secret).digest())
    made[0] = made[0] & 0x0F | 0x80  # the version
    made[2] = made[2] & 0x3F | 0x80  # the variant
    return bytes(made)


def memory_id(tag: bytes, tail: bytes) -> str:
    """Return the id as text, of the root's part and of what follows."""
    text = (tag + tail).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def tail_of_id(given: str) -> bytes:
    """Return the tail of an id, which follows the root's tag."""
    return bytes.fromhex(given[14:18] + given[19:23] + given[24:])
