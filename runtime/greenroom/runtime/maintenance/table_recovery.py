"""The tables of a file whose table of tables is lost.

It is one page, which each commit writes anew. The one of the commit before is as it was: LMDB overwrites
nothing that its two heads lead to. So what a store says of itself is read there, and the tables of today are
those of the pages in use to which no branch leads. Which is which is told by rows that were there one commit
before.

It has to add up. A page in use that cannot be read and that no branch leads to could be the topmost of a
table, or the beginning of a record that looks like pages; two tables that cannot be told apart are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.pages import NO_PAGE, Head, Page
from greenroom.runtime.maintenance.orphan_pages import Orphans
from greenroom.runtime.store.page_proofs import Prover, Tree


def recover_tables(prover: Prover, head: Head) -> tuple[Tree, list[Tree]]:
    """Return LMDB's table of tables one commit before the newest head, and the tables as they are.

    Raises:
        StoreDamagedError: they cannot be told for certain.
    """
    older = min(prover.heads())
    if head.depth != 1 or older.transaction + 1 != head.transaction:
        raise prover.damaged("there is no head of the commit before")
    names = prover.names(older)
    before = prover.tables(names)
    pages = dict(Orphans(prover, head, (), {head.root}).unreached())
    children = {child for page in pages.values() if page is not None for child in _children(page)}
    roots = pages.keys() - children
    if any(pages[root] is None for root in roots):
        raise prover.damaged("a page that is in use cannot be read, and nothing leads to it")
    tables: dict[int, Tree] = {}
    for root in roots:
        tree = _tree(prover, pages, root)
        place = _place(prover, pages, tree, before)
        if place in tables:
            raise prover.damaged("two tables cannot be told apart")
        tables[place] = tree
    if any(tree.rows and place not in tables for place, tree in enumerate(before)):
        raise prover.damaged("one of its tables is not found")
    return names, [tables.get(place, Tree(prover, NO_PAGE, 0)) for place in range(len(before))]


def _children(page: Page) -> list[int]:
    return [] if page.is_leaf else [value for value in page.values if isinstance(value, int)]


def _leaves(pages: Mapping[int, Page | None], number: int) -> list[Page | None]:
    """Return the leaves below a page; None for one that cannot be read."""
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
    """Return which table it is: the only one that had some of its rows one commit before."""
    places = set()
    for leaf in _leaves(pages, tree.root):
        for key in () if leaf is None else leaf.keys:
            for place, older in enumerate(before):
                with suppress(StoreDamagedError):
                    if older.get(key) is not None:
                        places.add(place)
        if places:
            break
    if len(places) != 1:
        raise prover.damaged("one of its tables cannot be told")
    return places.pop()
