"""The README is read in a minute, and its first screen shows what Greenroom is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROSE = re.sub(r"^```.*?^```$|^[|#!>][^\n]*$", "", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.promise("docs.readme")
def test_it_is_read_in_a_minute() -> None:
    assert len(README.split()) <= 700
    text = re.sub(r"\]\([^)]*\)", "]", PROSE)
    sentences = [part for part in re.split(r"(?<=[.?:])\s+|\n\n|\n- ", text) if re.search(r"\w", part)]
    assert sum(len(part.split()) for part in sentences) / len(sentences) <= 15
    assert max(len(part.split()) for part in sentences) <= 30


@pytest.mark.promise("docs.readme")
def test_its_first_screen_shows_what_it_is() -> None:
    screen = README.partition("\n## ")[0]
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", screen):
        assert (ROOT / picture).is_file()
    assert screen.count("![") == 2
    assert "greenroom setup" in screen
    assert "\n> " in screen
