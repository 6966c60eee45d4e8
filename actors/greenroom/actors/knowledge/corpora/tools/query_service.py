"""Search and read corpora: find one or all, query within a time limit, merge results."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.grades import GOOD
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    FindCorpus,
    VisibleCorpora,
    corpus_address,
    corpus_not_found,
    may_see_owner,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow, IndexedFile
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext, Refusal

R = TypeVar("R")

SEARCH_SECONDS: Final = 2.0
"""A search is cut after this time, and its reply says so."""
EMBED_SECONDS: Final = 1.0
"""Of this time, a query waits at most this long for its vectors."""
MOST_CORPORA: Final = 20
"""One search queries at most this many corpora."""
_LATE: Final = (
    "the search was cut after 2 s, before {} answered: an index is being read, or others are before you; "
    "ask again"
)
_STRATEGIES: Final[tuple[corpus_requests.UsedStrategy, ...]] = ("hybrid", "vector", "bm25")
"""If corpora used several strategies, the reply reports the first of these that was used."""
_NAMED: Final = 5
"""At most this many corpora without a reply are named."""
Form = Literal["question", "keywords", "identifier", "quoted"]

_QUOTED: Final = re.compile(r"""\s*(["'`“«]).+(["'`”»])\s*""", re.DOTALL)
_IDENTIFIER: Final = re.compile(
    r"\S*(?:[a-z0-9][A-Z]|_|::|\.[A-Za-z]|\(\)|/|--?[a-z])\S*|[A-Z][A-Z0-9]{2,}\S*"
)
_QUESTION: Final = re.compile(
    r"\?\s*$|^\s*(?:who|whom|whose|what|which|where|when|why|how|can|could|does|do|did|is|are|should|will"
    r"|wer|was|wo|welche\w*|wann|wie|warum|kann|qui|que|quel\w*|où|comment|qué|quién|dónde|cómo)\b",
    re.IGNORECASE,
)
_FEW_WORDS: Final = 2


class WithFiles(msgspec.Struct, Generic[R], frozen=True):
    """A reply and its files; the files can be compared with the client's disk."""

    reply: R = msgspec.field(name="said")  # the field's name between processes that share a folder
    files: list[IndexedFile] = []


class SearchCorpora(Procedure[WithFiles[corpus_requests.ChunksFound]], frozen=True, kw_only=True):
    """Search one corpus, or all visible corpora; `SemanticSearch` runs this.

    ``asked`` is the request to each corpus, without the corpus's name and without vectors.
    """

    audit_action: ClassVar[str] = "semantic_search"

    corpus: corpus_requests.SearchedCorpus
    asked: corpus_requests.FindChunks

    async def run(self, context: ProcedureContext) -> WithFiles[corpus_requests.ChunksFound]:
        """Query the corpora, for two seconds at most."""
        began = trio.current_time()
        _, answer = await self.answers(context)
        took = round((trio.current_time() - began) * 1_000, 3)
        return WithFiles(msgspec.structs.replace(answer.reply, execution_time_ms=took), answer.files)

    async def answers(
        self, context: ProcedureContext
    ) -> tuple[Replies, WithFiles[corpus_requests.ChunksFound]]:
        """Return the corpora's replies within two seconds, and the merged reply; record the read."""
        began = trio.current_time()
        is_one = self.corpus != corpus_requests.EVERY_CORPUS
        rows = [await find_row(context, self.corpus)] if is_one else await _list_documents_corpora(context)
        answers = Replies(rows)
        with trio.move_on_at(began + SEARCH_SECONDS):
            vectors, absence = await self._vectors(context)
            request = msgspec.structs.replace(self.asked, vectors=vectors, absence=absence)
            if is_one:
                answers.found[rows[0]] = await query_corpus(context, rows[0], request)
            else:
                await answers.gather(context, request)
        for row in answers.late:
            context.tell(corpus_address(row), corpus_requests.LoadCorpus())
        name = rows[0].full_name if is_one else self.corpus
        answer = merge_replies(answers, self.asked, name)
        audit_record.record_read(
            context,
            context.principal,
            self.audit_action,
            None,
            corpus=name,
            query_characters=len(self.asked.query),
            found=len(answer.reply.results),
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


class Replies:
    """Replies of corpora so far."""

    def __init__(self, rows: Sequence[CorpusRow]) -> None:
        self.found: dict[CorpusRow, corpus_requests.FoundChunks] = {}
        self.failed: list[CorpusRow] = []
        self._rows = list(rows)

    @property
    def late(self) -> list[CorpusRow]:
        """Corpora that have not replied."""
        return [row for row in self._rows if row not in self.found and row not in self.failed]

    async def gather(self, context: ProcedureContext, request: corpus_requests.FindChunks) -> None:
        """Query all corpora in parallel."""
        async with trio.open_nursery() as nursery:
            for row in list(self._rows):
                nursery.start_soon(self._ask, context, row, request)

    async def _ask(
        self, context: ProcedureContext, row: CorpusRow, request: corpus_requests.FindChunks
    ) -> None:
        try:
            self.found[row] = await query_corpus(context, row, request)
        except Refusal:  # it was dropped meanwhile: as if it had never existed
            self._rows.remove(row)
        except GreenroomError:
            self.failed.append(row)


async def query_corpus(
    context: ProcedureContext, row: CorpusRow, request: corpus_requests.FindChunks
) -> corpus_requests.FoundChunks:
    """Return the results of one corpus."""
    of_row = msgspec.structs.replace(request, corpus=row.full_name, id_prefix=row.id_prefix)
    return await context.ask(corpus_address(row), of_row)


async def _list_documents_corpora(context: ProcedureContext) -> list[CorpusRow]:
    """Return the visible corpora of documents; code has tools of its own."""
    rows = [row for row in await context.query(VisibleCorpora()) if row.root is None]
    if len(rows) > MOST_CORPORA:
        raise auth_errors.invalid(
            "corpus",
            f"corpus: you may see {len(rows):,} corpora and '*' searches {MOST_CORPORA} at most; "
            "name one that list_corpora lists",
            limit=MOST_CORPORA,
        )
    return rows


def merge_replies(
    answers: Replies, request: corpus_requests.FindChunks, name: str
) -> WithFiles[corpus_requests.ChunksFound]:
    """Merge the replies by score; scores of different corpora are comparable."""
    found = answers.found
    is_nothing = all(answer.is_nothing for answer in found.values() if answer.results)
    is_one = name != corpus_requests.EVERY_CORPUS
    ranked = sorted(
        (
            (each if is_one else msgspec.structs.replace(each, corpus=row.full_name))
            for row, answer in found.items()
            for each in ([] if is_nothing else answer.results)
        ),
        key=lambda each: (-each.hybrid_score, str(each.corpus), each.rank),
    )
    results = [
        msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(ranked[: request.top_k], 1)
    ]
    strategies = {answer.strategy for answer in found.values()} or {"bm25"}
    strategy = next(each for each in _STRATEGIES if each in strategies)
    analysis = _merge_analyses(found.values(), strategy, request.query)
    is_worth_reporting = strategy != request.strategy or analysis.corrected or analysis.unknown
    shown = {each.source_file for each in results}
    missing = _describe_missing(answers)
    reply = corpus_requests.ChunksFound(
        results=results,
        total_found=0 if is_nothing else sum(answer.total for answer in found.values()),
        strategy_used=strategy,
        query_analysis=analysis if is_worth_reporting else UNSET,
        execution_time_ms=0.0,
        corpus=name,
        freshness=_merge_freshness([answer.freshness for answer in found.values()]),
        cache_hit=bool(found) and all(answer.cache_hit for answer in found.values()),
        weak=True if results and max(each.score for each in results) < GOOD else UNSET,
        partial=True if missing else UNSET,
        partial_reason=missing or UNSET,
    )
    files = [file for answer in found.values() for file in answer.files if file.path in shown]
    return WithFiles(reply, files)


def _merge_freshness(each: Sequence[corpus_requests.FreshnessView]) -> corpus_requests.FreshnessView:
    return corpus_requests.FreshnessView(
        indexed_at=max((one.indexed_at for one in each if one.indexed_at), default=None),
        waiting_for_vectors=sum(one.waiting_for_vectors for one in each),
    )


def _merge_analyses(
    found: Collection[corpus_requests.FoundChunks], strategy: corpus_requests.UsedStrategy, query: str
) -> corpus_requests.QueryAnalysis:
    """Merge the analyses; a word is unknown or corrected only if no corpus has it."""
    if not found:
        return corpus_requests.QueryAnalysis(form=find_form(query), reason="nothing was searched")
    of_strategy = next(answer.analysis for answer in found if answer.strategy == strategy)
    lacking = [{*answer.analysis.corrected, *answer.analysis.unknown} for answer in found]
    words = set.intersection(*lacking)
    corrected: dict[str, list[str]] = {}
    for answer in found:
        for word, meant in answer.analysis.corrected.items():
            if word in words:
                corrected[word] = list(dict.fromkeys([*corrected.get(word, []), *meant]))
    unknown = [word for word in of_strategy.unknown if word in words and word not in corrected]
    return msgspec.structs.replace(of_strategy, corrected=corrected, unknown=unknown)


def find_form(query: str) -> Form:
    """Return the form of a query."""
    if _QUOTED.fullmatch(query):
        return "quoted"
    words = query.split()
    if len(words) <= _FEW_WORDS and any(_IDENTIFIER.fullmatch(word) for word in words):
        return "identifier"
    return "question" if _QUESTION.search(query) else "keywords"


def _describe_missing(answers: Replies) -> str:
    parts = list(dict.fromkeys(answer.partial for answer in answers.found.values() if answer.partial))
    if answers.late:
        parts.append(_LATE.format(_join_names(answers.late)))
    if answers.failed:
        parts.append(f"{_join_names(answers.failed)} could not answer; ask again, or the operator")
    return ". ".join(parts)


def _join_names(rows: Sequence[CorpusRow]) -> str:
    names = sorted(row.full_name for row in rows)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


class ReadPassages(Procedure[WithFiles[corpus_requests.FullContent]], frozen=True, kw_only=True):
    """Read passages in full from any corpus; `GetFullContent` runs it."""

    audit_action: ClassVar[str] = "get_full_content"

    corpus: corpus_requests.CorpusName | UnsetType = UNSET
    chunk_ids: corpus_requests.ChunkIds
    around: corpus_requests.Around

    async def run(self, context: ProcedureContext) -> WithFiles[corpus_requests.FullContent]:
        """Query the corpora that the ids name, as far as the caller may see them."""
        began = trio.current_time()
        only = None if self.corpus is UNSET else await find_row(context, self.corpus)
        rows = await context.query(VisibleCorpora())
        places = {chunk_id: _find_place(chunk_id, rows) for chunk_id in self.chunk_ids}
        if not any(places.values()) and not any(corpus_requests.split_id(chunk_id)[0] for chunk_id in places):
            raise _refuse_old_id(self.chunk_ids[0], rows)
        wanted: dict[CorpusRow, list[int]] = {}
        for place in places.values():
            if place is not None and only in {None, place.row}:
                wanted.setdefault(place.row, []).append(place.id)
        chunks: dict[int, corpus_requests.ChunkContent] = {}
        files: list[IndexedFile] = []
        freshness: list[corpus_requests.FreshnessView] = []
        for row, ids in wanted.items():
            request = corpus_requests.ReadChunks(
                corpus=row.full_name, id_prefix=row.id_prefix, chunk_ids=ids, around=self.around
            )
            try:
                found = await context.ask(corpus_address(row), request)
            except Refusal:  # it was dropped meanwhile
                continue
            named = UNSET if len(wanted) == 1 else row.full_name
            chunks |= {each.chunk_id: msgspec.structs.replace(each, corpus=named) for each in found.chunks}
            files += found.files
            freshness.append(found.freshness)
            audit_record.record_read(
                context,
                context.principal,
                self.audit_action,
                None,
                corpus=row.full_name,
                found=len(found.chunks),
            )
        if not wanted:
            audit_record.record_read(context, context.principal, self.audit_action, None, found=0)
        opened = {
            chunk_id: None if place is None else chunks.get(place.id) for chunk_id, place in places.items()
        }
        corpora = [row.full_name for row in ([only] if only else wanted)]
        reply = corpus_requests.FullContent(
            chunks=[each for each in opened.values() if each is not None],
            unknown_ids=[chunk_id for chunk_id, each in opened.items() if each is None],
            corpus=corpora[0] if len(corpora) == 1 else UNSET,
            freshness=_merge_freshness(freshness) if freshness else UNSET,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
        )
        return WithFiles(reply, files)


class _Place(NamedTuple):
    """The corpus of a chunk id, and the id in that corpus."""

    row: CorpusRow
    id: int


def _find_place(id: int, rows: Sequence[CorpusRow]) -> _Place | None:
    prefix, number = corpus_requests.split_id(id)
    if prefix:
        return next((_Place(row, id) for row in rows if row.id_prefix == prefix), None)
    for row in rows:
        if number < row.old_ids:
            return _Place(row, corpus_requests.chunk_id(row.id_prefix, number))
    return None


def _refuse_old_id(id: int, rows: Sequence[CorpusRow]) -> Refusal:
    corpora = [row.full_name for row in rows]
    return auth_errors.invalid(
        "chunk_ids",
        f"chunk_ids: {id} names no corpus, as ids of hits do; search again, you may see "
        f"{', '.join(corpora[:MOST_CORPORA]) or 'no corpus'}",
        corpora=corpora[:MOST_CORPORA],
    )


@operation(
    "list_corpora",
    scope="knowledge:read",
    tool=ToolText(
        title="See collections of documents",
        description="See which collections of documents, bodies of text, there are to search, how "
        "big each is and how old its index.",
        weight=4,
    ),
)
class ListCorpora(
    Procedure[corpus_requests.CorporaListed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """List the corpora that the caller may see, with what is in each."""

    async def run(self, context: ProcedureContext) -> corpus_requests.CorporaListed:
        """Query one corpus after the other."""
        found: list[corpus_requests.CorpusView] = []
        for row in await context.query(VisibleCorpora()):
            try:
                found.append(await context.ask(corpus_address(row), corpus_requests.DescribeCorpus(row=row)))
            except Refusal:  # it was dropped meanwhile
                continue
        return corpus_requests.CorporaListed(corpora=found)


async def find_row(context: ProcedureContext, name: str) -> CorpusRow:
    """Return the corpus with a name, or refuse and suggest names that may be meant."""
    is_open = may_see_owner(context.principal, name)
    row = await context.query(FindCorpus(name=name)) if is_open else None
    if row is not None:
        return row
    others = [each for each in await context.query(VisibleCorpora()) if each.root is None]
    known = [name for each in others for name in (each.name, each.full_name)]
    refusal = corpus_not_found(name, known, context.principal.scopes)
    raise refusal if is_open else auth_errors.denial(refusal)
