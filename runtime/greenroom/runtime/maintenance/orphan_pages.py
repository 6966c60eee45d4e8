"""Leaves to which the way is lost: which of a file's pages are in use, and where they belong.

A leaf says itself what its rows are, but not whether it is still a part of its table: a free page may hold
an older version, or what was removed since. LMDB's list of free pages tells the two apart. Each page of a
file is free or reached from the newest head, so one that is neither lay below a branch that is lost:

1. Where the list of free pages is damaged, or calls a page free that is reached, nothing is taken.
2. A record of several pages may hold whatever its writer liked, a page's likeness too. So its pages are
   passed over, and where a page cannot be read those right behind it are not believed.
3. A leaf whose keys might belong to two tables is not taken.
4. If there are as many leaves as the table has, nothing is missing between them; else something may be,
   between any two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.pages import Big, Head, Page
from greenroom.runtime.store.page_proofs import Prover, Tree, child_of


class _Lost(NamedTuple):
    """A branch of a table that cannot be read: between which keys all of it lies."""

    tree: Tree
    lower: bytes
    upper: bytes | None

    def may_hold(self, leaf: Page) -> bool:
        return leaf.keys[0] >= self.lower and (self.upper is None or leaf.keys[-1] < self.upper)


class Found(NamedTuple):
    """The leaves of a lost branch, in order, and whether they are all."""

    leaves: list[Page]
    is_whole: bool


class Orphans:
    """Finds the leaves of lost branches, once somebody asks.

    Args:
        prover: Reads the file's pages, without looking at records.
        head: The newest.
        trees: The tables, and LMDB's own table of tables.
        reached: Pages that are known to be of such a table besides.
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
        """Return the leaves of a branch of a table that is lost."""
        if self._leaves is None:
            try:
                self._leaves = list(self._look())
            except StoreDamagedError:  # of the list of free pages: what is in use cannot be told
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

    def _look(self) -> Iterator[Page]:
        """Yield the leaves that are in use and not reached."""
        for _, page in self.unreached():
            if page is not None and page.is_leaf and page.keys:
                yield page

    def unreached(self) -> Iterator[tuple[int, Page | None]]:
        """Yield the pages in use that are not reached, but for those of records; None for one not believed.

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
                page = self._readable(number) if is_believed else None
                is_believed = page is not None
                if isinstance(page, int):
                    size = page
                else:
                    yield number, page
            number += size

    def _readable(self, number: int) -> Page | int | None:
        """Return a page, or of how many pages the record is that begins there; None if it is neither."""
        try:
            return self._prover.overflow_pages(number) or self._prover.page(number)
        except StoreDamagedError:
            return None

    def _reach(self, tree: Tree, number: int, depth: int, lower: bytes, upper: bytes | None) -> None:
        """Take note of the pages that can be reached, and of the branches that are lost."""
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
        """Return the free pages; those of the list itself are reached from then on.

        Raises:
            StoreDamagedError: the list is damaged.
        """
        listed = Tree(self._prover, self._head.free_root, self._head.free_depth, is_main=True)
        free: set[int] = set()
        for leaf in self._listing(listed.root, listed.depth, b"", None):
            for value in leaf.values:
                numbers = self._prover.numbers(value)
                if not free.isdisjoint(numbers) or max(numbers, default=2) > self._head.last_page:
                    raise self._prover.damaged("its list of free pages is not what was there")
                free.update(numbers)
                if isinstance(value, Big):
                    self._reached.update(self._prover.pages_of(value))
        return free

    def _listing(self, number: int, depth: int, lower: bytes, upper: bytes | None) -> Iterator[Page]:
        if not depth:
            return
        self._reached.add(number)
        page = self._prover.bounded(number, lower, upper, is_leaf=depth == 1, is_main=True, is_numbered=True)
        if page.is_leaf:
            yield page
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            yield from self._listing(below, depth - 1, low, high)
