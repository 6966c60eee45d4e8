"""The directory of threads: a row for each thread that has something, in a shared index."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.runtime import Context, IndexReader, Query, Slices

INDEX: Final = "threads"
_OWNER_BYTES: Final = 16


class ThreadRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread, as the caller names it, and whose it is: a user's namespace, or an agent's."""

    owner: str
    thread_id: str


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say that a whole sort key stands for a name."""
    return ((0, len(key)),) if key else ()


def put(context: Context, owner: str, thread_id: str) -> None:
    """Stage the row of a thread."""
    context.put_row(INDEX, _of_owner(owner), ThreadRow(owner, thread_id))


def remove(context: Context, owner: str) -> None:
    """Stage the removal of the row of a thread."""
    context.delete_row(INDEX, _of_owner(owner))


def _of_owner(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=_OWNER_BYTES, person=b"greenroom owner").digest()


class ListThreads(Query[list[str]], frozen=True, kw_only=True):
    """List the threads of the caller's user that have checkpoints, in no particular order; internal."""

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        owner = user_namespace(reader.principal)
        found: list[str] = []
        for row in reader.rows(INDEX, ThreadRow, prefix=_of_owner(owner)):
            if row.value.owner == owner:
                found.append(row.value.thread_id)
            if reader.should_yield():
                yield
        return found
