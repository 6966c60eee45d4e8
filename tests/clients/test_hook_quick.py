"""`greenroom hook` without the rest of the program: what it imports, and that it does what the whole does."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import clean_environment
from support.commands import Server, run_on_store, serving
from support.forking import forked_program
from support.hook_inputs import KEY, STOPS, said, transcript

from greenroom.transports.base.config.load import resolve
from greenroom.transports.clients.hooks.failures import failures_of
from greenroom.transports.clients.hooks.spool import names_in, read_entry

pytestmark = pytest.mark.slow

HEAVY = {"msgspec", "trio", "argparse", "numpy", "lmdb", "platformdirs", "dataclasses"}
START = {"session_id": "s", "source": "startup"}
NOTED = {"session_id": "s", "trigger": "manual"}
"""A compaction, which is told though nothing was said."""


def run(
    home: Path,
    *arguments: str,
    told: object = NOTED,
    program: list[str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    content = told if isinstance(told, str) else json.dumps(told)
    return subprocess.run(
        [*(program or forked_program()), *arguments],
        input=content,
        env=clean_environment(home, **(variables or {})),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )


def imported(home: Path, *arguments: str, told: object = NOTED) -> set[str]:
    """Run a command as people start it; return the top names of what it imports."""
    program = [sys.executable, "-X", "importtime", "-m", "greenroom.transports.cli"]
    found = run(home, *arguments, told=told, program=program)
    assert found.stdout.startswith(("{", "greenroom "))
    return set(re.findall(r"\| +(\w+)(?=\.|$)", found.stderr, re.MULTILINE))


def messages(server: Server) -> list[str]:
    return [
        message["content"]
        for session in server.call("list_sessions")["sessions"]
        for message in server.call("get_messages", session_id=session["session_id"])["messages"]
    ]


def wait_for(server: Server, text: str) -> list[str]:
    for _ in range(5_000):
        found = messages(server)
        if any(text in each for each in found):
            return found
    raise AssertionError(f"no session has {text!r}")


# -- what it imports -------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.promise("hooks.light")
def test_a_hook_imports_next_to_nothing(tmp_path: Path) -> None:
    whose = ("--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60")
    assert not imported(tmp_path, "--version") & (HEAVY | {"json", "importlib.metadata"})
    told = STOPS["claude-code"] | {"transcript_path": str(transcript(tmp_path, said("user", KEY)))}
    alone = imported(tmp_path, "hook", "stop", *whose, told=told)
    assert len(names_in(tmp_path / "store")) == 1
    assert not alone & (HEAVY - {"msgspec", "platformdirs"}), "of an event"
    with serving(tmp_path, "--user", "ann", "--embedder", "none"):
        for name in ("session-start", "user-prompt", "pre-compact", "post-tool", "stop", "session-end"):
            found = imported(tmp_path, "hook", name, *whose, told=told | {"prompt": "Which tabs?"})
            assert not found & (HEAVY | {"datetime", "hashlib", "typing", "pathlib"}), name


# -- that it does the same ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        ([], {}),
        ([], dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"), "")),
        ([], {"XDG_DATA_HOME": "{home}/data", "LOGNAME": "bob"}),
        ([], {"GREENROOM_DATA": "elsewhere", "GREENROOM_USER": "ben", "GREENROOM_AGENT": "a-1"}),
        (["--data", "there/../store", "--user=Ann B.", "--agent-type", "coder"], {"GREENROOM_USER": "ben"}),
        (["--project", "x"], {"GREENROOM_AGENT_TYPE": "t"}),
        ([], {"GREENROOM_PROJECT": "x, y,x"}),
        (["--client", "gemini", "--limit", "59.5"], {"GREENROOM_USER": ""}),
        (["--project", "x", "--project", "y"], {"GREENROOM_LOG_LEVEL": "debug"}),
        (["--data", "~/store"], {"XDG_CONFIG_HOME": "{home}/none"}),
        (["--config", "config.toml"], {}),
        ([], {"GREENROOM_CONFIG": "config.toml"}),
    ],
)
def test_flags_and_variables_mean_what_they_mean_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], variables: Mapping[str, str]
) -> None:
    (tmp_path / "config.toml").write_text('user = "of the file"\n')
    variables = {name: value.format(home=tmp_path) for name, value in variables.items()}
    run(tmp_path, "hook", "pre-compact", *flags, variables=variables)
    monkeypatch.chdir(tmp_path)
    environment = clean_environment(tmp_path, **variables)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, environment.get(name, ""))
    given: dict[str, Any] = {}
    rest = iter(part for flag in flags for part in flag.split("=", 1))
    for flag in rest:
        key, value = flag[2:].replace("-", "_"), next(rest)
        given[key] = [*given.get(key, []), value] if key == "project" else value
    settings = resolve(given, environment).settings
    (name,) = names_in(settings.data)
    entry = read_entry(settings.data, name)
    assert entry.event.client == given.get("client", "claude-code")
    assert entry.principal.agent_id == settings.agent or entry.event.client
    assert entry.principal.agent_type == settings.agent_type
    assert entry.principal.user == settings.user
    assert entry.principal.projects == (frozenset(settings.project) or None)
    assert entry.event.folder == str(tmp_path)


@pytest.mark.promise("hooks.told-once", "hooks.spool")
def test_what_a_suspended_owner_was_asked_to_do_is_done_once(tmp_path: Path) -> None:
    whose = ("--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60")
    with serving(tmp_path, "--user", "ann", "--agent", "gemini", "--embedder", "none") as server:
        server.process.send_signal(signal.SIGSTOP)
        try:
            run(tmp_path, "hook", "stop", "--client", "gemini", *whose, told=STOPS["gemini"])
            assert len(names_in(tmp_path / "store")) == 1
        finally:
            server.process.send_signal(signal.SIGCONT)
        run(tmp_path, "hook", "pre-compact", "--client", "gemini", *whose, told=NOTED)
        assert wait_for(server, "I will.").count("I will.") == 1


@pytest.mark.promise("hooks.told-once")
def test_an_event_keeps_the_id_under_which_an_owner_was_asked_to_take_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "greenroom.mdb").touch()
    asked: list[dict[str, Any]] = []

    def answer_nothing(listener: socket.socket) -> None:
        for _ in range(2):  # a run of a hook, and the note that an event waits
            connection, _name = listener.accept()
            with connection, connection.makefile("rb") as lines:
                asked.append(json.loads(lines.readline()))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "control.sock"))
        listener.listen()
        owner = threading.Thread(target=answer_nothing, args=[listener], daemon=True)
        owner.start()
        run(tmp_path, "hook", "pre-compact", "--data", str(folder), "--limit", "60")
        owner.join()
    (name,) = names_in(folder)
    assert [each["op"] for each in asked] == ["run_hook", "drain"]
    assert asked[0]["event_id"] == read_entry(folder, name).event.id


@pytest.mark.promise("hooks.told-once")
def test_more_than_an_owner_reads_is_told_all_the_same(tmp_path: Path) -> None:
    whose = ("--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60")
    much = [said("assistant", f"{number} " + "long " * 1_000) for number in range(60)]
    told = STOPS["claude-code"] | {
        "transcript_path": str(transcript(tmp_path, said("user", "Use tabs."), *much))
    }
    with serving(tmp_path, "--user", "ann", "--agent", "claude-code", "--embedder", "none") as server:
        run(tmp_path, "hook", "stop", *whose, told=told)
        assert wait_for(server, "Use tabs.")


@pytest.mark.promise("hooks.never-silent", "hooks.transcripts")
def test_what_the_owner_refuses_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whose = ("--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60")
    monkeypatch.setenv("HOME", str(tmp_path))
    elsewhere = tmp_path / "secret.jsonl"
    elsewhere.write_text(said("user", "a secret"))
    with serving(tmp_path, "--user", "ann", "--agent", "claude-code", "--embedder", "none") as server:
        told = STOPS["claude-code"] | {"transcript_path": str(elsewhere)}
        assert run(tmp_path, "hook", "stop", *whose, told=told).stdout == "{}\n"
        assert "is no .jsonl file in" in failures_of(tmp_path / "store").last_sentence
        told_next = run(tmp_path, "hook", "session-start", *whose, told=START).stdout
        assert json.loads(told_next)["systemMessage"].startswith("Greenroom: a hook failed")
        told_once = run(tmp_path, "hook", "session-start", *whose, told=START | {"session_id": "t"})
        assert "systemMessage" not in told_once.stdout
        assert messages(server) == []


def test_the_owner_looks_for_transcripts_where_the_hook_would(tmp_path: Path) -> None:
    home = tmp_path / "other"
    path = transcript(home, said("user", f"Use {KEY}."))
    with serving(tmp_path, "--user", "ann", "--agent", "claude-code", "--embedder", "none") as server:
        run(
            home,
            *("hook", "stop", "--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60"),
            told=STOPS["claude-code"] | {"transcript_path": str(path)},
        )
        (message,) = wait_for(server, "Use ")
        assert KEY not in message
        assert "[secret left out: " in message


def test_texts_and_answers_are_the_same_with_and_without_an_owner(tmp_path: Path) -> None:
    known = tmp_path / "known.jsonl"
    known.write_text(
        json.dumps({"key": "café", "content": "Das Café heißt „Löwe“ 🦁.", "tags": ["decision"]})
    )
    run_on_store(tmp_path, "import", str(known), "--user", "ann", "--embedder", "none")
    whose = ("--data", str(tmp_path / "store"), "--user", "ann", "--limit", "60")
    here, there = ({"session_id": each, "cwd": f"/srv/{each}"} for each in "st")  # each a project's first
    alone = run(tmp_path, "hook", "session-start", *whose, told=here).stdout
    with serving(tmp_path, "--user", "ann", "--embedder", "none"):
        owned = run(tmp_path, "hook", "session-start", *whose, told=there).stdout
    of = [
        re.sub(r"greenroom-notes-\w+", "", each).replace(
            "\\n(Greenroom: partial, since it was found by words alone.)", ""
        )
        for each in (alone, owned)
    ]
    assert "Löwe“ 🦁" in of[0]
    assert of[0] == of[1]
