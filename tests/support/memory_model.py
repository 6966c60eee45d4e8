"""What memories must be, in plain Python: lists, and the rules of who sees and changes what."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from greenroom.actors import Principal

PEOPLE = {
    "alice": Principal(agent_id="a", user="alice", projects=frozenset({"p"})),
    "bob": Principal(agent_id="b", user="bob", projects=frozenset({"p", "q"})),
    "eve": Principal(agent_id="e", user="eve", projects=frozenset()),
}
ROOTS = ("user:alice", "agent:a", "project:p", "team:x")
NAMESPACES = (*ROOTS, "user:alice:deep:er", "team:x:y")
SECOND = 1_000_000


def may_write(who: str, namespace: str) -> bool:
    kind, name = namespace.split(":")[:2]
    if kind == "user":
        return who == name
    if kind == "agent":
        return PEOPLE[who].agent_id == name
    return kind != "project" or name in (PEOPLE[who].projects or ())


@dataclass
class Version:
    """One version's number and text, until when it is there, and who wrote it."""

    number: int
    text: str
    expires_at: int | None
    author: str


@dataclass(eq=False)
class Memory:
    """A memory; ``owner`` decides who sees it, ``at`` is the number of its last write."""

    namespace: str
    key: str
    owner: str
    scope: str
    projects: frozenset[str]
    at: int
    versions: list[Version] = field(default_factory=list)
    deleted: bool = False
    supersedes: Memory | None = None
    rated: dict[str, float] = field(default_factory=dict)

    def seen_by(self, who: str) -> bool:
        if self.scope == "public" or self.owner == who:
            return True
        return self.scope == "shared" and bool(self.projects & (PEOPLE[who].projects or frozenset()))

    @property
    def version(self) -> int:
        return self.versions[-1].number if self.versions else 0

    def live(self, now: int) -> bool:
        ends = self.versions[-1].expires_at
        return ends is None or now < ends

    def there(self, now: int) -> bool:
        return self.live(now) and not self.deleted

    def readable(self, now: int) -> dict[int, str]:
        """Return the texts of the versions that have not expired, by number."""
        return {
            version.number: version.text
            for version in self.versions
            if version.expires_at is None or now < version.expires_at
        }


@dataclass
class Memories:
    """Everything that was ever acknowledged. Each action returns the code that the real thing answers."""

    memories: list[Memory] = field(default_factory=list)
    writes: int = 0
    used: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The highest version that must not come again: of a key, or where several own memories below a root."""

    def copy(self) -> Memories:
        return copy.deepcopy(self)

    def find(self, now: int, who: str, namespace: str, key: str) -> Memory | None:
        found = [
            memory
            for memory in self.memories
            if (memory.namespace, memory.key) == (namespace, key)
            and memory.there(now)
            and memory.seen_by(who)
        ]
        return max(found, key=lambda one: (one.scope == "private", one.owner == who, one.at), default=None)

    def visible(self, now: int, who: str, root: str) -> list[Memory]:
        """Return what ``who`` sees below a root, newest update first."""
        found = [
            memory
            for memory in self.memories
            if f"{memory.namespace}:".startswith(f"{root}:") and memory.there(now) and memory.seen_by(who)
        ]
        return sorted(found, key=lambda memory: -memory.at)

    def store(
        self,
        now: int,
        who: str,
        namespace: str,
        key: str,
        text: str,
        scope: str | None,
        lifetime: int | None,
        expected: int | None,
        target: str | None,
    ) -> str:
        if not may_write(who, namespace):
            return "PERMISSION_DENIED"
        held = self.find(now, who, namespace, key)
        if expected not in {None, 0 if held is None else held.version}:
            return "VERSION_CONFLICT"
        if held is not None and scope not in {None, held.scope} and held.owner != who:
            return "PERMISSION_DENIED"
        superseded = None if target is None else self.find(now, who, namespace, target)
        if target is not None and superseded is None:
            return "MEMORY_NOT_FOUND"
        private = namespace.startswith(("user:", "agent:"))
        new_scope = scope or (("private" if private else "shared") if held is None else held.scope)
        if held is not None and (superseded is held or self._is_taken(now, held, new_scope)):
            return "VALIDATION_ERROR"
        self._write(now, who, namespace, key, text, new_scope, lifetime, held, superseded)
        return "done"

    def update(self, now: int, who: str, namespace: str, key: str, text: str, expected: int | None) -> str:
        held = self.find(now, who, namespace, key)
        if held is None:
            return "MEMORY_NOT_FOUND"
        if not may_write(who, namespace):
            return "PERMISSION_DENIED"
        if expected not in {None, held.version}:
            return "VERSION_CONFLICT"
        self.writes += 1
        held.at = self.writes
        self._append(held, text, held.versions[-1].expires_at, who, held.version)
        return "done"

    def forget(self, now: int, who: str, namespace: str, key: str, purge: bool) -> str:  # noqa: FBT001
        if not may_write(who, namespace):
            return "PERMISSION_DENIED"
        held = self.find(now, who, namespace, key)
        gone = [] if held is None else [held]
        if purge:
            gone += [memory for memory in self.history(now, who, namespace, key) if memory.deleted]
        if not gone:
            return "MEMORY_NOT_FOUND"
        for memory in gone:
            self._end(memory, purge=purge)
        return "done"

    def rate(self, now: int, who: str, namespace: str, key: str, rating: float) -> str:
        held = self.find(now, who, namespace, key)
        if held is None:
            return "MEMORY_NOT_FOUND"
        held.rated[who] = rating
        return "done"

    def keep(self, now: int, key: str, text: str, lifetime: int | None) -> str:
        """Do what alice's agent does with `set_memory`."""
        held = self.find(now, "alice", "agent:a", key)
        self._write(
            now, "alice", "agent:a", key, text, held.scope if held else "private", lifetime, held, None
        )
        return "done"

    def delete(self, now: int, key: str) -> str:
        """Do what alice's agent does with `delete_memory`."""
        held = self.find(now, "alice", "agent:a", key)
        if held is not None:
            self._end(held, purge=True)
            return "existed"
        elsewhere = any(
            memory.key == key and memory.there(now) and memory.seen_by("alice") for memory in self.memories
        )
        return "MEMORY_NOT_FOUND" if elsewhere else "missing"

    def history(self, now: int, who: str, namespace: str, key: str) -> list[Memory]:
        """Return what there is or was under a key, oldest first."""
        return [
            memory
            for memory in self.memories
            if (memory.namespace, memory.key) == (namespace, key) and memory.live(now) and memory.seen_by(who)
        ]

    # -- parts -------------------------------------------------------------

    def _write(
        self,
        now: int,
        who: str,
        namespace: str,
        key: str,
        text: str,
        scope: str,
        lifetime: int | None,
        held: Memory | None,
        superseded: Memory | None,
    ) -> None:
        self.writes += 1
        last = held.version if held is not None else self.used.get(_group(namespace, key), 0)
        if held is not None and held.scope != scope and _has_several_owners(namespace):  # it moves
            self._use(held)
            last = self.used[_group(namespace, key)]
        if held is None:
            held = Memory(namespace, key, who, scope, frozenset(), self.writes)
            self.memories.append(held)
        if held.scope != scope or not held.versions:
            held.scope, held.projects = scope, _shared_with(who, namespace)
        held.at = self.writes
        expires_at = None if lifetime is None else now + lifetime * SECOND
        self._append(held, text, expires_at, who, last)
        if superseded is not None:
            one = superseded
            while one.supersedes is not None and one.supersedes is not held:
                one = one.supersedes
            one.supersedes = None if one.supersedes is held else one.supersedes  # the newest word counts
            held.supersedes = superseded

    def _append(self, memory: Memory, text: str, expires_at: int | None, who: str, last: int) -> None:
        memory.versions.append(Version(last + 1, text, expires_at, who))
        if expires_at is not None:
            self._use(memory)

    def _use(self, memory: Memory) -> None:
        group = _group(memory.namespace, memory.key)
        self.used[group] = max(self.used.get(group, 0), memory.version)

    def _end(self, memory: Memory, *, purge: bool) -> None:
        self._use(memory)
        memory.deleted, memory.supersedes = True, None
        if purge:
            self.memories.remove(memory)

    def _is_taken(self, now: int, held: Memory, scope: str) -> bool:
        """Return whether another memory of the owner has the key in that scope, where scopes are apart."""
        if scope == held.scope or not _has_several_owners(held.namespace):
            return False
        return any(
            (other.namespace, other.key, other.owner, other.scope)
            == (held.namespace, held.key, held.owner, scope)
            and other.there(now)
            for other in self.memories
            if other is not held
        )


def _has_several_owners(namespace: str) -> bool:
    return not namespace.startswith(("user:", "agent:"))


def _group(namespace: str, key: str) -> tuple[str, ...]:
    return tuple(namespace.split(":")[:2]) if _has_several_owners(namespace) else (namespace, key)


def _shared_with(who: str, namespace: str) -> frozenset[str]:
    if namespace.startswith("project:"):
        return frozenset({namespace.split(":")[1]})
    return PEOPLE[who].projects or frozenset()


def shown(memory: Memory, visible: list[Memory]) -> dict[str, Any]:
    """Return what somebody sees of a memory to whom these are visible."""
    return {
        "namespace": memory.namespace,
        "key": memory.key,
        "text": memory.versions[-1].text,
        "version": memory.version,
        "scope": memory.scope,
        "hidden": any(other.supersedes is memory for other in visible),
        "supersedes": visible.index(memory.supersedes) if memory.supersedes in visible else None,
        "ratings": len(memory.rated),
        "rating": round(sum(memory.rated.values()) / len(memory.rated), 4) if memory.rated else 0.0,
    }


def exported(memory: Memory, visible: list[Memory]) -> tuple[str, str, str | None]:
    """Return what an export says of a memory to somebody to whom these are visible."""
    before = memory.supersedes
    named = before is not None and before in visible and before.namespace == memory.namespace
    return memory.namespace, memory.key, before.key if before is not None and named else None
