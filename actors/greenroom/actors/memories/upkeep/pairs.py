"""Pairs of memories that need a decision: near-duplicates and possible conflicts.

No request compares all memories with all. Each memory is compared with at most a dozen older ones that share
its rarest words, and a page ends after `COMPARED` memories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import skip_damaged
from greenroom.actors.memories.reading.browsing import to_listed
from greenroom.actors.memories.requests import review
from greenroom.actors.memories.requests.replies import MemoryFilters, SimilarMemory
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.writing import near_duplicates
from greenroom.actors.memories.writing.store_requests import find_named
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.memories.writing.near_duplicates import Rows
    from greenroom.actors.search.index.corpus import Corpus

    Mask = npt.NDArray[np.bool_]

COMPARED: Final = 100
"""A page compares at most this many memories with older ones."""
PREVIEW: Final = 1_000
_NEWER: Final = 6  # newer memories that are checked for a conflict with an older one


class Neighbours(NamedTuple):
    """The near-duplicates of a memory, and the memories in conflict with it."""

    similar: list[review.NearMemory]
    replaces: list[review.NearMemory]
    replaced_by: list[review.NearMemory]


class _Scope(NamedTuple):
    """What a caller sees of an index; ``rows`` are below the namespace and not superseded."""

    corpus: Corpus
    rows: Mask
    visible: int
    space: str | None


def list_pairs(
    repository: MemoryRepository, request: review.ListMemoryPairs, context: Context
) -> Slices[review.MemoryPairs]:
    """Return a page of pairs, newest memories first."""
    namespace = request.namespace or repository.root
    yield from indexing.finish(repository, context)
    if not repository.counter:
        return review.MemoryPairs(namespace=namespace, pairs=[], compared=0, next_cursor=None)
    scope = yield from _load_scope(repository, context, namespace)
    binding = f"pairs {namespace} {request.kind}"
    below = None if request.cursor is None else paging.decode_number(request.cursor, binding)
    found: list[review.MemoryPair] = []
    compared, at, has_more = 0, 0, False
    for update in _updates(scope, below):
        if compared == COMPARED or len(found) >= request.limit:
            has_more = True
            break
        compared, at = compared + 1, update
        found += (
            yield from skip_damaged(context, _pairs_of(repository, context, scope, update, request.kind))
        ) or []
        yield
    return review.MemoryPairs(
        namespace=namespace,
        pairs=found,
        compared=compared,
        next_cursor=paging.encode(at.to_bytes(8), binding) if has_more else None,
    )


def _pairs_of(
    repository: MemoryRepository, context: Context, scope: _Scope, update: int, kind: review.PairKind
) -> Slices[list[review.MemoryPair]]:
    """Return the pairs of one memory with older ones."""
    entry = repository.indexed(context, update).entry
    others = scope.rows & (scope.corpus.ids < update)
    near = yield from _compare(repository, context, scope, others, entry, kind)
    return (yield from _to_pairs(repository, context, entry, near))


def find_neighbours(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[Neighbours]:
    """Return the near-duplicates of a live memory, and the memories in conflict with it."""
    scope = yield from _load_scope(repository, context, repository.root)
    ids = scope.corpus.ids
    everything = scope.rows & (ids != entry.update)
    similar = yield from _compare(repository, context, scope, everything, entry, "duplicates")
    older = scope.rows & (ids < entry.update)
    replaces = yield from _compare(repository, context, scope, older, entry, "conflicts")
    replaced_by: list[review.NearMemory] = []
    newer = yield from _find_newer(repository, context, scope, entry)
    for update in newer[:_NEWER]:
        stored = repository.indexed(context, update)
        before = scope.rows & (ids < update)
        conflicting = yield from _compare(repository, context, scope, before, stored.entry, "conflicts")
        own = repository.memory_id(entry.number)
        likely = next((each.similarity for each in conflicting if each.memory_id == own), None)
        if likely is not None:
            listed = yield from to_listed(repository, context, stored.entry, near_duplicates.PREVIEW)
            replaced_by.append(
                review.NearMemory(
                    memory_id=listed.memory_id,
                    version=listed.version,
                    key=listed.key,
                    namespace=listed.namespace,
                    similarity=likely,
                    preview=listed.preview,
                )
            )
    alike = {each.memory_id for each in similar}
    return Neighbours(
        _near(repository, context, similar[: near_duplicates.MOST]),
        _near(repository, context, [each for each in replaces if each.memory_id not in alike]),
        [each for each in replaced_by if each.memory_id not in alike],
    )


def _near(
    repository: MemoryRepository, context: Context, found: list[SimilarMemory]
) -> list[review.NearMemory]:
    """Return similar memories with their versions."""
    near: list[review.NearMemory] = []
    for each in found:
        stored = repository.find_id(context, each.memory_id)
        assert stored is not None, "it was just found"
        near.append(review.NearMemory(**msgspec.structs.asdict(each), version=stored.entry.version))
    return near


def settle(
    repository: MemoryRepository, request: review.SettleMemoryPair, context: Context
) -> Slices[review.PairSettled]:
    """Mark a pair of memories as accepted, or remove the mark."""
    yield from indexing.finish(repository, context)
    one = find_named(repository, context, request.memory_id, None, None).entry
    other = find_named(repository, context, request.other_id, None, None).entry
    if one.number == other.number:
        raise auth_errors.invalid("other_id", "other_id: it is the same memory; name another one")
    policy.check_writes_namespace(context.principal, repository.namespace(one.sub))
    for key in (records.pair_key(one.number, other.number), records.pair_key(other.number, one.number)):
        if request.settled:
            context.put(key, True)
        else:
            context.delete(key)
    repository.settled += 1
    repository.publish_about(context, one, other)
    repository.record(context, "settle_memory_pair", one, other=other.key, settled=request.settled)
    return review.PairSettled(memory_id=request.memory_id, other_id=request.other_id, settled=request.settled)


def _load_scope(repository: MemoryRepository, context: Context, namespace: str) -> Slices[_Scope]:
    corpus = yield from repository.index.loaded(context)
    yield from import_in_thread("greenroom.actors.memories.storage.vector_filters")
    from greenroom.actors.memories.storage.vector_filters import RowFilter  # noqa: PLC0415 - needs numpy, loaded by now

    seen = repository.views.of(corpus, context.principal, context.now)
    fitting = RowFilter(seen)
    yield from fitting.apply(MemoryFilters(namespace=namespace), context.now)
    return _Scope(corpus, fitting.wanted, seen.view.count, embedding.serving_space(repository, context))


def _updates(scope: _Scope, below: int | None) -> list[int]:
    """Return the update numbers to compare, newest first, below a number if one is given."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    updates = np.sort(scope.corpus.ids[scope.rows])[::-1]
    found: list[int] = (updates if below is None else updates[updates < below])[: COMPARED + 1].tolist()
    return found


def _compare(
    repository: MemoryRepository,
    context: Context,
    scope: _Scope,
    others: Mask,
    entry: Entry,
    kind: review.PairKind,
) -> Slices[list[SimilarMemory]]:
    """Return an entry's near-duplicates among other rows, or its conflicts without near-duplicates."""
    text = yield from _text(repository, context, entry)
    if not text.strip():
        return []
    corpus = scope.corpus
    rarest = near_duplicates.rarest_of(corpus, others, text)
    found: list[SimilarMemory] = []
    if kind == "conflicts":
        found = yield from near_duplicates.find_conflicts(
            repository,
            context,
            corpus,
            scope.visible,
            rarest,
            entry,
            text,
            scope.space,
            contradicted=True,
        )
        if not found:  # the usual case; then near-duplicates need not be read
            return []
    similar = yield from near_duplicates.find_near_duplicates(
        repository, context, corpus, rarest, entry, text
    )
    alike = {each.memory_id for each in similar}
    return similar if kind == "duplicates" else [each for each in found if each.memory_id not in alike]


def _find_newer(
    repository: MemoryRepository, context: Context, scope: _Scope, entry: Entry
) -> Slices[list[int]]:
    """Return newer memories that share most of an entry's rarest words, by update number."""
    text = yield from _text(repository, context, entry)
    newer = scope.rows & (scope.corpus.ids > entry.update)
    rarest: list[Rows] = near_duplicates.rarest_of(scope.corpus, newer, text)
    return near_duplicates.candidates(scope.corpus, rarest)


def _text(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[str]:
    value, version = yield from repository.value(context, entry)
    return near_duplicates.start(value, version.form)


def _to_pairs(
    repository: MemoryRepository, context: Context, newer: Entry, others: list[SimilarMemory]
) -> Slices[list[review.MemoryPair]]:
    """Return the pairs of a memory with others, except accepted pairs."""
    found: list[review.MemoryPair] = []
    for each in others:
        stored = repository.find_id(context, each.memory_id)
        assert stored is not None, "it was just found"
        if context.get(records.pair_key(newer.number, stored.entry.number), bool):
            continue
        pair = review.MemoryPair(
            newer=(yield from to_listed(repository, context, newer, PREVIEW)),
            older=(yield from to_listed(repository, context, stored.entry, PREVIEW)),
            similarity=each.similarity,
        )
        found.append(pair)
        yield
    return found
