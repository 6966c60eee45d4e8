"""Programs that tests have forked are theirs like programs that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import clean_environment
from support.forking import all_forked, forked_program

SERVE = ["serve", "--http", "127.0.0.1:0", "--embedder", "none", "--data", "store"]
only_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a fork is no child of the test")


def served(folder: Path, *program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*program, *SERVE],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=clean_environment(folder),
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    while "listening on" not in process.stderr.readline():
        assert process.poll() is None


@only_on_linux
def test_a_fork_is_a_child_in_its_folder_and_session_and_ends_by_signals(tmp_path: Path) -> None:
    with served(tmp_path, *forked_program()) as process:
        wait_for(process)
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert os.getsid(process.pid) == process.pid
        assert (tmp_path / "store").is_dir()
        process.kill()
        assert process.wait() == -signal.SIGKILL
    with served(tmp_path, *forked_program()) as process:
        wait_for(process)
        process.terminate()
        assert process.wait() == 0


@only_on_linux
def test_all_that_is_started_can_be_forked_for_a_while(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "greenroom.transports.cli"]
    ours = (Path(__file__).parent.parent / "support/forking.py").name.encode()
    with all_forked(), served(tmp_path, *program) as process:
        wait_for(process)
        assert ours in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.kill()
    with served(tmp_path, *program) as process:
        wait_for(process)
        assert ours not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.kill()


def test_what_python_itself_is_told_by_the_environment_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = forked_program()
    (tmp_path / "sitecustomize.py").write_text("print('customized')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert ("customized" in done.stdout) == (sys.platform == "linux")
    monkeypatch.undo()
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert "customized" not in done.stdout
