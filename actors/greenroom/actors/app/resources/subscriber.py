"""Subscriptions to changes of resources, in the name of a principal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self

from greenroom.actors.app.resources.kinds import ResourceReader, check_scheme, find_kind, scope_kind
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy, scopes
from greenroom.actors.core.keys.actor import quota_exceeded
from greenroom.actors.core.keys.rate_limits import CountLimit
from greenroom.runtime import Refusal, RuntimeClient, RuntimeClosedError, Subscriber


class ResourceSubscriber:
    """Receives changes of resources that a principal may see. `Agent.subscriber` makes it.

    Missing, forbidden and impossible resources look alike: their changes are never reported. A resource that
    is created later is reported from then on. A URI with an unknown scheme is refused as a mistake.
    """

    __slots__ = (
        "_accepts",
        "_kinds",
        "_limit",
        "_reader",
        "_runtime",
        "_subscriber",
        "_topics",
        "_uris",
        "_waiting",
    )

    def __init__(
        self,
        runtime: RuntimeClient,
        subscriber: Subscriber,
        reader: Callable[[], ResourceReader],
        limit: CountLimit | None = None,
    ) -> None:
        principal = reader().principal
        self._runtime = runtime
        self._subscriber = subscriber
        self._reader = reader
        self._accepts = partial(policy.may_hear, principal)
        self._limit = limit
        self._kinds = scopes.resources_of(principal.scopes)
        self._topics: dict[str, tuple[str, ...]] = {}
        self._uris: dict[str, tuple[str, ...]] = {}
        self._waiting: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._topics)

    def add(self, uri: str) -> None:
        """Subscribe to a resource.

        Raises:
            Refusal: ``VALIDATION_ERROR``: no resource has a URI of this scheme; ``PERMISSION_DENIED``: the
                principal's scopes do not open this kind; ``QUOTA_EXCEEDED``: too many subscriptions.
            RuntimeClosedError: The subscriber or the runtime is closed.
        """
        check_scheme(uri)
        kind = scope_kind(uri)
        if kind is not None and kind not in self._kinds:
            raise self._denied(uri, auth_errors.scope_missing("this resource", scopes.RESOURCES[kind]))
        if find_kind(uri) is not None:
            if self._limit is not None and uri not in self._topics and not self._limit.add():
                limit = self._limit.limit or 0
                raise self._denied(uri, quota_exceeded("subscriptions", limit, self._limit.count))
            self._join(uri)

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        if uri in self._topics:
            self._leave(uri)
            if self._limit is not None:
                self._limit.remove()

    def _join(self, uri: str) -> None:
        """Subscribe to the current topics of the URI, and leave earlier topics."""
        found = find_kind(uri)
        assert found is not None, "it has been found before"
        kind, named = found
        topics = kind.topics(named, self._reader())
        before = self._topics.get(uri, ())
        self._topics[uri] = topics
        for topic in topics:
            if topic not in before:
                self._uris[topic] = (*self._uris.get(topic, ()), uri)
                self._subscriber.add(topic, self._accepts)
        self._part(uri, set(before) - set(topics))

    def _leave(self, uri: str) -> None:
        self._part(uri, self._topics.pop(uri))
        if uri in self._waiting:
            self._waiting.remove(uri)

    def _part(self, uri: str, topics: Iterable[str]) -> None:
        for topic in topics:
            others = tuple(each for each in self._uris[topic] if each != uri)
            if others:
                self._uris[topic] = others
            else:
                del self._uris[topic]
                self._subscriber.remove(topic)

    def _denied(self, uri: str, refusal: Refusal) -> Refusal:
        details = {"target": uri[: audit_record.LONGEST], **audit_record.details_of(refusal)}
        record_action(
            self._runtime, "subscribe", principal=self._reader().principal, outcome="denied", **details
        )
        return refusal

    async def wait_heard(self) -> None:
        """Wait until no later change of the resources is missed."""
        await self._subscriber.wait_heard()

    async def next(self) -> str:
        """Wait for a change and return the resource's URI; only one task may wait.

        Raises:
            RuntimeClosedError: The subscriber or the runtime is closed.
        """
        while not self._waiting:
            for uri in self._uris.get(await self._subscriber.next(), ()):
                self._waiting.append(uri)
                self._join(uri)  # the URI may mean another resource now, such as another current session
                await self._subscriber.wait_heard()
        return self._waiting.popleft()

    def close(self) -> None:
        """End all subscriptions; idempotent."""
        if self._limit is not None:
            self._limit.remove(len(self._topics))
        self._topics.clear()
        self._uris.clear()
        self._waiting.clear()
        self._subscriber.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        try:
            return await self.next()
        except RuntimeClosedError:
            raise StopAsyncIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
