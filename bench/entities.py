"""Entities of a corpus: finding all names again after a change, and answers about one, with many chunks.

In process, without an embedder. The names are made up, and each chunk is made of words with some names in
it, of which a few are frequent and most are rare; so how often each is mentioned is known, and every answer
is checked.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from hashlib import blake2b
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check, percentile
from greenroom.actors import (
    Agent,
    Chunk,
    DefineEntities,
    Document,
    EntityDeclaration,
    FindVendorInfo,
    Principal,
    PutDocument,
    ask_corpus,
    open_greenroom,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from greenroom.actors import EntitiesFound

ANN = Principal(agent_id="a", user="ann")
MOST_MILLISECONDS = 50.0
WORDS_IN_CHUNK = 60
NAMES_IN_CHUNK = 3
CHUNKS_IN_DOCUMENT = 20
SYLLABLES = (
    "ba",
    "cor",
    "dex",
    "fin",
    "gul",
    "hal",
    "jun",
    "kel",
    "lor",
    "mir",
    "nab",
    "os",
    "pry",
    "qua",
    "ril",
)
ORDINARY = ("the", "server", "keeps", "what", "it", "has", "read", "and", "then", "answers", "who", "asked")


class Setting(msgspec.Struct, frozen=True):
    """What is asked about.

    Attributes:
        names: Of the entities.
        documents: With their chunks.
        mentions: How often each name is there.
    """

    names: list[str]
    documents: list[Document]
    mentions: Counter[str]


class Times(NamedTuple):
    """Of answers, in milliseconds.

    Attributes:
        waits: Until each was there.
        spent: The processor time of the process meanwhile.
    """

    waits: list[float]
    spent: list[float]


def run(plan: Plan) -> Report:
    """Fill a corpus, declare entities, ask about them; again after a start."""
    setting = made(plan.size(100_000, 200), plan.size(5_000, 40))
    with plan.folder() as folder:
        filled = trio.run(_filled, folder, setting)
        asked = trio.run(_asked, folder, setting, plan.size(200, 5))
    size = sum(document.bytes for document in setting.documents) / 1e6
    chunks = sum(len(document.chunks) for document in setting.documents)
    finding = Table(
        title=f"{size:,.0f} MB in {chunks:,} chunks, {len(setting.names):,} entities",
        columns=["what", "seconds", "MB/s"],
        rows=[[what, seconds, size / seconds] for what, seconds in filled.items()],
    )
    answers = Table(
        title="answers about entities, one after the other",
        columns=["asked", "p50, ms", "p95, ms", "longest, ms", "processor time, p50, ms"],
        rows=[
            [what, percentile(waits, 50), percentile(waits, 95), max(waits), percentile(spent, 50)]
            for what, (waits, spent) in asked.items()
        ],
    )
    figures = [
        Figure(what=f"{what}, p95, ms", value=percentile(times.waits, 95), most=MOST_MILLISECONDS)
        for what, times in asked.items()
        if not what.startswith("first")
    ]
    return Report(tables=[finding, answers], figures=figures)


def made(chunks: int, entities: int) -> Setting:
    """Make a corpus of so many chunks and entities, the same each time."""
    chance = random.Random(7)
    syllables = ["".join(parts).capitalize() for parts in product(SYLLABLES, repeat=4)]
    names = chance.sample(syllables, entities)
    weights = list(accumulate(1 / (rank + 10) for rank in range(entities)))
    mentions: Counter[str] = Counter()
    documents: list[Document] = []
    for number in range(chunks // CHUNKS_IN_DOCUMENT):
        made_chunks: list[Chunk] = []
        for place in range(CHUNKS_IN_DOCUMENT):
            words = chance.choices(ORDINARY, k=WORDS_IN_CHUNK)
            mentioned = chance.choices(names, cum_weights=weights, k=NAMES_IN_CHUNK)
            for name in mentioned:
                words.insert(chance.randrange(len(words)), name)
            mentions.update(mentioned)
            text = " ".join(words)
            made_chunks.append(Chunk(text, ["Notes"], "Notes", place, place, place, place + len(text)))
        size = sum(len(chunk.text) for chunk in made_chunks)
        digest = blake2b(str(number).encode(), digest_size=16).hexdigest()
        documents.append(Document(f"{number}.md", "Notes", "markdown", digest, size, 0, made_chunks))
    return Setting(names, documents, mentions)


async def _filled(folder: Path, setting: Setting) -> dict[str, float]:
    """Return how long it took to put the documents in, and to find the names in them."""
    async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
        agent = Agent(runtime, ANN)
        began = time.perf_counter()
        for document in setting.documents:
            await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=document), make=True)
        put = time.perf_counter() - began
        began = time.perf_counter()
        entities = [EntityDeclaration(name=name, type="library") for name in setting.names]
        await agent.ask(DefineEntities(corpus="docs", entities=entities))
        declared = time.perf_counter() - began
        while (await _find(agent, setting.names[0])).waiting_for_matching:  # noqa: ASYNC110 - its answer tells
            await trio.sleep(0.1)
        found = time.perf_counter() - began
    return {"documents put in": put, "entities declared": declared, "and their names found": found}


async def _asked(folder: Path, setting: Setting, rounds: int) -> dict[str, Times]:
    """Return the times of answers."""
    chance = random.Random(11)
    chosen = chance.choices(setting.names, k=rounds)
    mistyped = [name[:3] + name[4] + name[3] + name[5:] for name in chosen]
    frequent = setting.mentions.most_common(1)[0][0]
    times: dict[str, Times] = {}
    async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
        asker = _Asker(Agent(runtime, ANN), setting)
        times["first after a start"] = await asker.times([frequent], [frequent])
        times["a name"] = await asker.times(chosen, chosen)
        times["the most frequent name"] = await asker.times([frequent] * rounds, [frequent] * rounds)
        times["a typing error"] = await asker.times(mistyped, chosen)
        times["a name, metadata"] = await asker.times(chosen, chosen, detail_level="metadata")
        times["a pattern"] = await asker.times([name[:4] + "*" for name in chosen], [None] * rounds)
    return times


async def _find(agent: Agent, wanted: str, **more: Any) -> EntitiesFound:
    return await agent.ask(FindVendorInfo(vendor_filter=wanted, corpus="docs", **more))


class _Asker(msgspec.Struct, frozen=True):
    """Asks about entities, and checks the answers."""

    agent: Agent
    setting: Setting

    async def times(self, wanted: list[str], names: Sequence[str | None], **more: Any) -> Times:
        """Ask one after the other; each answer has to have the name that belongs to it."""
        waits: list[float] = []
        spent: list[float] = []
        for each, name in zip(wanted, names, strict=True):
            began, used = time.perf_counter(), time.process_time()
            found = await _find(self.agent, each, **more)
            waits.append((time.perf_counter() - began) * 1_000)
            spent.append((time.process_time() - used) * 1_000)
            check(name is None or name in {each.name for each in found.entities}, f"{each} has no {name}")
            for entity in found.entities:
                right = entity.mention_count == self.setting.mentions[entity.name]
                check(right, f"{entity.name} is mentioned {entity.mention_count} times")
        return Times(waits, spent)
