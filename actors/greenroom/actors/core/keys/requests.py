"""Messages to the actor of the API keys: no tools, no secrets."""

from __future__ import annotations

import msgspec

from greenroom.actors.core.auth.grants import Grant, KeyRecord
from greenroom.runtime import Message


class KeepKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Store a new key by its digest; its id must be new."""

    key_id: str
    digest: bytes
    grant: Grant
    lifetime: int


class ReplaceKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Store a key with the grant of another one, which ends ``overlap`` microseconds from now."""

    key_id: str
    digest: bytes
    replaces: str
    overlap: int
    lifetime: int | None = None


class RevokeKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Revoke a key; a second time does nothing."""

    key_id: str


class KeyEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end or revocation of a key, which restoring a backup must not undo."""

    key_id: str
    at: int
    revoked: bool


class KeysRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadKeys`: all keys, oldest first, and the time by the actor's clock."""

    keys: list[KeyRecord]
    now: int


class ReadKeys(Message[KeysRead], frozen=True, kw_only=True):
    """Read all keys, ended ones too, oldest first."""


class NoteKeyUses(Message[None], frozen=True, kw_only=True):
    """Store the last use of keys."""

    uses: dict[str, int]


class ChargeKey(Message[None], frozen=True, kw_only=True):
    """Charge a key's quota for a request, unless that exceeds it."""

    key_id: str
    stored_bytes: int = 0
    sessions: int = 0
    namespaces: int = 0
