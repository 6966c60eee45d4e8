"""The directory of threads: one index row for each thread with data."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.runtime import Context, IndexReader, Procedure, Slices

INDEX: Final = "threads"
_OWNER_BYTES: Final = 16


class ThreadRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread with its owner: the namespace of a user or agent."""

    owner: str
    thread_id: str


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the whole sort key as a name."""
    return ((0, len(key)),) if key else ()


def put(context: Context, owner: str, thread_id: str) -> None:
    """Stage the row of a thread."""
    context.put_row(INDEX, _of_owner(owner), ThreadRow(owner, thread_id))


def remove(context: Context, owner: str) -> None:
    """Stage the removal of the row of a thread."""
    context.delete_row(INDEX, _of_owner(owner))


def _of_owner(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=_OWNER_BYTES, person=b"greenroom owner").digest()


class ListThreads(Procedure[list[str]], frozen=True, kw_only=True):
    """List the threads of the caller's user with checkpoints, unordered; internal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        owner = user_namespace(reader.principal)
        found: list[str] = []
        for row in reader.rows(INDEX, ThreadRow, prefix=_of_owner(owner)):
            if row.value.owner == owner:
                found.append(row.value.thread_id)
            yield
        return found
