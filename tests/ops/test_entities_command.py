"""`greenroom entities`: declared by files and names, suggested, found and removed, beside a server too."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from harness import clean_environment
from support.commands import serving
from support.forking import forked_program

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = pytest.mark.promise("entities.command")


def run(home: Path, *arguments: str | Path) -> CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), *map(str, arguments), "--data", str(home / "store"), "--user", "ann"],
        env=clean_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def lines(done: CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    text = "We pay by Stripe. Then Stripe tells us, and we tell Stripe. So does Redis.\n"
    (tmp_path / "docs" / "a.md").write_text(text)
    (tmp_path / "docs" / "package.json").write_text('{"dependencies": {"redis": "^5"}}')
    (tmp_path / "e.yaml").write_text("- {name: Acme, type: vendor, relations: [{to: Stripe}]}")
    assert run(tmp_path, "ingest", "docs", "--embedder", "none").returncode == 0
    return tmp_path


def test_what_is_suggested_is_added_found_and_removed(home: Path) -> None:
    assert lines(run(home, "entities", "suggest")) == ["      3  in 1 chunks  name  Stripe"]
    assert lines(run(home, "entities", "add", "Stripe", "--type", "vendor")) == [
        "1 added, 0 changed, 0 removed, 0 unchanged in user:ann:default"
    ]
    none = run(home, "entities", "suggest")
    assert (none.returncode, none.stdout) == (0, "")
    assert none.stderr == "greenroom entities: all names that the documents repeat are declared\n"
    with serving(home, "--embedder", "none") as server:
        assert lines(run(home, "entities", "define", "e.yaml", "docs")) == [
            "1 added, 0 changed, 0 removed, 1 unchanged in user:ann:default"
        ]
        found = json.loads(run(home, "entities", "find", "strpe", "--json").stdout)
        assert [each["name"] for each in found["entities"]] == ["Stripe"]
        assert found["relationships"][0]["source_name"] == "Acme"
        assert server.end() == 0
    assert lines(run(home, "entities", "remove", "stripe", "acme")) == [
        "0 added, 0 changed, 2 removed, 0 unchanged in user:ann:default"
    ]
    [left] = lines(run(home, "entities", "find", "*"))
    assert left.endswith("  redis")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["define", "nowhere.yaml"], "a file cannot be read: "),
        (["define", "bad.yaml"], "bad.yaml: it has no list of entities"),
        (["add", "Stripe"], "--type"),
        (["find", "x" * 101], "VENDOR_FILTER: "),
        (["suggest", "--corpus", "user:bob:docs"], "there is no corpus"),
    ],
)
def test_what_cannot_be_done_is_told(home: Path, arguments: list[str], said: str) -> None:
    (home / "bad.yaml").write_text("3")
    done = run(home, "entities", *arguments)
    assert done.returncode != 0
    assert said in done.stderr
