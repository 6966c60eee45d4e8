"""An actor's index: records of its own in the commit of the memory, and a copy in memory once it is searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

import msgspec

from greenroom.actors.index import _records as records
from greenroom.actors.index._document import FOREVER, Analysed, Document, Field, analyse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.index._corpus import Corpus
    from greenroom.runtime import Context, Slices

ANALYSIS = "1 english"
_PART = 2_048  # terms in one record, about


class Changes(TypedDict, total=False):
    """What may change of a memory without a new version; see `Document`."""

    importance: float
    uses: int
    last_used: int
    rating: float
    expires_at: int | None
    superseded: bool


class Vectors(Protocol):
    """Vectors of one memory, as an embedder makes them."""

    scale: float
    values: bytes
    tokens: bytes | None
    token_scale: float


class MemoryIndex:
    """The index of one actor.

    Everything is staged in the commit of the message that calls. What was loaded is
    changed alike, so a message that fails must drop this object, as a rollback of the actor does.

    Args:
        shelf: The type of the documents' shelves.
    """

    def __init__(self, shelf: Any) -> None:
        self._shelf = msgspec.msgpack.Decoder(shelf)
        self._corpus: Corpus | None = None
        self._manifest: records.Manifest | None = None

    # -- writing -----------------------------------------------------------

    def add(self, context: Context, document: Document) -> Slices[None]:
        """Add a memory, whose id must be new; yields when the slice is over."""
        analysed = yield from analyse(document, context.slice_over)
        self._known(context)
        yield from self._stage_row(context, document, analysed)
        if self._corpus is not None:
            yield from self._corpus.add_analysed(document, analysed, context.slice_over)

    def remove(self, context: Context, id: int) -> None:
        """Remove a memory; an unknown one is no error."""
        row = context.get(records.row_key(id), records.RowRecord)
        if row is None:
            context.put(records.patch_key(id), {"dead": True})
        else:
            context.delete(records.row_key(id))
            context.delete(records.patch_key(id))
            for part in range(row.parts):
                context.delete(records.more_key(id, part))
        for space in self._known(context).spaces.values():
            if space.has_tokens:
                context.delete(records.token_key(space.number, id))
        if self._corpus is not None:
            self._corpus.remove(id)

    def change(self, context: Context, id: int, **changes: Unpack[Changes]) -> None:
        """Change what may change of a memory; an unknown one is no error."""
        values: records.Patch = {}
        for name, value in changes.items():
            if name == "expires_at":
                values["expires"] = FOREVER if value is None else value  # type: ignore[assignment]
            else:
                values[name] = value  # type: ignore[assignment]
        key = records.patch_key(id)
        context.put(key, (context.get(key, records.Patch) or {}) | values)
        if self._corpus is not None:
            self._corpus.change(id, values)

    def set_vectors(
        self, context: Context, space: str, vectors: Sequence[tuple[int, Vectors]]
    ) -> Slices[None]:
        """Give memories their vectors in ``space``; what is unknown or removed by now is passed over."""
        corpus = yield from self.loaded(context)
        import numpy as np  # noqa: PLC0415 - loaded by now

        known = [(id, vector) for id, vector in vectors if corpus.row(id) is not None]
        if not known:
            return
        dimensions = len(known[0][1].values)
        manifest = self._known(context)
        found = manifest.spaces.get(space)
        if found is None:
            found = manifest.spaces[space] = records.Space(manifest.next_space, dimensions)
            manifest.next_space += 1
        ids = np.array([number for number, _ in known], np.uint64)
        scales = np.array([vector.scale for _, vector in known], np.float32)
        values = b"".join(bytes(vector.values) for _, vector in known)
        chunk = records.VectorChunk(ids.tobytes(), scales.tobytes(), values)
        context.put(records.vector_key(found.number, found.next_chunk), chunk)
        found.next_chunk += 1
        for number, vector in known:
            if vector.tokens is not None:
                found.has_tokens = True
                context.put(
                    records.token_key(found.number, number),
                    records.TokenVectors(vector.token_scale, bytes(vector.tokens)),
                )
        context.put(records.MANIFEST, manifest)
        matrix = np.frombuffer(values, np.int8).reshape(len(known), dimensions)
        corpus.set_vectors(space, [number for number, _ in known], matrix, scales)

    def drop_space(self, context: Context, space: str) -> Slices[None]:
        """Remove all vectors of a space."""
        manifest = self._known(context)
        found = manifest.spaces.pop(space, None)
        if found is None:
            return
        for prefix in (records.VECTORS, records.TOKENS):
            for key, _ in context.scan(msgspec.Raw, prefix=prefix + found.number.to_bytes(2)):
                context.delete(key)
                if context.slice_over():
                    yield
        context.put(records.MANIFEST, manifest)
        if self._corpus is not None:
            self._corpus.drop_vectors(space)

    # -- reading -----------------------------------------------------------

    def loaded(self, context: Context) -> Slices[Corpus]:
        """Return the index in memory, loaded if it is not there; yields when the slice is over."""
        if self._corpus is None:
            corpus = yield from self._load(context)
            self._corpus = corpus
        self._corpus.fetch_tokens = partial(self._token_vectors, context)
        return self._corpus

    def without_vectors(self, context: Context, space: str, limit: int) -> Slices[list[int]]:
        """Return ids of memories that have no vector in ``space``, at most ``limit``."""
        corpus = yield from self.loaded(context)
        return corpus.without_vectors(space, limit)

    def spaces(self, context: Context) -> list[str]:
        """Return the spaces in which memories have vectors."""
        return list(self._known(context).spaces)

    @property
    def is_loaded(self) -> bool:
        """Whether the index is in memory."""
        return self._corpus is not None

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        return 0 if self._corpus is None else self._corpus.resident_bytes()

    def forget(self) -> None:
        """Drop what is in memory; the next search loads it again."""
        self._corpus = None
        self._manifest = None

    # -- parts -------------------------------------------------------------

    def _known(self, context: Context) -> records.Manifest:
        """Return the manifest, made and staged if there is none."""
        if self._manifest is None:
            self._manifest = context.get(records.MANIFEST, records.Manifest)
        if self._manifest is None:
            self._manifest = records.Manifest(records.FORMAT, ANALYSIS)
            context.put(records.MANIFEST, self._manifest)
        return self._manifest

    def _stage_row(self, context: Context, document: Document, analysed: Analysed) -> Slices[None]:
        parts = _parts(analysed.counts)
        first = next(parts, {})
        part = 0
        for part, counts in enumerate(parts, 1):
            context.put(records.more_key(document.id, part - 1), counts)
            if context.slice_over():
                yield
        row = records.RowRecord(
            shelf=msgspec.msgpack.encode(document.shelf),
            namespace=document.namespace,
            author=document.author,
            kind=document.kind,
            conversation=document.conversation,
            position=document.position,
            created_at=document.created_at,
            updated_at=document.updated_at,
            expires_at=document.expires_at,
            importance=document.importance,
            uses=document.uses,
            last_used=document.last_used,
            rating=document.rating,
            superseded=document.superseded,
            flags=analysed.flags,
            counts=first,
            parts=part,
        )
        context.put(records.row_key(document.id), row)

    def _load(self, context: Context) -> Slices[Corpus]:
        import numpy as np  # noqa: PLC0415 - not before the first search

        from greenroom.actors.index._corpus import Corpus  # noqa: PLC0415 - needs numpy

        corpus = Corpus()
        for key, row in context.scan(records.RowRecord, prefix=records.ROWS):
            yield from self._load_row(context, corpus, records.id_of(key), row)
            if context.slice_over():
                yield
        for key, patch in context.scan(records.Patch, prefix=records.PATCHES):
            corpus.change(records.id_of(key), patch)
            if context.slice_over():
                yield
        manifest = context.get(records.MANIFEST, records.Manifest)
        for name, space in ({} if manifest is None else manifest.spaces).items():
            prefix = records.VECTORS + space.number.to_bytes(2)
            for _, chunk in context.scan(records.VectorChunk, prefix=prefix):
                ids = np.frombuffer(chunk.ids, np.uint64)
                values = np.frombuffer(chunk.values, np.int8).reshape(len(ids), space.dimensions)
                corpus.set_vectors(
                    name, [int(number) for number in ids], values, np.frombuffer(chunk.scales, np.float32)
                )
                if context.slice_over():
                    yield
        return corpus

    def _load_row(self, context: Context, corpus: Corpus, id: int, row: records.RowRecord) -> Slices[None]:
        counts: dict[Field, Mapping[str, int]] = dict(row.counts)
        for part in range(row.parts):
            more = context.get(records.more_key(id, part), records.Counts)  # type: ignore[type-abstract]
            assert more is not None, "a row goes with its terms"
            for field, terms in more.items():
                counts[field] = {**counts.get(field, {}), **terms}
            if context.slice_over():
                yield
        document = Document(
            id=id,
            shelf=self._shelf.decode(row.shelf),
            namespace=row.namespace,
            text="",
            author=row.author,
            kind=row.kind,
            conversation=row.conversation,
            position=row.position,
            created_at=row.created_at,
            updated_at=row.updated_at,
            expires_at=row.expires_at,
            importance=row.importance,
            uses=row.uses,
            last_used=row.last_used,
            rating=row.rating,
            superseded=row.superseded,
        )
        yield from corpus.add_analysed(document, Analysed(counts, row.flags), context.slice_over)

    def _token_vectors(self, context: Context, space: str, id: int) -> npt.NDArray[np.int8] | None:
        import numpy as np  # noqa: PLC0415 - loaded by now

        known = self._known(context).spaces.get(space)
        if known is None:
            return None
        found = context.get(records.token_key(known.number, id), records.TokenVectors)
        return None if found is None else np.frombuffer(found.values, np.int8).reshape(-1, known.dimensions)


def _parts(counts: records.Counts) -> Iterator[dict[Field, dict[str, int]]]:
    """Cut terms into records' worth."""
    if sum(map(len, counts.values())) <= _PART:
        yield {field: dict(terms) for field, terms in counts.items()}
        return
    for field, terms in counts.items():
        remaining: Iterable[tuple[str, int]] = iter(terms.items())
        while step := dict(islice(remaining, _PART)):
            yield {field: step}
