"""The actor of all API keys of a store; it is asked when a key changes, not when one is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.auth.grants import Grant, KeyRecord, KeyUsage
from greenroom.actors.core.auth.person import ERASED
from greenroom.actors.core.keys import requests
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.runtime import Actor, Address, Context, Refusal, Replay, Slices, handles

KIND: Final = "keys"
KEYS_ADDRESS: Final = Address(KIND, "all")
CHANGED: Final = "greenroom:keys"
"""The topic that tells of every change, under which no resource can be heard of."""

MOST_KEYS: Final = 10_000
KEY_PREFIX: Final = b"k"
_USAGE: Final = b"u"
_ended = msgspec.json.Decoder(requests.KeyEnded).decode


def key_not_found(key_id: str) -> Refusal:
    """There is no such key."""
    return Refusal(
        "KEY_NOT_FOUND", f"there is no API key {key_id!r}; list_api_keys shows them", key_id=key_id
    )


def quota_exceeded(what: str, limit: int, used: int, asked: int = 1) -> Refusal:
    """The key's holder may not have so much more."""
    return Refusal(
        "QUOTA_EXCEEDED",
        f"your key may have {limit:,} {what} and has had {used:,}, and this takes {asked:,} more; "
        "nothing was done; ask whoever gave you your key",
        limit=limit,
        used=used,
        asked=asked,
        unit=what,
    )


class KeysActor(Actor):
    """All API keys of a store."""

    kind = KIND

    @handles(requests.KeepKey)
    def keep(self, request: requests.KeepKey, context: Context) -> Slices[KeyRecord]:
        """Keep a new key."""
        _check_admin(context)
        known = 0
        for _ in context.scan(msgspec.Raw, prefix=KEY_PREFIX):
            known += 1
            if context.should_yield():
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
        )
        _put(context, record)
        audit_record.record(
            context, "create_api_key", None, key=record.key_id, scopes=sorted(record.grant.scopes)
        )
        return record

    @handles(requests.ReplaceKey)
    def replace(self, request: requests.ReplaceKey, context: Context) -> KeyRecord:
        """Keep a new key for an old one, which goes on for a while."""
        _check_admin(context)
        old = _find(context, request.replaces)
        status = old.status(context.now)
        if status != "active" or old.replaced_by is not None:
            is_what = "replaced already" if status == "active" else status
            raise auth_errors.invalid(
                "key_id", f"key_id: the key {old.key_id} is {is_what}; create a new one"
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
        )
        ends = min(old.expires, context.now + request.overlap)
        _put(context, msgspec.structs.replace(old, expires=ends, replaced_by=fresh.key_id))
        context.record_revocation(
            requests.KeyEnded(key_id=old.key_id, at=ends, revoked=False), until=old.expires
        )
        _put(context, fresh)
        audit_record.record(context, "rotate_api_key", None, key=old.key_id, replaced_by=fresh.key_id)
        return fresh

    @handles(requests.RevokeKey)
    def revoke(self, request: requests.RevokeKey, context: Context) -> KeyRecord:
        """End a key; also when the store is full."""
        _check_admin(context)
        record = _find(context, request.key_id)
        if record.revoked is not None:
            return record
        context.use_reserve()
        record = msgspec.structs.replace(record, revoked=context.now)
        _put(context, record)
        ended = requests.KeyEnded(key_id=record.key_id, at=context.now, revoked=True)
        context.record_revocation(ended, until=record.expires)
        audit_record.record(context, "revoke_api_key", None, key=record.key_id)
        return record

    @handles(Replay)
    def end_again(self, told: Replay, context: Context) -> None:
        """End what had ended when an older store was brought back; keys that are not in it need nothing."""
        context.use_reserve()
        for ended in map(_ended, told.values):
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
        """End a person's keys; of each stays that there was one: without any a server lets everybody in."""
        context.use_reserve()
        found = 0
        for key, record in list(context.scan(KeyRecord, prefix=KEY_PREFIX)):
            if request.person.has_grant(record.grant.user, record.grant.agent):
                found += 1
                if not request.dry_run:
                    self._erase(context, record)
            elif not request.dry_run and request.person.has_agent(record.created_by):
                context.put(key, msgspec.structs.replace(record, created_by=None))
            if context.should_yield():
                yield
        return ErasedPart(counts={"api_keys": found} if found else {})

    def _erase(self, context: Context, record: KeyRecord) -> None:
        if record.revoked is None:
            ended = requests.KeyEnded(key_id=record.key_id, at=context.now, revoked=True)
            context.record_revocation(ended, until=record.expires)
        nobodys = KeyRecord(
            key_id=record.key_id,
            digest=b"",
            grant=Grant(name=ERASED, scopes=frozenset()),
            created=record.created,
            created_by=None,
            expires=record.expires,
            revoked=record.revoked or context.now,
        )
        _put(context, nobodys)
        context.delete(_USAGE + record.key_id.encode())

    @handles(requests.ReadKeys)
    def read(self, _: requests.ReadKeys, context: Context) -> Slices[requests.KeysRead]:
        """Answer all keys, oldest first."""
        records: list[KeyRecord] = []
        for _key, record in context.scan(KeyRecord, prefix=KEY_PREFIX):
            records.append(record)
            if context.should_yield():
                yield
        if context.principal is not None:  # else a process that lets people in reads them
            audit_record.record_read(context, context.principal, "list_api_keys", None, keys=len(records))
        return requests.KeysRead(keys=sorted(records, key=lambda record: record.created), now=context.now)

    @handles(requests.ChargeKey)
    def charge(self, request: requests.ChargeKey, context: Context) -> None:
        """Charge a key's quota. Who comes with another credential than a key of this store has none."""
        record = context.get(KEY_PREFIX + request.key_id.encode(), KeyRecord)
        if record is None:
            return
        place = _USAGE + (record.origin or record.key_id).encode()
        used = context.get(place, KeyUsage) or KeyUsage()
        asked_for = {what: getattr(request, what) for what in KeyUsage.__struct_fields__}
        after = KeyUsage(**{what: getattr(used, what) + asked for what, asked in asked_for.items()})
        for what, asked in asked_for.items():
            limit, total = getattr(record.grant.limits, what), getattr(after, what)
            if asked and limit is not None and total > limit:
                raise quota_exceeded(what.replace("_", " "), limit, total - asked, asked)
        context.put(place, after)

    @handles(requests.NoteKeyUses)
    def note(self, request: requests.NoteKeyUses, context: Context) -> None:
        """Write down when keys were used last; no reply is waited for, and no change is published."""
        for key_id, used in request.uses.items():
            record = context.get(KEY_PREFIX + key_id.encode(), KeyRecord)
            if record is not None and used > (record.last_used or 0):
                context.put(KEY_PREFIX + key_id.encode(), msgspec.structs.replace(record, last_used=used))


def _find(context: Context, key_id: str) -> KeyRecord:
    record = context.get(KEY_PREFIX + key_id.encode(), KeyRecord)
    if record is None:
        raise key_not_found(key_id)
    return record


def _put(context: Context, record: KeyRecord) -> None:
    context.put(KEY_PREFIX + record.key_id.encode(), record)
    context.publish(CHANGED)


def _check_admin(context: Context) -> None:
    """Refuse a principal without the admin scope; the transports do so, too."""
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
"""Stands for keys of which nothing is left: without any key a server would let everybody in."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeyRecord).decode


def revoked(records: Mapping[bytes, bytes], *, key: bytes, now: int) -> dict[bytes, bytes]:
    """Revoke every key in the records of the keys' actor, which may lack some; at least one is there then.

    Nobody can say of a key that is still there what else was to be known of it.

    Args:
        records: Those that are sound.
        key: What the keys of the keys' own records begin with.
        now: The time in microseconds since 1970.
    """
    mended = dict(records)
    keys = {place: _decode(record) for place, record in records.items() if place.startswith(key)}
    for place, record in (keys or {key + LOST.key_id.encode(): LOST}).items():
        mended[place] = _encode(msgspec.structs.replace(record, revoked=record.revoked or now))
    return mended
