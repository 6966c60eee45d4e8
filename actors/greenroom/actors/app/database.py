"""A folder of sessions and memories for a program, with an event loop or without.

The runtime runs on trio, here in a thread of its own; anyio's portal carries calls, cancellations and errors
across. So a handler is never interrupted by Ctrl-C, which Python raises in the main thread.
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
from functools import partial, wraps
from pathlib import Path
from types import MethodType
from typing import (
    Any,
    ClassVar,
    Concatenate,
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
from greenroom.actors.app.options import GreenroomOptions, check_greenroom_options
from greenroom.actors.app.services.memory import MemoryService
from greenroom.actors.app.services.search import MemoryMatch
from greenroom.actors.app.services.session import SessionService
from greenroom.actors.app.services.short_forms import StoredMemory, find_texts, store_text
from greenroom.actors.core.presence.heartbeat import tell_of_program
from greenroom.runtime import (
    Address,
    Message,
    Procedure,
    Query,
    RuntimeClient,
    RuntimeClosedError,
    SharedRuntime,
)

P = ParamSpec("P")
R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")


class _EitherWay(Generic[P, R]):
    """A method that is awaited; in a plain ``with`` block it waits by itself and returns the result.

    Where nothing is open the call raises: what it would return might be awaited by nobody.
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
            instance._open_keeper()  # noqa: SLF001  (what is not open says so at the call)
            awaited: Coroutine[Any, Any, R] = method(*arguments, **options)
            return awaited

        return call


class Database(RuntimeHost):
    """Sessions and memories in a folder, for a program with or without an event loop.

    In a plain ``with`` block `remember` and `search` return their results, in an ``async with`` block, on
    asyncio or on trio, they are awaited. Everything else is asked through `sessions`, `memory`, other
    services or an `Agent`, which are awaited, or waited for by `call`.

    Its runtime has a thread of its own, and is called from any thread and event loop. It ends by `close` or
    with its block; failing that, with the event loop that opened it, or with the program. A process that is
    forked opens a database of its own. A program on trio that wants the runtime in its own loop takes
    `open_greenroom`.

    A call that is cancelled, by ``asyncio.timeout`` or otherwise, is cancelled in the runtime, too: what was
    not begun is not done, and what was begun is done whole or not at all. What was committed stays so.

    Args:
        path: The folder of the data; made when missing.
        options: What it is opened with; see `GreenroomOptions`.

    Attributes:
        sessions: The sessions in it, asked as the agent ``app``. For another one make a `SessionService` with
            the database in the place of a runtime.
        memory: The memories in it; likewise by `MemoryService`.
        is_blocking: Whether a plain ``with`` block has it open.

    Raises:
        TypeError: there is no such option, two decide the same, or one is of a wrong type.
        ValueError: a value is not allowed.
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
        """Open the folder; if that is cancelled it is closed again.

        Raises:
            RuntimeError: it is open already.
            ValueError: there is no such language.
            EmbedderError, StoreError: as `open_greenroom`.
        """
        self._life = self._new_keeper().running()
        await self._life.__aenter__()

    async def close(self) -> None:
        """Answer what was asked, take no more, and close the folder; again, it does nothing.

        Cancelled, it only waits for the commit in flight.

        Raises:
            StoreError: a commit had failed for good, so that the runtime ended by itself.
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
        atexit.register(self._blocking.close)  # runs before what the thread has registered
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
        """Store a text for a user, a project, or this program; it is on disk when this returns.

        Args:
            content: The text, up to 1 MB.
            user: Whose it is: searches for others do not find it. Agents that work for this user do.
            project: Which project it is of, and shared with. With ``user``, it is that user's own.
            key: Its name there. What has the name gets a new version; without one it is a new memory.
            tags: Labels, by which searches are narrowed.

        Raises:
            ServiceError: an argument breaks a rule. It is a ``ValueError``, and nothing was stored.
            RuntimeClosedError: the database is not open; the call says so, without being awaited.
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
        """Find by words and meaning what was stored for a user, a project, or this program; best first.

        `SearchService` searches by time as well, and everywhere that a principal may see.

        Args:
            query: A question, or some words.
            user: Whose memories, those of any project included.
            project: Those of the project; with ``user``, that user's own of it.
            tags: With any of these labels.
            limit: How many at most, 1-100.

        Raises:
            ServiceError: an argument breaks a rule. It is a ``ValueError``.
            RuntimeClosedError: as `remember`.
        """
        return await find_texts(self, query, user, project, tags, limit)

    def call(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function in the runtime's thread, and wait: ``database.call(store.get, "key")``.

        For threads without an event loop: one that runs it would stand still meanwhile.

        Raises:
            RuntimeError: trio runs in this thread.
            RuntimeClosedError: the database is not open, or closed before the function returned.
        """
        _check_may_block()
        keeper = self._open_keeper()
        with self._closing(keeper):
            scope = trio.CancelScope()

            async def cancellable() -> R:
                with scope:
                    return await function(*arguments)
                raise AssertionError("nobody waits for what was cancelled")

            try:
                return keeper.portal.call(cancellable)
            except BaseException:  # Ctrl-C among them, which may come before anything is begun there
                keeper.run_soon(scope.cancel)
                raise

    async def call_async(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function in the runtime's thread, on trio there, and await it.

        Who is cancelled cancels it, and waits until it has ended: so an ``anyio.CancelScope(shield=True)`` in
        it stands also where asyncio cancels the task, which one in the task itself does not.

        Raises:
            RuntimeClosedError: the database is not open, or closed before the function returned.
        """
        return await self.with_runtime(lambda _: function(*arguments))

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Return an actor's reply, as `RuntimeClient.ask` does."""
        return await self.with_runtime(lambda runtime: runtime.ask(address, message, principal=principal))

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Return the answer of a query, as `RuntimeClient.query` does."""
        return await self.with_runtime(lambda runtime: runtime.query(query, principal=principal))

    async def with_runtime(self, function: Callable[[RuntimeClient], Awaitable[R]]) -> R:
        """Run an async function of the open runtime in its thread, as `call_async` does."""
        keeper = self._open_keeper()
        await checkpoint()  # who is cancelled already begins nothing
        if keeper.thread == threading.get_ident():
            return await function(keeper.runtime)
        with self._closing(keeper):
            return await keeper.portal.call_async(function, keeper.runtime)

    def post_to_runtime(self, function: Callable[[RuntimeClient], object]) -> None:
        """Schedule a function of the open runtime, if there is one, and return at once."""
        keeper = self._keeper
        if keeper is not None and keeper.is_open:
            keeper.run_soon(partial(function, keeper.runtime))

    def _new_keeper(self) -> _Keeper:
        if self._keeper is not None and not self._keeper.has_ended:
            raise RuntimeError(f"the database {self._path} is open already")
        self._keeper = _Keeper(open_checked(self._path, self._options))
        return self._keeper

    def _open_keeper(self) -> _Keeper:
        keeper = self._keeper
        if keeper is None or not keeper.is_open:
            if keeper is not None and keeper.is_parents:
                raise RuntimeClosedError(
                    f"the database {self._path} is open in the process of which this is a fork; open it "
                    "here by a block of its own"
                )
            why = None if keeper is None else keeper.failure
            raise RuntimeClosedError(
                f"the database {self._path} is not open: use it in a `with` or `async with` block, or await "
                "initialize()"
            ) from why
        return keeper

    @contextmanager
    def _closing(self, keeper: _Keeper) -> Iterator[None]:
        """Say what happened where the portal ends in the middle of a call."""
        try:
            yield
        except (RuntimeError, CancelledError) as error:
            if keeper.is_open:
                raise
            raise RuntimeClosedError(
                f"the database {self._path} closed before the reply; look whether the call took effect"
            ) from error


class BlockingDatabase(Database):
    """What a plain ``with`` block has, for type checkers: `remember` and `search` return results.

    It is the `Database` itself: nothing is made of this class.
    """


def _check_may_block() -> None:
    """Check that this thread may wait for that of a database.

    Raises:
        RuntimeError: trio runs in it, which does not let one thread wait for another.
    """
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("this would stop trio, which runs in this thread: use `async with`, and await")


class _Keeper:
    """Keeps a runtime open in a thread of its own.

    There it is a system task: it ends when the thread's loop does, whoever ended that.

    Attributes:
        portal: Where the thread is reached.
        thread: Its identity.
        token: Where functions of the thread are left that it calls soon.
        runtime: What is kept open.
        is_open: Whether it takes calls.
        failure: Why it could not be opened, or ended by itself.
        has_ended: Whether the thread is done with.
        is_parents: Whether the thread is in the process that this one was forked from.
    """

    _every: ClassVar[WeakSet[_Keeper]] = WeakSet()

    portal: BlockingPortal
    token: trio.lowlevel.TrioToken
    runtime: SharedRuntime

    def __init__(self, opening: AbstractAsyncContextManager[SharedRuntime]) -> None:
        self._opening = opening
        self._scope = trio.CancelScope()
        self._settled = trio.Event()
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
        """Let go of every runtime in a child that was forked: the thread stayed with the parent.

        Who would wait for it would wait for ever.
        """
        for keeper in cls._every:
            if not keeper.has_ended:
                keeper.is_open, keeper.has_ended, keeper.is_parents = False, True, True
                keeper.portal.start_task_soon = _refuse_in_child  # type: ignore[method-assign]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep it open while the block runs.

        An event loop that ends closes the generators that are left, and so this one. Where a program does not
        let it, the thread ends when the program exits.
        """
        try:
            with self._started():
                async with AsyncExitStack() as life:
                    # What `start_blocking_portal` does at its end it cannot do in a thread where trio runs.
                    life.push_async_callback(self._in_thread, self.portal.stop)
                    life.push_async_callback(self._in_thread, self._close)
                    await self.portal.call_async(self._open)
                    yield
        finally:
            self.has_ended = True

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """Keep it open while the block runs, in a thread that has no event loop."""
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
        """Have a function called in the thread, unless that has ended."""
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
                async with self._opening as self.runtime, trio.open_nursery() as nursery:
                    nursery.start_soon(tell_of_program, self.runtime)
                    self.is_open = True
                    self._settled.set()
                    await self._leaving.wait()
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001  `_open` or `_close` raises it: nobody waits for a system task
            self.failure = error
        finally:
            self.is_open = False
            self._settled.set()
            self._ended.set()


def _refuse_in_child(*_: object, **__: object) -> Any:
    """Refuse calls into a thread that a forked child does not have; so anyio takes the portal for ended."""
    raise RuntimeError("the thread of the database stayed with the parent")


os.register_at_fork(after_in_child=_Keeper.leave_to_parent)
