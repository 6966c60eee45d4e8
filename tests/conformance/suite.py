"""Runs the conformance suite against a URL and reads what it found."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

SCORED = re.compile(r"^[✓✗] (?P<scenario>\S+): \d+ passed, \d+ failed", re.MULTILINE)
NOT_SCORED = re.compile(r"^  [✓✗] (?P<scenario>\S+) \((?P<reason>[\w-]+)\)$", re.MULTILINE)
RESULTS = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")


@dataclass(frozen=True)
class Suite:
    """One run of the suite.

    Attributes:
        program: Its name in `node.PROGRAMS`.
        arguments: What chooses its scenarios.
        scenarios: How many there are, so that none goes missing unnoticed.
        scored: How many of them count.
    """

    program: str
    arguments: tuple[str, ...]
    scenarios: int
    scored: int


SUITES: Mapping[str, Suite] = {
    "0.1.16": Suite("conformance-0.1", ("--suite", "all"), 32, 32),
    "2025-11-25": Suite("conformance-0.2", ("--requirements", "2025-11-25"), 33, 30),
    "2026-07-28": Suite("conformance-0.2", ("--requirements", "2026-07-28"), 50, 37),
}


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that a scenario looked at."""

    id: str
    status: str
    description: str = ""
    error_message: str | None = None


@dataclass(frozen=True)
class Scenario:
    """What a scenario found.

    Attributes:
        name: Its name.
        unscored: Why it does not count; None if it does.
        checks: What it looked at.
    """

    name: str
    unscored: str | None
    checks: Sequence[Check]

    def having(self, *statuses: str) -> list[Check]:
        """Return the checks that ended in one of these ways."""
        return [check for check in self.checks if check.status in statuses]

    @property
    def passed(self) -> bool:
        """Whether nothing failed; the suite counts in the same way."""
        return not self.having("FAILURE")


async def run(suite: Suite, program: Sequence[str], url: str, folder: Path) -> list[Scenario]:
    """Run the suite against a server.

    Args:
        suite: Which scenarios.
        program: What runs it: `node.command` of the suite's program.
        url: Where the server is.
        folder: Where the suite may put its results.
    """
    completed = await trio.run_process(
        [*program, "server", "--url", url, "--output-dir", str(folder), *suite.arguments],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return read(completed.stdout.decode() + completed.stderr.decode(), folder)


def read(printed: str, folder: Path) -> list[Scenario]:
    """Return the scenarios of a run from what it printed and the files that it left."""
    _, _, summary = printed.partition("=== SUMMARY ===")
    assert summary, f"the suite did not come to its end:\n{printed[-4_000:]}"
    unscored = {found["scenario"]: found["reason"] for found in NOT_SCORED.finditer(summary)}
    checks: dict[str, list[Check]] = {}
    for file in folder.glob("*/checks.json"):
        named = RESULTS.fullmatch(file.parent.name)
        assert named, file
        checks[named["scenario"]] = msgspec.json.decode(file.read_bytes(), type=list[Check])
    names = [found["scenario"] for found in SCORED.finditer(summary)]
    # A scenario that could not be run leaves no file, and none of its checks has passed.
    unrun = [Check(id="run", status="FAILURE", error_message="the scenario could not be run")]
    return [Scenario(name, unscored.get(name), checks.get(name, unrun)) for name in names]


def report(scenarios: Sequence[Scenario]) -> str:
    """Return what is to be read when something went wrong: how many passed, and what did not go well."""
    lines = [f"{sum(scenario.passed for scenario in scenarios)} of {len(scenarios)} scenarios passed"]
    for scenario in scenarios:
        faults = scenario.having("FAILURE", "WARNING")
        if faults:
            scored = f" (not scored: {scenario.unscored})" if scenario.unscored else ""
            lines.append(f"{'passed' if scenario.passed else 'FAILED'}  {scenario.name}{scored}")
            lines += [
                f"    {each.status}  {each.id}: {each.error_message or each.description}" for each in faults
            ]
    return "\n".join(lines)
