"""Taking up a session that is here: as it is, or where it has ended in one that continues it."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from msgspec import UNSET

from greenroom.actors.content.text.escape import inert
from greenroom.actors.memories.requests.transfer import ReleaseImport
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.schemas import session_continuation as continuation
from greenroom.actors.sessions.passports.requests import SessionRestored
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Address, Idempotency, Refusal

SESSION_DIGITS: Final = 8
"""Bytes of the ids that sessions are given here."""
_PURPOSE: Final = 120
"""Characters of a purpose that a notice has."""


async def resumed(
    client: ClientSessionState,
    session_id: str,
    tool: str,
    idempotency: Idempotency | None = None,
    memories: ReleaseImport | None = None,
) -> SessionRestored:
    """Return a session that is here, taken up in a tool, or of one that has ended the one that continues it.

    Raises:
        Refusal: ``SESSION_NOT_FOUND``.
    """
    move = travel.Move(to_tool=tool, outcome="resumed", memories=memories)
    try:
        read = await client.ask(Address("session", session_id), move, idempotency=idempotency)
    except Refusal as refusal:
        if refusal.code != "SESSION_CLOSED" or memories is not None:
            raise
        # A repeat is refused by the first request again, whatever became of it since, and answered here.
        go_on = continuation.ContinueSession(continues=session_id, tool=tool, holder=client.holder)
        again = idempotency and idempotency._replace(scope=f"{idempotency.scope} continued")
        read = await client.ask(Address("session", new_session_id()), go_on, idempotency=again)
    return await answer_of(client, read, tool, session_id)


async def answer_of(
    client: ClientSessionState, read: travel.ContextRead, tool: str, session_id: str
) -> SessionRestored:
    """Return the answer to who takes a session up, or one that continues it."""
    restored_at = read.migrations[-1].at
    is_new = read.session_id != session_id
    done = "Began a session that continues" if is_new else "Restored"
    after = ". That one stays as it is." if is_new else "."
    return SessionRestored(
        notice=f"{done} {quoted(read.purpose)}{said_in(client, read, restored_at)}{after}",
        briefing=await client.briefing_of(read),
        talk=client.talk_of(read),
        session_id=read.session_id,
        continues=session_id if is_new else read.continues,
        project_id=read.project_id,
        context=client.context_of(read),
        created_at=read.started_at,
        restored_at=restored_at,
        tool=tool,
        original_tool=read.original_tool,
        original_session_id=read.migrations[0].session_id,
    )


def new_session_id() -> str:
    """Return an id that no session has."""
    return f"session_{secrets.token_hex(SESSION_DIGITS)}"


def said_in(client: ClientSessionState, read: travel.ContextRead, now: datetime) -> str:
    """Return in words how much was said in a session, and how long ago, behind a colon."""
    if not client.may_read:
        return ""
    talk = read.talk
    count = "1 message" if talk.messages == 1 else f"{talk.messages:,} messages"
    last = "" if talk.last_at is None else f", the last {_ago(now - talk.last_at)}"
    after = "" if read.continues is UNSET else f"; it continues {read.continues}"
    return f": {count}{last}{after}"


def quoted(purpose: str) -> str:
    """Return a purpose as a notice has it: data, and on one line."""
    return repr(inert(purpose, _PURPOSE))


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
