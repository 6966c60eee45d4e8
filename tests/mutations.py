"""Change the product in small ways, one at a time, and count how many changes the tests of its area notice.

`python tests/mutations.py [--sample N] [--seed S] [AREA...]` works on a copy, prints every change that went
unnoticed as a diff, and fails when fewer than nine of ten were noticed. The areas are in `mutations.toml`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

HERE = Path(__file__).parent
PORTIONS = ("runtime", "actors", "transports")
NOTICED = 0.9

SAME = re.compile(
    r"BitOr_|RemoveDecorator|ReplaceComparisonOperator_(Is_Eq|IsNot_NotEq|Eq_Is|NotEq_IsNot|Is_Lt.*|Is_Gt.*)$"
)
"""Operators that mostly make what is the same, such as another annotation."""
NO_RULE = re.compile(r"\s*(assert\b|class |if TYPE_CHECKING|logger\.|raise \w+\(f?\")")
"""Lines that state no rule of the program."""


class Area(NamedTuple):
    """Modules, and the test files that are to notice changes of them."""

    name: str
    modules: list[str]
    tests: list[str]


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
        for name in (*PORTIONS, "tests"):
            shutil.copytree(HERE.parent / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE.parent / "pyproject.toml", copy)
        os.chdir(copy)
        os.environ["PYTHONPATH"] = os.pathsep.join(str(copy / portion) for portion in PORTIONS)
        areas = [Area(name, **table[name]) for name in options.areas or table]
        shares = [noticed(area, random.Random(options.seed), options.sample) for area in areas]  # noqa: S311
    sys.exit(min(shares) < NOTICED)


def noticed(area: Area, chance: random.Random, sample: int) -> float:
    """Try some of an area's mutations; print those that go unnoticed, and return the share of the others."""
    files = sorted(str(file) for name in area.tests for file in Path("tests").glob(f"test_{name}.py"))
    command = shlex.join([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files])
    began = time.monotonic()
    outcome, output = run_tests(command, 3_600)
    if outcome is not TestOutcome.SURVIVED:
        sys.exit(f"the tests of {area.name} fail without any change:\n{output[-5_000:]}")
    patience = 60 + 5 * (time.monotonic() - began)
    modules = sorted(file for pattern in area.modules for file in Path().glob(pattern))
    tried = changes(modules, chance)[:sample]
    unnoticed = 0
    for change in tried:
        result = mutate_and_test([change], command, patience)
        if result.test_outcome is TestOutcome.SURVIVED:
            unnoticed += 1
            print(f"unnoticed in {change.definition_name}, {change.operator_name}\n{result.diff}", flush=True)
    share = 1 - unnoticed / max(1, len(tried))
    print(f"{area.name}: {len(tried) - unnoticed} of {len(tried)} noticed ({share:.0%})", flush=True)
    return share


def changes(modules: list[Path], chance: random.Random) -> list[MutationSpec]:
    """Return the mutations of some modules in random order, one for each place and kind of operator."""
    lines = {module: module.read_text().splitlines() for module in modules}
    with use_db(":memory:") as session:
        init(modules, session, {})
        found = [mutation for item in session.work_items for mutation in item.mutations]
    chance.shuffle(found)
    kept: dict[tuple[Path, tuple[int, int], str], MutationSpec] = {}
    for mutation in found:
        line = lines[mutation.module_path][mutation.start_pos[0] - 1]
        if not SAME.search(mutation.operator_name) and not NO_RULE.match(line):
            kind = mutation.operator_name.partition("_")[0]
            kept.setdefault((mutation.module_path, mutation.start_pos, kind), mutation)
    return list(kept.values())


if __name__ == "__main__":
    main()
