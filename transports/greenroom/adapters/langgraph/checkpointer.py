"""Checkpoints of LangGraph in a database."""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from greenroom.actors import (
    ChannelValue,
    CheckpointHead,
    CheckpointRead,
    CheckpointService,
    CheckpointValue,
    CheckpointWrite,
    Database,
    ListCheckpoints,
    Principal,
    PutCheckpoint,
    PutWrites,
)
from greenroom.adapters.base.blocking import blocking, call_blocking
from greenroom.adapters.base.extras import needs

with needs("langgraph"):
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
        get_checkpoint_id,
        get_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

_PAGE = 100


class GreenroomSaver(BaseCheckpointSaver[str]):
    """Stores the checkpoints of graphs: ``builder.compile(checkpointer=GreenroomSaver(…))``.

    A thread belongs to the principal's user, or to the agent without a user; no one else reads it, and no
    search finds its content. A write is on disk when the method returns. Methods without a leading ``a``
    block; they are for threads without an event loop.

    Args:
        database: The database, open while the saver is used.
        principal: The caller.
        serde: Writes and reads values; by default LangGraph's own.
    """

    def __init__(
        self, database: Database, principal: Principal, *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde)
        self._database = database
        self._service = CheckpointService(database, principal)
        self._channels: Sequence[str] | None = None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, by default the newest; None if there is none."""
        thread_id = config["configurable"]["thread_id"]
        namespace = config["configurable"].get("checkpoint_ns", "")
        only = None if self._channels is None else [*self._channels]
        read = await self._service.read(
            _thread_name(thread_id), namespace, get_checkpoint_id(config) or None, only
        )
        return None if read is None else self._tuple(thread_id, read)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[CheckpointTuple, None]:
        """Yield checkpoints, newest first: of the thread in ``config``, or of all threads."""
        left = limit
        listing = ListCheckpoints(
            namespace=config["configurable"].get("checkpoint_ns") if config else None,
            checkpoint_id=(get_checkpoint_id(config) or None) if config else None,
            before=(get_checkpoint_id(before) or None) if before else None,
            limit=_PAGE if limit is None or filter else max(1, min(limit, _PAGE)),
        )
        thread_ids = [config["configurable"]["thread_id"]] if config else await self._service.threads()
        threads = [_Listing(self._service, thread_id, listing) for thread_id in thread_ids]
        while left is None or left > 0:
            newest = await _newest(threads)
            if newest is None:
                return
            thread, head = newest
            metadata = self._loads(head.metadata)
            if filter and any(metadata.get(name) != value for name, value in filter.items()):
                continue
            read = await self._service.read(
                _thread_name(thread.thread_id), head.namespace, head.checkpoint_id
            )
            if read is not None:  # it may have been deleted since
                left = None if left is None else left - 1
                yield self._tuple(thread.thread_id, read)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and its new channels, and return its config.

        Raises:
            ServiceError: it has more than 64 MiB, or an invalid id.
        """
        configurable = config["configurable"]
        thread_id, namespace = configurable["thread_id"], configurable.get("checkpoint_ns", "")
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        stored = get_checkpoint_metadata(config, metadata)
        run_id = stored.get("run_id")
        await self._service.put(
            PutCheckpoint(
                thread_id=_thread_name(thread_id),
                namespace=namespace,
                checkpoint_id=checkpoint["id"],
                parent_id=configurable.get("checkpoint_id"),
                checkpoint=self._dumps({k: v for k, v in checkpoint.items() if k != "channel_values"}),
                metadata=self._dumps(stored),
                run_id=run_id if isinstance(run_id, str) else None,
                versions=versions,
                values=[
                    ChannelValue(channel, self._dumps(values[channel]) if channel in values else None)
                    for channel, version in new_versions.items()
                    if versions.get(channel) == version
                ],
                deltas=sorted(stored.get("counters_since_delta_snapshot") or ()),
            )
        )
        return _config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a task's writes until the next checkpoint includes them; existing writes stay."""
        configurable = config["configurable"]
        await self._service.put_writes(
            PutWrites(
                thread_id=_thread_name(configurable["thread_id"]),
                namespace=configurable.get("checkpoint_ns", ""),
                checkpoint_id=configurable["checkpoint_id"],
                writes=[
                    CheckpointWrite(
                        task_path,
                        task_id,
                        WRITES_IDX_MAP.get(channel, number),
                        channel,
                        self._dumps(value),
                    )
                    for number, (channel, value) in enumerate(writes)
                ],
            )
        )

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all data of a thread."""
        await self._service.delete_thread(_thread_name(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the data of runs in all threads.

        A `DeltaChannel` of a later checkpoint may need this data: see LangGraph's warning.
        """
        await self._service.delete_runs([*run_ids])

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all data of a thread into another one."""
        await self._service.copy_thread(_thread_name(source_thread_id), _thread_name(target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the history of threads; the strategy ``delete`` deletes everything.

        ``keep_latest`` keeps the newest checkpoint of each namespace, and earlier checkpoints that its delta
        channels need.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"the strategy is {strategy!r}, and there are 'keep_latest' and 'delete'")
        remove = self._service.prune if strategy == "keep_latest" else self._service.delete_thread
        for thread_id in thread_ids:
            await remove(_thread_name(thread_id))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the history of some channels in a checkpoint's ancestors; reads only these channels."""
        narrow = copy.copy(self)
        narrow._channels = channels  # noqa: SLF001  the copy is of this class
        return await super(GreenroomSaver, narrow).aget_delta_channel_history(
            config=config, channels=channels
        )

    get_delta_channel_history = blocking(aget_delta_channel_history)
    get_tuple = blocking(aget_tuple)
    put = blocking(aput)
    put_writes = blocking(aput_writes)
    delete_thread = blocking(adelete_thread)
    delete_for_runs = blocking(adelete_for_runs)
    copy_thread = blocking(acopy_thread)
    prune = blocking(aprune)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the same checkpoints as `alist`, and block."""
        found = self.alist(config, filter=filter, before=before, limit=limit)

        async def next_tuple() -> CheckpointTuple | None:
            return await anext(found, None)

        try:
            while (each := call_blocking(self._database, next_tuple)) is not None:
                yield each
        finally:
            call_blocking(self._database, found.aclose)

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002  the interface has it
        """Return a version after ``current`` that no other branch or writer of the thread has."""
        number = 0 if current is None else int(str(current).split(".", 1)[0])
        return f"{number + 1:032}.{random.random():.16f}"  # noqa: S311  must be unique, not secret

    def _dumps(self, value: Any) -> CheckpointValue:
        return CheckpointValue(*self.serde.dumps_typed(value))

    def _loads(self, value: CheckpointValue) -> Any:
        return self.serde.loads_typed((value.type, value.data))

    def _tuple(self, thread_id: Any, read: CheckpointRead) -> CheckpointTuple:
        writes = {(each.task_id, each.index): each for each in read.writes}
        ordered = sorted(
            writes.values(), key=lambda each: writes_sort_key(each.task_path, each.task_id, each.index)
        )
        values = {each.channel: self._loads(each.value) for each in read.values if each.value is not None}
        parent = read.parent_id
        checkpoint: Checkpoint = self._loads(read.checkpoint)
        checkpoint["channel_values"] = values
        return CheckpointTuple(
            config=_config(thread_id, read.namespace, read.checkpoint_id),
            checkpoint=checkpoint,
            metadata=self._loads(read.metadata),
            parent_config=_config(thread_id, read.namespace, parent) if parent else None,
            pending_writes=[(each.task_id, each.channel, self._loads(each.value)) for each in ordered],
        )


class _Listing:
    """The checkpoints of a thread, newest first."""

    def __init__(self, service: CheckpointService, thread_id: Any, request: ListCheckpoints) -> None:
        self.thread_id = thread_id
        self._service = service
        self._request = request
        self._page: list[CheckpointHead] = []
        self._has_ended = False

    async def peek(self) -> CheckpointHead | None:
        """Return the next checkpoint, or None."""
        if not self._page and not self._has_ended:
            page = await self._service.page(_thread_name(self.thread_id), self._request)
            self._has_ended = not page
            self._page = page[::-1]
            if page:
                after = (page[-1].checkpoint_id, page[-1].namespace)
                self._request = msgspec.structs.replace(self._request, after=after)
        return self._page[-1] if self._page else None

    def take(self) -> None:
        """Move to the next checkpoint."""
        self._page.pop()


async def _newest(threads: list[_Listing]) -> tuple[_Listing, CheckpointHead] | None:
    """Take the newest of the threads' next checkpoints."""
    found = [(thread, head) for thread in threads if (head := await thread.peek()) is not None]
    if not found:
        return None
    newest = max(found, key=lambda each: each[1].checkpoint_id)
    newest[0].take()
    return newest


def _thread_name(thread_id: Any) -> str:
    """Return the id of a thread as text."""
    if thread_id is None or isinstance(thread_id, bool | list | dict):
        raise ValueError(f"thread_id: it takes a text, and got {type(thread_id).__name__}")
    return str(thread_id)


def _config(thread_id: Any, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
