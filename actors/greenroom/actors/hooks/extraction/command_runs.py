"""Find fixed errors and working commands in the commands of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE
from greenroom.actors.hooks.extraction.command_purposes import is_general, only_looks, purpose_of
from greenroom.actors.hooks.extraction.findings import Finding, cannot_run, find_error_line, finding, to_line
from greenroom.actors.sessions.requests.hook_events import Turn

_OFTEN: Final = 3
"""A command that passed so many times is an established way to do something."""
_MOST_STEPS: Final = 4
"""Most steps between an error and its fix; with more, the step that fixed it is unclear."""
_NEXT: Final = 3
"""Runs after a command that could not start in which a replacement is looked for."""
_COMMAND: Final = 120
_STEP: Final = 80
_DOES: Final = {"test": "runs the tests", "lint": "checks the code", "build": "builds"}
_UNKNOWN_END: Final = re.compile(r"[|;]|(?<![&>])&(?![&>0-9])")
"""With these, a shell reports the status of the last part, which may not be the part that matters."""
_NO_PART: Final = re.compile(r"^(?:cd \S+ && )+|(?:\s+2>&1|\s+>\s?/dev/null)+$")


class _Run(NamedTuple):
    """A command that ran, without changes of folder and redirections, and its output.

    ``place`` is the number of the turn; ``passed`` is None if that is unknown.
    """

    place: int
    command: str
    passed: bool | None
    output: str


class _Step(NamedTuple):
    """A step that was taken: the number of the turn, and a description."""

    place: int
    words: str


def find_in_commands(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield fixes of errors, and commands that work."""
    happened = list(_list_steps(turns))
    runs = [each for each in happened if isinstance(each, _Run)]
    yield from _find_fixes(happened)
    yield from _find_repeated(runs)
    yield from _find_replacements(runs)


def _list_steps(turns: Sequence[Turn]) -> Iterator[_Run | _Step]:
    """Yield the runs of commands, and the files that were written."""
    for place, turn in enumerate(turns):
        if turn.role != "tool":
            continue
        if turn.command and not any(mark in turn.command for mark in (LEFT_OUT_BEGINS, PRIVATE)):
            command = _NO_PART.sub("", " ".join(turn.command.split()))
            unknown = not turn.failed and _UNKNOWN_END.search(command) is not None
            yield _Run(place, command, None if unknown else not turn.failed, turn.text)
        elif turn.wrote and turn.path and not turn.failed:
            yield _Step(place, f"editing `{to_line(turn.path, _STEP)}`")


def _find_fixes(happened: Sequence[_Run | _Step]) -> Iterator[Finding]:
    """Yield errors that disappeared after some steps."""
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
            error = find_error_line(failure.output)
            if error and 0 < len(done) <= _MOST_STEPS and len(each.command) <= _COMMAND:
                failing = f"`{to_line(each.command, _COMMAND)}` failed with \u201c{error}\u201d"
                yield finding("fix", f"{failing} and passed after {' and '.join(done)}.", each.place)
        if not only_looks(each.command):
            steps.append(_Step(each.place, f"running `{to_line(each.command, _STEP)}`"))


def _find_repeated(runs: Sequence[_Run]) -> Iterator[Finding]:
    """Yield commands with a purpose that passed several times."""
    passed: dict[str, int] = {}
    for run in runs:
        purpose = purpose_of(run.command) if run.passed else ""
        if purpose and len(run.command) <= _COMMAND and is_general(run.command):
            passed[run.command] = passed.get(run.command, 0) + 1
            if passed[run.command] == _OFTEN:
                yield _works(run, purpose, f"it passed {_OFTEN} times in one session")


def _find_replacements(runs: Sequence[_Run]) -> Iterator[Finding]:
    """Yield commands that worked after another one for the same purpose could not start."""
    passed = {run.command for run in runs if run.passed}
    for number, failed in enumerate(runs):
        purpose = purpose_of(failed.command)
        error = find_error_line(failed.output) if failed.passed is False and purpose else ""
        if not (cannot_run(error) and failed.command not in passed):
            continue
        for run in runs[number + 1 : number + 1 + _NEXT]:
            if run.passed and len(run.command) <= _COMMAND and purpose_of(run.command) == purpose:
                without = to_line(failed.command, _COMMAND)
                yield _works(run, purpose, f"`{without}` fails with \u201c{error}\u201d")
                break


def _works(run: _Run, purpose: str, why: str) -> Finding:
    text = f"`{to_line(run.command, _COMMAND)}` {_DOES[purpose]}; {why}."
    return finding("command", text, run.place, purpose)
