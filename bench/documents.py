"""Headings of documentation, each asked for its section: `semantic_search` beside FTS5 and rank-bm25.

Without ``--data`` the documentation is Greenroom's own. With it, the folder has `queries.K.jsonl`
(``corpus``, ``query``, ``file``) and a folder of files for each corpus. All contenders search the same
chunks, twice: with the headings above each chunk, and without the nearest one, so that a question's words are
found nowhere as they stand. An answer is a file; it is where its best chunk is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check, percentile
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
from greenroom.actors.documents import UnreadableDocumentError, document_of, kind_of
from greenroom.runtime import RuntimeOptions

OWN = Path(__file__).parent.parent / "docs"
READER = Principal(agent_id="reader", user="bench")
CHUNKS = 50
"""Chunks that are asked for, so that there are ten files among them mostly."""
DEPTH = 10
LONGEST = 500
_SUFFIXES = frozenset({".md", ".mdx", ".rst", ".txt"})


class Question(NamedTuple):
    """A heading, and the file with its section."""

    query: str
    file: str


class Library(NamedTuple):
    """The documents of one corpus, and what is asked of them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]


class Answered(NamedTuple):
    """The answers of one contender: the rank of each right file, 0 for none, and milliseconds."""

    ranks: list[int]
    times: list[float]


Search = Callable[[str], Awaitable[list[str]]]
"""Returns the files of the best chunks, best first."""


def run(plan: Plan) -> Report:
    """Measure all on both forms of the chunks."""
    libraries = [_own(plan)] if plan.data is None else _libraries(plan.data)
    rows: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    filled: list[float] = []
    for form, headings in (("with", True), ("without", False)):
        answered: dict[str, list[Answered]] = {}
        for library in libraries:
            given = library if headings else _without_headings(library)
            with plan.folder() as folder:
                filled += trio.run(_measured, folder, given, answered)
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
    figures.append(Figure(what="MB/s put in, words", value=median(filled), least=2.0))
    asked = sum(len(library.questions) for library in libraries)
    table = Table(
        title=f"{asked} headings, each asked for the file with its section",
        columns=["headings", "search", "recall@1 %", "recall@10 %", "MRR %", "50 % ms", "95 % ms"],
        rows=rows,
    )
    return Report(tables=[table], figures=[] if plan.smoke else figures)


def _measures(ranks: Sequence[int]) -> tuple[float, float, float]:
    """Return recall@1, recall@10 and the mean reciprocal rank, in per cent."""
    return (
        100 * fmean(rank == 1 for rank in ranks),
        100 * fmean(0 < rank <= DEPTH for rank in ranks),
        100 * fmean(1 / rank if rank else 0.0 for rank in ranks),
    )


# -- what is asked -------------------------------------------------------------------------


def _documents(folder: Path) -> list[Document]:
    found: list[Document] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _SUFFIXES or not path.is_file():
            continue
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        kind = kind_of(name, data[:4_096])
        try:
            found.append(document_of(name, kind or "text", data))
        except UnreadableDocumentError:
            continue
    return found


def _own(plan: Plan) -> Library:
    documents = _documents(OWN)
    places: dict[str, set[str]] = {}
    for document in documents:
        for chunk in document.chunks:
            if len(chunk.headings) > 1 and " " in chunk.headings[-1]:
                places.setdefault(chunk.headings[-1], set()).add(document.path)
    questions = [
        Question(heading[:LONGEST], next(iter(files))) for heading, files in places.items() if len(files) == 1
    ]
    return Library("docs", documents, questions[:: plan.size(1, 12)])


def _libraries(data: Path) -> list[Library]:
    lines = (data / "queries.K.jsonl").read_bytes().splitlines()
    rows = [msgspec.json.decode(line) for line in lines]
    return [
        Library(
            name,
            _documents(data / name),
            [Question(row["query"][:LONGEST], row["file"]) for row in rows if row["corpus"] == name],
        )
        for name in dict.fromkeys(row["corpus"] for row in rows)
    ]


def _without_headings(library: Library) -> Library:
    """Return the same chunks without the heading next above each."""
    documents = []
    for document in library.documents:
        chunks = [msgspec.structs.replace(chunk, headings=chunk.headings[:-1]) for chunk in document.chunks]
        documents.append(msgspec.structs.replace(document, chunks=chunks))
    return library._replace(documents=documents)


# -- contenders ----------------------------------------------------------------------------


async def _measured(folder: Path, library: Library, answered: dict[str, list[Answered]]) -> list[float]:
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
    for question in library.questions:
        began = time.perf_counter()
        chunks = await search(question.query)
        times.append(1_000 * (time.perf_counter() - began))
        files = list(dict.fromkeys(chunks))
        ranks.append(files.index(question.file) + 1 if question.file in files else 0)
    return Answered(ranks, times)


def _greenroom(agent: Agent) -> Search:
    async def search(query: str) -> list[str]:
        asked = SemanticSearch(query=query, corpus="all:docs", top_k=CHUNKS, detail_level="metadata")
        return [each.source_file for each in (await agent.ask(asked)).results]

    return search


def _rival(make: Make, library: Library) -> Search:
    """Return a search of the same chunks, each below its title and headings."""
    texts: dict[str, str] = {}
    for document in library.documents:
        for number, chunk in enumerate(document.chunks):
            headed = "\n".join([document.title, *chunk.headings, chunk.text])
            texts[f"{number} {document.path}"] = headed
    find = make(texts)

    async def search(query: str) -> list[str]:
        return [place.partition(" ")[2] for place in find(query)]

    return search
