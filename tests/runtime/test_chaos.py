"""Processes on one folder are killed, stopped and ended under clients; their histories are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.forking import all_forked

from bench import chaos
from bench.harness import Plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("sharing.linearizable")
def test_nothing_is_lost_doubled_or_stale_whoever_dies(tmp_path: Path) -> None:
    with all_forked():
        report = chaos.run(Plan(smoke=True, data=None, work=tmp_path))
    counts = {row[0]: row[1] for row in report.tables[0].rows}
    assert counts["rounds"] == 1
    kills = counts["SIGKILL"]
    assert isinstance(kills, int)
    assert kills >= chaos.SMOKE_KILLS
