"""Findings of `greenroom doctor`, their levels, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    A ``warning`` means that something works but is not as it should be. An ``error`` means that something
    does not work, or will not work at the next start.
    """

    topic: str = ""  # the name of the check, which `under` sets
    level: Level
    finding: str  # one sentence
    remedy: str | None = None  # a command or a sentence that helps; None for ``ok``
    code: int = exit_codes.OK  # the exit code for an error


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, by topic."""

    version: str
    folder: str
    worst: Level
    findings: list[Finding]


def ok(finding: str) -> Finding:
    """Make a finding about something that is in order."""
    return Finding(level="ok", finding=finding)


def warning(finding: str, remedy: str) -> Finding:
    """Make a finding about something that works but is not as it should be."""
    return Finding(level="warning", finding=finding, remedy=remedy)


def error(finding: str, remedy: str, code: int = exit_codes.NO_ACCESS) -> Finding:
    """Make a finding about a failure; the code is one of `exit_codes`."""
    return Finding(level="error", finding=finding, remedy=remedy, code=code)


def refused(failure: GreenroomError, remedy: str) -> Finding:
    """Make a finding from the error with which a server would fail.

    If the sentence of the error has a remedy after its last semicolon, this remedy is used instead.
    """
    code, sentence = exit_code_for([failure]) or (exit_codes.INTERNAL, str(failure))
    what, _, own = sentence.rpartition("; ")
    return error(what or sentence, own if what else remedy, code)


def under(topic: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return findings that have the name of their check."""
    return [msgspec.structs.replace(each, topic=topic) for each in findings]


def worst(findings: Sequence[Finding]) -> Level:
    """Return the worst level."""
    return max((each.level for each in findings), key=LEVELS.index, default="ok")


def exit_code(findings: Sequence[Finding]) -> int:
    """Return the code of the worst error; 1 for warnings only, 0 for neither."""
    codes = [each.code for each in findings if each.level == "error"]
    if codes:
        return min(codes, key=_GRAVEST_FIRST.index)
    return exit_codes.FAILED if worst(findings) == "warning" else exit_codes.OK
