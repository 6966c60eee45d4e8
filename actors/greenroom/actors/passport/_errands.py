"""Starting a session in a tool, and handing it over to another one."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta

from greenroom.actors import _policy
from greenroom.actors.passport._adapters import adapter_of
from greenroom.actors.passport._claims import Claim, claim_text
from greenroom.actors.passport._offers import FindOffers
from greenroom.actors.passport._restoring import RestoreSession, resumed
from greenroom.actors.passport._travels import TravelErrand, Travels
from greenroom.actors.requests import _passports as requests
from greenroom.actors.requests import _travel as travel
from greenroom.actors.requests import _types as types
from greenroom.actors.requests._passports import SessionMigrated, SessionRestored, SessionStarted
from greenroom.runtime import Address

LATEST: Final = "latest"
CLAIM_DAYS: Final = 30
_DIGITS: Final = 8


class StartSession(TravelErrand[SessionStarted], frozen=True, kw_only=True):
    """Begin to work in a session: a new one, or one that is restored."""

    tool_id: travel.ToolId | None = None
    workspace_path: travel.WorkspacePath | None = None
    project_id: types.ProjectId | None = None
    user_id: types.UserId | None = None
    purpose: types.Purpose | None = None
    restore_from: Annotated[
        requests.PassportText | None,
        Meta(description="latest, a session_id, a passport or a claim"),
    ] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, travels: Travels) -> SessionStarted:
        """Begin, and work in it from now on.

        Raises:
            Refusal: ``PERMISSION_DENIED``, or as restoring.
        """
        _policy.check_user(travels.principal, self.user_id)
        tool = travels.tool_of(self.tool_id)
        project_id = travels.project_of(self.project_id, self.workspace_path)
        offered: list[requests.Offer] = []
        if travels.may_read:
            find = FindOffers(project_id=project_id)
            offered = await travels.doors.query(find, principal=travels.principal)
        if self.restore_from == LATEST and offered:
            once = travels.idempotency("start_session latest", self.idempotency_key, (tool, project_id))
            latest = await resumed(travels, offered[0].session_id, tool, once)
            return self._restored(travels, latest, offered)
        if self.restore_from is not None and self.restore_from != LATEST:
            given = self.restore_from
            is_id = isinstance(given, str) and len(given) <= 128 and ":" not in given  # noqa: PLR2004
            restoring = RestoreSession(
                session_id=given if is_id and isinstance(given, str) else None,
                passport=None if is_id else given,
                tool_id=self.tool_id,
                idempotency_key=self.idempotency_key,
            )
            return self._restored(travels, await restoring.carry_out(travels), offered)
        return await self._begun(travels, tool, project_id, offered)

    async def _begun(
        self, travels: Travels, tool: str, project_id: str | None, offered: list[requests.Offer]
    ) -> SessionStarted:
        session_id = f"session_{secrets.token_hex(_DIGITS)}"
        begin = travel.BeginSession(
            purpose=self.purpose or f"Work in {adapter_of(tool).title}",
            tool=tool,
            project_id=project_id,
            workspace_path=self.workspace_path,
        )
        idempotency = travels.idempotency("start_session", self.idempotency_key, begin)
        begun = await travels.doors.ask(
            Address("session", session_id), begin, principal=travels.principal, idempotency=idempotency
        )
        travels.work_in(begun.session_id)
        return SessionStarted(
            session_id=begun.session_id,
            project_id=begun.project_id,
            created_at=begun.created_at,
            tool=tool,
            memory_passport=_claim(travels, begun.session_id, int(begun.created_at.timestamp())),
            offered=offered,
            restored=False,
            context=travel.SessionContext(),
            briefing="",
        )

    def _restored(
        self, travels: Travels, restored: SessionRestored, offered: list[requests.Offer]
    ) -> SessionStarted:
        travels.work_in(restored.session_id)
        return SessionStarted(
            session_id=restored.session_id,
            project_id=restored.project_id,
            created_at=restored.created_at,
            tool=restored.tool,
            memory_passport=_claim(travels, restored.session_id, int(restored.restored_at.timestamp())),
            offered=[offer for offer in offered if offer.session_id != restored.session_id],
            restored=True,
            context=restored.context,
            briefing=restored.briefing,
        )


class MigrateSession(TravelErrand[SessionMigrated], frozen=True, kw_only=True):
    """Hand a session over to another tool at this server."""

    to_tool: travel.ToolId
    session_id: travel.ContextSession | None = None
    note: Annotated[travel.Line | None, Meta(description="for who takes it up")] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, travels: Travels) -> SessionMigrated:
        """Log it, and make the claim by which the other tool takes it up.

        Raises:
            Refusal: ``SESSION_NOT_FOUND`` or ``SESSION_CLOSED``.
        """
        session_id = travels.named(self.session_id)
        to_tool = adapter_of(self.to_tool)
        move = travel.Move(to_tool=to_tool.tool_id, outcome="handed_over", note=self.note)
        idempotency = travels.idempotency("migrate_session", self.idempotency_key, (session_id, move))
        read = await travels.doors.ask(
            Address("session", session_id), move, principal=travels.principal, idempotency=idempotency
        )
        at = read.migrations[-1].at
        claim = _claim(travels, session_id, int(at.timestamp()))
        return SessionMigrated(
            session_id=session_id,
            from_tool=read.tool,
            to_tool=to_tool.tool_id,
            claim=claim,
            expires_at=at + timedelta(days=CLAIM_DAYS),
            migrated_at=at,
            instructions=f'In {to_tool.title}, call restore_session with session_id "{session_id}", or with '
            "this claim as passport.",
            briefing=travels.briefing_of(read),
        )


def _claim(travels: Travels, session_id: str, now: int) -> str:
    return claim_text(Claim("session", session_id, now + CLAIM_DAYS * 86_400), travels.signers)
