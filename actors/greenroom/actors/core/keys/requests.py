"""Messages to the actor of the API keys. No tool sends them; none of them has a secret in it."""

from __future__ import annotations

import msgspec

from greenroom.actors.core.auth.grants import Grant, KeyRecord
from greenroom.runtime import Message


class KeepKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Keep a new key, of which only the digest is sent; a key of that id must not exist."""

    key_id: str
    digest: bytes
    grant: Grant
    lifetime: int


class ReplaceKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Keep a new key with the grant of another one, which ends ``overlap`` microseconds from now."""

    key_id: str
    digest: bytes
    replaces: str
    overlap: int
    lifetime: int | None = None


class RevokeKey(Message[KeyRecord], frozen=True, kw_only=True):
    """End a key, now and for ever; a second time does nothing."""

    key_id: str


class KeyEnded(msgspec.Struct, frozen=True, kw_only=True):
    """That a key ends at a time, or was revoked then: what no restored backup brings back."""

    key_id: str
    at: int
    revoked: bool


class KeysRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadKeys`: all keys, oldest first, and the time by the actor's clock."""

    keys: list[KeyRecord]
    now: int


class ReadKeys(Message[KeysRead], frozen=True, kw_only=True):
    """Read all keys, oldest first; those that ended, too."""


class NoteKeyUses(Message[None], frozen=True, kw_only=True):
    """Take note of when keys were used last."""

    uses: dict[str, int]


class ChargeKey(Message[None], frozen=True, kw_only=True):
    """Count what the holder of a key is about to have, unless that would be too much."""

    key_id: str
    stored_bytes: int = 0
    sessions: int = 0
    namespaces: int = 0
