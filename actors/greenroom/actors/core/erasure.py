"""Erasing a person: which data are theirs, the messages to actors, redacted audit records.

A person owns

1. the user's namespace with everything in it, and the namespaces of their agents;
2. in other namespaces, the memories and ratings of the user and of their agents;
3. the sessions with the user's name, including messages of others; and sessions without a user that their
   agents created;
4. in other people's sessions, what their agents wrote: messages, work context, decisions, migration steps;
5. their API keys, passports, exports and imports;
6. their corpora of documents;
7. the checkpoints of their threads.

An agent is theirs if its id ends with the user's digits; if a key binds it to this user, and neither a key
nor the audit log shows it with another user; or if the administrator names it. With a complete audit log,
no key is needed. The log is incomplete once records were removed by age or size, lost or redacted. Messages
of an agent that may work for several people cannot be attributed, so its data stays unless it is named.

This actor remembers a person until the store's file is rewritten. Only then can the audit log be redacted
and deleted data leave the free pages. The rewrite removes this record, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.core.audit.record import AuditRow, record
from greenroom.actors.core.auth.grants import user_tag
from greenroom.actors.core.auth.namespaces import AGENT, USER, root_of, segment
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.runtime import Actor, Address, Context, Message, handles

ERASURES: Final = Address("erasure", "all")
_PERSON: Final = b"p"
_DIGEST_BYTES: Final = 16
ERASED = "erased"
"""Replaces the name of an erased person in the data of others."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A user and their agents.

    Attributes:
        user: The user's name, compared byte for byte.
        agents: The ids of their known agents, besides those that end with the user's digits.
        sessions: The ids of their sessions, from the audit log.
        keys: The ids of their API keys, from the audit log.
        is_agent_of_others: Whether another user's agent has this user's name as its id; the name then stays.
    """

    user: str
    agents: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    is_agent_of_others: bool = False

    def with_traces(self, other: Person) -> Person:
        """Return this person with the traces of both."""
        return Person(
            user=self.user,
            agents=tuple(sorted({*self.agents, *other.agents})),
            sessions=tuple(sorted({*self.sessions, *other.sessions})),
            keys=tuple(sorted({*self.keys, *other.keys})),
            is_agent_of_others=self.is_agent_of_others or other.is_agent_of_others,
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """The roots of their namespaces, as far as the names are known."""
        return (USER + segment(self.user), *(AGENT + agent for agent in self.agents))

    def has_agent(self, agent: str | None) -> bool:
        """Return whether an agent is theirs."""
        return agent is not None and (agent in self.agents or agent.endswith(f".{user_tag(self.user)}"))

    def has_name(self, name: str | None) -> bool:
        """Return whether a name is the user's or one of their agents'."""
        return self.has_agent(name) or (name == self.user and not self.is_agent_of_others)

    def has_principal(self, principal: Principal) -> bool:
        """Return whether a principal is the user or, without a user, one of their agents."""
        return self.has_grant(principal.user, principal.agent_id)

    def has_root(self, namespace: str) -> bool:
        """Return whether a namespace is below one of their roots."""
        root = root_of(namespace)
        return root in self.roots or (root.startswith(AGENT) and self.has_agent(root.removeprefix(AGENT)))

    def has_partition(self, partition: MemoryPartition) -> bool:
        """Return whether the memories of a partition are theirs."""
        return partition.user == self.user if partition.agent is None else self.has_agent(partition.agent)

    def has_session(self, user_id: str | None, created_by: str) -> bool:
        """Return whether a session is theirs: by its user, else by its creator."""
        return self.has_agent(created_by) if user_id is None else user_id == self.user

    def has_grant(self, user: str | None, agent: str | None) -> bool:
        """Return whether a grant is theirs: by its user, else by its agent."""
        return self.has_agent(agent) if user is None else user == self.user


class ErasedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a person that an actor has, or had.

    Attributes:
        counts: How many entries of each kind; kinds without entries are left out.
        remaining: Whether there is more, so that the message must be sent again.
    """

    counts: dict[str, int]
    remaining: bool = False


class EraseFrom(Message[ErasedPart], frozen=True, kw_only=True):
    """Erase or only count a person's data in an actor; repeating is no error."""

    person: Person
    dry_run: bool


class ReadErased(Message[list[str]], frozen=True, kw_only=True):
    """Read the users erased since the store's file was last rewritten. Not a tool."""


class BeginErasure(Message[Person], frozen=True, kw_only=True):
    """Remember that a person is being erased, until the store's file is rewritten.

    The reply has all known traces, including traces from earlier attempts.
    """

    person: Person


class ErasureActor(Actor):
    """The persons that are being erased."""

    kind = "erasure"

    @handles(BeginErasure)
    def begin(self, request: BeginErasure, context: Context) -> Person:
        """Remember a person and the traces of earlier attempts; record that the erasure begins."""
        context.use_reserve()
        person = request.person
        where = _PERSON + blake2b(person.user.encode(), digest_size=_DIGEST_BYTES).digest()
        known = person.with_traces(context.get(where, Person) or person)
        context.put(where, known)
        record(context, "begin_erasing", None)
        return known

    @handles(ReadErased)
    def read(self, message: ReadErased, context: Context) -> list[str]:  # noqa: ARG002  as every handler
        """Return the names of these persons."""
        return sorted(person.user for _, person in context.scan(Person, prefix=_PERSON))


def redact(row: AuditRow, persons: Iterable[Person]) -> AuditRow | None:
    """Return a redacted audit record, or None if it does not concern these persons."""
    kept = row
    for person in persons:
        if person.has_grant(row.user, row.agent) or row.key_id in person.keys:
            return AuditRow(row.at, None, None, row.action, {}, row.outcome)
        if row.session in person.sessions:
            kept = msgspec.structs.replace(kept, session=None, details={})
        if person.has_agent(row.agent):
            kept = msgspec.structs.replace(kept, agent=None)
        if any(_names(person, text) for text in _texts(row.details)):
            kept = msgspec.structs.replace(kept, details={})
    return None if kept is row else kept


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _names(person: Person, text: str) -> bool:
    """Return whether a text names a person, or one of their actors or resources."""
    return any(
        person.has_name(name) or person.has_root(name) or name in person.sessions
        for name in (text, *text.split("/"))
    )
