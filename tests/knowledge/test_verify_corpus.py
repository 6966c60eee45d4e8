"""`greenroom verify` and corpora: sound, damaged in each part, named, made anew as far as that can be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import FAST
from support.commands import run_on_store
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    DefineEntities,
    EntityDeclaration,
    FindVendorInfo,
    Principal,
    PutDocument,
    RemoveDocuments,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.actor import CorpusActor
from greenroom.actors.knowledge.corpora.storage.records import CorpusHeader
from greenroom.runtime import Address, Context, Index, Message, handles, open_runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="ann", user="ann")
NAME = "corpus user:ann:docs"
PAGES = 12


class Sabotage(Message[None], frozen=True):
    """Damage some of the records."""

    part: str


def _delete(prefix: bytes) -> Callable[[Context], None]:
    def delete(context: Context) -> None:
        keys = [key for key, _ in context.scan(msgspec.Raw, prefix=prefix)]
        for key in keys[::5]:
            context.delete(key)

    return delete


def _hide(context: Context) -> None:
    context.put(b"ip" + (1).to_bytes(8), {"alive": False})


def _miscount(context: Context) -> None:
    header = context.get(b"k", CorpusHeader)
    assert header is not None
    context.put(b"k", msgspec.structs.replace(header, chunks=7, next_chunk=2))


PARTS: dict[str, tuple[Callable[[Context], None], str]] = {
    "index": (_hide, "chunk 1 is not in the index"),
    "segments": (_delete(b"is"), "is missing or does not fit the others"),
    "counts": (_miscount, "what it says of itself is not so: next_chunk, chunks"),
    "numbers": (_delete(b"n"), "is not found by its number"),
    "mentions": (_delete(b"m"), "mentions is not what is found in it"),
    "strays": (
        lambda context: context.put(b"m" + bytes(7) + b"\x63", bytes(16)),
        "there are 1 records of documents that are not there",
    ),
}


class Saboteur(CorpusActor):
    """The actor of a corpus, and an enemy within."""

    @handles(Sabotage)
    def sabotage(self, request: Sabotage, context: Context) -> None:
        if request.part == "texts":
            _delete(b"t")(context)
        else:
            PARTS[request.part][0](context)


async def fill(folder: Path) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        for number in range(PAGES):
            page = document_of(f"{number}.md", [(["Birds"], f"Heron {number} and Redis")])
            await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=page), make=True)
        redis = EntityDeclaration(name="Redis", type="service")
        await Agent(runtime, ANN).ask(DefineEntities(entities=[redis], corpus="docs"))
        assert await mentioned(runtime) == PAGES


async def sabotage(folder: Path, part: str) -> None:
    indexes = [Index(name) for name in ("corpora", "embedding", "spaces", "audit")]
    async with open_runtime(folder, actors=[Saboteur], indexes=indexes) as runtime:
        await runtime.ask(Address("corpus", "user:ann:1"), Sabotage(part))


async def mentioned(runtime: RuntimeClient) -> int:
    """Return how often Redis is mentioned, when all was gone through."""
    while True:
        found = await Agent(runtime, ANN).ask(FindVendorInfo(vendor_filter="redis", corpus="docs"))
        if not found.waiting_for_matching:
            return found.entities[0].mention_count
        await trio.lowlevel.checkpoint()


async def problems(runtime: RuntimeClient, **more: Any) -> list[tuple[str, str]]:
    return (await runtime.query(VerifyMemories(**more))).problems


@pytest.mark.promise("knowledge.verify")
@pytest.mark.parametrize("part", PARTS)
async def test_what_is_damaged_is_named_with_its_corpus_and_made_anew(tmp_path: Path, part: str) -> None:
    await fill(tmp_path)
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        verified = await runtime.query(VerifyMemories())
        assert (verified.chunks, verified.problems) == (PAGES, [])
    await sabotage(tmp_path, part)
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        found = await problems(runtime)
        assert {corpus for corpus, _ in found} == {NAME}
        assert any(PARTS[part][1] in sentence for _, sentence in found)
        assert (await runtime.query(VerifyMemories(rebuild=True))).rebuilt == [NAME]
        assert await mentioned(runtime) == PAGES
        assert await problems(runtime) == []
        page = document_of("new.md", [([], "Heron the last")])
        stored = await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=page))
        assert stored.state == "added"
        search = SemanticSearch(query="heron", top_k=50, corpus="docs")
        found_now = (await Agent(runtime, ANN).ask(search)).results
        assert len({each.chunk_id for each in found_now}) == PAGES + 1


@pytest.mark.quick
@pytest.mark.promise("knowledge.verify")
async def test_a_document_whose_text_is_lost_is_named_until_it_is_removed(tmp_path: Path) -> None:
    await fill(tmp_path)
    await sabotage(tmp_path, "texts")
    lost = ["0.md", "5.md", "10.md"]
    sentences = [
        f"the document {path!r} lacks some of its text: remove it, and put it in again" for path in lost
    ]
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        assert sorted(sentences) == sorted(
            sentence for _, sentence in await problems(runtime) if "lacks" in sentence
        )
        assert (await runtime.query(VerifyMemories(rebuild=True))).rebuilt == []
        assert sorted(await problems(runtime)) == sorted((NAME, sentence) for sentence in sentences)
        search = SemanticSearch(query="heron", top_k=50, corpus="docs")
        assert len((await Agent(runtime, ANN).ask(search)).results) == PAGES - len(lost)
        removed = await ask_corpus(runtime, ANN, RemoveDocuments(corpus="docs", paths=lost))
        assert removed.removed == lost
        assert await problems(runtime) == []


@pytest.mark.promise("knowledge.verify")
def test_the_command_names_a_damaged_corpus_and_mends_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    trio.run(fill, folder)
    sound = run_on_store(tmp_path, "verify")
    assert (sound.returncode, f"documents say: {PAGES} chunks" in sound.stdout) == (0, True)
    trio.run(sabotage, folder, "index")
    broken = run_on_store(tmp_path, "verify")
    assert broken.returncode == 65
    assert f"in {NAME}: " in broken.stdout
    assert PARTS["index"][1] in broken.stdout
    mended = json.loads(run_on_store(tmp_path, "verify", "--rebuild", "--json").stdout)
    assert mended["index"]["rebuilt"] == [NAME]
    assert run_on_store(tmp_path, "verify").returncode == 0
