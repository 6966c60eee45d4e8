"""Find sessions that a user can resume; resume one, or continue an ended one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final

from msgspec import UNSET

from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.content.times.in_words import in_words
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.scopes import SESSIONS, allows
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.memories.recall.replies import HOOKS
from greenroom.actors.memories.requests.transfer import ReleaseImport
from greenroom.actors.sessions.passports.requests import SessionRestored
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.requests.current_session import SessionClient
from greenroom.actors.sessions.requests.hook_messages import LastSessions, LookAtKept, session_id_of
from greenroom.actors.sessions.storage import directory, migrations
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.actors.sessions.summary.briefing import LEAST_ROOM, MOST_BYTES
from greenroom.actors.sessions.summary.retained_messages import HOOKS_APP, is_of_same_user
from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    GreenroomError,
    Idempotency,
    IndexReader,
    Procedure,
    ProcedureContext,
    Refusal,
    Row,
    Slices,
)

MOST_OFFERS: Final = 5
MOST_KEPT: Final = 3
MOST_ASKED: Final = 50
"""The most sessions to query, the last resumed first."""
MOST_UNLISTED: Final = 200
"""The number of recently active sessions to scan for sessions that older versions did not index."""
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
        # A repeat gets the refusal of the first request again, and then the reply of the second.
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
        except GreenroomError:  # the session was deleted or hidden
            break
        text = f"{text}\n{earlier.text}" if earlier.text else text
        before = earlier.continues
    return text


def new_session_id() -> str:
    """Return a new session id."""
    return f"session_{secrets.token_hex(SESSION_DIGITS)}"


def format_talk(client: SessionClient, read: session_context.ContextRead, now: datetime) -> str:
    """Return the number of messages and the age of the last message, as text."""
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
    return f"{in_words(age) or 'less than a minute'} ago"


class FindOffers(Procedure[list[handover.Offer]], frozen=True, kw_only=True):
    """Find the caller's open, non-empty sessions of a project; internal.

    Sessions with messages come first, then sessions with observed files or searches; the last used is first.
    """

    project_id: str | None
    token: str

    async def run(self, context: ProcedureContext) -> list[handover.Offer]:
        """Find the sessions, and query each for its contents."""
        offers: list[handover.Offer] = []
        spoken = 0
        for session_id in await context.query(FindOpen(project_id=self.project_id)):
            try:
                offer = await context.ask(
                    Address("session", session_id), handover.LookAtWork(token=self.token)
                )
            except (ActorFailedError, ActorQuarantinedError):  # the other sessions can still be offered
                continue
            if offer is not None:
                offers.append(offer)
                spoken += offer.has_words
                if spoken == MOST_OFFERS:
                    break
        offers.sort(key=lambda offer: (offer.has_words, offer.last_used), reverse=True)
        return offers[:MOST_OFFERS]


class FindOpen(Procedure[list[str]], frozen=True, kw_only=True):
    """Find the caller's open sessions of a project, the last resumed first; internal."""

    runs = "snapshot"

    project_id: str | None

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the index of recent sessions, and the newest part of the directory."""
        found: dict[str, None] = {}
        mine = migrations.prefix_of(user_namespace(reader.principal), self.project_id)
        listed = reader.rows(migrations.INDEX, migrations.RecentSessionRow, prefix=mine)
        active = reader.rows(directory.INDEX, type(None), prefix=directory.sort_prefix(policy.PUBLIC))
        rows: Iterator[Row[Any]] = chain(listed, islice(active, MOST_UNLISTED))
        for row in rows:
            base = reader.get(directory.INDEX, directory.BASE, row.address, directory.BaseRow)
            if (
                base is not None
                and base.status not in CLOSED
                and base.project_id == self.project_id
                and base.app_name != HOOKS_APP
                and policy.may_see_session(reader.principal, base.project_id)
                and (row.value is not None or is_of_same_user(base, reader.principal))
            ):
                found[row.address.key] = None
                if len(found) == MOST_ASKED:
                    break
            yield
        return list(found)


class FindKept(Procedure[list[handover.Offer]], frozen=True, kw_only=True):
    """Find the sessions that hooks stored for the caller's user in a project; internal."""

    project_id: str

    async def run(self, context: ProcedureContext) -> list[handover.Offer]:
        """Find the client sessions, and query each for its contents, newest first."""
        offers: list[handover.Offer] = []
        address = Address(HOOKS, user_namespace(context.principal))
        try:
            earlier = await context.ask(address, LastSessions(project=self.project_id))
        except (ActorFailedError, ActorQuarantinedError):  # start without these offers
            return offers
        for each in earlier:
            kept = Address("session", session_id_of(each, context.principal))
            try:
                offer = await context.ask(kept, LookAtKept(project_id=self.project_id))
            except (ActorFailedError, ActorQuarantinedError):  # the other sessions can still be offered
                continue
            if offer is not None:
                offers.append(offer)
            if len(offers) == MOST_KEPT:
                break
        return offers
