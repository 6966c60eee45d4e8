"""Who works with a store, for administrators, and what everybody may know of their own key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final

import msgspec

from greenroom.actors.app.administration.people_replies import AgentSeen, PeopleSeen, PersonSeen
from greenroom.actors.audit.erasures import ERASURES
from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.audit.actor import LOG, NoteDeed
from greenroom.actors.core.audit.record import JOURNAL, AuditRow
from greenroom.actors.core.auth.namespaces import AGENT, USER, name_of_segment
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.keys.actor import KEYS_ADDRESS
from greenroom.actors.core.keys.admin import ApiKeyView, view_of
from greenroom.actors.core.keys.requests import ReadKeys
from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import (
    BrowserEnded,
    BrowserId,
    ConnectedClient,
    EndBrowserSession,
)
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.orchestrations.connected import told_of
from greenroom.actors.schemas.erasure import ReadErased
from greenroom.actors.sessions.storage import directory as sessions
from greenroom.runtime import IndexReader, Query, Refusal, RuntimeClient, Slices

MOST_LOOKED_AT: Final = 10_000
"""Sessions, namespaces and audit records that are looked at, of each."""
MOST_PEOPLE: Final = 200
MOST_AGENTS: Final = 20

_Pair = tuple[str | None, str]
"""A user, and an agent that works for them."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the shared indexes and the audit log know of users and agents.

    Attributes:
        pairs: Users and their agents, and when each was seen last, in microseconds; 0 where nobody knows.
        sessions: How many sessions were made for each user.
        users: Those who have memories.
        is_whole: Whether all of it was looked at.
    """

    pairs: list[tuple[str | None, str, int]]
    sessions: list[tuple[str | None, int]]
    users: list[str]
    is_whole: bool


class FindPeople(Query[Seen], frozen=True, kw_only=True):
    """Find the users and agents that were seen; for administrators."""

    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Slices[Seen]:
        """Read the newest audit records, and the indexes of sessions and namespaces."""
        pairs: dict[_Pair, int] = {}
        made: Counter[str | None] = Counter()
        users: dict[str, None] = {}
        looked = [0, 0, 0]
        for looked[0], _ in enumerate(_in_log(reader, pairs), 1):
            if reader.should_yield():
                yield
        for looked[1], _ in enumerate(_in_sessions(reader, pairs, made), 1):
            if reader.should_yield():
                yield
        for looked[2], _ in enumerate(_in_namespaces(reader, pairs, users), 1):
            if reader.should_yield():
                yield
        return Seen(
            pairs=[(*pair, at) for pair, at in pairs.items()],
            sessions=list(made.items()),
            users=list(users),
            is_whole=max(looked) < MOST_LOOKED_AT,
        )


def _in_log(reader: IndexReader, pairs: dict[_Pair, int]) -> Iterator[None]:
    for entry in islice(reader.entries(JOURNAL, AuditRow, reverse=True), MOST_LOOKED_AT):
        if entry.value.agent is not None:
            pairs.setdefault((entry.value.user, entry.value.agent), entry.time)
        yield


def _in_sessions(reader: IndexReader, pairs: dict[_Pair, int], made: Counter[str | None]) -> Iterator[None]:
    rows = reader.rows(sessions.INDEX, sessions.BaseRow, prefix=sessions.BASE)
    for row in islice(rows, MOST_LOOKED_AT):
        made[row.value.user_id] += 1
        pairs.setdefault((row.value.user_id, row.value.created_by), 0)
        yield


def _in_namespaces(reader: IndexReader, pairs: dict[_Pair, int], users: dict[str, None]) -> Iterator[None]:
    for row in islice(reader.rows(namespaces.INDEX, namespaces.NamespaceRow), MOST_LOOKED_AT):
        root = row.value.root
        if root.startswith(USER):
            users[name_of_segment(root.removeprefix(USER))] = None
        elif root.startswith(AGENT):
            pairs.setdefault((None, root.removeprefix(AGENT)), 0)
        yield


class ListPeople(ClientOrchestration[PeopleSeen], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the users and agents that were seen, and the browsers that are logged in."""

    writes: ClassVar[bool] = False

    async def carry_out(self, client: ClientSessionState) -> PeopleSeen:
        """Put together what indexes, audit log, keys and processes know."""
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
        return PeopleSeen(
            people=shown,
            browsers=await _browsers(client),
            left_out=len(people) - len(shown),
            is_whole=seen.is_whole,
        )


async def _browsers(client: ClientSessionState) -> list[ConnectedClient]:
    processes = await told_of(client)
    return [each for process in processes.told for each in process.clients if each.browser is not None]


def _agents(agents: list[tuple[int, str]]) -> dict[str, Any]:
    """Return what is told of a user's agents."""
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
    """Answers `GetOwnKey`. ``key`` is null for who came without one of this server's."""

    key: ApiKeyView | None


class GetOwnKey(Orchestration[OwnKey], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Tell what is kept of the API key by which one came."""

    async def run(self, runtime: RuntimeClient, principal: Principal) -> OwnKey:
        """Look for it among all."""
        read = await runtime.ask(KEYS_ADDRESS, ReadKeys())
        own = next((key for key in read.keys if key.key_id == principal.key_id), None)
        return OwnKey(key=None if own is None else view_of(own, read.now))


class EndBrowser(ClientOrchestration[BrowserEnded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Log a browser out, at whichever process of the folder it has logged in."""

    writes: ClassVar[bool] = True

    browser: BrowserId

    async def carry_out(self, client: ClientSessionState) -> BrowserEnded:
        """Log it out here, or have its process do it within seconds.

        Raises:
            Refusal: ``BROWSER_NOT_FOUND``: there is none, or it has gone.
        """
        runtime, server = client.runtime, client.server
        is_here = server is not None and server.end_browser(self.browser)
        await told_of(client)
        if not is_here and not await runtime.ask(PRESENCE, EndBrowserSession(browser=self.browser)):
            raise Refusal(
                "BROWSER_NOT_FOUND",
                f"no browser {self.browser!r} is logged in; get_overview lists those that are",
                browser=self.browser,
            )
        deed = NoteDeed(action="end_browser", details={"browser": self.browser})
        await runtime.ask(LOG, deed, principal=client.principal)
        return BrowserEnded(browser=self.browser)
