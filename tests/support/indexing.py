"""An actor whose documents are indexed, and what its index must say of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from greenroom.actors.content.text.analyze import code_rules, current_rules
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index import FIELDS, Document, MemoryIndex, TidyIndex
from greenroom.actors.search.index.document import analyse
from greenroom.runtime import Actor, Context, Message, Slices, finish, handles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from greenroom.actors.content.text.words import TextRules
    from greenroom.actors.search.index.corpus import Corpus

DIMENSIONS = 3
SMALL = {
    "corpus.TAIL_ROWS": 6,
    "corpus._FEW": 2,
    "document._STRETCH": 16,
    "index._PART": 3,
    "index._WRITES": 8,
    "merge.CHUNK_POSTINGS": 6,
    "merge.CHUNK_TERMS": 4,
    "merge._LEAST": 2,
    "merge._STEP_POSTINGS": 8,
    "merge._STEP_TERMS": 6,
    "records.BLOCK_ROWS": 4,
    "segment.CHUNK_POSTINGS": 6,
    "segment.CHUNK_TERMS": 4,
    "memtable._RUN": 4,
    "compaction.CLEARED": 2,
    "compaction.DEAD_ROWS": 1,
    "compaction.FANOUT": 2,
    "compaction.PATCHES": 3,
    "compaction.SMALL_CHUNKS": 3,
    "compaction.STEP_BYTES": 64,
    "compaction.VECTOR_ROWS": 6,
    "arrays._LEAST": 1,
    "arrays._MOVED": 2,
}
"""Limits of the index's modules under which a handful of documents is many."""


class Partition(msgspec.Struct, frozen=True):
    """A visibility class, as the tests have it."""

    owner: str
    scope: str = "private"


class ShelvedDocument(Document, frozen=True, kw_only=True):
    partition: Partition


class Put(Message[int], frozen=True):
    documents: list[ShelvedDocument]


class Drop(Message[int], frozen=True):
    ids: list[int]


class Change(Message[int], frozen=True):
    """Change documents, or fail after that, when nothing of it may stay."""

    id: int
    values: dict[str, Any]
    fail: bool = False


class Embed(Message[int], frozen=True):
    space: str
    vectors: list[tuple[int, Vectors]]


class DropSpace(Message[None], frozen=True):
    space: str


class Load(Message[None], frozen=True):
    pass


class Rebuild(Message[None], frozen=True):
    pass


class Look(Message[dict[str, Any]], frozen=True):
    """What the index says, see `seen`."""


class Check(Message[list[str]], frozen=True):
    pass


class Spoil(Message[None], frozen=True):
    """Delete or replace a record of the index."""

    key: bytes
    value: msgspec.Raw | None = None


class Shape(Message[list[int]], frozen=True):
    """The sizes of the segments, and at the end that of the tail."""


class Keys(Message[list[bytes]], frozen=True):
    """The keys of the index's records."""


class Indexed(Actor):
    """Keeps documents and their index."""

    kind = "indexed"
    heals: ClassVar[bool] = False

    def activate(self, _: Context) -> None:
        self.index = MemoryIndex(Partition, self.documents if self.heals else None, rules=self.rules)

    def rules(self) -> TextRules:
        return current_rules()

    def documents(self, context: Context) -> Iterator[Document]:
        return (document for _, document in context.scan(ShelvedDocument, prefix=b"d"))

    @handles(Put)
    def put(self, message: Put, context: Context) -> Slices[int]:
        for document in message.documents:
            context.put(b"d" + document.id.to_bytes(8), document)
            yield from self.index.add(context, document)
        return len(message.documents)

    @handles(Drop)
    def drop(self, message: Drop, context: Context) -> int:
        for number in message.ids:
            context.delete(b"d" + number.to_bytes(8))
            self.index.remove(context, number)
        return len(message.ids)

    @handles(Change)
    def change(self, message: Change, context: Context) -> int:
        key = b"d" + message.id.to_bytes(8)
        document = context.get(key, ShelvedDocument)
        assert document is not None
        context.put(key, msgspec.structs.replace(document, **message.values))
        self.index.change(context, message.id, **message.values)
        if message.fail:
            raise RuntimeError("told to fail")
        return message.id

    @handles(Embed)
    def embed(self, message: Embed, context: Context) -> Slices[int]:
        return self.index.set_vectors(context, message.space, message.vectors)

    @handles(DropSpace)
    def drop_space(self, message: DropSpace, context: Context) -> Slices[None]:
        return self.index.drop_space(context, message.space)

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        return self.index.compact(context)

    @handles(Load)
    def load(self, _: Load, context: Context) -> Slices[None]:
        corpus = yield from self.index.loaded(context)
        assert len(corpus.previous) == corpus.size  # so that they are kept, and kept right

    @handles(Rebuild)
    def rebuild(self, _: Rebuild, context: Context) -> Slices[None]:
        return self.index.rebuild(context, self.documents(context))

    @handles(Check)
    def check(self, _: Check, context: Context) -> Slices[list[str]]:
        return self.index.check(context, self.documents(context))

    @handles(Spoil)
    def spoil(self, message: Spoil, context: Context) -> None:
        self.index.unload()
        if message.value is None:
            context.delete(message.key)
        else:
            context.put(message.key, message.value)

    @handles(Keys)
    def keys(self, _: Keys, context: Context) -> list[bytes]:
        return [key for key, _ in context.scan(msgspec.Raw, prefix=b"i")]

    @handles(Look)
    def look(self, _: Look, context: Context) -> Slices[dict[str, Any]]:
        corpus = yield from self.index.loaded(context)
        return seen(corpus)

    @handles(Shape)
    def shape(self, _: Shape, context: Context) -> Slices[list[int]]:
        corpus = yield from self.index.loaded(context)
        return [*(segment.size for segment in corpus.segments), corpus.tail_rows]


class Healing(Indexed):
    """Lets the index help itself."""

    heals = True


class OfSource(Healing):
    """Has source code for documents."""

    def rules(self) -> TextRules:
        return code_rules()


def seen(corpus: Corpus) -> dict[str, Any]:
    """Return what a corpus says, without how it is made up."""
    living = [row for row in range(corpus.size) if corpus.alive[row]]
    ids = {row: int(corpus.ids[row]) for row in living}
    terms: dict[str, Any] = {}
    for field in FIELDS:
        counts: dict[int, dict[str, int]] = {}
        for term in {term for block in corpus.vocabulary(field) for term in block}:
            rows, times = corpus.postings(field, term)
            assert list(rows) == sorted(set(rows))
            for row, count in zip(rows, times, strict=True):
                if row in ids:
                    counts.setdefault(ids[row], {})[term] = int(count)
        terms[field] = counts
        lengths = {ids[row]: int(corpus.lengths(field)[row]) for row in living}
        assert lengths == {number: sum(counts.get(number, {}).values()) for number in lengths}
    vectors: dict[str, Any] = {}
    for space in corpus.spaces():
        values, scales, has = corpus.vectors(space) or ((), (), ())
        own: dict[int, tuple[Any, ...]] = {
            ids[row]: (round(float(scales[row]), 3), bytes(values[row])) for row in living if has[row]
        }
        tokens = corpus.token_vectors(space, list(ids))
        for number, matrix in zip(ids.values(), tokens, strict=True):
            if matrix is not None:
                own[number] = (*own[number], matrix.tobytes())
        if own:
            vectors[space] = own
    return {
        "rows": {
            ids[row]: {
                "partition": corpus.partitions[corpus.partition[row]],
                "namespace": corpus.namespaces[corpus.namespace[row]],
                "author": corpus.authors[corpus.author[row]],
                "kind": corpus.kinds[corpus.kind[row]],
                "conversation": None
                if corpus.conversation[row] < 0
                else corpus.conversations[corpus.conversation[row]],
                "position": int(corpus.position[row]),
                "created": int(corpus.created[row]),
                "updated": int(corpus.updated[row]),
                "expires": int(corpus.expires[row]),
                "last_used": int(corpus.last_used[row]),
                "uses": int(corpus.uses[row]),
                "importance": float(corpus.importance[row]),
                "rating": float(corpus.rating[row]),
                "number": int(corpus.numbers[row]),
                "supersedes": int(corpus.supersedes[row]),
                "flags": int(corpus.flags[row]),
            }
            for row in living
        },
        "terms": terms,
        "previous": {ids[row]: ids.get(int(corpus.previous[row])) for row in living},
        "following": {ids[row]: ids.get(int(corpus.following[row])) for row in living},
        "vectors": vectors,
    }


def expected(
    documents: Iterable[Document], vectors: Mapping[str, Mapping[int, Vectors]] | None = None
) -> dict[str, Any]:
    """Return what an index of these documents, in the order of their insertion, must say."""
    every = list(documents)
    analysed = {document.id: finish(analyse(document)) for document in every}
    conversations: dict[str, list[tuple[bool, int, int]]] = {}
    for place, document in enumerate(every):
        if document.conversation is not None:
            key = (document.position is None, document.position or 0, place)
            conversations.setdefault(document.conversation, []).append(key)
    previous: dict[int, int | None] = {document.id: None for document in every}
    following = dict(previous)
    for keys in conversations.values():
        order = [every[place].id for _, _, place in sorted(keys)]
        following.update(pairwise(order))
        previous.update((later, earlier) for earlier, later in pairwise(order))
    living = {document.id for document in every}
    kept: dict[str, dict[int, tuple[Any, ...]]] = {
        space: {
            number: (round(vector.scale, 3), vector.values)
            if vector.tokens is None
            else (round(vector.scale, 3), vector.values, vector.tokens)
            for number, vector in given.items()
            if number in living
        }
        for space, given in (vectors or {}).items()
    }
    return {
        "rows": {
            document.id: {
                "partition": document.partition,
                "namespace": document.namespace,
                "author": document.author,
                "kind": document.kind,
                "conversation": document.conversation,
                "position": -(2**63) if document.position is None else document.position,
                "created": document.created_at,
                "updated": document.updated_at,
                "expires": 2**63 - 1 if document.expires_at is None else document.expires_at,
                "last_used": document.last_used or 0,
                "uses": document.uses,
                "importance": document.importance,
                "rating": document.rating,
                "number": document.number,
                "supersedes": document.supersedes or 0,
                "flags": analysed[document.id].flags,
            }
            for document in every
        },
        "terms": {
            field: {
                number: dict(found.counts[field])
                for number, found in analysed.items()
                if found.counts.get(field)
            }
            for field in FIELDS
        },
        "previous": previous,
        "following": following,
        "vectors": {space: given for space, given in kept.items() if given},
    }
