"""Fixtures that every test file may use."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import trio
from support import agents
from support.actors import ACTORS, INDEXES, forget_troubles
from support.clocks import VirtualClock
from support.relays import SHARED
from trio.testing import MockClock

from greenroom.runtime import (
    InlineCommitter,
    Runtime,
    RuntimeOptions,
    SharedRuntime,
    open_runtime,
    open_shared_runtime,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from support.agents import Enter, House
    from support.asking import Open
    from support.passports import Opens
    from support.relays import Join

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in the background of a shell, and every program that a test starts would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine only.
hypothesis.settings.register_profile(
    "greenroom", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("greenroom")

VIRTUAL = {"reopen", "join", "enter", "virtual_desk", "virtual_home"}
"""The fixtures whose tests run in virtual time."""


@pytest.fixture
def clock() -> VirtualClock:
    """The runtime's clock in tests that `reopen`."""
    return VirtualClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def reopen(folder: Path, clock: VirtualClock) -> Open:
    """`open_runtime` on this test's folder; a test that uses it runs in virtual time."""

    def opened(**options: Any) -> AbstractAsyncContextManager[Runtime]:
        settings: dict[str, Any] = {"actors": ACTORS, "indexes": INDEXES, "clock": clock}
        settings |= {
            "committer": InlineCommitter(),
            "options": RuntimeOptions(durability="process"),
        } | options
        return open_runtime(folder, **settings)

    forget_troubles()
    return opened


@pytest.fixture
def join(folder: Path, clock: VirtualClock) -> Join:
    """`open_shared_runtime` on this test's folder; a test that uses it runs in virtual time."""

    def opened(**options: Any) -> AbstractAsyncContextManager[SharedRuntime]:
        settings: dict[str, Any] = {"clock": clock, **SHARED}
        settings |= {
            "committer": InlineCommitter(),
            "options": RuntimeOptions(durability="process"),
        } | options
        return open_shared_runtime(folder, **settings)

    forget_troubles()
    return opened


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of `VIRTUAL` on the autojump clock; pytest-trio takes it from direct arguments only."""
    for item in items:
        if isinstance(item, pytest.Function) and VIRTUAL & set(item.fixturenames):
            item.add_marker(pytest.mark.trio(run=_run_in_virtual_time))


def _run_in_virtual_time(function: Callable[..., Any], **options: Any) -> Any:
    options["clock"] = MockClock(autojump_threshold=0)
    return partial(trio.run, function)(**options)


@pytest.fixture
def enter(folder: Path, clock: VirtualClock) -> Enter:
    """`open_greenroom` on this test's folder; a test that uses it runs in virtual time."""

    def opened(**options: Any) -> AbstractAsyncContextManager[House]:
        return agents.house(folder, clock, **options)

    return opened


@pytest.fixture
def far_clock() -> VirtualClock:
    """A wall clock of our own; time itself passes as ever, since exports work in threads."""
    return VirtualClock()


@pytest.fixture
def open_at(tmp_path: Path, far_clock: VirtualClock) -> Opens:
    """`open_greenroom` on a folder of this test by its name; the wall clock alone is virtual."""

    def opened(name: str = "one", **options: Any) -> AbstractAsyncContextManager[House]:
        return agents.house(tmp_path / name, far_clock, **{"embedder": "none"} | options)

    return opened
