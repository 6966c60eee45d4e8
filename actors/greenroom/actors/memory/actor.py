"""The memory actor: which request is handled where."""

from __future__ import annotations

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.index import TidyIndex
from greenroom.actors.memory import _gist as gist
from greenroom.actors.memory import embedding, keyvalue, listing, statistics
from greenroom.actors.memory import forget as forgetting
from greenroom.actors.memory import key_lookup as by_key
from greenroom.actors.memory import ratings as rating
from greenroom.actors.memory import reads as reading
from greenroom.actors.memory import removal as removing
from greenroom.actors.memory import search as finding
from greenroom.actors.memory import store_requests as storing
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory import verify as verifying
from greenroom.actors.memory.records import names_in
from greenroom.actors.memory.repository import Keeper
from greenroom.actors.memory.resource import memory_resource
from greenroom.actors.memory.transfer import MemoryExchange
from greenroom.actors.schemas import index_checks as upkeep
from greenroom.actors.schemas import keyvalue as requests
from greenroom.actors.schemas import memories, replies
from greenroom.actors.schemas import memory_replies as answers
from greenroom.actors.schemas import resource_reads as resources
from greenroom.runtime import Context, Restate, Slices, handles


class MemoryActor(MemoryExchange):
    """The memories below one root, addressed by it; those of an agent by the agent's id alone."""

    kind = "memory"
    names = staticmethod(names_in)

    def activate(self, context: Context) -> None:
        """Find the highest number in use; everything else stays on disk."""
        self._keeper = Keeper(context)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self.size + self._keeper.resident_bytes()

    # -- an agent's key-value memory -----------------------------------------

    @handles(requests.SetMemory)
    def set_value(
        self, request: requests.SetMemory, context: Context
    ) -> replies.MemoryStored | Slices[replies.MemoryStored]:
        """Store a value."""
        return keyvalue.store(self._keeper, request, context)

    @handles(requests.GetMemory)
    def get_value(
        self, request: requests.GetMemory, context: Context
    ) -> replies.MemoryRead | Slices[replies.MemoryRead]:
        """Answer a value: the agent's own, or the one in a namespace that is named."""
        if request.namespace is not None:
            return reading.value(self._keeper, request, context)
        return keyvalue.read(self._keeper, request, context)

    @handles(requests.ListMemory)
    def entries(self, request: requests.ListMemory, context: Context) -> Slices[replies.MemoryList]:
        """Answer a page of entries."""
        return keyvalue.entries(request, context)

    @handles(requests.DeleteMemory)
    def delete(self, request: requests.DeleteMemory, context: Context) -> replies.MemoryDeleted:
        """Delete an entry."""
        return keyvalue.delete(self._keeper, request, context)

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
        return storing.store(self._keeper, request, context)

    @handles(memories.UpdateMemory)
    def update(self, request: memories.UpdateMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store a new version of a memory."""
        return storing.update(self._keeper, request, context)

    @handles(memories.ForgetMemory)
    def forget(self, request: memories.ForgetMemory, context: Context) -> Slices[answers.MemoryForgotten]:
        """Forget memories, or list those that would be."""
        return forgetting.forget(self._keeper, request, context)

    @handles(memories.RateMemory)
    def rate(self, request: memories.RateMemory, context: Context) -> Slices[answers.MemoryRated]:
        """Take a rating."""
        return rating.rate(self._keeper, request, context)

    @handles(memories.ReadMemory)
    def read(self, request: memories.ReadMemory, context: Context) -> Slices[answers.MemoryShown]:
        """Answer one memory."""
        return reading.read(self._keeper, request, context)

    @handles(memories.ListVersions)
    def versions(self, request: memories.ListVersions, context: Context) -> Slices[answers.MemoryVersions]:
        """Answer a page of a memory's versions."""
        return reading.versions(self._keeper, request, context)

    @handles(memories.ListMemories)
    def page(self, request: memories.ListMemories, context: Context) -> Slices[answers.MemoryPage]:
        """Answer a page of memories."""
        return listing.page(self._keeper, request, context)

    @handles(memories.MemoryStats)
    def count(self, request: memories.MemoryStats, context: Context) -> Slices[answers.MemoryStatistics]:
        """Count memories."""
        return statistics.count(self._keeper, request, context)

    @handles(memories.FindMemories)
    def find(self, request: memories.FindMemories, context: Context) -> Slices[answers.Found]:
        """Search."""
        return finding.find(self._keeper, request, context)

    @handles(memories.LocateKey)
    def locate(self, request: memories.LocateKey, context: Context) -> Slices[answers.KeyLocated]:
        """Answer where a key lies."""
        return by_key.locate(self._keeper, request, context)

    @handles(memories.NoteUses)
    def note_uses(self, request: memories.NoteUses, context: Context) -> None:
        """Count what a search over several owners has shown."""
        finding.note_uses(self._keeper, request, context)

    # -- the memory service ----------------------------------------------------

    @handles(memories.AddMemory)
    def add(self, request: memories.AddMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store the first version of a memory."""
        return storing.add(self._keeper, request, context)

    @handles(memories.ReviseMemory)
    def revise(self, request: memories.ReviseMemory, context: Context) -> Slices[answers.MemorySaved]:
        """Store the next version of a memory."""
        return storing.revise(self._keeper, request, context)

    @handles(memories.DropMemory)
    def drop(self, request: memories.DropMemory, context: Context) -> Slices[answers.MemoryForgotten]:
        """Delete a memory softly."""
        return forgetting.drop(self._keeper, request, context)

    # -- by itself -------------------------------------------------------------

    @handles(requests.SweepMemory)
    def sweep(self, _: requests.SweepMemory, context: Context) -> Slices[None]:
        """Remove a batch of what has expired or was purged, and come back for the rest."""
        return removing.sweep(self._keeper, context)

    @handles(requests.WriteUses)
    def write_uses(self, _: requests.WriteUses, context: Context) -> Slices[None]:
        """Write down how often memories were used."""
        return self._keeper.uses.write(context, self._keeper.index)

    @handles(requests.UpgradeMemory)
    def upgrade(self, _: requests.UpgradeMemory, context: Context) -> Slices[None]:
        """Index a batch of what an older program stored."""
        return upgrading.step(self._keeper, context)

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        """Do a step of the index's upkeep."""
        yield from self._keeper.index.tidy(context)
        yield from gist.tidy(self._keeper, context)

    @handles(requests.MakeGist)
    def make_gist(self, _: requests.MakeGist, context: Context) -> Slices[None]:
        """Say in short what there is, for searches that choose whom they ask."""
        yield from upgrading.finish(self._keeper, context)
        yield from gist.make(self._keeper, context)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the rows again by which searches and the embedder find the root."""
        context.use_reserve()
        self._keeper.list_again(context)
        embedding.list_again(self._keeper, context)

    @handles(upkeep.VerifyIndex)
    def verify(self, request: upkeep.VerifyIndex, context: Context) -> Slices[upkeep.IndexVerified]:
        """Compare the index with the memories."""
        return verifying.verify(self._keeper, request, context)

    @handles(memories.TextsToEmbed)
    def texts(self, request: memories.TextsToEmbed, context: Context) -> Slices[answers.UnembeddedTexts]:
        """Hand over texts to the embedder."""
        return embedding.texts(self._keeper, request, context)

    @handles(memories.StoreVectors)
    def vectors(self, request: memories.StoreVectors, context: Context) -> Slices[answers.VectorsStored]:
        """Keep vectors."""
        return embedding.store(self._keeper, request, context)
