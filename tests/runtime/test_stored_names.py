"""Names by which things are stored or travel stay, whatever the classes are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.stored_names import NAMES, names_now

from greenroom.actors import API_REQUESTS
from greenroom.runtime import Procedure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.promise("store.versions")
async def test_names_that_are_stored_or_travel_are_those_that_are_listed(tmp_path: Path) -> None:
    listed, now = set(NAMES.read_text().splitlines()), set(await names_now(tmp_path))
    assert sorted(listed - now) == [], "gone: stores and processes of older versions still say these"
    assert sorted(now - listed) == [], "new: run `python tests/support/stored_names.py` to list them"


async def test_a_process_that_is_attached_can_ask_every_query_and_procedure(tmp_path: Path) -> None:
    travelling = {line.split()[1] for line in await names_now(tmp_path) if line.startswith("query ")}
    asked = [each for each in API_REQUESTS.values() if issubclass(each, Procedure) and each.runs != "here"]
    assert [each.__name__ for each in asked if each.__name__ not in travelling] == []
