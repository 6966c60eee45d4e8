"""Documents that were made ready elsewhere: found as if made here, by other rules made here, else refused."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import FAST
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    ListCorpora,
    Principal,
    PutDocument,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.storage.preparation import prepare_at_once
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from greenroom.actors.knowledge.corpora.requests.corpus_requests import Prepared
    from greenroom.actors.search.index.memtable import Run, Terms

ANN = Principal(agent_id="a", user="ann")
PAGE = document_of(
    "birds.md", [(["Birds", f"Part {place}"], f"heron {place} and redshank") for place in range(9)]
)
CHANGED = document_of(
    "birds.md",
    [
        (["Birds", f"Part {place}"], f"heron {place} and {'redshank' if place % 2 else 'dunlin'}")
        for place in range(9)
    ],
)
replace = msgspec.structs.replace


async def test_what_was_made_ready_elsewhere_is_found_as_if_it_were_made_here(tmp_path: Path) -> None:
    answers: list[list[Any]] = []
    for name, make in (("here", lambda _: None), ("elsewhere", prepare_at_once)):
        async with open_greenroom(tmp_path / name, embedder="none", options=FAST) as runtime:
            for page in (PAGE, CHANGED):
                put = PutDocument(corpus="docs", document=page, prepared=make(page))
                await ask_corpus(runtime, ANN, put, make=True)
            assert (await runtime.query(VerifyMemories())).problems == []
            asked = SemanticSearch(query="dunlin part 4", corpus="docs", top_k=50)
            found = (await Agent(runtime, ANN).ask(asked)).results
            answers.append([(each.hybrid_score, each.chunk_text) for each in found])
    assert answers[0] == answers[1]
    assert len(answers[0]) == len(PAGE.chunks)


def _with_text(run: Run, **parts: Any) -> Run:
    return replace(run, fields={**run.fields, "text": replace(run.fields["text"], **parts)})


def _numbers(kind: str, stored: bytes) -> array[int]:
    numbers = array(kind)
    numbers.frombytes(stored)
    return numbers


def _swapped(terms: Terms) -> bytes:
    """Return postings whose first two rows are in the wrong order."""
    postings = _numbers("Q", terms.postings)
    ends = _numbers("I", terms.ends)
    at = next(end - 1 for start, end in zip([0, *ends], ends, strict=False) if end - start > 1)
    postings[at - 1], postings[at] = postings[at], postings[at - 1]
    return postings.tobytes()


REFUSED: dict[str, Callable[[Run], Run]] = {
    "fewer rows": lambda run: replace(run, flags=run.flags[1:]),
    "another field": lambda run: replace(run, fields={**run.fields, "tail": run.fields["text"]}),
    "a row too many": lambda run: _with_text(
        run, postings=run.fields["text"].postings[:-8] + array("Q", [len(PAGE.chunks) << 16 | 1]).tobytes()
    ),
    "never": lambda run: _with_text(
        run, postings=run.fields["text"].postings[:-8] + array("Q", [8 << 16]).tobytes()
    ),
    "rows in no order": lambda run: _with_text(run, postings=_swapped(run.fields["text"])),
    "terms in no order": lambda run: _with_text(run, terms=run.fields["text"].terms[::-1]),
    "a term twice": lambda run: _with_text(
        run, terms=run.fields["text"].terms[:1] * len(run.fields["text"].terms)
    ),
    "a term too few": lambda run: _with_text(run, terms=run.fields["text"].terms[1:]),
    "half a posting": lambda run: _with_text(run, postings=run.fields["text"].postings[:-3]),
    "a posting too few": lambda run: _with_text(run, postings=run.fields["text"].postings[:-8]),
    "a term without postings": lambda run: _with_text(
        run, ends=run.fields["text"].ends[:4] + run.fields["text"].ends[:4] + run.fields["text"].ends[8:]
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_run_that_is_none_is_refused_and_nothing_is_kept(tmp_path: Path, case: str) -> None:
    ready = prepare_at_once(PAGE)
    wrong = replace(ready, run=REFUSED[case](ready.run))
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        with pytest.raises(Refusal, match="prepared") as refused:
            await ask_corpus(
                runtime, ANN, PutDocument(corpus="docs", document=PAGE, prepared=wrong), make=True
            )
        assert refused.value.code == "VALIDATION_ERROR"
        (corpus,) = (await Agent(runtime, ANN).ask(ListCorpora())).corpora
        assert corpus.documents == 0
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=PAGE, prepared=ready))
        assert (await runtime.query(VerifyMemories())).problems == []


OTHER = prepare_at_once(CHANGED)
NOT_OF_USE: dict[str, Callable[[Prepared], Prepared]] = {
    "by other rules": lambda ready: replace(ready, run=replace(OTHER.run, rules="0 klingon")),
    "of fewer chunks": lambda ready: replace(ready, prints=ready.prints[8:]),
    "of another text": lambda ready: replace(ready, blocks=OTHER.blocks),
    "no text": lambda ready: replace(ready, blocks=[(0, b"?")]),
    "in other blocks": lambda ready: replace(ready, blocks=[(1, ready.blocks[0][1])]),
    "in no block": lambda ready: replace(ready, blocks=[]),
}


@pytest.mark.parametrize("case", NOT_OF_USE)
async def test_what_is_not_of_this_document_or_by_other_rules_is_made_here(tmp_path: Path, case: str) -> None:
    ready = NOT_OF_USE[case](prepare_at_once(PAGE))
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=PAGE, prepared=ready), make=True)
        assert (await runtime.query(VerifyMemories())).problems == []
        found = await Agent(runtime, ANN).ask(
            SemanticSearch(query="heron 3", corpus="docs", detail_level="full")
        )
        assert found.results[0].chunk_text == "heron 3 and redshank"
