"""Procedures that start a session in a tool and hand it over to another."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import NO_REVISION
from greenroom.actors.core.git.projects import Project
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.sessions.passports import requests
from greenroom.actors.sessions.passports.claims import CLAIM_DAYS, memory_passport, session_claim
from greenroom.actors.sessions.passports.requests import SessionMigrated, SessionRestored, SessionStarted
from greenroom.actors.sessions.passports.restore import RestoreSession
from greenroom.actors.sessions.passports.resume import (
    MOST_OFFERS,
    FindKept,
    FindOffers,
    extend_briefing,
    format_talk,
    may_read,
    new_session_id,
    quote,
    resolve_tool,
    select_context,
    select_talk,
)
from greenroom.actors.sessions.passports.signing import PassportClient
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.runtime import Address, Procedure, Refusal

LATEST: Final = "latest"
_LONGEST_ID: Final = 128


@operation(
    "start_session",
    scope="sessions:write",
    tool=ToolText(
        title="Start session",
        description="Your first call: begin a new job, or continue and carry on where another "
        "tool, editor or agent left off: go on where it stopped, pick it up, take it "
        "over. If several could be meant, choose one (offered). Opens a session, a "
        "place where others can join and work together with you.",
        weight=1,
    ),
    after_notes=True,
)
class StartSession(Procedure[SessionStarted], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Start to work in the only candidate session, a new one, or a restored one.

    If several could be meant, or another agent holds the session, it starts a new one and offers the others.
    """

    runs = "here"
    tool_id: session_context.ToolId | None = None
    workspace_path: session_context.WorkspacePath | None = None
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

    async def run(self, client: PassportClient) -> SessionStarted:
        """Start a session and make it current."""
        policy.check_user(client.principal, self.user_id)
        if self.new and self.restore_from is not None:
            raise auth_errors.invalid("new", "new: give restore_from or new, not both")
        if self.workspace_path is not None:
            client.session.set_folder(self.workspace_path)
        tool = resolve_tool(client, self.tool_id)
        project = await self._find_project(client)
        project_id = _project_of(client.principal, self.project_id, project)
        known = [project_id]
        if project is not None and project_id == project.project_id:
            known += project.older
        offered: list[handover.Offer] = []
        kept: list[handover.Offer] = []
        if may_read(client) and not self.new:
            for each in known:
                find = FindOffers(project_id=each, token=client.session.token)
                offered += await client.runtime.query(find, principal=client.principal)
                if each is not None:
                    kept += await client.runtime.query(FindKept(project_id=each), principal=client.principal)
            offered = offered[:MOST_OFFERS]
        if self.restore_from is not None and self.restore_from != LATEST:
            try:
                restored = await self._restore_request(self.restore_from).run(client)
            except Refusal as refusal:
                raise _of_restore_from(refusal) from None
            return await self._answer_restored(client, restored, [*offered, *kept])
        start = handover.StartHere(
            how="begin",
            tool=tool,
            holder=client.session.holder,
            purpose=self.purpose,
            project_id=project_id,
            workspace_path=self.workspace_path,
            revision=NO_REVISION if project is None else project.revision,
            offered=offered,
            kept=kept,
        )
        return await self._answer_started(client, tool, await self._start(client, start))

    async def _find_project(self, client: PassportClient) -> Project | None:
        """Return the project of the client's folder, if that is known."""
        if self.workspace_path is None:
            return None
        return await read_in_thread(client.session.find_project, self.workspace_path)

    def _restore_request(self, given: str | dict[str, Any]) -> RestoreSession:
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

    async def _start(self, client: PassportClient, start: handover.StartHere) -> handover.Started:
        offered = start.offered
        # A session with messages has priority over one with observed files only.
        meant = [each for each in offered if each.has_words] or offered
        session_id = new_session_id()
        if offered and self.restore_from == LATEST:
            session_id, start = offered[0].session_id, msgspec.structs.replace(start, how="resume")
        elif len(meant) == 1 and not meant[0].held:
            session_id, start = meant[0].session_id, msgspec.structs.replace(start, how="take_up")
        started = await self._ask_session(client, "start_session", session_id, start)
        if started.session_id is None:
            anew = msgspec.structs.replace(start, how="begin", offered=started.offered)
            started = await self._ask_session(client, "start_session anew", new_session_id(), anew)
        return started

    async def _ask_session(
        self, client: PassportClient, scope: str, session_id: str, start: handover.StartHere
    ) -> handover.Started:
        # Idempotency compares the client's arguments, not the sessions that were found.
        arguments: dict[str, Any] = {
            "purpose": self.purpose or f"Work in {client_tool(start.tool).title}",
            "tool": start.tool,
            "project_id": start.project_id,
            "workspace_path": self.workspace_path,
        }
        arguments |= {"restore_from": self.restore_from} if self.restore_from is not None else {}
        arguments |= {"new": True} if self.new else {}
        with client.session.holding(session_id):
            started = await client.ask(
                Address("session", session_id),
                start,
                idempotency=client.idempotency(scope, self.idempotency_key, arguments),
            )
            if started.session_id is not None:  # else another client resumed or ended it after it was found
                client.session.join(started.session_id, started.project_id)
        return started

    async def _answer_started(
        self, client: PassportClient, tool: str, started: handover.Started
    ) -> SessionStarted:
        read, session_id = started.read, started.session_id
        assert session_id is not None, "it was started or resumed"
        assert started.created_at is not None, "it exists"
        at = started.at or started.created_at
        return SessionStarted(
            notice=_notice(client, started, is_latest=self.restore_from == LATEST) + _of_kept(started.kept),
            briefing=""
            if read is None
            else await extend_briefing(client, read, is_named=self.restore_from is not None),
            talk=session_context.TalkView() if read is None else select_talk(client, read),
            session_id=session_id,
            continues=UNSET if read is None else read.continues,
            project_id=started.project_id,
            created_at=started.created_at,
            tool=tool,
            restored=read is not None,
            taken_up=started.taken_up,
            offered=[*started.offered, *started.kept],
            context=session_context.SessionContext() if read is None else select_context(client, read),
            memory_passport=await memory_passport(client, session_id, int(at.timestamp()), qr=self.qr),
        )

    async def _answer_restored(
        self, client: PassportClient, restored: SessionRestored, offered: list[handover.Offer]
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


def _notice(client: PassportClient, started: handover.Started, *, is_latest: bool) -> str:
    count = len(started.offered)
    if started.taken_up is not None and started.read is not None:
        came, read = started.taken_up, started.read
        now = started.at or came.last_used
        return (
            f"Resumed {quote(read.purpose)} from {came.from_tool}, last used "
            f"{came.last_used:%Y-%m-%d %H:%M} UTC{format_talk(client, read, now)}. To begin something else, "
            "call start_session with new: true."
        )
    if not count and is_latest:
        return (
            "Began a new session: you have no open one in this project to restore. To go on with one that "
            "has ended, or with another project's, call start_session with restore_from and its session_id."
        )
    if not count and started.project_id is None and may_read(client):
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


def _of_kept(kept: list[handover.Offer]) -> str:
    if not kept:
        return ""
    what = "a session" if len(kept) == 1 else f"{len(kept)} sessions"
    return f" Hooks kept {what} of this project: offered has the call that gives a briefing."


def _of_restore_from(refusal: Refusal) -> Refusal:
    """Rename the field in the refusal of a passport to the field of `StartSession`."""
    if refusal.details.get("field") != "passport":
        return refusal
    sentence = f"restore_from{refusal.sentence.removeprefix('passport')}"
    named = Refusal(refusal.code, sentence, **{**refusal.details, "field": "restore_from"})
    named.is_denial = refusal.is_denial
    return named


@operation(
    "migrate_session",
    scope="sessions:write",
    tool=ToolText(
        title="Migrate session",
        description="Hand the session over to another tool at this server; the answer says what to do there.",
        weight=1,
    ),
    after_notes=True,
)
class MigrateSession(Procedure[SessionMigrated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Hand a session over to another tool at this server."""

    runs = "here"
    to_tool: Annotated[
        session_context.ToolName, Meta(description="the tool that is to go on, such as cursor or zed")
    ]
    session_id: types.OrCurrent | None = None
    note: Annotated[session_context.Line | None, Meta(description="for who takes it up")] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def run(self, client: PassportClient) -> SessionMigrated:
        """Log the migration, and issue a claim for the other tool."""
        session_id = client.session.resolve(self.session_id)
        to_tool = client_tool(self.to_tool)
        move = handover.Move(to_tool=to_tool.tool_id, outcome="handed_over", note=self.note)
        # The spelling is fixed: it finds the replies that older versions stored.
        arguments = {"to_tool": move.to_tool, "outcome": move.outcome, "note": move.note}
        idempotency = client.idempotency("migrate_session", self.idempotency_key, (session_id, arguments))
        read = await client.ask(Address("session", session_id), move, idempotency=idempotency)
        at = read.migrations[-1].at
        claim = session_claim(client, session_id, int(at.timestamp()))
        return SessionMigrated(
            instructions=f'In {to_tool.title}, call start_session with restore_from: "{session_id}", or with '
            "this claim in its place.",
            briefing=await extend_briefing(client, read),
            talk=select_talk(client, read),
            session_id=session_id,
            from_tool=read.tool,
            to_tool=to_tool.tool_id,
            claim=claim,
            expires_at=at + timedelta(days=CLAIM_DAYS),
            migrated_at=at,
        )


def _project_of(principal: Principal, project_id: str | None, project: Project | None) -> str | None:
    if project_id is None and principal.projects:
        if len(principal.projects) > 1:
            mine = ", ".join(sorted(principal.projects))
            raise auth_errors.invalid("project_id", f"project_id: you belong to several; say which: {mine}")
        (project_id,) = principal.projects
    elif project_id is None and project is not None and principal.projects is None:
        project_id = project.project_id
    if not policy.may_see_session(principal, project_id):
        raise auth_errors.permission_denied(
            "project_id", f"project_id: you are not a member of {project_id!r}"
        )
    return project_id
