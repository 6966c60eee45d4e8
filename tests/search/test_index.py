"""The index of one actor: what it finds, how it is kept small, and how a broken one is found out."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.asking import Open
from support.committers import crash_at, crashing
from support.indexing import (
    SMALL,
    Change,
    Check,
    Drop,
    Embed,
    Healing,
    Indexed,
    Keys,
    Load,
    Look,
    OfSource,
    Partition,
    Put,
    Rebuild,
    Shape,
    ShelvedDocument,
    Spoil,
    expected,
    seen,
)

from greenroom.actors.content.text.analyze import text_settings
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index import QUESTION, TEMPORAL, Document, records
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.document import analyse
from greenroom.actors.search.index.merge import (
    FANOUT,
    MANY,
    first_merged,
    first_of_many,
    first_of_tier,
)
from greenroom.actors.search.index.segment import join_terms, place_of
from greenroom.runtime import ActorFailedError, Address, apply_settings, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

HERE = Address("indexed", "here")
MINE = Partition("me")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of documents is many for the index."""
    for name, value in SMALL.items():
        monkeypatch.setattr(f"greenroom.actors.search.index.{name}", value)


def document(number: int, text: str = "some words", **fields: Any) -> ShelvedDocument:
    return ShelvedDocument(id=number, partition=MINE, namespace="user:me", text=text, **fields)


def documents(ids: Sequence[int], **fields: Any) -> list[ShelvedDocument]:
    return [
        document(number, f"word{number} shared {'even' if number % 2 == 0 else 'odd'}", **fields)
        for number in ids
    ]


def corpus_of(*given: Document) -> Corpus:
    corpus = Corpus()
    for one in given:
        finish(corpus.add(one))
    return corpus


def found(corpus: Corpus, term: str) -> list[int]:
    rows, _ = corpus.postings("text", term)
    return [int(corpus.ids[row]) for row in rows if corpus.alive[row]]


# -- in memory -------------------------------------------------------------


def test_a_document_is_found_by_its_words_its_key_its_tags_and_its_author() -> None:
    corpus = corpus_of(
        document(5, "Foxes jump. Foxes!", key="getUserName", tags=("Deep Blue",), author="Ann Lee")
    )
    assert [array.tolist() for array in corpus.postings("text", "fox")] == [[0], [2]]
    assert corpus.postings("key", "usernam")[0].tolist() == []
    assert corpus.postings("key", "user")[0].tolist() == [0]
    assert corpus.postings("tags", "blue")[0].tolist() == [0]
    assert corpus.postings("labels", "Deep Blue")[0].tolist() == [0]
    assert corpus.postings("labels", "deep blue")[0].tolist() == []
    assert corpus.postings("author", "lee")[0].tolist() == [0]
    assert corpus.lengths("text").tolist() == [3]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("We met", 0),
        ("Did we meet?", QUESTION),
        ("We met yesterday.", TEMPORAL),
        ("It was in 2019", TEMPORAL),
        ("on 2024-05-08", TEMPORAL),
        ("room 1234", 0),
        ("Was it last week?", QUESTION | TEMPORAL),
    ],
)
def test_questions_and_times_are_marked(text: str, flags: int) -> None:
    assert corpus_of(document(1, text)).flags.tolist() == [flags]


def test_neighbours_are_counted_among_the_rows_that_are_seen() -> None:
    corpus = corpus_of(
        document(1, conversation="a", position=2),
        document(2, conversation="a", position=1),
        document(3, conversation="b"),
        document(4),
        document(5, conversation="a"),
        document(6, conversation="a", position=3),
    )
    assert corpus.previous.tolist() == [1, -1, -1, -1, 5, 0]
    assert corpus.following.tolist() == [5, 0, -1, -1, -1, 4]
    without_the_first = corpus.neighbours(corpus.ids != 1)
    assert without_the_first.previous.tolist() == [-1, -1, -1, -1, 5, 1]
    assert without_the_first.place.tolist() == [-1, 0, 0, -1, 2, 1]
    corpus.remove(6)
    assert corpus.previous.tolist() == [1, -1, -1, -1, 0, -1]


def test_ids_may_come_in_any_order() -> None:
    corpus = corpus_of(*documents([7, 3, 9, 1]))
    assert [corpus.row(number) for number in (7, 3, 9, 1, 2)] == [0, 1, 2, 3, None]
    corpus.set_vectors("s", np.array([1, 2, 3], np.uint64), np.ones((3, 2), np.int8), np.ones(3, np.float32))
    assert corpus.without_vectors("s", 9) == [7, 9]
    corpus.remove(3)
    assert corpus.row(3) is None
    assert found(corpus, "share") == [7, 9, 1]


def test_adding_does_not_touch_what_is_there() -> None:
    corpus = corpus_of(*documents(range(1, 1_025)))
    finish(corpus.compact())
    before = corpus.segments
    finish(corpus.add(document(2_000, "shared")))
    assert corpus.segments is before
    assert found(corpus, "share") == [*range(1, 1_025), 2_000]


@given(
    seed=st.integers(0, 1_000),
    batches=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    removed=st.sets(st.integers(1, 100), max_size=60),
)
def test_a_corpus_in_memory_is_the_same_however_it_is_merged(
    seed: int, batches: list[int], removed: set[int]
) -> None:
    source = random.Random(seed)  # noqa: S311 - as in a test
    corpus = Corpus()
    given: dict[int, ShelvedDocument] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(f"greenroom.actors.search.index.{name}", value)
        number = 0
        for size in batches:
            for _ in range(size):
                number += 1
                words = " ".join(source.choices("abcdefghijk", k=source.randrange(6)))
                given[number] = document(number, words, conversation=source.choice(["one", "two", None]))
                finish(corpus.add(given[number]))
            for gone in removed & given.keys():
                if source.random() < 0.5:
                    corpus.remove(gone)
                    del given[gone]
            finish(corpus.compact())
            assert seen(corpus) == expected(given.values())


@pytest.mark.quick
@pytest.mark.promise("index.slices")
def test_a_long_text_is_taken_in_slices() -> None:
    slices = 0
    corpus = Corpus()
    text = " ".join(f"w{number % 50_000}x" for number in range(150_000))
    for _ in corpus.add(document(1, text)):
        slices += 1
    assert slices > len(text) // 2_048
    for _ in corpus.seal():
        slices += 1
    rows, times = corpus.postings("text", "w7x")
    assert (rows.tolist(), times.tolist()) == ([0], [3])
    assert corpus.lengths("text").tolist() == [150_000]


def test_a_word_counts_65535_times_at_most() -> None:
    corpus = corpus_of(document(1, "word " * 70_000))
    assert corpus.postings("text", "word")[1].tolist() == [65_535]
    assert corpus.lengths("text").tolist() == [65_535]


@pytest.mark.parametrize(
    ("weights", "fresh", "start"),
    [([], 0, 0), ([5], 1, 0), ([100, 5], 1, 1), ([15, 5], 1, 0), ([61, 15, 5], 1, 1), ([60, 15, 5], 1, 0)],
)
def test_merges_take_earlier_runs_unless_they_outweigh_the_rest(
    weights: list[int], fresh: int, start: int
) -> None:
    assert first_merged(weights, fresh) == start


@pytest.mark.parametrize(
    ("weights", "start"),
    [
        ([5] * 7, 6),
        ([5] * 8, 0),
        ([90, *[5] * 8], 1),
        ([40] * 7 + [5] * 7, 13),
        ([40] * 7 + [5] * 8, 0),
        ([90] * 7 + [5] * 8, 7),
        ([5, 2, 9, 1, 4, 8, 3, 6], 0),
    ],
    ids=[
        "few",
        "enough",
        "after-a-large-one",
        "two-tiers",
        "both-at-once",
        "lower-tier",
        "of-about-one-size",
    ],
)
def test_segments_of_about_one_size_are_merged_once_there_are_enough(weights: list[int], start: int) -> None:
    assert first_of_tier(weights, 1, FANOUT) == start


@pytest.mark.promise("index.segments")
def test_a_row_is_merged_a_few_times_at_most_and_few_segments_are_left() -> None:
    """As an import brings them: a thousand pieces, one after the other, of about one size."""
    weights: list[int] = []
    written = total = most = 0
    for number in range(1_000):
        weights.append(400 + number * 7_919 % 1_200)
        total += weights[-1]
        start = first_of_tier(weights, 1, FANOUT)
        weights[start:] = [sum(weights[start:])]
        written += weights[-1]
        most = max(most, len(weights))
    assert written < 3.5 * total
    assert most < 3 * FANOUT


@pytest.mark.parametrize(
    ("sizes", "start"),
    [
        ([7] * (MANY - 1), None),
        ([7] * MANY, 0),
        ([9_000, *[7] * MANY], 1),
        ([*[7] * MANY, 9_000, *[7] * (MANY - 2)], None),
        ([*[7] * MANY, 9_000, *[7] * (MANY - 1)], 0),
        ([9_000, *[7] * MANY, 800, *[7] * (MANY - 2)], 1),
    ],
    ids=["few", "many", "after-a-large-one", "about-a-large-one", "twice-as-many", "up-to-a-larger-one"],
)
def test_many_small_runs_are_merged_and_a_large_one_among_them_does_not_keep_them_from_it(
    sizes: list[int], start: int | None
) -> None:
    assert first_of_many(sizes) == start


@pytest.mark.parametrize("terms", [["a"], ["a", "bb", "ccc"], ["a", "b\nb", "c"], ["", "é", "日本"]])
def test_terms_that_are_kept_for_long_are_what_they_were(terms: list[str]) -> None:
    kept = join_terms(terms)
    assert (list(kept), len(kept), [kept[place] for place in range(-1, len(terms))]) == (
        terms,
        len(terms),
        [terms[-1], *terms],
    )
    for start in range(len(terms) + 1):
        for end in range(len(terms) + 1):
            assert kept[start:end] == terms[start:end]
    with pytest.raises(IndexError):
        kept[len(terms)]
    assert list(join_terms(kept)) == terms


@given(st.sets(st.text("ab\n", max_size=7), min_size=1), st.lists(st.text("ab\n", max_size=7)))
def test_a_term_is_found_where_it_is_among_others_and_nowhere_else(terms: set[str], asked: list[str]) -> None:
    order = sorted(terms)
    kept = join_terms(order)
    for term in [*order, *asked]:
        assert place_of(kept, term) == (order.index(term) if term in terms else None)


def test_terms_are_found_in_every_block_of_many() -> None:
    order = sorted(f"{number:x}" for number in range(1_000))
    kept = join_terms(order)
    assert [place_of(kept, term) for term in order] == list(range(1_000))
    assert [place_of(kept, term) for term in ("", "0 ", "1f ", "ff ", "zz")] == [None] * 5


def test_analysing_pauses_also_within_tags() -> None:
    tags = tuple(f"tag {number}" for number in range(10_000))
    analysed = finish(analyse(document(1, "text", tags=tags)))
    assert len(analysed.counts["labels"]) == 10_000


@pytest.mark.quick
@pytest.mark.promise("index.lazy")
def test_numpy_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, greenroom.actors; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# -- in records ------------------------------------------------------------


async def test_a_document_is_found_by_the_very_next_search(reopen: Open) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Load())
        given = documents(range(1, 9), conversation="talk")
        for one in given:
            await runtime.ask(HERE, Put([one]))
            look = await runtime.ask(HERE, Look())
            assert one.id in look["rows"]
    async with reopen(actors=[Indexed]) as runtime:
        assert await runtime.ask(HERE, Look()) == expected(given)


@pytest.mark.quick
@pytest.mark.promise("index.segments")
@pytest.mark.usefixtures("small")
async def test_segments_fall_off_geometrically_and_leave_nothing_behind(reopen: Open) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        for number in range(1, 200):
            await runtime.ask(HERE, Put(documents([number])))
        await trio.sleep(10)
        *sizes, tail = await runtime.ask(HERE, Shape())
        assert sum(sizes) + tail == 199
        assert tail < 6
        assert len(sizes) <= 5
        keys = await runtime.ask(HERE, Keys())
        assert len({key[:6] for key in keys if key.startswith(records.SEGMENTS)}) == len(sizes)
        assert sum(key.startswith(records.ROWS) for key in keys) == tail


@pytest.mark.usefixtures("small")
async def test_what_a_crash_left_half_built_is_removed(reopen: Open) -> None:
    given = documents(range(1, 13))
    with crashing():
        async with reopen(actors=[Indexed], committer=crash_at(5, after=True)) as runtime:
            await runtime.ask(HERE, Put(given))
            await trio.sleep(10)
    async with reopen(actors=[Indexed]) as runtime:
        keys = await runtime.ask(HERE, Keys())
        assert any(key.startswith(records.SEGMENTS) for key in keys)
        assert any(key.startswith(records.ROWS) for key in keys)
        assert await runtime.ask(HERE, Look()) == expected(given)
        await trio.sleep(10)
        assert await runtime.ask(HERE, Shape()) == [12, 0]
        keys = await runtime.ask(HERE, Keys())
        assert len({key[:6] for key in keys if key.startswith(records.SEGMENTS)}) == 1
        assert await runtime.ask(HERE, Check()) == []


@pytest.mark.quick
@pytest.mark.promise("index.equals-data")
@pytest.mark.parametrize("pause", range(12))
@pytest.mark.usefixtures("small")
async def test_what_changes_during_a_merge_is_not_lost(reopen: Open, pause: int) -> None:
    given = {one.id: one for one in documents(range(1, 21))}
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put([*given.values()][:10]))
        await trio.sleep(10)
        await runtime.ask(HERE, Put([*given.values()][10:]))
        for _ in range(4 * pause):
            await trio.lowlevel.checkpoint()
        await runtime.ask(HERE, Drop([2, 12]))
        await runtime.ask(HERE, Change(3, {"uses": 7}))
        await runtime.ask(HERE, Change(13, {"importance": 1.0}))
        await trio.sleep(10)
        look = await runtime.ask(HERE, Look())
    del given[2], given[12]
    given[3] = msgspec.structs.replace(given[3], uses=7)
    given[13] = msgspec.structs.replace(given[13], importance=1.0)
    assert look == expected(given.values())
    async with reopen(actors=[Indexed]) as runtime:
        assert await runtime.ask(HERE, Look()) == expected(given.values())
        assert await runtime.ask(HERE, Check()) == []


@pytest.mark.usefixtures("small")
async def test_a_new_row_does_not_inherit_vectors(reopen: Open) -> None:
    vector = Vectors(scale=0.5, values=b"abc", tokens=b"abcdef", token_scale=0.5)
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 9))))
        await runtime.ask(HERE, Embed("s", [(number, vector) for number in range(1, 9)]))
        await runtime.ask(HERE, Drop([1, 2, 3, 4, 5]))
        await trio.sleep(10)
        assert sum(await runtime.ask(HERE, Shape())) == 3
        given = documents(range(9, 15))
        await runtime.ask(HERE, Put(given))
        look = await runtime.ask(HERE, Look())
        assert look["vectors"]["s"].keys() == {6, 7, 8}
        assert await runtime.ask(HERE, Check()) == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("tidied", [False, True])
async def test_an_index_of_which_everything_was_removed_is_in_order(reopen: Open, *, tidied: bool) -> None:
    vector = Vectors(scale=0.5, values=b"abc", tokens=b"abcdef", token_scale=0.5)
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 9))))
        await runtime.ask(HERE, Embed("s", [(number, vector) for number in range(1, 9)]))
        await runtime.ask(HERE, Look())
        await runtime.ask(HERE, Drop(list(range(1, 9))))
        if tidied:
            await trio.sleep(10)
        assert await runtime.ask(HERE, Check()) == []


@pytest.mark.usefixtures("small")
async def test_patches_are_folded_into_the_rows(reopen: Open) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 31))))
        await trio.sleep(10)
        for number in range(1, 31):
            await runtime.ask(HERE, Change(number, {"uses": number}))
        await trio.sleep(10)
        keys = await runtime.ask(HERE, Keys())
        assert sum(key.startswith(records.PATCHES) for key in keys) < 8
    async with reopen(actors=[Indexed]) as runtime:
        look = await runtime.ask(HERE, Look())
        assert {number: row["uses"] for number, row in look["rows"].items()} == {
            number: number for number in range(1, 31)
        }


@pytest.mark.usefixtures("small")
async def test_vectors_that_come_one_by_one_are_gathered(reopen: Open) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 41))))
        for number in range(1, 41):
            vector = Vectors(scale=0.5, values=bytes([number, 0, 1]))
            await runtime.ask(HERE, Embed("s", [(number, vector)]))
        await trio.sleep(10)
        keys = await runtime.ask(HERE, Keys())
        assert sum(key.startswith(records.VECTORS) for key in keys) < 20
    async with reopen(actors=[Indexed]) as runtime:
        look = await runtime.ask(HERE, Look())
        assert look["vectors"]["s"] == {number: (0.5, bytes([number, 0, 1])) for number in range(1, 41)}


@pytest.mark.usefixtures("small")
async def test_records_of_long_texts_go_when_they_are_merged_or_removed(reopen: Open) -> None:
    long = [document(number, "a b c d e f g h i j k l m n", tags=("x", "y")) for number in range(1, 9)]
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(long[:3]))
        keys = await runtime.ask(HERE, Keys())
        assert sum(key.startswith(records.MORE) for key in keys) >= 12
        await runtime.ask(HERE, Drop([1]))
        keys = await runtime.ask(HERE, Keys())
        assert not any(key.startswith(records.more_key(1, 0)[:-4]) for key in keys)
        assert await runtime.ask(HERE, Look()) == expected(long[1:3])
        await runtime.ask(HERE, Put(long[3:]))
        await trio.sleep(10)
        keys = await runtime.ask(HERE, Keys())
        assert not any(key.startswith((records.MORE, records.ROWS)) for key in keys)
        assert await runtime.ask(HERE, Look()) == expected(long[1:])


@pytest.mark.parametrize("loaded", [True, False])
async def test_a_message_that_fails_leaves_no_trace_in_the_index(reopen: Open, *, loaded: bool) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents([1])))
        if loaded:
            await runtime.ask(HERE, Load())
        with pytest.raises(ActorFailedError):
            await runtime.ask(HERE, Change(1, {"uses": 7}, fail=True))
        assert await runtime.ask(HERE, Look()) == expected(documents([1]))


# -- broken ----------------------------------------------------------------


BROKEN = {
    "no manifest": (records.MANIFEST, None, "there is no index"),
    "a manifest of nothing": (
        records.MANIFEST,
        records.Manifest(records.FORMAT, "1 english"),
        "is not in the index",
    ),
    "another analysis": (
        records.MANIFEST,
        records.Manifest(records.FORMAT, "0 latin"),
        "is of another version",
    ),
    "no record of a row": (records.row_key(13), None, "memory 13 is not in the index"),
    "a dead row": (records.patch_key(2), {"alive": False}, "memory 2 is not in the index"),
    "a changed row": (records.patch_key(2), {"uses": 9}, "memory 2 is in the index with other values: uses"),
    "no such column": (records.patch_key(2), {"users": 9}, "does not fit"),
    "vectors of another length": (
        records.vector_key(0, 0),
        records.VectorChunk(b"12345678", b"1234", b"12345"),
        "does not fit the others",
    ),
    "vectors of nothing": (
        records.token_key(0, 99),
        records.TokenVectors(0.5, b"abc"),
        "vectors of memory 99 in s, which is not there",
    ),
}


@pytest.mark.promise("index.broken")
@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.usefixtures("small")
async def test_a_broken_index_is_found_and_rebuilt(reopen: Open, case: str) -> None:
    key, value, sentence = BROKEN[case]
    given = documents(range(1, 14))
    vector = Vectors(scale=0.5, values=b"abc", tokens=b"abcdef", token_scale=0.5)
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(given[:12]))
        await runtime.ask(HERE, Embed("s", [(3, vector)]))
        await trio.sleep(10)
        await runtime.ask(HERE, Put(given[12:]))
        assert await runtime.ask(HERE, Check()) == []
        raw = None if value is None else msgspec.Raw(msgspec.msgpack.encode(value))
        await runtime.ask(HERE, Spoil(key, raw))
        problems = await runtime.ask(HERE, Check())
        assert any(sentence in problem for problem in problems), problems
        await runtime.ask(HERE, Rebuild())
        assert await runtime.ask(HERE, Check()) == []
    async with reopen(actors=[Indexed]) as runtime:
        look = await runtime.ask(HERE, Look())
        vectors = look.pop("vectors")
        wanted = expected(given)
        assert not wanted.pop("vectors")
        assert look == wanted
        if "vectors" not in case and "manifest" not in case and case != "another analysis":
            assert vectors == {"s": {3: (0.5, b"abc", b"abcdef")}}


@pytest.mark.parametrize("part", [b"c", b"d", b"p"])
@pytest.mark.usefixtures("small")
async def test_a_missing_part_of_a_segment_is_found(reopen: Open, part: bytes) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 13))))
        await trio.sleep(10)
        keys = await runtime.ask(HERE, Keys())
        key = next(key for key in keys if key.startswith(records.SEGMENTS) and key[6:7] == part)
        await runtime.ask(HERE, Spoil(key))
        problems = await runtime.ask(HERE, Check())
        assert len(problems) == 1
        assert "is missing" in problems[0]
        await runtime.ask(HERE, Rebuild())
        assert await runtime.ask(HERE, Look()) == expected(documents(range(1, 13)))


@pytest.mark.usefixtures("small")
async def test_a_changed_posting_is_found(reopen: Open) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents(range(1, 13))))
        await trio.sleep(10)
        keys = await runtime.ask(HERE, Keys())
        key = next(key for key in keys if key.startswith(records.SEGMENTS) and key[6:8] == b"p\0")
        await runtime.ask(HERE, Spoil(key, msgspec.Raw(msgspec.msgpack.encode(OTHER))))
        problems = await runtime.ask(HERE, Check())
        assert any("the terms of its text" in problem for problem in problems)


@pytest.mark.quick
@pytest.mark.promise("index.broken")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("case", ["no manifest", "another analysis", "no such column", "no block"])
async def test_an_index_that_cannot_be_read_is_made_anew_by_the_first_search(
    reopen: Open, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = documents(range(1, 14))
    async with reopen(actors=[Healing]) as runtime:
        await runtime.ask(HERE, Put(given[:12]))
        await trio.sleep(10)
        await runtime.ask(HERE, Put(given[12:]))
        if case == "no block":
            keys = await runtime.ask(HERE, Keys())
            key, value = next(key for key in keys if key.startswith(records.SEGMENTS)), None
        else:
            key, value, _ = BROKEN[case]
        raw = None if value is None else msgspec.Raw(msgspec.msgpack.encode(value))
        await runtime.ask(HERE, Spoil(key, raw))
        assert await runtime.ask(HERE, Look()) == expected(given)
        assert await runtime.ask(HERE, Check()) == []
    assert "is made anew" in caplog.text


@pytest.mark.parametrize("loaded", [True, False])
async def test_what_is_unknown_can_be_removed_and_changed(reopen: Open, *, loaded: bool) -> None:
    async with reopen(actors=[Indexed]) as runtime:
        await runtime.ask(HERE, Put(documents([1, 2])))
        await runtime.ask(HERE, Drop([2]))
        if loaded:
            await runtime.ask(HERE, Load())
        await runtime.ask(HERE, Drop([2, 99]))
        patches = [key for key in await runtime.ask(HERE, Keys()) if key.startswith(records.PATCHES)]
        assert len(patches) == (0 if loaded else 2)
        assert await runtime.ask(HERE, Look()) == expected(documents([1]))
        assert await runtime.ask(HERE, Check()) == []


async def test_a_search_of_nothing_writes_nothing(reopen: Open) -> None:
    async with reopen(actors=[Healing]) as runtime:
        assert await runtime.ask(HERE, Look()) == expected([])
        assert await runtime.ask(HERE, Keys()) == []


@pytest.mark.quick
@pytest.mark.promise("index.languages")
async def test_an_index_is_made_anew_for_other_languages(reopen: Open) -> None:
    given = [document(1, "Häuser und the книги"), document(2, "running houses")]
    async with reopen(actors=[Healing]) as runtime:
        await runtime.ask(HERE, Put(given))
        look = await runtime.ask(HERE, Look())
        assert look["terms"]["text"][1].keys() == {"hauser", "und", "книги"}
    async with reopen(actors=[Healing], settings=text_settings(("english", "german", "russian"))) as runtime:
        assert await runtime.ask(HERE, Check()) == []  # it is what it says that it is
        look = await runtime.ask(HERE, Look())
        assert look["terms"]["text"][1].keys() == {"haus", "und", "книг"}
        assert look["terms"]["text"][2].keys() == {"run", "hous"}
        assert await runtime.ask(HERE, Check()) == []
    with apply_settings(text_settings(("german",))):
        assert expected(given)["terms"]["text"][1].keys() == {"haus", "und", "the", "книги"}


async def test_an_index_of_source_code_has_words_and_names_of_its_own_rules(reopen: Open) -> None:
    given = [document(1, "class HTTPServer: URLs", tags=("HTTPServer", "App.create_app", "App.", "_"))]
    async with reopen(actors=[OfSource]) as runtime:
        await runtime.ask(HERE, Put(given))
        look = await runtime.ask(HERE, Look())
        assert look["terms"]["text"][1].keys() == {"class", "httpserver", "http", "server", "url"}
        assert look["terms"]["labels"][1].keys() == {"httpserver", "createapp"}
        assert look["terms"]["tags"][1]["app"] == 3
        assert await runtime.ask(HERE, Check()) == []
    german = text_settings(("german",))
    async with reopen(actors=[OfSource], settings=german) as runtime:
        assert await runtime.ask(HERE, Check()) == []  # it is what it says that it is
        look = await runtime.ask(HERE, Look())
        assert look["terms"]["text"][1].keys() >= {"http", "url"}
        assert "httpserver" in look["terms"]["labels"][1]
        assert await runtime.ask(HERE, Check()) == []
    async with reopen(actors=[Healing], settings=german) as runtime:
        look = await runtime.ask(HERE, Look())
        assert look["terms"]["labels"][1].keys() == set(given[0].tags), "made anew for other rules"


def test_a_language_without_a_stemmer_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no language 'klingon'; there are arabic,"):
        text_settings(("klingon",))


OTHER = records.ChunkRecord(
    ["zzz"],
    np.array([1], np.uint32).tobytes(),
    np.array([2], np.int32).tobytes(),
    np.array([1], np.uint16).tobytes(),
)
