"""Questions made of headings by rule: which headings are asked for, and that every run takes the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench import headings

TEXT = "Something is said here, and at some length, so that there is a section to be found. " * 3
PAGES = {
    "a.md": f"# Title of all\n\n{TEXT}\n\n## Set it up\n\n{TEXT}\n\n## Use\n\n{TEXT}\n\n## Log 2\n\n{TEXT}",
    "deep/b.md": f"# Other things\n\n## Twice in all\n\n{TEXT}\n\n## Too short\n\nSays little.",
    "c.rst": f"Third\n=====\n\nHow to leave\n------------\n\n{TEXT}\n\nTwice in all\n------------\n\n{TEXT}",
    "notes.bin": "## Not a page\n\n" + TEXT,
}
WANTED = [("Set it up", "a.md"), ("How to leave", "c.rst")]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_headings_with_words_and_text_that_are_there_once_are_asked_for(pages: Path) -> None:
    assert headings.questions(headings.documents_of(pages)) == WANTED


def test_the_same_ones_are_taken_whatever_order_they_come_in() -> None:
    many = [headings.Question(f"heading number {number}", "a.md") for number in range(30)]
    assert headings.some(many, 5) == headings.some(many[::-1], 5)
    assert len(headings.some(many, 5)) == 5


def test_a_project_is_copied_with_its_questions(pages: Path, tmp_path: Path) -> None:
    lines = headings.build(tmp_path / "out", "atlas", pages, 9)
    rows = [msgspec.json.decode(line) for line in lines]
    assert {(row["query"], row["file"]) for row in rows} == set(WANTED)
    assert {row["corpus"] for row in rows} == {"atlas"}
    copied = {
        path.relative_to(tmp_path / "out" / "atlas").as_posix(): path.read_text()
        for path in (tmp_path / "out" / "atlas").rglob("*.*")
    }
    assert copied == {name: text for name, text in PAGES.items() if name != "notes.bin"}
