"""Find fixed errors and working commands in the commands of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.text.private_parts import PRIVATE
from greenroom.actors.hooks.extraction.findings import Finding, cannot_run, find_error_line, finding, to_line
from greenroom.actors.sessions.requests.hook_events import Turn

_OFTEN: Final = 3
"""A command that passed this many times in a session is an established way to do something."""
_MOST_STEPS: Final = 4
"""A fix has at most this many steps after the error; with more, it is unclear which step fixed it."""
_NEXT: Final = 3
"""A replacement for a command that could not start is looked for in this many runs after it."""
_COMMAND: Final = 120
_STEP: Final = 80
_DOES: Final = {"test": "runs the tests", "lint": "checks the code", "build": "builds"}
_UNKNOWN_END: Final = re.compile(r"[|;]|(?<![&>])&(?![&>0-9])")
"""With these signs, a shell reports the status of the last part, which may not be the part that matters."""
_NO_PART: Final = re.compile(r"^(?:cd \S+ && )+|(?:\s+2>&1|\s+>\s?/dev/null)+$")


class _Run(NamedTuple):
    """A command that ran, without `cd` and redirections, and its output.

    ``place`` is the number of the turn. ``passed`` is None if it is unknown whether the command passed.
    """

    place: int
    command: str
    passed: bool | None
    output: str


class _Step(NamedTuple):
    """A step in the session: the number of the turn, and a description."""

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
    """Yield commands with a known purpose that passed several times."""
    passed: dict[str, int] = {}
    for run in runs:
        purpose = purpose_of(run.command) if run.passed else ""
        if purpose and len(run.command) <= _COMMAND and is_general(run.command):
            passed[run.command] = passed.get(run.command, 0) + 1
            if passed[run.command] == _OFTEN:
                yield _works(run, purpose, f"it passed {_OFTEN} times in one session")


def _find_replacements(runs: Sequence[_Run]) -> Iterator[Finding]:
    """Yield commands that worked after another command for the same purpose could not start."""
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


_WRAPPERS: Final = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*=\S* |sudo |time |env |npx |bunx |pnpx |pnpm exec |pnpm dlx |yarn exec "
    r"|uv run |uvx |poetry run |pipenv run |pdm run |hatch run |rye run |bundle exec "
    r"|python[0-9.]* -m |py -m |\S*/bin/)*"
)
_TESTERS: Final = "pytest unittest jest vitest mocha rspec ctest phpunit tox nox ava bats"
_CHECKERS: Final = """
ruff eslint flake8 pylint golangci-lint mypy pyright basedpyright tsc biome prettier black shellcheck
"""
_BUILDERS: Final = "cmake webpack vite rollup esbuild tsup meson ninja"
_PROGRAMS: Final = {
    program: purpose
    for purpose, programs in (("test", _TESTERS), ("lint", _CHECKERS), ("build", _BUILDERS))
    for program in programs.split()
}
_RUN_TARGETS: Final = """
npm pnpm yarn bun deno nx turbo lerna just make task invoke cargo go gradle ./gradlew mvn ./mvnw sbt dotnet
mix rake composer swift zig docker stack cabal dune flutter bazel manage.py
"""
_RUNNERS: Final = frozenset(_RUN_TARGETS.split())
_TARGETS: Final = (
    ("test", re.compile(r"(?:unit|e2e|integration)?[-_:]?tests?(?:[-_:]\w+)*|t|nextest|spec|verify")),
    ("lint", re.compile(r"(?:lint|check|format)(?:[-_:]\w+)*|type-?check|clippy|vet|fmt|analy[sz]e")),
    ("build", re.compile(r"build(?:[-_:]\w+)*|compile|assemble|bundle|all")),
)
_LOOK: Final = """
ls cat head tail grep rg ag find wc echo pwd cd which whereis env printenv ps df du stat file tree less
more type jq date sleep history man sed awk true sort uniq diff cmp xxd realpath basename dirname readlink
id whoami uname nproc free top lsof netstat ss ping dig
"""
_LOOKERS: Final = frozenset(_LOOK.split())
_LOOKING: Final = re.compile(
    r"git (?:-C \S+ )?(?:status|diff|log|show|branch|blame|grep|ls-files|remote|rev-parse|describe)\b"
    r"|(?:npm|pnpm|yarn|pip|uv pip|cargo|go|docker|kubectl|brew|apt) (?:ls|list|show|view|info|why|tree"
    r"|outdated|ps|logs|get|describe|search|images|inspect|version)\b|\S+ (?:--version|--help|-V)$"
)
_CHANGES: Final = re.compile(r"sed (?:-\w+ )*-\w*i|(?:>>?|tee) ?(?!/dev/|&)\S")
_ONE_FILE: Final = re.compile(
    r"\s\S+\.(?:py|pyi|[jt]sx?|mjs|go|rs|java|kt|cs|cpp|cc|c|rb|php|ex|exs)\b|::|\s-k\s|--lf\b"
)


def purpose_of(command: str) -> str:
    """Return the purpose of a command: ``test``, ``lint`` or ``build``; empty for any other."""
    words = _WRAPPERS.sub("", command.rpartition(" && ")[2], count=1).split()
    if not words:
        return ""
    if words[0] in _PROGRAMS:
        return _PROGRAMS[words[0]]
    if words[0].startswith("python") and words[1:2] == ["manage.py"]:
        words = words[1:]
    if words[0] not in _RUNNERS:
        return ""
    target = next((word for word in words[1:4] if word != "run" and not word.startswith("-")), "")
    return next((purpose for purpose, pattern in _TARGETS if pattern.fullmatch(target)), "")


def is_general(command: str) -> bool:
    """Return whether a command does not name single files or tests."""
    return _ONE_FILE.search(command) is None


def only_looks(command: str) -> bool:
    """Return whether a command seems to change nothing, so that it cannot fix anything."""
    if purpose_of(command) == "test":
        return True
    if _CHANGES.search(command):
        return False
    parts = re.split(r"&&|\|\||[|;]", command)
    return all(
        not part.strip() or part.split()[0] in _LOOKERS or _LOOKING.match(part.strip()) for part in parts
    )
