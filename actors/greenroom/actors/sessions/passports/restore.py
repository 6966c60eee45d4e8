"""Restoring a session: taken up where it is, or made of a passport that was checked in every respect.

The order is: signature, time, audience, then what is inside. Before the first write everything was read
that could be refused: by this server, which takes the messages to itself, or by whoever reads them. Messages
and memories are staged, where nobody sees them; the one commit that makes the session decides about the
memories, too, which then follow whatever happens. Who is interrupted restores again: the same agent goes on
with the same attempt until it is done, and is answered the same session for a day after it began.

On the server that exported it, a passport stands for the session itself: who may write that gets it, unless
it is older than what is in the passport.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import passport_errors, policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import SECOND, to_datetime
from greenroom.actors.memories.requests.import_lines import check_line, decode_line
from greenroom.actors.memories.requests.transfer import NOT_STAGING, ReleaseImport
from greenroom.actors.memories.transfer.import_run import Importer, ImportRefusedError
from greenroom.actors.memories.transfer.normalize import SourceError
from greenroom.actors.memories.transfer.sources import source_of_text
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.orchestrations.taking_up import SESSION_DIGITS, answer_of, quoted, resumed, said_in
from greenroom.actors.passport import claims
from greenroom.actors.sessions.passports import envelope, packing, requests
from greenroom.actors.sessions.passports.envelope import AnyPassport
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.passports.requests import SessionRestored
from greenroom.actors.sessions.requests import payloads
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.storage.records import CLOSED
from greenroom.runtime import Address, Idempotency, Refusal

MEMORIES: Final = "memory:write"


class RestoreSession(
    ClientOrchestration[SessionRestored], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Take up a session: one that is here, or the one in a passport."""

    session_id: (
        Annotated[travel.SessionHere, Meta(description="one that is here; or give a passport")] | None
    ) = None
    passport: Annotated[
        requests.PassportText | None, Meta(description="as text or object, or a claim (GREENROOM:C1:…)")
    ] = None
    tool_id: travel.ToolId | None = None
    passphrase: requests.GivenPassphrase | None = None
    project_id: Annotated[
        types.ProjectId | None, Meta(description="where the passport's session goes instead")
    ] = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, client: ClientSessionState) -> SessionRestored:
        """Restore it, and work in it from now on.

        Raises:
            Refusal: ``SESSION_NOT_FOUND``, or what is wrong with the passport; nothing was restored.
        """
        if (self.session_id is None) == (self.passport is None):
            raise auth_errors.invalid("passport", "passport: give a session_id or a passport")
        tool = client.tool_of(self.tool_id)
        if self.session_id is not None:
            restored = await resumed(client, self.session_id, tool, self._once(client, self.session_id))
        else:
            assert self.passport is not None, "one of them is given"
            try:
                restored = await self._from_passport(client, self.passport, tool)
            except Refusal as refusal:
                if refusal.code in passport_errors.CODES:
                    client.tell(requests.REFUSALS, requests.NoteRefusal(code=refusal.code))
                raise
        client.join(restored.session_id, restored.project_id)
        return restored

    async def _from_passport(
        self, client: ClientSessionState, given: bytes | str | dict[str, Any], tool: str
    ) -> SessionRestored:
        if isinstance(given, dict) and isinstance(given.get("claim"), str):
            given = given["claim"]  # the whole of what `StartSession` calls a memory passport
        if isinstance(given, str) and claims.is_small(given):
            small = claims.read_small(given, client.signers)
            if isinstance(small, bytes):
                given = small
            elif small.kind == "session":
                await self._check_claim(client, small)
                return await resumed(client, small.id, tool, self._once(client, small.id))
            else:
                given = await self._claimed(client, small)
        checked = await Checked.of(client, given, self.passphrase, is_over=self._is_over)
        return await self._redeemed(client, checked, tool)

    def _once(self, client: ClientSessionState, what: str) -> Idempotency | None:
        """Return what marks a repeat of the restoring of a passport, or of a session that is here."""
        asked = (what, self.tool_id, self.project_id)
        return client.idempotency("restore_session", self.idempotency_key, asked)

    def _is_over(self, expires: datetime, standing: requests.Standing) -> bool:
        """Return whether its time is over for this request, as far as it may be no repeat."""
        is_repeat = standing.own is not None and not standing.own.is_late
        return self.idempotency_key is None and not is_repeat and expires <= standing.now

    async def _check_claim(self, client: ClientSessionState, claim: claims.Claim) -> requests.Standing:
        address = requests.passport_address(claim.id)
        asked = requests.AskStanding(text=claim.kind == "passport")
        standing = await client.ask(address, asked)
        expires = to_datetime(claim.expires * SECOND)
        if expires <= standing.now if claim.kind == "session" else self._is_over(expires, standing):
            raise passport_errors.expired(envelope.instant(expires))
        return standing

    async def _claimed(self, client: ClientSessionState, claim: claims.Claim) -> str:
        standing = await self._check_claim(client, claim)
        if standing.text is None:
            raise passport_errors.unknown_claim()
        return standing.text

    async def _redeemed(self, client: ClientSessionState, checked: Checked, tool: str) -> SessionRestored:
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
                    await answer_of(client, earlier, tool, redemption.session_id), earlier
                )
            else:
                restored = await self._taken_up(client, checked, tool)
            await self._settle(client, checked, attempt, redemption.session_id, here=True)
            return msgspec.structs.replace(restored, memories=len(checked.memories))
        await client.charge_bytes(checked.passport.content.size, attempt)
        making = checked.making(client, attempt, tool, project_id)
        try:
            made = await self._made(client, redemption.session_id, checked, making)
        except Refusal as refusal:
            if refusal.code != "KEY_EXISTS":
                raise
            # Somebody else made a session of this id in the meantime.
            made = await self._made(client, redemption.session_id, checked, making)
        session_id = made.read.session_id
        if made.importing is not None and earlier is None:
            await checked.importer(client).written(made.importing)
        await self._settle(client, checked, attempt, session_id)
        restored = SessionRestored(
            notice=f"Restored {quoted(made.read.purpose)}{said_in(client, made.read, made.restored_at)}.",
            briefing=await client.briefing_of(made.read),
            talk=client.talk_of(made.read),
            session_id=session_id,
            project_id=made.read.project_id,
            context=client.context_of(made.read),
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
        self, client: ClientSessionState, checked: Checked, redemption: requests.Redemption
    ) -> travel.ContextRead | None:
        """Return the session that a one-time passport has become before; None where it has not.

        Raises:
            Refusal: ``PASSPORT_REDEEMED``: that session is gone, or a repeat comes too late.
        """
        if not checked.passport.one_time:
            return None
        own = checked.standing.own or redemption  # by an idempotency key a redemption is as it was at first
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
                Address("session", session_id), travel.GetSessionContext(session_id=session_id)
            )
        except Refusal as refusal:
            if refusal.code != "SESSION_NOT_FOUND":
                raise
            raise gone from None
        return read if own.done or read.status in CLOSED else None

    async def _is_here(self, client: ClientSessionState, checked: Checked) -> bool:
        """Return whether the session itself is here, the caller's to write, and not an older one."""
        elsewhere = self.project_id not in {None, checked.payload.session.project_id}
        if elsewhere or not client.signers.is_own(checked.passport.signature):
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

    async def _taken_up(self, client: ClientSessionState, checked: Checked, tool: str) -> SessionRestored:
        """Return the session itself; the memories come in as they would with a copy."""
        session_id = checked.passport.session_id
        asked = (checked.passport.passport_id, self.tool_id, self.project_id)
        once = None  # the attempt at a one-time passport is repeated until it is done
        if not checked.passport.one_time:
            once = client.idempotency("restore_session here", self.idempotency_key, asked)
        memories = await checked.stage_memories(client, session_id)
        try:
            restored = await resumed(client, session_id, tool, once, memories)
        except Refusal as refusal:
            if not checked.passport.one_time or memories is None or refusal.code != "PASSPORT_INVALID":
                raise
            # Who restores it at the same time has brought these memories in, and a third began anew.
            memories = None
            restored = await resumed(client, session_id, tool)
        if memories is not None:
            await checked.importer(client).written(memories.staging)
        return restored

    async def _settle(
        self,
        client: ClientSessionState,
        checked: Checked,
        attempt: str,
        session_id: str,
        *,
        here: bool = False,
    ) -> None:
        """Have it noted that the attempt is done."""
        done = requests.SettleRedemption(
            attempt=attempt,
            session_id=session_id,
            one_time=checked.passport.one_time,
            expires_at=checked.passport.expires_at,
            here=here,
        )
        await client.ask(checked.address, done)

    async def _made(
        self, client: ClientSessionState, session_id: str, checked: Checked, making: payloads.MakeRestored
    ) -> payloads.Restored:
        """Return the session that was made of a passport; the same attempt again makes no other."""
        session_id, place = await self._place(client, session_id, making.attempt)
        address = Address("session", session_id)
        if place != "made":
            for number, lines in enumerate(checked.pieces):
                staged = payloads.StageMessages(attempt=making.attempt, number=number, lines=lines)
                await client.ask(address, staged)
            memories = await checked.stage_memories(client, session_id)
            making = msgspec.structs.replace(making, memories=memories)
        return await client.ask(address, making)

    async def _place(self, client: ClientSessionState, session_id: str, attempt: str) -> tuple[str, str]:
        """Return the id under which the attempt may make its session, and whether it has ``made`` it.

        That is this id, or one of the attempt's own.
        """
        digest = blake2b(f"{session_id} {attempt}".encode(), digest_size=SESSION_DIGITS).hexdigest()
        asked = payloads.FindAttempt(attempt=attempt)
        for place in (session_id, f"session_{digest}"):
            if place in policy.RESERVED_SESSION_IDS:
                continue
            found = await client.ask(Address("session", place), asked)
            if found != "taken":
                return place, found
        return f"session_{digest}", "free"


class Checked:
    """A passport that may become a session here.

    Attributes:
        passport: The document.
        payload: What is inside.
        pieces: The messages, as they are staged.
        memories: Lines for the importer's namespaces.
        standing: How it stood here when it was checked.
    """

    def __init__(
        self,
        passport: AnyPassport,
        payload: PassportPayload,
        pieces: list[list[msgspec.Raw]],
        memories: list[bytes],
        standing: requests.Standing,
    ) -> None:
        self.passport = passport
        self.payload = payload
        self.pieces = pieces
        self.memories = memories
        self.standing = standing

    @property
    def address(self) -> Address:
        """The passport's actor."""
        return requests.passport_address(self.passport.passport_id)

    @classmethod
    async def of(
        cls,
        client: ClientSessionState,
        given: bytes | str | dict[str, Any],
        passphrase: str | None,
        *,
        is_over: Callable[[datetime, requests.Standing], bool],
    ) -> Checked:
        """Check everything that can be checked without writing.

        Raises:
            Refusal: what is wrong with it.
        """
        passport, body = await run_in_thread(envelope.read, given)
        await run_in_thread(client.signers.check, body, passport.signature)
        address = requests.passport_address(passport.passport_id)
        standing = await client.ask(address, requests.AskStanding())
        if not passport.one_time:
            standing = msgspec.structs.replace(standing, own=None)
        if is_over(passport.expires_at, standing):
            raise passport_errors.expired(envelope.instant(passport.expires_at))
        _check_audience(passport, client)
        whole, pieces = await run_in_thread(_unpacked, passport, passphrase)
        if whole.memories:
            client.check_scope("a passport with memories", MEMORIES)
        memories = await run_in_thread(_own_memories, whole, passport, client.principal)
        return cls(passport, whole, pieces, memories, standing)

    @property
    def newest_id(self) -> int:
        """Of its newest message; 0 for none."""
        return packing.id_of(self.payload.messages[-1]) if self.payload.messages else 0

    def making(
        self, client: ClientSessionState, attempt: str, tool: str, project_id: str | None
    ) -> payloads.MakeRestored:
        """Return the request that makes the session of what is staged."""
        return payloads.MakeRestored(
            attempt=attempt,
            pieces=len(self.pieces),
            session=self.payload.session,
            context=self.payload.context,
            migrations=self.payload.migrations,
            tool=tool,
            project_id=project_id,
            server=None if client.signers.is_own(self.passport.signature) else self.passport.signature.key,
        )

    def project_for(self, client: ClientSessionState, wanted: str | None) -> str | None:
        """Return the project that the session goes to.

        Raises:
            Refusal: ``PERMISSION_DENIED``: the caller is no member of it.
        """
        project_id = wanted or self.payload.session.project_id
        if not policy.may_see_session(client.principal, project_id):
            raise auth_errors.permission_denied(
                "project_id",
                f"project_id: the session is of the project {project_id!r}, and you are no member of it; say "
                "which of yours it is to go to",
            )
        return project_id

    async def stage_memories(self, client: ClientSessionState, session_id: str) -> ReleaseImport | None:
        """Stage the memories; return what the session tells when it decides about them."""
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
            return None  # another attempt at the same import has decided it meanwhile

    def importer(self, client: ClientSessionState, text: str = "") -> Importer:
        """Return what imports these lines."""
        return Importer(client.runtime, client.principal, source_of_text(text), on_conflict="skip")


def _with_status(restored: SessionRestored, earlier: travel.ContextRead | None) -> SessionRestored:
    """Return the answer to a repeat, which says if the session has ended since."""
    if earlier is None or earlier.status not in CLOSED:
        return restored
    ended = f"{restored.notice} It is {earlier.status} since: it takes nothing more."
    return msgspec.structs.replace(restored, notice=ended)


def _check_audience(passport: AnyPassport, client: ClientSessionState) -> None:
    """Check that the passport is for this server and this user; of a kind that is not named, anyone is."""
    for kind, mine in (
        ("user:", {f"user:{client.principal.user}"} if client.principal.user is not None else set()),
        ("server:", {f"server:{client.signers.name}"}),
    ):
        named = {each for each in passport.audience if each.startswith(kind)}
        if named and not named & mine:
            raise passport_errors.not_for_you()
    if any(not each.startswith(("user:", "server:")) for each in passport.audience):
        raise passport_errors.not_for_you()


def _unpacked(
    passport: AnyPassport, passphrase: str | None
) -> tuple[PassportPayload, list[list[msgspec.Raw]]]:
    """Return what is inside, and its messages as they are staged."""
    content = packing.read(packing.unpack(passport, passphrase))
    return content, packing.pieces(content.messages)


def _own_memories(content: PassportPayload, passport: AnyPassport, importer: Principal) -> list[bytes]:
    """Return the memories in the importer's namespaces instead of the exporter's, each fit to be kept."""
    exporter = passport.exported_by
    mine = names.user_namespace(importer)
    roots = {names.AGENT + exporter.agent_id: names.agent_namespace(importer)}
    if exporter.user is not None:
        roots[names.USER + names.segment(exporter.user)] = mine
    lines: list[bytes] = []
    for raw in content.memories:
        try:
            line = decode_line(raw)
            namespace = line.namespace or mine
            root = names.root_of(namespace)
            renamed = msgspec.structs.replace(line, namespace=roots.get(root, root) + namespace[len(root) :])
            lines.append(check_line(msgspec.json.encode(renamed), mine, importer).raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise passport_errors.invalid(f"a memory in it is none: {error}") from None
        except Refusal as refusal:
            raise passport_errors.invalid(f"a memory in it cannot be kept: {refusal.sentence}") from None
    return lines


def _lines_for(memories: list[bytes], session_id: str) -> str:
    return b"\n".join(_for_session(raw, session_id) for raw in memories).decode()


def _for_session(raw: bytes, session_id: str) -> bytes:
    line = decode_line(raw)
    if line.session_id is None:
        return raw
    return msgspec.json.encode(msgspec.structs.replace(line, session_id=session_id))
