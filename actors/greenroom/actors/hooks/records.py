"""The records of a hook actor.

i id                    an ingested event: the time of its ingestion
f digest                a stored finding: the time when it was stored
t digest                a finding that the person typed: the time when it was last typed
s digest                a session of a client; digest of the client and the session's id
h digest                what that session already has in its context
c digest                the turns that this session carries over to the next event
g number                a row of the injection log, in the order of writing
n                       the number of the next row
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.sessions.requests.hook_messages import ClientSession
from greenroom.actors.sessions.requests.injection_log import Giver

EVENTS: Final = b"i"
FINDINGS: Final = b"f"
TYPED: Final = b"t"
SESSIONS: Final = b"s"
HAS: Final = b"h"
CARRIED: Final = b"c"
HEARD: Final = b"r"
GIVEN: Final = b"g"
NEXT: Final = b"n"
_DIGEST_BYTES: Final = 16
_NUMBER_BYTES: Final = 8
_OF_NAMES: Final = frozenset({FINDINGS, TYPED, SESSIONS, HAS, CARRIED, HEARD})


class StoredSession(msgspec.Struct, frozen=True, array_like=True):
    """A session of a client.

    ``ended`` is the time of its end, ``typed`` has the beginnings of requests.
    """

    client: str
    session: str
    project: str
    agent: str
    began: int
    last: int
    ended: int | None = None
    reason: str = ""
    request: str = ""
    typed: list[str] = []


class StoredContents(msgspec.Struct, frozen=True, array_like=True):
    """A session's contents: memory versions by id, digests of lines, numbers of open rows."""

    memories: dict[str, int] = {}
    lines: list[int] = []
    open: list[int] = []


class StoredMemory(msgspec.Struct, frozen=True, array_like=True):
    """A memory in the injection log, as in `GivenMemory`, and when the model used it.

    Only rows of older programs have a key. After a memory is forgotten, the log must not reveal its topic.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None
    signals: dict[str, float]
    marks: list[int]
    used: int | None = None


class StoredInjection(msgspec.Struct, frozen=True, array_like=True):
    """A row of the injection log, as in `Given`."""

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
    """Return the key of an ingested event."""
    return EVENTS + bytes.fromhex(event_id)


def finding_key(finding: str) -> bytes:
    """Return the key of a finding."""
    return FINDINGS + _digest(finding)


def typed_key(finding: str) -> bytes:
    """Return the key of a finding that the person typed."""
    return TYPED + _digest(finding)


def session_key(of: ClientSession) -> bytes:
    """Return the key of a client's session."""
    return SESSIONS + _digest(f"{of.client}\0{of.session}")


def has_key(of: ClientSession) -> bytes:
    """Return the key of what a client's session has."""
    return HAS + session_key(of)[len(SESSIONS) :]


def carried_key(of: ClientSession) -> bytes:
    """Return the key of the turns that a session carries over to its next event."""
    return CARRIED + session_key(of)[len(SESSIONS) :]


def heard_key(of: ClientSession) -> bytes:
    """Return the key of what a session's next event may repeat of tools and models."""
    return HEARD + session_key(of)[len(SESSIONS) :]


def given_key(number: int) -> bytes:
    """Return the key of a row of the injection log."""
    return GIVEN + number.to_bytes(_NUMBER_BYTES)


def number_of(key: bytes) -> int:
    """Return the number of a row of the injection log from its key."""
    return int.from_bytes(key[len(GIVEN) :])


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return where a key holds the digest of a name or of a text."""
    return ((1, 1 + _DIGEST_BYTES),) if key[:1] in _OF_NAMES and len(key) > 1 else ()


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
