"""Signatures of passports: keys, trust list, options of a client.

A server's own key is derived from its store's secret. So all processes on a folder have the same key, and no
backup has it. A server trusts other keys if they are in its trust list. Servers that have a shared secret
trust the signatures made with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from greenroom.actors.core.auth import passport_errors
from greenroom.actors.core.auth.scopes import SESSIONS, allows
from greenroom.actors.sessions.passports.envelope import Signature
from greenroom.actors.sessions.requests.current_session import SessionClient
from greenroom.runtime import RuntimeClient

SIGNING: Final = "greenroom/passport/ed25519"
ED25519: Final = "ed25519:"
KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
LEAST_SECRET: Final = 16
_CONTEXT: Final = b"greenroom passport v1\0"
"""The prefix of signed data, so that no other signature is valid for a passport."""
_CLAIM: Final = b"greenroom claim v1\0"
_NAME_BYTES: Final = 8


class Signers:
    """The keys that a server signs with and trusts.

    Args:
        derive: Derives the store's key for a purpose.
        trusted: Public keys in the form of `Signers.name`.
        shared: A secret shared by servers; if given, passports are signed with it.
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
        """The server's public key, in the form of trust lists."""
        return ED25519 + encode(self._key.public_key().public_bytes_raw())

    @cached_property
    def shared_name(self) -> str | None:
        """The name of the shared secret in signatures."""
        if self._shared is None:
            return None
        digest = hmac.digest(self._shared, b"greenroom passport secret", hashlib.sha256)
        return passport_errors.SHARED + digest[:_NAME_BYTES].hex()

    def sign(self, body: bytes) -> Signature:
        """Sign a body with the shared secret, or else with the server's key."""
        if self._shared is not None:
            assert self.shared_name is not None, "it follows from the secret"
            value = hmac.digest(self._shared, _CONTEXT + body, hashlib.sha256)
            return Signature(algorithm="hmac-sha256", key=self.shared_name, value=encode(value))
        value = self._key.sign(_CONTEXT + body)
        return Signature(algorithm="ed25519", key=self.name, value=encode(value))

    def check(self, body: bytes, signature: Signature) -> None:
        """Check that a trusted signer signed the body.

        Raises:
            Refusal: ``PASSPORT_UNTRUSTED``; for a changed body ``PASSPORT_INVALID``.
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
        """Return whether this server made a checked signature."""
        return signature.key == self.name

    def sign_claim(self, claim: bytes) -> bytes:
        """Sign a claim, which only this server checks."""
        return self._key.sign(_CLAIM + claim)

    def has_signed_claim(self, claim: bytes, signature: bytes) -> bool:
        """Return whether this server signed a claim."""
        return _verifies(self.name, _CLAIM + claim, signature)


def check_signer(name: str) -> str:
    """Return the name of a signer.

    Raises:
        ValueError: it is not a public key.
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
        ValueError: it is not a public key.
    """
    if not name.startswith(ED25519):
        raise ValueError(name)
    key = decode_strictly(name.removeprefix(ED25519))
    if key is None or len(key) != KEY_BYTES:
        raise ValueError(name)
    return key


def encode(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str, size: int) -> bytes:
    """Decode a text of exactly ``size`` bytes.

    Raises:
        Refusal: the text has another encoding or size.
    """
    data = decode_strictly(text)
    if data is None or len(data) != size:
        raise passport_errors.invalid("its signature is malformed")
    return data


def decode_strictly(text: str) -> bytes | None:
    """Decode the output of `encode`; return None for any other text."""
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


class PassportOptions(NamedTuple):
    """The options for signing and trusting passports.

    Attributes:
        trusted: Public keys of trusted servers (`greenroom passport signer` prints them).
        shared: A secret shared by servers, which replaces their own keys for signing.
        base_url: The base URL of this server's HTTP for links to passports; None without HTTP.
    """

    trusted: tuple[str, ...] = ()
    shared: bytes | None = None
    base_url: str | None = None


class ClientPassports:
    """Signs and checks the passports of one client; links need a base URL."""

    def __init__(self, runtime: RuntimeClient, scopes: frozenset[str], options: PassportOptions) -> None:
        self._runtime = runtime
        self._options = options
        self.base_url = options.base_url if allows(scopes, SESSIONS) else None

    @cached_property
    def signers(self) -> Signers:
        """The keys for signing and checking."""
        return Signers(self._runtime.derive, self._options.trusted, self._options.shared)


class PassportClient(SessionClient, Protocol):
    """A client with a current session and passports."""

    passports: ClientPassports
