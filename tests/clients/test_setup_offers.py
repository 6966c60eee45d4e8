"""What `greenroom setup` offers and takes for an answer, up to the last question, which is declined."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from clients.test_setup_changes import FILES

from greenroom.transports.ops.cli.main import main

pytestmark = pytest.mark.promise("cli.setup-questions")

FOUND = ["claude-code", "codex", "goose"]
MORE = '"--tools", "core,knowledge,code"'


class Terminal(io.StringIO):
    """Somebody at a terminal, who types these lines."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    for name in FOUND:
        path = tmp_path / FILES[name][0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FILES[name][1])
    return tmp_path


def shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *lines: str
) -> tuple[set[str], str]:
    """Return the clients whose files would change, and all that was printed, after a declined run."""
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{line}\n" for line in lines)))
    assert main(["setup"]) == 1
    printed = capsys.readouterr()
    for name in FOUND:
        assert (home / FILES[name][0]).read_bytes() == FILES[name][1]
    assert "nothing was written" in printed.err
    return {
        name for name in FOUND if f"--- {home / FILES[name][0]}" in printed.out
    }, printed.out + printed.err


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("", set(FOUND)),
        ("all", set(FOUND)),
        ("1 3", {"claude-code", "goose"}),
        (" 3,1, 3", {"claude-code", "goose"}),
        ("codex", {"codex"}),
    ],
)
def test_clients_are_chosen_by_numbers_or_names(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    chosen: set[str],
) -> None:
    found, printed = shown(home, monkeypatch, capsys, typed, "", "", "n")
    assert (found, MORE in printed, "hooks.json" in printed) == (chosen, False, False)
    assert "is none of" not in printed


def test_tools_and_hooks_are_as_answered_and_what_is_no_answer_is_asked_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("0", "2", "both", "2", "perhaps", "yes", "n")
    found, printed = shown(home, monkeypatch, capsys, *lines)
    assert (found, MORE in printed, "hooks.json" in printed) == ({"codex"}, True, True)
    for refused in ("'0' is none of the numbers 1 to 3", "type 1 or 2", "type y or n"):
        assert printed.count(refused) == 1


def test_a_client_without_hooks_is_not_asked_for_them(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, printed = shown(home, monkeypatch, capsys, "3", "", "n")
    assert (found, "Hooks" in printed) == ({"goose"}, False)
