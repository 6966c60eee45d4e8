"""The records of a hook actor.

i id                    an event that was taken: when
f digest                a finding that was stored: when
s digest                a session of a client, by the digest of the client and its id
h digest                what that session has
c digest                what of its turns matters for those to come
g number                a row of the ledger; numbers are as the rows were written
n                       the next number
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.schemas.hook_work import ClientSession, Giver

EVENTS: Final = b"i"
FINDINGS: Final = b"f"
SESSIONS: Final = b"s"
HAS: Final = b"h"
CARRIED: Final = b"c"
GIVEN: Final = b"g"
NEXT: Final = b"n"
_DIGEST_BYTES: Final = 16
_NUMBER_BYTES: Final = 8
_OF_NAMES: Final = frozenset({FINDINGS, SESSIONS, HAS, CARRIED})


class StoredSession(msgspec.Struct, frozen=True, array_like=True):
    """A session of a client; ``ended`` is when it ended."""

    client: str
    session: str
    project: str
    agent: str
    began: int
    last: int
    ended: int | None = None
    reason: str = ""
    request: str = ""


class StoredHas(msgspec.Struct, frozen=True, array_like=True):
    """What a session has: versions of memories by their ids, digests of lines, rows that may yet be used."""

    memories: dict[str, int] = {}
    lines: list[int] = []
    open: list[int] = []


class StoredMemory(msgspec.Struct, frozen=True, array_like=True):
    """A memory that was given, as in `GivenMemory`; ``used`` is when a use of it was seen.

    Its key is in rows of older programs alone: what is forgotten leaves nothing that was said of it.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None
    signals: dict[str, float]
    marks: list[int]
    used: int | None = None


class StoredGiven(msgspec.Struct, frozen=True, array_like=True):
    """A row of the ledger, as in `Given`."""

    at: int
    client: str
    session: str
    project: str
    agent: str
    hook: Giver
    reason: str
    query: str
    memories: list[StoredMemory]
    lines: int
    tokens: int
    partial: bool = False
    least: float | None = None
    left_out: dict[str, int] = {}


def event_key(event_id: str) -> bytes:
    """Return the key of an event."""
    return EVENTS + bytes.fromhex(event_id)


def finding_key(finding: str) -> bytes:
    """Return the key of a finding."""
    return FINDINGS + _digest(finding)


def session_key(of: ClientSession) -> bytes:
    """Return the key of a client's session."""
    return SESSIONS + _digest(f"{of.client}\0{of.session}")


def has_key(of: ClientSession) -> bytes:
    """Return the key of what a client's session has."""
    return HAS + session_key(of)[len(SESSIONS) :]


def carried_key(of: ClientSession) -> bytes:
    """Return the key of the turns that are carried over to a session's next event."""
    return CARRIED + session_key(of)[len(SESSIONS) :]


def given_key(number: int) -> bytes:
    """Return the key of a row of the ledger."""
    return GIVEN + number.to_bytes(_NUMBER_BYTES)


def number_of(key: bytes) -> int:
    """Return the number of the row of the ledger that has this key."""
    return int.from_bytes(key[len(GIVEN) :])


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a key a digest of a name is, or of what somebody said."""
    return ((1, 1 + _DIGEST_BYTES),) if key[:1] in _OF_NAMES and len(key) > 1 else ()


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
