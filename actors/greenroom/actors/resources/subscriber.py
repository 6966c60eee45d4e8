"""Subscriptions to changes of resources, in the name of a principal."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Self

from greenroom.actors.audit import record as audit_record
from greenroom.actors.audit.actor import tell
from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy, scopes
from greenroom.actors.auth.principal import Principal
from greenroom.actors.keys.actor import quota_exceeded
from greenroom.actors.keys.rate_limits import CountLimit
from greenroom.actors.schemas.resources import check_scheme, parse_uri
from greenroom.runtime import Refusal, RuntimeClient, Subscriber


class ResourceSubscriber:
    """Receives changes of resources, as far as a principal may see them. `Agent.subscriber` makes it.

    Nothing tells a URI of nothing, a forbidden one and one that no resource can have from each other
    here: they simply are never heard of. What is created later is heard of from then on. A URI with another
    scheme than theirs is a mistake, and refused.
    """

    __slots__ = ("_accepts", "_kinds", "_limit", "_principal", "_runtime", "_subscriber")

    def __init__(
        self,
        runtime: RuntimeClient,
        subscriber: Subscriber,
        principal: Principal,
        limit: CountLimit | None = None,
    ) -> None:
        self._runtime = runtime
        self._subscriber = subscriber
        self._principal = principal
        self._accepts = partial(policy.may_hear, principal)
        self._limit = limit
        self._kinds = scopes.resources_of(principal.scopes)

    def __len__(self) -> int:
        return len(self._subscriber)

    def add(self, uri: str) -> None:
        """Subscribe to a resource.

        Raises:
            Refusal: ``VALIDATION_ERROR``: no resource has a URI of this scheme;
                ``PERMISSION_DENIED``: the principal's scopes do not reach resources of this kind;
                ``QUOTA_EXCEEDED``: it hears of as many as it may.
            RuntimeClosedError: the subscriber or the runtime is closed.
        """
        check_scheme(uri)
        address = parse_uri(uri)
        if address is not None:
            if address.kind not in self._kinds:
                raise self._denied(
                    uri, auth_errors.scope_missing("this resource", scopes.RESOURCES[address.kind])
                )
            if self._limit is not None and uri not in self._subscriber and not self._limit.add():
                limit = self._limit.limit or 0
                raise self._denied(uri, quota_exceeded("subscriptions", limit, self._limit.count))
            self._subscriber.add(uri, self._accepts)

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        if self._subscriber.remove(uri) and self._limit is not None:
            self._limit.remove()

    def _denied(self, uri: str, refusal: Refusal) -> Refusal:
        details = {"target": uri[: audit_record.LONGEST], **audit_record.details_of(refusal)}
        tell(self._runtime, "subscribe", principal=self._principal, outcome="denied", **details)
        return refusal

    async def next(self) -> str:
        """Wait for a change and return the resource's URI; one task at a time may wait.

        Raises:
            RuntimeClosedError: the subscriber or the runtime is closed.
        """
        return await self._subscriber.next()

    def close(self) -> None:
        """End all subscriptions; a second time does nothing."""
        if self._limit is not None:
            self._limit.remove(len(self._subscriber))
        self._subscriber.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        return await anext(self._subscriber)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
