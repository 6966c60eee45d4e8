"""Names by which things are stored or travel stay, whatever the classes are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.stored_names import NAMES, names_now

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.promise("store.versions")
async def test_names_that_are_stored_or_travel_are_those_that_are_listed(tmp_path: Path) -> None:
    listed, now = set(NAMES.read_text().splitlines()), set(await names_now(tmp_path))
    assert sorted(listed - now) == [], "gone: stores and processes of older versions still say these"
    assert sorted(now - listed) == [], "new: run `python tests/support/stored_names.py` to list them"
