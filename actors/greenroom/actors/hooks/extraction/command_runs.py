"""Errors with their fixes, and commands that work, by the commands of a session and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.hooks.extraction.command_purposes import is_general, only_looks, purpose_of
from greenroom.actors.hooks.extraction.findings import cannot_run, error_line
from greenroom.actors.hooks.findings import Finding, finding, on_a_line
from greenroom.actors.sessions.requests.hook_events import Turn

_OFTEN: Final = 3
"""A command that passed so often is how something is done."""
_MOST_STEPS: Final = 4
"""What fixed an error is one of so many steps at most; of more nobody can tell."""
_NEXT: Final = 3
"""Runs after one that could not start in which another may take its place."""
_COMMAND: Final = 120
_STEP: Final = 80
_DOES: Final = {"test": "runs the tests", "lint": "checks the code", "build": "builds"}
_UNKNOWN_END: Final = re.compile(r"[|;]|(?<![&>])&(?![&>0-9])")
"""After these a shell tells how the last part ended, which need not be the part that matters."""
_NO_PART: Final = re.compile(r"^(?:cd \S+ && )+|(?:\s+2>&1|\s+>\s?/dev/null)+$")


class _Run(NamedTuple):
    """A command that ran.

    Attributes:
        place: The turn.
        command: Without what only changes the folder or where it prints.
        passed: Whether it did; None if nobody can tell.
        output: What it said.
    """

    place: int
    command: str
    passed: bool | None
    output: str


class _Step(NamedTuple):
    """Something that was done: at which turn, and in words."""

    place: int
    words: str


def found_in_commands(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield what fixed errors, and which commands work."""
    happened = list(_happened(turns))
    runs = [each for each in happened if isinstance(each, _Run)]
    yield from _fixes(happened)
    yield from _repeated(runs)
    yield from _instead(runs)


def _happened(turns: Sequence[Turn]) -> Iterator[_Run | _Step]:
    """Yield the runs of commands, and files that were written."""
    for place, turn in enumerate(turns):
        if turn.role != "tool":
            continue
        if turn.command and LEFT_OUT_BEGINS not in turn.command:
            command = _NO_PART.sub("", " ".join(turn.command.split()))
            unknown = not turn.failed and _UNKNOWN_END.search(command) is not None
            yield _Run(place, command, None if unknown else not turn.failed, turn.text)
        elif turn.wrote and turn.path and not turn.failed:
            yield _Step(place, f"editing `{on_a_line(turn.path, _STEP)}`")


def _fixes(happened: Sequence[_Run | _Step]) -> Iterator[Finding]:
    """Yield errors that went away after something was done about them."""
    failures: dict[str, _Run] = {}
    steps: list[_Step] = []
    for each in happened:
        if isinstance(each, _Step):
            steps.append(each)
            continue
        if each.passed is False:
            failures[each.command] = each
            continue
        failure = failures.pop(each.command, None) if each.passed else None
        if failure is not None:
            done = list(dict.fromkeys(step.words for step in steps if step.place > failure.place))
            error = error_line(failure.output)
            if error and 0 < len(done) <= _MOST_STEPS and len(each.command) <= _COMMAND:
                failing = f"`{on_a_line(each.command, _COMMAND)}` failed with \u201c{error}\u201d"
                yield finding("fix", f"{failing} and passed after {' and '.join(done)}.", each.place)
        if not only_looks(each.command):
            steps.append(_Step(each.place, f"running `{on_a_line(each.command, _STEP)}`"))


def _repeated(runs: Sequence[_Run]) -> Iterator[Finding]:
    """Yield commands for a purpose that pass again and again."""
    passed: dict[str, int] = {}
    for run in runs:
        purpose = purpose_of(run.command) if run.passed else ""
        if purpose and len(run.command) <= _COMMAND and is_general(run.command):
            passed[run.command] = passed.get(run.command, 0) + 1
            if passed[run.command] == _OFTEN:
                yield _works(run, purpose, f"it passed {_OFTEN} times in one session")


def _instead(runs: Sequence[_Run]) -> Iterator[Finding]:
    """Yield commands that worked where another one for the same purpose could not even start."""
    passed = {run.command for run in runs if run.passed}
    for number, failed in enumerate(runs):
        purpose = purpose_of(failed.command)
        error = error_line(failed.output) if failed.passed is False and purpose else ""
        if not (cannot_run(error) and failed.command not in passed):
            continue
        for run in runs[number + 1 : number + 1 + _NEXT]:
            if run.passed and len(run.command) <= _COMMAND and purpose_of(run.command) == purpose:
                without = on_a_line(failed.command, _COMMAND)
                yield _works(run, purpose, f"`{without}` fails with \u201c{error}\u201d")
                break


def _works(run: _Run, purpose: str, why: str) -> Finding:
    text = f"`{on_a_line(run.command, _COMMAND)}` {_DOES[purpose]}; {why}."
    return finding("command", text, run.place, purpose)
