"""Fixtures that every test file may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from greenroom.runtime import InlineCommitter, Runtime, open_runtime

from support.actors import ACTORS, INDEXES, Alarm, Counter, Log
from support.clocks import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from support.asking import Open


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def reopen(folder: Path, clock: VirtualClock, autojump_clock: object) -> Iterator[Open]:  # noqa: ARG001  time is virtual where this is used
    def opened(**options: Any) -> AbstractAsyncContextManager[Runtime]:
        settings: dict[str, Any] = {"actors": ACTORS, "indexes": INDEXES, "clock": clock}
        settings |= {"committer": InlineCommitter()} | options
        return open_runtime(folder, **settings)

    for troubles in (Counter.alive, Log.trouble, Alarm.trouble):
        troubles.clear()  # type: ignore[attr-defined]  # mypy joins a list and dicts to Collection
    yield opened
