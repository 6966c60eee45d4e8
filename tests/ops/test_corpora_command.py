"""`greenroom corpora`: list, rename, drop and remove, on a stopped store and beside a running server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.commands import run_on_store, sentence, serving
from support.programs import running

from greenroom.transports.base import exit_codes

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("--user", "ann", "--embedder", "none")


@pytest.mark.slow
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_corpora_are_listed_renamed_and_dropped(tmp_path: Path, state: str) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Birds\n\nThe heron stands in the reeds.\n")
    assert run_on_store(tmp_path, "ingest", str(page), "--corpus", "docs", *WHO).returncode == 0

    def check() -> None:
        renamed = run_on_store(tmp_path, "corpora", "rename", "docs", "birds", "--user", "ann")
        assert (renamed.returncode, renamed.stdout) == (0, "renamed: user:ann:birds\n")
        listed = run_on_store(tmp_path, "corpora", "list", "--json", "--user", "ann")
        (corpus,) = json.loads(listed.stdout)
        assert (corpus["corpus"], corpus["documents"], corpus["chunks"]) == ("user:ann:birds", 1, 1)
        hidden = run_on_store(tmp_path, "corpora", "list", "--user", "ben")
        assert (hidden.returncode, hidden.stdout) == (0, "")
        for arguments, said in ((["x"], "removed: 0 of 1"), ([str(page), "x"], "removed: 1 of 2")):
            removed = run_on_store(tmp_path, "corpora", "remove", "birds", *arguments, "--user", "ann")
            assert (removed.returncode, removed.stdout) == (0, f"{said} documents from user:ann:birds\n")
        unseen = run_on_store(tmp_path, "corpora", "remove", "user:ann:birds", "x", "--user", "ben")
        assert (unseen.returncode, "there is no corpus" in unseen.stderr) == (1, True)
        for who, name in (("ben", "user:ann:birds"), ("ann", "docs"), ("ann", "../x")):
            refused = run_on_store(tmp_path, "corpora", "drop", name, "--yes", "--user", who)
            assert (refused.returncode, refused.stdout) == (1, "")
        for more in ((), ("--json",)):
            kept = run_on_store(tmp_path, "corpora", "drop", "birds", "--user", "ann", *more)
            assert (kept.returncode, kept.stdout) == (1, "")
            assert sentence(kept).endswith("user:ann:birds was not dropped; --yes does it\n")
        dropped = run_on_store(tmp_path, "corpora", "drop", "birds", "--yes", "--user", "ann")
        assert (dropped.returncode, dropped.stdout) == (0, "dropped: user:ann:birds\n")
        assert run_on_store(tmp_path, "corpora", "list", "--user", "ann").stdout == ""

    if state == "stopped":
        check()
    else:
        with serving(tmp_path, "--embedder", "none"):
            check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [(None, exit_codes.INTERRUPTED), ("no\n", exit_codes.FAILED), ("yes\n", exit_codes.OK)],
)
async def test_a_drop_asks_and_ctrl_c_ends_the_question(
    tmp_path: Path, answer: str | None, code: int
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Birds\n\nThe heron stands in the reeds.\n")
    assert run_on_store(tmp_path, "ingest", str(page), "--corpus", "docs", *WHO).returncode == 0
    command = ("corpora", "drop", "docs", "--user", "ann", "--data", str(tmp_path / "store"))
    async with running(tmp_path, *command, terminal=True, keyboard=True) as asked:
        await asked.until("type yes:")
        if answer is None:
            assert await asked.interrupt() == code
            assert "Traceback" not in asked.printed
            assert "Fatal" not in asked.printed
        else:
            await asked.press(answer)
            assert await asked.end() == code
    listed = run_on_store(tmp_path, "corpora", "list", "--user", "ann").stdout
    assert ("docs" in listed) == (code != exit_codes.OK)
