"""Comparing every index with its memories, and those of corpora with their chunks, for `greenroom verify`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from greenroom.actors.core.auth.namespaces import KIND, imitated, memory_address, root_at
from greenroom.actors.knowledge.corpora.handlers.upkeep import VerifyCorpora
from greenroom.actors.memories.requests.requests import VerifyIndex
from greenroom.actors.memories.storage.directory import INDEX, NamespaceRow
from greenroom.runtime import (
    Address,
    GreenroomError,
    IndexReader,
    Procedure,
    ProcedureContext,
    Query,
    Slices,
    StoppedStore,
)


class MemoriesVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        memories: Memories that were compared.
        problems: How indexes differ from them: the root of the namespace, and a sentence each.
        rebuilt: The roots whose index was made anew.
        unindexed: How many memories of an older program nobody has searched yet, so that they are in no
            index and were not compared; ``rebuild`` and the first search put them into one.
        imitations: Roots that read like those of a user, an agent or a project, and are open to everybody.
        chunks: Chunks of documents that were compared; ``problems`` and ``rebuilt`` name their corpora, too,
            such as ``corpus user:ann:docs``.
    """

    memories: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]
    unindexed: int = 0
    imitations: list[str] = []
    chunks: int = 0


class AllNamespaces(Query[list[str]], frozen=True, kw_only=True):
    """List all roots below which there are memories; for the operator alone."""

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory, and look for what an older program left outside of it.

        In an encrypted store the directory alone says where memories are.
        """
        roots: dict[Address, str] = {}
        for row in reader.rows(INDEX, NamespaceRow):
            roots[row.address] = row.value.root
            if reader.should_yield():
                yield
        for address in reader.addresses(KIND):
            roots.setdefault(address, root_at(address.key))
            if reader.should_yield():
                yield
        return sorted(roots.values())


class Imitations(Query[list[str]], frozen=True, kw_only=True):
    """List the roots that read like those of somebody, and are open to everybody; for the operator alone."""

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        found: list[str] = []
        for row in reader.rows(INDEX, NamespaceRow):
            found += imitating([row.value.root])
            if reader.should_yield():
                yield
        return found


def stopped_imitations(store: StoppedStore) -> list[str]:
    """Return the same of a store that nobody owns."""
    return imitating(row.root for row in store.rows(INDEX, NamespaceRow))


class VerifyMemories(Procedure[MemoriesVerified], frozen=True, kw_only=True):
    """Compare the index of every namespace and corpus with what it is of; for the operator alone.

    Attributes:
        rebuild: Whether an index that differs is made anew.
    """

    rebuild: bool = False

    async def run(self, context: ProcedureContext) -> MemoriesVerified:
        """Ask the owners one after the other: each may have to read all that it has."""
        memories = unindexed = 0
        problems: list[tuple[str, str]] = []
        rebuilt: list[str] = []
        roots = await context.query(AllNamespaces())
        for root in roots:
            try:
                found = await context.ask(memory_address(root), VerifyIndex(rebuild=self.rebuild))
            except GreenroomError as error:
                problems.append((root, str(error)))
                continue
            memories += found.memories
            unindexed += found.unindexed
            problems += [(root, problem) for problem in found.problems]
            if found.rebuilt:
                rebuilt.append(root)
        of_corpora = await context.query(VerifyCorpora(rebuild=self.rebuild))
        return MemoriesVerified(
            memories=memories,
            problems=problems + [(f"corpus {name}", problem) for name, problem in of_corpora.problems],
            rebuilt=rebuilt + [f"corpus {name}" for name in of_corpora.rebuilt],
            chunks=of_corpora.chunks,
            unindexed=unindexed,
            imitations=imitating(roots),
        )


def imitating(roots: Iterable[str]) -> list[str]:
    """Return those of some roots that read like those of somebody."""
    return [root for root in roots if imitated(root) is not None]
