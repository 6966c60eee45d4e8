"""Resume a session that is here, or continue an ended one in a new session."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from msgspec import UNSET

from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.core.auth.scopes import SESSIONS, allows
from greenroom.actors.memories.requests.transfer import ReleaseImport
from greenroom.actors.sessions.passports.requests import SessionRestored
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.requests.current_session import SessionClient
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.actors.sessions.summary.briefing import LEAST_ROOM, MOST_BYTES
from greenroom.runtime import Address, GreenroomError, Idempotency, Refusal

SESSION_DIGITS: Final = 8
"""Random bytes in the ids of new sessions."""
_PURPOSE: Final = 120
"""The most characters of a purpose in a notice."""
_MOST_BEFORE: Final = 3
"""The most earlier sessions of a chain in a briefing."""


async def resume_session(
    client: SessionClient,
    session_id: str,
    tool: str,
    idempotency: Idempotency | None = None,
    memories: ReleaseImport | None = None,
) -> SessionRestored:
    """Resume a session in a tool; for an ended one create its continuation."""
    move = handover.Move(to_tool=tool, outcome="resumed", memories=memories)
    try:
        read = await client.ask(Address("session", session_id), move, idempotency=idempotency)
    except Refusal as refusal:
        if refusal.code != "SESSION_CLOSED" or memories is not None:
            raise
        # A repeat gets the refusal of the first request again, and the reply from here.
        go_on = handover.ContinueSession(continues=session_id, tool=tool, holder=client.session.holder)
        again = idempotency and idempotency._replace(scope=f"{idempotency.scope} continued")
        read = await client.ask(Address("session", new_session_id()), go_on, idempotency=again)
    return await build_reply(client, read, tool, session_id)


async def build_reply(
    client: SessionClient, read: session_context.ContextRead, tool: str, session_id: str
) -> SessionRestored:
    """Return the reply for a resumed or continued session."""
    restored_at = read.migrations[-1].at
    is_new = read.session_id != session_id
    done = "Began a session that continues" if is_new else "Restored"
    after = ". That one stays as it is." if is_new else "."
    return SessionRestored(
        notice=f"{done} {quote(read.purpose)}{format_talk(client, read, restored_at)}{after}",
        briefing=await extend_briefing(client, read),
        talk=select_talk(client, read),
        session_id=read.session_id,
        continues=session_id if is_new else read.continues,
        project_id=read.project_id,
        context=select_context(client, read),
        created_at=read.started_at,
        restored_at=restored_at,
        tool=tool,
        original_tool=read.original_tool,
        original_session_id=read.migrations[0].session_id,
    )


def resolve_tool(client: SessionClient, tool_id: str | None) -> str:
    """Return the id of the given tool, or of the client."""
    return client.tool if tool_id is None else client_tool(tool_id).tool_id


def may_read(client: SessionClient) -> bool:
    """Return whether a client may read sessions."""
    return allows(client.principal.scopes, SESSIONS)


def select_context(
    client: SessionClient, read: session_context.ContextRead
) -> session_context.SessionContext:
    """Return the context, if the client may read it."""
    return read.context if may_read(client) else session_context.SessionContext()


def select_talk(client: SessionClient, read: session_context.ContextRead) -> session_context.TalkView:
    """Return the number of messages, if the client may read it."""
    return read.talk if may_read(client) else session_context.TalkView()


async def extend_briefing(
    client: SessionClient, read: session_context.ContextRead, *, is_named: bool = True
) -> str:
    """Return the briefing, extended by the sessions that this one continues, within the budget."""
    if not may_read(client):
        return ""
    text, before = read.briefing, read.continues
    for _ in range(_MOST_BEFORE):
        room = MOST_BYTES - len(text.encode()) - 1
        if before is UNSET or room < LEAST_ROOM:
            break
        tell_earlier = handover.TellEarlier(most_bytes=room, asked=is_named)
        try:
            earlier = await client.ask(Address("session", before), tell_earlier)
        except GreenroomError:  # deleted or hidden since
            break
        text = f"{text}\n{earlier.text}" if earlier.text else text
        before = earlier.continues
    return text


def new_session_id() -> str:
    """Return a new session id."""
    return f"session_{secrets.token_hex(SESSION_DIGITS)}"


def format_talk(client: SessionClient, read: session_context.ContextRead, now: datetime) -> str:
    """Return the number of messages and the age of the last, as text."""
    if not may_read(client):
        return ""
    talk = read.talk
    count = "1 message" if talk.messages == 1 else f"{talk.messages:,} messages"
    last = "" if talk.last_at is None else f", the last {_ago(now - talk.last_at)}"
    after = "" if read.continues is UNSET else f"; it continues {read.continues}"
    return f": {count}{last}{after}"


def quote(purpose: str) -> str:
    """Return a purpose for a notice: quoted, on one line."""
    return repr(escape_untrusted(purpose, _PURPOSE))


def _ago(age: timedelta) -> str:
    for unit, name in (
        (timedelta(days=1), "day"),
        (timedelta(hours=1), "hour"),
        (timedelta(minutes=1), "minute"),
    ):
        if age >= unit:
            number = age // unit
            return f"{number:,} {name}{'' if number == 1 else 's'} ago"
    return "less than a minute ago"
