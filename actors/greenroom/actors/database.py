"""A folder of sessions and memories for a program on asyncio or on trio.

The runtime runs on trio, here in a thread of its own; anyio's portal carries calls, cancellations and errors
across. So a handler is never interrupted by Ctrl-C, which Python raises in the main thread.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack

import anyio
import trio
from anyio.from_thread import BlockingPortal
from anyio.lowlevel import checkpoint

from greenroom.actors.open import open_checked
from greenroom.actors.options import GreenroomOptions, check_greenroom_options
from greenroom.actors.presence.telling import tell_of_program
from greenroom.actors.services.memory import MemoryService
from greenroom.actors.services.session import SessionService
from greenroom.runtime import Address, Message, Procedure, Query, RuntimeClosedError, SharedRuntime

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")


class Database:
    """Sessions and memories in a folder, for a program on asyncio or on trio.

    Its runtime has a thread of its own, and is called from any thread and event loop. It ends by `close` or
    with an ``async with`` block; failing that, with the event loop that opened it, or with the program. A
    program without an event loop opens it by a plain ``with`` block, and asks by `call`. A
    program on trio that wants the runtime in its own loop takes `open_greenroom`.

    A call that is cancelled, by ``asyncio.timeout`` or otherwise, is cancelled in the runtime, too: what was
    not begun is not done, and what was begun is done whole or not at all. What was committed stays so.

    A forked child has no such thread: there every call raises `RuntimeClosedError` at once, closing does
    nothing, and the database can be opened anew.

    Args:
        path: The folder of the data; made when missing.
        options: What it is opened with; see `GreenroomOptions`.

    Attributes:
        sessions: The sessions in it, asked as the agent ``app``. For another one make a `SessionService` with
            the database in the place of a runtime.
        memory: The memories in it; likewise by `MemoryService`.

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

    def __enter__(self) -> Self:
        self._blocking.enter_context(self._new_keeper().blocking())
        atexit.register(self._blocking.close)  # runs before what the thread has registered
        self._blocking.callback(atexit.unregister, self._blocking.close)
        return self

    def __exit__(self, *exception: object) -> None:
        self._blocking.close()

    def call(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function in the runtime's thread, and wait: ``database.call(store.get, "key")``.

        For threads without an event loop: one that runs it would stand still meanwhile.

        Raises:
            RuntimeClosedError: the database is not open, or closed before the function returned.
        """
        keeper = self._open_keeper()
        with self._closing(keeper):
            return keeper.portal.call(function, *arguments)

    async def call_async(self, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Run an async function in the runtime's thread, on trio there, and await it.

        Who is cancelled cancels it, and waits until it has ended: so an ``anyio.CancelScope(shield=True)`` in
        it stands also where asyncio cancels the task, which one in the task itself does not.

        Raises:
            RuntimeClosedError: the database is not open, or closed before the function returned.
        """
        return await self._call(lambda _: function(*arguments))

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Return an actor's reply, as `RuntimeClient.ask` does."""
        return await self._call(lambda runtime: runtime.ask(address, message, principal=principal))

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Return the answer of a query, as `RuntimeClient.query` does."""
        return await self._call(lambda runtime: runtime.query(query, principal=principal))

    async def _call(self, function: Callable[[SharedRuntime], Awaitable[R]]) -> R:
        keeper = self._open_keeper()
        await checkpoint()  # who is cancelled already begins nothing
        if keeper.thread == threading.get_ident():
            return await function(keeper.runtime)
        with self._closing(keeper):
            return await keeper.portal.call_async(function, keeper.runtime)

    def _new_keeper(self) -> _Keeper:
        if self._keeper is not None and not (self._keeper.has_ended or self._keeper.is_forked):
            raise RuntimeError(f"the database {self._path} is open already")
        self._keeper = _Keeper(open_checked(self._path, self._options))
        return self._keeper

    def _open_keeper(self) -> _Keeper:
        keeper = self._keeper
        if keeper is not None and keeper.is_forked:
            raise RuntimeClosedError(
                f"the database {self._path} was opened by process {keeper.pid}, from which this one was "
                "forked; here it is not open: open it after the fork"
            )
        if keeper is None or not keeper.is_open:
            why = None if keeper is None else keeper.failure
            raise RuntimeClosedError(f"the database {self._path} is not open: await initialize()") from why
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


class _Keeper:
    """Keeps a runtime open in a thread of its own.

    There it is a system task: it ends when the thread's loop does, whoever ended that.

    Attributes:
        portal: Where the thread is reached.
        thread: Its identity.
        pid: The process that has it.
        runtime: What is kept open.
        is_open: Whether it takes calls.
        failure: Why it could not be opened, or ended by itself.
        has_ended: Whether the thread is done with.
    """

    portal: BlockingPortal
    runtime: SharedRuntime

    def __init__(self, opening: AbstractAsyncContextManager[SharedRuntime]) -> None:
        self._opening = opening
        self._scope = trio.CancelScope()
        self._settled = trio.Event()
        self._leaving = trio.Event()
        self._ended = trio.Event()
        self.failure: Exception | None = None
        self.thread = 0
        self.pid = os.getpid()
        self.is_open = False
        self.has_ended = False

    @property
    def is_forked(self) -> bool:
        """Whether this is a child of the process that has the thread: then nothing there can be reached."""
        return os.getpid() != self.pid

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep it open while the block runs.

        An event loop that ends closes the generators that are left, and so this one. Where a program does not
        let it, the thread ends when the program exits.
        """
        try:
            with self._started():
                async with AsyncExitStack() as life:
                    # What `_stop` does it cannot do in a thread where trio runs.
                    life.push_async_callback(self._reach, self.portal.stop)
                    life.push_async_callback(self._reach, self._close)
                    await self.portal.call_async(self._open)
                    yield
        finally:
            self.has_ended = True

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """Keep it open while the block runs, in a thread that has no event loop."""
        try:
            with self._started():
                try:
                    self.portal.call(self._open)
                    yield
                finally:
                    if not self.is_forked:
                        self.portal.call(self._close)
        finally:
            self.has_ended = True

    async def _reach(self, function: Callable[[], Awaitable[None]]) -> None:
        if not self.is_forked:
            await self.portal.call_async(function)

    @contextmanager
    def _started(self) -> Iterator[None]:
        """Have the thread while the block runs; `start_blocking_portal` would wait for it in a child, too."""
        ready: Future[BlockingPortal] = Future()
        context = contextvars.Context()
        thread = threading.Thread(
            target=context.run, args=(_run_portal, ready), name="greenroom", daemon=True
        )
        thread.start()
        self.portal = ready.result()
        stop = partial(self._stop, thread)
        atexit.register(stop)
        is_broken = True
        try:
            yield
            is_broken = False
        finally:
            atexit.unregister(stop)
            stop(cancel_remaining=is_broken)

    def _stop(self, thread: threading.Thread, *, cancel_remaining: bool = False) -> None:
        if not self.is_forked:
            with suppress(RuntimeError):  # it has ended
                self.portal.call(partial(self.portal.stop, cancel_remaining))
            thread.join()

    async def _open(self) -> None:
        self.thread = threading.get_ident()
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


def _run_portal(ready: Future[BlockingPortal]) -> None:
    """Run trio in this thread, and there what comes through a portal, until that is stopped."""

    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve, backend="trio")
    except BaseException as error:  # noqa: BLE001  who waits, for the portal or in a call, is given it
        if not ready.done():
            ready.set_exception(error)
