"""Recover the tables of a file with a lost table of tables.

That table is one page, which each commit writes anew. The page of the commit before is intact: LMDB does not
overwrite what its two heads lead to. So the store's identity is read there. The present tables are those
pages in use to which no branch leads; rows that existed one commit before identify them.

Everything must fit. An unreadable page in use without a branch to it could be a root, or the beginning of a
record that looks like pages. Two tables that cannot be distinguished are not accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.pages import NO_PAGE, Head, Page
from greenroom.runtime.maintenance.orphan_pages import Orphans
from greenroom.runtime.store.page_proofs import Prover, Tree


def recover_tables(prover: Prover, head: Head) -> tuple[Tree, list[Tree]]:
    """Return the table of tables of the commit before, and the present tables.

    Raises:
        StoreDamagedError: they cannot be identified.
    """
    older = min(prover.heads())
    if head.depth != 1 or older.transaction + 1 != head.transaction:
        raise prover.damaged("there is no head of the commit before")
    names = prover.names(older)
    before = prover.tables(names)
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
    """Return the number of the table that had these rows one commit before."""
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
        raise prover.damaged("one of its tables cannot be identified")
    return places.pop()
