"""A runtime that another thread keeps open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from greenroom.runtime import RuntimeClient

R = TypeVar("R")
T = TypeVar("T")


class RuntimeHost(ABC):
    """Keeps a runtime open in its own thread and may reopen it: a `Database`."""

    @abstractmethod
    async def with_runtime(self, function: Callable[[RuntimeClient], Awaitable[R]]) -> R:
        """Run an async function of the runtime in its thread, and await the result."""

    @abstractmethod
    def post_to_runtime(self, function: Callable[[RuntimeClient], object]) -> None:
        """Schedule a function in the thread of the runtime; without an open runtime do nothing."""


class Hosted(Generic[T]):
    """Something that works in a runtime, for callers in other threads.

    The object belongs to one runtime: it is made again when the host has opened another runtime.

    Args:
        make: Makes the object; called in the thread of the runtime.
    """

    def __init__(self, host: RuntimeHost, make: Callable[[RuntimeClient], T]) -> None:
        self._host = host
        self._make = make
        self._made: tuple[RuntimeClient, T] | None = None

    async def call(self, function: Callable[[T], Awaitable[R]]) -> R:
        """Run an async function of the object in the runtime's thread, and await it."""
        return await self._host.with_runtime(lambda runtime: function(self._made_of(runtime)))

    def post(self, function: Callable[[T], object]) -> None:
        """Schedule a call in the runtime's thread, if the object is in use there."""

        def call(runtime: RuntimeClient) -> None:
            if self._made is not None and self._made[0] is runtime:
                function(self._made[1])

        self._host.post_to_runtime(call)

    def _made_of(self, runtime: RuntimeClient) -> T:
        if self._made is None or self._made[0] is not runtime:
            self._made = runtime, self._make(runtime)
        return self._made[1]
