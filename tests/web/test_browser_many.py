"""Every view of the console at a store of 100,000 memories: a page asks for what it shows alone."""

from __future__ import annotations

import json
import random
import subprocess
from typing import TYPE_CHECKING

import pytest
from harness import clean_environment
from support.browser import console_server_in, launched, logged_in, profile_of
from support.forking import forked_program

from greenroom.transports.web.console.views.table import ENTRIES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MANY = 100_000
MOST = 2_000_000
"""Bytes of one page, whatever there is."""
WORDS = [
    "alpha",
    "cache",
    "deploy",
    "gamma",
    "index",
    "lock",
    "memory",
    "python",
    "queue",
    "release",
    "rust",
    "session",
    "store",
    "tests",
    "token",
    "user",
]


def memories(path: Path) -> None:
    """Write memories in twenty namespaces."""
    draw = random.Random(8)  # noqa: S311 - no secret
    with path.open("w") as lines:
        for number in range(MANY):
            content = f"Fact {number}: {' '.join(draw.choices(WORDS, k=10))}"
            memory = {"key": f"fact-{number}", "content": content, "namespace": f"user:root:p{number % 20}"}
            lines.write(json.dumps(memory | {"tags": draw.sample(WORDS, 2)}) + "\n")


@pytest.mark.promise("console.many")
def test_every_view_opens_at_many_memories(tmp_path: Path) -> None:
    memories(tmp_path / "many.jsonl")
    imports = ["import", str(tmp_path / "many.jsonl"), "--data", str(tmp_path / "data"), "--embedder", "none"]
    command = [*forked_program(), *imports]
    subprocess.run(command, check=True, env=clean_environment(tmp_path), capture_output=True)
    with (
        console_server_in(tmp_path / "data", "--embedder", "none", "--user", "root") as server,
        launched() as browser,
        profile_of(browser) as profile,
    ):
        page = logged_in(profile, server)
        for name in [entry.name for entry in ENTRIES]:
            answer = page.goto(server.url + name)
            assert answer is not None
            assert answer.status == 200, name
            assert len(answer.body()) < MOST, name
            page.locator("main h1").wait_for()
        page.goto(f"{server.url}memories")
        page.get_by_role("link", name="Fact ").first.wait_for()
        first = page.locator("[data-row]").first.inner_text()
        page.get_by_role("link", name="Next page").click()
        page.wait_for_url("**cursor=**")
        assert page.locator("[data-row]").first.inner_text() != first
