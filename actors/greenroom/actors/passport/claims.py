"""Claims and small passports as short texts, in letters that a QR code packs best, and their QR codes.

    GREENROOM:P1:…  a whole passport, where it is small
    GREENROOM:C1:…  a *claim*, signed: this server has the passport, or the session itself

A claim is redeemed at the server that made it, by whoever has it, as a passport would be.
"""

from __future__ import annotations

import base64
import binascii
import io
from typing import Final, Literal

import msgspec

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.base.zstd import zstd
from greenroom.actors.core.validation import types
from greenroom.actors.sessions.passports.packing import decompressed, frame_size
from greenroom.actors.sessions.passports.signing import SIGNATURE_BYTES, Signers

PASSPORT: Final = "GREENROOM:P1:"
CLAIM: Final = "GREENROOM:C1:"
MOST_QR_TEXT: Final = 4_296
"""What the largest QR code holds of these letters."""
MOST_SMALL_BYTES: Final = 32_768
"""The most that a passport in a text takes once it is unpacked."""
_GROUP: Final = 8


class Claim(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is claimed: a passport that is kept here, or a session.

    Attributes:
        id: The passport's, or the session's.
        expires: In seconds since 1970.
    """

    kind: Literal["passport", "session"]
    id: types.SessionId
    expires: int


def claim_text(claim: Claim, signers: Signers) -> str:
    """Return a claim as text."""
    said = msgspec.json.encode(claim)
    return CLAIM + _encode(signers.sign_claim(said) + said)


def passport_text(document: bytes) -> str | None:
    """Return a passport as text, or None for one that is too large for a QR code."""
    if len(document) > MOST_SMALL_BYTES:
        return None
    text = PASSPORT + _encode(zstd().compress(document, 19))
    return text if len(text) <= MOST_QR_TEXT else None


def is_small(text: str) -> bool:
    """Return whether a text is one of these."""
    return text.strip()[: len(CLAIM)].upper() in {PASSPORT, CLAIM}


def read_small(text: str, signers: Signers) -> bytes | Claim:
    """Return the JSON of the passport, or the claim, that a text stands for.

    Raises:
        Refusal: ``PASSPORT_INVALID``: a claim of another server, or no such text; ``PASSPORT_TOO_LARGE``.
    """
    if len(text) > MOST_QR_TEXT:
        raise passport_errors.too_large(len(text), MOST_QR_TEXT)
    text = text.strip().upper()
    data = _decode(text[len(CLAIM) :])
    if text.startswith(PASSPORT):
        size = frame_size(data)
        if size > MOST_SMALL_BYTES:
            raise passport_errors.too_large(size, MOST_SMALL_BYTES)
        return decompressed(data, size)
    signature, said = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    if not signers.has_signed_claim(said, signature):
        raise passport_errors.unknown_claim()
    return msgspec.json.decode(said, type=Claim)


def _encode(data: bytes) -> str:
    return base64.b32encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        data = base64.b32decode(text + "=" * (-len(text) % _GROUP))
    except (binascii.Error, ValueError):
        raise passport_errors.invalid("its text cannot be read") from None
    if _encode(data) != text:
        raise passport_errors.invalid("its text cannot be read")
    return data


SCALE: Final = 4
"""Pixels of a module; a whole passport has up to 177 of them on a side."""


def png(text: str) -> bytes:
    """Return the QR code of a text of capital letters, digits and ``$%*+-./:``."""
    import segno  # noqa: PLC0415  (only who wants a QR code needs it)

    written = io.BytesIO()
    segno.make(text, error="l", mode="alphanumeric", micro=False).save(written, kind="png", scale=SCALE)
    return written.getvalue()
