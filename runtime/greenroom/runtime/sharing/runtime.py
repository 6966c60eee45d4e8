"""The runtime of a process that shares its folder with others."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack

import msgspec

from greenroom.runtime.api.client import Procedure, RuntimeClient
from greenroom.runtime.api.open import RuntimeConfig, RuntimeFactory
from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.arguments import check_options
from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.options import apply_settings
from greenroom.runtime.base.statistics import RelayStatistics, RuntimeStatistics
from greenroom.runtime.kernel.callbacks import MessageSink
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Subscriber
from greenroom.runtime.maintenance.backup import BackupInfo, VerifyReport
from greenroom.runtime.sharing.lock_or_attach import May, SharedProcess, lock_or_attach
from greenroom.runtime.sharing.pending import AGAIN
from greenroom.runtime.sharing.type_registry import TypeRegistry

R = TypeVar("R")


class SharedRuntime(RuntimeClient):
    """A running set of actors on a shared folder, made by `open_shared_runtime`."""

    def __init__(self, process: SharedProcess) -> None:
        self._process = process
        self._callbacks = process.attached_side.callbacks  # after a takeover they belong to the kernel

    @property
    def role(self) -> Literal["owner", "attached"]:
        """The role of this process: owner of the folder, or attached to the owner."""
        return "attached" if self._process.runtime is None else "owner"

    async def wait_until_owner(self) -> None:
        """Wait until this process owns the folder."""
        await self._process.became_owner.wait()

    async def wait_until_reached(self) -> None:
        """Wait until there is an owner, this process or another; then `derive` works."""
        await self._process.has_secret.wait()

    def hold_dispatch(self) -> AbstractContextManager[None]:
        """Return a context manager; end its block with `run_ready`. See `Runtime.hold_dispatch`."""
        runtime = self._process.runtime
        return nullcontext() if runtime is None else runtime.dispatcher

    def run_ready(self) -> None:
        """Handle posted requests now, as `Runtime.run_ready` does."""
        runtime = self._process.runtime
        if runtime is None:
            self._process.attached_side.flush()
        else:
            runtime.dispatcher.run_ready()

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Run a procedure; return its reply once everything that it read is on disk."""
        if self._process.runtime is None:
            self._process.check_open()
            answer: Any = await self._process.attached_side.query(query, principal)
            if answer is not AGAIN:
                reply: R = answer
                return reply
        assert self._process.runtime is not None, "only the owner repeats a query"
        return await self._process.runtime.query(query, principal=principal)

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, as `RuntimeClient.subscriber` does.

        The subscriber survives a takeover, and is then notified once of each of its topics.
        """
        self._process.check_open()
        return self._process.bus.subscriber(window)

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a context manager: in its block, `current_settings` returns this store's settings."""
        return apply_settings(self._process.factory.settings)

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose, as `RuntimeClient.derive` does."""
        if self._process.runtime is not None:
            return self._process.runtime.derive(purpose)
        if self._process.secret is None:
            raise StoreError("the runtime was opened without a secret, or no owner has been reached yet")
        return self._process.secret.derive(purpose)

    def statistics(self) -> RuntimeStatistics:
        """Return the statistics; an attached process returns the owner's, at most a second old.

        Raises:
            StoreError: no owner has been reached yet.
        """
        if self._process.runtime is not None:
            attached = self._process.owner_side.attached.values()
            relay = RelayStatistics(
                role="owner",
                owner_pid=os.getpid(),
                attached_pids=sorted(each.pid for each in attached),
                takeovers=self._process.attached_side.attachments,
                unanswered=sum(each.unanswered for each in attached),
                silent_seconds=int(max((each.silent_seconds for each in attached), default=0)),
            )
            return msgspec.structs.replace(self._process.runtime.statistics(), relay=relay)
        statistics = self._process.attached_side.statistics()
        if statistics is None:
            raise StoreError("the process that owns the folder has not answered yet")
        return statistics

    def readmit(self, address: Address) -> bool:
        """Readmit an actor from quarantine; return whether it was in quarantine. Owner only."""
        return self._require_owner().readmit(address)

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store to a new file, as `Runtime.backup` does. Owner only."""
        return await self._require_owner().backup(destination)

    async def verify(self) -> VerifyReport:
        """Check the store, as `Runtime.verify` does. Owner only."""
        return await self._require_owner().verify()

    @property
    def is_sound(self) -> bool:
        """Whether no commit of this process has failed, except for lack of space."""
        return self._process.runtime is None or self._process.runtime.is_sound

    @property
    def _kernel(self) -> MessageSink:  # type: ignore[override]  # a takeover changes it
        return self._process.sink

    def _require_owner(self) -> Runtime:
        if self._process.runtime is None:
            owner = self._process.attached_side.owner_pid
            raise StoreError(f"process {owner} owns the folder, and only the owner can do this; ask there")
        return self._process.runtime


@check_options(RuntimeConfig)
@asynccontextmanager
async def open_shared_runtime(
    path: str | Path,
    *,
    principal_type: Any,
    label_type: Any,
    queries: Iterable[type[Procedure[Any]]] = (),
    may: May = "create",
    **config: Unpack[RuntimeConfig],
) -> AsyncIterator[SharedRuntime]:
    """Run actors on a shared folder, inside an ``async with`` block.

    The first process owns the folder, as with `open_runtime`; the others relay each request to it. When the
    owner ends, in any way, another takes over and handles unanswered requests, once. All need the same
    actors.

    Args:
        path: The folder of the data.
        principal_type: The type of principals: hashable, and supported by msgspec.
        label_type: The type of publications' labels, as above.
        queries: The procedures that this process may run.
        may: How far this process may go: ``create`` a store, ``own`` an existing one, or only ``attach`` to
            an owner; then it never takes over.
        config: The configuration of the runtime; see `RuntimeConfig`.

    Raises:
        StoreIdleError: no process owns the folder, and this one may only attach.
        StoreOwnedError: the owner accepts no other process: it has another version, or is busy with a backup,
            a check or a restore.
        StoreError: as from `open_runtime`, at the opening or at a takeover; or the folder was replaced.
    """
    factory = RuntimeFactory(**config)
    process = SharedProcess(factory, TypeRegistry(factory.kinds, queries, principal_type, label_type))
    async with lock_or_attach(process, Path(path), may):
        yield SharedRuntime(process)
