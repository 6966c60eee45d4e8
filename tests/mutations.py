"""Change the product in small ways, one at a time, and count how many changes the tests of its area notice.

`python tests/mutations.py [--sample N] [--seed S] [AREA...]` works on a copy, prints every change that went
unnoticed as a diff, and fails when fewer than nine of ten were noticed. The areas are in `mutations.toml`,
with the changes that nobody needs to notice, and why. A change meets the tests that run the changed line.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import coverage
import cryptography.hazmat.primitives.ciphers.aead
import lmdb
import msgspec
import pytest
import trio
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code, use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

HERE = Path(__file__).parent
PORTIONS = ("runtime", "actors", "transports")
NOTICED = 0.9
FORKS = multiprocessing.get_context("fork")
IMPORTED = (cryptography, lmdb, msgspec, trio)
"""What most tests import, and would have to wait for in each run."""

SAME = re.compile(
    r"BitOr_|RemoveDecorator|ReplaceComparisonOperator_(Is_Eq|IsNot_NotEq|Eq_Is|NotEq_IsNot|Is_Lt.*|Is_Gt.*)$"
)
"""Operators that mostly make what is the same, such as another annotation."""
NO_RULE = re.compile(r"\s*(assert\b|class |if TYPE_CHECKING|logger\.|raise \w+\(f?\")")
"""Lines that state no rule of the program."""


class Listed(NamedTuple):
    """Changes that need no test: the line, what of the operator's name says which, and the reason."""

    line: str
    operator: str
    reason: str

    def holds(self, change: MutationSpec, line: str) -> bool:
        """Tell whether a change of a line is one of these."""
        return line.strip() == self.line and re.search(self.operator, change.operator_name) is not None


class Area(NamedTuple):
    """Modules, the tests that are to notice changes of them, and the changes that nobody needs to notice."""

    name: str
    modules: list[str]
    tests: list[str]
    listed: list[Listed]


def main() -> None:
    """Try a sample of each area's mutations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", help="all of them unless given")
    parser.add_argument("--sample", type=int, default=40, help="how many changes for each area")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    table = tomllib.loads((HERE / "mutations.toml").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for name in (*PORTIONS, "tests", "bench"):
            shutil.copytree(HERE.parent / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE.parent / "pyproject.toml", copy)
        os.chdir(copy)
        portions = [str(copy / portion) for portion in PORTIONS]
        sys.path[:0] = portions
        os.environ["PYTHONPATH"] = os.pathsep.join(portions)
        areas = [read_area(name, **table[name]) for name in options.areas or table]
        shares = [noticed(area, random.Random(options.seed), options.sample) for area in areas]  # noqa: S311
    sys.exit(min(shares) < NOTICED)


def read_area(
    name: str, modules: list[str], tests: list[str], listed: list[dict[str, str]] | None = None
) -> Area:
    """Return what the table says of an area."""
    return Area(name, modules, tests, [Listed(**each) for each in listed or []])


def noticed(area: Area, chance: random.Random, sample: int) -> float:
    """Try some of an area's mutations; print those that go unnoticed, and return the share of the others."""
    guards = Guards(area)
    tried = changes(area, chance)[:sample]
    unnoticed = 0
    for change in tried:
        if not guards.notice(change):
            unnoticed += 1
            print(
                f"unnoticed in {change.definition_name}, {change.operator_name}\n{diff(change)}", flush=True
            )
    share = 1 - unnoticed / max(1, len(tried))
    print(f"{area.name}: {len(tried) - unnoticed} of {len(tried)} noticed ({share:.0%})", flush=True)
    return share


def changes(area: Area, chance: random.Random) -> list[MutationSpec]:
    """Return the mutations of an area's modules in random order, one for each place and kind of operator."""
    modules = sorted(file for pattern in area.modules for file in Path().glob(pattern))
    lines = {module: module.read_text().splitlines() for module in modules}
    with use_db(":memory:") as session:
        init(modules, session, {})
        found = [mutation for item in session.work_items for mutation in item.mutations]
    chance.shuffle(found)
    kept: dict[tuple[Path, tuple[int, int], str], MutationSpec] = {}
    stale = set(area.listed)
    for mutation in found:
        line = lines[mutation.module_path][mutation.start_pos[0] - 1]
        listed = {each for each in area.listed if each.holds(mutation, line)}
        stale -= listed
        if not listed and not SAME.search(mutation.operator_name) and not NO_RULE.match(line):
            kind = mutation.operator_name.partition("_")[0]
            kept.setdefault((mutation.module_path, mutation.start_pos, kind), mutation)
    if stale:
        sys.exit(f"{area.name} lists changes of lines that are not there: {stale}")
    return list(kept.values())


def diff(change: MutationSpec) -> str:
    """Return what a change does to its module."""
    before = change.module_path.read_text()
    after = mutate_code(before, get_operator(change.operator_name)(**change.operator_args), change.occurrence)
    name = str(change.module_path)
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm=""))


class Guards:
    """The tests of an area, and which of them run which line."""

    def __init__(self, area: Area) -> None:
        self._all = [test for name in area.tests for test in named_tests(name)]
        data = str(Path(f".lines-{area.name}").absolute())
        self._seconds = seconds_for(self._all, lines=data)
        self._lines = coverage.CoverageData(data)
        self._lines.read()

    def notice(self, change: MutationSpec) -> bool:
        """Tell whether a test fails; if they take too long, by a second look beside a run without it."""
        tests = self._running(change) or self._all
        passed = pass_with(change, tests, 10 + 3 * self._seconds)
        if passed is None:
            passed = pass_with(change, tests, 10 + 5 * seconds_for(tests))
        return not passed

    def _running(self, change: MutationSpec) -> list[str]:
        """Return the tests that run a change's statement; none if a process of theirs does, or an import."""
        file, last = change.module_path, change.end_pos[0]
        first = first_line_in_function(ast.parse(file.read_text()), change.start_pos[0])
        if first is None:
            return []
        tests = self._lines.contexts_by_lineno(str(file.absolute()))
        return sorted({test for line in range(first, last + 1) for test in tests.get(line, ()) if test})


def named_tests(name: str) -> list[str]:
    """Return the files that a pattern names, or the test in one of them that follows two colons."""
    pattern, colons, test = name.partition("::")
    return sorted(f"{file}{colons}{test}" for file in Path("tests").glob(f"test_{pattern}.py"))


def first_line_in_function(tree: ast.AST, line: int) -> int | None:
    """Return where the innermost statement around a line begins, or None unless a function's body has it."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    parts = (node for function in functions for part in function.body for node in ast.walk(part))
    statements = (node for node in parts if isinstance(node, ast.stmt))
    return max(
        (each.lineno for each in statements if each.lineno <= line <= (each.end_lineno or 0)), default=None
    )


def pass_with(change: MutationSpec, tests: list[str], patience: float) -> bool | None:
    """Tell whether tests pass in spite of a change, as `pass_tests`."""
    operator = get_operator(change.operator_name)(**change.operator_args)
    with use_mutation(change.module_path, operator, change.occurrence):
        return pass_tests(tests, patience)


def seconds_for(tests: list[str], lines: str | None = None) -> float:
    """Return how long tests take without any change; they may note their lines in a file."""
    began = time.monotonic()
    if not pass_tests(tests, 3_600, lines):
        sys.exit(f"the tests fail without any change:\n{Path('said').read_text()[-5_000:]}")
    return time.monotonic() - began


def pass_tests(tests: list[str], patience: float, lines: str | None = None) -> bool | None:
    """Tell whether tests pass, None if they take more seconds, in a fork that need not import everything."""
    process = FORKS.Process(target=_run_pytest, args=(tests, lines))
    process.start()
    process.join(patience)
    if process.exitcode is None:
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        return None
    return process.exitcode == 0


def _run_pytest(tests: list[str], lines: str | None) -> None:
    os.setsid()
    os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
    sys.dont_write_bytecode = lines is None  # what changes within a second would be taken for what it was
    plugins = [Unshrunk(), *([] if lines is None else [LinesByTest(lines)])]
    sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests], plugins))


class Unshrunk:
    """A plugin that looks for no simpler example once one has failed."""

    def pytest_configure(self) -> None:
        """Change the profile that the fixtures' file has chosen."""
        import hypothesis  # noqa: PLC0415 - pytest wants to import it first

        chosen = hypothesis.settings.default
        phases = set(hypothesis.Phase) - {hypothesis.Phase.shrink, hypothesis.Phase.explain}
        hypothesis.settings.register_profile("unshrunk", chosen, phases=phases)
        hypothesis.settings.load_profile("unshrunk")


class LinesByTest:
    """A plugin that notes which lines of the product each test runs."""

    def __init__(self, data: str) -> None:
        self._lines = coverage.Coverage(data_file=data, include=["*/greenroom/*"], config_file=False)
        self._lines.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Say whose lines these are."""
        self._lines.switch_context(item.nodeid)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted."""
        self._lines.stop()
        self._lines.save()


if __name__ == "__main__":
    main()
