"""What `greenroom doctor` finds, how grave it is, and the exit code for all of it."""

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
    """One thing that was looked at.

    Attributes:
        topic: What it is about.
        level: ``ok``; ``warning``: it works, and something is not as it should be; ``error``: something does
            not work, or will not at the next start.
        finding: What was found, in a sentence.
        remedy: What to do about it, a command or a sentence; None of what is ok.
        code: Of an error, the exit code that stands for it.
    """

    topic: str
    level: Level
    finding: str
    remedy: str | None = None
    code: int = exit_codes.OK


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found.

    Attributes:
        version: That of this program.
        folder: The folder of the store.
        worst: The gravest level of all findings.
        findings: These, by topic.
    """

    version: str
    folder: str
    worst: Level
    findings: list[Finding]


def ok(topic: str, finding: str) -> Finding:
    """Return a finding of something that is well."""
    return Finding(topic=topic, level="ok", finding=finding)


def warning(topic: str, finding: str, remedy: str) -> Finding:
    """Return a finding of something that works and is not as it should be."""
    return Finding(topic=topic, level="warning", finding=finding, remedy=remedy)


def error(topic: str, finding: str, remedy: str, code: int) -> Finding:
    """Return a finding of something that does not work; the code is one of `exit_codes`."""
    return Finding(topic=topic, level="error", finding=finding, remedy=remedy, code=code)


def refused(topic: str, failure: GreenroomError, remedy: str) -> Finding:
    """Return the finding for what a server would be refused with.

    Args:
        topic: What it is about.
        failure: The error; where its sentence says what to do, it does so after its last semicolon.
        remedy: What to do where it does not.
    """
    code, sentence = exit_code_for([failure]) or (exit_codes.INTERNAL, str(failure))
    what, _, own = sentence.rpartition("; ")
    return error(topic, what or sentence, own if what else remedy, code)


def worst(findings: Sequence[Finding]) -> Level:
    """Return the gravest level."""
    return max((each.level for each in findings), key=LEVELS.index, default="ok")


def exit_code(findings: Sequence[Finding]) -> int:
    """Return the exit code: that of the gravest error; 1 where there are warnings alone, 0 for neither."""
    codes = [each.code for each in findings if each.level == "error"]
    if codes:
        return min(codes, key=_GRAVEST_FIRST.index)
    return exit_codes.FAILED if worst(findings) == "warning" else exit_codes.OK
