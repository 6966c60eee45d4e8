"""Erase a person: find and count their data, and have every actor erase its part.

An erasure can be repeated at any time: every step does what is left, and earlier findings about the person
stay until the store's file is rewritten. `auth.person` defines which data belong to a person.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.app.savings.actor import savings_address
from greenroom.actors.core.audit.actor import LOG, NoteDeed
from greenroom.actors.core.audit.record import JOURNAL, AuditRow
from greenroom.actors.core.auth.corpora import CATALOGUE_KIND, CORPUS_KIND
from greenroom.actors.core.auth.namespaces import KIND as MEMORY
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.client import Client, report_progress
from greenroom.actors.core.erasure import ERASURES, BeginErasure, EraseFrom, Person
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, ReadKeys
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.knowledge.corpora.requests import catalogue
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.memories.preferences.requests import KIND as PREFERENCES
from greenroom.actors.memories.recall.replies import HOOKS
from greenroom.actors.memories.requests.transfer import IMPORT
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.memories.transfer.export_actor import KIND as EXPORT
from greenroom.actors.sessions.graph_checkpoints import records as threads
from greenroom.actors.sessions.graph_checkpoints.requests import KIND as CHECKPOINTS
from greenroom.actors.sessions.passports.requests import KIND as PASSPORT
from greenroom.actors.sessions.storage import directory as sessions
from greenroom.actors.sessions.workflows.actor import INDEX as WORKFLOWS
from greenroom.actors.sessions.workflows.records import WorkflowRow
from greenroom.actors.sessions.workflows.requests import KIND as WORKFLOW
from greenroom.runtime import Address, IndexReader, Procedure, RuntimeClient, Slices

SESSION: Final = "session"
_KEPT_BY_TIME: Final = (IMPORT, EXPORT, PASSPORT)
_GAPS: Final = frozenset({"lose_records", "miss_records"})
"""The audit log has these actions where records are missing."""

UserName = Annotated[
    str, Meta(min_length=1, max_length=128, description="byte for byte; no pattern, no other spelling")
]
AgentIds = Annotated[
    list[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}(?!\n)$")]],
    Meta(max_length=200, description="agents of theirs besides those that are known"),
]


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Where data of a person may be.

    Attributes:
        seen: Users by agent, from the audit log.
        is_complete: Whether the log has all its records, so that an absent agent never existed.
        backups: The files into which the store was copied, from the audit log.
    """

    addresses: list[Address]
    sessions: list[tuple[str, str | None, str]]
    seen: dict[str, list[str | None]]
    is_complete: bool
    backups: list[str]


class FindTraces(Procedure[Traces], frozen=True, kw_only=True):
    """Find every actor that may hold data of a person; for administrators."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Slices[Traces]:
        """Read the shared indexes, the timers and the audit log."""
        found: dict[Address, None] = {}
        listed: list[tuple[str, str | None, str]] = []
        for session in reader.rows(sessions.INDEX, sessions.BaseRow, prefix=sessions.BASE):
            listed.append((session.address.key, session.value.user_id, session.value.created_by))
            yield
        for address in self._addresses(reader):
            found[address] = None
            yield
        seen: dict[str, set[str | None]] = {}
        backups: dict[str, None] = {}
        is_complete = True
        for place, entry in enumerate(reader.entries(JOURNAL, AuditRow), 1):
            row = entry.value
            if entry.number != place or entry.is_redacted or row.action in _GAPS:
                is_complete = False
            if row.agent is not None:
                seen.setdefault(row.agent, set()).add(row.user)
            if row.action == "backup_store" and isinstance(copy := row.details.get("to"), str):
                backups[copy] = None
            yield
        return Traces(
            addresses=list(found),
            sessions=listed,
            seen={agent: sorted(users, key=lambda user: user or "") for agent, users in seen.items()},
            is_complete=is_complete,
            backups=list(backups),
        )

    @staticmethod
    def _addresses(reader: IndexReader) -> Iterator[Address]:
        for kind in _KEPT_BY_TIME:
            yield from reader.timed(kind)
        for session in reader.rows(sessions.INDEX, sessions.BaseRow, prefix=sessions.BASE):
            yield session.address
        yield from reader.addresses(SESSION)
        for root in namespaces.rows(reader):
            yield root.address
        yield from reader.addresses(MEMORY)
        for corpus in reader.rows(catalogue.INDEX, CorpusRow):
            yield corpus.address
            yield catalogue.corpus_address(corpus.value)
        yield from reader.timed(CORPUS_KIND)
        yield from reader.addresses(CORPUS_KIND)
        yield from reader.addresses(CATALOGUE_KIND)
        for steps in reader.rows(WORKFLOWS, WorkflowRow):
            yield steps.address
        yield from reader.addresses(WORKFLOW)
        for thread in reader.rows(threads.INDEX, threads.ThreadRow):
            yield thread.address
        yield from reader.addresses(CHECKPOINTS)
        yield from reader.addresses(PREFERENCES)
        yield from reader.addresses(HOOKS)


class UserErased(Reply, frozen=True, kw_only=True):
    """Answers `EraseUser`.

    Attributes:
        erased: Whether the data were erased; without ``confirm`` they are only counted.
        agents: The agents that count as the person's.
        shared_agents: Agents that worked for the person and possibly for others; their data stay. Name in
            ``agents`` those that worked only for the person.
        backups: Copies of the store that the audit log knows, which still hold the data.
        remains: The steps that are still to be done, in words; empty if there are none.
    """

    erased: bool
    counts: dict[str, int]
    agents: list[str]
    shared_agents: list[str]
    backups: list[str]
    remains: str


@operation(
    "erase_user",
    scope="admin",
    writes=True,
    tool=ToolText(
        title="Erase user",
        description="Erase a person and their agents for good: memories, sessions, messages, keys. "
        "Without confirm it only counts.",
        overwrites=True,
        repeatable=True,
    ),
    after_notes=True,
)
class EraseUser(Procedure[UserErased], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Count a person's data, and with ``confirm`` erase them for good."""

    runs = "here"
    user: UserName
    agents: Annotated[AgentIds, Meta(description="agents of theirs besides those that are known")] = (
        msgspec.field(default_factory=list)
    )
    confirm: Annotated[bool, Meta(description="do it; else it is only counted")] = False

    async def run(self, client: Client) -> UserErased:
        """Count the person's data, or erase them."""
        runtime, principal = client.runtime, client.principal
        traces = await runtime.query(FindTraces(), principal=principal)
        keys = (await runtime.ask(KEYS_ADDRESS, ReadKeys())).keys
        seen = {agent: set(users) for agent, users in traces.seen.items()}
        bound = [(key.grant.agent, key.grant.user) for key in keys if key.grant.agent is not None]
        for agent, user in bound:
            seen.setdefault(agent, set()).add(user)
        own = {
            agent
            for agent, users in seen.items()
            if users == {self.user} and (traces.is_complete or (agent, self.user) in bound)
        }
        person = Person(
            user=self.user,
            agents=tuple(sorted({*self.agents, *own})),
            is_agent_of_others=bool(seen.get(self.user, set()) - {self.user}),
        )
        theirs = [name for name, user, agent in traces.sessions if person.has_session(user, agent)]
        if self.confirm:
            ended = [key.key_id for key in keys if person.has_grant(key.grant.user, key.grant.agent)]
            known = msgspec.structs.replace(person, sessions=tuple(theirs), keys=tuple(ended))
            person = await runtime.ask(ERASURES, BeginErasure(person=known), principal=principal)
        addresses = dict.fromkeys(
            [
                KEYS_ADDRESS,
                *traces.addresses,
                *(
                    of(root)
                    for root in person.roots
                    for of in (memory_address, savings_address, hook_address)
                ),
            ]
        )
        counts = await self._erased(runtime, principal, person, addresses)
        deed = NoteDeed(action="erase_user", details={"confirm": self.confirm, **counts})
        await runtime.ask(LOG, deed, principal=principal)
        return UserErased(
            erased=self.confirm,
            counts=counts,
            agents=sorted(person.agents),
            shared_agents=sorted(
                agent for agent, users in seen.items() if self.user in users and not person.has_agent(agent)
            ),
            backups=traces.backups,
            remains=_REMAINS if self.confirm else "",
        )

    async def _erased(
        self, runtime: RuntimeClient, principal: Principal, person: Person, addresses: Iterable[Address]
    ) -> dict[str, int]:
        """Erase in one actor after another until no data is left; return the sums."""
        counts: Counter[str] = Counter()
        asked = EraseFrom(person=person, dry_run=not self.confirm)
        everywhere = list(addresses)
        for number, address in enumerate(everywhere):
            report_progress(number, len(everywhere), "erasing" if self.confirm else "counting")
            part = await runtime.ask(address, asked, principal=principal)
            counts.update(part.counts)
            while part.remaining:
                part = await runtime.ask(address, asked, principal=principal)
                counts.update(part.counts)
        return dict(sorted(counts.items()))


_REMAINS: Final = (
    "nothing of them is found any more; bytes of it are in free pages of the store's file, and their names "
    "in the audit log, until the server is stopped and `greenroom erase --finish` has rewritten the file"
)
