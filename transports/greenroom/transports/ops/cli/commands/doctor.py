"""`greenroom doctor`: problems and their remedies, found without any change."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Final

import msgspec

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.commands.doctor_clients import (
    check_clients,
    check_hooks,
    check_spool,
    try_clients,
)
from greenroom.transports.ops.cli.doctor.examination import CHECKS, examine
from greenroom.transports.ops.cli.doctor.finding import Finding, Report, exit_code, worst
from greenroom.transports.ops.cli.output import say, say_json
from greenroom.transports.ops.cli.support.terminal import printable

_CHECKS: Final = {**CHECKS, "clients": check_clients, "hooks": check_hooks, "spool": check_spool}


async def doctor(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run all checks and print the findings; return the exit code."""
    findings = await examine(resolved, os.environ, checks=_CHECKS)
    if chosen.try_clients:
        findings += await try_clients(resolved)
    findings = [_printable(each) for each in findings]
    if chosen.json:
        report = Report(
            version=version("greenroom"),
            folder=printable(str(resolved.settings.data)),
            worst=worst(findings),
            findings=findings,
        )
        say_json(report)
    else:
        for line in _lines(findings):
            say(line)
    return exit_code(findings)


def _printable(finding: Finding) -> Finding:
    """Make a finding's texts safe for a terminal, since names of files may contain anything."""
    remedy = None if finding.remedy is None else printable(finding.remedy)
    return msgspec.structs.replace(finding, finding=printable(finding.finding), remedy=remedy)


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    for each in findings:
        yield f"{each.level:<8} {each.topic:<12} {each.finding}"
        if each.remedy is not None:
            yield f"{'':<8} {'':<12} -> {each.remedy}"
    wrong = {level: sum(each.level == level for each in findings) for level in ("error", "warning")}
    counts = [f"{many:,} {level}{'s' if many > 1 else ''}" for level, many in wrong.items() if many]
    yield ", ".join(counts) if counts else "nothing wrong was found"
