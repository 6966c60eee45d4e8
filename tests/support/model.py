"""What sessions and memory must be, in plain Python: lists, dictionaries and the rules of who sees what."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from greenroom.actors import Principal

AGENTS = {
    "alice": Principal(agent_id="alice", agent_type="writer"),
    "bob": Principal(agent_id="bob", agent_type="writer"),
    "carol": Principal(agent_id="carol"),
}
SESSIONS = ("one", "two")
STEPS = {
    "created": {"active", "paused", "terminated"},
    "active": {"active", "paused", "terminated"},
    "paused": {"active", "paused", "terminated"},
    "terminated": {"archived"},
    "archived": set[str](),
}
CLOSED = {"terminated", "archived"}


@dataclass
class Said:
    """A message."""

    sender: str
    content: str
    visibility: str
    at: int

    def seen_by(self, agent: str) -> bool:
        if self.visibility == "public" or self.sender == agent:
            return True
        mine, theirs = AGENTS[agent].agent_type, AGENTS[self.sender].agent_type
        return self.visibility == "agent_only" and mine is not None and mine == theirs


@dataclass
class Session:
    """A session; ``at`` is when something happened to it that everybody sees."""

    at: int
    status: str = "created"
    messages: list[Said] = field(default_factory=list)

    def visible(self, agent: str) -> list[Said]:
        return [said for said in self.messages if said.seen_by(agent)]

    def seen_status(self, agent: str) -> str:
        return "active" if self.status == "created" and self.visible(agent) else self.status

    def last_activity(self, agent: str) -> int:
        return max([self.at, *(said.at for said in self.visible(agent))])


@dataclass
class Entry:
    """A memory entry's newest version."""

    value: Any
    version: int
    at: int
    expires_at: int | None


@dataclass
class Model:
    """Everything that was ever acknowledged. Each action returns the code that the real thing answers."""

    sessions: dict[str, Session] = field(default_factory=dict)
    memory: dict[tuple[str, str | None, str], Entry] = field(default_factory=dict)
    versions: dict[tuple[str, str | None, str], int] = field(default_factory=dict)

    def copy(self) -> Model:
        return copy.deepcopy(self)

    def live(self, now: int) -> dict[tuple[str, str | None, str], Entry]:
        return {
            key: entry
            for key, entry in self.memory.items()
            if entry.expires_at is None or now < entry.expires_at
        }

    def create(self, now: int, session: str) -> str:
        if session in self.sessions:
            return "KEY_EXISTS"
        self.sessions[session] = Session(now)
        return "done"

    def say(self, now: int, session: str, said: Said) -> str:
        if session not in self.sessions:
            return "SESSION_NOT_FOUND"
        if self.sessions[session].status in CLOSED:
            return "SESSION_CLOSED"
        said.at = now
        self.sessions[session].messages.append(said)
        return "done"

    def step(self, now: int, session: str, status: str) -> str:
        if session not in self.sessions:
            return "SESSION_NOT_FOUND"
        found = self.sessions[session]
        if status not in {*STEPS[found.status], found.seen_status("bob")}:
            return "VALIDATION_ERROR"
        if status != found.status:
            found.status, found.at = status, now
        return "done"

    def store(
        self,
        now: int,
        agent: str,
        session: str | None,
        key: str,
        value: Any,
        lifetime: int | None,
        *,
        overwrite: bool,
    ) -> str:
        if session is not None and session not in self.sessions:
            return "SESSION_NOT_FOUND"
        if session is not None and self.sessions[session].status in CLOSED:
            return "SESSION_CLOSED"
        old = self.live(now).get((agent, session, key))
        if old is not None and not overwrite:
            return "KEY_EXISTS"
        expires_at = None if lifetime is None else now + lifetime * 1_000_000
        where = agent, session, key
        self.versions[where] = self.versions.get(where, 0) + 1
        self.memory[where] = Entry(value, self.versions[where], now, expires_at)
        return "done"

    def forget(self, now: int, agent: str, session: str | None, key: str) -> str:
        live = self.live(now)
        self.memory.pop((agent, session, key), None)
        if (agent, session, key) in live:
            return "existed"
        # A key that was said without its session is named with where it lies.
        lies_elsewhere = session is None and any((agent, each, key) in live for each in self.sessions)
        return "MEMORY_NOT_FOUND" if lies_elsewhere else "missing"
