"""Build the briefing of a new session: last session, open work, useful memories, decisions, files."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.content.text.escape import Section, escape_untrusted, line_tokens
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.resources.resource_uris import preferences_uri
from greenroom.actors.core.resources.resources import ReadResource
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.hooks.briefing.context_lines import (
    MOST_OF_SOURCE,
    NO_ROOM,
    Line,
    fit_lines,
    render_known,
    render_line,
    why_withheld,
)
from greenroom.actors.hooks.briefing.useful import is_proven, most_useful
from greenroom.actors.memories.preferences.actor import preferences_address
from greenroom.actors.memories.preferences.requests import KnownPreferences
from greenroom.actors.memories.recall.branches import set_apart_branches
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, find
from greenroom.actors.memories.recall.unasked import near_roots
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters
from greenroom.actors.sessions.requests.hook_events import MOST_FOUND, HookEvent
from greenroom.actors.sessions.requests.hook_messages import Earlier, HookState, ReadOwnWork, session_id_of
from greenroom.actors.sessions.requests.session_context import SessionContext
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import Address, GreenroomError, ProcedureContext, Refusal

_SESSIONS: Final = 12
"""The work is read from at most this many sessions of the project, most recent activity first."""
_LISTED: Final = 60
_STALE: Final = timedelta(days=30)
_CONSIDERED: Final = 200
"""So many memories of the best quality are considered; it grows with use and ratings."""
MOST_MEMORIES_TOKENS: Final = 600
MOST_LAST_TOKENS: Final = 200
_IN_HAND: Final = 8
_LINE: Final = 300
_PREFERENCE: Final = 200
_FOR_PROGRAMS: Final = frozenset(KnownPreferences.__struct_fields__)
_MOST: Final = {"last": 5, "work": 6, "decisions": 8, "preferences": 8, "files": 8}
_MOST_KNOWN: Final = 40


class Briefing(NamedTuple):
    """Sections, their lines, and the number of memories left out by reason."""

    sections: list[Section]
    lines: list[Line]
    left_out: dict[str, int]


class _Work(NamedTuple):
    session_id: str
    context: SessionContext


async def build_briefing(
    context: ProcedureContext, event: HookEvent, state: HookState, budget: int
) -> Briefing:
    """Build a briefing for a project's next session within a token budget, most important first."""
    works = await _works(context, event)
    left_out: Counter[str] = Counter()
    last = _last_of(state.earlier)
    last_id = None if last is None else session_id_of(last, context.principal)
    recent, files = _files_in_hand(works, event, last_id)
    allowed: list[FoundMemory] = []
    unproven = 0
    for hit in await set_apart_branches(event.place, await _find_known(context, event)):
        why = why_withheld(hit, event.projects, state.memories)
        unproven += hit.memory.memory_id in state.memories and not is_proven(hit.memory)
        if why is None:
            allowed.append(hit)
        else:
            left_out[why] += 1
    known = sorted(most_useful(allowed, recent, unproven), key=lambda hit: hit.of_branch != "")
    since = to_datetime(context.now) - _STALE
    has = set(state.lines)
    room = _Room(budget, has)
    if last is not None:
        ending = _last(last, recent, context.principal)
        room.add("How the last session ended", ending, "last", MOST_LAST_TOKENS)
    room.add("Open work", _open_work(works, since), "work")
    room.add_known(known, context.principal)
    room.add("Decisions", _decisions(works), "decisions")
    room.add("What the user prefers", await _document(context), "preferences")
    room.add("Files that matter", files, "files")
    included = {line.memory.memory_id for line in room.lines if line.memory is not None}
    left_out[NO_ROOM] = sum(hit.memory.memory_id not in included for hit in known)
    return Briefing(room.sections, room.lines, dict(+left_out))


class _Room:
    """The sections of a briefing, and what is left of its budget."""

    def __init__(self, budget: int, has: Collection[int]) -> None:
        self.sections: list[Section] = []
        self.lines: list[Line] = []
        self._budget = budget
        self._has = has

    def add(self, title: str, candidates: Iterable[Line], name: str, most: int | None = None) -> None:
        """Add a section with the lines that fit and that the session lacks."""
        fresh = [line for line in candidates if line.digest not in self._has]
        self._fit(title, fresh, _MOST[name], self._budget if most is None else most)

    def add_known(self, known: Sequence[FoundMemory], principal: Principal) -> None:
        """Add the memories that fit, the most useful first, below the names of their namespaces."""
        left = MOST_MEMORIES_TOKENS
        spaces = dict.fromkeys(hit.memory.namespace for hit in known)
        kept = self._most_useful(known, principal, left)
        for namespace in spaces:
            title = f"To know, from {escape_untrusted(namespace, MOST_OF_SOURCE)}"
            self._fit(title, [line for line in kept if _is_from(line, namespace)], _MOST_KNOWN, left)

    def _most_useful(self, known: Sequence[FoundMemory], principal: Principal, left: int) -> list[Line]:
        titles: set[str] = set()
        kept: list[Line] = []
        left = min(left, self._budget)
        for hit in known:
            line = render_known(hit, principal.agent_id)
            cost = line_tokens(line.text)
            if hit.memory.namespace not in titles:
                cost += line_tokens(f"To know, from {hit.memory.namespace}")
            if cost <= left and len(kept) < _MOST_KNOWN:
                titles.add(hit.memory.namespace)
                left -= cost
                kept.append(line)
        return kept

    def _fit(self, title: str, lines: list[Line], most: int, tokens: int) -> None:
        heading = (len(title) + 4) // 4 + 1
        room = min(self._budget, tokens) - heading
        kept, left = fit_lines(lines, room, most)
        if kept:
            self._budget -= heading + room - left
            self.sections.append(Section(title, [line.text for line in kept]))
            self.lines += kept


def _is_from(line: Line, namespace: str) -> bool:
    return line.memory is not None and line.memory.namespace == namespace


async def count_unreviewed(context: ProcedureContext, event: HookEvent, state: HookState) -> int:
    """Count the unreviewed memories that rules made since the last session began."""
    hits = await _newest(context, event, MemoryFilters(unreviewed=True), MOST_FOUND)
    since = state.earlier[0].began if state.earlier else None
    return sum(hit.own and (since is None or hit.memory.created_at >= since) for hit in hits)


async def _works(context: ProcedureContext, event: HookEvent) -> list[_Work]:
    """Return the user's work in sessions of the project, newest first."""
    listed: list[SessionSummary] = []
    for project in event.projects:
        listed += (await context.query(ListSessions(project_id=project, limit=_LISTED))).sessions
    works: list[_Work] = []
    for session in sorted(listed, key=lambda each: each.last_activity, reverse=True):
        if session.user_id != context.principal.user:
            continue
        try:
            read = await context.ask(Address("session", session.session_id), ReadOwnWork())
        except GreenroomError:  # an unavailable session must not hide the others
            continue
        if read is not None:
            works.append(_Work(session.session_id, read))
            if len(works) == _SESSIONS:
                break
    return works


async def _find_known(context: ProcedureContext, event: HookEvent) -> list[FoundMemory]:
    """Return the near memories of the best quality: used, rated, important."""
    roots = near_roots(context.principal, *event.projects)
    filters = MemoryFilters(unreviewed=False)
    near = event.projects
    search = SearchSpec(None, None, "hybrid", 1.0, filters, _CONSIDERED, roots=roots, unasked_for=near)
    return (await find(context, search)).hits


async def _newest(
    context: ProcedureContext, event: HookEvent, filters: MemoryFilters, most: int
) -> list[FoundMemory]:
    roots = near_roots(context.principal, *event.projects)
    search = SearchSpec(None, None, "semantic", 0.0, filters, most, roots=roots)
    return (await find(context, search)).hits


def _last_of(earlier: Sequence[Earlier]) -> Earlier | None:
    """Return the last session.

    One without any request must not hide an earlier one with a request.
    """
    return next((each for each in earlier if each.request), next(iter(earlier), None))


def _last(last: Earlier, files: Sequence[str], principal: Principal) -> list[Line]:
    """Return how a session ended, its files, and what the person typed before, newest first."""
    if last.ended is None:
        how = f"it may still be running, and was last active {_time(last.last)}"
    else:
        how = f"it ended {_time(last.ended)}{f' ({last.reason})' if last.reason else ''}"
    request = f"; the person's last request was: {last.request}" if last.request else ""
    source = f"session {session_id_of(last, principal)}"
    lines = [render_line(f"{last.client} since {_time(last.began)}: {how}{request}", source, _LINE * 2)]
    if files:
        lines.append(render_line(f"Its files: {', '.join(files)}", source, _LINE))
    before = [each for each in reversed(last.typed) if not each.startswith(" ".join(last.request.split()))]
    return lines + [render_line(f"Before, the person typed: {each}", source, _LINE) for each in before]


def _open_work(works: Iterable[_Work], since: datetime) -> list[Line]:
    lines: list[Line] = []
    for work in works:
        state = work.context.workflow_state
        if state is None or state.status == "done" or state.at < since:
            continue
        source = f"session {work.session_id} by {state.by}, {state.at:%Y-%m-%d}"
        step = f", at: {state.step}" if state.step else ""
        lines.append(render_line(f"{state.task} ({state.status}){step}", source, _LINE))
        if state.next:
            lines.append(render_line(f"Next for it: {'; '.join(state.next[:5])}", source, _LINE))
        if state.blockers:
            lines.append(render_line(f"It waits for: {'; '.join(state.blockers[:5])}", source, _LINE))
    return lines


def _decisions(works: Iterable[_Work]) -> list[Line]:
    made = [(each, work.session_id) for work in works for each in work.context.decisions]
    made.sort(key=lambda each: each[0].at, reverse=True)
    return [
        render_line(
            decision.what + (f" (because {decision.why})" if decision.why else ""),
            f"session {session_id} by {decision.by}, {decision.at:%Y-%m-%d}",
            _LINE,
        )
        for decision, session_id in made
    ]


async def _document(context: ProcedureContext) -> list[Line]:
    """Return the members of the user's preferences that people wrote for models."""
    address = preferences_address(context.principal)
    owner = context.principal.user or context.principal.agent_id
    try:
        read: Any = await context.ask(address, ReadResource(uri=preferences_uri(owner)))
    except Refusal:  # a session can start without preferences
        return []
    members = msgspec.json.decode(read.preferences, type=dict[str, msgspec.Raw])
    source = f"the user's preferences, version {read.version}"
    return [
        render_line(f"{name}: {bytes(value).decode()}", source, _PREFERENCE)
        for name, value in members.items()
        if name not in _FOR_PROGRAMS
    ]


def _files_in_hand(
    works: Sequence[_Work], event: HookEvent, last: str | None
) -> tuple[list[str], list[Line]]:
    """Return the last session's most used files, and lines about those of all."""
    uses: Counter[str] = Counter()
    seen: dict[str, tuple[datetime, str]] = {}
    recent: Counter[str] = Counter()
    for work in works:
        for file in work.context.files_accessed:
            path = _below(file.path, event.folder)
            if work.session_id == last:
                recent[path] += file.uses
            uses[path] += file.uses
            seen[path] = max(seen.get(path, (file.last_used, "")), (file.last_used, work.session_id))
    in_hand = [path for path, _ in recent.most_common(_IN_HAND)]
    lines: list[Line] = []
    for path, _ in uses.most_common(_MOST["files"]):
        at, session_id = seen[path]
        lines.append(render_line(path, f"last used {at:%Y-%m-%d} in session {session_id}", _LINE))
    return in_hand, lines


def _below(path: str, folder: str) -> str:
    """Return a path relative to the client's folder if it is below, else unchanged."""
    root = folder.rstrip("/") + "/"
    return posixpath.relpath(path, root) if folder and path.startswith(root) else path


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
