"""The memory actor: the handler of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from greenroom.actors.core.erasure import EraseFrom
from greenroom.actors.core.replies.damage import with_damage
from greenroom.actors.core.resources import resources
from greenroom.actors.memories.reading import (
    browsing,
    map_rows,
    overwritten,
    reads,
    search_root,
    statistics,
)
from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests import review as memory_review
from greenroom.actors.memories.requests import transfer
from greenroom.actors.memories.requests.map_replies import MapRoot
from greenroom.actors.memories.requests.overwritten import ListOverwritten
from greenroom.actors.memories.storage import embedding, indexing
from greenroom.actors.memories.storage.derived_records import with_rebuild
from greenroom.actors.memories.storage.records import names_in
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.transfer import export
from greenroom.actors.memories.upkeep import (
    changes,
    erasure,
    keyvalue,
    pairs,
    review_actions,
)
from greenroom.actors.memories.writing import forget, import_staging, ratings, removal, store_requests
from greenroom.actors.search.embedding.vector_messages import StoreVectors, TextsToEmbed
from greenroom.actors.search.index import TidyIndex
from greenroom.runtime import Context, Message, Restate, Slices


def _upgrade(repository: MemoryRepository, _: requests.UpgradeMemory, context: Context) -> Slices[None]:
    return indexing.step(repository, context)


def _compact_index(repository: MemoryRepository, _: TidyIndex, context: Context) -> Slices[None]:
    return repository.index.compact(context)


def _write_uses(repository: MemoryRepository, _: requests.WriteUses, context: Context) -> Slices[None]:
    """Write the waiting uses, and notify the callers who see the memories."""
    repository.publish_about(context, *repository.uses.used.values())
    return repository.uses.write(context, repository.index)


def _restate(repository: MemoryRepository, _: Restate, context: Context) -> None:
    """Write the root's rows in shared indexes again, and set its timers again."""
    context.use_reserve()
    repository.relist(context)
    embedding.relist(repository, context)
    removal.sweep_soon(context)
    indexing.schedule(repository, context)


_HANDLERS: Final[Mapping[type[Message[Any]], Callable[..., Any]]] = {
    # an agent's key-value memory
    requests.SetMemory: keyvalue.store,
    requests.GetMemory: keyvalue.read,
    requests.ListMemory: keyvalue.list_entries,
    requests.DeleteMemory: keyvalue.delete,
    resources.ReadResource: keyvalue.read_resource,
    # the memory layer
    memories.StoreMemory: store_requests.store,
    memories.UpdateMemory: store_requests.update,
    memories.ForgetMemory: forget.forget,
    memories.RateMemory: ratings.rate,
    memories.ReadMemory: reads.read,
    memories.LookUpMemories: reads.look_up,
    memories.ListVersions: reads.list_versions,
    memories.ListMemories: reads.list_page,
    memories.MemoryStats: statistics.count,
    memories.CountMemories: statistics.tally,
    memories.FindMemories: search_root.find,
    memories.LocateKey: reads.locate,
    memories.FindNearKeys: reads.find_near_keys,
    MapRoot: map_rows.map_root,
    ListOverwritten: overwritten.list_overwritten,
    memories.NoteHelp: ratings.note_help,
    memories.NoteUses: search_root.count_uses,
    # review of memories by people
    memory_review.BrowseMemories: browsing.browse,
    memory_review.InspectMemory: review_actions.inspect,
    memory_review.RestoreMemory: review_actions.restore,
    memory_review.MergeMemories: review_actions.merge,
    memory_review.MoveMemory: review_actions.move,
    memory_review.WithdrawRating: ratings.withdraw,
    memory_review.ListForgotten: review_actions.list_forgotten,
    memory_review.ListMemoryPairs: pairs.list_pairs,
    memory_review.SettleMemoryPair: pairs.settle,
    # the memory service
    memories.AddMemory: store_requests.add,
    memories.ReviseMemory: store_requests.revise,
    memories.DropMemory: forget.drop,
    memories.ChangeMemories: changes.change,
    memories.ProlongMemories: changes.prolong,
    memories.ListSubNamespaces: changes.list_namespaces,
    # internal timers and the index
    requests.SweepMemory: removal.sweep,
    requests.WriteUses: _write_uses,
    requests.UpgradeMemory: _upgrade,
    TidyIndex: _compact_index,
    Restate: _restate,
    EraseFrom: erasure.erase,
    memories.VerifyIndex: indexing.verify,
    TextsToEmbed: embedding.texts,
    StoreVectors: embedding.store,
    # import and export
    transfer.StageLines: import_staging.stage,
    transfer.ReadStaged: import_staging.read_staged,
    transfer.TryLines: import_staging.try_lines,
    transfer.ApplyLines: import_staging.apply,
    transfer.DropLines: import_staging.drop,
    transfer.ExportPage: export.export_page,
}


class MemoryActor(MemoryRepository):
    """The memories below one namespace root, or the memories of an agent's bare id."""

    kind = "memory"
    names = staticmethod(names_in)
    name_damage = staticmethod(with_damage)
    handlers: ClassVar = {message_type: with_rebuild(handler) for message_type, handler in _HANDLERS.items()}
