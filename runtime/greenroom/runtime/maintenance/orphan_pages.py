"""Orphaned leaves: pages in use below lost branches, and their tables.

A leaf has its rows, but does not reveal whether it is still in use: a free page may hold an older version, or
removed rows. LMDB's list of free pages decides that. Each page of a file is free or reached from the newest
head; one that is neither lay below a lost branch:

1. If the list of free pages is damaged, or contains a reached page, no leaf is accepted.
2. A record of several pages may contain anything, even a copy of a page. So its pages are skipped, and after
   an unreadable page the next ones are not trusted.
3. A leaf with keys that fit two tables is not accepted.
4. If there are as many leaves as the table has, nothing is missing; otherwise rows may be missing between any
   two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.pages import Big, Head, Page
from greenroom.runtime.store.page_proofs import Prover, Tree, child_of


class _Lost(NamedTuple):
    """An unreadable branch of a table, with the bounds of its keys."""

    tree: Tree
    lower: bytes
    upper: bytes | None

    def may_hold(self, leaf: Page) -> bool:
        return leaf.keys[0] >= self.lower and (self.upper is None or leaf.keys[-1] < self.upper)


class Found(NamedTuple):
    """The leaves of a lost branch, in order, and whether they are complete."""

    leaves: list[Page]
    is_whole: bool


class Orphans:
    """Find the leaves of lost branches, at the first use.

    Args:
        trees: The tables, and LMDB's own table of tables.
        reached: Other pages that are known to be in use.
    """

    def __init__(
        self, prover: Prover, head: Head, trees: Sequence[Tree], reached: Collection[int] = ()
    ) -> None:
        self._prover = prover
        self._head = head
        self._trees = trees
        self._reached = set(reached)
        self._lost: list[_Lost] = []
        self._counts: dict[int, int] = {}
        self._leaves: list[Page] | None = None

    def below(self, tree: Tree, lower: bytes, upper: bytes | None) -> Found:
        """Return the leaves of a lost branch of a table."""
        if self._leaves is None:
            try:
                self._leaves = list(self._find_leaves())
            except StoreDamagedError:  # without the list of free pages, the pages in use are unknown
                self._leaves = []
        taken: dict[int, list[Page]] = {}
        for leaf in self._leaves:
            places = [place for place, lost in enumerate(self._lost) if lost.may_hold(leaf)]
            if len(places) == 1:
                taken.setdefault(places[0], []).append(leaf)
        mine = [place for place, lost in enumerate(self._lost) if lost.tree is tree]
        count = self._counts.get(tree.root, 0) + sum(len(taken.get(place, ())) for place in mine)
        leaves = sorted(taken.get(self._place(tree, lower, upper), ()), key=lambda leaf: leaf.keys[0])
        if any(one.keys[-1] >= other.keys[0] for one, other in pairwise(leaves)):
            return Found([], is_whole=False)
        return Found(leaves, is_whole=bool(leaves) and count == tree.leaves)

    def _place(self, tree: Tree, lower: bytes, upper: bytes | None) -> int:
        return self._lost.index(_Lost(tree, lower, upper)) if self._lost else -1

    def _find_leaves(self) -> Iterator[Page]:
        """Yield the leaves that are in use and not reached."""
        for _, page in self.find_unreached():
            if page is not None and page.is_leaf and page.keys:
                yield page

    def find_unreached(self) -> Iterator[tuple[int, Page | None]]:
        """Yield unreached pages in use, without those of records; None for an untrusted one.

        Raises:
            StoreDamagedError: the list of free pages is damaged.
        """
        for tree in self._trees:
            self._reach(tree, tree.root, tree.depth, b"", None)
        free = self._free()
        if self._reached & free:
            raise self._prover.damaged("a page that is in use is called free")
        number, is_believed = 2, True
        while number <= self._head.last_page:
            size = 1
            if number in self._reached or number in free:
                is_believed = True
            else:
                page = self._read_page(number) if is_believed else None
                is_believed = page is not None
                if isinstance(page, int):
                    size = page
                else:
                    yield number, page
            number += size

    def _read_page(self, number: int) -> Page | int | None:
        """Return a page, the size in pages of a record there, or None."""
        try:
            return self._prover.overflow_pages(number) or self._prover.page(number)
        except StoreDamagedError:
            return None

    def _reach(self, tree: Tree, number: int, depth: int, lower: bytes, upper: bytes | None) -> None:
        """Record the reached pages and the lost branches."""
        if not depth:
            return
        self._reached.add(number)
        try:
            page = self._prover.bounded(number, lower, upper, is_leaf=depth == 1)
        except StoreDamagedError:
            if depth > 1:
                self._lost.append(_Lost(tree, lower, upper))
            else:
                self._count(tree)
            return
        if page.is_leaf:
            self._count(tree)
            for value in page.values:
                if isinstance(value, Big):
                    self._reached.update(self._prover.pages_of(value))
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            self._reach(tree, below, depth - 1, low, high)

    def _count(self, tree: Tree) -> None:
        self._counts[tree.root] = self._counts.get(tree.root, 0) + 1

    def _free(self) -> set[int]:
        """Return the free pages; the pages of the list itself count as reached."""
        listed = Tree(self._prover, self._head.free_root, self._head.free_depth, is_main=True)
        free: set[int] = set()
        for leaf in self._walk_list(listed.root, listed.depth, b"", None):
            for value in leaf.values:
                numbers = self._prover.numbers(value)
                if not free.isdisjoint(numbers) or max(numbers, default=2) > self._head.last_page:
                    raise self._prover.damaged("its list of free pages is not what was there")
                free.update(numbers)
                if isinstance(value, Big):
                    self._reached.update(self._prover.pages_of(value))
        return free

    def _walk_list(self, number: int, depth: int, lower: bytes, upper: bytes | None) -> Iterator[Page]:
        if not depth:
            return
        self._reached.add(number)
        page = self._prover.bounded(number, lower, upper, is_leaf=depth == 1, is_main=True, is_numbered=True)
        if page.is_leaf:
            yield page
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            yield from self._walk_list(below, depth - 1, low, high)
