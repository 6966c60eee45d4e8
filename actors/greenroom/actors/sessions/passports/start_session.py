"""Orchestrations that start a session in a tool, and hand it over to another one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.hooks.offering import FindKept
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.orchestrations.passport_link import CLAIM_DAYS, memory_passport, session_claim
from greenroom.actors.orchestrations.taking_up import new_session_id, quoted, said_in
from greenroom.actors.sessions.client_tools import client_tool
from greenroom.actors.sessions.passports import requests
from greenroom.actors.sessions.passports.offers import FindOffers
from greenroom.actors.sessions.passports.requests import SessionMigrated, SessionRestored, SessionStarted
from greenroom.actors.sessions.passports.restore import RestoreSession
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Address, Refusal

LATEST: Final = "latest"
_LONGEST_ID: Final = 128


class StartSession(
    ClientOrchestration[SessionStarted], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Begin to work: in the session that is clearly meant, in a new one, or in one that is restored.

    Where one is in use by another agent, or several could be meant, it begins a new one and offers those.
    """

    tool_id: travel.ToolId | None = None
    workspace_path: travel.WorkspacePath | None = None
    project_id: types.ProjectId | None = None
    user_id: types.UserId | None = None
    purpose: Annotated[types.Purpose | None, Meta(description="of a new one")] = None
    restore_from: Annotated[
        requests.PassportText | None,
        Meta(description="latest, a session_id, a passport or a claim"),
    ] = None
    new: Annotated[bool, Meta(description="make a new one, whatever there is")] = False
    qr: Annotated[bool, Meta(description="also a QR code of the claim")] = False
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, client: ClientSessionState) -> SessionStarted:
        """Begin, and work in it from now on.

        Raises:
            Refusal: ``PERMISSION_DENIED``, or as restoring.
        """
        policy.check_user(client.principal, self.user_id)
        if self.new and self.restore_from is not None:
            raise auth_errors.invalid("new", "new: give restore_from or new, not both")
        if self.workspace_path is not None:
            client.workspace_path = self.workspace_path
        tool = client.tool_of(self.tool_id)
        project_id = client.project_of(self.project_id, self.workspace_path)
        offered: list[travel.Offer] = []
        kept: list[travel.Offer] = []
        if client.may_read and not self.new:
            find = FindOffers(project_id=project_id, token=client.token)
            offered = await client.runtime.query(find, principal=client.principal)
            if project_id is not None:
                kept = await client.runtime.query(FindKept(project_id=project_id), principal=client.principal)
        if self.restore_from is not None and self.restore_from != LATEST:
            try:
                restored = await self._restoring(self.restore_from).carry_out(client)
            except Refusal as refusal:
                raise _of_restore_from(refusal) from None
            return await self._restored(client, restored, [*offered, *kept])
        start = travel.StartHere(
            how="begin",
            tool=tool,
            holder=client.holder,
            purpose=self.purpose,
            project_id=project_id,
            workspace_path=self.workspace_path,
            offered=offered,
            kept=kept,
        )
        return await self._begun(client, tool, await self._started(client, start))

    def _restoring(self, given: str | dict[str, Any]) -> RestoreSession:
        """Return the request that restores a session by its id, or a passport.

        Raises:
            Refusal: ``VALIDATION_ERROR``: it is neither.
        """
        session_id = None
        if isinstance(given, str) and len(given) <= _LONGEST_ID and ":" not in given:
            if not re.match(types.SESSION_ID, given):
                takes = "latest, a session_id, a passport or a claim"
                raise auth_errors.invalid("restore_from", f"restore_from: it takes {takes} and got {given!r}")
            session_id = given
        return RestoreSession(
            session_id=session_id,
            passport=given if session_id is None else None,
            tool_id=self.tool_id,
            idempotency_key=self.idempotency_key,
        )

    async def _started(self, client: ClientSessionState, start: travel.StartHere) -> travel.Started:
        """Return what came of it: by what there is, or for a repeat what came of it the first time."""
        offered = start.offered
        # A session in which the server saw a file being read hides none in which something was said.
        meant = [each for each in offered if each.has_words] or offered
        session_id = new_session_id()
        if offered and self.restore_from == LATEST:
            session_id, start = offered[0].session_id, msgspec.structs.replace(start, how="resume")
        elif len(meant) == 1 and not meant[0].held:
            session_id, start = meant[0].session_id, msgspec.structs.replace(start, how="take_up")
        started = await self._asked(client, "start_session", session_id, start)
        if started.session_id is None:
            anew = msgspec.structs.replace(start, how="begin", offered=started.offered)
            started = await self._asked(client, "start_session anew", new_session_id(), anew)
        return started

    async def _asked(
        self, client: ClientSessionState, scope: str, session_id: str, start: travel.StartHere
    ) -> travel.Started:
        # What is asked is what the client said: what there was to be found is no part of it.
        said: dict[str, Any] = {
            "purpose": self.purpose or f"Work in {client_tool(start.tool).title}",
            "tool": start.tool,
            "project_id": start.project_id,
            "workspace_path": self.workspace_path,
        }
        said |= {"restore_from": self.restore_from} if self.restore_from is not None else {}
        said |= {"new": True} if self.new else {}
        with client.holding(session_id):
            started = await client.ask(
                Address("session", session_id),
                start,
                idempotency=client.idempotency(scope, self.idempotency_key, said),
            )
            if started.session_id is not None:  # else it was taken up, or ended, since it was found
                client.join(started.session_id, started.project_id)
        return started

    async def _begun(self, client: ClientSessionState, tool: str, started: travel.Started) -> SessionStarted:
        read, session_id = started.read, started.session_id
        assert session_id is not None, "it was begun or taken up"
        assert started.created_at is not None, "and at some time"
        at = started.at or started.created_at
        return SessionStarted(
            notice=_notice(client, started, is_latest=self.restore_from == LATEST) + _of_kept(started.kept),
            briefing=""
            if read is None
            else await client.briefing_of(read, asked=self.restore_from is not None),
            talk=travel.TalkView() if read is None else client.talk_of(read),
            session_id=session_id,
            continues=UNSET if read is None else read.continues,
            project_id=started.project_id,
            created_at=started.created_at,
            tool=tool,
            restored=read is not None,
            taken_up=started.taken_up,
            offered=[*started.offered, *started.kept],
            context=travel.SessionContext() if read is None else client.context_of(read),
            memory_passport=await memory_passport(client, session_id, int(at.timestamp()), qr=self.qr),
        )

    async def _restored(
        self, client: ClientSessionState, restored: SessionRestored, offered: list[travel.Offer]
    ) -> SessionStarted:
        at = int(restored.restored_at.timestamp())
        return SessionStarted(
            notice=restored.notice,
            briefing=restored.briefing,
            talk=restored.talk,
            session_id=restored.session_id,
            continues=restored.continues,
            project_id=restored.project_id,
            created_at=restored.created_at,
            tool=restored.tool,
            restored=True,
            taken_up=None,
            offered=[
                offer
                for offer in offered
                if offer.session_id not in {restored.session_id, restored.continues}
            ],
            context=restored.context,
            memory_passport=await memory_passport(client, restored.session_id, at, qr=self.qr),
        )


def _notice(client: ClientSessionState, started: travel.Started, *, is_latest: bool) -> str:
    count = len(started.offered)
    if started.taken_up is not None and started.read is not None:
        came, read = started.taken_up, started.read
        now = started.at or came.last_used
        return (
            f"Took up {quoted(read.purpose)} from {came.from_tool}, last used "
            f"{came.last_used:%Y-%m-%d %H:%M} UTC{said_in(client, read, now)}. To begin something else, "
            "call start_session with new: true."
        )
    if not count and is_latest:
        return (
            "Began a new session: you have no open one in this project to restore. To go on with one that "
            "has ended, or with another project's, call start_session with restore_from and its session_id."
        )
    if not count and started.project_id is None and client.may_read:
        return (
            "Began a new session of no project: it is not known which folder you work in. To find the work "
            "of one, call start_session with its workspace_path."
        )
    if not count:
        return "Began a new session."
    there = "one open session has work in it" if count == 1 else f"{count} open sessions have work in them"
    agents = sorted({agent for offer in started.offered for agent in offer.held_by})
    held = f" ({', '.join(agents)} at work there now)" if agents else ""
    return f"Began a new session, and {there}{held}: to go on with one instead, make its call in offered."


def _of_kept(kept: list[travel.Offer]) -> str:
    """Return a sentence on what hooks keep; empty where there is nothing."""
    if not kept:
        return ""
    what = "a session" if len(kept) == 1 else f"{len(kept)} sessions"
    return f" Hooks kept {what} of this project: offered has the call that gives a briefing."


def _of_restore_from(refusal: Refusal) -> Refusal:
    """Return a refusal of a passport with the name that the passport has in `StartSession`."""
    if refusal.details.get("field") != "passport":
        return refusal
    sentence = f"restore_from{refusal.sentence.removeprefix('passport')}"
    named = Refusal(refusal.code, sentence, **{**refusal.details, "field": "restore_from"})
    named.is_denial = refusal.is_denial
    return named


class MigrateSession(
    ClientOrchestration[SessionMigrated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Hand a session over to another tool at this server."""

    to_tool: Annotated[travel.ToolName, Meta(description="the tool that is to go on, such as cursor or zed")]
    session_id: types.OrCurrent | None = None
    note: Annotated[travel.Line | None, Meta(description="for who takes it up")] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, client: ClientSessionState) -> SessionMigrated:
        """Log it, and make the claim by which the other tool takes it up.

        Raises:
            Refusal: ``SESSION_NOT_FOUND`` or ``SESSION_CLOSED``.
        """
        session_id = client.resolve_session(self.session_id)
        to_tool = client_tool(self.to_tool)
        move = travel.Move(to_tool=to_tool.tool_id, outcome="handed_over", note=self.note)
        # What the client said, spelled as it always was: an older version's answer is found by it.
        said = {"to_tool": move.to_tool, "outcome": move.outcome, "note": move.note}
        idempotency = client.idempotency("migrate_session", self.idempotency_key, (session_id, said))
        read = await client.ask(Address("session", session_id), move, idempotency=idempotency)
        at = read.migrations[-1].at
        claim = session_claim(client, session_id, int(at.timestamp()))
        return SessionMigrated(
            instructions=f'In {to_tool.title}, call start_session with restore_from: "{session_id}", or with '
            "this claim in its place.",
            briefing=await client.briefing_of(read),
            talk=client.talk_of(read),
            session_id=session_id,
            from_tool=read.tool,
            to_tool=to_tool.tool_id,
            claim=claim,
            expires_at=at + timedelta(days=CLAIM_DAYS),
            migrated_at=at,
        )
