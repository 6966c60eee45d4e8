"""Which rows of the index may be seen and fit the filters. Needs numpy; imported at the first search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greenroom.actors import _namespaces as names
from greenroom.actors import _policy
from greenroom.actors.index import FOREVER
from greenroom.actors.memory._filters import created_within
from greenroom.actors.ranking import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from greenroom.actors._principal import Principal
    from greenroom.actors.index._corpus import Corpus
    from greenroom.actors.requests._memory_replies import MemoryFilters

    Mask = npt.NDArray[np.bool_]

KEPT_VIEWS = 4


class Seen(NamedTuple):
    """What one reader may see.

    Attributes:
        view: The rows that are there for it.
        superseded: Those of them that others of them take the place of; None if there are none.
    """

    view: View
    superseded: Mask | None


class Views:
    """What readers may see, kept until the index changes or something expires."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bool, ...], tuple[int, int, Seen]] = {}

    def of(self, corpus: Corpus, principal: Principal, now: int) -> Seen:
        """Return the rows that ``principal`` may see at the time ``now`` (microseconds since 1970)."""
        allowed = tuple(_policy.may_see_memory(principal, shelf) for shelf in corpus.shelves)
        kept = self._kept.pop(allowed, None)
        if kept is None or kept[0] != corpus.arrangement or now >= kept[1]:
            kept = _view(corpus, allowed, now)
        self._kept[allowed] = kept
        if len(self._kept) > KEPT_VIEWS:
            del self._kept[next(iter(self._kept))]
        return kept[2]


def _view(corpus: Corpus, allowed: tuple[bool, ...], now: int) -> tuple[int, int, Seen]:
    """Return a view with the arrangement of rows for which it is right, and until when it is."""
    visible = corpus.alive & (corpus.expires > now)
    if not all(allowed):
        visible &= np.array(allowed, np.bool_)[corpus.shelf]
    expires = int(corpus.expires.min(where=visible, initial=FOREVER))
    seen = Seen(View(corpus, visible), _superseded(corpus, visible))
    return corpus.arrangement, expires, seen


def _superseded(corpus: Corpus, visible: Mask) -> Mask | None:
    """Return the visible rows whose place other visible rows take."""
    later = np.flatnonzero(corpus.supersedes)
    taken = corpus.supersedes[later[visible[later]]]
    if not len(taken):
        return None
    numbers = corpus.numbers
    is_taken = np.zeros(int(max(numbers.max(), taken.max())) + 1, np.bool_)
    is_taken[taken] = True
    superseded = visible & is_taken[numbers]
    return superseded if superseded.any() else None


class Narrowing:
    """Filters, applied one after the other.

    Attributes:
        wanted: The rows that are left.
        counts: How many were left after each filter, in the order of filtering.
    """

    def __init__(self, seen: Seen) -> None:
        view = seen.view
        self._superseded = seen.superseded
        self._corpus: Corpus = view.corpus  # type: ignore[assignment]  # a view knows less of it
        self.wanted: Mask = view.visible
        self.counts: dict[str, int] = {"visible": view.count}

    def apply(self, filters: MemoryFilters, now: int) -> None:
        """Narrow by everything that the index knows; keys and sessions it does not."""
        corpus = self._corpus
        if not filters.superseded and self._superseded is not None:
            self._keep("superseded", ~self._superseded)
        if filters.namespace is not None:
            self._named("namespace", corpus.namespace, corpus.namespaces, _below(filters.namespace))
        after, before = created_within(filters, now)
        if filters.after is not None or filters.before is not None or filters.max_age_days is not None:
            self._keep("time", (corpus.created >= after) & (corpus.created < before))
        if filters.tags is not None:
            self._keep("tags", self._tagged(filters.tags, every=filters.tag_match == "all"))
        if filters.kind is not None:
            self._named("kind", corpus.kind, corpus.kinds, filters.kind.__eq__)
        if filters.scope is not None:
            self._named(
                "scope", corpus.shelf, [shelf.scope for shelf in corpus.shelves], filters.scope.__eq__
            )
        if filters.author is not None:
            self._named("author", corpus.author, corpus.authors, filters.author.__eq__)
        if filters.conversation_id is not None:
            self._named(
                "conversation_id", corpus.conversation, corpus.conversations, filters.conversation_id.__eq__
            )
        if filters.min_importance is not None:
            self._keep("min_importance", corpus.importance >= np.float32(filters.min_importance))

    def leave(self, name: str, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        mask = np.zeros(len(self.wanted), np.bool_)
        mask[rows] = True
        self._keep(name, mask)

    def _keep(self, name: str, mask: Mask) -> None:
        self.wanted = self.wanted & mask
        self.counts[name] = int(np.count_nonzero(self.wanted))

    def _named(
        self,
        name: str,
        column: npt.NDArray[np.int32],
        known: Sequence[object],
        fits: Callable[[object], bool],
    ) -> None:
        # One more for the number -1, which stands for none.
        table = np.array([*(fits(each) for each in known), False], np.bool_)
        self._keep(name, table[column])

    def _tagged(self, tags: Sequence[str], *, every: bool) -> Mask:
        hits = np.zeros(len(self.wanted), np.int32)
        for tag in dict.fromkeys(tags):
            rows, _ = self._corpus.postings("labels", tag)
            hits[rows] += 1
        return hits >= (len(set(tags)) if every else 1)


def _below(prefix: str) -> Callable[[object], bool]:
    return lambda namespace: names.is_below(str(namespace), prefix)
