"""Word vectors that ship with the program, what an embedder may be, and how tokens are counted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from greenroom.actors import EmbedderChoice, EmbedderError, read_choice
from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.search.embedding.embedder import EMBEDDED_CHARACTERS
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.embedding.models.static import (
    FOLDER,
    VOCABULARY,
    WEIGHTS,
    StaticEmbedder,
    load_static,
)
from greenroom.actors.search.embedding.models.wordpiece import UNKNOWN, WordPiece
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

HEAVY = ("numpy", "tokenizers", "onnxruntime", "safetensors", "httpx2", "requests")


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return load_static()


def vector(made: Vectors) -> Any:
    return np.frombuffer(made.values, np.int8) * np.float32(made.scale)


def rows(made: QueryVectors, dimensions: int) -> Any:
    return np.frombuffer(made.rows, np.float32).reshape(-1, dimensions)


@pytest.mark.promise("embedding.lazy")
def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    program = f"import sys, greenroom.actors\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_the_word_vectors_need_nothing_but_numpy() -> None:
    program = (
        "import sys, logging\n"
        "from greenroom.actors.search.embedding.models.static import load_static\n"
        "load_static().embed(['hello'])\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], logging.root.handlers)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "['numpy'] []"


@pytest.mark.promise("embedding.static")
def test_what_means_the_same_is_near_without_a_word_in_common(embedder: StaticEmbedder) -> None:
    near, far, asked = embedder.embed(
        ["The cat sleeps on the sofa.", "Shares fell after the bank's report.", "a kitten naps upon a couch"]
    )
    assert vector(asked) @ vector(near) > vector(asked) @ vector(far) + 0.2


def test_a_texts_vector_has_unit_length_and_depends_on_nothing_else(embedder: StaticEmbedder) -> None:
    alone = embedder.embed(["We met in Lisbon."])
    among = embedder.embed(["Something quite different", "We met in Lisbon.", ""] * 30)
    assert [alone[0]] * 30 == among[1::3]
    assert abs(float(np.linalg.norm(vector(alone[0]))) - 1) < 0.01
    assert len(alone[0].values) == embedder.dimensions == 256
    assert alone[0].tokens is None


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_text_without_words_is_near_to_nothing(embedder: StaticEmbedder, text: str) -> None:
    (made,) = embedder.embed([text])
    assert len(made.values) == 256
    assert abs(float(vector(made) @ vector(embedder.embed(["anything"])[0]))) < 1
    assert embedder.query(text).words == []
    assert embedder.query(text).rows == b""


@given(st.text(max_size=200))
def test_any_text_has_vectors(text: str) -> None:
    embedder = load_static()
    (made,) = embedder.embed([text])
    assert len(made.values) == 256
    assert np.isfinite(made.scale)
    query = embedder.query(text)
    assert rows(query, 256).shape == (len(query.words), 256)


def test_of_a_long_text_the_beginning_counts(embedder: StaticEmbedder) -> None:
    beginning = "word " * (EMBEDDED_CHARACTERS // 5) + "end"
    assert len(beginning) > EMBEDDED_CHARACTERS
    whole, cut = embedder.embed([beginning + " and so on" * 100_000, beginning[:EMBEDDED_CHARACTERS]])
    assert whole == cut


def test_the_mean_of_a_querys_words_is_the_text_they_make(embedder: StaticEmbedder) -> None:
    """Words weighted alike are compared as documents are, so a query that is a memory finds it with 1."""
    text = "Melanie painted a lovely sunrise last year"
    query = embedder.query(text)
    assert query.words == text.split()
    assert query.sentence is None
    mean = rows(query, 256).sum(axis=0)
    (kept,) = embedder.embed([text])
    assert float(mean @ vector(kept)) / float(np.linalg.norm(mean)) > 0.999


def test_a_querys_words_are_those_of_the_index(embedder: StaticEmbedder) -> None:
    query = embedder.query("Where's the «Café» on 2024-05-08?! user_name -- 東京")
    assert query.words == ["Where", "s", "the", "Café", "on", "2024-05-08", "user_name", "東京"]
    assert all(len(tokens(word)) == 1 for word in query.words)


def test_a_query_is_known_in_its_spaces_only() -> None:
    older = QueryVectors(space="b", words=[], rows=b"", sentence=b"1234")
    query = QueryVectors(space="a", words=[], rows=b"", sentence=b"12345678", older=(older,))
    assert query.in_space("a") is query
    assert query.in_space("b") is older
    assert query.in_space("c") is None
    assert query.in_space(None) is None


def test_words_are_taken_apart_as_the_makers_do() -> None:
    words = (FOLDER / VOCABULARY).read_text("utf-8").removesuffix("\n").split("\n")
    known = {word: id_ for id_, word in enumerate(words)}
    theirs = Tokenizer(models.WordPiece(known, unk_token=UNKNOWN, max_input_chars_per_word=100))
    theirs.normalizer = normalizers.BertNormalizer()
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ours = WordPiece(known)
    for page in (Path(__file__).parents[2] / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        assert ours.ids(text) == theirs.encode(text).ids, page


def test_a_word_that_nobody_knows_says_nothing(embedder: StaticEmbedder) -> None:
    known, beside = embedder.embed(["We met in Lisbon", "We met in Lisbon \U00012000\U00012001"])
    assert known == beside
    assert not np.any(rows(embedder.query("\U00012000"), 256))


def test_word_vectors_that_are_damaged_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"damaged, install Greenroom again: .*vocabulary\.txt"):
        load_static(tmp_path)
    shutil.copy(FOLDER / VOCABULARY, tmp_path)
    with pytest.raises(EmbedderError, match=r"vectors\.safetensors cannot be read"):
        load_static(tmp_path)
    shutil.copy(FOLDER / WEIGHTS, tmp_path)
    with (tmp_path / VOCABULARY).open("a") as file:
        file.write("more\n")
    with pytest.raises(EmbedderError, match="damaged, install Greenroom again"):
        load_static(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x10\0\0\0\0\0\0\0" + b'{"a":{"dtype":1}',
        (40).to_bytes(8, "little") + b'{"a":{"dtype":"F16","shape":[4],"data_o',
        (53).to_bytes(8, "little") + b'{"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}',
    ],
)
def test_a_file_of_tensors_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(EmbedderError, match=r"x\.safetensors cannot be read"):
        read_tensors(tmp_path / "x.safetensors")


def test_tensors_are_read_where_they_lie(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float16).reshape(2, 3)
    header = (
        b'{"__metadata__":{"a":"b"},"none":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},'
        b'"some":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}'
    )
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers.tobytes())
    found = read_tensors(path)
    assert found["none"].shape == (0, 3)
    assert (found["some"] == numbers).all()
    assert isinstance(found["some"], np.memmap)


def at(url: str) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place=url, model="m")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("static", EmbedderChoice(kind="static")),
        ("none", EmbedderChoice(kind="none")),
        ("auto", EmbedderChoice(kind="auto")),
        ("minilm", EmbedderChoice(kind="minilm")),
        ("python:mine.own:Own", EmbedderChoice(kind="python", place="mine.own:Own")),
        ("onnx:/models/mini", EmbedderChoice(kind="onnx", place="/models/mini")),
        ("onnx:C:x", EmbedderChoice(kind="onnx", place="C:x")),
        (
            "http://localhost:11434/v1/",
            at("http://localhost:11434/v1"),
        ),
        ("http:http://[::1]:1/v1", at("http://[::1]:1/v1")),
        ("http:https://a.example/v1", at("https://a.example/v1")),
        ("https://a.example", at("https://a.example")),
    ],
)
def test_an_embedder_is_named(text: str, expected: EmbedderChoice) -> None:
    read = read_choice(text, model="m")
    assert read == expected
    assert read_choice(str(read), model="m") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Static",
        "python:a",
        "python:a b:C",
        "onnx",
        "onnx:",
        "http",
        "http:",
        "http://",
        "http:localhost",
        "ftp://a",
        "http://a:x/",
    ],
)
def test_anything_else_is_no_embedder(text: str) -> None:
    with pytest.raises(
        ValueError, match="static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed"
    ):
        read_choice(text, model="m")


def test_an_endpoint_has_a_model() -> None:
    with pytest.raises(ValueError, match="needs the name of its model"):
        read_choice("http://127.0.0.1:1/v1")
    with pytest.raises(ValueError, match="120 printable bytes"):
        read_choice("http://127.0.0.1:1/v1", model="m" * 121)
    with pytest.raises(ValueError, match="120 printable bytes"):
        read_choice("http://127.0.0.1:1/v1", model="a\nb")


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(read_choice("http://127.0.0.1:1/v1", model="m", key="secret"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ééé", 2), ("東京", 2), (b"12345", 2)],
)
def test_a_token_is_four_bytes(text: str | bytes, expected: int) -> None:
    assert estimate_tokens(text) == expected


@given(st.text())
def test_tokens_add_up(text: str) -> None:
    assert estimate_tokens(text) == estimate_tokens(text.encode())
    assert estimate_tokens(text + text) <= 2 * estimate_tokens(text)


def test_half_a_pair_counts_as_three_bytes() -> None:
    assert estimate_tokens("\ud800\ud800") == 2
