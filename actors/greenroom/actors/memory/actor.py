"""The memory actor: which request is handled where."""

from __future__ import annotations

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.index import TidyIndex
from greenroom.actors.memory import (
    embedding,
    export,
    forget,
    import_staging,
    indexing,
    keyvalue,
    ratings,
    reads,
    removal,
    root_summary,
    search,
    statistics,
    store_requests,
)
from greenroom.actors.memory.keyvalue import memory_resource
from greenroom.actors.memory.records import names_in
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.schemas import keyvalue as requests
from greenroom.actors.schemas import memories, replies, transfer
from greenroom.actors.schemas import memory_replies as answers
from greenroom.actors.schemas import resources as resources
from greenroom.runtime import Actor, Context, Restate, Slices, handles


class MemoryActor(Actor):
    """The memories below one root, addressed by it; those of an agent by the agent's id alone."""

    kind = "memory"
    names = staticmethod(names_in)

    def activate(self, context: Context) -> None:
        """Find the highest number in use; everything else stays on disk."""
        self._repository = MemoryRepository(context)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self.size + self._repository.resident_bytes()

    # -- an agent's key-value memory -----------------------------------------

    @handles(requests.SetMemory)
    def set_value(
        self, request: requests.SetMemory, context: Context
    ) -> replies.MemoryStored | Slices[replies.MemoryStored]:
        """Store a value."""
        return keyvalue.store(self._repository, request, context)

    @handles(requests.GetMemory)
    def get_value(
        self, request: requests.GetMemory, context: Context
    ) -> replies.MemoryRead | Slices[replies.MemoryRead]:
        """Answer a value: the agent's own, or the one in a namespace that is named."""
        if request.namespace is not None:
            return reads.value(self._repository, request, context)
        return keyvalue.read(self._repository, request, context)

    @handles(requests.ListMemory)
    def entries(self, request: requests.ListMemory, context: Context) -> Slices[replies.MemoryList]:
        """Answer a page of entries."""
        return keyvalue.entries(request, context)

    @handles(requests.DeleteMemory)
    def delete(self, request: requests.DeleteMemory, context: Context) -> replies.MemoryDeleted:
        """Delete an entry."""
        return keyvalue.delete(self._repository, request, context)

    @handles(resources.ReadResource)
    def resource(self, request: resources.ReadResource, context: Context) -> Slices[resources.MemoryResource]:
        """Answer the memory as a resource, to its owner."""
        if policy.memory_owner(context.principal) != context.address.key:
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        everything = keyvalue.newest_first(context, keyvalue.BOTH_SCOPES, None)
        binding = keyvalue.cursor_binding(keyvalue.BOTH_SCOPES, None)
        return memory_resource(context, request.uri, everything, binding)

    # -- the memory layer ------------------------------------------------------

    @handles(memories.StoreMemory)
    def store(self, request: memories.StoreMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store a memory."""
        return store_requests.store(self._repository, request, context)

    @handles(memories.UpdateMemory)
    def update(self, request: memories.UpdateMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store a new version of a memory."""
        return store_requests.update(self._repository, request, context)

    @handles(memories.ForgetMemory)
    def forget(self, request: memories.ForgetMemory, context: Context) -> Slices[answers.MemoryForgotten]:
        """Forget memories, or list those that would be."""
        return forget.forget(self._repository, request, context)

    @handles(memories.RateMemory)
    def rate(self, request: memories.RateMemory, context: Context) -> Slices[answers.MemoryRated]:
        """Take a rating."""
        return ratings.rate(self._repository, request, context)

    @handles(memories.ReadMemory)
    def read(self, request: memories.ReadMemory, context: Context) -> Slices[answers.MemoryShown]:
        """Answer one memory."""
        return reads.read(self._repository, request, context)

    @handles(memories.ListVersions)
    def versions(self, request: memories.ListVersions, context: Context) -> Slices[answers.MemoryVersions]:
        """Answer a page of a memory's versions."""
        return reads.versions(self._repository, request, context)

    @handles(memories.ListMemories)
    def page(self, request: memories.ListMemories, context: Context) -> Slices[answers.MemoryPage]:
        """Answer a page of memories."""
        return reads.page(self._repository, request, context)

    @handles(memories.MemoryStats)
    def count(self, request: memories.MemoryStats, context: Context) -> Slices[answers.MemoryStatistics]:
        """Count memories."""
        return statistics.count(self._repository, request, context)

    @handles(memories.FindMemories)
    def find(self, request: memories.FindMemories, context: Context) -> Slices[answers.RootSearchResult]:
        """Search."""
        return search.find(self._repository, request, context)

    @handles(memories.LocateKey)
    def locate(self, request: memories.LocateKey, context: Context) -> Slices[answers.KeyLocated]:
        """Answer where a key lies."""
        return reads.locate(self._repository, request, context)

    @handles(memories.NoteUses)
    def note_uses(self, request: memories.NoteUses, context: Context) -> None:
        """Count what a search over several owners has shown."""
        search.count_uses(self._repository, request, context)

    # -- the memory service ----------------------------------------------------

    @handles(memories.AddMemory)
    def add(self, request: memories.AddMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store the first version of a memory."""
        return store_requests.add(self._repository, request, context)

    @handles(memories.ReviseMemory)
    def revise(self, request: memories.ReviseMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store the next version of a memory."""
        return store_requests.revise(self._repository, request, context)

    @handles(memories.DropMemory)
    def drop(self, request: memories.DropMemory, context: Context) -> Slices[answers.MemoryForgotten]:
        """Delete a memory softly."""
        return forget.drop(self._repository, request, context)

    # -- by itself -------------------------------------------------------------

    @handles(requests.SweepMemory)
    def sweep(self, _: requests.SweepMemory, context: Context) -> Slices[None]:
        """Remove a batch of what has expired or was purged, and come back for the rest."""
        return removal.sweep(self._repository, context)

    @handles(requests.WriteUses)
    def write_uses(self, _: requests.WriteUses, context: Context) -> Slices[None]:
        """Write down how often memories were used."""
        return self._repository.uses.write(context, self._repository.index)

    @handles(requests.UpgradeMemory)
    def upgrade(self, _: requests.UpgradeMemory, context: Context) -> Slices[None]:
        """Index a batch of what an older program stored."""
        return indexing.step(self._repository, context)

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        """Do a step of the index's upkeep."""
        yield from self._repository.index.compact(context)
        yield from root_summary.tidy(self._repository, context)

    @handles(requests.SummarizeRoot)
    def summarize(self, _: requests.SummarizeRoot, context: Context) -> Slices[None]:
        """Say in short what there is, for searches that choose whom they ask."""
        yield from indexing.finish(self._repository, context)
        yield from root_summary.make(self._repository, context)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the rows again by which searches and the embedder find the root."""
        context.use_reserve()
        self._repository.list_again(context)
        embedding.list_again(self._repository, context)
        root_summary.doubt(self._repository, context)

    @handles(memories.VerifyIndex)
    def verify(self, request: memories.VerifyIndex, context: Context) -> Slices[memories.IndexVerified]:
        """Compare the index with the memories."""
        return indexing.verify(self._repository, request, context)

    @handles(memories.TextsToEmbed)
    def texts(self, request: memories.TextsToEmbed, context: Context) -> Slices[answers.UnembeddedTexts]:
        """Hand over texts to the embedder."""
        return embedding.texts(self._repository, request, context)

    @handles(memories.StoreVectors)
    def vectors(self, request: memories.StoreVectors, context: Context) -> Slices[answers.VectorsStored]:
        """Keep vectors."""
        return embedding.store(self._repository, request, context)

    # -- import and export ----------------------------------------------------

    @handles(transfer.StageLines)
    def stage_lines(self, request: transfer.StageLines, context: Context) -> transfer.Staged:
        """Keep a batch of lines until it is decided what becomes of them."""
        return import_staging.stage(self._repository, request, context)

    @handles(transfer.ReadStaged)
    def read_staged(self, request: transfer.ReadStaged, context: Context) -> transfer.Staged:
        """Answer how much of an import is here."""
        return import_staging.staged(request, context)

    @handles(transfer.TryLines)
    def try_lines(self, request: transfer.TryLines, context: Context) -> Slices[transfer.Counts]:
        """Count what would become of lines."""
        return import_staging.try_lines(self._repository, request, context)

    @handles(transfer.ApplyLines)
    def apply_lines(self, request: transfer.ApplyLines, context: Context) -> Slices[None]:
        """Write a batch of what was decided."""
        return import_staging.apply(self._repository, request, context)

    @handles(transfer.DropLines)
    def drop_lines(self, request: transfer.DropLines, context: Context) -> Slices[None]:
        """Remove a batch of what was given up."""
        return import_staging.drop(request, context)

    @handles(transfer.ExportPage)
    def export_page(self, request: transfer.ExportPage, context: Context) -> Slices[transfer.ExportedPage]:
        """Answer a page of an export."""
        return export.page(self._repository, request, context)
