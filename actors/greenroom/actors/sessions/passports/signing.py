"""Who signs passports, and whose signatures count.

A server's own key follows from its store's secret, so every process on a folder signs alike and no backup
holds it. Others' keys count when they are in the trust list; a shared secret counts for those who have it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.sessions.passports.envelope import Signature

SIGNING: Final = "greenroom/passport/ed25519"
ED25519: Final = "ed25519:"
KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
LEAST_SECRET: Final = 16
_CONTEXT: Final = b"greenroom passport v1\0"
"""Before what is signed, so that no signature for anything else is one for a passport."""
_CLAIM: Final = b"greenroom claim v1\0"
_NAME_BYTES: Final = 8


class Signers:
    """What a server signs with and what it trusts.

    Args:
        derive: Returns the store's key for a purpose.
        trusted: Public keys as `Signers.name` shows them.
        shared: A secret that servers share; given, passports are signed with it.
    """

    def __init__(
        self, derive: Callable[[str], bytes], trusted: Iterable[str] = (), shared: bytes | None = None
    ) -> None:
        self._derive = derive
        self._trusted = frozenset(trusted)
        self._shared = shared

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  (30 ms, when needed)

        return ed25519.Ed25519PrivateKey.from_private_bytes(self._derive(SIGNING))

    @cached_property
    def name(self) -> str:
        """The server's public key, as others put it into their trust list."""
        return ED25519 + encode(self._key.public_key().public_bytes_raw())

    @cached_property
    def shared_name(self) -> str | None:
        """What the shared secret is called in signatures."""
        if self._shared is None:
            return None
        digest = hmac.digest(self._shared, b"greenroom passport secret", hashlib.sha256)
        return passport_errors.SHARED + digest[:_NAME_BYTES].hex()

    def sign(self, body: bytes) -> Signature:
        """Return the signature of a body: by the shared secret where there is one, else by our own key."""
        if self._shared is not None:
            assert self.shared_name is not None, "it follows from the secret"
            value = hmac.digest(self._shared, _CONTEXT + body, hashlib.sha256)
            return Signature(algorithm="hmac-sha256", key=self.shared_name, value=encode(value))
        value = self._key.sign(_CONTEXT + body)
        return Signature(algorithm="ed25519", key=self.name, value=encode(value))

    def check(self, body: bytes, signature: Signature) -> None:
        """Check that a trusted signer signed the body.

        Raises:
            Refusal: ``PASSPORT_UNTRUSTED`` or, for a body that is not the one signed, ``PASSPORT_INVALID``.
        """
        if signature.algorithm == "hmac-sha256":
            if self._shared is None or signature.key != self.shared_name:
                raise passport_errors.untrusted(signature.key)
            expected = hmac.digest(self._shared, _CONTEXT + body, hashlib.sha256)
            fits = hmac.compare_digest(expected, decode(signature.value, len(expected)))
        else:
            if signature.key != self.name and signature.key not in self._trusted:
                raise passport_errors.untrusted(signature.key)
            fits = _verifies(signature.key, _CONTEXT + body, decode(signature.value, SIGNATURE_BYTES))
        if not fits:
            raise passport_errors.invalid("it was changed after it was signed")

    def is_own(self, signature: Signature) -> bool:
        """Return whether this server made a signature that was checked."""
        return signature.key == self.name

    def sign_claim(self, claim: bytes) -> bytes:
        """Return the signature of a claim, which only this server checks."""
        return self._key.sign(_CLAIM + claim)

    def has_signed_claim(self, claim: bytes, signature: bytes) -> bool:
        """Return whether this server signed a claim."""
        return _verifies(self.name, _CLAIM + claim, signature)


def check_signer(name: str) -> str:
    """Return the name of a signer.

    Raises:
        ValueError: it is no public key.
    """
    try:
        public_key(name)
    except ValueError:
        raise ValueError(
            "a signer's public key is allowed, which is ed25519: and 43 characters, as "
            "`greenroom passport signer` prints it on the server that signs"
        ) from None
    return name


def public_key(name: str) -> bytes:
    """Return the bytes of a signer's public key.

    Raises:
        ValueError: it is none.
    """
    if not name.startswith(ED25519):
        raise ValueError(name)
    key = strictly_decoded(name.removeprefix(ED25519))
    if key is None or len(key) != KEY_BYTES:
        raise ValueError(name)
    return key


def encode(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str, size: int) -> bytes:
    """Return the bytes of a text that has exactly one spelling.

    Raises:
        Refusal: it is another one, or of another size.
    """
    data = strictly_decoded(text)
    if data is None or len(data) != size:
        raise passport_errors.invalid("its signature is not written as one")
    return data


def strictly_decoded(text: str) -> bytes | None:
    """Return the bytes that `encode` writes so, or None for any other text."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if encode(data) == text else None


def _verifies(name: str, message: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  (as in `_key`)
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(public_key(name))
        key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
