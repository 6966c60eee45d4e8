"""Claims, small passports and one-time links: short texts, and their QR codes.

    GREENROOM:P1:…  a whole small passport
    GREENROOM:C1:…  a signed *claim* to a passport, or a session, that this server has

Any caller who has a claim can redeem it at the server that issued it, like a passport.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
import secrets
from typing import Final, Literal

import msgspec

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.base.zstd import load_zstd
from greenroom.actors.core.validation import types
from greenroom.actors.sessions.passports import requests
from greenroom.actors.sessions.passports.packing import decompress, frame_size
from greenroom.actors.sessions.passports.signing import SIGNATURE_BYTES, PassportClient, Signers
from greenroom.runtime import RuntimeClient

PASSPORT: Final = "GREENROOM:P1:"
CLAIM: Final = "GREENROOM:C1:"
MOST_QR_TEXT: Final = 4_296
"""The most characters of the largest QR code."""
MOST_SMALL_BYTES: Final = 32_768
"""The most bytes of an unpacked passport in a text."""
_GROUP: Final = 8


class Claim(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A claim to a passport or session here; ``expires`` is in seconds since 1970."""

    kind: Literal["passport", "session"]
    id: types.SessionId
    expires: int


def claim_text(claim: Claim, signers: Signers) -> str:
    """Return a claim as text."""
    body = msgspec.json.encode(claim)
    return CLAIM + _encode(signers.sign_claim(body) + body)


def passport_text(document: bytes) -> str | None:
    """Return a passport as text; None if it is too large for a QR code."""
    if len(document) > MOST_SMALL_BYTES:
        return None
    text = PASSPORT + _encode(load_zstd().compress(document, 19))
    return text if len(text) <= MOST_QR_TEXT else None


def is_small(text: str) -> bool:
    """Return whether a text is a claim or a small passport."""
    return text.strip()[: len(CLAIM)].upper() in {PASSPORT, CLAIM}


def read_small(text: str, signers: Signers) -> bytes | Claim:
    """Return the passport, as JSON, or the claim that a text contains."""
    if len(text) > MOST_QR_TEXT:
        raise passport_errors.too_large(len(text), MOST_QR_TEXT)
    text = text.strip().upper()
    data = _decode(text[len(CLAIM) :])
    if text.startswith(PASSPORT):
        size = frame_size(data)
        if size > MOST_SMALL_BYTES:
            raise passport_errors.too_large(size, MOST_SMALL_BYTES)
        return decompress(data, size)
    signature, body = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    if not signers.has_signed_claim(body, signature):
        raise passport_errors.unknown_claim()
    return msgspec.json.decode(body, type=Claim)


def _encode(data: bytes) -> str:
    return base64.b32encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        data = base64.b32decode(text + "=" * (-len(text) % _GROUP))
    except (binascii.Error, ValueError):
        raise passport_errors.invalid("its text is malformed") from None
    if _encode(data) != text:
        raise passport_errors.invalid("its text is malformed")
    return data


SCALE: Final = 4
"""Pixels of a module; a code has up to 177 modules on a side."""


def qr_png(text: str) -> bytes:
    """Return the QR code of a text of capital letters, digits and ``$%*+-./:``."""
    import segno  # noqa: PLC0415  (only for QR codes)

    written = io.BytesIO()
    segno.make(text, error="l", mode="alphanumeric", micro=False).save(written, kind="png", scale=SCALE)
    return written.getvalue()


ID_BYTES: Final = 16
LINK_PATH: Final = "/passport/"
TOKEN_BYTES: Final = 16
CLAIM_DAYS: Final = 30
_TOKENS: Final = "greenroom/passport/link"


def session_claim(client: PassportClient, session_id: str, now: int) -> str:
    """Return a claim to a session, issued at ``now`` (seconds since 1970)."""
    return claim_text(Claim("session", session_id, now + CLAIM_DAYS * 86_400), client.passports.signers)


async def memory_passport(
    client: PassportClient, session_id: str, now: int, *, qr: bool
) -> requests.MemoryPassport:
    """Return the claim, link and QR code by which the session moves elsewhere."""
    claim = session_claim(client, session_id, now)
    url = expires_at = None
    if client.passports.base_url is None:
        passport_id = id_of_link(client.runtime, claim)
    else:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        passport_id = id_of_link(client.runtime, token)
        keep = requests.KeepLink(session_id=session_id)
        expires_at = await client.ask(requests.passport_address(passport_id), keep)
        url = client.passports.base_url + LINK_PATH + token
    code = base64.b64encode(await run_in_thread(qr_png, claim)).decode() if qr else None
    return requests.MemoryPassport(
        passport_id=passport_id,
        claim=claim,
        export_url=url,
        export_expires_at=expires_at,
        qr_code=None if code is None else f"data:image/png;base64,{code}",
    )


def id_of_link(runtime: RuntimeClient, text: str) -> str:
    """Return the passport id of a link's token, or of a claim.

    The id is a digest with a key of the store. So the store does not contain the text that opens a link, and
    the time that a lookup takes reveals nothing.
    """
    digest = hmac.digest(runtime.derive(_TOKENS), text.encode(), hashlib.sha256)
    return digest[:ID_BYTES].hex()
