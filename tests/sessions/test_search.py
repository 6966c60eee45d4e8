"""The search index alone: what it finds, how it scores, and what cannot influence it."""

from __future__ import annotations

import math
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors
from greenroom.actors.sessions.search import Preview, metadata_text, preview
from greenroom.actors.sessions.search.index import Match, SearchIndex, SearchRequest
from greenroom.runtime import finish

WORDS = ["database", "databse", "databases", "auth", "authentication", "the", "who", "bob", "café", "東京"]
WORDS += ["東京都", "user_name", "userName", "2024-05-08", "May", "8", "🎉", "=>", "?", "x" * 70]
WORDS += ["a\u0301\u0316", "\0", "\n"]
DAY = 24 * 3_600 * 1_000_000
IN_MAY_2024 = 1_714_800_000 * 1_000_000
SENDERS = ["bob", "alice", "planner-1", "the", "東京", ""]
PARTITIONS = ["public", "agent:bob", "type:planner"]
SPACE = "letters:1"

texts = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=8).map(" ".join)
documents = st.lists(
    st.tuples(st.sampled_from(PARTITIONS), st.sampled_from(SENDERS), texts, st.just("") | texts), max_size=25
)
Document = tuple[str, str, str, str]


def index_of(docs: list[tuple[int, Document]], began: int = IN_MAY_2024) -> SearchIndex:
    index = SearchIndex()
    for number, document in docs:
        index.add(number, *document, created_at=began + number * DAY)
        if number % 4:  # some have none yet
            index.set_vectors(SPACE, {number: vector(document[2])})
    return index


def vector(text: str) -> Vectors:
    """Return a text's vector, which counts some letters."""
    counts = [min(100, text.count(letter)) for letter in "adeo"]
    return Vectors(scale=1 / (math.hypot(*counts) or 1), values=bytes(counts))


def query_vectors(text: str) -> QueryVectors:
    values = array("f", [*vector(text).values])
    return QueryVectors(space=SPACE, words=[], rows=b"", sentence=values.tobytes())


def said(*contents: str, sender: str = "alice") -> SearchIndex:
    docs = [(number, ("public", sender, content, "")) for number, content in enumerate(contents)]
    return index_of(docs, began=IN_MAY_2024 // 2)


def search(
    index: SearchIndex,
    text: str,
    *,
    partitions: list[str] | None = None,
    oldest_id: int = 0,
    threshold: float = 60,
    limit: int = 100,
    metadata: bool = True,
    meaning: bool = False,
) -> list[Match]:
    request = SearchRequest(
        text=text,
        partitions=PARTITIONS if partitions is None else partitions,
        oldest_id=oldest_id,
        threshold=threshold,
        limit=limit,
        metadata=metadata,
        vectors=query_vectors(text) if meaning else None,
    )
    return finish(index.search(request))


def scores(index: SearchIndex, text: str, threshold: float = 60) -> dict[int, float]:
    return dict(search(index, text, threshold=threshold))


# What it finds


@pytest.mark.promise("sessions.identical-messages")
def test_identical_messages_are_found_under_their_own_ids_newest_first() -> None:
    index = said("deploy failed", "deploy failed", "deploy failed")
    assert search(index, "deploy failed") == [Match(2, 100.0), Match(1, 100.0), Match(0, 100.0)]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("The database connection was refused", "database connection"),
        ("The Database Connections were refused", "database connection"),
        ("naïve CAFÉ", "cafe"),
        ("cafe\u0301 society", "CAFÉ society"),
        ("\ufb01le \uff21\uff22\uff23", "file abc"),
        ("To be, or not to be: that is the question", "to be or not to be"),
        ("The Who played live", "the who"),
        ("written in C++", "c++"),
        ("not naïve, written in C++", "c++"),
        ("if a => b", "=>"),
        ("party 🎉", "🎉"),
        ("👩\u200d👩\u200d👧 walked", "👩👩👧"),
        ("東京都の天気", "東京"),
        ("東京都の天気", "京"),
        ("한국어 검색은 어렵다", "검색"),
        ("ฉันรักภาษาไทย", "ไทย"),
        ("मैं हिन्दी बोलता हूँ", "हिन्दी"),
        ("שָׁלוֹם עולם", "שלום"),
        ("set user_name first", "user_name"),
        ("set user_name first", "user name"),
        ("call getUserName()", "getusername"),
        ("GitHub is down", "github"),
        ("released on 2024-05-08", "2024-05-08"),
        ("id 0012345", "0012345"),
        ("a\0b", "a\0b"),
        ("soft\u00adhyphen", "softhyphen"),
        ("x", "x"),
    ],
)
def test_a_phrase_scores_100_whatever_its_case_accents_endings_and_script(content: str, query: str) -> None:
    assert scores(said("something else entirely", content), query) == {1: 100.0}


@given(texts | st.text(max_size=40) | st.text("ab1-+#=_ .,()/2024\0", max_size=40))
def test_a_text_is_found_by_itself_whatever_stands_before_it(text: str) -> None:
    alone, after = scores(said(text), text), scores(said("déjà vu " + text), text)
    assert alone == after
    assert not alone or alone == {0: 100.0}


@pytest.mark.parametrize(
    ("content", "query", "least", "most"),
    [
        ("the connection to the database", "database connection", 95, 99.99),
        ("the database is down", "databse", 85, 95),
        ("the database is down", "dtabase", 85, 95),
        ("authentication is broken", "auth", 60, 90),
        ("auth is broken", "authentication", 60, 90),
        ("the database is down", "base", 60, 80),
        ("call getUserName()", "get_user_name", 95, 99.99),
        ("the name of the user", "user_name", 80, 95),
        ("released on 2024-05-08", "May 8th 2024", 95, 99.99),
        ("released in May", "2024-05-02", 20, 59),
        ("x" * 300 + "needle" + "y" * 300, "needle", 60, 80),
        ("database server", "database timeout", 30, 59),
        ("we went to the park", "which park did the architects of the new museum visit on their trip", 1, 59),
    ],
)
def test_a_partial_match_scores_by_how_much_of_the_query_it_says(
    content: str, query: str, least: float, most: float
) -> None:
    index = said("something else entirely", "unrelated words", content)
    found = scores(index, query, threshold=0.01)
    assert least <= found[2] <= most
    assert max(found, key=lambda number: found[number]) == 2


@pytest.mark.parametrize("query", ["", " \n", "?", "...", "\0", "zzzz", "\u200b", "\u0301", "1234567890123"])
def test_what_is_nowhere_finds_nothing(query: str) -> None:
    assert scores(said("the database is down", "was it?"), query, threshold=0) == {}


def test_a_query_of_stop_words_is_looked_for_as_it_stands() -> None:
    index = said("who is the owner", "the who are the best", "the bathe whoever")
    assert scores(index, "the who") == {1: 100.0}


def test_numbers_are_no_misspellings_of_each_other() -> None:
    assert scores(said("ticket 48211", "ticket 48212"), "48213", threshold=0) == {}


def test_rare_words_count_more_than_frequent_ones() -> None:
    index = said(*["the report is late"] * 20, "the quarterly summary is late")
    found = scores(index, "quarterly report", threshold=1)
    assert found[20] > max(score for number, score in found.items() if number != 20 and number < 16)


def test_a_sender_is_found_by_name_and_what_it_wrote_comes_before_what_mentions_it() -> None:
    index = SearchIndex()
    index.add(1, "public", "planner-1", "the schema is ready", "")
    index.add(2, "public", "bob", "planner-1 should look at the schema", "")
    index.add(3, "public", "bob", "lunch", "")
    assert [match.id for match in search(index, "planner-1", threshold=90)] == [1, 2]
    assert [match.id for match in search(index, "what did planner-1 say about the schema")] == [1, 2]


def test_a_message_without_a_word_of_the_query_stays_below_60_whatever_is_said_around_it() -> None:
    index = said("where is the api key?", "in the vault", "thanks")
    found = scores(index, "where is the api key", threshold=0)
    assert found[0] == 100.0
    assert 60 > found[1] > found[2] > 0
    assert scores(index, "alice vault", threshold=60) == {1: 97.0}


def test_an_answer_is_found_by_its_question() -> None:
    index = said(
        "unrelated", "which editor do you use at work?", "vim, for most of my work", "nothing", "editor"
    )
    found = scores(index, "editor used at work by the team", threshold=1)
    assert found[2] > found[4]


@pytest.mark.parametrize("size", [5, 40, 1500])
def test_a_score_means_the_same_however_long_the_message_and_the_session(size: int) -> None:
    others = [f"nothing but the note number {number} of many" for number in range(size)]
    long = "a pipeline " + "and quite a few other things " * 60 + "is blocked by the firewall"
    found = scores(said("the pipeline waits", *others, long), "blocked pipeline", threshold=1)
    assert found[size + 1] == 97.0, "all words are said, in whatever a flood of others"
    assert 30 <= found[0] < 60, "half of the words are"
    assert all(score < 60 for number, score in found.items() if number <= size)


def test_more_of_the_query_is_a_higher_score_at_any_length_of_the_query() -> None:
    words = ["harbour", "lantern", "velvet", "compass", "orchid", "thunder", "walnut", "glacier"]
    steps = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
    apart = [text for step in steps for text in (step, *["..."] * 5)]
    for count in range(2, len(words) + 1):
        # Backwards, or it were a phrase.
        found = scores(said(*apart), " ".join(words[count - 1 :: -1]), threshold=0)
        said_of_it = [found[6 * place] for place in range(count)]
        assert said_of_it == sorted(said_of_it), f"of {count} words"
        assert said_of_it[-1] == 97.0


def test_a_message_of_the_day_that_the_query_names_comes_first() -> None:
    index = SearchIndex()
    for number in range(40):
        index.add(
            number, "public", "bob", f"the deploy number {number}", created_at=IN_MAY_2024 + number * DAY
        )
    assert search(index, "which deploy was on 14 May 2024", threshold=1)[0].id == 10
    assert search(index, "which deploy was in June", threshold=1)[0].id in range(28, 40)


def test_a_part_of_a_senders_name_finds_what_it_wrote() -> None:
    index = SearchIndex()
    index.add(1, "public", "release-planner", "the schema is ready", "")
    index.add(2, "public", "bob", "the schema is not ready", "")
    assert search(index, "planner schema")[0] == Match(1, 97.0)


def test_metadata_is_searched_only_if_wanted() -> None:
    index = SearchIndex()
    index.add(1, "public", "bob", "hello", metadata_text(b'{"ticket": "OPS-7", "tags": ["urgent", 3.50]}'))
    assert [match.id for match in search(index, "urgent")] == [1]
    assert [match.id for match in search(index, "OPS-7 urgent")] == [1]
    assert search(index, "urgent", metadata=False) == []
    assert search(index, "ticket") == [], "names of fields are no values"


def test_equal_scores_come_shorter_first_and_then_newer_first() -> None:
    index = said("deploy", "deploy " + "and so on " * 20, "deploy", "deploy " + "and so on " * 20)
    assert [match.id for match in search(index, "deploy")] == [2, 0, 3, 1]


def test_a_message_is_added_once() -> None:
    index = said("one", "two", "three")
    for number in (2, 0, 1):
        index.add(number, "public", "alice", "again", "")
    assert len(index) == 3
    assert search(index, "again") == []


# What cannot influence it


@pytest.mark.promise("sessions.visibility", "identity.visible-only")
@given(
    documents, texts, st.sets(st.sampled_from(PARTITIONS)), st.integers(0, 25), st.booleans(), st.booleans()
)
def test_a_search_is_what_an_index_of_the_visible_messages_alone_would_give(
    docs: list[Document],
    query: str,
    partitions: set[str],
    oldest_id: int,
    metadata: bool,  # noqa: FBT001 - drawn by hypothesis
    meaning: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    numbered = list(enumerate(docs))
    seen = [
        (number, (partition, sender, content, values if metadata else ""))
        for number, (partition, sender, content, values) in numbered
        if partition in partitions and number >= oldest_id
    ]
    everything, visible = index_of(numbered), index_of(seen)
    found = search(
        everything,
        query,
        partitions=list(partitions),
        oldest_id=oldest_id,
        threshold=0,
        metadata=metadata,
        meaning=meaning,
    )
    assert found == search(visible, query, threshold=0, meaning=meaning)


@pytest.mark.promise("sessions.visibility", "identity.visible-only")
def test_hidden_vectors_change_no_score_also_not_of_messages_that_have_none_yet() -> None:
    shown = [(number, ("public", "bob", f"a deed {'a' * number}", "")) for number in range(6)]
    hidden = [(number, ("agent:eve", "eve", "a deed, a dead end", "")) for number in range(6, 20)]
    found = search(index_of(shown + hidden), "idea", partitions=["public"], threshold=0, meaning=True)
    assert found == search(index_of(shown), "idea", threshold=0, meaning=True)
    assert {each.id for each in found} >= {0, 4}, "which have none"


@given(documents, st.lists(st.tuples(texts, st.sets(st.sampled_from(PARTITIONS)), st.booleans()), max_size=6))
def test_a_search_is_the_same_after_other_searches(
    docs: list[Document], asked: list[tuple[str, set[str], bool]]
) -> None:
    index = SearchIndex()
    for number, document in enumerate(docs):
        index.add(number, *document, created_at=IN_MAY_2024 + number * DAY)
        for query, partitions, metadata in asked if number % 5 == 0 else ():
            fresh = index_of(list(enumerate(docs[: number + 1])))
            options = {"partitions": list(partitions), "oldest_id": number // 2, "threshold": 0.0}
            found = search(index, query, metadata=metadata, **options)  # type: ignore[arg-type]  # by name
            assert found == search(fresh, query, metadata=metadata, **options)  # type: ignore[arg-type]


def test_each_search_sees_what_it_may_whatever_the_one_before_saw() -> None:
    index = index_of([(number, (PARTITIONS[number % 2], "ann", "the same words", "")) for number in range(8)])
    for partitions in (PARTITIONS[:1], PARTITIONS[1:2], PARTITIONS[:2]):
        for oldest_id in (0, 1, 5, 4, 8, 0):
            found = {match.id for match in search(index, "words", partitions=partitions, oldest_id=oldest_id)}
            assert found == {number for number in range(oldest_id, 8) if PARTITIONS[number % 2] in partitions}


@given(st.lists(st.text("abcdef", min_size=4, max_size=9), min_size=1, max_size=24), st.data())
def test_a_part_of_a_word_finds_every_message_with_such_a_word(words: list[str], data: st.DataObject) -> None:
    words = [f"{word}zz" for word in words]  # which has no ending that a stem is without
    whole = data.draw(st.sampled_from(words))
    start = data.draw(st.integers(0, len(whole) - 5))
    part = whole[start : start + 4]
    found = {number for number, _ in search(said(*words), part, threshold=1, limit=1000)}
    assert found >= {number for number, word in enumerate(words) if part in word}


@given(documents, texts, st.randoms(use_true_random=False))
def test_the_order_of_adding_changes_nothing(docs: list[Document], query: str, random: object) -> None:
    numbered = list(enumerate(docs))
    shuffled = list(numbered)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis does not type its Random
    middle = len(docs) // 2
    filled_back = numbered[middle:] + numbered[:middle][::-1]
    wanted = search(index_of(numbered), query, threshold=0)
    for order in (numbered[::-1], filled_back, shuffled):
        assert search(index_of(order), query, threshold=0) == wanted


@given(documents, texts | st.text(max_size=30), st.floats(0, 100), st.integers(1, 10))
def test_matches_are_the_best_by_descending_score(
    docs: list[Document], query: str, threshold: float, limit: int
) -> None:
    index = index_of(list(enumerate(docs)))
    everything = search(index, query, threshold=0)
    assert all(0 <= score <= 100 and score == round(score, 2) for _, score in everything)
    assert [score for _, score in everything] == sorted((score for _, score in everything), reverse=True)
    assert len({number for number, _ in everything}) == len(everything)
    wanted = [match for match in everything if match.score >= threshold][:limit]
    assert search(index, query, threshold=threshold, limit=limit) == wanted


# Bounds


@pytest.mark.promise("sessions.search-slices")
@pytest.mark.parametrize("query", ["alpha beta", "alpa", "nowhere at all", "the", "alpha " * 80, "w" * 500])
@pytest.mark.parametrize("threshold", [0, 60])
def test_a_search_of_many_messages_may_be_paused_at_least_every_1024_messages(
    query: str, threshold: float
) -> None:
    index = SearchIndex()
    for number in range(6000):
        index.add(number, PARTITIONS[number % 3], "bob", f"alpha beta word{number}", "")
    slices = index.search(SearchRequest(text=query, partitions=PARTITIONS, threshold=threshold))
    pauses = sum(1 for _ in slices)
    # The passes over all messages: finding them, and choosing the best.
    assert pauses >= 2 * 6000 // 1024


NASTY = {
    "one word": "a" * 60_000,
    "short words": "ab " * 20_000,
    "different words": " ".join(f"{number:x}" for number in range(10_000)),
    "accents": "a" + "\u0301\u0316" * 30_000,
    "vowel signs": "क" + "\u094d\u093c" * 30_000,
    "no spaces": "東京都" * 20_000,
    "ligatures of 18 letters": "\ufdfa" * 10_000,
    "emojis": "🎉" * 30_000,
    "families": "👨\u200d👩\u200d👧" * 20_000,
    "symbols": "=>" * 30_000,
    "NUL": "\0" * 60_000,
    "right to left": "\u202e\u05d0\u05d1 " * 15_000,
    "camels": "aB" * 30_000,
    "snakes": "a_" * 30_000,
    "zeros": "0" * 60_000 + "x",
    "blanks": " \n" * 30_000,
}
NASTY_QUERIES = ["a" * 500, "a b c d e f g " * 30, ".*(a+)+$", "東京" * 250, "\u0301" * 500]
NASTY_QUERIES += ["0" * 499 + "x", "=>" * 250]


@pytest.mark.parametrize("content", NASTY.values(), ids=NASTY.keys())
def test_hostile_messages_and_queries_stay_bounded(content: str) -> None:
    index = SearchIndex()
    pauses = sum(1 for _ in index.add_in_slices(1, "public", "bob", content, content))
    assert pauses >= len(content) // 4096, "a long message is prepared in slices"
    assert index.resident_bytes() < 70 * len(content.encode())
    for query in NASTY_QUERIES:
        for match in search(index, query, threshold=0):
            assert 0 <= match.score <= 100
        shown = preview(content, query)
        assert len(shown.text) <= 150


def test_memory_per_chat_message_is_modest() -> None:
    index = SearchIndex()
    for number in range(2000):
        index.add(
            number, "public", "bob", f"we talked about topic {number % 300} and then about number {number}"
        )
    assert 100 < index.resident_bytes() / 2000 < 1500


def test_ids_of_53_bits_are_kept() -> None:
    index = SearchIndex()
    index.add(2**53 - 1, "public", "bob", "newest")
    index.add(2**53 - 2, "public", "bob", "newest")
    assert [match.id for match in search(index, "newest", oldest_id=2**53 - 1)] == [2**53 - 1]


# Previews


def shown_match(shown: Preview) -> str:
    return shown.text[shown.start : shown.end]


@pytest.mark.parametrize(
    ("content", "query", "match"),
    [
        ("The Database is down", "database", "Database"),
        ("the database and its connection", "connection database", "database and its connection"),
        ("The databases are down", "databse", "databases"),
        ("a café, of course", "cafe", "café"),
        ("call getUserName()", "user name", "getUserName"),
        ("東京都の天気は", "天気", "天気"),
        ("what is it =>", "=>", "=>"),
        ("x" * 400 + "needle" + "y" * 400, "needle", "needle"),
        ("anticlockwise, and clock", "clock", "clock"),
        ("lunch?", "dinner", ""),
        ("", "dinner", ""),
        ("who are the who", "the who", "the who"),
    ],
)
def test_a_preview_says_where_the_match_is(content: str, query: str, match: str) -> None:
    assert shown_match(preview(content, query)) == match


def test_a_preview_is_centred_on_the_densest_match() -> None:
    content = "database " + "filler " * 100 + "the database lost its connection " + "filler " * 100
    shown = preview(content, "database connection")
    assert shown_match(shown) == "database lost its connection"
    assert len(shown.text) == 150
    assert abs(shown.start - (150 - shown.end)) <= 1


def test_a_short_message_is_shown_whole() -> None:
    assert preview("short\nand sweet", "sweet") == Preview("short\nand sweet", 10, 15)


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "हि", "❤\ufe0f"])
@pytest.mark.parametrize("offset", range(6))
def test_a_preview_cuts_between_characters_as_readers_see_them(cluster: str, offset: int) -> None:
    content = "." * offset + cluster * 100 + " needle " + cluster * 100
    text = preview(content, "needle").text
    before, after = text.split(" needle ")
    assert before == cluster * (len(before) // len(cluster))
    assert after == cluster * (len(after) // len(cluster))


@given(texts | st.text(max_size=400), texts | st.text(max_size=30), st.integers(1, 200))
def test_a_preview_is_a_part_of_the_content(content: str, query: str, width: int) -> None:
    shown = preview(content, query, width)
    assert shown.text in content
    assert len(shown.text) <= width
    assert 0 <= shown.start <= shown.end <= len(shown.text)
    if len(content) <= width:
        assert shown.text == content


# Metadata


def test_metadata_text_has_the_values_at_any_depth() -> None:
    metadata = (
        b'{"a": "one", "b": [true, null, {"c": 12345678901234567890123456789.50}], "d": {"e": "\\u00f6"}}'
    )
    assert metadata_text(metadata) == "one\ntrue\n12345678901234567890123456789.50\nö"
    assert metadata_text(b"{}") == ""


@given(st.dictionaries(st.text(max_size=3), st.text(min_size=1, max_size=10), max_size=5))
def test_metadata_text_has_every_string(metadata: dict[str, str]) -> None:
    assert metadata_text(msgspec.json.encode(metadata)).split("\n") == "\n".join(metadata.values()).split(
        "\n"
    )
