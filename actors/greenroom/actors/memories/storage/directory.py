"""The directory of namespaces: one row a root that has memories, or a history of forgotten ones.

It is a shared index that searches read.

The row's sort key is what stands for the root in memory ids. It says in which partitions there are or
were memories, so that a reader is not even asked to wait for an actor that has nothing for it.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from hashlib import blake2b

import msgspec

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests.review import NamespacesBrowsed
from greenroom.runtime import Context, IndexReader, Query, Slices

INDEX = "namespaces"
MAX_PARTITIONS = 64
"""Partitions in one row at most; of more of them it has who shares them, and digests of their owners."""
MOST_OWNERS = 20_000
"""Digests in one row at most; with more of them everyone may ask."""
_DIGEST_BYTES = 8


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say that a whole sort key stands for a name."""
    return ((0, len(key)),) if key else ()


class NamespaceRow(msgspec.Struct, frozen=True, array_like=True):
    """A root, and the partitions of its memories; None: too many to list.

    Attributes:
        owners: Who sees something there besides those who see one of the partitions: their digests in order.
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
    """Return the digest of a partition's owner: its agent, or where it has none its user."""
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


def remove(context: Context, root: str) -> None:
    """Stage the removal of the row of a root."""
    context.delete_row(INDEX, names.tag_of_root(root))


def may_have_something(principal: Principal, row: NamespaceRow) -> bool:
    """Return whether ``principal`` may see any of the memories below a root."""
    return (
        row.partitions is None
        or any(policy.may_see_memory(principal, partition, row.root) for partition in row.partitions)
        or (_is_owner(principal, row.owners) and policy.may_see_about(principal, row.root))
    )


class ListNamespaces(Query[list[str]], frozen=True, kw_only=True):
    """List the roots below which the caller may see memories, in no particular order; internal.

    Attributes:
        prefix: Only the root of this namespace, or those that begin with this segment.
    """

    prefix: kinds.Below | None = None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        root = None if self.prefix is None else names.root_of(self.prefix)
        wanted = names.tag_of_root(root) if root is not None and ":" in root else b""
        found: list[str] = []
        for row in reader.rows(INDEX, NamespaceRow, prefix=wanted):
            is_below = root is None or names.is_below(row.value.root, root)
            if is_below and may_have_something(reader.principal, row.value):
                found.append(row.value.root)
            if reader.should_yield():
                yield
        return found


class BrowseNamespaces(Query[NamespacesBrowsed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the roots below which the caller may see memories, in order.

    Attributes:
        prefix: What their names begin with.
    """

    prefix: types.Prefix | None = None
    limit: types.Limit1000 = 200

    def run(self, reader: IndexReader) -> Slices[NamespacesBrowsed]:
        """Read the directory."""
        found = yield from ListNamespaces().run(reader)
        begin = self.prefix or ""
        names_found = sorted(root for root in found if root.startswith(begin))
        kept = names_found[: self.limit]
        return NamespacesBrowsed(namespaces=kept, more=len(names_found) - len(kept))


class NewRoots(Query[list[str]], frozen=True, kw_only=True):
    """Find which roots have no memories yet, whoever might see them; internal."""

    roots: list[str]

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Look for the row of each."""
        found: list[str] = []
        for root in self.roots:
            where = names.memory_address(root)
            if reader.get(INDEX, names.tag_of_root(root), where, NamespaceRow) is None:
                found.append(root)
            if reader.should_yield():
                yield
        return found


class RootOfMemory(Query[str | None], frozen=True, kw_only=True):
    """Find the root of a memory by its id, whether or not the caller may see the memory; internal."""

    memory_id: kinds.MemoryId

    def run(self, reader: IndexReader) -> str | None:
        """Look into the caller's own namespaces and into the directory."""
        tag = names.tag_of_id(self.memory_id)
        for own in (names.user_namespace(reader.principal), names.agent_namespace(reader.principal)):
            if names.tag_of_root(own) == tag:
                return own
        row = next(iter(reader.rows(INDEX, NamespaceRow, prefix=tag)), None)
        return None if row is None else row.value.root
