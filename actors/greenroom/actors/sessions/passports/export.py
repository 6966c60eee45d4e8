"""Export of a session: collect, pack, sign and store it."""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.auth.namespaces import agent_namespace, memory_address, root_of
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import ExportPage, MemoryLine
from greenroom.actors.sessions.passports import envelope, packing, requests
from greenroom.actors.sessions.passports.claims import ID_BYTES, Claim, claim_text, passport_text, qr_png
from greenroom.actors.sessions.passports.packing import PassportPayload
from greenroom.actors.sessions.passports.requests import SessionExported
from greenroom.actors.sessions.passports.signing import PassportClient
from greenroom.actors.sessions.requests import payloads, session_context
from greenroom.actors.sessions.summary.briefing import MOST_BYTES
from greenroom.runtime import Address, Procedure

MEMORIES: Final = "memory:read"
WEEK: Final = 604_800
PIECE_CHARACTERS: Final = 524_288
INLINE_BYTES: Final = 16_384 + MOST_BYTES
"""The reply includes a passport only up to this size, since a model pays for each character."""

_line = msgspec.json.Decoder(MemoryLine).decode


@operation(
    "export_session",
    scope="sessions:read",
    tool=ToolText(
        title="Export session",
        description="Write the session into a signed passport that another server restores; "
        "private memory only with include_memories. At this server: migrate_session.",
        weight=1,
    ),
    after_notes=True,
    keeps=True,
)
class ExportSession(Procedure[SessionExported], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Export the visible part of a session into a signed passport."""

    runs = "here"

    session_id: types.OrCurrent | None = None
    include_memories: Annotated[
        bool, Meta(description="also memories stored in it and your own values for it")
    ] = False
    passphrase: requests.Passphrase | None = None
    expires_in: requests.ValidFor = WEEK
    one_time: Annotated[bool, Meta(description="a server takes it once")] = False
    audience: requests.Audience = msgspec.field(default_factory=list)
    to_tool: (
        Annotated[
            session_context.ToolName,
            Meta(description="noted; any tool may redeem it"),
        ]
        | None
    ) = None
    qr: Annotated[bool, Meta(description="also a QR code: image and qr_png")] = False

    async def run(self, client: PassportClient) -> SessionExported:
        """Collect, pack, sign and store it."""
        if self.include_memories:
            client.check_scope("include_memories", MEMORIES)
        session_id = client.session.resolve(self.session_id)
        head, content = await collect(client, session_id, self.to_tool, self.include_memories)
        passport_id = secrets.token_hex(ID_BYTES)
        made = await run_in_thread(self.pack, client, head, content, passport_id)
        await client.charge_bytes(made.size, made.passport_id)
        claim = Claim("passport", made.passport_id, int(made.expires_at.timestamp()))
        address = requests.passport_address(made.passport_id)
        starts = range(0, len(made.text), PIECE_CHARACTERS)
        for number, start in enumerate(starts):
            piece = made.text[start : start + PIECE_CHARACTERS]
            kept = requests.KeepPassport(
                number=number,
                text=piece,
                expires_at=made.expires_at,
                session_id=session_id,
                memories=len(content.memories),
                size=len(made.text),
                is_last=number == len(starts) - 1,
                signer=made.signer,
                one_time=self.one_time,
                encrypted=self.passphrase is not None,
            )
            await client.ask(address, kept)
        client.on_export(made.size)
        return SessionExported(
            passport_id=made.passport_id,
            session_id=session_id,
            uri=requests.passport_uri(made.passport_id),
            claim=claim_text(claim, client.passports.signers),
            signer=made.signer,
            exported_at=head.at,
            expires_at=made.expires_at,
            one_time=self.one_time,
            encrypted=self.passphrase is not None,
            size_bytes=made.size,
            messages=len(content.messages),
            memories=len(content.memories),
            passport=msgspec.Raw(made.text.encode()) if made.size <= INLINE_BYTES else UNSET,
            qr=made.qr,
            qr_png=made.png,
        )

    def pack(
        self,
        client: PassportClient,
        head: payloads.PayloadHead,
        content: PassportPayload,
        passport_id: str,
    ) -> SignedPassport:
        """Return the passport; run it in a thread, since packing is slow."""
        expires_at = head.at.replace(microsecond=0) + timedelta(seconds=self.expires_in)
        body = self._body(client, head, passport_id, expires_at, content)
        signature = client.passports.signers.sign(envelope.canonical(body))
        document = envelope.write(body, signature)
        qr = png = None
        if self.qr:
            text = passport_text(document)
            qr = "claim" if text is None else "passport"
            if text is None:
                text = claim_text(
                    Claim("passport", passport_id, int(expires_at.timestamp())), client.passports.signers
                )
            png = base64.b64encode(qr_png(text)).decode()
            document = envelope.write(body, signature, png)
        return SignedPassport(
            passport_id, expires_at, document.decode(), len(document), signature.key, qr, png
        )

    def _body(
        self,
        client: PassportClient,
        head: payloads.PayloadHead,
        passport_id: str,
        expires_at: datetime,
        content: PassportPayload,
    ) -> dict[str, Any]:
        session = head.session
        packed = packing.pack(packing.write(content), passport_id, self.passphrase)
        tool = session.tool or client.tool
        is_open = self.passphrase is None  # plain members would reveal encrypted content
        body = {
            "greenroom_passport": envelope.VERSION,
            "version": envelope.VERSION,
            "passport_id": passport_id,
            "session_id": session.session_id,
            "exported_at": head.at,
            "exported_by": envelope.Exporter(
                tool=tool,
                agent_id=client.principal.agent_id,
                agent_type=client.principal.agent_type,
                user=client.principal.user,
            ),
            "exported_by_tool": tool,
            "expires_at": expires_at,
            "one_time": self.one_time,
            "audience": self.audience,
            "project_id": session.project_id if is_open else None,
            "workspace_path": session.workspace_path if is_open else None,
            "context": head.context if is_open else None,
            "metadata": _metadata(head, content) if is_open else {},
            "content": packed.content,
            "compressed_context": packed.data,
            "compression_ratio": packed.ratio,
        }
        plain: dict[str, Any] = msgspec.to_builtins(body)
        return plain


def _metadata(head: payloads.PayloadHead, content: PassportPayload) -> dict[str, Any]:
    session, messages = content.session, content.messages
    last = max(session.updated_at, packing.time_of(messages[-1])) if messages else session.updated_at
    return {
        "purpose": session.purpose,
        "briefing": head.briefing,
        "messages": len(messages),
        "total_files_accessed": len(content.context.files_accessed),
        "total_searches": len(content.context.recent_searches),
        "session_duration_hours": round((last - session.created_at) / timedelta(hours=1), 2),
    }


class SignedPassport(NamedTuple):
    """A signed passport; ``size`` is in bytes, the document includes the QR code."""

    passport_id: str
    expires_at: datetime
    text: str
    size: int
    signer: str
    qr: str | None
    png: str | None


async def collect(
    client: PassportClient,
    session_id: str,
    to_tool: str | None,
    include_memories: bool,  # noqa: FBT001
) -> tuple[payloads.PayloadHead, PassportPayload]:
    """Collect everything that the exporter may see, as of one moment."""
    address = Address("session", session_id)
    head = await client.ask(address, payloads.ExportHead(to_tool=to_tool))
    messages: list[msgspec.Raw] = []
    size = 0
    after: int | None = 0
    if head.messages > packing.MOST_MESSAGES:
        raise passport_errors.too_many(head.messages, packing.MOST_MESSAGES)
    while after is not None and head.newest_id:
        request = payloads.ExportMessages(after_id=after, up_to_id=head.newest_id)
        page = await client.ask(address, request)
        messages += page.lines
        after = page.last_id
        size += sum(len(memoryview(line)) for line in page.lines)
        if size > envelope.MAX_CONTENT_BYTES:
            raise passport_errors.too_large(size, envelope.MAX_CONTENT_BYTES)
    memories = await _memories(client, session_id, head.context) if include_memories else []
    return head, PassportPayload(
        session=head.session,
        context=head.context,
        migrations=head.migrations,
        messages=messages,
        memories=memories,
    )


async def _memories(
    client: PassportClient, session_id: str, context: session_context.SessionContext
) -> list[msgspec.Raw]:
    """Return the memories stored in the session, and the agent's private memories for it."""
    own = agent_namespace(client.principal)
    lines = await _page_through(client, own, MemoryFilters(session_id=session_id, superseded=True))
    wanted = {(use.namespace, use.key) for use in context.memories}
    for root in sorted({root_of(namespace) for namespace, _ in wanted}):
        for raw in await _page_through(client, root, None):
            line = _line(raw)
            if line.session_id is None and (line.namespace, line.key) in wanted:
                lines.append(raw)
    return lines


async def _page_through(
    client: PassportClient, namespace: str, filters: MemoryFilters | None
) -> list[msgspec.Raw]:
    lines: list[msgspec.Raw] = []
    start: int | None = 0
    while start is not None:
        request = ExportPage(namespace=namespace, filters=filters, start=start)
        page = await client.ask(memory_address(namespace), request)
        lines += page.lines
        start = page.next
    return lines
