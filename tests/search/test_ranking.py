"""The order of memories: worked examples, one for each signal, and what it costs nobody."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from support.ranking import SPACE, Note, order, search, stored

from greenroom.actors.memories.storage.embedding import strip_author
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.actors.search.ranking.dates import Calendar, Date, find_dates
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.rank import rank
from greenroom.actors.search.ranking.view import View
from greenroom.actors.search.ranking.weights import KINDS, SIGNALS, VectorSet, weights

pytestmark = pytest.mark.promise("ranking.signals")

FILLERS = [Note(f"filler number {place} about nothing") for place in range(20)]


def floats(*rows: tuple[float, ...]) -> bytes:
    return np.array(rows, np.float32).tobytes()


def test_rare_words_count_more_than_common_ones() -> None:
    notes = [*FILLERS, Note("a walrus appeared"), Note("filler again")]
    assert order(notes, "filler walrus")[0] == 20


def test_the_worked_example_of_bm25() -> None:
    notes = [Note("red apple"), Note("green apple"), Note("green pear")]
    found = search(notes, "apple")
    assert found.rows.tolist() == [1, 0]
    # rarity ln(1 + (50 - 2 + 0.5) / (2 + 0.5)), both texts as long as the mean: tf * 1.8 / (tf + 0.8) is 1.
    assert found.signals["words"] == pytest.approx([np.log(20.4)] * 2, rel=1e-5)
    assert found.parts["words"] == pytest.approx(weights("note", "words")["words"] * np.log(20.4), rel=1e-5)


def test_words_of_a_note_count_by_the_part_of_the_query_that_they_are() -> None:
    notes = [*FILLERS, Note("a walrus in a boat"), Note("a walrus in a train")]
    found = search(notes, "walrus boat zyxwvu")
    covered = dict(zip(found.rows.tolist(), found.signals["covered"].tolist(), strict=True))
    words = dict(zip(found.rows.tolist(), found.signals["words"].tolist(), strict=True))
    rarity = {count: np.log(1 + (50 - count + 0.5) / (count + 0.5)) for count in (0, 1, 2)}
    whole = sum(rarity.values())
    assert covered[20] == pytest.approx(words[20] * (rarity[1] + rarity[2]) / whole, rel=1e-5)
    assert covered[21] == pytest.approx(words[21] * rarity[2] / whole, rel=1e-5)


def test_a_note_that_shares_words_by_chance_comes_after_one_that_means_what_is_asked() -> None:
    notes = [
        *(Note(f"filler {place}", vector=(0, 0, 1)) for place in range(20)),
        Note("fresh fish on the harbour street market, price on the board", vector=(0.2, 1, 0)),
        Note("rent is due monthly", vector=(1, 1.6, 0)),
    ]
    query = "price of renting the rooms on Harbour Street"
    asked = QueryVectors(space=SPACE, words=query.split(), rows=floats(*[(1.0, 0.0, 0.0)] * 8))
    assert order(notes, query, asked)[0] == 21


def test_a_note_that_is_asked_for_by_its_time_is_weighed_as_such() -> None:
    notes = [Note("we went to the zoo"), Note("the zoo was fine", conversation="a")]
    for query, kind in (("zoo", "note"), ("zoo in January", "dated note")):
        found = search(notes, query)
        kinds = {row: KINDS[number] for row, number in zip(found.rows.tolist(), found.kinds, strict=True)}
        assert kinds == {0: kind, 1: "conversation"}


def test_a_time_of_which_there_is_nothing_changes_no_weights() -> None:
    notes = [Note("we went to the zoo", day=19_000), Note("the zoo is closed", day=19_200)]
    assert {KINDS[kind] for kind in search(notes, "zoo in January 2022").kinds} == {"dated note"}
    assert {KINDS[kind] for kind in search(notes, "zoo in January 2021").kinds} == {"note"}
    hidden = search([notes[0]._replace(hidden=True), notes[1]], "zoo in January 2022")
    assert {KINDS[kind] for kind in hidden.kinds} == {"note"}
    left_out = search([notes[0]._replace(out=True), notes[1]], "zoo in January 2022")
    assert {KINDS[kind] for kind in left_out.kinds} == {"dated note"}, "a filter changes no score"


def test_shares_add_up_to_the_score() -> None:
    notes = [*FILLERS, Note("Ann fed the walrus in May", author="Ann", conversation="c", tags=("zoo",))]
    found = search(notes, "When did Ann feed the walrus? zoo")
    strength = sum(found.parts.values())
    assert found.strengths == pytest.approx(strength, rel=1e-4)
    assert ((found.scores > 0) & (found.scores < 1)).all()


def test_a_book_is_no_longer_than_a_page() -> None:
    page = Note("boat " + " ".join(f"page{number}" for number in range(150)))
    work_context = Note("boat " + " ".join(f"word{number}" for number in range(20_000)))
    found = search([page, work_context, Note("the boat sails")], "boat")
    assert found.rows.tolist() == [0, 1, 2]
    assert found.signals["length"][:2] == pytest.approx([np.log(101)] * 2)


def test_context_counts_and_ends_with_the_conversation() -> None:
    notes = [
        Note("so it begins", conversation="a"),
        Note("the walrus sang", conversation="a"),
        Note("so it ends", conversation="a"),
        Note("so it begins", conversation="b"),
        Note("so it ends", conversation="b"),
    ]
    found = search(notes, "walrus")
    assert set(found.rows.tolist()) == {0, 1, 2}
    assert found.rows[0] == 1


def test_who_is_named_comes_first() -> None:
    notes = [Note("I like green tea", author="Ann"), Note("I like green tea", author="Bob")]
    assert order(notes, "What tea does Bob like?")[0] == 1
    assert order(notes, "what tea does ann like")[0] == 0
    both = search(notes, "what tea do Ann and Bob like")
    assert both.signals["author"].tolist() == [0, 0], "of two who are named neither is meant alone"


def test_a_name_of_several_words_is_named_in_full_or_not_at_all() -> None:
    notes = [Note("green tea", author="Mary Ann"), Note("green tea", author="Ann Lee")]
    found = search(notes, "tea of Ann Lee")
    assert found.signals["author"].tolist() == [1, 0]
    assert search(notes, "tea of Ann").signals["author"].tolist() == [0, 0]


def test_a_question_is_no_answer_but_what_follows_it_may_be() -> None:
    notes = [
        Note("What is your favourite colour?", author="Ann", conversation="c"),
        Note("It is blue", author="Bob", conversation="c"),
        Note("Let me think", author="Bob", conversation="c"),
    ]
    found = search(notes, "favourite colour")
    values = dict(zip(found.rows.tolist(), found.signals["answer"].tolist(), strict=True))
    assert values[1] > 0
    assert values[2] == 0
    questions = dict(zip(found.rows.tolist(), found.parts["question"].tolist(), strict=True))
    assert questions[0] < 0 == questions[1]


def test_a_remark_in_brackets_does_not_hide_a_question() -> None:
    notes = [Note("Do you like it? [shows a picture]"), Note("I like it [shows a picture?]")]
    found = search(notes, "like")
    values = dict(zip(found.rows.tolist(), found.signals["question"].tolist(), strict=True))
    assert values == {0: 1, 1: 0}


def test_asked_when_memories_that_name_a_time_come_first() -> None:
    notes = [Note("we went to the zoo together"), Note("we went to the zoo yesterday")]
    assert order(notes, "When did we go to the zoo?")[0] == 1


def test_a_month_in_the_query_is_when_the_memory_was_made() -> None:
    january, july = 19_000, 19_190
    notes = [Note("we went to the zoo", day=january), Note("we went to the zoo", day=july)]
    assert order(notes, "zoo in January")[0] == 0
    assert order(notes, "zoo in July 2022")[0] == 1
    found = search(notes, "zoo on 9 January 2022")
    assert found.signals["day"][0] == pytest.approx(np.exp(-1 / 7), rel=1e-3)


def test_the_caller_s_clock_decides_which_day_it_was() -> None:
    notes = [Note("the zoo", day=19_024)]  # the first of February, at midnight in London
    assert search(notes, "zoo in February").signals["month"].tolist() == [1]
    assert search(notes, "zoo in February", offset=-3_600_000_000).signals["month"].tolist() == [0]


def test_tags_and_keys_find_what_the_text_does_not_say() -> None:
    notes = [*FILLERS, Note("the usual", tags=("coffee",)), Note("the usual", key="tea-order")]
    assert order(notes, "coffee") == [20]
    assert order(notes, "tea order") == [21]
    assert order(notes, "order of the tea") == [21]


def test_a_number_does_not_ask_for_numbered_keys() -> None:
    notes = [Note("some cats", key="turn.3"), Note("three cats are 3", key="turn.4")]
    assert order(notes, "3") == [1]


@pytest.mark.promise("ranking.spelling")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("walurs", "walrus"),
        ("wlrus", "walrus"),
        ("walruss", "walrus"),
        ("walxus", "walrus"),
        ("organizng", "organizing"),
        ("orgnaizing", "organizing"),
        ("hippopotomas", "hippopotamus"),
        ("walr", "walrus"),
        ("größse", "größe"),
    ],
)
def test_a_slip_finds_what_was_meant(typed: str, meant: str) -> None:
    notes = [*FILLERS, Note(f"here is {meant} for once")]
    found = search(notes, typed)
    assert found.rows.tolist() == [20]
    assert list(found.corrected) == [found_term(typed)]
    assert not found.unknown


def found_term(word: str) -> str:
    (term,) = RankQuery.read(word).terms
    return term.term


def test_what_nothing_is_like_is_told() -> None:
    found = search([Note("an apple")], "zyxwvu 12345")
    assert found.rows.tolist() == []
    assert list(found.unknown) == ["zyxwvu", "12345"]


def test_a_compound_is_also_its_parts_and_a_date_its_month() -> None:
    notes = [Note("the user has a name"), Note("in May, 2024, on day 8")]
    assert order(notes, "user_name") == [0]
    assert 1 in order(notes, "2024-05-08")


def test_meaning_is_compared_once_there_are_vectors() -> None:
    notes = [Note("feline", vector=(1, 0, 0)), Note("canine", vector=(0, 1, 0)), Note("unknown so far")]
    asked = QueryVectors(space=SPACE, words=["cat"], rows=floats((2.0, 0.1, 0.0)))
    found = search(notes, "cat", asked)
    assert found.vectors == "static"
    assert found.rows.tolist() == [0, 2, 1]  # what has no vector yet is neither near nor far
    assert search(notes, "cat", replace_space(asked)).vectors == "words"


def replace_space(vectors: QueryVectors) -> QueryVectors:
    return QueryVectors(space="another", words=vectors.words, rows=vectors.rows)


def test_rare_words_of_the_query_weigh_more_in_its_vector() -> None:
    notes = [*(Note("filler", vector=(0, 0, 1)) for _ in range(20)), Note("walrus", vector=(1, 0, 0))]
    asked = QueryVectors(space=SPACE, words=["filler", "walrus"], rows=floats((0, 0, 1), (1, 0, 0)))
    found = search(notes, "filler walrus", asked)
    meaning = dict(zip(found.rows.tolist(), found.signals["meaning"].tolist(), strict=True))
    assert meaning[20] > 0.98
    assert meaning[0] < 0.2


def test_the_vector_of_a_word_that_may_be_mistyped_counts_less() -> None:
    notes = [Note("apple", vector=(0, 0, 1)), *FILLERS * 5, Note("walrus", vector=(1, 0, 0))]
    asked = QueryVectors(space=SPACE, words=["apple", "wlrus"], rows=floats((0, 0, 1), (1, 0, 0)))
    found = search(notes, "apple wlrus", asked)
    assert list(found.corrected) == ["wlrus"]
    meaning = dict(zip(found.rows.tolist(), found.signals["meaning"].tolist(), strict=True))
    assert meaning[0] > meaning[101] + 0.1
    assert meaning[101] > 0.4, "it may be a word that no memory says"


def test_a_word_whose_vector_is_long_means_more() -> None:
    notes = [Note("feline", vector=(1, 0, 0)), Note("canine", vector=(0, 1, 0))]
    asked = QueryVectors(space=SPACE, words=["cat", "dog"], rows=floats((3, 0, 0), (0, 1, 0)))
    assert order(notes, "cat dog", asked) == [0, 1]


def test_a_sentence_s_vector_is_taken_as_it_is() -> None:
    notes = [Note("feline", vector=(1, 0, 0)), Note("canine", vector=(0, 1, 0))]
    asked = QueryVectors(space=SPACE, words=[], rows=b"", sentence=floats((0, 1, 0)))
    found = search(notes, "dog", asked)
    assert found.vectors == "sentences"
    assert found.rows.tolist() == [1, 0]


def test_tokens_are_compared_word_by_word_also_with_the_neighbours() -> None:
    notes = [
        Note("one", vector=(1, 1, 0), tokens=((1, 0, 0),), conversation="c"),
        Note("two", vector=(1, 1, 0), tokens=((0, 1, 0),), conversation="c"),
        Note("three", vector=(1, 1, 0), tokens=((0, 0, 1),)),
        Note("four", vector=(1, 1, 0)),
    ]
    asked = QueryVectors(
        space=SPACE, words=["x", "y"], rows=floats((1, 0, 0), (0, 1, 0)), sentence=floats((1, 1, 0))
    )
    found = search(notes, "x y", asked)
    assert found.vectors == "tokens"
    place = {row: at for at, row in enumerate(found.rows.tolist())}
    assert found.signals["tokens"][place[0]] == pytest.approx(0.5, abs=0.01)
    assert found.signals["tokens nearby"][place[0]] == pytest.approx(0.95, abs=0.01)
    assert found.signals["tokens nearby"][place[2]] == pytest.approx(0.0, abs=0.01)
    assert found.signals["tokens"][place[3]] == pytest.approx(0.35)


def test_of_equals_the_newest_is_first_and_the_limit_holds() -> None:
    notes = [Note("the same words") for _ in range(7)]
    assert order(notes, "same words") == [6, 5, 4, 3, 2, 1, 0]
    found = search(notes, "same words", limit=3)
    assert found.rows.tolist() == [6, 5, 4]
    assert found.total == 7


@pytest.mark.parametrize("text", ["", "   ", "?!", "the of and", "\u200b", "a" * 10_000, "x " * 3_000])
def test_odd_queries_find_nothing_and_do_no_harm(text: str) -> None:
    assert search([Note("an apple"), Note("")], text).rows.tolist() == []


def test_an_empty_store_answers() -> None:
    assert search([], "anything").rows.tolist() == []
    assert search([Note("hidden", hidden=True)], "hidden").rows.tolist() == []


def test_a_view_serves_several_queries() -> None:
    view = View(stored([Note("an apple"), Note("a pear")]), np.ones(2, np.bool_))
    assert view.count == 2
    assert view.total == 2


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("in March", [Date(None, 3, None)]),
        ("in may 2024", [Date(2024, 5, None)]),
        ("May I march on?", [Date(None, 5, None)]),
        ("may I march on", []),
        ("on 7 May 2023", [Date(2023, 5, 7)]),
        ("May 7th, 2023", [Date(2023, 5, 7)]),
        ("the 3rd of Sept", [Date(None, 9, 3)]),
        ("2023-05-07 and 2023-06", [Date(2023, 5, 7), Date(2023, 6, None)]),
        ("between January and March 2022", [Date(2022, 3, None), Date(None, 1, None)]),
        ("in 2022", [Date(2022, None, None)]),
        ("room 2055 or 123456", [Date(2055, None, None)]),
        ("2023-13-40", []),
        ("decided to marry", []),
        ("dec 10 to hex", []),
        ("may 5 users log in, and mar 3", [Date(None, 3, 3)]),
        ("on may 5 we met", [Date(None, 5, 5)]),
        ("may 5th dinner, dec 10", [Date(None, 5, 5), Date(None, 12, 10)]),
        ("10 dec 2025 in hex", [Date(2025, 12, 10)]),
    ],
)
def test_dates_in_a_query(text: str, dates: list[Date]) -> None:
    assert set(find_dates(text)) == set(dates)


def test_a_day_that_no_year_has_is_near_to_none() -> None:
    calendar = Calendar(np.array([19_000 * 86_400_000_000]), 0)
    assert calendar.close_to((Date(2023, 2, 31),)).tolist() == [pytest.approx(0, abs=1e-6)]
    assert calendar.within((Date(None, None, None),)).tolist() == [1]


def test_every_signal_has_a_reason_and_counts_somewhere() -> None:
    every = [weights(kind, vectors) for kind in KINDS for vectors in get_args(VectorSet)]
    for name, reason in SIGNALS.items():
        assert reason.endswith("."), name
        assert any(name in table for table in every), name
    for table in every:
        assert set(table) <= set(SIGNALS)


def test_ranking_yields_between_its_steps() -> None:
    corpus = stored(FILLERS)
    query = RankQuery.read("filler number")
    view = View(corpus, corpus.alive.copy())
    assert sum(1 for _ in rank(view, query, corpus.alive, limit=10)) > 10


@pytest.mark.parametrize(
    ("text", "author", "left"),
    [
        ("Ann: I like tea", "Ann", "I like tea"),
        ("Ann:", "Ann", "Ann:"),
        ("Anna: I like tea", "Ann", "Anna: I like tea"),
        ("I like Ann: she is kind", "Ann", "I like Ann: she is kind"),
        (": nobody", "", ": nobody"),
    ],
)
def test_an_author_s_name_at_the_start_has_no_part_in_the_meaning(text: str, author: str, left: str) -> None:
    assert strip_author(text, author) == left
