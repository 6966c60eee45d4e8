"""One-time links: whoever has one gets a session's passport without a key, as its maker would export it then.

What is random in a link is its token alone. The passport's id is a digest of that under a key of the store,
so the store does not hold what opens it, and looking a token up compares nothing that time could tell.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.audit.actor import tell
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.orchestrations.client_session import ClientSessionState, PassportOptions
from greenroom.actors.passport.claims import Claim, claim_text, png
from greenroom.actors.sessions.passports import requests
from greenroom.actors.sessions.passports.export import ID_BYTES, ExportSession, Made, collected
from greenroom.runtime import Refusal, RuntimeClient

LINK_PATH: Final = "/passport/"
TOKEN_BYTES: Final = 16
CLAIM_DAYS: Final = 30
DEED: Final = "open_passport_link"
"""What the audit log calls it."""
_TOKENS: Final = "greenroom/passport/link"


class OpenedLink(NamedTuple):
    """What a link gives: the passport of a session, as text."""

    session_id: str
    text: str


def session_claim(client: ClientSessionState, session_id: str, now: int) -> str:
    """Return a claim to a session, made at a time in seconds since 1970."""
    return claim_text(Claim("session", session_id, now + CLAIM_DAYS * 86_400), client.signers)


async def memory_passport(
    client: ClientSessionState, session_id: str, now: int, *, qr: bool
) -> requests.MemoryPassport:
    """Return how a session that a client works in can be taken elsewhere."""
    claim = session_claim(client, session_id, now)
    url = expires_at = None
    if client.base_url is None:
        passport_id = _passport_id(client.runtime, claim)
    else:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        passport_id = _passport_id(client.runtime, token)
        keep = requests.KeepLink(session_id=session_id)
        expires_at = await client.ask(requests.passport_address(passport_id), keep)
        url = client.base_url + LINK_PATH + token
    code = base64.b64encode(await run_in_thread(png, claim)).decode() if qr else None
    return requests.MemoryPassport(
        passport_id=passport_id,
        claim=claim,
        export_url=url,
        export_expires_at=expires_at,
        qr_code=None if code is None else f"data:image/png;base64,{code}",
    )


async def open_link(
    runtime: RuntimeClient,
    token: str,
    address: str | None,
    *,
    options: PassportOptions,
    is_valid: Callable[[str | None], bool],
    on_export: Callable[[int], None] = lambda _: None,
) -> OpenedLink | None:
    """Use a link up, and return what it gives; None, whichever the reason, where it gives nothing.

    It is used up last, when what it gives is there: where that fails, the link can be opened again.

    Args:
        runtime: Where the actors are.
        token: What stands in the link.
        address: Where who opens it comes from.
        options: How passports are signed.
        is_valid: Returns whether the key that a link was made by still opens this server.
        on_export: Called with the bytes of what a link gives.
    """
    passport_id = _passport_id(runtime, token)
    place = requests.passport_address(passport_id)
    found = await runtime.ask(place, requests.FindLink())
    if found.maker is None:
        tell(runtime, DEED, outcome="denied", address=address)
        return None
    maker = msgspec.structs.replace(found.maker, address=address)
    if not is_valid(maker.key_id):
        tell(runtime, DEED, principal=maker, outcome="denied", session=found.session_id)
        return None
    client = ClientSessionState(runtime, maker, options=options)
    outcome, characters = "failed", 0
    try:
        made = await _exported(client, found.session_id, passport_id)
        if made is None:
            return None
        if not await runtime.ask(place, requests.TakeLink()):  # somebody else was first, or it has expired
            outcome = "denied"
            return None
        outcome, characters = "done", len(made.text)
    finally:
        tell(
            runtime,
            DEED,
            principal=maker,
            outcome=outcome,
            session=found.session_id,
            passport_id=passport_id,
            characters=characters,
        )
    on_export(made.size)
    return OpenedLink(found.session_id, made.text)


async def _exported(client: ClientSessionState, session_id: str, passport_id: str) -> Made | None:
    exporting = ExportSession(session_id=session_id)
    try:
        head, content = await collected(client, session_id, None, exporting.include_memories)
        return await run_in_thread(exporting.made, client, head, content, passport_id)
    except Refusal:  # the session is gone, or has grown too large
        return None


def _passport_id(runtime: RuntimeClient, text: str) -> str:
    """Return the id that follows from a link's token, or from a claim."""
    digest = hmac.digest(runtime.derive(_TOKENS), text.encode(), hashlib.sha256)
    return digest[:ID_BYTES].hex()
