"""`greenroom completion`: a shell that has read the script completes command lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness import clean_environment
from support.commands import run, sentence

ASK = """
eval "$(greenroom completion bash)"
while IFS= read -r line; do
  COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9
  COMPREPLY=()
  _python_argcomplete greenroom
  echo "$line|${COMPREPLY[*]}"
done
"""
"""What bash does when somebody types a line and then TAB, for each line that it reads."""

LINES = {
    "greenroom comp": ["completion"],
    "greenroom passport ": ["export", "restore", "show", "signer"],
    "greenroom setup claude-c": ["claude-code", "claude-code-project"],
    "greenroom serve --max-": ["--max-connections", "--max-frame", "--max-in-flight", "--max-size"],
    "greenroom serve --durability p": ["power", "process"],
    "greenroom import x --on-conflict ": ["overwrite", "skip", "version"],
    "greenroom serve --data f": ["folder/"],
    "greenroom backup f": ["file", "folder/"],
    "greenroom serve --agent f": [],
}


@pytest.mark.quick
@pytest.mark.promise("cli.completion")
def test_bash_completes_commands_flags_values_clients_and_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    programs = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK],
        input="\n".join(LINES) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean_environment(tmp_path, PATH=programs),
        check=True,
    )
    answers = dict(line.split("|") for line in done.stdout.splitlines())
    assert {line: sorted(words.split()) for line, words in answers.items()} == LINES
    assert done.stderr == ""


def test_other_shells_get_a_script_of_their_own_and_unknown_ones_are_told(tmp_path: Path) -> None:
    assert run(tmp_path, "completion", "zsh").stdout.startswith("#compdef greenroom\n")
    assert "complete --command greenroom" in run(tmp_path, "completion", "fish").stdout
    assert "'csh', but bash, zsh or fish is allowed" in sentence(run(tmp_path, "completion", "csh"))


def test_nothing_of_it_is_imported_when_nobody_completes(tmp_path: Path) -> None:
    code = "import sys, greenroom.transports.ops.cli.main as cli; cli.main(['config']); print([*sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=True,
    )
    assert "'greenroom.transports.ops.cli.commands.config'" in done.stdout
    assert "argcomplete" not in done.stdout
