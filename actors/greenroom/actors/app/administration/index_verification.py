"""Compare every index with its memories or chunks, for `greenroom verify`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from greenroom.actors.core.auth.namespaces import KIND, find_imitated, memory_address, root_at
from greenroom.actors.knowledge.corpora.handlers.upkeep import VerifyCorpora
from greenroom.actors.memories.requests.requests import VerifyIndex
from greenroom.actors.memories.storage.directory import INDEX, NamespaceRow, rows
from greenroom.runtime import (
    Address,
    GreenroomError,
    IndexReader,
    Procedure,
    ProcedureContext,
    Slices,
    StoppedStore,
)


class MemoriesVerified(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `VerifyMemories`.

    Attributes:
        problems: For each difference, the root of the namespace, and a sentence.
        unindexed: Memories of an older program. No search has indexed them yet, so they were not compared.
            ``rebuild`` and the first search index them.
        imitations: Open roots with names that imitate a user, an agent or a project.
        chunks: The number of compared chunks; ``problems`` and ``rebuilt`` also name corpora, such as
            ``corpus user:ann:docs``.
    """

    memories: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]
    unindexed: int = 0
    imitations: list[str] = []
    chunks: int = 0


class AllNamespaces(Procedure[list[str]], frozen=True, kw_only=True):
    """List all roots with memories; for the operator only."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory, and find memories of an older program outside of it.

        In an encrypted store only the directory says where memories are.
        """
        roots: dict[Address, str] = {}
        for row in rows(reader):
            roots[row.address] = row.value.root
            yield
        for address in reader.addresses(KIND):
            roots.setdefault(address, root_at(address.key))
            yield
        return sorted(roots.values())


class Imitations(Procedure[list[str]], frozen=True, kw_only=True):
    """List the open roots with names that imitate a person's root; for the operator only."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        found: list[str] = []
        for row in rows(reader):
            found += imitating([row.value.root])
            yield
        return found


def stopped_imitations(store: StoppedStore) -> list[str]:
    """Return the roots that `Imitations` lists, for a store without an owner process."""
    return imitating(row.root for row in store.rows(INDEX, NamespaceRow))


class VerifyMemories(Procedure[MemoriesVerified], frozen=True, kw_only=True):
    """Compare the index of every namespace and corpus with its source; for the operator only."""

    rebuild: bool = False

    async def run(self, context: ProcedureContext) -> MemoriesVerified:
        """Ask the owners one after another: each may have to read all its data."""
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
    """Return the roots with names that imitate a person's root."""
    return [root for root in roots if find_imitated(root) is not None]
