"""Messages between the actors that store hook events; none is a tool."""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.git.git_files import NO_REVISION, Revision
from greenroom.actors.memories.recall.replies import Beginning, GivenMemory
from greenroom.actors.sessions.requests.handover import Offer
from greenroom.actors.sessions.requests.hook_events import HookEvent, Turn
from greenroom.actors.sessions.requests.session_context import SessionContext
from greenroom.runtime import Message

MOST_SESSIONS = 1_000
"""At most this many client sessions have a record of what they were given."""
MOST_FINDINGS = 10_000
"""At most this many findings are recorded as stored, and as many as typed by the person."""
MOST_HAD = 500
"""A session has at most this many memories, and this many other lines, on record; the oldest are dropped."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class ClientSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a client: client name, the client's session id, project of the folder."""

    client: str
    session: str
    project: str


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier session of a client, with the beginnings of its last requests."""

    client: str
    session: str
    began: datetime
    last: datetime
    ended: datetime | None
    reason: str
    request: str
    typed: list[str] = msgspec.field(default_factory=list)


class HookState(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `LookUpSession`.

    Attributes:
        memories: The versions of the memories that the session was given, by their ids.
        lines: Digests of the other lines that it was given.
        open: Memories that it was given and has not used so far, each with the number of its record.
        carried: Earlier turns that are needed to interpret later ones.
        heard: Digests of earlier words of tools and models.
    """

    taken: bool = False
    memories: dict[str, int] = msgspec.field(default_factory=dict)
    lines: list[int] = msgspec.field(default_factory=list)
    open: list[tuple[int, datetime, GivenMemory]] = msgspec.field(default_factory=list)
    earlier: list[Earlier] = msgspec.field(default_factory=list)
    findings: list[str] = msgspec.field(default_factory=list)
    carried: list[Turn] = msgspec.field(default_factory=list)
    heard: list[int] = msgspec.field(default_factory=list)


class LookUpSession(Message[HookState], frozen=True, kw_only=True):
    """Look up a client session, and findings, before an event of the session is processed."""

    of: ClientSession
    event_id: str = ""
    findings: list[str] = msgspec.field(default_factory=list)


class WhichTyped(Message[list[str]], frozen=True, kw_only=True):
    """Ask which findings the person typed; their keys tell their texts."""

    findings: list[str]


class LastSessions(Message[list[Earlier]], frozen=True, kw_only=True):
    """List the latest sessions of a project that have a request, newest first."""

    project: str


class NoteTaken(Message[None], frozen=True, kw_only=True):
    """Record that an event is stored completely.

    Attributes:
        ended: Why the session ended; None while it goes on.
        used: Memories that were used, each as its number in the injection log and its id.
        typed: The findings that the person typed, new or not.
    """

    of: ClientSession
    event_id: str
    at: datetime
    ended: str | None = None
    request: Beginning = ""
    used: list[tuple[int, str]] = msgspec.field(default_factory=list)
    findings: list[str] = msgspec.field(default_factory=list)
    typed: list[str] = msgspec.field(default_factory=list)
    carried: list[Turn] = msgspec.field(default_factory=list)
    heard: list[int] = msgspec.field(default_factory=list)


class ForgetOldHooks(Message[None], frozen=True, kw_only=True):
    """Timer: drop old records, once a day."""


# -- to a session -------------------------------------------------------


class KeptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as a session stores it.

    ``words`` is the part that other agents of the user may read: the person's text, the model's last words of
    a turn, errors of tools (one a line). It is None if the turn has no such part.
    """

    role: str
    text: str
    at: datetime | None = None
    words: str | None = None


class LookAtKept(Message[Offer | None], frozen=True, kw_only=True):
    """Summarize a session stored by hooks for another agent; None if empty."""

    project_id: str


class KeepTurns(Message[None], frozen=True, kw_only=True):
    """Store turns of a client session; create it if needed, ignore a repeat.

    ``files`` has the number of uses of each file; a write counts as two uses.
    """

    event_id: str
    of: ClientSession
    purpose: str
    turns: list[KeptTurn]
    revision: Revision = NO_REVISION
    files: list[tuple[str, int]] = msgspec.field(default_factory=list)
    ends: bool = False
    compacted: datetime | None = None
    reason: str = ""


class ReadOwnWork(Message[SessionContext | None], frozen=True, kw_only=True):
    """Read what the caller's user did in a session.

    The reply is None if the session is hidden, or belongs to another user.
    """


def session_id_of(of: HookEvent | ClientSession | Earlier, principal: Principal) -> str:
    """Return the id of the session that stores a client session."""
    return kept_id(of.client, of.session, user_namespace(principal))


def kept_id(client: str, session: str, owner: str) -> str:
    """Return the id of the session that stores a client session of an owner."""
    name = _FOREIGN.sub("-", client)[:40].strip("-.") or "client"
    named = f"{owner}\0{client}\0{session}"
    return f"{name}-{blake2b(named.encode(), digest_size=10).hexdigest()}"
