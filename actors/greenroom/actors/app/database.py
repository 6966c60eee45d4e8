"""A folder of sessions and memories for a program, with or without an event loop.

The runtime runs on trio in a thread of its own; anyio's portal carries calls, cancellations and errors. So
Ctrl-C, which Python raises in the main thread, never interrupts a handler.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from types import MethodType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    TypeVarTuple,
    Unpack,
    cast,
    overload,
)
from weakref import WeakSet

import trio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from anyio.lowlevel import checkpoint

from greenroom.actors.app.hosting import RuntimeHost
from greenroom.actors.app.open import open_checked
from greenroom.actors.app.options import CheckedOptions, GreenroomOptions, check_greenroom_options
from greenroom.actors.app.services.memory import MemoryService
from greenroom.actors.app.services.search import MemoryMatch
from greenroom.actors.app.services.session import SessionService
from greenroom.actors.app.services.short_forms import StoredMemory, find_texts, store_text
from greenroom.actors.core.presence.heartbeat import send_program_heartbeats
from greenroom.runtime import (
    Address,
    Message,
    OverloadedError,
    OwnershipLostError,
    Procedure,
    RuntimeClient,
    RuntimeClosedError,
    SharedRuntime,
    StoreIdleError,
    StoreOwnedError,
)
from greenroom.runtime.sharing.lock_or_attach import May

P = ParamSpec("P")
R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")

REOPEN_SECONDS: Final = 30.0
"""Seconds to wait for the folder after it was taken from this process."""
SILENT_SECONDS: Final = 5.0
"""Seconds that a call waits meanwhile; then it is refused, and may be repeated later."""
RETRY_SECONDS: Final = 0.01


class _EitherWay(Generic[P, R]):
    """A method that is awaited; in a plain ``with`` block, it returns its result instead.

    If the database is not open, the call itself raises, because its result might never be awaited.
    """

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, instance: BlockingDatabase, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Database, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(self, instance: Database | None, owner: type) -> Callable[..., Any]:
        if instance is None:
            return self._function
        method = MethodType(self._function, instance)

        @wraps(method)
        def call(*arguments: P.args, **options: P.kwargs) -> R | Coroutine[Any, Any, R]:
            if instance.is_blocking:
                result: R = instance.call(partial(method, *arguments, **options))
                return result
            instance._open_keeper()  # noqa: SLF001  (a closed database raises at the call)
            awaited: Coroutine[Any, Any, R] = method(*arguments, **options)
            return awaited

        return call


class Database(RuntimeHost):
    """Sessions and memories in a folder, for a program with or without an event loop.

    In a plain ``with`` block `remember` and `search` return their results; in an ``async with`` block, on
    asyncio or trio, they are awaited. All other requests go through `sessions`, `memory`, other services or
    an `Agent`; these are awaited, or run by `call`.

    Its runtime has a thread of its own, and can be called from any thread and event loop. It ends at `close`
    or with its block; otherwise with the event loop that opened it, or the program. A forked process must
    open a database of its own.

    A call that is cancelled is also cancelled in the runtime: what has begun is done whole or not at all.

    Args:
        options: See `GreenroomOptions`.

    Attributes:
        sessions: Its sessions, for the agent ``app``. For another agent, make a `SessionService` with the
            database as its runtime.
        memory: Its memories, also for ``app``; for others, make a `MemoryService`.

    Raises:
        TypeError: An option is unknown or of a wrong type, or two options set the same thing.
        ValueError: A value is not allowed.
    """

    def __init__(self, path: str | Path, **options: Unpack[GreenroomOptions]) -> None:
        self._path = path
        self._options = check_greenroom_options("Database", options)
        self._keeper: _Keeper | None = None
        self._life: AbstractAsyncContextManager[None] | None = None
        self._blocking = ExitStack()
        self.is_blocking = False
        self.sessions = SessionService(self)
        self.memory = MemoryService(self)

    async def initialize(self) -> None:
        """Open the folder; if cancelled, close it again.

        Raises:
            RuntimeError: It is open already.
            ValueError: A language does not exist.
            EmbedderError, StoreError: As `open_greenroom`.
        """
        self._life = self._new_keeper().running()
        await self._life.__aenter__()

    async def close(self) -> None:
        """Answer pending calls, accept no further calls, and close the folder; idempotent.

        If cancelled, it only waits for the commit in flight.

        Raises:
            StoreError: A commit had failed permanently, and this ended the runtime.
        """
        life, self._life = self._life, None
        if life is not None:
            await life.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __enter__(self) -> BlockingDatabase:
        _check_may_block()
        self._blocking.enter_context(self._new_keeper().blocking())
        atexit.register(self._blocking.close)  # runs before the thread's own exit handlers
        self._blocking.callback(atexit.unregister, self._blocking.close)
        self.is_blocking = True
        return cast("BlockingDatabase", self)

    def __exit__(self, *exception: object) -> None:
        self.is_blocking = False
        self._blocking.close()

    @_EitherWay
    async def remember(
        self,
        content: str,
        *,
        user: str | None = None,
        project: str | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
    ) -> StoredMemory:
        """Store a text for a user, a project, or this program; durable on return.

        Args:
            content: The text, up to 1 MB.
            user: Only searches for this user, and agents of this user, find it.
            project: The project that shares it. With ``user``, the memory is this user's own in it.
            key: The key of the memory; an existing key gets a new version.
            tags: Labels by which searches can filter.

        Raises:
            ServiceError: An argument breaks a rule; a ``ValueError``, and nothing was stored.
            RuntimeClosedError: The database is not open; raised without being awaited.
        """
        return await store_text(self, content, user, project, key, tags)

    @_EitherWay
    async def search(
        self,
        query: str,
        *,
        user: str | None = None,
        project: str | None = None,
        tags: Sequence[str] = (),
        limit: int = 10,
    ) -> list[MemoryMatch]:
        """Search stored texts of a user, a project, or this program; best first.

        `SearchService` also searches by time, and everything that a principal may see.

        Args:
            query: A question, or some words.
            user: The user, including their memories in any project.
            project: The project; with ``user``, that user's own memories in it.
            tags: Only memories with any of these labels.
            limit: The most results, 1-100.

        Raises:
            ServiceError, RuntimeClosedError: As `remember`.
        """
        return await find_texts(self, query, user, project, tags, limit)

    def call(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function in the runtime's thread, and wait: ``database.call(store.get, "key")``.

        For threads without an event loop.

        Raises:
            RuntimeError: Trio runs in this thread.
            RuntimeClosedError: The database is not open, or was closed before the function returned.
        """
        _check_may_block()
        keeper = self._open_keeper()
        with self._closing(keeper):
            scope = trio.CancelScope()

            async def cancellable() -> R:
                with scope:
                    return await function(*arguments)
                raise AssertionError("a cancelled call has no waiter")

            try:
                return keeper.portal.call(cancellable)
            except BaseException:  # also Ctrl-C, which may come before the call has begun there
                keeper.run_soon(scope.cancel)
                raise

    async def call_async(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function on trio in the runtime's thread, and await it.

        Cancelling this call cancels the function and waits for its end; a shield must be in the function.
        """
        return await self.with_runtime(lambda _: function(*arguments))

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Return an actor's reply, as `RuntimeClient.ask` does."""
        return await self.with_runtime(lambda runtime: runtime.ask(address, message, principal=principal))

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Return the answer of a query, as `RuntimeClient.query` does."""
        return await self.with_runtime(lambda runtime: runtime.query(query, principal=principal))

    async def with_runtime(self, function: Callable[[RuntimeClient], Awaitable[R]]) -> R:
        """Run an async function of the open runtime in its thread, as `call_async` does."""
        keeper = self._open_keeper()
        await checkpoint()  # a cancelled caller begins nothing
        if keeper.thread == threading.get_ident():
            return await keeper.ask(function)
        with self._closing(keeper):
            return await keeper.portal.call_async(keeper.ask, function)

    def post_to_runtime(self, function: Callable[[RuntimeClient], object]) -> None:
        """Schedule a function of the open runtime, if any, and return at once."""
        keeper = self._keeper
        if keeper is not None and keeper.is_open:
            keeper.run_soon(partial(function, keeper.runtime))

    def _new_keeper(self) -> _Keeper:
        if self._keeper is not None and not self._keeper.has_ended:
            raise RuntimeError(f"the database {self._path} is open already")
        self._keeper = _Keeper(self._path, self._options)
        return self._keeper

    def _open_keeper(self) -> _Keeper:
        keeper = self._keeper
        if keeper is None or not keeper.is_open:
            if keeper is not None and keeper.is_parents:
                raise RuntimeClosedError(
                    f"the database {self._path} is open in the parent of this forked process; open it "
                    "here with a block of its own"
                )
            why = None if keeper is None else keeper.failure
            raise RuntimeClosedError(
                f"the database {self._path} is not open: use it in a `with` or `async with` block, or await "
                "initialize()"
            ) from why
        return keeper

    @contextmanager
    def _closing(self, keeper: _Keeper) -> Iterator[None]:
        """Raise a clear error if the portal ends during a call."""
        try:
            yield
        except (RuntimeError, CancelledError) as error:
            if keeper.is_open:
                raise
            raise RuntimeClosedError(
                f"the database {self._path} closed before the reply; check whether the call took effect"
            ) from error


class BlockingDatabase(Database):
    """The type of a database in a plain ``with`` block: `remember` and `search` return results.

    For type checkers only; the object is a `Database`.
    """


def _check_may_block() -> None:
    """Check that this thread may wait for a database's thread."""
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("this would stop trio, which runs in this thread: use `async with`, and await")


class _Keeper:
    """Keeps a runtime open in a thread of its own.

    The runtime is a system task, which ends with the thread's loop in every case. If the runtime loses the
    folder, another runtime is opened: attached to the new owner, or as the owner.

    Attributes:
        token: The trio token of the thread, for functions to run soon.
        has_ended: Whether the thread has ended.
        is_parents: Whether the thread belongs to the parent of this forked process.
    """

    _every: ClassVar[WeakSet[_Keeper]] = WeakSet()

    portal: BlockingPortal
    token: trio.lowlevel.TrioToken
    runtime: SharedRuntime

    def __init__(self, path: str | Path, options: CheckedOptions) -> None:
        self._path = Path(path)
        self._options = options
        self._place: os.stat_result | None = None
        self._scope = trio.CancelScope()
        self._settled = trio.Event()
        self._renewed = trio.Event()
        self._leaving = trio.Event()
        self._ended = trio.Event()
        self.failure: Exception | None = None
        self.thread = 0
        self.is_open = False
        self.has_ended = False
        self.is_parents = False
        self._every.add(self)

    @classmethod
    def leave_to_parent(cls) -> None:
        """Release every runtime in a forked child, because the thread stayed with the parent.

        Waiting for it would never end.
        """
        for keeper in cls._every:
            if not keeper.has_ended:
                keeper.is_open, keeper.has_ended, keeper.is_parents = False, True, True
                keeper.portal.start_task_soon = _refuse_in_child  # type: ignore[method-assign]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the runtime open while the block runs.

        An ending event loop closes its generators, also this one. If a program prevents that, the thread
        ends at the program's exit.
        """
        try:
            with self._started():
                async with AsyncExitStack() as life:
                    # `start_blocking_portal` cannot do its own clean-up in a thread where trio runs.
                    life.push_async_callback(self._in_thread, self.portal.stop)
                    life.push_async_callback(self._in_thread, self._close)
                    await self.portal.call_async(self._open)
                    yield
        finally:
            self.has_ended = True

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """Keep the runtime open while the block runs, in a thread without an event loop."""
        try:
            with self._started(), ExitStack() as life:
                life.callback(self._close_blocking)
                self.portal.call(self._open)
                yield
        finally:
            self.has_ended = True

    @contextmanager
    def _started(self) -> Iterator[None]:
        with ExitStack() as thread:
            self.portal = thread.enter_context(start_blocking_portal("trio", name="greenroom"))
            atexit.register(thread.close)
            thread.callback(atexit.unregister, thread.close)
            yield

    def run_soon(self, function: Callable[[], object]) -> None:
        """Schedule a function in the thread, unless the thread has ended."""
        with suppress(trio.RunFinishedError):
            self.token.run_sync_soon(function)

    async def _in_thread(self, function: Callable[[], Awaitable[None]]) -> None:
        if not self.is_parents:
            await self.portal.call_async(function)

    def _close_blocking(self) -> None:
        if not self.is_parents:
            self.portal.call(self._close)

    async def _open(self) -> None:
        self.thread = threading.get_ident()
        self.token = trio.lowlevel.current_trio_token()
        trio.lowlevel.spawn_system_task(self._run, name="greenroom")
        await self._settled.wait()
        if self.failure is not None:
            raise self.failure

    async def _close(self) -> None:
        self._leaving.set()
        if not self._settled.is_set():
            self._scope.cancel()
        try:
            await self._ended.wait()
        except trio.Cancelled:
            self._scope.cancel()
            with trio.CancelScope(shield=True):
                await self._ended.wait()
            raise
        if self.failure is not None:
            raise self.failure

    async def _run(self) -> None:
        try:
            with self._scope:
                lost = await self._serve(self._options)
                while lost is not None:
                    lost = await self._serve_again(lost)
        except Exception as error:  # noqa: BLE001  `_open` or `_close` raises it: no caller awaits a system task
            self.failure = error
        finally:
            self.is_open = False
            self._settled.set()
            self._renewed.set()
            self._ended.set()

    async def _serve(self, options: CheckedOptions) -> OwnershipLostError | None:
        """Keep a runtime open until it ends; return the error if it lost the folder."""
        try:
            async with open_checked(self._path, options) as self.runtime, trio.open_nursery() as nursery:
                nursery.start_soon(send_program_heartbeats, self.runtime)
                if self._place is None:
                    self._place = self._path.stat()
                self.is_open = True
                self._settled.set()
                self._renewed.set()
                self._renewed = trio.Event()
                await self._leaving.wait()
                nursery.cancel_scope.cancel()
        except OwnershipLostError as lost:
            if not self._leaving.is_set():
                return lost
            raise
        return None

    async def _serve_again(self, lost: OwnershipLostError) -> OwnershipLostError | None:
        """Reopen the same folder if it is back in time; otherwise raise ``lost``."""
        may: May = "attach" if self._options.may == "attach" else "own"
        deadline = trio.current_time() + REOPEN_SECONDS
        while not self._leaving.is_set() and trio.current_time() < deadline:
            with suppress(FileNotFoundError, NotADirectoryError, StoreOwnedError, StoreIdleError):
                if self._place is not None and os.path.samestat(self._path.stat(), self._place):
                    return await self._serve(replace(self._options, may=may))
            await trio.sleep(RETRY_SECONDS)
        raise lost

    async def ask(self, function: Callable[[RuntimeClient], Awaitable[R]]) -> R:
        """Call a function with the runtime in its thread; wait while it is reopened.

        Raises:
            OverloadedError: Reopening takes too long; nothing was done.
        """
        with trio.move_on_after(SILENT_SECONDS):
            while self.is_open and not self.runtime.is_sound:
                await self._renewed.wait()
        if self.is_open and not self.runtime.is_sound:
            raise OverloadedError.of(
                f"{self._path} was taken from this process, which reopens it; repeat later", 1_000
            )
        return await function(self.runtime)


def _refuse_in_child(*_: object, **__: object) -> Any:
    """Refuse calls to a thread that a forked child lacks, so that anyio gives up."""
    raise RuntimeError("the thread of the database stayed with the parent")


os.register_at_fork(after_in_child=_Keeper.leave_to_parent)
