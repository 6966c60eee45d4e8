"""The memories of one root on a map: the first rows, their links and vectors."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from greenroom.actors.content.text.truncate import make_label
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.replies.damage import skip_damaged
from greenroom.actors.memories.reading.search_root import by_entries
from greenroom.actors.memories.requests.map_replies import (
    MOST_NODES,
    MappedMemory,
    MappedRoot,
    MappedVectors,
    MapRoot,
)
from greenroom.actors.memories.storage import embedding, indexing
from greenroom.actors.memories.storage.records import PLAIN, TEXT
from greenroom.actors.memories.storage.repository import GENERATED_KEY, MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

    Rows = npt.NDArray[np.intp]
    Mask = npt.NDArray[np.bool_]

READ_FOR_LABEL: Final = 160
"""At most this many characters of a text are read for a label."""
TAGS: Final = 5
"""The most tags of a memory that help to name its cluster."""
_MARKS: Final = re.compile(r"^[#>\s]+|\*\*|`+")
"""Marks of Markdown, which say nothing on a map."""
READ: Final = 2_000
"""At most this many characters of a text are searched for names."""
MOST_READ: Final = 4_194_304
"""At most this many characters of all texts of a root together are searched for names."""
MOST_CACHED: Final = 2 * MOST_NODES
"""The cache has the map's views of at most this many memories."""
_LARGE: Final = 262_144
"""A larger content would be read whole for a label, so its label is the key."""
_METADATA: Final = 4_096
"""At most this many bytes of metadata are searched for a provenance; a hook writes fewer."""


class _Provenance(msgspec.Struct):
    """The session in which a hook found something."""

    client: str
    session: str


class _Metadata(msgspec.Struct):
    """The part of a memory's metadata that a hook writes."""

    provenance: _Provenance | None = None


_read_metadata = msgspec.json.Decoder(_Metadata).decode


def map_root(repository: MemoryRepository, request: MapRoot, context: Context) -> Slices[MappedRoot]:
    """Return the first memories that the caller may see and that pass the filters."""
    if not repository.counter:
        return MappedRoot(root=repository.root, total=0)
    yield from indexing.finish(repository, context)
    corpus = yield from repository.index.loaded(context)
    yield from import_in_thread("greenroom.actors.memories.storage.vector_filters")
    from greenroom.actors.memories.storage.vector_filters import RowFilter  # noqa: PLC0415 - needs numpy, loaded by now

    if request.vectors:
        embedding.queue_missing(repository, context, corpus)
    row_filter = RowFilter(repository.views.of(corpus, context.principal, context.now))
    yield from row_filter.apply(request.filters, context.now)
    yield from by_entries(repository, context, corpus, row_filter, request.filters)
    wanted = row_filter.wanted
    rows = _first(corpus, wanted, request)
    memories = yield from _memories(repository, context, corpus, rows)
    texts = yield from _texts(repository, context, corpus, rows, request.names)
    yield
    return MappedRoot(
        root=repository.root,
        total=int(wanted.sum()),
        revision=_revision(repository, context, corpus, wanted),
        memories=memories,
        uses=corpus.uses[rows].tolist(),
        ratings=corpus.rating[rows].tolist(),
        supersedes=corpus.supersedes[rows].tolist(),
        vectors=_vectors(repository, context, corpus, rows) if request.vectors else None,
        texts=texts,
        all_texts=sum(map(len, texts.values())) < MOST_READ,
    )


def _revision(repository: MemoryRepository, context: Context, corpus: Corpus, wanted: Mask) -> bytes:
    """Return a digest of the wanted rows' data that maps show and that may change."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    space = embedding.serving_space(repository, context)
    found = None if space is None else corpus.vectors(space)
    digest = blake2b(f"{space} {repository.settled} {repository.root}".encode(), digest_size=16)
    for column in (corpus.ids, corpus.uses, corpus.rating, corpus.supersedes):
        digest.update(column[wanted].tobytes())
    digest.update(b"" if found is None else np.packbits(found[2][wanted]).tobytes())
    return digest.digest()


def _first(corpus: Corpus, wanted: Mask, request: MapRoot) -> Rows:
    """Return the first rows: the most used, then the most recently updated."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    rows = np.flatnonzero(wanted)
    uses = corpus.uses[rows].astype(np.int64) if request.order == "used" else np.zeros(len(rows), np.int64)
    return rows[np.lexsort((-rows, -corpus.updated[rows], -uses))[: request.limit]]


def _memories(
    repository: MemoryRepository, context: Context, corpus: Corpus, rows: Rows
) -> Slices[list[MappedMemory]]:
    """Return memories as a map shows them, from the cache if possible."""
    kept = repository.mapped
    memories: list[MappedMemory] = []
    for update in corpus.ids[rows].tolist():
        memory = kept.get(update)
        if memory is None:
            memory = yield from skip_damaged(context, _memory(repository, context, update))
            if memory is None:
                continue
            if len(kept) >= MOST_CACHED:
                kept.clear()
            kept[update] = memory
        memories.append(memory)
        yield
    return memories


def _memory(repository: MemoryRepository, context: Context, update: int) -> Slices[MappedMemory]:
    entry = repository.indexed(context, update).entry
    details = entry.details or PLAIN
    version = repository.version(context, entry)
    is_generated = GENERATED_KEY.fullmatch(entry.key) is not None
    text = ""
    if version.form & TEXT and (is_generated or entry.value_size <= _LARGE):
        text = yield from repository.beginning(context, entry, READ_FOR_LABEL)
    return MappedMemory(
        repository.memory_id(entry.number),
        entry.number,
        make_label(_MARKS.sub("", text[:READ_FOR_LABEL])) or make_label(entry.key[:READ_FOR_LABEL]),
        details.kind,
        repository.namespace(details.sub),
        entry.created_at,
        entry.session_id,
        details.conversation,
        _provenance(version.metadata) if details.unreviewed or is_generated else None,
        tuple(tag[:READ_FOR_LABEL] for tag in details.tags[:TAGS]),
    )


def _provenance(metadata: bytes) -> tuple[str, str] | None:
    if b'"provenance"' not in metadata or len(metadata) > _METADATA:
        return None
    try:
        found = _read_metadata(metadata).provenance
    except msgspec.DecodeError:  # the user's own metadata, in which this name means something else
        return None
    return None if found is None else (found.client, found.session)


def _texts(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    rows: Rows,
    names: Sequence[Sequence[str]],
) -> Slices[dict[int, str]]:
    """Map positions to the beginnings of memories that have all words of a name."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    likely = np.zeros(corpus.size, np.bool_)
    for words in names:
        holding: npt.NDArray[np.int32] | None = None
        for word in words:
            having = corpus.postings("text", word)[0]
            holding = having if holding is None else np.intersect1d(holding, having, assume_unique=True)
            if not len(holding):
                break
        if holding is not None:
            likely[holding] = True
        yield
    texts: dict[int, str] = {}
    size = 0
    for place in np.flatnonzero(likely[rows]).tolist():
        read = yield from repository.read_row(context, int(corpus.ids[rows[place]]))
        texts[place] = "" if read is None else beginning(read.value, read.form, READ)
        size += len(texts[place])
        if size >= MOST_READ:
            break
        yield
    return texts


def _vectors(
    repository: MemoryRepository, context: Context, corpus: Corpus, rows: Rows
) -> MappedVectors | None:
    """Return the vectors that searches use; None if these memories have none."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    space = embedding.serving_space(repository, context)
    found = None if space is None else corpus.vectors(space)
    if space is None or found is None:
        return None
    values, _scales, has = found
    places = np.flatnonzero(has[rows])
    if not len(places):
        return None
    return MappedVectors(
        space=space,
        places=places.tolist(),
        values=values[rows[places]].tobytes(),
        dimensions=values.shape[1],
    )
