"""A corpus whose texts and segments were compressed by zlib: it answers as it did, and takes in more."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from data.make_corpus import ANN, DOCUMENTS, document
from support.agents import FAST
from support.archives import unpack

from greenroom.actors import Agent, PutDocument, SemanticSearch, VerifyMemories, ask_corpus, open_greenroom
from greenroom.actors.knowledge.corpora.storage.preparation import prepare_at_once

if TYPE_CHECKING:
    from greenroom.runtime import SharedRuntime

STORE = Path(__file__).parent.parent / "data" / "corpus-zlib.tar.xz"
MORE = 40


@pytest.mark.slow
@pytest.mark.promise("store.versions")
async def test_a_corpus_that_zlib_compressed_answers_and_is_merged_with_what_is_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with tarfile.open(STORE) as archive:
        unpack(archive, tmp_path)
    async with open_greenroom(
        tmp_path / "store", secrets=tmp_path / "secrets", embedder="none", options=FAST
    ) as runtime:
        for number in range(DOCUMENTS):
            assert await _found(runtime, number) == [each.text for each in document(number).chunks]
        for number in range(DOCUMENTS, DOCUMENTS + MORE):
            made = document(number)
            put = PutDocument(corpus="docs", document=made, prepared=prepare_at_once(made))
            await ask_corpus(runtime, ANN, put)
        for number in range(DOCUMENTS + MORE):
            assert await _found(runtime, number) == [each.text for each in document(number).chunks]
        assert (await runtime.query(VerifyMemories())).problems == []
    assert "made anew" not in caplog.text


async def _found(runtime: SharedRuntime, number: int) -> list[str]:
    """Return what the chunks say that have the word of one document."""
    asked = SemanticSearch(query=f"heron{number}", corpus="docs", top_k=5, detail_level="full")
    found = (await Agent(runtime, ANN).ask(asked)).results
    assert {each.source_file for each in found} == {f"birds/{number}.md"}
    return [str(each.chunk_text) for each in sorted(found, key=lambda each: each.chunk_id)]
