"""Restore a session: resume one that is here, or create one from a passport.

Checks come in this order: signature, time, audience, content. Everything that could be refused is checked
before the first write. Messages and memories are staged where no reader sees them. One commit creates the
session and decides the import of the memories, which then completes in any case. After an interruption the
agent restores again. This continues its attempt until the attempt is done. For a day after the beginning, the
agent gets the same session.

On the server that exported it, a passport stands for the session itself. A caller that may write to the
session resumes it, unless the session is older than the passport.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces, passport_errors, policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import SECOND, to_datetime
from greenroom.actors.core.validation.types import CLOSED
from greenroom.actors.memories.requests.import_lines import check_line, decode_line
from greenroom.actors.memories.requests.transfer import NOT_STAGING, ReleaseImport
from greenroom.actors.memories.transfer.import_run import Importer, ImportRefusedError
from greenroom.actors.memories.transfer.normalize import SourceError
from greenroom.actors.memories.transfer.sources import source_of_text
from greenroom.actors.sessions.passports import claims, envelope, packing, requests
from greenroom.actors.sessions.passports.envelope import AnyPassport
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.passports.requests import SessionRestored
from greenroom.actors.sessions.passports.resume import (
    SESSION_DIGITS,
    build_reply,
    extend_briefing,
    format_talk,
    quote,
    resolve_tool,
    resume_session,
    select_context,
    select_talk,
)
from greenroom.actors.sessions.passports.signing import PassportClient
from greenroom.actors.sessions.requests import handover, payloads, session_context
from greenroom.runtime import Address, Idempotency, Procedure, Refusal

MEMORIES: Final = "memory:write"


@operation(
    "restore_session",
    scope="sessions:write",
    tool=ToolText(
        title="Restore session",
        description="Go on with a session from another tool or server, by session_id, passport or "
        "claim. The briefing says where the work stands.",
        weight=1,
    ),
    after_notes=True,
)
class RestoreSession(Procedure[SessionRestored], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Resume a session that is here, or restore the one in a passport."""

    runs = "here"
    session_id: (
        Annotated[handover.SessionHere, Meta(description="one that is here; or give a passport")] | None
    ) = None
    passport: Annotated[
        requests.PassportText | None, Meta(description="as text or object, or a claim (GREENROOM:C1:…)")
    ] = None
    tool_id: session_context.ToolId | None = None
    passphrase: requests.GivenPassphrase | None = None
    project_id: Annotated[
        types.ProjectId | None, Meta(description="where the passport's session goes instead")
    ] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def run(self, client: PassportClient) -> SessionRestored:
        """Restore the session and make it current."""
        if (self.session_id is None) == (self.passport is None):
            raise auth_errors.invalid("passport", "passport: give a session_id or a passport")
        tool = resolve_tool(client, self.tool_id)
        if self.session_id is not None:
            restored = await resume_session(
                client, self.session_id, tool, self._once(client, self.session_id)
            )
        else:
            assert self.passport is not None, "one of them is given"
            try:
                restored = await self._from_passport(client, self.passport, tool)
            except Refusal as refusal:
                if refusal.code in passport_errors.CODES:
                    client.tell(requests.REFUSALS, requests.NoteRefusal(code=refusal.code))
                raise
        client.session.join(restored.session_id, restored.project_id)
        return restored

    async def _from_passport(
        self, client: PassportClient, given: bytes | str | dict[str, Any], tool: str
    ) -> SessionRestored:
        if isinstance(given, dict) and isinstance(given.get("claim"), str):
            given = given["claim"]  # it is a whole memory passport of `StartSession`
        if isinstance(given, str) and claims.is_small(given):
            small = claims.read_small(given, client.passports.signers)
            if isinstance(small, bytes):
                given = small
            elif small.kind == "session":
                await self._check_claim(client, small)
                return await resume_session(client, small.id, tool, self._once(client, small.id))
            else:
                given = await self._read_claimed(client, small)
        checked = await CheckedPassport.check(client, given, self.passphrase, is_over=self._is_over)
        return await self._redeem(client, checked, tool)

    def _once(self, client: PassportClient, what: str) -> Idempotency | None:
        request = (what, self.tool_id, self.project_id)
        return client.idempotency("restore_session", self.idempotency_key, request)

    def _is_over(self, expires: datetime, standing: requests.Standing) -> bool:
        is_repeat = standing.own is not None and not standing.own.is_late
        return self.idempotency_key is None and not is_repeat and expires <= standing.now

    async def _check_claim(self, client: PassportClient, claim: claims.Claim) -> requests.Standing:
        address = requests.passport_address(claim.id)
        request = requests.AskStanding(text=claim.kind == "passport")
        standing = await client.ask(address, request)
        expires = to_datetime(claim.expires * SECOND)
        if expires <= standing.now if claim.kind == "session" else self._is_over(expires, standing):
            raise passport_errors.expired(envelope.instant(expires))
        return standing

    async def _read_claimed(self, client: PassportClient, claim: claims.Claim) -> str:
        standing = await self._check_claim(client, claim)
        if standing.text is None:
            raise passport_errors.unknown_claim()
        return standing.text

    async def _redeem(self, client: PassportClient, checked: CheckedPassport, tool: str) -> SessionRestored:
        project_id = checked.project_for(client, self.project_id)
        idempotency = self._once(client, checked.passport.passport_id)
        attempt = secrets.token_hex(16)
        if idempotency is not None:
            whole = f"{idempotency.scope} {idempotency.key}"
            attempt = blake2b(whole.encode(), digest_size=16).hexdigest()
        session_id, place = await self._place(client, checked.passport.session_id, attempt)
        here = place != "made" and await self._is_here(client, checked)
        redeem = requests.Redeem(
            attempt=attempt,
            session_id=checked.passport.session_id if here else session_id,
            one_time=checked.passport.one_time,
            expires_at=checked.passport.expires_at,
            here=here,
        )
        redemption = await client.ask(checked.address, redeem, idempotency=idempotency)
        attempt = redemption.attempt
        earlier = await self._earlier(client, checked, redemption)
        is_itself = here and redemption.session_id == checked.passport.session_id
        if is_itself or (redemption.here and checked.passport.one_time):
            if earlier is not None:
                restored = _with_status(
                    await build_reply(client, earlier, tool, redemption.session_id), earlier
                )
            else:
                restored = await self._resume(client, checked, tool)
            await self._settle(client, checked, attempt, redemption.session_id, here=True)
            return msgspec.structs.replace(restored, memories=len(checked.memories))
        await client.charge_bytes(checked.passport.content.size, attempt)
        making = checked.restore_request(client, attempt, tool, project_id)
        try:
            made = await self._make(client, redemption.session_id, checked, making)
        except Refusal as refusal:
            if refusal.code != "KEY_EXISTS":
                raise
            # Another caller created a session of this id in the meantime.
            made = await self._make(client, redemption.session_id, checked, making)
        session_id = made.read.session_id
        if made.importing is not None and earlier is None:
            await checked.importer(client).wait_written(made.importing)
        await self._settle(client, checked, attempt, session_id)
        restored = SessionRestored(
            notice=f"Restored {quote(made.read.purpose)}{format_talk(client, made.read, made.restored_at)}.",
            briefing=await extend_briefing(client, made.read),
            talk=select_talk(client, made.read),
            session_id=session_id,
            project_id=made.read.project_id,
            context=select_context(client, made.read),
            created_at=made.read.started_at,
            restored_at=made.restored_at,
            tool=tool,
            original_tool=made.original_tool,
            original_session_id=checked.passport.session_id,
            messages=made.messages,
            memories=len(checked.memories),
        )
        return _with_status(restored, earlier)

    async def _earlier(
        self, client: PassportClient, checked: CheckedPassport, redemption: requests.Redemption
    ) -> session_context.ContextRead | None:
        if not checked.passport.one_time:
            return None
        own = checked.standing.own or redemption  # with an idempotency key, a repeat gets the first reply
        session_id = redemption.session_id
        _, place = await self._place(client, session_id, redemption.attempt)
        if own.is_late and (own.done or place == "made"):
            await self._settle(client, checked, redemption.attempt, session_id)
            raise passport_errors.redeemed_long_ago(envelope.instant(own.at), session_id)
        if not own.done and not redemption.here:
            return None
        gone = passport_errors.redeemed_and_gone(session_id)
        if place != "made" and not redemption.here:
            raise gone
        try:
            read = await client.ask(
                Address("session", session_id), session_context.GetSessionContext(session_id=session_id)
            )
        except Refusal as refusal:
            if refusal.code != "SESSION_NOT_FOUND":
                raise
            raise gone from None
        return read if own.done or read.status in CLOSED else None

    async def _is_here(self, client: PassportClient, checked: CheckedPassport) -> bool:
        """Return whether the session itself is here, writable for the caller, and not older."""
        elsewhere = self.project_id not in {None, checked.payload.session.project_id}
        if elsewhere or not client.passports.signers.is_own(checked.passport.signature):
            return False
        here: bool = await client.ask(
            Address("session", checked.passport.session_id),
            payloads.FindExported(
                created_at=checked.payload.session.created_at,
                updated_at=checked.payload.session.updated_at,
                newest_id=checked.newest_id,
            ),
        )
        return here

    async def _resume(self, client: PassportClient, checked: CheckedPassport, tool: str) -> SessionRestored:
        """Resume the session itself, and import the memories as for a copy."""
        session_id = checked.passport.session_id
        request = (checked.passport.passport_id, self.tool_id, self.project_id)
        once = None  # an attempt at a one-time passport repeats until it is done
        if not checked.passport.one_time:
            once = client.idempotency("restore_session here", self.idempotency_key, request)
        memories = await checked.stage_memories(client, session_id)
        try:
            restored = await resume_session(client, session_id, tool, once, memories)
        except Refusal as refusal:
            if not checked.passport.one_time or memories is None or refusal.code != "PASSPORT_INVALID":
                raise
            # A concurrent restore has imported these memories, and a third restore began again.
            memories = None
            restored = await resume_session(client, session_id, tool)
        if memories is not None:
            await checked.importer(client).wait_written(memories.staging)
        return restored

    async def _settle(
        self,
        client: PassportClient,
        checked: CheckedPassport,
        attempt: str,
        session_id: str,
        *,
        here: bool = False,
    ) -> None:
        done = requests.SettleRedemption(
            attempt=attempt,
            session_id=session_id,
            one_time=checked.passport.one_time,
            expires_at=checked.passport.expires_at,
            here=here,
        )
        await client.ask(checked.address, done)

    async def _make(
        self, client: PassportClient, session_id: str, checked: CheckedPassport, making: payloads.MakeRestored
    ) -> payloads.Restored:
        """Create the session of a passport; a repeat of the attempt creates no second session."""
        session_id, place = await self._place(client, session_id, making.attempt)
        address = Address("session", session_id)
        if place != "made":
            for number, lines in enumerate(checked.pieces):
                staged = payloads.StageMessages(attempt=making.attempt, number=number, lines=lines)
                await client.ask(address, staged)
            memories = await checked.stage_memories(client, session_id)
            making = msgspec.structs.replace(making, memories=memories)
        return await client.ask(address, making)

    async def _place(self, client: PassportClient, session_id: str, attempt: str) -> tuple[str, str]:
        """Return the id for the session of the attempt, and whether it was ``made``.

        The id is ``session_id``, or, if that is taken, an id that only this attempt has.
        """
        digest = blake2b(f"{session_id} {attempt}".encode(), digest_size=SESSION_DIGITS).hexdigest()
        request = payloads.FindAttempt(attempt=attempt)
        for place in (session_id, f"session_{digest}"):
            if place in policy.RESERVED_SESSION_IDS:
                continue
            found = await client.ask(Address("session", place), request)
            if found != "taken":
                return place, found
        return f"session_{digest}", "free"


class CheckedPassport(NamedTuple):
    """A checked passport that may become a session here; ``standing`` is its status when checked.

    Messages are in pieces for staging, memories in the importer's namespaces.
    """

    passport: AnyPassport
    payload: PassportPayload
    pieces: list[list[msgspec.Raw]]
    memories: list[bytes]
    standing: requests.Standing

    @property
    def address(self) -> Address:
        """The passport's actor."""
        return requests.passport_address(self.passport.passport_id)

    @classmethod
    async def check(
        cls,
        client: PassportClient,
        given: bytes | str | dict[str, Any],
        passphrase: str | None,
        *,
        is_over: Callable[[datetime, requests.Standing], bool],
    ) -> CheckedPassport:
        """Check everything that does not need a write."""
        passport, body = await run_in_thread(envelope.read, given)
        await run_in_thread(client.passports.signers.check, body, passport.signature)
        address = requests.passport_address(passport.passport_id)
        standing = await client.ask(address, requests.AskStanding())
        if not passport.one_time:
            standing = msgspec.structs.replace(standing, own=None)
        if is_over(passport.expires_at, standing):
            raise passport_errors.expired(envelope.instant(passport.expires_at))
        _check_audience(passport, client)
        whole, pieces = await run_in_thread(_unpack, passport, passphrase)
        if whole.memories:
            client.check_scope("a passport with memories", MEMORIES)
        memories = await run_in_thread(_own_memories, whole, passport, client.principal)
        return cls(passport, whole, pieces, memories, standing)

    @property
    def newest_id(self) -> int:
        """The id of its newest message; 0 for none."""
        return packing.id_of(self.payload.messages[-1]) if self.payload.messages else 0

    def restore_request(
        self, client: PassportClient, attempt: str, tool: str, project_id: str | None
    ) -> payloads.MakeRestored:
        """Return the request that creates the session from its staged pieces."""
        return payloads.MakeRestored(
            attempt=attempt,
            pieces=len(self.pieces),
            session=self.payload.session,
            context=self.payload.context,
            migrations=self.payload.migrations,
            tool=tool,
            project_id=project_id,
            server=None
            if client.passports.signers.is_own(self.passport.signature)
            else self.passport.signature.key,
        )

    def project_for(self, client: PassportClient, wanted: str | None) -> str | None:
        """Return the project of the restored session; refuse a caller who is not a member."""
        project_id = wanted or self.payload.session.project_id
        if not policy.may_see_session(client.principal, project_id):
            raise auth_errors.permission_denied(
                "project_id",
                f"project_id: the session belongs to the project {project_id!r}, and you are not a member "
                "of it; name one of your projects",
            )
        return project_id

    async def stage_memories(self, client: PassportClient, session_id: str) -> ReleaseImport | None:
        """Stage the memories; return the message that decides their import."""
        if not self.memories:
            return None
        text = await run_in_thread(_lines_for, self.memories, session_id)
        try:
            return await self.importer(client, text).stage()
        except (ImportRefusedError, SourceError) as error:
            raise passport_errors.invalid(f"its memories cannot be imported: {error}") from None
        except Refusal as refusal:
            if refusal.code != NOT_STAGING:
                raise
            return None  # another attempt has decided the same import

    def importer(self, client: PassportClient, text: str = "") -> Importer:
        """Return the importer of these lines."""
        return Importer(client.runtime, client.principal, source_of_text(text), on_conflict="skip")


def _with_status(restored: SessionRestored, earlier: session_context.ContextRead | None) -> SessionRestored:
    """Return the reply to a repeat; if the session has ended since, name its status."""
    if earlier is None or earlier.status not in CLOSED:
        return restored
    ended = f"{restored.notice} It has been {earlier.status} since, and accepts no more writes."
    return msgspec.structs.replace(restored, notice=ended)


def _check_audience(passport: AnyPassport, client: PassportClient) -> None:
    """Check that the audience includes this server and user; a kind without names includes all."""
    for kind, mine in (
        ("user:", {f"user:{client.principal.user}"} if client.principal.user is not None else set()),
        ("server:", {f"server:{client.passports.signers.name}"}),
    ):
        named = {each for each in passport.audience if each.startswith(kind)}
        if named and not named & mine:
            raise passport_errors.not_for_you()
    if any(not each.startswith(("user:", "server:")) for each in passport.audience):
        raise passport_errors.not_for_you()


def _unpack(passport: AnyPassport, passphrase: str | None) -> tuple[PassportPayload, list[list[msgspec.Raw]]]:
    content = packing.read(packing.unpack(passport, passphrase))
    return content, packing.pieces(content.messages)


def _own_memories(content: PassportPayload, passport: AnyPassport, importer: Principal) -> list[bytes]:
    """Move memories from the exporter's namespaces to the importer's, and check them."""
    exporter = passport.exported_by
    mine = namespaces.user_namespace(importer)
    roots = {namespaces.AGENT + exporter.agent_id: namespaces.agent_namespace(importer)}
    if exporter.user is not None:
        roots[namespaces.USER + namespaces.segment(exporter.user)] = mine
    lines: list[bytes] = []
    for raw in content.memories:
        try:
            line = decode_line(raw)
            namespace = line.namespace or mine
            root = namespaces.root_of(namespace)
            renamed = msgspec.structs.replace(line, namespace=roots.get(root, root) + namespace[len(root) :])
            lines.append(check_line(msgspec.json.encode(renamed), mine, importer).raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise passport_errors.invalid(f"a memory in it is invalid: {error}") from None
        except Refusal as refusal:
            raise passport_errors.invalid(f"a memory in it cannot be stored: {refusal.sentence}") from None
    return lines


def _lines_for(memories: list[bytes], session_id: str) -> str:
    return b"\n".join(_for_session(raw, session_id) for raw in memories).decode()


def _for_session(raw: bytes, session_id: str) -> bytes:
    line = decode_line(raw)
    if line.session_id is None:
        return raw
    return msgspec.json.encode(msgspec.structs.replace(line, session_id=session_id))
