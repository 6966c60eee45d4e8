"""Hooks put into a client's file and taken back, on texts: all else stays, twice is once."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.schemas.hooks import HookName
from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.setup import json_text
from greenroom.transports.setup.change import SetupError
from greenroom.transports.setup.hook_files import are_off, hook_entries, put_in, stray_events, taken_out

pytestmark = pytest.mark.promise("cli.setup-hooks")

COMMAND = ['/a b/it\'s "here"/greenroom']
EVENTS = sorted({event.name for client in HOOK_CLIENTS.values() for event in client.events.values()})
TEXTS = st.text('ab:#/*,{}[]"\\é\n', max_size=8)
OTHERS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"command": TEXTS}, optional={"timeout": st.integers(1, 9)}),
        st.fixed_dictionaries(
            {
                "hooks": st.lists(
                    st.fixed_dictionaries({"type": st.just("command"), "command": TEXTS}), max_size=2
                )
            },
            optional={"matcher": TEXTS},
        ),
    ),
    max_size=3,
)
HOOKS = st.dictionaries(st.sampled_from([*EVENTS, "Notification"]), OTHERS, max_size=4)
DOCUMENTS = st.tuples(st.dictionaries(TEXTS.map("x".__add__), TEXTS, max_size=2), st.none() | HOOKS).map(
    lambda drawn: drawn[0] if drawn[1] is None else {"hooks": drawn[1], **drawn[0]}
)


def commented(value: object, indent: int | None, comment: str) -> str:
    """Write a value as JSON with comments at its two ends; with one behind each line, trailing commas too."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if indent and comment:
        lines = [re.sub(r": \[\](,?)$", rf": [{comment}\n]\1", line) for line in text.split("\n")]
        closed = [
            more.strip()[:1] in {"}", "]"} and line[-1] in '"}]' for line, more in pairwise([*lines, ""])
        ]
        text = "\n".join(
            f"{line}{',' if last else ''}{comment}" for line, last in zip(lines, closed, strict=True)
        )
    return f"// head , }}\n{text}\n/* end */\n"


FILES = (
    st.none()
    | st.just("")
    | st.builds(
        commented, DOCUMENTS, st.sampled_from([None, 2]), st.sampled_from(["", " // c, ]", " /* c */"])
    )
)


def comments(text: str) -> int:
    return sum(text.count(each) for each in ("// c, ]", "/* c */", "// head", "/* end */"))


@given(name=st.sampled_from(sorted(HOOK_CLIENTS)), text=FILES)
def test_put_twice_is_once_and_taken_out_is_the_same_bytes(name: str, text: str | None) -> None:
    entries = hook_entries(name, COMMAND)
    record = put_in(name, text, entries, None)
    assert put_in(name, record.written, entries, record) == record
    assert put_in(name, record.written, entries, None).written == record.written
    assert stray_events(name, record.written, entries) == ([], [])
    before, after = json_text.parse(text or ""), json_text.parse(record.written)
    for event, entry in entries.items():
        assert after["hooks"][event] == [*before.get("hooks", {}).get(event, []), entry]
    assert comments(record.written) == comments(text or "")
    assert taken_out(name, record.written, record) == text


@given(name=st.sampled_from(sorted(HOOK_CLIENTS)), text=FILES)
def test_what_is_taken_out_of_an_edited_file_is_ours_alone(name: str, text: str | None) -> None:
    record = put_in(name, text, hook_entries(name, COMMAND), None)
    left = taken_out(name, record.written + "\n// added\n", record)
    assert left is not None
    assert left.endswith("// added\n")
    assert "greenroom" not in left
    assert comments(left) == comments(text or "")
    assert json_text.parse(left) == (json_text.parse(text) if text else HOOK_CLIENTS[name].start)


def changed(text: str, change: Callable[[Any], object]) -> str:
    """Change a file as another program does that writes all of it anew."""
    value = json.loads(text)
    change(value["hooks"])
    return json.dumps(value)


def test_what_others_put_into_our_group_or_our_list_stays() -> None:
    entries = hook_entries("claude-code", COMMAND)
    mine = {"type": "command", "command": "mine"}
    record = put_in("claude-code", None, entries, None)

    def change(hooks: Any) -> None:
        hooks["Stop"][0]["hooks"].insert(0, mine)
        hooks["SessionEnd"][0]["matcher"] = "clear"
        hooks["PreCompact"].insert(0, {"hooks": [mine]})
        del hooks["SessionStart"]

    left = taken_out("claude-code", changed(record.written, change), record)
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [{"hooks": [mine]}], "PreCompact": [{"hooks": [mine]}]}}


def test_a_hook_of_ours_that_was_changed_is_left_and_named() -> None:
    entries = hook_entries("gemini", COMMAND)
    record = put_in("gemini", "{}", entries, None)
    text = changed(record.written, lambda hooks: hooks["AfterAgent"][0]["hooks"][0].update(timeout=1))
    assert stray_events("gemini", text, entries) == (["AfterAgent"], ["AfterAgent"])
    for refused in (
        lambda: taken_out("gemini", text, record),
        lambda: put_in("gemini", text, entries, record),
    ):
        with pytest.raises(SetupError, match=r"under AfterAgent .* has been changed since"):
            refused()
    with pytest.raises(SetupError, match=r"under SessionStart that this command did not write"):
        put_in("gemini", record.written, hook_entries("gemini", ["/elsewhere/greenroom"]), None)


def test_a_program_that_moved_takes_the_place_of_the_old_one() -> None:
    text = '{"hooks": {"stop": [{"command": "mine"}]}}'
    old = put_in("cursor", text, hook_entries("cursor", ["/old/greenroom"]), None)
    entries = hook_entries("cursor", ["/new/greenroom"], ["--data", "/d"])
    new = put_in("cursor", old.written, entries, old)
    assert "/old/" not in new.written
    assert json.loads(new.written)["hooks"]["stop"] == [{"command": "mine"}, entries["stop"]]
    assert taken_out("cursor", new.written, new) == text


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": null}', '{"a": 1, "a": 2}']
)
def test_what_has_another_form_is_left_alone(text: str) -> None:
    with pytest.raises(SetupError, match="left alone"):
        put_in("codex", text, hook_entries("codex", COMMAND), None)


def test_a_plugin_that_has_the_hooks_and_a_switch_that_is_off_are_seen() -> None:
    entries = hook_entries("claude-code", COMMAND)
    with pytest.raises(SetupError, match="has the plugin"):
        put_in("claude-code", '{"enabledPlugins": {"greenroom@greenroom": true}}', entries, None)
    assert put_in("claude-code", '{"enabledPlugins": {"greenroom@greenroom": false}}', entries, None)
    assert are_off("claude-code", '{"disableAllHooks": true}')
    assert not are_off("claude-code", '{"disableAllHooks": false}')
    assert are_off("gemini", '{"hooksConfig": {"enabled": false}}')
    assert not are_off("gemini", '{"hooksConfig": 0}')
    assert not are_off("codex", "")


def test_every_hook_is_an_event_of_every_client_where_it_is_of_use() -> None:
    for name, client in HOOK_CLIENTS.items():
        without = {"cursor": {"user-prompt"}, "gemini": set()}.get(name, {"post-tool"})
        assert set(client.events) == set(get_args(HookName)) - without
        assert len({event.name for event in client.events.values()}) == len(client.events)


def test_a_shell_starts_the_program_of_the_command_with_its_arguments(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / 'it\'s "$HERE" `x`'
    folder.mkdir(parents=True)
    program = folder / "greenroom"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o700)
    entry = hook_entries("claude-code", [str(program)], ["--data", str(folder)])["Stop"]
    typed = ["/bin/sh", "-c", entry["hooks"][0]["command"]]
    done = subprocess.run(typed, capture_output=True, text=True, check=True)
    options = ["--client", "claude-code", "--agent", "claude-code", "--data", str(folder)]
    assert done.stdout.split("|") == ["hook", "stop", *options, ""]
