"""The work context of a session: files, searches, memories, decisions, workflow; bounded in number.

    c tag f digest          a file, by the digest of its path
    c tag s time number     a search
    c tag m digest          a memory stored, by the digest of its id
    c tag d time number     a decision
    c tag w                 where the work stands
    c tag p agent s time number     a search that is for one agent of the owner alone

The tag stands for whose it is. Files, searches and memories are the user's who worked with them (the
agent's, where no user is known), so that nobody learns what others looked for. What an agent looked for
among what it alone may see is for that agent alone. Decisions and the state of the work are the session's:
their tag is that of no owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.times import to_datetime, with_datetime
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.requests.session_context import (
    MOST_DECISIONS,
    MOST_FILES,
    MOST_MEMORIES,
    MOST_SEARCHES,
)
from greenroom.runtime import Context

V = TypeVar("V", travel.DecisionView, travel.WorkflowView)

CONTEXT: Final = b"c"
COMMON: Final = ""
"""The owner of what everybody sees who sees the session."""

_ALONE: Final = b"p"
_TAG_BYTES: Final = 8
_DIGEST_BYTES: Final = 16
ENTRY_BYTES: Final = 600  # of memory, roughly
_PLACES: Final = 4


class StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """A file; ``given`` is the importance that somebody gave it."""

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
    """A decision; ``user`` is whose agent recorded it, empty for nobody's, None where that is not known."""

    what: str
    why: str | None
    at: int
    by: str
    user: str | None = None


class StoredWorkflow(msgspec.Struct, frozen=True, array_like=True):
    """Where the work stands; ``user`` as in `StoredDecision`."""

    task: str
    step: str | None
    status: travel.WorkStatus
    next: list[str]
    blockers: list[str]
    at: int
    by: str
    user: str | None = None


def prefix_of(owner: str) -> bytes:
    """Return the bytes before everything of one owner."""
    return CONTEXT + blake2b(owner.encode(), digest_size=_TAG_BYTES).digest()


def importance_of(given: float | None, uses: int) -> float:
    """Return how important a file is, 0 to 1: as somebody said, else by how often it was used."""
    return round(1 - 0.7**uses if given is None else given, _PLACES)


class WorkContext:
    """One owner's part of a session's context; that of `COMMON` is visible to every reader.

    Args:
        owner: The user's namespace, the agent's where no user is known, or `COMMON`.
        agent: The agent that it is for alone; empty for all of the owner's.
    """

    def __init__(self, owner: str, agent: str = "") -> None:
        self._prefix = prefix_of(owner)
        if agent:
            self._prefix += _ALONE + blake2b(agent.encode(), digest_size=_TAG_BYTES).digest()
        self.files: dict[bytes, StoredFile] = {}
        self.searches: dict[bytes, StoredSearch] = {}
        self.memories: dict[bytes, StoredMemoryUse] = {}
        self.decisions: dict[bytes, StoredDecision] = {}
        self.workflow: StoredWorkflow | None = None

    def load(self, context: Context) -> None:
        """Read it from the store."""
        self.files = dict(context.scan(StoredFile, prefix=self._prefix + b"f"))
        self.searches = dict(context.scan(StoredSearch, prefix=self._prefix + b"s"))
        self.memories = dict(context.scan(StoredMemoryUse, prefix=self._prefix + b"m"))
        self.decisions = dict(context.scan(StoredDecision, prefix=self._prefix + b"d"))
        self.workflow = context.get(self._prefix + b"w", StoredWorkflow)

    def __len__(self) -> int:
        """Return how many entries it has."""
        return len(self.files) + len(self.searches) + len(self.memories) + len(self.decisions)

    def newest_decisions(self) -> list[StoredDecision]:
        """Return the decisions, newest first."""
        return [self.decisions[key] for key in sorted(self.decisions, reverse=True)]

    def seen_memories(self, principal: Principal) -> list[StoredMemoryUse]:
        """Return those memories, newest first, that ``principal`` may know of as their owner."""
        seen = (each for each in self.memories.values() if policy.may_see_about(principal, each.namespace))
        return sorted(seen, key=lambda each: (each.at, each.memory_id), reverse=True)

    # -- writing -----------------------------------------------------------

    def record_file(self, context: Context, use: travel.FileUse, times: int = 1) -> None:
        """Record uses of a file; beyond the most there may be, the least important one goes."""
        key = self._prefix + b"f" + _digest(use.path)
        old = self.files.get(key)
        given, note, uses = use.importance, use.note, times
        if old is not None:
            given = old.given if given is None else given
            note = old.note if note is None else note
            uses += old.uses
        self.put_file(context, StoredFile(use.path, uses, context.now, given, note))

    def put_file(self, context: Context, file: StoredFile) -> None:
        """Stage a file as it is."""
        key = self._prefix + b"f" + _digest(file.path)
        self.files[key] = file
        context.put(key, file)
        if len(self.files) > MOST_FILES:
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
        """Stage a search as it is."""
        self._append(context, self.searches, b"s", search, MOST_SEARCHES)

    def put_memory(self, context: Context, memory: StoredMemoryUse) -> None:
        """Record a stored memory."""
        key = self._prefix + b"m" + _digest(memory.memory_id)
        self.memories.pop(key, None)
        self.memories[key] = memory
        context.put(key, memory)
        if len(self.memories) > MOST_MEMORIES:
            oldest = min(self.memories, key=lambda each: self.memories[each].at)
            del self.memories[oldest]
            context.delete(oldest)

    def put_decision(self, context: Context, decision: StoredDecision) -> None:
        """Record a decision."""
        self._append(context, self.decisions, b"d", decision, MOST_DECISIONS)

    def put_workflow(self, context: Context, workflow: StoredWorkflow) -> None:
        """Record where the work stands."""
        self.workflow = workflow
        context.put(self._prefix + b"w", workflow)

    def _append(
        self, context: Context, table: dict[bytes, Any], letter: bytes, entry: Any, most: int
    ) -> None:
        prefix = self._prefix + letter + max(0, entry.at).to_bytes(8)
        taken = [key for key in table if key.startswith(prefix)]
        number = (
            int.from_bytes(max(taken)[len(prefix) :]) + 1 if taken else 0
        )  # what was dropped leaves a gap
        key = prefix + number.to_bytes(2)
        table[key] = entry
        context.put(key, entry)
        if len(table) > most:
            oldest = min(table)
            del table[oldest]
            context.delete(oldest)


def view(
    own: WorkContext, common: WorkContext, principal: Principal, alone: WorkContext | None = None
) -> travel.SessionContext:
    """Return a reader's view: its own part, the common one, and what is for it alone where that is given."""
    searches = [*_newest(own.searches), *_newest({} if alone is None else alone.searches)]
    searches.sort(key=lambda search: search.at, reverse=True)
    newest = {search.query: search for search in reversed(searches)}
    files = sorted(own.files.values(), key=_rank, reverse=True)
    workflow = common.workflow
    return travel.SessionContext(
        files_accessed=[
            travel.FileView(
                path=file.path,
                importance=importance_of(file.given, file.uses),
                uses=file.uses,
                last_used=to_datetime(file.last_used),
                note=file.note,
            )
            for file in files
        ],
        recent_searches=[
            with_datetime(travel.SearchView, search) for search in searches if newest[search.query] is search
        ][:MOST_SEARCHES],
        memories=[with_datetime(travel.MemoryUse, memory) for memory in own.seen_memories(principal)],
        decisions=[_without_user(travel.DecisionView, made) for made in common.newest_decisions()],
        workflow_state=None if workflow is None else _without_user(travel.WorkflowView, workflow),
    )


def view_of_user(own: WorkContext, common: WorkContext, principal: Principal) -> travel.SessionContext:
    """Return as much of a reader's view as agents of its own user made."""
    part = WorkContext(COMMON)
    part.decisions = {key: made for key, made in common.decisions.items() if is_own(made, principal)}
    if common.workflow is not None and is_own(common.workflow, principal):
        part.workflow = common.workflow
    return view(own, part, principal)


def is_own(made: StoredDecision | StoredWorkflow, principal: Principal) -> bool:
    """Return whether an agent of the same user noted something down."""
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
