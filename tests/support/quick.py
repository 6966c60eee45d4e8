"""Which tests the quick part has: what is not slow, and of slow files what alone shows a promise.

Of a test with parameters it has the first.
"""

from __future__ import annotations

import functools
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

SLOW = re.compile(
    r"^pytestmark = .*pytest\.mark\.slow"
    r"|\bsubprocess\b|\bos\.fork\b|\b(open|run|server)_process\b|^from conformance\b"
    r"|^from (agents|anthropic|google\.adk|langgraph|llama_index|pydantic_ai)\b"
    r"|^from support\.(browser|commands|programs|sdk_clients|several|tools|websocket_programs) import",
    re.MULTILINE,
)
"""What says of a test file that all its tests are slow: their mark, that they start programs, or a framework
that takes about as long to install as the quick part to run."""


@functools.cache
def is_slow(path: Path) -> bool:
    """Return whether all tests of a file are slow."""
    return SLOW.search(path.read_text()) is not None


def has_some(path: Path) -> bool:
    """Return whether a file may have tests of the quick part."""
    return not is_slow(path) or "pytest.mark.quick" in path.read_text()


def chosen(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Part tests in those of the quick part and the others."""
    chosen: dict[str, pytest.Item] = {}
    others: list[pytest.Item] = []
    for item in items:
        wanted = item.get_closest_marker("quick") or not item.get_closest_marker("slow")
        if not wanted or chosen.setdefault(item.nodeid.partition("[")[0], item) is not item:
            others.append(item)
    return list(chosen.values()), others


def not_installed() -> list[str]:
    """Return what `.[dev-all]` names and this environment lacks."""
    return [name for name in _names_of("dev-all") if not _is_installed(name)]


def _names_of(extra: str) -> list[str]:
    needed = [Requirement(line) for line in metadata.requires("greenroom") or []]
    return [each.name for each in needed if each.marker and each.marker.evaluate({"extra": extra})]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
