"""Headings of documentation, each asked for its section: `semantic_search` beside FTS5 and rank-bm25.

Without ``--data`` the documentation is Greenroom's own. With it, the folder has `queries.K.jsonl`
(``corpus``, ``query``, ``file``) and a folder of files for each corpus. All contenders search the same
chunks, twice: with the headings above each chunk, and without the nearest one, so that a question's words are
found nowhere as they stand. An answer is a file; it is where its best chunk is. `bench.headings` makes such a
folder of other pages. With ``--peers`` mcp-local-rag is asked, too, over pages that say the same; it cuts
them itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import trio

from bench.document_peers import LOCAL_RAG, Find, local_rag
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.headings import LONGEST, Question, documents_of, questions
from bench.rivals import Make, rank_bm25, sqlite_fts5
from greenroom.actors import (
    Agent,
    Document,
    ListCorpora,
    Principal,
    PutDocument,
    SemanticSearch,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from bench.harness import Value

OWN = Path(__file__).parent.parent / "docs"
READER = Principal(agent_id="reader", user="bench")
CHUNKS = 50
"""Chunks that are asked for, so that there are ten files among them mostly."""
DEPTH = 10


class Library(NamedTuple):
    """The documents of one corpus, and what is asked of them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]
    strange: Sequence[Question] = ()


class Hit(NamedTuple):
    """The file of a chunk, and the chunk's score where that can be compared between questions."""

    file: str
    score: float = 0.0


class Answered(NamedTuple):
    """The answers of one contender.

    Attributes:
        ranks: Of each right file; 0 for none.
        times: In milliseconds.
        scores: Of the first answers.
        strange: The same for questions about another project.
    """

    ranks: list[int]
    times: list[float]
    scores: list[float]
    strange: list[float]


Search = Callable[[str], Awaitable[list[Hit]]]
"""Returns the best chunks, best first."""


def run(plan: Plan) -> Report:
    """Measure all on both forms of the chunks."""
    libraries = [_own(plan)] if plan.data is None else strangers(libraries_in(plan.data))
    rows: list[list[Value]] = []
    apart: list[list[Value]] = []
    figures: list[Figure] = []
    filled: list[float] = []
    scored: list[Answered] = []
    for form, headings in (("with", True), ("without", False)):
        answered: dict[str, list[Answered]] = {}
        for library in libraries:
            given = library if headings else without_headings(library)
            with plan.folder() as folder:
                filled += trio.run(_measured, folder, given, answered, plan.peers)
        for name, parts in answered.items():
            ranks = [rank for part in parts for rank in part.ranks]
            times = [each for part in parts for each in part.times]
            first, found, reciprocal = _measures(ranks)
            rows.append([form, name, first, found, reciprocal, median(times), percentile(times, 95)])
            if name == "greenroom, static" and plan.data is not None:
                least = (99.0, 90.0) if headings else (86.0, 60.0)
                figures += [
                    Figure(what=f"{form} headings, recall@10 %", value=found, least=least[0]),
                    Figure(what=f"{form} headings, MRR %", value=reciprocal, least=least[1]),
                ]
            if name.startswith("greenroom"):
                check(found >= (80 if headings else 40), f"only {found:.0f} % were found {form} headings")
        scored += answered["greenroom, static"]
        apart += [
            [library.name, form, *(_in_short(parts[number].ranks) for parts in answered.values())]
            for number, library in enumerate(libraries)
        ]
    figures.append(Figure(what="MB/s put in, words", value=median(filled), least=2.0))
    asked = sum(len(library.questions) for library in libraries)
    table = Table(
        title=f"{asked} headings, each asked for the file with its section",
        columns=["headings", "search", "recall@1 %", "recall@10 %", "MRR %", "50 % ms", "95 % ms"],
        rows=rows,
    )
    by_project = Table(
        title="the same by project: recall@10 / MRR in %",
        columns=["project", "headings", *answered],
        rows=apart,
    )
    tables = [table, by_project] if len(libraries) > 1 else [table]
    return Report(tables=[*tables, _worth(scored)], figures=[] if plan.smoke else figures)


def _worth(scored: Sequence[Answered]) -> Table:
    """Return what share of the first answers was right, by their scores, in both forms together."""
    right: dict[int, list[bool]] = {tenth: [] for tenth in range(10)}
    strange = [score for answered in scored for score in answered.strange]
    for answered in scored:
        for score, rank in zip(answered.scores, answered.ranks, strict=True):
            right[min(int(score * 10), 9)].append(rank == 1)
    return Table(
        title="first answers of greenroom, static: how many were right, by score",
        columns=["score", "answers", "right %", "of another project's questions, so much or more %"],
        rows=[
            [
                f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}",
                len(found),
                100 * fmean(found) if found else None,
                100 * fmean(score >= tenth / 10 for score in strange) if strange else None,
            ]
            for tenth, found in right.items()
        ],
    )


def _in_short(ranks: Sequence[int]) -> str:
    _, found, reciprocal = _measures(ranks)
    return f"{found:.0f} / {reciprocal:.0f}"


def _measures(ranks: Sequence[int]) -> tuple[float, float, float]:
    """Return recall@1, recall@10 and the mean reciprocal rank, in per cent."""
    return (
        100 * fmean(rank == 1 for rank in ranks),
        100 * fmean(0 < rank <= DEPTH for rank in ranks),
        100 * fmean(1 / rank if rank else 0.0 for rank in ranks),
    )


# -- what is asked -------------------------------------------------------------------------


def _own(plan: Plan) -> Library:
    documents = documents_of(OWN)
    return Library("docs", documents, questions(documents)[:: plan.size(1, 12)])


def libraries_in(data: Path) -> list[Library]:
    """Return the projects of a folder, each with its pages and what is asked of them."""
    lines = (data / "queries.K.jsonl").read_bytes().splitlines()
    rows = [msgspec.json.decode(line) for line in lines]
    return [
        Library(
            name,
            documents_of(data / name),
            [Question(row["query"][:LONGEST], row["file"]) for row in rows if row["corpus"] == name],
        )
        for name in dict.fromkeys(row["corpus"] for row in rows)
    ]


def strangers(libraries: Sequence[Library]) -> list[Library]:
    """Return the libraries, each with the questions of the one before it to be asked, too."""
    if len(libraries) == 1:
        return list(libraries)
    return [library._replace(strange=libraries[at - 1].questions) for at, library in enumerate(libraries)]


def without_headings(library: Library) -> Library:
    """Return the same chunks without the heading next above each."""
    documents = []
    for document in library.documents:
        chunks = [msgspec.structs.replace(chunk, headings=chunk.headings[:-1]) for chunk in document.chunks]
        documents.append(msgspec.structs.replace(document, chunks=chunks))
    return library._replace(documents=documents)


# -- contenders ----------------------------------------------------------------------------


async def _measured(
    folder: Path, library: Library, answered: dict[str, list[Answered]], peers: Path | None
) -> list[float]:
    """Ask everybody; return how many MB a second were put in."""
    filled: list[float] = []
    for embedder, name in (("none", "greenroom, words"), ("static", "greenroom, static")):
        options = RuntimeOptions(durability="process")
        async with open_greenroom(folder / embedder, embedder=embedder, options=options) as runtime:
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for document in library.documents:
                    put = PutDocument(corpus="all:docs", document=document)
                    nursery.start_soon(_put, runtime, put)
            seconds = time.perf_counter() - began
            if embedder == "none":
                filled.append(sum(document.bytes for document in library.documents) / 1e6 / seconds)
            agent = Agent(runtime, READER)
            await _settled(agent)
            answered.setdefault(name, []).append(await _answers(_greenroom(agent), library))
    for name, make in (("SQLite FTS5", sqlite_fts5), ("rank-bm25", rank_bm25)):
        answered.setdefault(name, []).append(await _answers(_rival(make, library), library))
    if peers is not None:
        with local_rag(peers, _pages(library)) as find:
            answered.setdefault(LOCAL_RAG, []).append(await _answers(_asking(find), library))
    return filled


async def _settled(agent: Agent) -> None:
    """Wait until every chunk has a vector, where there is an embedder."""
    while (await agent.ask(ListCorpora())).corpora[0].waiting_for_vectors:  # noqa: ASYNC110 - nothing tells
        await trio.sleep(0.05)


async def _put(runtime: object, put: PutDocument) -> None:
    await ask_corpus(runtime, READER, put, make=True)  # type: ignore[arg-type]  # a runtime it is


async def _answers(search: Search, library: Library) -> Answered:
    ranks: list[int] = []
    times: list[float] = []
    scores: list[float] = []
    for question in library.questions:
        began = time.perf_counter()
        chunks = await search(question.query)
        times.append(1_000 * (time.perf_counter() - began))
        scores.append(chunks[0].score if chunks else 0.0)
        files = list(dict.fromkeys(chunk.file for chunk in chunks))
        ranks.append(files.index(question.file) + 1 if question.file in files else 0)
    strange = [await search(question.query) for question in library.strange]
    return Answered(ranks, times, scores, [found[0].score if found else 0.0 for found in strange])


def _greenroom(agent: Agent) -> Search:
    async def search(query: str) -> list[Hit]:
        asked = SemanticSearch(query=query, corpus="all:docs", top_k=CHUNKS, detail_level="metadata")
        return [Hit(each.source_file, each.hybrid_score) for each in (await agent.ask(asked)).results]

    return search


def _rival(make: Make, library: Library) -> Search:
    """Return a search of the same chunks, each below its title and headings."""
    texts: dict[str, str] = {}
    for document in library.documents:
        for number, chunk in enumerate(document.chunks):
            headed = "\n".join([document.title, *chunk.headings, chunk.text])
            texts[f"{number} {document.path}"] = headed
    find = make(texts)
    return _asking(lambda query: [place.partition(" ")[2] for place in find(query)])


def _asking(find: Find) -> Search:
    async def search(query: str) -> list[Hit]:
        return [Hit(file) for file in find(query)]

    return search


def _pages(library: Library) -> dict[str, str]:
    """Return the documents as pages of Markdown: each chunk below those of its headings that are new."""
    pages = {}
    for document in library.documents:
        said = [f"# {document.title}"]
        above: Sequence[str] = [document.title]
        for chunk in document.chunks:
            same = sum(
                1
                for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, chunk.headings, strict=False))
            )
            said += [
                f"{'#' * (level + 1)} {chunk.headings[level]}" for level in range(same, len(chunk.headings))
            ]
            said.append(chunk.text)
            above = chunk.headings
        pages[document.path] = "\n\n".join(said)
    return pages
