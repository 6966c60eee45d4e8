"""Answers of a corpus of many chunks while others ask and fill it: `semantic_search` and `find_vendor_info`.

The filler is made of words that do not exist, drawn as real words are (few often, many seldom). Into some
chunks an English sentence is planted; a question has most of its words and two of the filler's frequent ones,
and must have that chunk first. The same store is asked with the static embedder and by words alone, while ten
other requests a second search it, ask for entities and put documents in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import accumulate, cycle, product
from typing import TYPE_CHECKING, Any, Final

import msgspec
import outcome
import trio

from bench.corpus import SYLLABLES
from bench.harness import Figure, Plan, Report, Table, check, percentile
from greenroom.actors import (
    Agent,
    Chunk,
    DefineEntities,
    Document,
    EntityDeclaration,
    FindEntity,
    FindVendorInfo,
    GetFullContent,
    ListCorpora,
    Principal,
    PutDocument,
    SemanticSearch,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import chunk_id
from greenroom.actors.knowledge.corpora.tools.corpus_admin import find_corpus
from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime import RuntimeClient

ANN: Final = Principal(agent_id="a", user="ann")
WORDS: Final = 20_000
WORDS_IN_CHUNK: Final = 90
CHUNKS_IN_DOCUMENT: Final = 20
PLANTED_EVERY: Final = 100
"""Of so many chunks one has a planted sentence."""
MORE: Final = 600
"""Documents that come while others ask, at most."""
SECONDS_BETWEEN: Final = 0.1
"""Of two requests that come beside those that are measured."""
MOST: Final = {"metadata": 15.0, "full": 30.0, "find_vendor_info": 15.0, "find_entity": 15.0}
"""Milliseconds that 95 % of the answers take at most."""
_WHO: Final = (
    "amber",
    "crimson",
    "silver",
    "violet",
    "copper",
    "indigo",
    "scarlet",
    "golden",
    "emerald",
    "ivory",
)
_WHAT: Final = ("otter", "falcon", "badger", "heron", "lynx", "walrus", "beetle", "raven", "gecko", "marten")
_WHERE: Final = (
    "lighthouse",
    "monastery",
    "greenhouse",
    "observatory",
    "vineyard",
    "harbour",
    "quarry",
    "orchard",
)
_THING: Final = (
    "lantern",
    "compass",
    "violin",
    "ledger",
    "telescope",
    "anvil",
    "mirror",
    "barometer",
    "loom",
    "kettle",
)

Ask = Callable[[int], Awaitable[None]]
"""Asks the question with a number, and checks the answer."""


class Planted(msgspec.Struct, frozen=True):
    """A sentence that is in one chunk, and the question that it answers."""

    sentence: str
    question: str
    path: str


class Setting(msgspec.Struct, frozen=True):
    """What is put in and asked for.

    Attributes:
        documents: Those that are there from the beginning.
        more: Those that come while others ask.
        planted: What is asked.
        names: Of entities.
    """

    documents: list[Document]
    more: list[Document]
    planted: list[Planted]
    names: list[str]


class Times(msgspec.Struct):
    """Milliseconds of one kind of answer: until it was there, and of the processor meanwhile."""

    waits: list[float] = msgspec.field(default_factory=list)
    spent: list[float] = msgspec.field(default_factory=list)


def run(plan: Plan) -> Report:
    """Fill a corpus, and ask it with both kinds of search."""
    setting = made(plan.size(100_000, 400), plan.size(5_000, 40))
    rounds = plan.size(200, 3)
    rows: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    with plan.folder() as folder:
        trio.run(_filled, folder, setting)
        for embedder in ("static", "none"):
            times = trio.run(_asked, folder, setting, embedder, rounds)
            form = {"static": "with meaning", "none": "by words alone"}[embedder]
            for what, each in times.items():
                wall, spent = percentile(each.waits, 95), percentile(each.spent, 95)
                rows.append([form, what, percentile(each.waits, 50), wall, percentile(each.spent, 50), spent])
                if what in MOST:
                    figures.append(Figure(what=f"{what} {form}, p95, ms", value=wall, most=MOST[what]))
    chunks = sum(len(document.chunks) for document in setting.documents)
    columns = ["search", "answer", "p50, ms", "p95, ms", "processor, p50, ms", "processor, p95, ms"]
    title = f"{chunks:,} chunks, {len(setting.names):,} entities, ten other requests a second"
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=figures)


# -- what is put in ------------------------------------------------------------------------


def made(chunks: int, entities: int) -> Setting:
    """Make a corpus of so many chunks and entities, the same each time."""
    chance = random.Random(17)
    every = ["".join(parts) for parts in product(SYLLABLES, repeat=3)]
    words = chance.sample(every, WORDS)
    names = [word.capitalize() + "ix" for word in chance.sample(every, entities)]
    weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))
    subjects = list(product(_WHO, _WHAT, _THING))
    chance.shuffle(subjects)
    planted: list[Planted] = []
    count = chunks // CHUNKS_IN_DOCUMENT

    def document(number: int) -> Document:
        path = f"notes/{words[number % WORDS]}-{number}.md"
        pieces: list[Chunk] = []
        for place in range(CHUNKS_IN_DOCUMENT):
            said = chance.choices(words, cum_weights=weights, k=WORDS_IN_CHUNK)
            said.insert(chance.randrange(len(said)), chance.choice(names))
            if number < count and (number * CHUNKS_IN_DOCUMENT + place) % PLANTED_EVERY == 0:
                who, what, thing = subjects[len(planted)]
                where = chance.choice(_WHERE)
                sentence = f"the {who} {what} hides the {thing} below the {where}"
                often = " ".join(chance.sample(words[:30], 2))
                question = f"where does the {who} {what} hide the {thing}, {often}?"
                planted.append(Planted(sentence, question, path))
                said.append(sentence)
            text = " ".join(said)
            headings = ["Notes", " ".join(chance.sample(words[1_000:], 2))]
            pieces.append(Chunk(text, headings, "Notes", place, place, place, place + len(text)))
        digest = blake2b(str(number).encode(), digest_size=16).hexdigest()
        return Document(path, "Notes", "markdown", digest, 1, 0, pieces)

    documents = [document(number) for number in range(count)]
    return Setting(documents, [document(count + number) for number in range(MORE)], planted, names)


async def _filled(folder: Path, setting: Setting) -> None:
    """Put everything in, and wait until it has vectors and its names are found."""
    async with _opened(folder, "static") as runtime:
        agent = Agent(runtime, ANN)
        for document in setting.documents:
            await _put(runtime, document)
        entities = [EntityDeclaration(name=name, type="library") for name in setting.names]
        await agent.ask(DefineEntities(corpus="docs", entities=entities))
        while (await agent.ask(ListCorpora())).corpora[0].waiting_for_vectors:  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.2)
        asked = FindVendorInfo(vendor_filter=setting.names[0], corpus="docs")
        while (await agent.ask(asked)).waiting_for_matching:  # noqa: ASYNC110 - its answer tells
            await trio.sleep(0.2)


def _opened(folder: Path, embedder: Any) -> Any:
    options = RuntimeOptions(durability="process")
    return open_greenroom(folder / "data", embedder=embedder, secrets=folder / "secrets", options=options)


async def _put(runtime: RuntimeClient, document: Document) -> None:
    await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=document), make=True)


# -- what is asked -------------------------------------------------------------------------


async def _asked(folder: Path, setting: Setting, embedder: str, rounds: int) -> dict[str, Times]:
    """Return the times of answers, each kind in its turn, while others ask as well."""
    async with _opened(folder, embedder) as runtime:
        agent = Agent(runtime, ANN)
        row = await find_corpus(runtime, ANN, "docs")
        kinds = _kinds(agent, setting, row.id_prefix)
        first = SemanticSearch(query="before all others", corpus="docs")
        while (await agent.ask(first)).partial:  # until the index is read
            pass
        for ask in kinds.values():
            await ask(0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_beside, runtime, setting)
            times = await outcome.acapture(_measured, kinds, rounds)
            nursery.cancel_scope.cancel()
    return times.unwrap()


async def _measured(kinds: dict[str, Ask], rounds: int) -> dict[str, Times]:
    times = {what: Times() for what in kinds}
    for number in range(1, rounds + 1):
        for what, ask in kinds.items():
            began, used = time.perf_counter(), time.process_time()
            await ask(number)
            times[what].waits.append((time.perf_counter() - began) * 1_000)
            times[what].spent.append((time.process_time() - used) * 1_000)
    return times


def _kinds(agent: Agent, setting: Setting, id_prefix: int) -> dict[str, Ask]:
    async def search(number: int, *, detail_level: Any) -> None:
        planted = setting.planted[number % len(setting.planted)]
        asked = SemanticSearch(query=planted.question, corpus="docs", detail_level=detail_level)
        found = await agent.ask(asked)
        best = found.results[0]
        check(best.source_file == planted.path, f"{planted.question!r} is answered by {best.source_file}")
        check(not found.cache_hit or number == 0, "it was asked before")
        said = best.chunk_text
        check(detail_level == "metadata" or planted.sentence in str(said), f"{planted.sentence!r} is missing")

    async def metadata(number: int) -> None:
        await search(number, detail_level="metadata")

    async def read(number: int) -> None:
        planted = setting.planted[number % len(setting.planted)]
        place = setting.planted.index(planted) * PLANTED_EVERY + 1
        ids = [chunk_id(id_prefix, place + each) for each in range(3)]
        found = await agent.ask(GetFullContent(chunk_ids=ids))
        check(planted.sentence in found.chunks[0].chunk_text, f"{planted.sentence!r} is missing")

    async def vendor(number: int) -> None:
        name = setting.names[number % len(setting.names)]
        found = await agent.ask(FindVendorInfo(vendor_filter=name, corpus="docs"))
        check(found.entities[0].name == name, f"{name} is answered by {found.entities[0].name}")

    async def entity(number: int) -> None:
        name = setting.names[-1 - number % len(setting.names)]
        found = await agent.ask(FindEntity(vendor_filter=name, corpus="docs"))
        check(found.entities[0].name == name, f"{name} is answered by {found.entities[0].name}")

    return {
        "metadata": metadata,
        "full": partial(search, detail_level="full"),
        "get_full_content": read,
        "find_vendor_info": vendor,
        "find_entity": entity,
    }


async def _beside(runtime: RuntimeClient, setting: Setting) -> None:
    """Ask and put without end, ten times a second, whether or not what was asked before is answered."""
    agent = Agent(runtime, Principal(agent_id="b", user="ann"))
    more: Iterator[Document] = iter(setting.more)

    async def one(number: int) -> None:
        planted = setting.planted[-1 - number % len(setting.planted)]
        if number % 10 == 0:
            await _put(runtime, next(more))
        elif number % 10 == 5:
            await agent.ask(FindVendorInfo(vendor_filter=setting.names[number % 40], corpus="docs"))
        else:
            level: Any = "full" if number % 2 else "metadata"
            await agent.ask(SemanticSearch(query=planted.question, corpus="docs", detail_level=level))

    async with trio.open_nursery() as nursery:
        for number in cycle(range(6_000)):
            nursery.start_soon(one, number)
            await trio.sleep(SECONDS_BETWEEN)
