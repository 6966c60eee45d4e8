"""How the orders of two searches relate when the stores or the filters differ by one thing."""

from __future__ import annotations

import string
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.ranking import SPACE, Note, search

from greenroom.actors.search.embedding.vector_messages import QueryVectors

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

WORDS = ("walrus", "zebra", "May", "Ann", "Bob", "tea", "walruses", "walrsu", "3", "yesterday", "?")
QUERIES = ("walrus", "When did Ann see the zebra in May?", "walrsu tea", "Bob and Ann 3", "tea zebrra 2022")
FAR, NEAR = "the kettle hums", "the walrus and the zebra drink tea"

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
directions = st.tuples(*[st.floats(-1, 1).map(lambda number: round(number, 2) + 0.005)] * 3)
notes = st.builds(
    Note,
    text=texts,
    author=st.sampled_from(["", "Ann", "Bob", "Ann Bob"]),
    conversation=st.sampled_from([None, "a", "b"]),
    key=st.sampled_from(["", "tea", "walrus.3", "zebra-tea"]),
    tags=st.sampled_from([(), ("tea",), ("zebra", "Ann")]),
    day=st.integers(19_000, 19_200),
    vector=st.none() | directions,
    tokens=st.none() | st.lists(directions, min_size=1, max_size=3).map(tuple),
    hidden=st.booleans(),
    out=st.booleans(),
)
stores = st.lists(notes, min_size=1, max_size=12)
queries = st.sampled_from(QUERIES)


def asked(text: str, kind: str) -> QueryVectors | None:
    """Return vectors for a query, as an embedder of some kind would give."""
    if kind == "words":
        return None
    words = text.rstrip("?").split()
    generator = np.random.default_rng(len(text))
    rows = generator.normal(size=(len(words), 3)).astype(np.float32)
    sentence = None if kind == "static" else rows.sum(axis=0).tobytes()
    if kind == "sentences":
        return QueryVectors(space=SPACE, words=[], rows=b"", sentence=sentence)
    return QueryVectors(space=SPACE, words=words, rows=rows.tobytes(), sentence=sentence)


ROUNDING = 1e-5
"""How much scores may differ that are sums of the same numbers."""

kinds = st.sampled_from(["words", "static", "sentences", "tokens"])


def scores(store: Sequence[Note], text: str, kind: str) -> dict[int, float]:
    """Return the score of each note found, by its number, in their order."""
    found = search(store, text, asked(text, kind))
    return dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))


@pytest.mark.quick
@pytest.mark.promise("ranking.filters")
@given(stores, queries, kinds)
def test_a_filter_returns_a_part_of_the_order_without_it(store: list[Note], text: str, kind: str) -> None:
    unfiltered = scores([note._replace(out=False) for note in store], text, kind)
    filtered = scores(store, text, kind)
    expected = {row: score for row, score in unfiltered.items() if not store[row].out}
    assert filtered == pytest.approx(expected, abs=ROUNDING)
    # A sum over other rows beside it may be rounded in another way, and only then the order may differ.
    for before, after in pairwise(filtered):
        assert expected[before] >= expected[after] - ROUNDING


@pytest.mark.promise("ranking.hidden")
@given(stores, queries, kinds)
def test_what_is_hidden_changes_nothing(store: list[Note], text: str, kind: str) -> None:
    shown = [note for note in store if not note.hidden]
    numbers = [row for row, note in enumerate(store) if not note.hidden]
    alone = search(shown, text, asked(text, kind))
    beside = search(store, text, asked(text, kind))
    assert beside.vectors == alone.vectors
    assert beside.corrected == alone.corrected
    assert beside.unknown == alone.unknown
    assert beside.total == alone.total
    expected = {numbers[row]: score for row, score in zip(alone.rows, alone.scores, strict=True)}
    found = dict(zip(beside.rows.tolist(), beside.scores.tolist(), strict=True))
    assert found == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.quick
@pytest.mark.promise("ranking.keys")
@given(stores, queries, kinds, st.data(), st.text(string.ascii_letters + "._- 3", max_size=20))
def test_renaming_a_key_changes_only_its_own_memory(
    store: list[Note], text: str, kind: str, data: st.DataObject, key: str
) -> None:
    row = data.draw(st.integers(0, len(store) - 1))
    renamed = [*store]
    renamed[row] = store[row]._replace(key=key)
    before, after = scores(store, text, kind), scores(renamed, text, kind)
    before.pop(row, None)
    after.pop(row, None)
    assert list(before.items()) == list(after.items())


@pytest.mark.quick
@pytest.mark.promise("ranking.irrelevant")
@given(
    st.lists(
        st.tuples(st.sampled_from([FAR, NEAR]), st.sampled_from([None, "a", "b"])), min_size=2, max_size=12
    ),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_an_irrelevant_memory_lifts_no_other_over_a_relevant_one(
    drawn: list[tuple[str, str | None]], longer: int, place: int
) -> None:
    store = [Note(text, conversation=conversation) for text, conversation in drawn]
    relevant = {row for row, note in enumerate(store) if note.text == NEAR}
    assume(relevant)
    before = scores(store, "walrus and zebra", "words")
    at = min(place, len(store))
    more = [*store[:at], Note(" ".join([FAR] * longer)), *store[at:]]
    after = scores(more, "walrus and zebra", "words")
    for good in relevant:
        for bad in set(range(len(store))) - relevant:
            if before[good] > before.get(bad, 0.0):
                moved_good, moved_bad = good + (good >= at), bad + (bad >= at)
                assert after[moved_good] > after.get(moved_bad, 0.0)
