"""Checking a corpus for `greenroom verify`: its texts, its counts, what its documents mention, and its index.

All but the texts can be made anew from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.corpus.preparing import indexed_chunk
from greenroom.actors.index import Document as IndexedChunk
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusVerified, VerifyCorpus
from greenroom.actors.knowledge.corpora.storage import entity_records, mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.storage.records import CorpusHeader, DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, moved
from greenroom.runtime import Context, Slices, StoreDamagedError

_MOST: Final = 100
"""Sentences about documents, at most."""


def verify(repository: CorpusRepository, request: VerifyCorpus, context: Context) -> Slices[CorpusVerified]:
    """Compare a corpus with the texts that it has, and make anew what differs if that is wanted."""
    if repository.header.is_dropped:
        return CorpusVerified(chunks=0, problems=[], rebuilt=False)
    yield from repository.entities.loaded(context)
    found = _Pass(repository, context)
    chunks = found.chunks()
    problems = yield from repository.index.check(context, chunks, "chunk")
    for each in chunks:  # those for which there was nothing to be compared with
        if each is None:
            yield
    yield from found.end()
    problems = [*found.sentences(), *problems]
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        yield from repository.index.rebuild(context, repository.indexed(context, found.lost))
        found.mend()
    return CorpusVerified(chunks=found.header.chunks, problems=problems, rebuilt=rebuilt and not found.lost)


class _Pass:
    """One pass over the documents of a corpus, which notes what is wrong as they go by.

    Attributes:
        header: What holds for the whole corpus, counted anew.
        lost: The numbers of documents whose texts are not what was put in: nothing can be made of these.
    """

    def __init__(self, repository: CorpusRepository, context: Context) -> None:
        self.header = msgspec.structs.replace(
            repository.header, documents=0, chunks=0, file_bytes=0, text_bytes=0, stored_bytes=0
        )
        self.lost: set[int] = set()
        self._repository = repository
        self._context = context
        self._keys: dict[int, bytes] = {}
        self._unnumbered: list[int] = []
        self._strays: list[bytes] = []
        self._differs = False
        self._problems: list[str] = []
        self._count = 0

    def chunks(self) -> Iterator[IndexedChunk | None]:
        """Yield the chunks that the index has to have, and None when the slice is over."""
        for key, document in self._context.scan(DocumentRecord, prefix=records.DOCUMENTS):
            self._keys[document.number] = key
            self._note(document)
            if self._context.get(records.number_key(document.number), bytes) != key:
                self._unnumbered.append(document.number)
                self._add(f"the document {document.path!r} is not found by its number")
            passages = self._passages(document)
            if passages is None:
                self.lost.add(document.number)
                self._add(
                    f"the document {document.path!r} lacks some of its text: remove it, and put it in again"
                )
                continue
            yield from self._compare_mentions(document, passages)
            for place, passage in zip(document.places, passages, strict=True):
                yield indexed_chunk(document, place.id, passage, is_code=self._repository.is_code)
                if self._context.should_yield():
                    yield None

    def end(self) -> Slices[None]:
        """Look at what is beside the documents, when all have gone by."""
        for prefix in (records.NUMBERS, entity_records.MENTIONS):
            for key, _ in self._context.scan(msgspec.Raw, prefix=prefix):
                if int.from_bytes(key[len(prefix) :]) not in self._keys:
                    self._strays.append(key)
                if self._context.should_yield():
                    yield
        if self._strays:
            self._add(f"there are {len(self._strays):,} records of documents that are not there")
        said = self._repository.header
        wrong = [
            name
            for name in CorpusHeader.__struct_fields__
            if getattr(said, name) != getattr(self.header, name)
        ]
        if wrong:
            self._add(f"what it says of itself is not so: {', '.join(wrong)}")

    def sentences(self) -> list[str]:
        """Return what is wrong, a sentence each."""
        more = self._count - len(self._problems)
        return [*self._problems, f"and {more:,} more"] if more else self._problems

    def mend(self) -> None:
        """Stage what is right, but for what was lost; what documents mention is looked for again."""
        repository, context = self._repository, self._context
        for number in self._unnumbered:
            context.put(records.number_key(number), self._keys[number])
        for key in self._strays:
            context.delete(key)
        repository.put_header(context, self.header)
        repository.entities.forget_mentions()
        if self._differs:
            mentions.begin(repository, context)

    def _note(self, document: DocumentRecord) -> None:
        ids = [place.id + 1 for place in document.places]
        self.header = msgspec.structs.replace(
            moved(self.header, document, 1),
            next_document=max(self.header.next_document, document.number + 1),
            next_chunk=max([self.header.next_chunk, *ids]),
        )

    def _passages(self, document: DocumentRecord) -> list[Passage] | None:
        """Return what the chunks of a document say; None where that is not what was put in."""
        try:
            passages = [
                passage
                for block in range(len(document.blocks))
                for passage in self._repository.passages(self._context, document, block)
            ]
        except (StoreDamagedError, ValueError):  # a record is missing, or is another one
            return None
        size = sum(len(passage.text.encode()) for passage in passages)
        is_whole = (len(passages), size) == (len(document.places), document.text_bytes)
        return passages if is_whole else None

    def _compare_mentions(self, document: DocumentRecord, passages: list[Passage]) -> Slices[None]:
        table = self._repository.entities
        first = table.header.matched_to
        if not can_match() or (first is not None and document.number >= first):
            return  # its names are still to be looked for
        fresh = yield from mentions.matched(self._repository, self._context, document, passages)
        if not table.has_mentions(self._context, document.number, fresh):
            self._differs = True
            self._add(f"what the document {document.path!r} mentions is not what is found in it")

    def _add(self, sentence: str) -> None:
        self._count += 1
        if self._count <= _MOST:
            self._problems.append(sentence)
