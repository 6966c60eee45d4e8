"""Match entities' names in new documents, and in all documents when names change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from greenroom.actors.knowledge.corpora.storage import entity_records, records
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, matcher
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Message, Slices

TIMER: Final = "match"
_STEP_CHARACTERS: Final = 1_000_000
"""One step matches about this many characters of text, which takes about 50 ms."""
_STEP_DOCUMENTS: Final = 500


class MatchDocuments(Message[None], frozen=True):
    """A corpus's message to itself: it must match more documents."""


def put(
    repository: CorpusRepository, context: Context, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[None]:
    """Stage the mentions of a document that is being stored."""
    table = yield from repository.entities.load(context)
    if not table.by_number:
        return
    if can_match():
        yield from _put_mentions(repository, context, document, passages)
    else:
        first = table.header.matched_to
        waiting = document.number if first is None else min(first, document.number)
        table.put_header(context, msgspec.structs.replace(table.header, matched_to=waiting))


def remove(repository: CorpusRepository, context: Context, document: int) -> None:
    """Stage the removal of a document's mentions."""
    repository.entities.put_mentions(context, document, b"")


def start(repository: CorpusRepository, context: Context) -> None:
    """Start to match all documents, beginning with the first."""
    table = repository.entities
    waiting = 0 if repository.header.documents else None
    found = matcher() if can_match() else table.header.matcher
    table.put_header(context, msgspec.structs.replace(table.header, matched_to=waiting, matcher=found))
    if waiting is not None:
        context.set_timer(TIMER, context.now, MatchDocuments())


def resume(repository: CorpusRepository, context: Context) -> None:
    """Stage the next step if it is due but not scheduled.

    This happens after a time without a matcher. If the matcher is newer, start to match all documents again.
    """
    table = repository.entities
    if table.by_number and can_match() and is_newer(matcher(), table.header.matcher):
        start(repository, context)
    elif table.header.matched_to is not None and can_match() and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now, MatchDocuments())


def count_waiting(repository: CorpusRepository) -> int:
    """Return roughly how many documents must still be matched."""
    first = repository.entities.header.matched_to
    if first is None:
        return 0
    share = 1 - first / max(1, repository.header.next_document)
    return max(1, round(share * repository.header.documents))


def match(repository: CorpusRepository, _: MatchDocuments, context: Context) -> Slices[None]:
    """Match some documents, and set a timer for the rest."""
    table = yield from repository.entities.load(context)
    header = table.header
    if repository.header.is_dropped or header.matched_to is None or not can_match():
        return
    characters = 0
    begin_at = records.number_key(header.matched_to)
    most = context.most_rows(_STEP_DOCUMENTS)
    documents = context.scan(bytes, prefix=records.NUMBERS, start=begin_at)
    for read, (key, where) in enumerate(documents):
        number = int.from_bytes(key[len(records.NUMBERS) :])
        if read >= most or characters >= _STEP_CHARACTERS:
            table.put_header(context, msgspec.structs.replace(header, matched_to=number))
            context.set_timer(TIMER, context.now, MatchDocuments())
            break
        document = context.get(where, DocumentRecord)
        assert document is not None, "a number's row goes with its document"
        passages = list(repository.all_passages(context, document))
        yield from _put_mentions(repository, context, document, passages)
        characters += document.text_bytes
    else:
        table.put_header(context, msgspec.structs.replace(header, matched_to=None))
        repository.publish(context)
    repository.answers.clear()


def _put_mentions(
    repository: CorpusRepository, context: Context, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[None]:
    record = yield from match_document(repository, document, passages)
    repository.entities.put_mentions(context, document.number, record)


def match_document(
    repository: CorpusRepository, document: DocumentRecord, passages: Sequence[Passage]
) -> Slices[bytes]:
    """Return a document's packed mentions; each chunk is matched with its nearest heading."""
    above = {heading for passage in passages for heading in passage.headings}
    found = yield from repository.entities.matcher().match(
        ("\n".join([*passage.headings[-1:], passage.text]) for passage in passages),
        "\n".join([document.title, *sorted(above)]),
    )
    return entity_records.pack_mentions((place.id for place in document.places), found)
