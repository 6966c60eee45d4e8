"""Findings of `greenroom doctor`, their levels, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from greenroom.runtime import GreenroomError
from greenroom.transports.base import exit_codes
from greenroom.transports.base.exit_codes import exit_code_for

Level = Literal["ok", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "warning", "error")
_GRAVEST_FIRST: Final = (
    *(exit_codes.DAMAGED, exit_codes.TOO_NEW, exit_codes.OWNED, exit_codes.NO_ACCESS),
    *(exit_codes.INTERNAL, exit_codes.USAGE, exit_codes.FAILED),
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    Attributes:
        topic: The topic.
        level: ``ok``; ``warning``: it works, but something is not as it should be; ``error``: something does
            not work, or will not at the next start.
        finding: The finding, in a sentence.
        remedy: A command or a sentence that helps; None if it is ok.
        code: The exit code of an error.
    """

    topic: str
    level: Level
    finding: str
    remedy: str | None = None
    code: int = exit_codes.OK


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings.

    Attributes:
        version: The version of this program.
        folder: The folder of the store.
        worst: The worst level of all findings.
        findings: The findings, by topic.
    """

    version: str
    folder: str
    worst: Level
    findings: list[Finding]


def ok(topic: str, finding: str) -> Finding:
    """Make a finding about something in order."""
    return Finding(topic=topic, level="ok", finding=finding)


def warning(topic: str, finding: str, remedy: str) -> Finding:
    """Make a finding about something that works but is not as it should be."""
    return Finding(topic=topic, level="warning", finding=finding, remedy=remedy)


def error(topic: str, finding: str, remedy: str, code: int) -> Finding:
    """Make a finding about a failure; the code is one of `exit_codes`."""
    return Finding(topic=topic, level="error", finding=finding, remedy=remedy, code=code)


def refused(topic: str, failure: GreenroomError, remedy: str) -> Finding:
    """Make a finding from the error that a server would fail with.

    Args:
        topic: The topic.
        failure: The error; a remedy in its sentence follows the last semicolon.
        remedy: The remedy if the sentence has none.
    """
    code, sentence = exit_code_for([failure]) or (exit_codes.INTERNAL, str(failure))
    what, _, own = sentence.rpartition("; ")
    return error(topic, what or sentence, own if what else remedy, code)


def worst(findings: Sequence[Finding]) -> Level:
    """Return the worst level."""
    return max((each.level for each in findings), key=LEVELS.index, default="ok")


def exit_code(findings: Sequence[Finding]) -> int:
    """Return the code of the worst error; 1 for warnings only, 0 for neither."""
    codes = [each.code for each in findings if each.level == "error"]
    if codes:
        return min(codes, key=_GRAVEST_FIRST.index)
    return exit_codes.FAILED if worst(findings) == "warning" else exit_codes.OK
