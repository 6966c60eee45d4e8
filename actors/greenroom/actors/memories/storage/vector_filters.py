"""Filters over rows of the index: by visibility and by request. Needs numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.search.index import FOREVER, UNREVIEWED
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import Slices

Mask = npt.NDArray[np.bool_]

KEPT_VIEWS = 4


class VisibleRows(NamedTuple):
    """The rows that one caller may see, and the superseded ones among them."""

    view: View
    superseded: Mask | None


class _Allowed(NamedTuple):
    """What a caller may see.

    Attributes:
        partitions: For each class of namespaces, whether the caller may see each partition.
        sorts: The class of each namespace; empty if there is only one class.
    """

    partitions: tuple[tuple[bool, ...], ...]
    sorts: bytes


class VisibilityCache:
    """The visible rows by caller, cached until the index changes or a row expires."""

    def __init__(self) -> None:
        self._kept: dict[_Allowed, tuple[int, int, VisibleRows]] = {}

    def of(self, corpus: Corpus, principal: Principal, now: int) -> VisibleRows:
        """Return the rows that ``principal`` may see at the time ``now`` (microseconds since 1970)."""
        allowed = _find_allowed(corpus, principal)
        kept = self._kept.pop(allowed, None)
        if kept is None or kept[0] != corpus.arrangement or now >= kept[1]:
            kept = _view(corpus, allowed, now)
        self._kept[allowed] = kept
        if len(self._kept) > KEPT_VIEWS:
            del self._kept[next(iter(self._kept))]
        return kept[2]

    def resident_bytes(self) -> int:
        """Estimate the memory in use."""
        return sum(seen.view.resident_bytes() for _, _, seen in self._kept.values())


def _find_allowed(corpus: Corpus, principal: Principal) -> _Allowed:
    """Return what ``principal`` may see; for most callers all namespaces are in one class."""
    some = {0: ""}
    sorts = b""
    if policy.is_narrowed(principal):
        some = {}
        found = bytearray()
        for namespace in corpus.namespaces:
            is_about = names.project_in(namespace) is not None
            sort = 1 + policy.may_see_about(principal, namespace) if is_about else 0
            some.setdefault(sort, namespace)
            found.append(sort)
        sorts = bytes(found)
    return _Allowed(
        tuple(
            tuple(
                sort in some and policy.may_see_memory(principal, partition, some[sort])
                for partition in corpus.partitions
            )
            for sort in range(3 if sorts else 1)
        ),
        sorts,
    )


def _view(corpus: Corpus, allowed: _Allowed, now: int) -> tuple[int, int, VisibleRows]:
    """Return a view, the arrangement of rows that it needs, and its expiry."""
    visible = corpus.alive & (corpus.expires > now)
    if not all(map(all, allowed.partitions)):
        sorts = np.frombuffer(allowed.sorts, np.uint8)[corpus.namespace] if allowed.sorts else 0
        visible &= np.array(allowed.partitions, np.bool_)[sorts, corpus.partition]
    expires = int(corpus.expires.min(where=visible, initial=FOREVER))
    seen = VisibleRows(View(corpus, visible), _find_superseded(corpus, visible))
    return corpus.arrangement, expires, seen


def _find_superseded(corpus: Corpus, visible: Mask) -> Mask | None:
    """Return the visible rows that other visible rows supersede."""
    later = np.flatnonzero(corpus.supersedes)
    taken = corpus.supersedes[later[visible[later]]]
    if not len(taken):
        return None
    numbers = corpus.numbers
    is_taken = np.zeros(int(max(numbers.max(), taken.max())) + 1, np.bool_)
    is_taken[taken] = True
    superseded = visible & is_taken[numbers]
    return superseded if superseded.any() else None


def unreviewed(corpus: Corpus) -> Mask:
    """Return the rows that no person has reviewed."""
    found: Mask = corpus.flags & np.uint8(UNREVIEWED) != 0
    return found


class RowFilter:
    """The rows that are left after filters, which are applied one after the other.

    ``counts`` has the number of rows after each filter, in order. The first one keeps what belongs to the
    project with the ids ``near`` or to no project.
    """

    def __init__(self, seen: VisibleRows, near: Sequence[str] | None = None) -> None:
        view = seen.view
        self._superseded = seen.superseded
        self._corpus: Corpus = view.corpus  # type: ignore[assignment]  # a view has a wider type
        self.wanted: Mask = view.visible
        self.counts: dict[str, int] = {"visible": view.count}
        if near is not None:
            found = [names.is_near(namespace, *near) for namespace in self._corpus.namespaces]
            self._keep("project", np.array(found, np.bool_)[self._corpus.namespace])

    def apply(self, filters: MemoryFilters, now: int) -> Slices[None]:
        """Apply all filters that the index supports; keys and sessions are not among them."""
        corpus = self._corpus
        if not filters.superseded and self._superseded is not None:
            self._keep("superseded", ~self._superseded)
        if filters.namespace is not None:
            yield from self._below(filters.namespace)
        after, before = filters.created_between(now)
        if filters.after is not None or filters.before is not None or filters.max_age_days is not None:
            self._keep("time", (corpus.created >= after) & (corpus.created < before))
        if filters.tags is not None:
            tagged = yield from self._with_tags(filters.tags, every=filters.tag_match == "all")
            self._keep("tags", tagged)
        self._by_columns(filters)

    def intersect(self, name: str, rows: Sequence[int]) -> None:
        """Keep only these rows."""
        mask = np.zeros(len(self.wanted), np.bool_)
        mask[rows] = True
        self._keep(name, mask)

    def _by_columns(self, filters: MemoryFilters) -> None:
        corpus = self._corpus
        if filters.kind is not None:
            self._keep("kind", self._has("kind", filters.kind))
        if filters.scope is not None:
            scopes = np.array([partition.scope == filters.scope for partition in corpus.partitions], np.bool_)
            self._keep("scope", scopes[corpus.partition])
        if filters.author is not None:
            self._keep("author", self._has("author", filters.author))
        if filters.conversation_id is not None:
            self._keep("conversation_id", self._has("conversation", filters.conversation_id))
        if filters.min_importance is not None:
            self._keep("min_importance", corpus.importance >= np.float32(filters.min_importance))
        if filters.unreviewed is not None:
            self._keep("unreviewed", unreviewed(corpus) == filters.unreviewed)

    def _keep(self, name: str, mask: Mask) -> None:
        self.wanted = self.wanted & mask
        self.counts[name] = int(np.count_nonzero(self.wanted))

    def _has(self, column: str, name: str) -> Mask:
        number = self._corpus.names[column].find(name)
        if number is None:
            return np.zeros(len(self.wanted), np.bool_)
        found: Mask = self._corpus.column(column) == number
        return found

    def _below(self, prefix: str) -> Slices[None]:
        below = np.zeros(len(self._corpus.namespaces), np.bool_)
        for number, namespace in enumerate(self._corpus.namespaces):
            below[number] = names.is_below(namespace, prefix)
            yield
        self._keep("namespace", below[self._corpus.namespace])

    def _with_tags(self, tags: Sequence[str], *, every: bool) -> Slices[Mask]:
        hits = np.zeros(len(self.wanted), np.int32)
        labels = yield from labels_of(self._corpus, map(compose, tags))
        for same in labels.values():
            hits[rows_with(self._corpus, same)] += 1
            yield
        return hits >= (len(labels) if every else 1)


def labels_of(corpus: Corpus, tags: Iterable[str]) -> Slices[dict[str, set[str]]]:
    """Map each composed tag to all forms of the tag in the index."""
    labels = {tag: {tag} for tag in tags}
    if all(map(str.isascii, labels)):
        return labels
    for block in corpus.vocabulary("labels"):
        for label in block:
            if not label.isascii() and (same := labels.get(compose(label))) is not None:
                same.add(label)
        yield
    return labels


def rows_with(corpus: Corpus, labels: set[str]) -> npt.NDArray[np.int32]:
    """Return the rows that have any of these tags, each once; dead rows included."""
    found = [corpus.postings("labels", label)[0] for label in labels]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))
