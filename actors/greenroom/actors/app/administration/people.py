"""The users of a store, for administrators, and a caller's view of its own key."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.core.audit.actor import LOG, NoteDeed
from greenroom.actors.core.audit.record import JOURNAL, AuditRow
from greenroom.actors.core.auth.namespaces import AGENT, USER, name_of_segment
from greenroom.actors.core.erasure import ERASURES, ReadErased
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, ReadKeys
from greenroom.actors.core.keys.admin import ApiKeyView, view_of
from greenroom.actors.core.operations import operation
from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import (
    BrowserEnded,
    BrowserId,
    ConnectedClient,
    EndBrowserSession,
    ProcessPresence,
    ReadPresence,
    TellPresence,
)
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.sessions.storage import directory as sessions
from greenroom.runtime import IndexReader, Procedure, Refusal, Slices


class Processes(NamedTuple):
    """The presence reports of all processes, and the id of this process, if it reports."""

    reports: list[ProcessPresence]
    own: str | None


async def read_processes(client: ClientContext) -> Processes:
    """Renew the presence report of this process, then read the reports of all."""
    own = None if client.server is None else client.server.presence()
    if own is not None:
        await client.runtime.ask(PRESENCE, TellPresence(process=own))
    reports = await client.runtime.ask(PRESENCE, ReadPresence())
    return Processes(reports, None if own is None else own.id)


MOST_LOOKED_AT: Final = 10_000
"""At most this many sessions are read, and as many namespaces and audit records."""
MOST_PEOPLE: Final = 200
MOST_AGENTS: Final = 20

_Pair = tuple[str | None, str]
"""A user, and an agent that works for them."""


class AgentSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A known agent.

    Attributes:
        last_seen: The time of its last action in the audit log; null if the log has no action any more.
    """

    agent: str
    last_seen: datetime | None


class PersonSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A user, or the group of agents without a user.

    Attributes:
        has_memories: Whether they have or had memories.
        is_erased: Whether they were erased; the audit log names them until `greenroom erase --finish`.
    """

    user: str | None
    agents: list[AgentSeen]
    more_agents: int
    last_seen: datetime | None
    sessions: int
    keys: int
    has_memories: bool
    is_erased: bool


class PeopleSeen(Reply, frozen=True, kw_only=True):
    """Answers `ListPeople`: people and agents, the most recently seen first.

    Attributes:
        is_whole: Whether every session and audit record was read, not only the first of very many.
    """

    people: list[PersonSeen]
    browsers: list[ConnectedClient]
    left_out: int
    is_whole: bool


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The users and agents that the shared indexes and the audit log know.

    Attributes:
        pairs: Users and their agents, with the time in microseconds when each was last seen; 0 if unknown.
        is_whole: Whether everything was read.
    """

    pairs: list[tuple[str | None, str, int]]
    sessions: list[tuple[str | None, int]]
    users: list[str]
    is_whole: bool


class FindPeople(Procedure[Seen], frozen=True, kw_only=True):
    """Find the known users and agents; for administrators."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Slices[Seen]:
        """Read the newest audit records, and the indexes of sessions and namespaces."""
        pairs: dict[_Pair, int] = {}
        made: Counter[str | None] = Counter()
        users: dict[str, None] = {}
        read: Counter[str] = Counter()
        for entry in islice(reader.entries(JOURNAL, AuditRow, reverse=True), MOST_LOOKED_AT):
            read["records"] += 1
            if entry.value.agent is not None:
                pairs.setdefault((entry.value.user, entry.value.agent), entry.time)
            yield
        bases = reader.rows(sessions.INDEX, sessions.BaseRow, prefix=sessions.BASE)
        for session in islice(bases, MOST_LOOKED_AT):
            read["sessions"] += 1
            made[session.value.user_id] += 1
            pairs.setdefault((session.value.user_id, session.value.created_by), 0)
            yield
        for row in islice(namespaces.rows(reader), MOST_LOOKED_AT):
            read["namespaces"] += 1
            root = row.value.root
            if root.startswith(USER):
                users[name_of_segment(root.removeprefix(USER))] = None
            elif root.startswith(AGENT):
                pairs.setdefault((None, root.removeprefix(AGENT)), 0)
            yield
        return Seen(
            pairs=[(*pair, at) for pair, at in pairs.items()],
            sessions=list(made.items()),
            users=list(users),
            is_whole=max(read.values(), default=0) < MOST_LOOKED_AT,
        )


@operation(
    "list_people",
    scope="admin",
)
class ListPeople(Procedure[PeopleSeen], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the known users and agents, and the logged-in browsers."""

    runs = "here"

    async def run(self, client: ClientContext) -> PeopleSeen:
        """Combine the data of indexes, audit log, keys and processes."""
        runtime = client.runtime
        seen = await runtime.query(FindPeople(), principal=client.principal)
        read = await runtime.ask(KEYS_ADDRESS, ReadKeys())
        active = [key.grant for key in read.keys if key.status(read.now) == "active"]
        keys = Counter(grant.user for grant in active)
        pairs: dict[_Pair, int] = {(user, agent): at for user, agent, at in seen.pairs}
        for grant in active:
            if grant.agent is not None:
                pairs.setdefault((grant.user, grant.agent), 0)
        agents: dict[str | None, list[tuple[int, str]]] = {user: [] for user in (*seen.users, *keys)}
        for (user, agent), at in pairs.items():
            agents.setdefault(user, []).append((at, agent))
        made, owners = dict(seen.sessions), set(seen.users)
        erased = set(await runtime.ask(ERASURES, ReadErased()))
        people = [
            PersonSeen(
                user=user,
                sessions=made.get(user, 0),
                keys=keys[user],
                has_memories=user in owners,
                is_erased=user in erased,
                **_agents(theirs),
            )
            for user, theirs in agents.items()
        ]
        people.sort(key=lambda each: (each.last_seen is None, each.user or ""))
        people.sort(key=lambda each: each.last_seen.timestamp() if each.last_seen else 0.0, reverse=True)
        shown = people[:MOST_PEOPLE]
        clients = [each for process in (await read_processes(client)).reports for each in process.clients]
        return PeopleSeen(
            people=shown,
            browsers=[each for each in clients if each.browser is not None],
            left_out=len(people) - len(shown),
            is_whole=seen.is_whole,
        )


def _agents(agents: list[tuple[int, str]]) -> dict[str, Any]:
    ordered = sorted(agents, key=lambda each: (-each[0], each[1]))
    return {
        "agents": [
            AgentSeen(agent=agent, last_seen=optional_datetime(at or None))
            for at, agent in ordered[:MOST_AGENTS]
        ],
        "more_agents": max(0, len(ordered) - MOST_AGENTS),
        "last_seen": optional_datetime(ordered[0][0] or None) if ordered else None,
    }


class OwnKey(Reply, frozen=True, kw_only=True):
    """Answers `GetOwnKey`. ``key`` is null for a caller without a key of this server."""

    key: ApiKeyView | None


@operation(
    "get_own_key",
    scope="server:read",
)
class GetOwnKey(Procedure[OwnKey], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Return the record of the caller's own API key."""

    runs = "here"

    async def run(self, client: ClientContext) -> OwnKey:
        """Find the caller's key among all keys."""
        runtime, principal = client.runtime, client.principal
        read = await runtime.ask(KEYS_ADDRESS, ReadKeys())
        own = next((key for key in read.keys if key.key_id == principal.key_id), None)
        return OwnKey(key=None if own is None else view_of(own, read.now))


@operation(
    "end_browser",
    scope="admin",
    writes=True,
)
class EndBrowser(Procedure[BrowserEnded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Log a browser out, at any process of the folder."""

    runs = "here"
    browser: BrowserId

    async def run(self, client: ClientContext) -> BrowserEnded:
        """Log it out here, or have its process do so within seconds.

        Raises:
            Refusal: ``BROWSER_NOT_FOUND``: the browser is not logged in.
        """
        runtime, server = client.runtime, client.server
        is_here = server is not None and server.end_browser(self.browser)
        await read_processes(client)
        if not is_here and not await runtime.ask(PRESENCE, EndBrowserSession(browser=self.browser)):
            raise Refusal(
                "BROWSER_NOT_FOUND",
                f"no browser {self.browser!r} is logged in; get_overview lists those that are",
                browser=self.browser,
            )
        deed = NoteDeed(action="end_browser", details={"browser": self.browser})
        await runtime.ask(LOG, deed, principal=client.principal)
        return BrowserEnded(browser=self.browser)
