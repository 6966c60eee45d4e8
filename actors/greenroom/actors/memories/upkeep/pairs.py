"""Pairs of memories that want a decision: such as say nearly the same, and such as may contradict each other.

No request compares all with all. Each memory is compared with older ones that share its rarest words, a dozen
at most, and a page ends after so many memories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.replies import paging
from greenroom.actors.memories.reading.browsing import listed
from greenroom.actors.memories.requests import review
from greenroom.actors.memories.requests.replies import MemoryFilters, SimilarMemory
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.writing import conflicts, near_duplicates
from greenroom.actors.memories.writing.store_requests import named
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.memories.writing.near_duplicates import Rows
    from greenroom.actors.search.index.corpus import Corpus

    Mask = npt.NDArray[np.bool_]

COMPARED: Final = 100
"""Memories of one page that are compared with older ones."""
PREVIEW: Final = 1_000
_NEWER: Final = 6  # memories of which is asked whether they contradict an older one


class Beside(NamedTuple):
    """What stands near a memory."""

    similar: list[review.NearMemory]
    replaces: list[review.NearMemory]
    replaced_by: list[review.NearMemory]


class _Sight(NamedTuple):
    """What a reader sees of an index; ``rows`` are below the namespace, and superseded by nothing."""

    corpus: Corpus
    rows: Mask
    visible: int
    space: str | None


def pairs(
    repository: MemoryRepository, request: review.ListMemoryPairs, context: Context
) -> Slices[review.MemoryPairs]:
    """Answer a page of pairs, the newest memories first."""
    namespace = request.namespace or repository.root
    yield from indexing.finish(repository, context)
    if not repository.counter:
        return review.MemoryPairs(namespace=namespace, pairs=[], compared=0, next_cursor=None)
    sight = yield from _sight(repository, context, namespace)
    binding = f"pairs {namespace} {request.kind}"
    below = None if request.cursor is None else paging.decode_number(request.cursor, binding)
    found: list[review.MemoryPair] = []
    compared, at, has_more = 0, 0, False
    for update in _updates(sight, below):
        if compared == COMPARED or len(found) >= request.limit:
            has_more = True
            break
        compared, at = compared + 1, update
        stored = repository.by_update(context, update)
        assert stored is not None, "what is in the index is in the store"
        others = sight.rows & (sight.corpus.ids < update)
        near = yield from _compared(repository, context, sight, others, stored.entry, request.kind)
        found += yield from _paired(repository, context, stored.entry, near)
        if context.should_yield():
            yield
    return review.MemoryPairs(
        namespace=namespace,
        pairs=found,
        compared=compared,
        next_cursor=paging.encode(at.to_bytes(8), binding) if has_more else None,
    )


def beside(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[Beside]:
    """Return what stands near a memory that is there."""
    sight = yield from _sight(repository, context, repository.root)
    ids = sight.corpus.ids
    everything = sight.rows & (ids != entry.update)
    similar = yield from _compared(repository, context, sight, everything, entry, "duplicates")
    older = sight.rows & (ids < entry.update)
    replaces = yield from _compared(repository, context, sight, older, entry, "conflicts")
    replaced_by: list[review.NearMemory] = []
    newer = yield from _sharing(repository, context, sight, entry)
    for update in newer[:_NEWER]:
        stored = repository.by_update(context, update)
        assert stored is not None, "what is in the index is in the store"
        before = sight.rows & (ids < update)
        replaced = yield from _compared(repository, context, sight, before, stored.entry, "conflicts")
        own = repository.memory_id(entry.number)
        likely = next((each.similarity for each in replaced if each.memory_id == own), None)
        if likely is not None:
            shown = yield from listed(repository, context, stored.entry, near_duplicates.PREVIEW)
            replaced_by.append(
                review.NearMemory(
                    memory_id=shown.memory_id,
                    version=shown.version,
                    key=shown.key,
                    namespace=shown.namespace,
                    similarity=likely,
                    preview=shown.preview,
                )
            )
    alike = {each.memory_id for each in similar}
    return Beside(
        _near(repository, context, similar[: near_duplicates.MOST]),
        _near(repository, context, [each for each in replaces if each.memory_id not in alike]),
        [each for each in replaced_by if each.memory_id not in alike],
    )


def _near(
    repository: MemoryRepository, context: Context, found: list[SimilarMemory]
) -> list[review.NearMemory]:
    """Return memories that were found, with their versions."""
    near: list[review.NearMemory] = []
    for each in found:
        stored = repository.find_id(context, each.memory_id)
        assert stored is not None, "it was found a moment ago"
        near.append(review.NearMemory(**msgspec.structs.asdict(each), version=stored.entry.version))
    return near


def settle(
    repository: MemoryRepository, request: review.SettleMemoryPair, context: Context
) -> Slices[review.PairSettled]:
    """Keep, or forget, that two memories may stand beside each other."""
    yield from indexing.finish(repository, context)
    one = named(repository, context, request.memory_id, None, None).entry
    other = named(repository, context, request.other_id, None, None).entry
    if one.number == other.number:
        raise auth_errors.invalid("other_id", "other_id: it is the same memory; name another one")
    namespace = repository.namespace(one.sub)
    policy.check_writes_namespace(context.principal, namespace)
    for key in (records.pair_key(one.number, other.number), records.pair_key(other.number, one.number)):
        if request.settled:
            context.put(key, True)
        else:
            context.delete(key)
    repository.settled += 1
    repository.publish_about(context, one, other)
    audit_record.record(
        context,
        "settle_memory_pair",
        one.session_id,
        namespace=namespace,
        key=one.key,
        other=other.key,
        settled=request.settled,
    )
    return review.PairSettled(memory_id=request.memory_id, other_id=request.other_id, settled=request.settled)


def _sight(repository: MemoryRepository, context: Context, namespace: str) -> Slices[_Sight]:
    corpus = yield from repository.index.loaded(context)
    yield from imported("greenroom.actors.memories.storage.vector_filters")
    from greenroom.actors.memories.storage.vector_filters import RowFilter  # noqa: PLC0415 - needs numpy, loaded by now

    seen = repository.views.of(corpus, context.principal, context.now)
    fitting = RowFilter(seen)
    yield from fitting.apply(MemoryFilters(namespace=namespace), context.now, context.should_yield)
    return _Sight(corpus, fitting.wanted, seen.view.count, embedding.serving(repository, context))


def _updates(sight: _Sight, below: int | None) -> list[int]:
    """Return the update numbers of what is compared, newest first, below a number if one is given."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    updates = np.sort(sight.corpus.ids[sight.rows])[::-1]
    found: list[int] = (updates if below is None else updates[updates < below])[: COMPARED + 1].tolist()
    return found


def _compared(
    repository: MemoryRepository,
    context: Context,
    sight: _Sight,
    others: Mask,
    entry: Entry,
    kind: review.PairKind,
) -> Slices[list[SimilarMemory]]:
    """Return which of other rows say nearly the same as an entry, or which of the rest it may contradict."""
    text = yield from _text(repository, context, entry)
    if not text.strip():
        return []
    corpus = sight.corpus
    rarest = near_duplicates.rarest_of(corpus, others, text)
    replaced: list[SimilarMemory] = []
    if kind == "conflicts":
        replaced = yield from conflicts.replaced(
            repository, context, corpus, sight.visible, rarest, entry, text, sight.space
        )
        if not replaced:  # as mostly; whatever says nearly the same need not be read
            return []
    similar = yield from near_duplicates.alike(repository, context, corpus, rarest, entry, text)
    alike = {each.memory_id for each in similar}
    return similar if kind == "duplicates" else [each for each in replaced if each.memory_id not in alike]


def _sharing(
    repository: MemoryRepository, context: Context, sight: _Sight, entry: Entry
) -> Slices[list[int]]:
    """Return the newer memories that share most of an entry's rarest words, by update number."""
    text = yield from _text(repository, context, entry)
    newer = sight.rows & (sight.corpus.ids > entry.update)
    rarest: list[Rows] = near_duplicates.rarest_of(sight.corpus, newer, text)
    return near_duplicates.candidates(sight.corpus, rarest)


def _text(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[str]:
    value, version = yield from repository.value(context, entry)
    form = records.JSON if version.details is None else version.details.form
    return near_duplicates.start(value, form)


def _paired(
    repository: MemoryRepository, context: Context, newer: Entry, others: list[SimilarMemory]
) -> Slices[list[review.MemoryPair]]:
    """Return the pairs of a memory with others, without those that somebody settled."""
    found: list[review.MemoryPair] = []
    for each in others:
        stored = repository.find_id(context, each.memory_id)
        assert stored is not None, "it was found a moment ago"
        if context.get(records.pair_key(newer.number, stored.entry.number), bool):
            continue
        pair = review.MemoryPair(
            newer=(yield from listed(repository, context, newer, PREVIEW)),
            older=(yield from listed(repository, context, stored.entry, PREVIEW)),
            similarity=each.similarity,
        )
        found.append(pair)
        if context.should_yield():
            yield
    return found
