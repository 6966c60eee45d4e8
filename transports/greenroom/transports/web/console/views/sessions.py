"""The list of sessions, and the pages of a session: transcript, context, passports, hand-overs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors import (
    FindSessions,
    GetSessionContext,
    ListPassports,
    ReadResource,
    ReadTranscript,
    RecordContext,
    parse_request,
)
from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.core.replies.replies import MessageView, SessionView
from greenroom.actors.core.resources.resource_uris import conversation_uri, session_uri
from greenroom.actors.sessions.requests.session_context import Migration
from greenroom.actors.sessions.requests.session_views import AnsweredMessage, Compaction
from greenroom.runtime import Refusal
from greenroom.transports.web.console.rendering import path_part
from greenroom.transports.web.console.view import Form, Place, Reader, View, not_found

STATUSES: Final = ("created", "active", "paused", "terminated", "archived")
_FILTERS: Final = {"q": "text", "status": "status", "project": "project_id", "agent": "agent", "tool": "tool"}
_READ: Final = {"q": Place.get}
_LONGEST_TEXT: Final = 128
"""The most characters of a text with which sessions are searched."""


async def sessions(reader: Reader, place: Place) -> View:
    """Return the list of sessions, or a page of the session in the URL."""
    session_id, _, tab = place.rest.partition("/")
    if not session_id:
        named = place.name("id")
        return await (_list(reader, place) if named is None else _find(reader, place, named))
    found = next((each for each in TABS if each.name == tab), None)
    if found is None:
        return not_found(f"a session has no page {tab!r}")
    return await found.show(reader, place, session_id)


async def _find(reader: Reader, place: Place, session_id: str) -> View:
    """Return the page of a session, or similar sessions if the id is unknown.

    Metadata may name a session that was never here, is deleted, or belongs to another program.
    """
    try:
        return await transcript(reader, place, session_id)
    except Refusal as refusal:
        if refusal.code != "SESSION_NOT_FOUND" and refusal.details.get("field") != "session_id":
            raise
    listed = await _list(reader, place._replace(query={"q": [session_id[:_LONGEST_TEXT]]}))
    return listed._replace(values={**listed.values, "missing": session_id}, every=None)


async def _list(reader: Reader, place: Place) -> View:
    given: dict[str, Any] = {
        field: _READ.get(name, Place.name)(place, name) for name, field in _FILTERS.items()
    }
    page = await reader.ask(FindSessions(**given, cursor=place.get("cursor")))
    values = {
        "place": place,
        "missing": None,
        "page": page,
        "statuses": STATUSES,
        "chosen": sum(value is not None for value in given.values()),
        "tools": sorted({each.tool for each in page.sessions if each.tool}),
        "creators": sorted({each.session.created_by for each in page.sessions}),
        "projects": sorted({each.session.project_id for each in page.sessions if each.session.project_id}),
    }
    return View("sessions.html", "Sessions", values, every=5.0)


CLOSED: Final = frozenset({"terminated", "archived"})
GROWING: Final = 300
"""The most messages on a page that starts at a given message and grows."""


class Tab(NamedTuple):
    """A page of a session; in the path, ``name`` follows the session's id."""

    name: str
    label: str
    show: Callable[[Reader, Place, str], Awaitable[View]]


async def transcript(reader: Reader, place: Place, session_id: str) -> View:
    """Return the transcript: the newest messages, or those before or from a given message."""
    before, start, message = (place.number(name) for name in ("before", "from", "message"))
    request = ReadTranscript(session_id=session_id)
    if message is not None:
        request = ReadTranscript(session_id=session_id, start=message, limit=1)
    elif before is not None:
        request = ReadTranscript(session_id=session_id, before=before)
    elif start is not None:
        request = ReadTranscript(session_id=session_id, start=start, limit=GROWING)
    page = await reader.ask(request)
    nested = place.get("order") == "threads"
    values = {
        "session": page.session,
        "statistics": page.statistics,
        "page": page,
        "rows": (in_threads if nested else in_time)(page.messages),
        "nested": nested,
        "answered": answers_of(page.messages, page.answered),
        "is_whole": message is not None,
        "grows": before is None and message is None and not page.has_newer,
        "reply": place.number("reply"),
    }
    return _session_view("session.html", "", values, session_uri(session_id))


async def context(
    reader: Reader, place: Place, session_id: str, typed: Mapping[str, str] | None = None, mistake: str = ""
) -> View:
    """Return the context of a session, and the part of it that a client gets.

    Args:
        reader: The reader.
        place: The address.
        session_id: The session.
        typed: What was typed into the form for a decision, if that was refused.
        mistake: Why it was refused.
    """
    tool = place.get("tool")
    request = GetSessionContext(session_id=session_id, tool_id=tool)
    work = await reader.ask(request)
    conversation = await reader.ask(ReadResource(uri=conversation_uri(session_id)))
    values = {
        **await _head(reader, session_id),
        "work": work,
        "tool": tool,
        "tiers": _tiers(conversation),
        "conversation": conversation,
        "briefing_tokens": estimate_tokens(work.briefing),
        "typed": typed or {},
        "mistake": mistake,
    }
    view = _session_view("session_context.html", "context", values, session_uri(session_id), every=5.0)
    return view._replace(status=HTTPStatus.UNPROCESSABLE_ENTITY) if mistake else view


async def _decide(reader: Reader, place: Place, typed: Mapping[str, str]) -> str | View:
    """Note a decision that a person typed; return the path of its page."""
    reader.check_scope(RecordContext)
    session_id = place.rest.rpartition("/")[0]
    decision = {name: text for name in ("what", "why") if (text := typed.get(name, "").strip())}
    try:
        given = {"session_id": session_id, "decisions": [decision]}
        await reader.ask(parse_request(RecordContext, msgspec.json.encode(given)))
    except Refusal as refusal:
        return await context(reader, place, session_id, typed, str(refusal))
    return f"sessions/{path_part(session_id)}/context#c-decisions"


decide_form: Final = Form(("what", "why"), _decide)
"""The form for a decision."""


async def passports(reader: Reader, _place: Place, session_id: str) -> View:
    """Return the passports issued for a session, and the passports that brought it here."""
    values = {
        **await _head(reader, session_id),
        "passports": await reader.ask(ListPassports(session_id=session_id)),
    }
    return _session_view("session_passports.html", "passports", values, session_uri(session_id), every=5.0)


async def history(reader: Reader, _place: Place, session_id: str) -> View:
    """Return the hand-overs of a session (who used it, where and when) and its compactions."""
    work = await reader.ask(GetSessionContext(session_id=session_id))
    values = await _head(reader, session_id)
    values |= {"work": work, "stays": stays(work.migrations, values["compactions"], values["session"])}
    return _session_view("session_history.html", "history", values, session_uri(session_id), every=5.0)


TABS: Final = (
    Tab("", "Transcript", transcript),
    Tab("context", "Context", context),
    Tab("passports", "Passports", passports),
    Tab("history", "Hand-overs", history),
)
"""The pages of a session."""


class TierView(NamedTuple):
    """A tier of a conversation: its number of messages and an estimate of their tokens."""

    name: str
    messages: int
    tokens: int


def _tiers(conversation: Any) -> list[TierView]:
    counts = conversation.counts
    recent = sum(estimate_tokens(each.content) for each in conversation.recent)
    shortened = sum(estimate_tokens(each.text) for each in conversation.compressed)
    lines = sum(estimate_tokens(each.line) for each in conversation.lines)
    older = counts.total - counts.recent - counts.compressed - counts.lines
    return [
        TierView("Newest, as they are", counts.recent, recent),
        TierView("Older, shortened", counts.compressed, shortened),
        TierView("Oldest, a line each", counts.lines, lines),
        TierView("Left out", older, 0),
    ]


async def _head(reader: Reader, session_id: str) -> dict[str, Any]:
    page = await reader.ask(ReadTranscript(session_id=session_id, limit=1))
    return {
        "session": page.session,
        "statistics": page.statistics,
        "writers": page.writers,
        "compactions": page.compactions,
    }


def _session_view(
    template: str, tab: str, values: Mapping[str, Any], topic: str, every: float | None = None
) -> View:
    session = values["session"]
    title = session.purpose.strip() or session.session_id
    shared = {"tabs": TABS, "tab": tab, "is_open": session.status not in CLOSED}
    return View(template, title, {**values, **shared}, topics=(topic,), every=every)


DEEPEST: Final = 6
"""Answers are indented by at most this many levels."""
_LINE: Final = 480


class Row(NamedTuple):
    """A message and its indentation level."""

    message: MessageView
    depth: int


def in_time(messages: Sequence[MessageView]) -> list[Row]:
    """Return a row for each message, in order of time."""
    return [Row(message, 0) for message in messages]


def in_threads(messages: Sequence[MessageView]) -> list[Row]:
    """Return messages as threads: the answers follow each message."""
    here = {message.message_id for message in messages}
    answers: dict[int | None, list[MessageView]] = {}
    for message in messages:
        parent = message.parent_message_id
        # An answer is newer than its parent, so parents cannot form a cycle.
        is_answer = parent in here and parent is not None and parent < message.message_id
        answers.setdefault(parent if is_answer else None, []).append(message)
    return list(_walk(answers))


def _walk(answers: Mapping[int | None, list[MessageView]]) -> Iterator[Row]:
    """Yield the messages of a tree without recursion: a chain may fill a page."""
    open_rows = [Row(message, 0) for message in reversed(answers.get(None, []))]
    while open_rows:
        row = open_rows.pop()
        yield row
        below = answers.get(row.message.message_id, [])
        open_rows += [Row(message, min(row.depth + 1, DEEPEST)) for message in reversed(below)]


def answers_of(
    messages: Sequence[MessageView], elsewhere: Sequence[AnsweredMessage]
) -> Mapping[int, AnsweredMessage]:
    """Return the answered messages by id, from this page and from elsewhere."""
    wanted = {message.parent_message_id for message in messages}
    here = [
        AnsweredMessage(message_id=each.message_id, sender=each.sender, line=each.content[:_LINE])
        for each in messages
        if each.message_id in wanted
    ]
    return {each.message_id: each for each in (*elsewhere, *here)}


_BEGINS: Final = frozenset({"started", "resumed", "restored", "reopened"})


class Stay(NamedTuple):
    """A period in which one tool used a session."""

    tool: str | None  # the tool; None if a program created the session without one
    agent: str
    since: datetime
    until: datetime | None
    moves: list[Migration | Compaction]  # the hand-overs and compactions in this period, in order

    @property
    def seconds(self) -> float | None:
        """The length of the period in seconds; None while the period lasts."""
        return None if self.until is None else (self.until - self.since).total_seconds()


def stays(moves: Sequence[Migration], compactions: Sequence[Compaction], session: SessionView) -> list[Stay]:
    """Return the periods of a session, oldest first."""
    found: list[Stay] = []
    in_order: list[Migration | Compaction] = sorted([*moves, *compactions], key=attrgetter("at"))
    if not (in_order and _begins(in_order[0])):
        since = min([session.created_at, *(move.at for move in in_order[:1])])
        found.append(Stay(None, session.created_by, since, None, []))
    for move in in_order:
        if isinstance(move, Compaction):
            found[-1].moves.append(move)
        elif move.outcome in _BEGINS:
            _close(found, move.at)
            found.append(Stay(move.to_tool, move.by, move.at, None, [move]))
        else:
            found[-1].moves.append(move)
            if move.outcome == "handed_over":
                _close(found, move.at)
    if session.terminated_at is not None:
        _close(found, session.terminated_at)
    return found


def _begins(move: Migration | Compaction) -> bool:
    return isinstance(move, Migration) and move.outcome in _BEGINS


def _close(found: list[Stay], at: datetime) -> None:
    """End the last period, unless it has already ended."""
    if found and found[-1].until is None:
        found[-1] = found[-1]._replace(until=max(at, found[-1].since))
