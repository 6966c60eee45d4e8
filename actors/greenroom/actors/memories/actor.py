"""The memory actor: which request is handled where."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies import replies
from greenroom.actors.index import TidyIndex
from greenroom.actors.memories.reading import browsing, export, map_rows, reads, search, statistics
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests import review as memory_review
from greenroom.actors.memories.requests import transfer
from greenroom.actors.memories.requests.map_replies import MapRoot
from greenroom.actors.memories.storage import embedding, indexing, root_summary
from greenroom.actors.memories.storage.records import names_in
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.upkeep import changes, erasure, forgotten, keyvalue, pairs
from greenroom.actors.memories.upkeep import review_actions as restoring
from greenroom.actors.memories.writing import forget, import_staging, ratings, removal, store_requests
from greenroom.actors.schemas import keyvalue as requests
from greenroom.actors.schemas import resources
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.runtime import Actor, Context, Message, Restate, Slices, handles

T = TypeVar("T")
R = TypeVar("R")


def _by(
    message_type: type[Message[R]], function: Callable[[MemoryRepository, T, Context], R | Slices[R]]
) -> Callable[[MemoryActor, T, Context], R | Slices[R]]:
    """Handle a message by a function of the memories below the root."""

    def handle(actor: MemoryActor, message: T, context: Context) -> R | Slices[R]:
        return function(actor.repository, message, context)

    return handles(message_type)(handle)


class MemoryActor(Actor):
    """The memories below one root, addressed by it; those of an agent by the agent's id alone."""

    kind = "memory"
    names = staticmethod(names_in)

    def activate(self, context: Context) -> None:
        """Find the highest number in use; everything else stays on disk."""
        self.repository = MemoryRepository(context)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self.size + self.repository.resident_bytes()

    # -- an agent's key-value memory -----------------------------------------

    set_value = _by(requests.SetMemory, keyvalue.store)

    @handles(requests.GetMemory)
    def get_value(
        self, request: requests.GetMemory, context: Context
    ) -> replies.MemoryRead | Slices[replies.MemoryRead]:
        """Answer a value: the agent's own, or the one that an id or a namespace names."""
        if request.namespace is not None or request.memory_id is not None:
            return reads.value(self.repository, request, context)
        return keyvalue.read(self.repository, request, context)

    @handles(requests.ListMemory)
    def entries(self, request: requests.ListMemory, context: Context) -> Slices[replies.MemoryList]:
        """Answer a page of entries."""
        return keyvalue.entries(request, context)

    delete = _by(requests.DeleteMemory, keyvalue.delete)

    @handles(resources.ReadResource)
    def resource(self, request: resources.ReadResource, context: Context) -> Slices[resources.MemoryResource]:
        """Answer the memory as a resource, to its owner."""
        if policy.memory_owner(context.principal) != context.address.key:
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        return keyvalue.resource(request.uri, context)

    # -- the memory layer ------------------------------------------------------

    store = _by(memories.StoreMemory, store_requests.store)
    update = _by(memories.UpdateMemory, store_requests.update)
    forget_memories = _by(memories.ForgetMemory, forget.forget)
    rate = _by(memories.RateMemory, ratings.rate)
    read = _by(memories.ReadMemory, reads.read)
    look_up = _by(memories.LookUpMemories, reads.look_up)
    versions = _by(memories.ListVersions, reads.versions)
    page = _by(memories.ListMemories, reads.page)
    count = _by(memories.MemoryStats, statistics.count)
    tally = _by(memories.CountMemories, statistics.tally)
    find = _by(memories.FindMemories, search.find)
    locate = _by(memories.LocateKey, reads.locate)
    near = _by(memories.FindNearKeys, reads.near_keys)
    mapped = _by(MapRoot, map_rows.mapped)
    note_help = _by(memories.NoteHelp, ratings.note_help)
    note_uses = _by(memories.NoteUses, search.count_uses)

    # -- people who go through memories ----------------------------------------

    browse = _by(memory_review.BrowseMemories, browsing.browse)
    inspect = _by(memory_review.InspectMemory, restoring.inspect)
    restore = _by(memory_review.RestoreMemory, restoring.restore)
    merge = _by(memory_review.MergeMemories, restoring.merge)
    move = _by(memory_review.MoveMemory, restoring.move)
    withdraw_rating = _by(memory_review.WithdrawRating, ratings.withdraw)
    list_forgotten = _by(memory_review.ListForgotten, forgotten.list_forgotten)
    list_pairs = _by(memory_review.ListMemoryPairs, pairs.pairs)
    settle_pair = _by(memory_review.SettleMemoryPair, pairs.settle)

    # -- the memory service ----------------------------------------------------

    add = _by(memories.AddMemory, store_requests.add)
    revise = _by(memories.ReviseMemory, store_requests.revise)
    drop = _by(memories.DropMemory, forget.drop)
    change = _by(memories.ChangeMemories, changes.change)
    prolong = _by(memories.ProlongMemories, changes.prolong)
    sub_namespaces = _by(memories.ListSubNamespaces, changes.namespaces)

    # -- by itself -------------------------------------------------------------

    @handles(requests.SweepMemory)
    def sweep(self, _: requests.SweepMemory, context: Context) -> Slices[None]:
        """Remove a batch of what has expired or was purged, and come back for the rest."""
        return removal.sweep(self.repository, context)

    @handles(requests.WriteUses)
    def write_uses(self, _: requests.WriteUses, context: Context) -> Slices[None]:
        """Write down how often memories were used, and tell those who see them."""
        self.repository.publish_about(context, *self.repository.uses.used.values())
        return self.repository.uses.write(context, self.repository.index)

    @handles(requests.UpgradeMemory)
    def upgrade(self, _: requests.UpgradeMemory, context: Context) -> Slices[None]:
        """Index a batch of what an older program stored."""
        return indexing.step(self.repository, context)

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        """Do a step of the index's upkeep."""
        yield from self.repository.index.compact(context)
        yield from root_summary.tidy(self.repository, context)

    @handles(requests.SummarizeRoot)
    def summarize(self, _: requests.SummarizeRoot, context: Context) -> Slices[None]:
        """Say in short what there is, for searches that choose whom they ask."""
        yield from indexing.finish(self.repository, context)
        yield from root_summary.make(self.repository, context)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the rows again by which searches and the embedder find the root."""
        context.use_reserve()
        self.repository.list_again(context)
        embedding.list_again(self.repository, context)
        root_summary.doubt(self.repository, context)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase what a person has here, and forget what was known of it."""
        erased = yield from erasure.erase(self.repository, request, context)
        if not request.dry_run and request.person.has_root(self.repository.root):
            self.repository = MemoryRepository(context)
        return erased

    verify = _by(memories.VerifyIndex, indexing.verify)
    texts = _by(memories.TextsToEmbed, embedding.texts)
    vectors = _by(memories.StoreVectors, embedding.store)

    # -- import and export ----------------------------------------------------

    stage_lines = _by(transfer.StageLines, import_staging.stage)

    @handles(transfer.ReadStaged)
    def read_staged(self, request: transfer.ReadStaged, context: Context) -> transfer.Staged:
        """Answer how much of an import is here."""
        return import_staging.staged(request, context)

    try_lines = _by(transfer.TryLines, import_staging.try_lines)
    apply_lines = _by(transfer.ApplyLines, import_staging.apply)

    @handles(transfer.DropLines)
    def drop_lines(self, request: transfer.DropLines, context: Context) -> Slices[None]:
        """Remove a batch of what was given up."""
        return import_staging.drop(request, context)

    export_page = _by(transfer.ExportPage, export.page)
