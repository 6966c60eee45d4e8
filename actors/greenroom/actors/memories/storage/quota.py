"""Quotas of a key: stored bytes, sessions, namespaces, subscriptions.

A write is charged the bytes of its argument values; names and defaults are free. So an empty session costs
only its purpose. A namespace is charged as its root, unless the root is the agent's own, the user's own, or
has memories already. The keys' actor charges bytes, sessions and namespaces before the write. So after a
failure a count may be too high, but it is never too low. A repeat with the same idempotency key and the same
arguments is charged once. The process that has a connection counts the connection's subscriptions.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.grants import Credential
from greenroom.actors.core.auth.namespaces import agent_namespace, find_imitated, root_of, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, ChargeKey
from greenroom.actors.core.keys.rate_limits import CountLimit
from greenroom.actors.memories.storage.directory import NewRoots
from greenroom.runtime import Idempotency, Refusal, RuntimeClient

FREE: Final = frozenset({"DeleteMemory", "ForgetMemory", "RateMemory", "EndSession"})
"""Writes that are free, because they add nothing."""
_MAKES_ROOTS: Final = frozenset({"StoreMemory", "AddMemory"})
_MAKES_SESSIONS: Final = frozenset({"CreateSession", "StartSession", "RestoreSession"})


class Quota:
    """The quota of one key, in this process."""

    def __init__(self, credential: Credential) -> None:
        limits = credential.grant.limits
        self._key_id = credential.id
        self._limits = limits
        self._is_counted = credential.by_key and any(
            limit is not None for limit in (limits.stored_bytes, limits.sessions, limits.namespaces)
        )
        self.subscriptions = CountLimit(limits.subscriptions)

    def counts(self, request: Any) -> bool:
        """Return whether a write must be charged before it runs."""
        return self._is_counted and type(request).__name__ not in FREE

    async def charge(self, runtime: RuntimeClient, principal: Principal, request: Any, scope: str) -> None:
        """Charge a writing request to the key's quota.

        Raises:
            Refusal: ``QUOTA_EXCEEDED``: the quota is too small; nothing was charged. Also the refusals of
                `charge_roots` and `policy.check_writes_namespace` for a namespace that it may create.
            GreenroomError: as `RuntimeClient.ask`.
        """
        namespace = getattr(request, "namespace", None)
        if namespace is not None and type(request).__name__ in _MAKES_ROOTS:
            policy.check_writes_namespace(principal, namespace)
            await charge_roots(runtime, principal, [root_of(namespace)])
        arguments = msgspec.json.encode(request)
        charge = ChargeKey(
            key_id=self._key_id,
            stored_bytes=given_bytes(request),
            sessions=int(type(request).__name__ in _MAKES_SESSIONS),
        )
        key = getattr(request, "idempotency_key", None)
        once = None
        if key is not None:
            # A request with the same idempotency key but other arguments runs, so it is charged, too.
            which = blake2b(arguments, digest_size=16).hexdigest()
            once = Idempotency(f"{scope} quota {type(request).__name__} {which}", key, b"")
        await _charge(runtime, charge, once)

    async def charge_bytes(self, runtime: RuntimeClient, stored_bytes: int, action: str) -> None:
        """Charge stored bytes, once for each action; raises as `charge`."""
        if self._is_counted:
            charge = ChargeKey(key_id=self._key_id, stored_bytes=stored_bytes)
            await _charge(runtime, charge, Idempotency(action, "bytes", b""))


async def charge_roots(runtime: RuntimeClient, principal: Principal, roots: Collection[str]) -> None:
    """Charge for the new roots among some, all at once; without a key, charge nothing.

    The caller's right to write there must have been checked, since the answer reveals which roots are new.

    Raises:
        Refusal: ``QUOTA_EXCEEDED``: the quota is too small. ``VALIDATION_ERROR``: a new root imitates the
            name of a user or an agent. Nothing was charged.
        GreenroomError: as `RuntimeClient.ask`.
    """
    own = {user_namespace(principal), agent_namespace(principal)}
    if principal.key_id is None or own.issuperset(roots):
        return
    fresh = sorted(await runtime.query(NewRoots(roots=sorted(set(roots) - own))))
    for root in fresh:
        if (reserved := find_imitated(root)) is not None:
            raise auth_errors.imitation(root, reserved)
    if fresh:
        action = blake2b("\0".join(fresh).encode(), digest_size=16).hexdigest()
        charge = ChargeKey(key_id=principal.key_id, namespaces=len(fresh))
        await _charge(runtime, charge, Idempotency(f"{principal.key_id} quota {action}", "namespaces", b""))


def given_bytes(request: msgspec.Struct) -> int:
    """Return the UTF-8 bytes of all argument values that a request may store."""
    total = 0
    for field in msgspec.structs.fields(request):
        value = getattr(request, field.name)
        usual = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if field.name != "idempotency_key" and value != usual:
            total += len(value.encode() if isinstance(value, str) else msgspec.json.encode(value))
    return total


async def _charge(runtime: RuntimeClient, charge: ChargeKey, once: Idempotency | None) -> None:
    try:
        await runtime.ask(KEYS_ADDRESS, charge, idempotency=once)
    except Refusal as refusal:  # the keys' actor does not know the caller, so the denial is audited later
        raise auth_errors.denial(refusal) from None
