"""Maintenance of a root by timers: uses, index, summary, and rows in shared indexes."""

from __future__ import annotations

from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.storage import embedding, indexing, root_summary
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
    """Run one step of the upkeep of the index and the summary."""
    yield from repository.index.compact(context)
    yield from root_summary.tidy(repository, context)


def summarize(repository: MemoryRepository, _: requests.SummarizeRoot, context: Context) -> Slices[None]:
    """Build the summary, for searches that choose between roots."""
    yield from indexing.finish(repository, context)
    yield from root_summary.build(repository, context)


def restate(repository: MemoryRepository, _: Restate, context: Context) -> None:
    """Write the root's rows in shared indexes again, and set its timers again."""
    context.use_reserve()
    repository.relist(context)
    embedding.relist(repository, context)
    root_summary.invalidate(repository, context)
    removal.sweep_soon(context)
    indexing.schedule(repository, context)
