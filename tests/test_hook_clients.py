"""Real clients start what `greenroom setup --hooks` writes for them, and pass on what it answers."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from conformance import node
from harness import clean_environment
from support.model_stand_in import SAID, StandIn, model_stand_in

from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.setup.hook_files import hook_entries, put_in

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup-hooks")]

PROVIDER = 'model_providers.x={{name="x",base_url="{}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'


def asking(name: str, model: StandIn) -> list[list[str]]:
    """Return the arguments with which a client is asked something, and told to make its history shorter."""
    claude = ["--allowedTools", "Bash", "-p"]
    gemini = ["--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"]
    codex = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    codex += ["--dangerously-bypass-approvals-and-sandbox", "-m", "x", "-c", 'model_provider="x"', "-c"]
    return {
        "claude-code": [[*claude, "hi there"], [*claude, "-c", "/compact"]],
        "codex": [[*codex, PROVIDER.format(model.url), "hi there"]],
        "gemini": [[*gemini, "-p", "hi there"], [*gemini, "-r", "latest", "-p", "/compress"]],
    }[name]


def run(name: str, home: Path, model: StandIn, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "none")
    urls = dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), model.url)
    return subprocess.run(
        [*node.command(name), *arguments],
        cwd=home,
        env=clean_environment(home, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", **keys, **urls),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def recorder(name: str, log: Path) -> str:
    """Return a program that notes what it is started with and told, and answers what asks, the first time."""
    answers = []
    for hook in ("session-start", "user-prompt"):
        said = {"hookEventName": HOOK_CLIENTS[name].events[hook].name, "additionalContext": f"KNOWN: {hook}."}
        answers.append(f"{hook}) echo {shlex.quote(json.dumps({'hookSpecificOutput': said}))} ;;")
    kept = shlex.quote(str(log))
    note = f"line=\"$* $(tr -d '\\n')\"; printf '%s\\n' \"$line\" >> {kept}"  # at once: hooks may overlap
    # Gemini CLI puts the first answer before the prompt, which is no command any more.
    silent = f"grep -q 'hook session-end' {kept} && exit"
    return "\n".join(["#!/bin/sh", note, silent, "case $2 in", *answers, "esac", ""])


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_each_hook_is_started_at_its_event_and_its_answer_reaches_the_model(
    tmp_path: Path, name: str
) -> None:
    program, log = tmp_path / 'it\'s a "program"' / "greenroom", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(recorder(name, log))
    program.chmod(0o700)
    path = tmp_path / HOOK_CLIENTS[name].file
    path.parent.mkdir()
    signed_in = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' if name == "gemini" else None
    path.write_text(put_in(name, signed_in, hook_entries(name, [str(program)]), None).written)
    with model_stand_in() as model:
        runs = [run(name, tmp_path, model, arguments) for arguments in asking(name, model)]
    assert [done.returncode for done in runs] == [0] * len(runs), [done.stderr for done in runs]
    assert SAID in runs[0].stdout
    assert "clamping" not in runs[0].stderr
    started = [line.partition(" {") for line in log.read_text().splitlines()]
    told = [(arguments.split(), json.loads("{" + rest)) for arguments, _, rest in started]
    events = {hook: event.name for hook, event in HOOK_CLIENTS[name].events.items()}
    for arguments, event in told:
        limit = ["--limit", "2"] if arguments[1] == "session-end" else []
        assert arguments == ["hook", arguments[1], "--client", name, "--agent", name, *limit]
        assert events[arguments[1]] == event["hook_event_name"]
    hooks = [arguments[1] for arguments, _ in told]
    order = ["session-start", "user-prompt", "post-tool", "stop", "session-end"]
    first = [hook for hook in order if hook in events]
    assert hooks[: len(first)] == first
    assert set(hooks) == set(events) - ({"pre-compact"} if name == "codex" else set())
    asked = json.dumps(model.asked[0])
    assert "KNOWN: session-start." in asked
    assert "KNOWN: user-prompt." in asked
