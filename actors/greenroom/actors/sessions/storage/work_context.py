"""Stored work context of a session: files, searches, memories, decisions, state of the work.

    c tag f digest          a file, by the digest of its path
    c tag s time number     a search
    c tag m digest          a memory stored, by the digest of its id
    c tag d time number     a decision
    c tag w                 the state of the work
    c tag p agent s time number     a search that only one agent of the owner sees

The tag stands for the owner. Files, searches and memories belong to the user who worked with them (the agent,
if no user is known), so that no one sees what others searched for. A search of an agent's private memories is
visible to that agent only. Decisions and the state of the work belong to the session, and have the tag of
`COMMON`. The number of entries of each kind is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.damage import damaged_entry, filter_damage, note_damage
from greenroom.actors.core.validation.times import to_datetime, with_datetime
from greenroom.actors.sessions.requests import session_context
from greenroom.runtime import Context, RecordDamagedError

T = TypeVar("T")

V = TypeVar("V", session_context.DecisionView, session_context.WorkflowView)

CONTEXT: Final = b"c"
COMMON: Final = ""
"""The owner of entries that every reader of the session sees."""

_PRIVATE: Final = b"p"
_TAG_BYTES: Final = 8
_DIGEST_BYTES: Final = 16
ENTRY_BYTES: Final = 600  # memory of one entry, roughly
_PLACES: Final = 4


class StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """A file; ``given`` is the importance that an agent gave it."""

    path: str
    uses: int
    last_used: int
    given: float | None
    note: str | None


class StoredSearch(msgspec.Struct, frozen=True, array_like=True):
    """A search."""

    query: str
    tool: str
    at: int


class StoredMemoryUse(msgspec.Struct, frozen=True, array_like=True):
    """A memory stored in the session."""

    memory_id: str
    key: str
    namespace: str
    at: int


class StoredDecision(msgspec.Struct, frozen=True, array_like=True):
    """A decision; ``user`` is the user of its agent, empty for none, None if unknown."""

    what: str
    why: str | None
    at: int
    by: str
    user: str | None = None


class StoredWorkflow(msgspec.Struct, frozen=True, array_like=True):
    """The state of the work; ``user`` as in `StoredDecision`."""

    task: str
    step: str | None
    status: session_context.WorkStatus
    next: list[str]
    blockers: list[str]
    at: int
    by: str
    user: str | None = None


def prefix_of(owner: str) -> bytes:
    """Return the prefix of the entries of one owner."""
    return CONTEXT + blake2b(owner.encode(), digest_size=_TAG_BYTES).digest()


def importance_of(given: float | None, uses: int) -> float:
    """Return the importance of a file, 0 to 1: ``given``, or computed from ``uses``."""
    return round(1 - 0.7**uses if given is None else given, _PLACES)


class WorkContext:
    """One owner's part of the work context; every reader sees the part of `COMMON`.

    Args:
        owner: The user's namespace (the agent's namespace if no user is known), or `COMMON`.
        agent: The only agent that sees it; empty for all agents of the owner.
    """

    def __init__(self, owner: str, agent: str = "") -> None:
        self._prefix = prefix_of(owner)
        if agent:
            self._prefix += _PRIVATE + blake2b(agent.encode(), digest_size=_TAG_BYTES).digest()
        self.files: dict[bytes, StoredFile] = {}
        self.searches: dict[bytes, StoredSearch] = {}
        self.memories: dict[bytes, StoredMemoryUse] = {}
        self.decisions: dict[bytes, StoredDecision] = {}
        self.workflow: StoredWorkflow | None = None

    def load(self, context: Context) -> None:
        """Read the part from the store."""
        self.files = self._scan(context, StoredFile, b"f")
        self.searches = self._scan(context, StoredSearch, b"s")
        self.memories = self._scan(context, StoredMemoryUse, b"m")
        self.decisions = self._scan(context, StoredDecision, b"d")
        try:
            self.workflow = context.get(self._prefix + b"w", StoredWorkflow)
        except RecordDamagedError as error:
            note_damage(context, damaged_entry(error, "a part of the session's work"))

    def _scan(self, context: Context, of: type[T], letter: bytes) -> dict[bytes, T]:
        """Return the sound records of a kind; the reply reports damaged ones."""
        prefix = self._prefix + letter

        def report(error: RecordDamagedError) -> None:
            note_damage(context, damaged_entry(error, "a part of the session's work"))

        return dict(context.scan(of, prefix=prefix, on_damage=filter_damage(context, prefix, report)))

    def __len__(self) -> int:
        return len(self.files) + len(self.searches) + len(self.memories) + len(self.decisions)

    def newest_decisions(self) -> list[StoredDecision]:
        """Return the decisions, newest first."""
        return [self.decisions[key] for key in sorted(self.decisions, reverse=True)]

    def visible_memories(self, principal: Principal) -> list[StoredMemoryUse]:
        """Return the memories that ``principal`` may see, newest first."""
        seen = (each for each in self.memories.values() if policy.may_see_about(principal, each.namespace))
        return sorted(seen, key=lambda each: (each.at, each.memory_id), reverse=True)

    # -- writing -----------------------------------------------------------

    def record_file(self, context: Context, use: session_context.FileUse, times: int = 1) -> None:
        """Record uses of a file; beyond the limit delete the least important one."""
        key = self._prefix + b"f" + _digest(use.path)
        old = self.files.get(key)
        given, note, uses = use.importance, use.note, times
        if old is not None:
            given = old.given if given is None else given
            note = old.note if note is None else note
            uses += old.uses
        self.put_file(context, StoredFile(use.path, uses, context.now, given, note))

    def put_file(self, context: Context, file: StoredFile) -> None:
        """Stage a file unchanged."""
        key = self._prefix + b"f" + _digest(file.path)
        self.files[key] = file
        context.put(key, file)
        if len(self.files) > session_context.MOST_FILES:
            least = min(
                (each for each in self.files if each != key), key=lambda each: _rank(self.files[each])
            )
            del self.files[least]
            context.delete(least)

    def record_search(self, context: Context, query: str, tool: str) -> None:
        """Record a search; a repeat replaces the older one."""
        for key, old in list(self.searches.items()):
            if old.query == query:
                del self.searches[key]
                context.delete(key)
        self.put_search(context, StoredSearch(query, tool, context.now))

    def put_search(self, context: Context, search: StoredSearch) -> None:
        """Stage a search unchanged."""
        self._append(context, self.searches, b"s", search, session_context.MOST_SEARCHES)

    def put_memory(self, context: Context, memory: StoredMemoryUse) -> None:
        """Record a stored memory."""
        key = self._prefix + b"m" + _digest(memory.memory_id)
        self.memories.pop(key, None)
        self.memories[key] = memory
        context.put(key, memory)
        if len(self.memories) > session_context.MOST_MEMORIES:
            oldest = min(self.memories, key=lambda each: self.memories[each].at)
            del self.memories[oldest]
            context.delete(oldest)

    def put_decision(self, context: Context, decision: StoredDecision) -> None:
        """Record a decision."""
        self._append(context, self.decisions, b"d", decision, session_context.MOST_DECISIONS)

    def put_workflow(self, context: Context, workflow: StoredWorkflow) -> None:
        """Record the state of the work."""
        self.workflow = workflow
        context.put(self._prefix + b"w", workflow)

    def _append(
        self, context: Context, table: dict[bytes, Any], letter: bytes, entry: Any, most: int
    ) -> None:
        prefix = self._prefix + letter + max(0, entry.at).to_bytes(8)
        taken = [key for key in table if key.startswith(prefix)]
        # The number is not the count of entries: deleted entries leave gaps.
        number = int.from_bytes(max(taken)[len(prefix) :]) + 1 if taken else 0
        key = prefix + number.to_bytes(2)
        table[key] = entry
        context.put(key, entry)
        if len(table) > most:
            oldest = min(table)
            del table[oldest]
            context.delete(oldest)


def view(
    own: WorkContext, common: WorkContext, principal: Principal, private: WorkContext | None = None
) -> session_context.SessionContext:
    """Merge a reader's own part, the common part, and the reader's private part if given."""
    searches = [*_newest(own.searches), *_newest({} if private is None else private.searches)]
    searches.sort(key=lambda search: search.at, reverse=True)
    newest = {search.query: search for search in reversed(searches)}
    files = sorted(own.files.values(), key=_rank, reverse=True)
    workflow = common.workflow
    return session_context.SessionContext(
        files_accessed=[
            session_context.FileView(
                path=file.path,
                importance=importance_of(file.given, file.uses),
                uses=file.uses,
                last_used=to_datetime(file.last_used),
                note=file.note,
            )
            for file in files
        ],
        recent_searches=[
            with_datetime(session_context.SearchView, search)
            for search in searches
            if newest[search.query] is search
        ][: session_context.MOST_SEARCHES],
        memories=[
            with_datetime(session_context.MemoryUse, memory) for memory in own.visible_memories(principal)
        ],
        decisions=[_without_user(session_context.DecisionView, made) for made in common.newest_decisions()],
        workflow_state=None if workflow is None else _without_user(session_context.WorkflowView, workflow),
    )


class SessionWorkContext:
    """The parts of a session's work context, each loaded on first use."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], WorkContext] = {}

    def own(self, context: Context) -> WorkContext:
        """Return the part of the sender's user."""
        return self._part(context, user_namespace(context.principal))

    def private(self, context: Context) -> WorkContext:
        """Return the part that only the sender sees, not other agents of the same user."""
        return self._part(context, user_namespace(context.principal), context.principal.agent_id)

    def common(self, context: Context) -> WorkContext:
        """Return the common part."""
        return self._part(context, COMMON)

    def view(self, context: Context) -> session_context.SessionContext:
        """Return the sender's view."""
        return view(self.own(context), self.common(context), context.principal, self.private(context))

    def view_of_user(self, context: Context) -> session_context.SessionContext:
        """Return the sender's view, limited to entries by agents of the sender's user."""
        common, part = self.common(context), WorkContext(COMMON)
        made = common.decisions.items()
        part.decisions = {key: each for key, each in made if is_own(each, context.principal)}
        if common.workflow is not None and is_own(common.workflow, context.principal):
            part.workflow = common.workflow
        return view(self.own(context), part, context.principal)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return ENTRY_BYTES * sum(map(len, self._parts.values()))

    def _part(self, context: Context, owner: str, agent: str = "") -> WorkContext:
        found = self._parts.get((owner, agent))
        if found is None:
            found = self._parts[owner, agent] = WorkContext(owner, agent)
            found.load(context)
        return found


def is_own(made: StoredDecision | StoredWorkflow, principal: Principal) -> bool:
    """Return whether an agent of the same user recorded an entry."""
    if principal.user is None:
        return made.user == "" and made.by == principal.agent_id
    return made.user == principal.user


def _without_user(view_type: type[V], record: StoredDecision | StoredWorkflow) -> V:
    fields = {name: value for name, value in msgspec.structs.asdict(record).items() if name != "user"}
    return view_type(**{**fields, "at": to_datetime(record.at)})


def _newest(table: dict[bytes, Any]) -> Iterable[Any]:
    return [table[key] for key in sorted(table, reverse=True)]


def _rank(file: StoredFile) -> tuple[float, int, str]:
    return importance_of(file.given, file.uses), file.last_used, file.path


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
