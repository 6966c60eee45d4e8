"""The directory of namespaces: one row for each root that has, or had, memories.

It is a shared index that searches read. The row's sort key is the root's tag in memory ids. A row lists the
partitions that have or had memories, so that a search skips the actors that have nothing for the caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import msgspec

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.damage import damaged_entry
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests.review import NamespacesBrowsed
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import RootSummary
from greenroom.actors.search.embedding import rows as embedding
from greenroom.runtime import (
    Address,
    Context,
    IndexReader,
    Procedure,
    RecordDamagedError,
    Row,
    Slices,
    pass_over,
)

INDEX = "namespaces"
SUMMARIES = "memory_summaries"
"""The index of words, days and vectors of whole roots that older programs wrote."""
MAX_PARTITIONS = 64
"""A row lists at most this many partitions; else it has only their audiences and digests of their owners."""
MOST_OWNERS = 20_000
"""A row has at most this many digests; with more owners, every caller may query the root."""
_DIGEST_BYTES = 8
_MOST_PARTS = 1_024  # parts of a summary whose own record is damaged


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the range of the whole sort key, which stands for a name."""
    return ((0, len(key)),) if key else ()


def names_in_summary(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return where a sort key of `SUMMARIES` holds the root."""
    return ((1, 1 + names.ROOT_TAG_BYTES),) if len(key) > names.ROOT_TAG_BYTES else ()


class NamespaceRow(msgspec.Struct, frozen=True, array_like=True):
    """A root, and the partitions of its memories; None if there are too many.

    ``owners`` are sorted digests of further owners: each sees some memory, but none of ``partitions``.
    """

    root: str
    partitions: tuple[MemoryPartition, ...] | None
    owners: bytes = b""


def put(context: Context, root: str, partitions: tuple[MemoryPartition, ...]) -> None:
    """Stage the row of a root."""
    row = (
        NamespaceRow(root, partitions) if len(partitions) <= MAX_PARTITIONS else _summed_up(root, partitions)
    )
    context.put_row(INDEX, names.tag_of_root(root), row)


def _summed_up(root: str, partitions: tuple[MemoryPartition, ...]) -> NamespaceRow:
    audiences = {
        MemoryPartition(partition.scope, None, None, partition.projects)
        for partition in partitions
        if partition.scope != "private"
    }
    if any(partition.scope == "public" for partition in audiences):
        return NamespaceRow(root, (MemoryPartition("public", None, None),))
    owners = {_digest(partition.user, partition.agent) for partition in partitions}
    if len(audiences) > MAX_PARTITIONS or len(owners) > MOST_OWNERS:
        return NamespaceRow(root, None)
    return NamespaceRow(root, tuple(audiences), b"".join(sorted(owners)))


@lru_cache(maxsize=4_096)
def _digest(user: str | None, agent: str | None) -> bytes:
    """Return the digest of a partition's owner: its agent, else its user."""
    owner = f"user {user}" if agent is None else f"agent {agent}"
    return blake2b(owner.encode(), digest_size=_DIGEST_BYTES).digest()


def _is_owner(principal: Principal, owners: bytes) -> bool:
    return bool(owners) and (
        _holds(owners, _digest(None, principal.agent_id))
        or (principal.user is not None and _holds(owners, _digest(principal.user, None)))
    )


def _holds(owners: bytes, digest: bytes) -> bool:
    places = range(0, len(owners), _DIGEST_BYTES)
    found = bisect_left(places, digest, key=lambda place: owners[place : place + _DIGEST_BYTES])
    return owners[found * _DIGEST_BYTES :].startswith(digest)


def rows(reader: IndexReader, prefix: bytes = b"") -> Iterator[Row[NamespaceRow]]:
    """Yield the rows of all roots, or the row with the sort key ``prefix``.

    A damaged row admits every caller; the actor checks the rights anyway. If the root of a damaged row is
    unknown, its error is raised.
    """
    met: list[RecordDamagedError] = []
    yield from reader.rows(INDEX, NamespaceRow, prefix=prefix, on_damage=met.append)
    if met:
        yield from _replace_damaged(reader, met)


def row_of(reader: IndexReader, root: str, address: Address) -> NamespaceRow | None:
    """Return the row of a root, or None; a damaged row admits every caller."""
    try:
        return reader.get(INDEX, names.tag_of_root(root), address, NamespaceRow)
    except RecordDamagedError:
        return NamespaceRow(root, None)


def _replace_damaged(reader: IndexReader, met: list[RecordDamagedError]) -> Iterator[Row[NamespaceRow]]:
    """Yield replacements of damaged rows, for roots that are known from other records."""
    embedded = reader.rows(embedding.INDEX, msgspec.Raw, on_damage=pass_over)
    known = chain(
        reader.addresses("memory"),
        reader.timed("memory"),
        (row.address for row in embedded if row.address.kind == "memory"),
    )
    for address in known:
        root = names.root_at(address.key)
        tag = names.tag_of_root(root)
        for error in [each for each in met if reader.is_row(each, INDEX, tag, address)]:
            met.remove(error)
            yield Row(tag, address, NamespaceRow(root, None), tag)
        if not met:
            return
    raise damaged_entry(met[0], "a namespace")


def remove(context: Context, root: str) -> None:
    """Stage the removal of the row of a root."""
    context.delete_row(INDEX, names.tag_of_root(root))


def drop_summary(context: Context, tag: bytes) -> None:
    """Stage the removal of the summary that an older program wrote about a root.

    The summary repeats words of the memories, so it must be removed before any memory is.
    """
    try:
        summary = context.get(records.SUMMARY, RootSummary)
    except RecordDamagedError:
        summary = RootSummary("", parts=_MOST_PARTS)
    if summary is None:
        return
    context.delete(records.SUMMARY)
    context.delete_row(SUMMARIES, b"m" + tag)
    for part in range(summary.parts):
        for kind in (b"b", b"p"):
            context.delete_row(SUMMARIES, kind + tag + part.to_bytes(4))
    for key in context.keys(records.UPDATES, start=records.update_key(summary.cleared + 1)):
        for kind in (b"r", b"v"):
            context.delete_row(SUMMARIES, kind + tag + key[1:])


def may_have_something(principal: Principal, row: NamespaceRow) -> bool:
    """Return whether ``principal`` may see any memory below a root."""
    return (
        row.partitions is None
        or any(policy.may_see_memory(principal, partition, row.root) for partition in row.partitions)
        or (_is_owner(principal, row.owners) and policy.may_see_about(principal, row.root))
    )


class ListNamespaces(Procedure[list[str]], frozen=True, kw_only=True):
    """List the roots with memories that the caller may see, unordered; internal.

    ``prefix`` limits the list to the root of this namespace, or to roots that begin with this segment.
    """

    runs = "snapshot"

    prefix: kinds.Below | None = None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        root = None if self.prefix is None else names.root_of(self.prefix)
        wanted = names.tag_of_root(root) if root is not None and ":" in root else b""
        found: list[str] = []
        for row in rows(reader, wanted):
            is_below = root is None or names.is_below(row.value.root, root)
            if is_below and may_have_something(reader.principal, row.value):
                found.append(row.value.root)
            yield
        return found


@operation(
    "browse_namespaces",
    scope="memory:read",
)
class BrowseNamespaces(Procedure[NamespacesBrowsed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the roots with memories that the caller may see, in order."""

    runs = "snapshot"

    prefix: types.Prefix | None = None
    limit: types.Limit1000 = 200

    def run(self, reader: IndexReader) -> Slices[NamespacesBrowsed]:
        """Read the directory."""
        found = yield from ListNamespaces().run(reader)
        begin = self.prefix or ""
        names_found = sorted(root for root in found if root.startswith(begin))
        kept = names_found[: self.limit]
        return NamespacesBrowsed(namespaces=kept, more=len(names_found) - len(kept))


class NewRoots(Procedure[list[str]], frozen=True, kw_only=True):
    """Find the roots that have no memories yet, regardless of rights; internal."""

    runs = "snapshot"

    roots: list[str]

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Look up the row of each root."""
        found: list[str] = []
        for root in self.roots:
            where = names.memory_address(root)
            if row_of(reader, root, where) is None:
                found.append(root)
            yield
        return found


class RootOfMemory(Procedure[str | None], frozen=True, kw_only=True):
    """Find the root of a memory by id, regardless of rights; internal."""

    runs = "snapshot"

    memory_id: kinds.MemoryId

    def run(self, reader: IndexReader) -> str | None:
        """Look at the caller's own namespaces and the directory."""
        tag = names.tag_of_id(self.memory_id)
        for own in (names.user_namespace(reader.principal), names.agent_namespace(reader.principal)):
            if names.tag_of_root(own) == tag:
                return own
        row = next(rows(reader, tag), None)
        return None if row is None else row.value.root
