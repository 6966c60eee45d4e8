"""Every option of every command is used: by a test, or by a page whose commands are run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, clean_environment
from support.commands import run, run_on_store, serving

from greenroom.transports.base.config.settings import all_settings, flag
from greenroom.transports.ops.cli.catalogue import COMMANDS

ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
TESTS = list(ROOT.glob("tests/**/*.py"))
TEXTS = [path.read_text() for path in TESTS] + [
    "\n".join(CONSOLE.findall(path.read_text())) for path in PAGES
]
"""What is run, file by file: the tests, and of pages the commands and what they print."""


def is_used(option: str, *words: str) -> bool:
    """Return whether one file says the flag and the words of its command."""
    says = re.compile(rf"(?<![\w-]){re.escape(option)}(?![\w-])")
    return any(
        says.search(text) and all(re.search(rf"\b{re.escape(word)}\b", text) for word in words)
        for text in TEXTS
    )


def options() -> list[tuple[str, str]]:
    """Return every command and flag; a setting's flag belongs to no command."""
    own = [(name, option) for name, command in COMMANDS.items() for option in command.options]
    return own + [("", flag(key)) for key in all_settings()]


@pytest.mark.promise("cli.settings")
def test_every_option_is_used_by_a_test_or_by_a_page_that_is_run() -> None:
    unused = [f"{name} {option}".strip() for name, option in options() if not is_used(option, *name.split())]
    assert unused == []


IN_FORCE: dict[str, tuple[str, object]] = {
    "--http-session-idle": ("90", 90.0),
    "--rate-limit": ("600", 600),
    "--rate-burst": ("50", 50),
    "--trusted-proxy": ("10.0.0.1", ["10.0.0.1/32"]),
    "--max-in-flight": ("7", 7),
    "--ping-interval": ("11", 11.0),
    "--request-timeout": ("13", 13.0),
    "--debounce": ("150", 150.0),
    "--language": ("german", ["german"]),
    "--workspace": ("/somewhere", ["/somewhere"]),
    "--audit-days": ("17", 17),
    "--audit-size": ("3MiB", 3 << 20),
    "--conversation-tiers": ("5,10,20", [5, 10, 20]),
    "--run-hooks": ("off", "off"),
    "--hooks-exclude": ("*.pem", ["*.pem"]),
}


@pytest.mark.promise("cli.settings")
def test_flags_are_in_force_and_named(tmp_path: Path) -> None:
    given = [part for option, (text, _) in IN_FORCE.items() for part in (option, text)]
    said = run(tmp_path, "config", "--json", "--reviewed-only", *given)
    assert said.returncode == 0, said.stderr
    settings = {each["place"]: each["value"] for each in json.loads(said.stdout)["settings"].values()}
    assert settings["--reviewed-only"] is True
    assert {option: settings[option] for option in IN_FORCE} == {
        option: value for option, (_, value) in IN_FORCE.items()
    }


@pytest.mark.promise("keys.store")
def test_a_key_is_made_for_somebody_and_so_much(tmp_path: Path) -> None:
    bounds = ["--for-type", "worker", "--for-user", "bob", "--burst", "5", "--rate", "60"]
    quotas = ["--max-sessions", "2", "--max-subscriptions", "3", "--max-namespaces", "4"]
    said = run_on_store(tmp_path, "keys", "create", "--name", "n", *bounds, *quotas, "--json")
    assert said.returncode == 0, said.stderr
    key = json.loads(said.stdout)["key"]
    assert (key["agent_type"], key["user"]) == ("worker", "bob")
    assert key["limits"] == {"rate": 60, "burst": 5, "sessions": 2, "subscriptions": 3, "namespaces": 4}


@pytest.mark.quick
@pytest.mark.promise("passport.files")
def test_a_passport_takes_memories_along_when_told_to(tmp_path: Path) -> None:
    with serving(tmp_path, "--user", "ann", "--embedder", "none") as server:
        session = server.call("create_session", purpose="to be carried")["session_id"]
        server.call("set_memory", key="map", value=1, session_id=session)
        counts = [
            json.loads(
                run_on_store(
                    tmp_path, "passport", "export", "--session", session, "--json", "--user", "ann",
                    "--agent", "tester",
                    "--file", str(tmp_path / f"{len(more)}.passport"), *more,
                ).stdout
            )["memories"]
            for more in ([], ["--include-memories"])
        ]  # fmt: skip
    assert counts == [0, 1]


@pytest.mark.promise("audit.command")
def test_the_audit_log_is_followed_until_interrupted(tmp_path: Path) -> None:
    with serving(tmp_path, "--embedder", "none") as server:
        command = [*PROGRAM, "audit", "tail", "--follow", "--json", "--data", str(tmp_path / "store")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment(tmp_path)) as tail:
            assert tail.stdout is not None
            server.call("create_session", purpose="to be seen", session_id="seen")
            while b'"seen"' not in tail.stdout.readline():
                assert tail.poll() is None
            tail.send_signal(signal.SIGINT)
            tail.stdout.read()
        assert tail.returncode in {0, 130, -signal.SIGINT}
