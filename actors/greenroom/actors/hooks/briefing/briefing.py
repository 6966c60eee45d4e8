"""Build the briefing of a new session: last session, open work, decisions, preferences, files."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.content.text.escape import Section
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.resources.resource_uris import preferences_uri
from greenroom.actors.core.resources.resources import ReadResource
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.hooks.briefing.context_lines import (
    NO_ROOM,
    Line,
    fit_lines,
    render_line,
    render_memory,
    why_withheld,
)
from greenroom.actors.memories.preferences.actor import preferences_address
from greenroom.actors.memories.preferences.requests import KnownPreferences
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, find
from greenroom.actors.memories.recall.unasked import near_roots
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters
from greenroom.actors.sessions.requests.hook_events import MOST_FOUND, HookEvent
from greenroom.actors.sessions.requests.hook_messages import Earlier, HookState, ReadOwnWork, session_id_of
from greenroom.actors.sessions.requests.session_context import SessionContext
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import Address, GreenroomError, ProcedureContext, Refusal

DECISION: Final = "decision"
PREFERENCE: Final = "preference"
"""The tag of memories that every session of a project gets."""
_SESSIONS: Final = 12
"""The work is read from at most this many sessions of the project, most recent activity first."""
_LISTED: Final = 60
_STALE: Final = timedelta(days=30)
_TAGGED: Final = 40
_LINE: Final = 300
_PREFERENCE: Final = 200
_FOR_PROGRAMS: Final = frozenset(KnownPreferences.__struct_fields__)
_MOST: Final = {"last": 1, "work": 6, "decisions": 8, "preferences": 8, "files": 8}


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
    tagged: list[FoundMemory] = []
    left_out: Counter[str] = Counter()
    for hit in await _find_tagged(context, event):
        why = why_withheld(hit, event.project, state.memories)
        if why is None:
            tagged.append(hit)
        else:
            left_out[why] += 1
    since = to_datetime(context.now) - _STALE
    offered = {
        "last": ("How the last session ended", _last(state.earlier, context.principal)),
        "work": ("Open work", _open_work(works, since)),
        "decisions": ("Decisions", [*_of_tag(tagged, DECISION), *_decisions(works)]),
        "preferences": (
            "What the user prefers",
            [*await _document(context), *_of_tag(tagged, PREFERENCE)],
        ),
        "files": ("Files that matter", _files(works, event.folder)),
    }
    has = set(state.lines)
    sections: list[Section] = []
    lines: list[Line] = []
    for name, (title, candidates) in offered.items():
        left = budget - (len(title) + 4) // 4 - 1
        fresh = [line for line in candidates if line.memory is not None or line.digest not in has]
        kept, left = fit_lines(fresh, left, _MOST[name])
        if kept:
            budget = left
            sections.append(Section(title, [line.text for line in kept]))
            lines += kept
    included = {line.memory.memory_id for line in lines if line.memory is not None}
    left_out[NO_ROOM] = sum(hit.memory.memory_id not in included for hit in tagged)
    return Briefing(sections, lines, dict(+left_out))


async def count_unreviewed(context: ProcedureContext, event: HookEvent, state: HookState) -> int:
    """Count the unreviewed memories that rules made since the last session began."""
    hits = await _newest(context, event, MemoryFilters(unreviewed=True), MOST_FOUND)
    since = state.earlier[0].began if state.earlier else None
    return sum(hit.own and (since is None or hit.memory.created_at >= since) for hit in hits)


async def _works(context: ProcedureContext, event: HookEvent) -> list[_Work]:
    """Return the user's work in sessions of the project, newest first."""
    if not event.project:
        return []
    listed = await context.query(ListSessions(project_id=event.project, limit=_LISTED))
    works: list[_Work] = []
    for session in listed.sessions:
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


async def _find_tagged(context: ProcedureContext, event: HookEvent) -> list[FoundMemory]:
    """Return the newest memories with the tag of a decision or a preference."""
    filters = MemoryFilters(tags=[DECISION, PREFERENCE], unreviewed=False)
    return await _newest(context, event, filters, _TAGGED)


async def _newest(
    context: ProcedureContext, event: HookEvent, filters: MemoryFilters, most: int
) -> list[FoundMemory]:
    roots = near_roots(context.principal, event.project)
    search = SearchSpec(None, None, "semantic", 0.0, filters, most, roots=roots)
    return (await find(context, search)).hits


def _last(earlier: Sequence[Earlier], principal: Principal) -> list[Line]:
    if not earlier:
        return []
    # A session without any request must not hide an earlier one with a request.
    last = next((each for each in earlier if each.request), earlier[0])
    if last.ended is None:
        how = f"it may still be running, and was last active {_time(last.last)}"
    else:
        how = f"it ended {_time(last.ended)}{f' ({last.reason})' if last.reason else ''}"
    request = f"; the person's last request was: {last.request}" if last.request else ""
    source = f"session {session_id_of(last, principal)}"
    return [render_line(f"{last.client} since {_time(last.began)}: {how}{request}", source, _LINE * 2)]


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


def _of_tag(tagged: Iterable[FoundMemory], tag: str) -> list[Line]:
    return [render_memory(hit) for hit in tagged if tag in hit.memory.tags]


def _files(works: Iterable[_Work], folder: str) -> list[Line]:
    uses: Counter[str] = Counter()
    last: dict[str, tuple[datetime, str]] = {}
    for work in works:
        for file in work.context.files_accessed:
            uses[file.path] += file.uses
            last[file.path] = max(
                last.get(file.path, (file.last_used, "")), (file.last_used, work.session_id)
            )
    lines: list[Line] = []
    for path, _ in uses.most_common(_MOST["files"]):
        at, session_id = last[path]
        lines.append(
            render_line(_below(path, folder), f"last used {at:%Y-%m-%d} in session {session_id}", _LINE)
        )
    return lines


def _below(path: str, folder: str) -> str:
    """Return a path relative to the client's folder if it is below, else unchanged."""
    root = folder.rstrip("/") + "/"
    return posixpath.relpath(path, root) if folder and path.startswith(root) else path


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
