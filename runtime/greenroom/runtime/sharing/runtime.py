"""The runtime of a process that shares its folder with others."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack

import msgspec

from greenroom.runtime.actor.query import Query
from greenroom.runtime.api.client import RuntimeClient
from greenroom.runtime.api.open import RuntimeConfig, RuntimeFactory
from greenroom.runtime.api.procedure import Procedure
from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.arguments import check_options
from greenroom.runtime.base.errors import StoreError
from greenroom.runtime.base.statistics import RelayStatistics, RuntimeStatistics
from greenroom.runtime.base.store_settings import apply_settings
from greenroom.runtime.kernel.callbacks import MessageSink
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Subscriber
from greenroom.runtime.maintenance.backup import BackupInfo, VerifyReport
from greenroom.runtime.sharing.lock_or_attach import May, joined
from greenroom.runtime.sharing.pending import AGAIN
from greenroom.runtime.sharing.process import Member
from greenroom.runtime.sharing.type_registry import TypeRegistry

R = TypeVar("R")


class SharedRuntime(RuntimeClient):
    """A running set of actors on a folder that other processes use, too. `open_shared_runtime` makes it.

    One of the processes owns the folder and runs the actors; in the others every request is relayed to it.
    When it ends, another one takes over, and what was not answered is done then, once.
    """

    def __init__(self, member: Member) -> None:
        self._member = member

    @property
    def role(self) -> Literal["owner", "attached"]:
        """Whether this process owns the folder, or relays to the one that does."""
        return "attached" if self._member.runtime is None else "owner"

    async def wait_until_owner(self) -> None:
        """Wait until this process owns the folder."""
        await self._member.became_owner.wait()

    async def wait_until_reached(self) -> None:
        """Wait until this process owns the folder or its owner has answered: from then on `derive` works."""
        await self._member.has_secret.wait()

    def hold_dispatch(self) -> AbstractContextManager[None]:
        """Return a block that is to be ended with `run_ready`, as `Runtime.hold_dispatch` does."""
        runtime = self._member.runtime
        return nullcontext() if runtime is None else runtime.hold_dispatch()

    def run_ready(self) -> None:
        """Do now what was posted, as `Runtime.run_ready` says."""
        if self._member.runtime is None:
            self._member.follower.flush()
        else:
            self._member.runtime.run_ready()

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Run a query or a procedure and return its answer, once what it saw is on disk."""
        if self._member.runtime is None:
            self._check_open()
            answer: Any = await self._member.follower.query(query, principal)
            if answer is not AGAIN:
                reply: R = answer
                return reply
        assert self._member.runtime is not None, "only the owner's is asked again"
        return await self._member.runtime.query(query, principal=principal)

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, as `RuntimeClient.subscriber` does.

        It goes on when another process takes over, and then hears of each of its topics once.
        """
        self._check_open()
        return self._member.bus.subscriber(window)

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a block within which `current_settings` are what this process opened the store with."""
        return apply_settings(self._member.factory.settings)

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose, as `RuntimeClient.derive` does."""
        if self._member.runtime is not None:
            return self._member.runtime.derive(purpose)
        if self._member.secret is None:
            raise StoreError("the runtime was opened without a secret, or no owner has been reached yet")
        return self._member.secret.derive(purpose)

    def statistics(self) -> RuntimeStatistics:
        """Return what every part says of itself; in an attached process the owner's, a second old at most.

        Raises:
            StoreError: no owner has been reached yet.
        """
        if self._member.runtime is not None:
            attached = self._member.leader.followers.values()
            relay = RelayStatistics(
                role="owner",
                owner_pid=os.getpid(),
                attached_pids=sorted(each.pid for each in attached),
                takeovers=self._member.follower.attachments,
                unanswered=sum(each.unanswered for each in attached),
                silent_seconds=int(max((each.silent_seconds for each in attached), default=0)),
            )
            return msgspec.structs.replace(self._member.runtime.statistics(), relay=relay)
        statistics = self._member.follower.statistics()
        if statistics is None:
            raise StoreError("the process that owns the folder has not answered yet")
        return statistics

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was. For the owner alone."""
        return self._owned().readmit(address)

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store to a new file, as `Runtime.backup` does. For the owner alone."""
        return await self._owned().backup(destination)

    async def verify(self) -> VerifyReport:
        """Check the store, as `Runtime.verify` does. For the owner alone."""
        return await self._owned().verify()

    @property
    def is_sound(self) -> bool:
        """Whether every commit of this process so far ended as a commit can."""
        return self._member.runtime is None or self._member.runtime.is_sound

    @property
    def _kernel(self) -> MessageSink:  # type: ignore[override]  # it changes with a takeover
        return self._member.sink

    @property
    def _ended(self) -> bool:  # type: ignore[override]  # here it is another's
        return self._member.has_ended

    def _check_open(self) -> None:
        self._member.check_open()

    def _owned(self) -> Runtime:
        if self._member.runtime is None:
            owner = self._member.follower.owner_pid
            raise StoreError(f"process {owner} owns the folder, and only the owner can do this; ask there")
        return self._member.runtime


@check_options(RuntimeConfig)
@asynccontextmanager
async def open_shared_runtime(
    path: str | Path,
    *,
    principal_type: Any,
    label_type: Any,
    queries: Iterable[type[Query[Any] | Procedure[Any]]] = (),
    may: May = "create",
    **config: Unpack[RuntimeConfig],
) -> AsyncIterator[SharedRuntime]:
    """Run actors on a folder that other processes use, too, inside an ``async with`` block.

    The first process owns the folder, as with `open_runtime`; in the others everything is relayed to it.
    When the owner ends, in whichever way, another process takes over. All are to be given the same actors.

    Args:
        path: The folder of the data.
        principal_type: What the principals of messages and queries are; hashable, and known to msgspec.
        label_type: What the labels of publications are, likewise.
        queries: The queries and procedures that are asked here.
        may: How far this process may go: ``create`` a store where there is none, ``own`` one that is there,
            or only ``attach`` to a process that owns it. The last never takes over: it waits for another.
        config: What the runtime is made of when this process owns the folder; see `RuntimeConfig`.

    Raises:
        TypeError: there is no such option; the call itself raises it.
        StoreIdleError: nobody owns the folder, and this process may only attach.
        StoreOwnedError: the process that owns the folder takes no others: it is another version, or busy
            with a backup, a check or a restore.
        StoreError: as `open_runtime`, at the opening or when this process is to take over; the folder
            was replaced.
    """
    factory = RuntimeFactory(**config)
    member = Member(factory, TypeRegistry(factory.kinds, queries, principal_type, label_type))
    async with joined(member, Path(path), may):
        yield SharedRuntime(member)
