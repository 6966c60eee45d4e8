"""Comparing every index with its memories, for `greenroom verify`."""

from __future__ import annotations

import msgspec

from greenroom.actors._namespaces import memory_address
from greenroom.actors.memory._directory import INDEX, NamespaceRow
from greenroom.actors.requests._upkeep import VerifyIndex
from greenroom.runtime import Desk, GreenroomError, IndexReader, Procedure, Query, Slices


class MemoriesVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        memories: Memories that were compared.
        problems: How indexes differ from them: the root of the namespace, and a sentence each.
        rebuilt: The roots whose index was made anew.
    """

    memories: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]


class AllNamespaces(Query[list[str]], frozen=True, kw_only=True):
    """List all roots below which there are memories; for the operator alone."""

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        found: list[str] = []
        for row in reader.rows(INDEX, NamespaceRow):
            found.append(row.value.root)
            if reader.slice_over():
                yield
        return found


class VerifyMemories(Procedure[MemoriesVerified], frozen=True, kw_only=True):
    """Compare the index of every namespace with its memories; for the operator alone.

    Attributes:
        rebuild: Whether an index that differs is made anew.
    """

    rebuild: bool = False

    async def run(self, desk: Desk) -> MemoriesVerified:
        """Ask the owners one after the other: each may have to read all that it has."""
        memories = 0
        problems: list[tuple[str, str]] = []
        rebuilt: list[str] = []
        for root in await desk.query(AllNamespaces()):
            try:
                found = await desk.ask(memory_address(root), VerifyIndex(rebuild=self.rebuild))
            except GreenroomError as error:
                problems.append((root, str(error)))
                continue
            memories += found.memories
            problems += [(root, problem) for problem in found.problems]
            if found.rebuilt:
                rebuilt.append(root)
        return MemoriesVerified(memories=memories, problems=problems, rebuilt=rebuilt)
