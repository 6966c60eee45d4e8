"""The pages of a session: what is said in it, what it keeps, its passports, and who worked in it when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors import GetSessionContext, ListPassports, ReadResource, ReadTranscript
from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.core.resources.resource_uris import conversation_uri, session_uri
from greenroom.transports.console.views.threads import answers_of, in_threads, in_time
from greenroom.transports.web.console.view import Place, Reader, View
from greenroom.transports.web.console.views.time_line import stays

CLOSED: Final = frozenset({"terminated", "archived"})
GROWING: Final = 300
"""Messages at most on a page that begins at a given one and grows."""


class Tab(NamedTuple):
    """A page of a session; ``name`` stands in its path behind the session's id."""

    name: str
    label: str
    show: Callable[[Reader, Place, str], Awaitable[View]]


async def transcript(reader: Reader, place: Place, session_id: str) -> View:
    """Return what is said in a session: the newest, those before a message, or those from one on."""
    before, start, message = (place.number(name) for name in ("before", "from", "message"))
    asked = ReadTranscript(session_id=session_id)
    if message is not None:
        asked = ReadTranscript(session_id=session_id, start=message, limit=1)
    elif before is not None:
        asked = ReadTranscript(session_id=session_id, before=before)
    elif start is not None:
        asked = ReadTranscript(session_id=session_id, start=start, limit=GROWING)
    page = await reader.ask(asked)
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
    return _view("session.html", "", values, session_uri(session_id))


async def context(reader: Reader, place: Place, session_id: str) -> View:
    """Return what a session keeps of the work done in it, and what of what was said a client is given."""
    tool = place.get("tool")
    asked = GetSessionContext(session_id=session_id, tool_id=tool)
    work = await reader.ask(asked)
    conversation = await reader.ask(ReadResource(uri=conversation_uri(session_id)))
    values = {
        **await _head(reader, session_id),
        "work": work,
        "tool": tool,
        "tiers": _tiers(conversation),
        "conversation": conversation,
        "briefing_tokens": estimate_tokens(work.briefing),
    }
    return _view("session_context.html", "context", values, session_uri(session_id), every=5.0)


async def passports(reader: Reader, _place: Place, session_id: str) -> View:
    """Return the passports that were issued of a session, and those by which it came here."""
    values = {
        **await _head(reader, session_id),
        "passports": await reader.ask(ListPassports(session_id=session_id)),
    }
    return _view("session_passports.html", "passports", values, session_uri(session_id), every=5.0)


async def history(reader: Reader, _place: Place, session_id: str) -> View:
    """Return who worked in a session, in which tool, from when to when, and its compactions."""
    work = await reader.ask(GetSessionContext(session_id=session_id))
    values = await _head(reader, session_id)
    values |= {"work": work, "stays": stays(work.migrations, values["compactions"], values["session"])}
    return _view("session_history.html", "history", values, session_uri(session_id), every=5.0)


TABS: Final = (
    Tab("", "Transcript", transcript),
    Tab("context", "Context", context),
    Tab("passports", "Passports", passports),
    Tab("history", "Hand-overs", history),
)
"""The pages of a session."""


class TierView(NamedTuple):
    """A tier of a conversation: how many messages are in it, and about how many tokens they take."""

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


def _view(template: str, tab: str, values: Mapping[str, Any], topic: str, every: float | None = None) -> View:
    session = values["session"]
    title = session.purpose.strip() or session.session_id
    shared = {"tabs": TABS, "tab": tab, "is_open": session.status not in CLOSED}
    return View(template, title, {**values, **shared}, topics=(topic,), every=every)
