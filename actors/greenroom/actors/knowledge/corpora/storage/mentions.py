"""Looking for the names of entities in documents: as these are put in, and in steps when names change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from greenroom.actors.knowledge.corpora.storage import entity_records
from greenroom.actors.knowledge.corpora.storage import records as corpus_records
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, matcher
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Message, Slices

TIMER: Final = "match"
_STEP_CHARACTERS: Final = 1_000_000
"""Of the texts in which one step looks for names: about 50 ms."""
_STEP_DOCUMENTS: Final = 500


class MatchDocuments(Message[None], frozen=True):
    """A corpus's word to itself that there are documents in which names are to be looked for."""


def put(
    repository: CorpusRepository, context: Context, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[None]:
    """Stage what a document that is put in mentions."""
    table = yield from repository.entities.loaded(context)
    if not table.by_number:
        return
    if can_match():
        yield from _match(repository, context, document, passages)
    else:
        first = table.header.matched_to
        waiting = document.number if first is None else min(first, document.number)
        table.put_header(context, msgspec.structs.replace(table.header, matched_to=waiting))


def remove(repository: CorpusRepository, context: Context, document: int) -> None:
    """Stage that a document mentions nothing any more."""
    repository.entities.put_mentions(context, document, b"")


def begin(repository: CorpusRepository, context: Context) -> None:
    """Begin to look for names in all documents, or begin anew."""
    table = repository.entities
    waiting = 0 if repository.header.documents else None
    found = matcher() if can_match() else table.header.matcher
    table.put_header(context, msgspec.structs.replace(table.header, matched_to=waiting, matcher=found))
    if waiting is not None:
        context.set_timer(TIMER, context.now, MatchDocuments())


def go_on(repository: CorpusRepository, context: Context) -> None:
    """Stage the next step if one is due and not to come, as after a time without what finds names.

    Where a newer one finds them than before, all documents are gone through again.
    """
    table = repository.entities
    if table.by_number and can_match() and is_newer(matcher(), table.header.matcher):
        begin(repository, context)
    elif table.header.matched_to is not None and can_match() and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now, MatchDocuments())


def waiting(repository: CorpusRepository) -> int:
    """Return in how many documents names are still to be looked for, about."""
    first = repository.entities.header.matched_to
    if first is None:
        return 0
    share = 1 - first / max(1, repository.header.next_document)
    return max(1, round(share * repository.header.documents))


def step(repository: CorpusRepository, context: Context) -> Slices[None]:
    """Look for names in some documents, and come back for the rest."""
    table = yield from repository.entities.loaded(context)
    header = table.header
    if repository.header.is_dropped or header.matched_to is None or not can_match():
        return
    characters = 0
    begin_at = corpus_records.number_key(header.matched_to)
    most = context.most_rows(_STEP_DOCUMENTS)
    documents = context.scan(bytes, prefix=corpus_records.NUMBERS, start=begin_at)
    for read, (key, where) in enumerate(documents):
        number = int.from_bytes(key[len(corpus_records.NUMBERS) :])
        if read >= most or characters >= _STEP_CHARACTERS:
            table.put_header(context, msgspec.structs.replace(header, matched_to=number))
            context.set_timer(TIMER, context.now, MatchDocuments())
            break
        document = context.get(where, DocumentRecord)
        assert document is not None, "a number's row goes with its document"
        passages = [
            passage
            for block in range(len(document.blocks))
            for passage in repository.passages(context, document, block)
        ]
        yield from _match(repository, context, document, passages)
        characters += document.text_bytes
    else:
        table.put_header(context, msgspec.structs.replace(header, matched_to=None))
        repository.publish(context)
    repository.answers.clear()


def _match(
    repository: CorpusRepository, context: Context, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[None]:
    """Stage what a document mentions."""
    record = yield from matched(repository, context, document, passages)
    repository.entities.put_mentions(context, document.number, record)


def matched(
    repository: CorpusRepository, context: Context, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[bytes]:
    """Return what a document mentions. Of its headings the next one above a chunk is read as part of that."""
    above = {heading for passage in passages for heading in passage.headings}
    found = yield from repository.entities.matcher().match(
        ("\n".join([*passage.headings[-1:], passage.text]) for passage in passages),
        "\n".join([document.title, *sorted(above)]),
        context.should_yield,
    )
    return entity_records.packed_mentions((place.id for place in document.places), found)
