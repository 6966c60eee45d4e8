"""Opaque positions in a listing that a client hands back to go on.

A cursor carries check bytes over itself and over the request it belongs to, so a
mangled one, or one from another listing, is refused instead of misread. It is no
secret and grants nothing: what lies behind it goes through the policy again.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import blake2b

from greenroom.actors.auth import errors as auth_errors
from greenroom.runtime import Refusal

CHECK_BYTES = 6
MAX_CHARS = 200


def encode(position: bytes, binding: str) -> str:
    """Return ``position`` as text that is good for the listing named by ``binding`` only."""
    return base64.urlsafe_b64encode(position + _check(position, binding)).rstrip(b"=").decode()


def decode(cursor: str, binding: str) -> bytes:
    """Return the position in a cursor of the same listing.

    Raises:
        Refusal: ``VALIDATION_ERROR``: mangled, made up, or from another listing.
    """
    if len(cursor) > MAX_CHARS:
        raise _invalid()
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _invalid() from None
    position, check = sealed[:-CHECK_BYTES], sealed[-CHECK_BYTES:]
    # Encoding again catches the spare bits of the last character.
    if check != _check(position, binding) or encode(position, binding) != cursor:
        raise _invalid()
    return position


def _check(position: bytes, binding: str) -> bytes:
    told_apart = len(position).to_bytes(2) + position + binding.encode()
    return blake2b(told_apart, digest_size=CHECK_BYTES, person=b"greenroom cursor").digest()


def _invalid() -> Refusal:
    return auth_errors.invalid(
        "cursor",
        "cursor: it is not one that this listing gave with these arguments; start again without a cursor",
    )
