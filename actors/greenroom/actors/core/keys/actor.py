"""The actor of a store's API keys: it handles changes of keys, not their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.auth.grants import Grant, KeyRecord, KeyUsage
from greenroom.actors.core.erasure import ERASED, ErasedPart, EraseFrom
from greenroom.runtime import Actor, Address, Context, Message, Refusal, Replay, Slices, handles

KIND: Final = "keys"
KEYS_ADDRESS: Final = Address(KIND, "all")
CHANGED: Final = "greenroom:keys"
"""The topic of every change of keys; this topic is no resource."""

MOST_KEYS: Final = 10_000
KEY_PREFIX: Final = b"k"
_USAGE: Final = b"u"
_MARK: Final = "api keys/mark"
_MARK_BYTES: Final = 8


# -- messages: no tools, no secrets ----------------------------------------------------


class KeepKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Store a new key by its digest; its id must be new."""

    key_id: str
    digest: bytes
    grant: Grant
    lifetime: int


class ReplaceKey(Message[KeyRecord], frozen=True, kw_only=True):
    """Store a key with the grant of another key; the other ends in ``overlap`` microseconds."""

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
    """Answers `ReadKeys`: all keys, oldest first, and the current time of the actor's clock."""

    keys: list[KeyRecord]
    now: int


class ReadKeys(Message[KeysRead], frozen=True, kw_only=True):
    """Read all keys, including ended keys, oldest first."""


class NoteKeyUses(Message[None], frozen=True, kw_only=True):
    """Store the last use of keys."""

    uses: dict[str, int]


class ChargeKey(Message[None], frozen=True, kw_only=True):
    """Charge a key's quota for a request, unless the charge would exceed the quota."""

    key_id: str
    stored_bytes: int = 0
    sessions: int = 0
    namespaces: int = 0


_ended = msgspec.json.Decoder(KeyEnded).decode


# -- the actor --------------------------------------------------------------------------


def key_not_found(key_id: str) -> Refusal:
    """Refuse a key id that does not exist."""
    return Refusal(
        "KEY_NOT_FOUND", f"there is no API key {key_id!r}; list_api_keys shows them", key_id=key_id
    )


def quota_exceeded(what: str, limit: int, used: int, requested: int = 1) -> Refusal:
    """Refuse a request beyond the quota of a key."""
    return Refusal(
        "QUOTA_EXCEEDED",
        f"your key may have {limit:,} {what} and has had {used:,}, and this takes {requested:,} more; "
        "nothing was done; ask the issuer of your key",
        limit=limit,
        used=used,
        asked=requested,
        unit=what,
    )


class KeysActor(Actor):
    """All API keys of a store."""

    kind = KIND

    @handles(KeepKey)
    def keep(self, request: KeepKey, context: Context) -> Slices[KeyRecord]:
        """Store a new key."""
        _check_admin(context)
        known = 0
        for _ in context.scan(msgspec.Raw, prefix=KEY_PREFIX):
            known += 1
            yield
        if known >= MOST_KEYS:
            raise Refusal(
                "QUOTA_EXCEEDED", f"there are {MOST_KEYS:,} API keys, which is the limit", limit=MOST_KEYS
            )
        record = KeyRecord(
            key_id=request.key_id,
            digest=request.digest,
            grant=request.grant,
            created=context.now,
            created_by=None if context.principal is None else context.principal.agent_id,
            expires=context.now + request.lifetime,
            secret=_mark(context),
        )
        _put(context, record)
        audit_record.record(
            context, "create_api_key", None, key=record.key_id, scopes=sorted(record.grant.scopes)
        )
        return record

    @handles(ReplaceKey)
    def replace(self, request: ReplaceKey, context: Context) -> KeyRecord:
        """Store a new key for an old one; the old key stays valid a while."""
        _check_admin(context)
        old = _marked(_find(context, request.replaces), context)
        status = old.status(context.now)
        if status != "active" or old.replaced_by is not None:
            is_what = "replaced already" if status == "active" else status
            why = ", as it was made with another secret of the store" if status == "unusable" else ""
            raise auth_errors.invalid(
                "key_id", f"key_id: the key {old.key_id} is {is_what}{why}; create a new one"
            )
        lifetime = old.expires - old.created if request.lifetime is None else request.lifetime
        fresh = KeyRecord(
            key_id=request.key_id,
            digest=request.digest,
            grant=old.grant,
            created=context.now,
            created_by=None if context.principal is None else context.principal.agent_id,
            expires=context.now + lifetime,
            replaces=old.key_id,
            origin=old.origin or old.key_id,
            secret=_mark(context),
        )
        ends = min(old.expires, context.now + request.overlap)
        _put(context, msgspec.structs.replace(old, expires=ends, replaced_by=fresh.key_id))
        context.record_revocation(KeyEnded(key_id=old.key_id, at=ends, revoked=False), until=old.expires)
        _put(context, fresh)
        audit_record.record(context, "rotate_api_key", None, key=old.key_id, replaced_by=fresh.key_id)
        return fresh

    @handles(RevokeKey)
    def revoke(self, request: RevokeKey, context: Context) -> KeyRecord:
        """Revoke a key, even if the store is full."""
        _check_admin(context)
        record = _find(context, request.key_id)
        if record.revoked is not None:
            return record
        context.use_reserve()
        record = msgspec.structs.replace(record, revoked=context.now)
        _put(context, record)
        ended = KeyEnded(key_id=record.key_id, at=context.now, revoked=True)
        context.record_revocation(ended, until=record.expires)
        audit_record.record(context, "revoke_api_key", None, key=record.key_id)
        return record

    @handles(Replay)
    def end_again(self, replay: Replay, context: Context) -> None:
        """End keys again after an older store was restored; skip unknown keys."""
        context.use_reserve()
        for ended in map(_ended, replay.values):
            record = context.get(KEY_PREFIX + ended.key_id.encode(), KeyRecord)
            if record is None:
                continue
            changed = msgspec.structs.replace(record, expires=min(record.expires, ended.at))
            if ended.revoked:
                changed = msgspec.structs.replace(record, revoked=record.revoked or ended.at)
            if changed != record:
                _put(context, changed)
                audit_record.record(context, "end_api_key_again", None, key=record.key_id)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Revoke a person's keys. Empty records stay, because without any key a server is open."""
        context.use_reserve()
        found = 0
        for key, record in list(context.scan(KeyRecord, prefix=KEY_PREFIX)):
            if request.person.has_grant(record.grant.user, record.grant.agent):
                found += 1
                if not request.dry_run:
                    self._erase(context, record)
            elif not request.dry_run and request.person.has_agent(record.created_by):
                context.put(key, msgspec.structs.replace(record, created_by=None))
            yield
        return ErasedPart(counts={"api_keys": found} if found else {})

    def _erase(self, context: Context, record: KeyRecord) -> None:
        if record.revoked is None:
            ended = KeyEnded(key_id=record.key_id, at=context.now, revoked=True)
            context.record_revocation(ended, until=record.expires)
        emptied = KeyRecord(
            key_id=record.key_id,
            digest=b"",
            grant=Grant(name=ERASED, scopes=frozenset()),
            created=record.created,
            created_by=None,
            expires=record.expires,
            revoked=record.revoked or context.now,
        )
        _put(context, emptied)
        context.delete(_USAGE + record.key_id.encode())

    @handles(ReadKeys)
    def read(self, _: ReadKeys, context: Context) -> Slices[KeysRead]:
        """Return all keys, oldest first; those of another secret are marked."""
        records: list[KeyRecord] = []
        for _key, record in context.scan(KeyRecord, prefix=KEY_PREFIX):
            records.append(_marked(record, context))
            yield
        if context.principal is not None:  # without a principal, a process loads its cache
            audit_record.record_read(context, context.principal, "list_api_keys", None, keys=len(records))
        return KeysRead(keys=sorted(records, key=lambda record: record.created), now=context.now)

    @handles(ChargeKey)
    def charge(self, request: ChargeKey, context: Context) -> None:
        """Charge a key's quota; other credentials have no quota."""
        record = context.get(KEY_PREFIX + request.key_id.encode(), KeyRecord)
        if record is None:
            return
        place = _USAGE + (record.origin or record.key_id).encode()
        used = context.get(place, KeyUsage) or KeyUsage()
        charges = {what: getattr(request, what) for what in KeyUsage.__struct_fields__}
        after = KeyUsage(**{what: getattr(used, what) + charge for what, charge in charges.items()})
        for what, charge in charges.items():
            limit, total = getattr(record.grant.limits, what), getattr(after, what)
            if charge and limit is not None and total > limit:
                raise quota_exceeded(what.replace("_", " "), limit, total - charge, charge)
        context.put(place, after)

    @handles(NoteKeyUses)
    def note(self, request: NoteKeyUses, context: Context) -> None:
        """Store the last use of keys; no change is published."""
        for key_id, used in request.uses.items():
            record = context.get(KEY_PREFIX + key_id.encode(), KeyRecord)
            if record is not None and used > (record.last_used or 0):
                context.put(KEY_PREFIX + key_id.encode(), msgspec.structs.replace(record, last_used=used))


def _mark(context: Context) -> str:
    """Return the public mark of the secret that digests of keys depend on now."""
    return context.derive(_MARK)[:_MARK_BYTES].hex()


def _marked(record: KeyRecord, context: Context) -> KeyRecord:
    """Return a key, marked if it was made with another secret."""
    is_usable = record.secret == _mark(context) if record.secret else context.has_first_secret
    return record if is_usable else msgspec.structs.replace(record, is_usable=False)


def _find(context: Context, key_id: str) -> KeyRecord:
    record = context.get(KEY_PREFIX + key_id.encode(), KeyRecord)
    if record is None:
        raise key_not_found(key_id)
    return record


def _put(context: Context, record: KeyRecord) -> None:
    context.put(KEY_PREFIX + record.key_id.encode(), record)
    context.publish(CHANGED)


def _check_admin(context: Context) -> None:
    """Check for the admin scope; the transports check for it, too."""
    if context.principal is None or not auth_scopes.allows(context.principal.scopes, auth_scopes.ADMIN):
        raise auth_errors.scope_missing("administering API keys", auth_scopes.ADMIN)


LOST: Final = KeyRecord(
    key_id="lost",
    digest=b"",
    grant=Grant(name="keys lost in a repair", scopes=frozenset()),
    created=0,
    created_by=None,
    expires=0,
)
"""Replaces keys that were lost completely: without any key a server would be open."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeyRecord).decode


def revoke_all(records: Mapping[bytes, bytes], *, key: bytes, now: int) -> dict[bytes, bytes]:
    """Revoke every key in the keys' actor after a repair; at least one record remains.

    A later change of a key, such as its revocation, may have been lost.
    """
    mended = dict(records)
    keys = {place: _decode(record) for place, record in records.items() if place.startswith(key)}
    for place, record in (keys or {key + LOST.key_id.encode(): LOST}).items():
        mended[place] = _encode(msgspec.structs.replace(record, revoked=record.revoked or now))
    return mended
