"""Maintenance of a root by timers: uses, index, and rows in shared indexes."""

from __future__ import annotations

from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.storage import embedding, indexing
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.writing import removal
from greenroom.actors.search.index import TidyIndex
from greenroom.runtime import Context, Restate, Slices


def write_uses(repository: MemoryRepository, _: requests.WriteUses, context: Context) -> Slices[None]:
    """Write the waiting uses, and notify those who see the memories."""
    repository.publish_about(context, *repository.uses.used.values())
    return repository.uses.write(context, repository.index)


def upgrade(repository: MemoryRepository, _: requests.UpgradeMemory, context: Context) -> Slices[None]:
    """Index a batch of memories from an older program."""
    return indexing.step(repository, context)


def tidy(repository: MemoryRepository, _: TidyIndex, context: Context) -> Slices[None]:
    """Run one step of the upkeep of the index."""
    return repository.index.compact(context)


def restate(repository: MemoryRepository, _: Restate, context: Context) -> None:
    """Write the root's rows in shared indexes again, and set its timers again."""
    context.use_reserve()
    repository.relist(context)
    embedding.relist(repository, context)
    removal.sweep_soon(context)
    indexing.schedule(repository, context)
