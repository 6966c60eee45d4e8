"""When a client had its model's context made shorter, as its hooks tell: a row for each time, in its session.

    k time digest           one compaction, by when it was and the event that told of it

Whoever sees the session sees them, as its steps between tools. They stay in this store: a passport has none.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.core.validation.times import with_datetime
from greenroom.actors.schemas.transcripts import Compaction
from greenroom.runtime import Context

COMPACTIONS: Final = b"k"
MOST_COMPACTIONS: Final = 200
"""Compactions that a session keeps, the newest ones."""
_DIGEST_BYTES: Final = 8


class StoredCompaction(msgspec.Struct, frozen=True, array_like=True):
    """One compaction; the fields are those of `Compaction`."""

    at: int
    by: str
    client: str
    reason: str


def compactions(context: Context) -> list[Compaction]:
    """Return the session's compactions, oldest first."""
    return [with_datetime(Compaction, each) for _, each in context.scan(StoredCompaction, prefix=COMPACTIONS)]


def put_compaction(context: Context, event_id: str, made: StoredCompaction) -> None:
    """Stage a compaction; a repeat changes nothing, and beyond the most there may be the oldest goes."""
    digest = blake2b(event_id.encode(), digest_size=_DIGEST_BYTES).digest()
    key = COMPACTIONS + max(0, made.at).to_bytes(8) + digest
    keys = {each for each, _ in context.scan(msgspec.Raw, prefix=COMPACTIONS)}
    context.put(key, made)
    for oldest in sorted(keys | {key})[:-MOST_COMPACTIONS]:
        context.delete(oldest)
