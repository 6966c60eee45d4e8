"""What the scores of documents are worth is fitted and measured, and is near what stands in the ranking."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import document_relevance, headings
from bench.ranked_corpus import Remembering
from greenroom.actors.search.embedding.models.static import load_static
from greenroom.actors.search.ranking.weights import VectorSet

DOCS = Path(__file__).parents[2] / "docs"
ROWS = re.compile(r"^  (as they stand|fitted to the others) +[\d,]+ +([\d.]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return pages of our own as if they were of two projects, and questions about them."""
    folder = tmp_path_factory.mktemp("projects")
    lines = [
        line
        for name, pages in (("guides", DOCS / "how-to"), ("reference", DOCS / "reference"))
        for line in headings.build(folder, name, pages, 40)
    ]
    (folder / "queries.K.jsonl").write_bytes(b"\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("vectors", "ways"), [("words", ["words"]), ("static", ["both", "meaning"])])
def test_scores_are_near_the_share_of_right_answers(
    projects: Path, capsys: pytest.CaptureFixture[str], vectors: VectorSet, ways: list[str]
) -> None:
    embedder = None if vectors == "words" else Remembering(load_static())
    document_relevance.fit(projects, vectors, embedder)
    printed = capsys.readouterr().out
    names = ways if embedder is None else [f"{way}, {vectors}" for way in ways]
    assert re.findall(r'^    "(.+)": \(', printed, re.MULTILINE) == names
    errors = ROWS.findall(printed)
    assert [scores for scores, _ in errors] == ["as they stand", "fitted to the others"] * len(ways)
    assert all(float(error) < 0.15 for _, error in errors[::2]), printed
