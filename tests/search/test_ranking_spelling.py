"""Words that nobody stored: the quick ways of looking for what was meant find what the slow ways find."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.index import Document
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import finish

pytestmark = pytest.mark.promise("ranking.spelling")

SYLLABLES = ("wal", "rus", "or", "gan", "iz", "ing", "cer", "tif", "ic", "at", "es")


def corpus_of(texts: list[str]) -> Corpus:
    corpus = Corpus()
    add(corpus, *texts)
    return corpus


def add(corpus: Corpus, *texts: str) -> None:
    for text in texts:
        document = Document(id=corpus.size + 1, partition="", namespace="user:me", text=text)
        finish(corpus.add(document))


def corrected(corpus: Corpus, word: str) -> dict[str, tuple[str, ...]]:
    view = View(corpus, corpus.alive.copy())
    found = finish(rank(view, RankQuery.read(word), view.visible, limit=10))
    return dict(found.corrected)


@given(
    words=st.sets(st.text("abcdefghilnorstuy", min_size=1, max_size=40), max_size=60),
    languages=st.sampled_from([[], ["english"], ["english", "german", "russian"], ["serbian", "turkish"]]),
)
def test_many_words_at_once_have_the_terms_that_each_has(words: set[str], languages: list[str]) -> None:
    rules = TextRules(languages)
    assert rules.terms(words) == {term for word in words for term in rules.token(word).posted}


def test_the_vocabulary_comes_in_order_while_it_grows() -> None:
    chance = random.Random(5)  # noqa: S311 - as in a test
    corpus = Corpus()
    for _ in range(3):
        for _ in range(60):
            add(corpus, " ".join(f"{chance.choice(SYLLABLES)}{chance.randrange(9_000)}" for _ in range(40)))
            blocks = list(corpus.vocabulary("text"))
        assert all(list(block) == sorted(block) for block in blocks)
        assert len(blocks) > len(corpus.segments)
        finish(corpus.seal())
        terms = [term for block in corpus.vocabulary("text") for term in block]
        assert {term for block in blocks for term in block} == set(terms)


def test_a_word_stored_after_a_search_is_meant_by_the_next() -> None:
    corpus = corpus_of(["a walnut", "some wallpaper"])
    assert corrected(corpus, "walrsu") == {}
    add(corpus, "a walrus")
    assert corrected(corpus, "walrsu") == {"walrsu": ("walrus",)}
    finish(corpus.seal())
    add(corpus, "the walruses walked")
    assert corrected(corpus, "walrsu") == {"walrsu": ("walrus",)}


@pytest.mark.parametrize("sealed", [0, 40, 80])
def test_what_a_beginning_stands_for_is_the_same_wherever_it_is_kept(sealed: int) -> None:
    chance = random.Random(7)  # noqa: S311 - as in a test
    words = sorted({"".join(chance.choices("abc", k=chance.randint(3, 9))) for _ in range(80)})
    chance.shuffle(words)
    rules = TextRules(["english"])
    corpus = corpus_of(words[:sealed])
    finish(corpus.seal())
    add(corpus, *words[sealed:])
    terms = {rules.token(word).posted[0] for word in words}
    starts = {term[:3] for term in terms} - terms
    assert starts
    for beginning in sorted(starts):
        (meant,) = corrected(corpus, beginning).values()
        assert all(term.startswith(beginning) for term in meant)


@pytest.mark.parametrize("segments", [1, 4])
def test_words_two_slips_away_are_those_of_the_definition(segments: int) -> None:
    chance = random.Random(11)  # noqa: S311 - as in a test
    words = [("".join(chance.choices("mnop", k=9))) for _ in range(600)]
    corpus = Corpus()
    for part in np.array_split(np.array(words), segments):
        add(corpus, *map(str, part))
        finish(corpus.seal())
    terms = {term for block in corpus.vocabulary("text") for term in block}
    for word in ("mnopmnopm", "ooooppppn", "pmnoopmno"):
        near = {term for term in terms if OSA.distance(term, word) <= 2}
        found = corrected(corpus, word).get(word, ())
        assert set(found) <= near
        assert len(found) == min(3, len(near))
