"""`greenroom ingest`: alone on a folder and beside a server, once and as files change; a bar or plain."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import PROGRAM, clean_environment
from support.commands import serving
from support.forking import forked_program

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def command(home: Path, *arguments: str | Path) -> list[str]:
    whose = ("--data", str(home / "store"), "--user", "ann", "--embedder", "none")
    return ["ingest", *map(str, arguments), *whose]


def run(home: Path, *arguments: str | Path) -> CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), *command(home, *arguments)],
        env=clean_environment(home),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = (tmp_path / "docs").resolve()
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nfirst\n")
    (folder / "b.txt").write_text("second\n")
    (folder / ".env").write_text("KEY=1\n")
    return folder


@pytest.mark.quick
@pytest.mark.promise("documents.command")
def test_a_stopped_store_and_a_running_server_are_filled_alike(tmp_path: Path, docs: Path) -> None:
    first = run(tmp_path, docs)
    assert first.returncode == 0
    assert first.stdout == (
        "2 added, 0 changed, 0 removed, 0 unchanged in user:ann:default: 18 bytes in 2 chunks\n"
    )
    assert first.stderr == (
        f"greenroom ingest: {docs}/.env is left out: it may hold secrets\n"
        "greenroom ingest: left out 1 since it may hold secrets\n"
    )
    (docs / "a.md").write_text("other")
    with serving(tmp_path, "--embedder", "none") as server:
        again = json.loads(run(tmp_path, docs, "--json").stdout)
        assert (again["changed"], again["unchanged"], again["complete"]) == (1, 1, True)
        assert again["named"] == [{"path": f"{docs}/.env", "reason": "it may hold secrets"}]
        assert server.end() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "PATH: 'nowhere' is not there"),
        (["/"], 1, "PATH: '/' is not read: it is a whole machine"),
        (["store"], 1, "PATH: 'store' is not read: it belongs to Greenroom"),
        (["docs", "--corpus", "a b"], 1, "--corpus: "),
        (["docs", "--corpus", "user:bob:docs"], 1, "there is no corpus"),
        ([], 2, "PATH"),
    ],
)
def test_what_cannot_be_ingested_is_told(
    tmp_path: Path, docs: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "store").mkdir()
    places = [str(docs.parent / each) if each in {"docs", "store"} else each for each in arguments]
    done = run(tmp_path, *places)
    assert (done.returncode, said in done.stderr.replace(f"{docs.parent}/", "")) == (code, True), done.stderr


def test_a_terminal_sees_a_bar(tmp_path: Path, docs: Path) -> None:
    terminal, other = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *command(tmp_path, docs)],
        env={**clean_environment(tmp_path), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=other,
    ) as process:
        os.close(other)
        seen = b""
        try:
            while piece := os.read(terminal, 65_536):
                seen += piece
        except OSError:  # Linux's end of a terminal
            pass
        assert process.wait() == 0
    os.close(terminal)
    assert "files ━" in seen.decode()


@pytest.mark.quick
@pytest.mark.promise("documents.watch")
def test_watching_takes_in_what_changes_until_it_is_interrupted(tmp_path: Path, docs: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, *command(tmp_path, docs, "--watch", "--json")],
        env=clean_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None

        def told() -> tuple[int, int, int]:
            assert process.stdout is not None
            done = json.loads(process.stdout.readline())
            return done["added"], done["changed"], done["removed"]

        assert told() == (2, 0, 0)
        assert "watching" in process.stderr.readline()
        (docs / "new").mkdir()
        (docs / "new.part").write_text("third")
        (docs / "new.part").rename(docs / "c.md")
        assert told() == (1, 0, 0)
        (docs / "a.md").write_text("changed")
        assert told() == (0, 1, 0)
        (docs / "b.txt").unlink()
        assert told() == (0, 0, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert json.loads(run(tmp_path, docs, "--json").stdout)["unchanged"] == 2
