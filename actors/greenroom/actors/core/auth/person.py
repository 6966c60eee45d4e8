"""A person who is to be erased: what is theirs, as pure functions.

Theirs are

1. the user's namespace and everything in it, and those of their agents;
2. in the namespaces of others, the memories whose owner they or one of their agents is, and their ratings;
3. the sessions that are said to be theirs, whole, with what others wrote there; where a session names no
   user, those that one of their agents made;
4. in the sessions of others, what their agents wrote, their part of the work context, and the decisions and
   the steps of the session's way that their agents made;
5. their API keys, passports, exports and imports;
6. their corpora of documents;
7. the checkpoints of their threads.

An agent is theirs if its id ends with the digits that are the user's alone, if a key binds it to this user
and neither a key nor the audit log knows it with another one, or if whoever erases says so. The audit log
alone is enough while it is complete: with records removed by age or size, lost or redacted, nobody knows who
else was in it. Of an agent that may work for several people nobody can tell whose message it wrote, so
nothing of it is taken unless it is named.
"""

from __future__ import annotations

import msgspec

from greenroom.actors.core.auth.grants import user_tag
from greenroom.actors.core.auth.namespaces import AGENT, USER, root_of, segment
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal

ERASED = "erased"
"""Stands where the name of somebody stood who was erased, in what is another's."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A user and their agents.

    Attributes:
        user: The user's name, compared byte for byte.
        agents: The ids of agents that are known to be theirs; those that end with the user's digits are, too.
        sessions: The ids of sessions that were theirs, by which the audit log knows them.
        keys: The ids of their API keys, likewise.
        is_agent_of_others: Whether somebody else's agent has the user's name as its id: then a name that may
            be either is left.
    """

    user: str
    agents: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    is_agent_of_others: bool = False

    def with_traces(self, other: Person) -> Person:
        """Return the same person with all that is known here or there."""
        return Person(
            user=self.user,
            agents=tuple(sorted({*self.agents, *other.agents})),
            sessions=tuple(sorted({*self.sessions, *other.sessions})),
            keys=tuple(sorted({*self.keys, *other.keys})),
            is_agent_of_others=self.is_agent_of_others or other.is_agent_of_others,
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """The roots of their namespaces, as far as they are known by name."""
        return (USER + segment(self.user), *(AGENT + agent for agent in self.agents))

    def has_agent(self, agent: str | None) -> bool:
        """Return whether an agent is theirs."""
        return agent is not None and (agent in self.agents or agent.endswith(f".{user_tag(self.user)}"))

    def has_name(self, name: str | None) -> bool:
        """Return whether a name is the user's or that of an agent of theirs."""
        return self.has_agent(name) or (name == self.user and not self.is_agent_of_others)

    def has_principal(self, principal: Principal) -> bool:
        """Return whether somebody is the user or, where nobody knows the user, an agent of theirs."""
        return self.has_grant(principal.user, principal.agent_id)

    def has_root(self, namespace: str) -> bool:
        """Return whether a namespace is below one of their roots."""
        root = root_of(namespace)
        return root in self.roots or (root.startswith(AGENT) and self.has_agent(root.removeprefix(AGENT)))

    def has_partition(self, partition: MemoryPartition) -> bool:
        """Return whether the memories of a partition are theirs."""
        return partition.user == self.user if partition.agent is None else self.has_agent(partition.agent)

    def has_session(self, user_id: str | None, created_by: str) -> bool:
        """Return whether a session is theirs, by the user that it names and the agent that made it."""
        return self.has_agent(created_by) if user_id is None else user_id == self.user

    def has_grant(self, user: str | None, agent: str | None) -> bool:
        """Return whether a key is theirs, by whom it is for."""
        return self.has_agent(agent) if user is None else user == self.user
