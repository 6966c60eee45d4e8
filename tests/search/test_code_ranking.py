"""Which files of source code are found first, by which passages, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.content.text.analyze import code_rules
from greenroom.actors.core.replies.grades import NONE_LEAST, Least
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.source_code import Role, role_of, source_document, stem_of
from greenroom.actors.search.ranking.code import PASSAGES, RankedFiles, rank_files
from greenroom.actors.search.ranking.code_signals import CodeQuery, SourceView
from greenroom.actors.search.ranking.query import MOST_TERMS
from greenroom.actors.search.ranking.weights import CODE_SIGNALS, CODE_WEIGHTS
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

Passage = tuple[str, "Sequence[str]"]
FILLER = {f"src/other{number}.py": [("def nothing(value): return value", ["nothing"])] for number in range(9)}


def view_of(files: Mapping[str, Sequence[Passage]]) -> SourceView:
    corpus = Corpus()
    for number, (path, passages) in enumerate({**files, **FILLER}.items(), 1):
        language = "" if path.endswith(".md") else "python"
        for text, symbols in passages:
            document = source_document(corpus.size + 1, number, path, language, text, symbols, "")
            finish(corpus.add(document, code_rules()))
    return SourceView(corpus)


def found(
    view: SourceView, query: str, *, least: Least = NONE_LEAST, below: npt.NDArray[np.bool_] | None = None
) -> RankedFiles:
    ranking = rank_files(view, CodeQuery.read(query), limit=5, least=least, below=below)
    ranked: RankedFiles = finish(ranking)
    return ranked


def paths(view: SourceView, query: str) -> list[str]:
    return [file.path for file in found(view, query).files]


def test_every_signal_has_a_weight_and_a_reason() -> None:
    assert list(CODE_WEIGHTS) == list(CODE_SIGNALS)


@pytest.mark.parametrize(
    "query", ["create_app", "createApp", "CreateApp", "create app", "where is create_app?"]
)
def test_a_symbol_is_found_where_it_is_defined_however_it_is_spelled(query: str) -> None:
    view = view_of(
        {
            "src/server.py": [("create_app() create_app() create_app()", ["serve"])],
            "src/setup.py": [("def create_app(): ...", ["create_app"])],
        }
    )
    assert paths(view, query)[:2] == ["src/setup.py", "src/server.py"]


def test_a_file_that_is_called_what_is_asked_comes_first() -> None:
    view = view_of(
        {
            "limiter/client.py": [("the limiter, the other limiter, a limiter of the limiter", [])],
            "src/limiter.py": [("class Bucket: # tokens of the limiter", ["Bucket"])],
        }
    )
    assert paths(view, "limiter") == ["src/limiter.py", "limiter/client.py"]


def test_words_side_by_side_are_one_name() -> None:
    passages = [("class Bucket: # limits the rate", ["Bucket"])]
    view = view_of({"src/limiter_rate.py": passages, "src/rate_limiter.py": passages})
    assert paths(view, "rate limiter") == ["src/rate_limiter.py", "src/limiter_rate.py"]
    assert paths(view, "limiter rate") == ["src/limiter_rate.py", "src/rate_limiter.py"]


def test_a_passage_is_found_by_what_it_is_a_part_of() -> None:
    passage = "return self.path + self.query"
    view = view_of({"src/a.py": [(passage, []), (passage, ["Address.full"])]})
    [file] = found(view, "full address").files
    assert list(file.rows) == [1]


def test_of_a_long_query_the_first_words_are_looked_for() -> None:
    query = CodeQuery.read(" ".join(f"word{number}x" for number in range(2 * MOST_TERMS)))
    assert len(query.words) == MOST_TERMS


def test_parts_of_names_and_other_forms_of_words_are_found() -> None:
    view = view_of({"a.go": [("func (s *HTTPServer) handleRequests()", ["HTTPServer.handleRequests"])]})
    for query in ("http servers", "handling of a request", "HTTPServer", "server.handleRequests"):
        assert paths(view, query) == ["a.go"], query


def test_tests_come_after_what_they_test_unless_they_are_asked_for() -> None:
    passages = [("def parse_url(url): return parse(url)", ["parse_url"])]
    view = view_of({"tests/test_parse_url.py": passages * 4, "src/url.py": passages})
    assert paths(view, "parse url")[0] == "src/url.py"
    assert paths(view, "tests that parse url")[0] == "tests/test_parse_url.py"


def test_examples_and_prose_come_after_the_source_unless_they_are_asked_for() -> None:
    passages = [("route(path) registers a view", ["route"])]
    view = view_of({"examples/app.py": passages, "README.md": passages, "src/app.py": passages})
    assert paths(view, "how does route register a view")[0] == "src/app.py"
    assert paths(view, "example of route that registers a view")[0] == "examples/app.py"


def test_what_is_mistyped_is_found_and_what_is_unknown_is_told() -> None:
    view = view_of({"src/session.py": [("class Session: # a session of the user", ["Session"])]})
    answer = found(view, "sesion xyzzyx")
    assert [file.path for file in answer.files] == ["src/session.py"]
    assert answer.corrected == {"sesion": ("session",)}
    assert answer.unknown == ["xyzzyx"]
    assert found(view, "xyzzyx").files == []
    assert found(view, "").files == []
    assert found(view_of({}), "the of").total == 0


def test_a_file_comes_with_its_best_passages_and_what_spoke_for_it() -> None:
    said = ("the cache evicts the oldest entry of the cache", ["Cache.evict"])
    other: tuple[str, list[str]] = ("import os, sys and much else that has nothing to do with it", [])
    view = view_of(
        {"src/store.py": [other, said, ("entry", []), *[said] * 4], "src/misc.py": [("cache", [])]}
    )
    best, second = found(view, "how does the cache evict its oldest entry").files
    assert (best.path, second.path) == ("src/store.py", "src/misc.py")
    assert len(best.rows) == PASSAGES
    assert {1, 3, 4, 5, 6} > set(best.rows)
    few = view_of({"src/store.py": [other, said, ("entry", []), said]})
    assert [sorted(file.rows) for file in found(few, "the cache evicts an entry").files] == [[1, 3]]
    assert best.score > second.score > 0
    assert best.parts["passage"] > second.parts["passage"]
    assert best.parts["defined"] > 0
    assert best.parts.get("path", 0) <= 0


def test_only_files_that_are_looked_at_and_score_enough_are_found() -> None:
    view = view_of({"src/a.py": [("cache of keys", ["Cache"])], "lib/b.py": [("cache", [])]})
    everything = found(view, "cache of keys")
    assert everything.total == 2
    best, second = everything.files
    for least in (Least(best.match - 1e-4, 0.0), Least(0.0, best.score - 1e-4)):
        assert [file.path for file in found(view, "cache of keys", least=least).files] == ["src/a.py"]
    below = view.of_files((view.corpus.author == 1).astype("f4")) > 0
    only = found(view, "cache of keys", below=below)
    assert [file.path for file in only.files] == [second.path]
    assert only.total == 1


def test_what_was_removed_is_not_found_and_counts_for_nothing() -> None:
    files: dict[str, Sequence[Passage]] = {
        "src/a.py": [("cache of keys", ["Cache"])],
        "src/b.py": [("cache", [])],
    }
    corpus = view_of(files).corpus
    assert isinstance(corpus, Corpus)
    corpus.remove(1)
    rest = SourceView(corpus)
    del files["src/a.py"]
    assert paths(rest, "cache of keys") == ["src/b.py"]
    [there], [alone] = found(rest, "cache").files, found(view_of(files), "cache").files
    assert there.score == pytest.approx(alone.score)


def test_words_for_what_is_to_be_done_say_less_than_others() -> None:
    query = CodeQuery.read("fix parsing")
    assert query.terms["fix"] < query.terms["pars"]
    assert "fix" not in query.names


@given(st.text(max_size=400))
def test_any_text_is_a_query(text: str) -> None:
    query = CodeQuery.read(text)
    assert len(query.words) <= MOST_TERMS
    assert all(0 < share <= 1 for share in query.names.values())
    assert found(VIEW, text).total <= 1 + len(FILLER)


VIEW = view_of({"src/a.py": [("cache of keys", ["Cache"])]})


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app.py", "source"),
        ("app.py", "source"),
        ("src/latest.py", "source"),
        ("src/contest/rules.go", "source"),
        ("src/documents/docs.py", "source"),
        ("tests/support/app.py", "test"),
        ("pkg/server_test.go", "test"),
        ("test_app.py", "test"),
        ("src/a.test.ts", "test"),
        ("src/JsonTest.java", "test"),
        ("pkg/__tests__/a.js", "test"),
        ("examples/a.py", "aside"),
        ("docs/conf.py", "aside"),
        ("third_party/zlib/zlib.c", "source"),
        ("vendor/ratings.py", "source"),
    ],
)
def test_what_a_file_is_there_for_is_told_by_its_path(path: str, role: Role) -> None:
    assert role_of(path, "python") == role
    assert role_of("NEWS", "") == "text"


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("src/flask/app.py", "app"),
        ("src/flask/json/__init__.py", "json"),
        ("src/rate-limit/index.ts", "rate_limit"),
        ("index.js", "index"),
        ("a/b.test.ts", "b"),
        (".eslintrc.js", "eslintrc"),
        ("Makefile", "Makefile"),
    ],
)
def test_a_file_is_called_by_what_says_something(path: str, stem: str) -> None:
    assert stem_of(path) == stem
