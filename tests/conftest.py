"""Fixtures that every test file may use, and which tests the quick part has.

What is imported here, every run of one small file waits for: so fixtures import the product themselves.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis  # pytest-trio has it already
import pytest
from support import quick

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractAsyncContextManager

    from playwright.sync_api import Browser, BrowserContext, Page
    from support.agents import Enter, House
    from support.asking import Open
    from support.browser import ConsoleServer
    from support.passports import Opens
    from support.relays import Join

    from greenroom.runtime import Runtime, SharedRuntime
    from greenroom.testing import VirtualClock

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in the background of a shell, and every program that a test starts would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["GREENROOM_MODELS"] = "/nowhere/models"  # no test finds what this user has installed

VIRTUAL = {"autojump_clock", "reopen", "join", "enter", "virtual_desk", "virtual_home"}
"""The fixtures whose tests run in virtual time."""

# Each run draws new examples, and prints of one that fails how to draw it again. How long one takes says
# something about the machine only. `--hypothesis-profile` chooses another than `.ci/run` has.
for level, examples in {"quick": 5, "ci": 25, "nightly": 1_000}.items():
    hypothesis.settings.register_profile(
        level,
        max_examples=examples,
        deadline=None,
        derandomize=False,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
    )
hypothesis.settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what runs all tests; without it, and where nothing is named, the quick part runs."""
    said = "run all tests: slow ones, and each with all its parameters"
    parser.addoption("--all", dest="part", action="store_const", const="all", help=said)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose the quick part where nothing is named, and let what names nothing use the processors.

    This is before xdist looks at its options. Its processes have a `workerinput` and choose alike.
    """
    option = config.option
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or option.markexpr or option.keyword:
        return
    option.part = option.part or "quick"
    if hasattr(config, "workerinput"):
        return
    if option.part == "all" and (missing := quick.not_installed()):
        raise pytest.UsageError(
            f"--all needs what is not installed, {', '.join(missing)}: pip install -e '.[dev-all]'"
        )
    if getattr(option, "numprocesses", 0) is None and not option.usepdb:
        option.numprocesses, option.maxprocesses, option.dist = "logical", 4, "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    """Draw few examples in the quick part, where no other profile is asked for."""
    if _is_quick(config) and config.getoption("--hypothesis-profile", None) is None:
        hypothesis.settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what has nothing quick when nothing else is asked for: that is half of the time."""
    unasked = _is_quick(config) and collection_path.suffix == ".py"
    return True if unasked and not quick.has_some(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is imported and collected out of every search for garbage, also the last one."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, choose the quick part, and run the tests of `VIRTUAL` on the autojump clock.

    pytest-trio takes the clock from direct arguments only, and lets it jump while a thread works.
    """
    for item in items:
        if quick.is_slow(item.path):
            item.add_marker("slow")
        if isinstance(item, pytest.Function) and VIRTUAL & set(item.fixturenames):
            item.add_marker(pytest.mark.trio(run=_run_in_virtual_time))
    if _is_quick(config):
        items[:], others = quick.chosen(items)
        config.hook.pytest_deselected(items=others)


def _is_quick(config: pytest.Config) -> bool:
    return bool(config.option.part == "quick")


def _run_in_virtual_time(function: Callable[..., Any], **options: Any) -> Any:
    from support.virtual_time import run_in_virtual_time

    return run_in_virtual_time(function, **options)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which more was skipped than `SKIPS_ALLOWED` matches, where that is set."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _forbidden_skips(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the skips that fail the run, and what it was not."""
    for report in _forbidden_skips(terminalreporter):
        terminalreporter.line(f"SKIPPED, which fails here: {report.nodeid}: {report.longrepr[-1]}", red=True)
    if _is_quick(terminalreporter.config):
        terminalreporter.line(
            "This was the quick part. All tests: pip install -e '.[dev-all]' && pytest --all"
        )


def _forbidden_skips(reporter: pytest.TerminalReporter) -> list[Any]:
    allowed = os.environ.get("SKIPS_ALLOWED")
    if allowed is None:
        return []
    return [each for each in reporter.stats.get("skipped", []) if not re.search(allowed, each.longrepr[-1])]


@pytest.fixture
def clock() -> VirtualClock:
    """The runtime's clock in tests that `reopen`."""
    from greenroom.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def reopen(folder: Path, clock: VirtualClock) -> Open:
    """`open_runtime` on this test's folder; a test that uses it runs in virtual time."""
    from support.actors import ACTORS, INDEXES, forget_troubles

    from greenroom.runtime import InlineCommitter, RuntimeOptions, open_runtime

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
    from support.actors import forget_troubles
    from support.relays import SHARED

    from greenroom.runtime import InlineCommitter, RuntimeOptions, open_shared_runtime

    def opened(**options: Any) -> AbstractAsyncContextManager[SharedRuntime]:
        settings: dict[str, Any] = {"clock": clock, **SHARED}
        settings |= {
            "committer": InlineCommitter(),
            "options": RuntimeOptions(durability="process"),
        } | options
        return open_shared_runtime(folder, **settings)

    forget_troubles()
    return opened


@pytest.fixture
def enter(folder: Path, clock: VirtualClock) -> Enter:
    """`open_greenroom` on this test's folder; a test that uses it runs in virtual time."""
    from support import agents

    def opened(**options: Any) -> AbstractAsyncContextManager[House]:
        return agents.house(folder, clock, **options)

    return opened


@pytest.fixture
def far_clock() -> VirtualClock:
    """A wall clock of our own; time itself passes as ever, since exports work in threads."""
    from greenroom.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def open_at(tmp_path: Path, far_clock: VirtualClock) -> Opens:
    """`open_greenroom` on a folder of this test by its name; the wall clock alone is virtual."""
    from support import agents

    def opened(name: str = "one", **options: Any) -> AbstractAsyncContextManager[House]:
        return agents.house(tmp_path / name, far_clock, **{"embedder": "none"} | options)

    return opened


@pytest.fixture(scope="module")
def console_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server with a console, in a process of its own, for the tests of one file."""
    from support.browser import console_server_in

    with console_server_in(tmp_path_factory.mktemp("console") / "data", "--embedder", "none") as server:
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one file."""
    from support.browser import launched

    with launched() as browser:
        yield browser


@pytest.fixture
def profile(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser's profile of this test's own, whose pages may have no fault."""
    from support.browser import profile_of

    with profile_of(chromium) as made:
        yield made


@pytest.fixture
def real_parsers() -> Iterator[None]:
    """Processes that parse are started and not forked: the test looks at them, or at the memory they have."""
    from support import forking

    with forking.real_parsers():
        yield


@pytest.fixture
def page(profile: BrowserContext, console_server: ConsoleServer) -> Page:
    """A page that is logged in as the owner of the server's folder."""
    from support.browser import logged_in

    return logged_in(profile, console_server)
