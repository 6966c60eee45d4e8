"""Hooks put into a client's file and taken back, on texts: all else stays, twice is once."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from greenroom.actors.sessions.requests.hook_events import HookName
from greenroom.transports.clients.setup import json_text
from greenroom.transports.clients.setup.change import SetupError
from greenroom.transports.clients.setup.hook_files import (
    are_off,
    hook_entries,
    hooks_path,
    put_in,
    stray_events,
    take_out,
)
from greenroom.transports.clients.table import HOOK_CLIENTS

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


def commented(value: object, indent: int | None, comment: str, trailing: str) -> str:
    """Write a value as JSON with comments at its two ends and behind each line, and trailing commas."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if indent and comment:
        lines = [re.sub(r": \[\](,?)$", rf": [{comment}\n]\1", line) for line in text.split("\n")]
        closed = [
            more.strip()[:1] in {"}", "]"} and line[-1] in '"}]' for line, more in pairwise([*lines, ""])
        ]
        text = "\n".join(
            f"{line}{trailing if last else ''}{comment}" for line, last in zip(lines, closed, strict=True)
        )
    return f"// head , }}\n{text}\n/* end */\n"


def windows(text: str | None) -> str | None:
    return text and text.replace("\n", "\r\n")


FILES = (
    st.none()
    | st.just("")
    | st.builds(
        commented,
        DOCUMENTS,
        st.sampled_from([None, 2]),
        st.sampled_from(["", " // c, ]", " /* c */"]),
        st.sampled_from(["", ","]),
    )
)
FILES |= FILES.map(windows)


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
    assert take_out(name, record.written, record) == text


@given(name=st.sampled_from(sorted(HOOK_CLIENTS)), text=FILES)
def test_what_is_taken_out_of_an_edited_file_is_ours_alone(name: str, text: str | None) -> None:
    record = put_in(name, text, hook_entries(name, COMMAND), None)
    left = take_out(name, record.written + "\n// added\n", record)
    assert left is not None
    assert left.endswith("// added\n")
    assert "greenroom" not in left
    assert comments(left) == comments(text or "")
    assert json_text.parse(left) == (json_text.parse(text) if text else HOOK_CLIENTS[name].start)


def test_a_comment_stays_behind_what_it_is_about() -> None:
    text = '{"hooks": {"stop": [\n  {"command": "x"} // mine\n]}}'
    record = put_in("cursor", text, hook_entries("cursor", COMMAND), None)
    assert '{"command": "x"}, // mine\n' in record.written
    assert take_out("cursor", f"{record.written}\n", record) == f"{text}\n"


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
        hooks["Stop"].append(copy.deepcopy(hooks["Stop"][0]))
        hooks["Stop"][0]["hooks"].insert(0, mine)
        hooks["SessionEnd"][0]["matcher"] = "clear"
        hooks["PreCompact"].insert(0, {"hooks": [mine]})
        del hooks["SessionStart"]

    left = take_out("claude-code", changed(record.written, change), record)
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [{"hooks": [mine]}], "PreCompact": [{"hooks": [mine]}]}}


def test_a_hook_of_ours_that_was_changed_is_left_and_named() -> None:
    entries = hook_entries("gemini", COMMAND)
    record = put_in("gemini", "{}", entries, None)
    text = changed(record.written, lambda hooks: hooks["AfterAgent"][0]["hooks"][0].update(timeout=1))
    assert stray_events("gemini", text, entries) == (["AfterAgent"], ["AfterAgent"])
    for refused in (
        lambda: take_out("gemini", text, record),
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
    assert take_out("cursor", new.written, new) == text


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


def test_hooks_are_where_the_client_looks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for client in HOOK_CLIENTS.values():
        if client.variable is not None:
            monkeypatch.delenv(client.variable[0], raising=False)
    files = [".claude/settings.json", ".cursor/hooks.json", ".codex/hooks.json", ".gemini/settings.json"]
    assert [hooks_path(name) for name in HOOK_CLIENTS] == [tmp_path / file for file in files]
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")
    assert str(hooks_path("codex")) == "/elsewhere/hooks.json"


class CommandHook(msgspec.Struct, tag="command", forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[int, Meta(gt=0)]


class Group(msgspec.Struct, forbid_unknown_fields=True):
    hooks: Annotated[list[CommandHook], Meta(min_length=1)]
    matcher: str = ""


class CursorHook(msgspec.Struct, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1)]
    timeout: Annotated[int, Meta(gt=0)]
    matcher: str = ""


CLAUDE = "SessionStart UserPromptSubmit PreCompact PostToolUse Stop SessionEnd"
PUBLISHED = {
    # The JSON Schema Store's schemas, and what each program's own list of events has
    "claude-code": (CLAUDE, Group),
    "codex": (CLAUDE, Group),
    # schemas/settings.schema.json of Gemini CLI
    "gemini": ("SessionStart BeforeAgent PreCompress AfterTool AfterAgent SessionEnd", Group),
    # Cursor's page of hooks
    "cursor": ("sessionStart preCompact postToolUse stop sessionEnd", CursorHook),
}
"""What the published schemas allow, as of August 2026: events, and what is in their lists."""


@pytest.mark.parametrize("name", HOOK_CLIENTS)
def test_what_is_written_is_what_the_published_schemas_allow(name: str) -> None:
    written = json.loads(put_in(name, None, hook_entries(name, COMMAND), None).written)
    events, item = PUBLISHED[name]
    assert written.pop("version", None) == (1 if name == "cursor" else None)
    assert set(written) == {"hooks"}
    assert set(written["hooks"]) <= set(events.split())
    for items in written["hooks"].values():
        assert msgspec.convert(items, list[item])  # type: ignore[valid-type]
