"""Searching corpora and reading them: find the corpus, or all of them, ask in time, answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies.grades import GOOD
from greenroom.actors.core.replies.memory_types import QueryVectors
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    FindCorpus,
    VisibleCorpora,
    corpus_address,
    corpus_not_found,
    may_see_owner,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow, IndexedFile
from greenroom.actors.knowledge.corpora.tools.query_form import form_of
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext, Refusal

R = TypeVar("R")

SEARCH_SECONDS: Final = 2.0
"""A search is cut then, and says so."""
EMBED_SECONDS: Final = 1.0
"""Of these, how long a query waits for its vectors."""
MOST_CORPORA: Final = 20
"""Corpora that one search asks at most."""
_LATE: Final = (
    "the search was cut after 2 s, before {} answered: an index is being read, or others are before you; "
    "ask again"
)
_STRATEGIES: Final[tuple[schemas.UsedStrategy, ...]] = ("hybrid", "vector", "bm25")
"""What is said of several, the first that is among them."""
_NAMED: Final = 5
"""Corpora that are named of those that did not answer."""


class Answered(msgspec.Struct, Generic[R], frozen=True):
    """An answer, and the files in it, which are looked at where the client is connected."""

    said: R
    files: list[IndexedFile] = []


class SearchCorpora(Procedure[Answered[schemas.ChunksFound]], frozen=True, kw_only=True):
    """Search one corpus, or all that the caller may see; `SemanticSearch` asks it.

    Attributes:
        corpus: Its name, or `EVERY_CORPUS`.
        asked: What is looked for; its corpus and vectors do not count.
    """

    deed: ClassVar[str] = "semantic_search"

    corpus: schemas.SearchedCorpus
    asked: schemas.FindChunks

    async def run(self, context: ProcedureContext) -> Answered[schemas.ChunksFound]:
        """Ask all of them, for two seconds at most.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, or ``VALIDATION_ERROR``: there are too many.
        """
        began = trio.current_time()
        _, answer = await self.answers(context)
        took = round((trio.current_time() - began) * 1_000, 3)
        return Answered(msgspec.structs.replace(answer.said, execution_time_ms=took), answer.files)

    async def answers(self, context: ProcedureContext) -> tuple[Answers, Answered[schemas.ChunksFound]]:
        """Return what each corpus answers in two seconds, and all of it as one, of which the audit log knows.

        Raises:
            Refusal: as `run`.
        """
        began = trio.current_time()
        is_one = self.corpus != schemas.EVERY_CORPUS
        rows = [await corpus_row(context, self.corpus)] if is_one else await _every_corpus(context)
        answers = Answers(rows)
        with trio.move_on_at(began + SEARCH_SECONDS):
            vectors, absence = await self._vectors(context)
            asked = msgspec.structs.replace(self.asked, vectors=vectors, absence=absence)
            if is_one:
                answers.found[rows[0]] = await ask_one(context, rows[0], asked)
            else:
                await answers.gather(context, asked)
        for row in answers.late:
            context.tell(corpus_address(row), schemas.LoadCorpus())
        name = rows[0].full_name if is_one else self.corpus
        answer = merged(answers, self.asked, name)
        audit_record.record_read(
            context,
            context.principal,
            self.deed,
            None,
            corpus=name,
            query_characters=len(self.asked.query),
            found=len(answer.said.results),
        )
        return answers, answer

    async def _vectors(self, context: ProcedureContext) -> tuple[QueryVectors | None, str | None]:
        """Return the query's vectors, or why there are none."""
        embedding: EmbeddingService | None = context.sidecar
        if self.asked.strategy == "bm25":
            return None, None
        if embedding is None:
            return None, "no embedder runs"
        vectors = None
        with trio.move_on_after(EMBED_SECONDS):
            vectors = await embedding.query(self.asked.query)
        if vectors is None:
            return None, embedding.absence or "the embedder has no vector of this query"
        return vectors, None


class Answers:
    """What corpora answered so far.

    Attributes:
        found: The answers.
        failed: Those that could not answer.
    """

    def __init__(self, rows: Sequence[CorpusRow]) -> None:
        self.found: dict[CorpusRow, schemas.FoundChunks] = {}
        self.failed: list[CorpusRow] = []
        self._rows = list(rows)

    @property
    def late(self) -> list[CorpusRow]:
        """Those that have not answered."""
        return [row for row in self._rows if row not in self.found and row not in self.failed]

    async def gather(self, context: ProcedureContext, asked: schemas.FindChunks) -> None:
        """Ask all corpora side by side."""
        async with trio.open_nursery() as nursery:
            for row in list(self._rows):
                nursery.start_soon(self._ask, context, row, asked)

    async def _ask(self, context: ProcedureContext, row: CorpusRow, asked: schemas.FindChunks) -> None:
        try:
            self.found[row] = await ask_one(context, row, asked)
        except Refusal:  # dropped meanwhile: as if it had never been there
            self._rows.remove(row)
        except GreenroomError:
            self.failed.append(row)


async def ask_one(
    context: ProcedureContext, row: CorpusRow, asked: schemas.FindChunks
) -> schemas.FoundChunks:
    """Return what one corpus finds."""
    of_row = msgspec.structs.replace(asked, corpus=row.full_name, id_prefix=row.id_prefix)
    return await context.ask(corpus_address(row), of_row)


async def _every_corpus(context: ProcedureContext) -> list[CorpusRow]:
    """Return the corpora of documents that the caller may see; code is searched by tools of its own.

    Raises:
        Refusal: ``VALIDATION_ERROR``: there are too many.
    """
    rows = [row for row in await context.query(VisibleCorpora()) if row.root is None]
    if len(rows) > MOST_CORPORA:
        raise auth_errors.invalid(
            "corpus",
            f"corpus: you may see {len(rows):,} corpora and '*' searches {MOST_CORPORA} at most; "
            "name one that list_corpora lists",
            limit=MOST_CORPORA,
        )
    return rows


def merged(answers: Answers, asked: schemas.FindChunks, name: str) -> Answered[schemas.ChunksFound]:
    """Return all answers as one, in the order of their scores, which compare among corpora."""
    found = answers.found
    is_nothing = all(answer.is_nothing for answer in found.values() if answer.results)
    is_one = name != schemas.EVERY_CORPUS
    ranked = sorted(
        (
            (each if is_one else msgspec.structs.replace(each, corpus=row.full_name))
            for row, answer in found.items()
            for each in ([] if is_nothing else answer.results)
        ),
        key=lambda each: (-each.hybrid_score, str(each.corpus), each.rank),
    )
    results = [msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(ranked[: asked.top_k], 1)]
    strategies = {answer.strategy for answer in found.values()} or {"bm25"}
    strategy = next(each for each in _STRATEGIES if each in strategies)
    analysis = _analysis(found.values(), strategy, asked.query)
    is_told = strategy != asked.strategy or analysis.corrected or analysis.unknown
    shown = {each.source_file for each in results}
    missing = _missing(answers)
    said = schemas.ChunksFound(
        results=results,
        total_found=0 if is_nothing else sum(answer.total for answer in found.values()),
        strategy_used=strategy,
        query_analysis=analysis if is_told else UNSET,
        execution_time_ms=0.0,
        corpus=name,
        freshness=_freshness([answer.freshness for answer in found.values()]),
        cache_hit=bool(found) and all(answer.cache_hit for answer in found.values()),
        weak=True if results and max(each.score for each in results) < GOOD else UNSET,
        partial=True if missing else UNSET,
        partial_reason=missing or UNSET,
    )
    files = [file for answer in found.values() for file in answer.files if file.path in shown]
    return Answered(said, files)


def _freshness(each: Sequence[schemas.FreshnessView]) -> schemas.FreshnessView:
    """Return how fresh several corpora are together."""
    return schemas.FreshnessView(
        indexed_at=max((one.indexed_at for one in each if one.indexed_at), default=None),
        waiting_for_vectors=sum(one.waiting_for_vectors for one in each),
    )


def _analysis(
    found: Collection[schemas.FoundChunks], strategy: schemas.UsedStrategy, query: str
) -> schemas.QueryAnalysis:
    """Return how a query was understood; a word is unknown or corrected where no corpus has it."""
    if not found:
        return schemas.QueryAnalysis(form=form_of(query), reason="nothing was searched")
    told = next(answer.analysis for answer in found if answer.strategy == strategy)
    lacking = [{*answer.analysis.corrected, *answer.analysis.unknown} for answer in found]
    words = set.intersection(*lacking)
    corrected: dict[str, list[str]] = {}
    for answer in found:
        for word, meant in answer.analysis.corrected.items():
            if word in words:
                corrected[word] = list(dict.fromkeys([*corrected.get(word, []), *meant]))
    unknown = [word for word in told.unknown if word in words and word not in corrected]
    return msgspec.structs.replace(told, corrected=corrected, unknown=unknown)


def _missing(answers: Answers) -> str:
    """Describe the corpora whose answer is missing or partial, with the reasons."""
    parts = list(dict.fromkeys(answer.partial for answer in answers.found.values() if answer.partial))
    if answers.late:
        parts.append(_LATE.format(_named(answers.late)))
    if answers.failed:
        parts.append(f"{_named(answers.failed)} could not answer; ask again, or the operator")
    return ". ".join(parts)


def _named(rows: Sequence[CorpusRow]) -> str:
    names = sorted(row.full_name for row in rows)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


class ReadPassages(Procedure[Answered[schemas.FullContent]], frozen=True, kw_only=True):
    """Read passages in full, wherever they are; `GetFullContent` asks it.

    Attributes:
        corpus: Where alone to look, if that is wanted.
    """

    deed: ClassVar[str] = "get_full_content"

    corpus: schemas.CorpusName | UnsetType = UNSET
    chunk_ids: schemas.ChunkIds
    around: schemas.Around

    async def run(self, context: ProcedureContext) -> Answered[schemas.FullContent]:
        """Ask the corpora that the ids name, of those that the caller may see.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``; ``VALIDATION_ERROR``: every id is from before ids named a corpus.
        """
        began = trio.current_time()
        only = None if self.corpus is UNSET else await corpus_row(context, self.corpus)
        rows = await context.query(VisibleCorpora())
        places = {asked: _place_of(asked, rows) for asked in self.chunk_ids}
        if not any(places.values()) and not any(schemas.split_id(asked)[0] for asked in places):
            raise _names_no_corpus(self.chunk_ids[0], rows)
        wanted: dict[CorpusRow, list[int]] = {}
        for place in places.values():
            if place is not None and only in {None, place.row}:
                wanted.setdefault(place.row, []).append(place.id)
        chunks: dict[int, schemas.ChunkContent] = {}
        files: list[IndexedFile] = []
        freshness: list[schemas.FreshnessView] = []
        for row, ids in wanted.items():
            request = schemas.ReadChunks(
                corpus=row.full_name, id_prefix=row.id_prefix, chunk_ids=ids, around=self.around
            )
            try:
                found = await context.ask(corpus_address(row), request)
            except Refusal:  # dropped meanwhile
                continue
            named = UNSET if len(wanted) == 1 else row.full_name
            chunks |= {each.chunk_id: msgspec.structs.replace(each, corpus=named) for each in found.chunks}
            files += found.files
            freshness.append(found.freshness)
            audit_record.record_read(
                context, context.principal, self.deed, None, corpus=row.full_name, found=len(found.chunks)
            )
        if not wanted:
            audit_record.record_read(context, context.principal, self.deed, None, found=0)
        opened = {asked: None if place is None else chunks.get(place.id) for asked, place in places.items()}
        corpora = [row.full_name for row in ([only] if only else wanted)]
        said = schemas.FullContent(
            chunks=[each for each in opened.values() if each is not None],
            unknown_ids=[asked for asked, each in opened.items() if each is None],
            corpus=corpora[0] if len(corpora) == 1 else UNSET,
            freshness=_freshness(freshness) if freshness else UNSET,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
        )
        return Answered(said, files)


class _Place(NamedTuple):
    """The corpus that an id is of, and the id as that gives it."""

    row: CorpusRow
    id: int


def _place_of(id: int, rows: Sequence[CorpusRow]) -> _Place | None:
    """Return where a chunk has to be, among corpora that the caller may see; None for an unknown id."""
    prefix, number = schemas.split_id(id)
    if prefix:
        return next((_Place(row, id) for row in rows if row.id_prefix == prefix), None)
    for row in rows:
        if number < row.old_ids:
            return _Place(row, schemas.chunk_id(row.id_prefix, number))
    return None


def _names_no_corpus(id: int, rows: Sequence[CorpusRow]) -> Refusal:
    """Return the refusal of an id that names no corpus, where there may have been several."""
    corpora = [row.full_name for row in rows]
    return auth_errors.invalid(
        "chunk_ids",
        f"chunk_ids: {id} names no corpus, as ids of hits do; search again, you may see "
        f"{', '.join(corpora[:MOST_CORPORA]) or 'no corpus'}",
        corpora=corpora[:MOST_CORPORA],
    )


class ListCorpora(Procedure[schemas.CorporaListed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the corpora that the caller may see, with what is in each."""

    async def run(self, context: ProcedureContext) -> schemas.CorporaListed:
        """Ask one after the other."""
        found: list[schemas.CorpusView] = []
        for row in await context.query(VisibleCorpora()):
            try:
                found.append(await context.ask(corpus_address(row), schemas.DescribeCorpus(row=row)))
            except Refusal:  # dropped meanwhile
                continue
        return schemas.CorporaListed(corpora=found)


async def corpus_row(context: ProcedureContext, name: str) -> CorpusRow:
    """Return the corpus that a name means.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``.
    """
    is_open = may_see_owner(context.principal, name)
    row = await context.query(FindCorpus(name=name)) if is_open else None
    if row is not None:
        return row
    others = [each for each in await context.query(VisibleCorpora()) if each.root is None]
    known = [name for each in others for name in (each.name, each.full_name)]
    refusal = corpus_not_found(name, known, context.principal.scopes)
    raise refusal if is_open else auth_errors.denial(refusal)
