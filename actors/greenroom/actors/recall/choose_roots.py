"""Whom a search asks: all roots where the caller may see something, or of too many the best."""

from __future__ import annotations

import msgspec

from greenroom.actors.auth import namespaces as names
from greenroom.actors.base.threads import imported
from greenroom.actors.memory import directory
from greenroom.actors.memory.directory import NamespaceRow
from greenroom.actors.recall.summary_index import SummaryFollower
from greenroom.actors.schemas import memory_types as kinds
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.actors.schemas.vectors import QueryVectors
from greenroom.runtime import IndexReader, Query, Slices

MOST = 100
"""Roots that one search asks at most. Where there are no more, all are asked."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask.

    Attributes:
        roots: Their names, those that fit best first.
        chosen_from: How many roots have something that can match; None: these are all that may be seen.
        unknown: Roots of which it is not known what there is.
    """

    roots: list[str]
    chosen_from: int | None = None
    unknown: list[str] = []


class ChooseRoots(Query[Chosen], frozen=True, kw_only=True):
    """Choose the roots that a search asks, among those below which its caller may see memories; internal.

    Attributes:
        below: As `ListNamespaces.prefix`.
        text: The query, if there is one.
        mode: Of the search.
        filters: What narrows it.
        vectors: The query as the embedder sees it; with it, what shares no word with the query can match.
    """

    below: kinds.Below | None = None
    text: str | None = None
    mode: kinds.SearchMode = "semantic"
    filters: MemoryFilters = MemoryFilters()
    vectors: QueryVectors | None = None

    def run(self, reader: IndexReader) -> Slices[Chosen]:
        """Read the directory if it is short, and look into the overview otherwise."""
        few = self._few(reader)
        if few is not None:
            return Chosen(roots=few)
        overview = yield from reader.cached(SummaryFollower).updated(reader)
        yield from imported("greenroom.actors.recall.root_ranking")
        from greenroom.actors.recall.root_ranking import (  # noqa: PLC0415 - needs numpy, loaded by now
            RootQuery,
            RootRanking,
        )

        query = RootQuery(self.below, self.text, self.mode == "exact", self.filters, self.vectors)
        choice = RootRanking(overview, query, reader.principal, reader.should_yield)
        if len(choice.visible) <= MOST:
            return Chosen(roots=choice.visible)
        found = yield from choice.made()
        return Chosen(
            roots=[overview.name(number) for number in found[:MOST]],
            chosen_from=len(found),
            unknown=choice.unknown,
        )

    def _few(self, reader: IndexReader) -> list[str] | None:
        """Return all visible roots, or None if there are too many rows to look at each."""
        root = None if self.below is None else names.root_of(self.below)
        found: list[str] = []
        prefix = names.tag_of_root(root) if root is not None and ":" in root else b""
        for looked, row in enumerate(reader.rows(directory.INDEX, NamespaceRow, prefix=prefix)):
            if looked == MOST:
                return None
            is_below = root is None or names.is_below(row.value.root, root)
            if is_below and directory.may_have_something(reader.principal, row.value):
                found.append(row.value.root)
        return found
