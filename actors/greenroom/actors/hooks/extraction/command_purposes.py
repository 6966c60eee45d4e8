"""Classify shell commands: tests, checks, builds, or read-only commands."""

from __future__ import annotations

import re
from typing import Final

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
