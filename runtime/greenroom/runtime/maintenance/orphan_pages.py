"""Orphaned pages: leaves below lost branches, and tables without their table of tables.

A leaf contains its rows, but does not reveal whether it is still in use: a free page may hold an older
version, or removed rows. LMDB's list of free pages decides that. Each page of a file is free or reached from
the newest head. A page that is neither lay below a lost branch:

1. If the list of free pages is damaged, or contains a reached page, no leaf is accepted.
2. A record of several pages may contain any bytes, even a copy of a page. So its pages are skipped, and pages
   after an unreadable page are not trusted.
3. A leaf with keys that fit two tables is not accepted.
4. If the number of leaves is the table's number, nothing is missing. Otherwise rows may be missing between
   any two leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.pages import NO_PAGE, Big, Head, Page
from greenroom.runtime.lmdb.recent import NUMBER_BYTES
from greenroom.runtime.store.page_proofs import Prover, Tree, child_of


class _Lost(NamedTuple):
    """An unreadable branch of a table, with the bounds of its keys."""

    tree: Tree
    lower: bytes
    upper: bytes | None

    def may_hold(self, leaf: Page) -> bool:
        return leaf.keys[0] >= self.lower and (self.upper is None or leaf.keys[-1] < self.upper)


class Orphans:
    """Find the leaves of lost branches, at the first use.

    ``trees`` are the tables and LMDB's own table of tables; ``reached`` are other pages in use.
    """

    def __init__(
        self, prover: Prover, head: Head, trees: Sequence[Tree], reached: Collection[int] = ()
    ) -> None:
        self._prover = prover
        self._head = head
        self._trees = trees
        self._reached = set(reached)
        self._lost: list[_Lost] = []
        self._counts: Counter[int] = Counter()
        self._leaves: list[Page] | None = None

    def below(self, tree: Tree, lower: bytes, upper: bytes | None) -> tuple[list[Page], bool]:
        """Return the leaves of a lost branch in order, and whether they are complete."""
        if self._leaves is None:
            try:
                found = (page for _, page in self.find_unreached() if page is not None)
                self._leaves = [page for page in found if page.is_leaf and page.keys]
            except StoreDamagedError:  # without the list of free pages, the pages in use are unknown
                self._leaves = []
        taken: dict[int, list[Page]] = {}
        for leaf in self._leaves:
            places = [place for place, lost in enumerate(self._lost) if lost.may_hold(leaf)]
            if len(places) == 1:
                taken.setdefault(places[0], []).append(leaf)
        mine = [place for place, lost in enumerate(self._lost) if lost.tree is tree]
        count = self._counts[tree.root] + sum(len(taken.get(place, ())) for place in mine)
        place = self._lost.index(_Lost(tree, lower, upper)) if self._lost else -1
        leaves = sorted(taken.get(place, ()), key=lambda leaf: leaf.keys[0])
        if any(one.keys[-1] >= other.keys[0] for one, other in pairwise(leaves)):
            return [], False
        return leaves, bool(leaves) and count == tree.leaves

    def find_unreached(self) -> Iterator[tuple[int, Page | None]]:
        """Yield unreached pages in use, but no pages of records; None for an untrusted page.

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
        """Return the page; for a record its number of pages; None if unreadable."""
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
                self._counts[tree.root] += 1
            return
        if page.is_leaf:
            self._counts[tree.root] += 1
            for value in page.values:
                if isinstance(value, Big):
                    self._reached.update(self._prover.pages_of(value))
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            self._reach(tree, below, depth - 1, low, high)

    def _free(self) -> set[int]:
        """Return the free pages; the pages of the list itself count as reached."""
        free: set[int] = set()
        for leaf in self._walk_list(self._head.free_root, self._head.free_depth, b"", None):
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


def recover_tables(prover: Prover, head: Head) -> tuple[Tree, list[Tree]]:
    """Return the table of tables of the previous commit, and the current tables.

    The lost table of tables is one page; each commit writes a new one. The previous commit's page is intact:
    LMDB does not overwrite pages that its two heads lead to. So the store's identity is read there. Current
    tables are the pages in use that no branch leads to; rows from the previous commit identify them.

    Everything must fit. An unreadable page in use without a branch to it could be a root, or the beginning of
    a record that looks like pages. Two tables that cannot be distinguished are not accepted.

    Raises:
        StoreDamagedError: the tables cannot be identified.
    """
    older = min(prover.heads())
    if head.depth != 1 or older.transaction + 1 != head.transaction:
        raise prover.damaged("there is no head of the commit before")
    names = prover.names(older)
    before = [*prover.tables(names), prover.recent(names)]
    pages = dict(Orphans(prover, head, (), {head.root}).find_unreached())
    children = {child for page in pages.values() if page is not None for child in _children(page)}
    roots = pages.keys() - children
    if any(pages[root] is None for root in roots):
        raise prover.damaged("a page that is in use cannot be read, and nothing leads to it")
    tables: dict[int, Tree] = {}
    for root in roots:
        tree = _tree(prover, pages, root)
        place = _place(prover, pages, tree, before)
        if place in tables:
            raise prover.damaged("two tables cannot be distinguished")
        tables[place] = tree
    if any(tree.rows and place not in tables for place, tree in enumerate(before[:-1])):
        raise prover.damaged("one of its tables is not found")
    return names, [tables.get(place, Tree(prover, NO_PAGE, 0)) for place in range(len(before))]


def _children(page: Page) -> list[int]:
    return [] if page.is_leaf else [value for value in page.values if isinstance(value, int)]


def _leaves(pages: Mapping[int, Page | None], number: int) -> list[Page | None]:
    """Return the leaves below a page; None for a leaf that cannot be read."""
    page = pages.get(number)
    if page is None or page.is_leaf:
        return [page]
    return [leaf for child in _children(page) for leaf in _leaves(pages, child)]


def _tree(prover: Prover, pages: Mapping[int, Page | None], root: int) -> Tree:
    depth, number = 1, root
    while (page := pages.get(number)) is not None and not page.is_leaf:
        depth, number = depth + 1, _children(page)[0]
    leaves = _leaves(pages, root)
    return Tree(prover, root, depth, sum(len(leaf.keys) for leaf in leaves if leaf is not None), len(leaves))


def _place(prover: Prover, pages: Mapping[int, Page | None], tree: Tree, before: Sequence[Tree]) -> int:
    """Return the number of the table that had these rows in the previous commit."""
    places = set()
    for leaf in _leaves(pages, tree.root):
        for key in () if leaf is None else leaf.keys:
            for place, older in enumerate(before):
                with suppress(StoreDamagedError):
                    if older.get(key) is not None:
                        places.add(place)
        if places:
            break
    if not places and before[-1].rows == 0 and _has_numbers(pages, tree.root):
        return len(before) - 1  # the first recent rows since the last time that they were applied
    if len(places) != 1:
        raise prover.damaged("one of its tables cannot be identified")
    return places.pop()


def _has_numbers(pages: Mapping[int, Page | None], root: int) -> bool:
    """Return whether the keys of a table are numbers, as those of recent rows."""
    keys = [key for leaf in _leaves(pages, root) if leaf is not None for key in leaf.keys]
    return bool(keys) and all(len(key) == NUMBER_BYTES and key[0] == 0 for key in keys)
