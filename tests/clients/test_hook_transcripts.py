"""Transcripts of clients: read from where they were told, whatever their writers do to them."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import pytest
from support.hook_inputs import called, line, returned, said, transcript

from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.sessions.requests.hook_events import MAX_TURNS
from greenroom.transports.clients.hooks.dialects import DIALECTS
from greenroom.transports.clients.hooks.spool import ReadOffset
from greenroom.transports.clients.hooks.transcript import (
    MAX_LINE,
    MAX_SCAN,
    MAX_TEXT,
    TranscriptRefusedError,
    check_path,
    read_tail,
)
from greenroom.transports.clients.hooks.turns import RawTurn

PLACE = DIALECTS["claude-code"].transcripts
assert PLACE is not None
pytestmark = pytest.mark.promise("hooks.transcripts")


class Tail(NamedTuple):
    turns: list[RawTurn]
    kept: ReadOffset


def tail(path: Path, kept: ReadOffset | None = None) -> Tail:
    assert PLACE is not None
    return Tail(*read_tail(str(path), PLACE, kept))


def texts(found: Tail) -> list[str]:
    return [turn.text for turn in found.turns]


def checked(named: str | Path, home: Path, **more: str) -> str:
    assert PLACE is not None
    return check_path(str(named), PLACE, {"CLAUDE_CONFIG_DIR": str(home / ".claude"), **more})


# -- where it is ------------------------------------------------------------------------


def test_a_transcript_in_the_clients_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = transcript(tmp_path, said("user", "a"))
    assert checked(path, tmp_path) == str(path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert checked(path, tmp_path, CLAUDE_CONFIG_DIR="") == str(path)


def test_a_folder_of_the_client_that_is_a_link_is_its_folder(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"))
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / ".claude").rename(tmp_path / "dotfiles" / "claude")
    (tmp_path / ".claude").symlink_to(tmp_path / "dotfiles" / "claude")
    assert texts(tail(Path(checked(path, tmp_path)))) == ["a"]


@pytest.mark.parametrize(
    "named",
    [
        "/etc/passwd",
        "HOME/.claude/projects/../../secret.jsonl",
        "HOME/.claude/projects",
        "HOME/.claude/projects/x/link.jsonl",
        "HOME/.claude/projects/folder/secret.jsonl",
        "HOME/.claude/.credentials.json",
        "HOME/.claude/history.jsonl",
        "HOME/.claude/projects-other/a.jsonl",
        "HOME/.claude/projects/x/settings.json",
        "projects/x/a.jsonl",
        "~/.claude/projects/x/a.jsonl",
        "",
        "HOME/.claude/projects/x/\0.jsonl",
    ],
)
def test_any_other_path_is_refused(tmp_path: Path, named: str) -> None:
    (tmp_path / "secret.jsonl").write_text(said("user", "secret"))
    below = tmp_path / ".claude" / "projects" / "x"
    below.mkdir(parents=True)
    (below / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (below.parent / "folder").symlink_to(tmp_path)
    with pytest.raises(TranscriptRefusedError):
        checked(named.replace("HOME", str(tmp_path)), tmp_path)


def test_what_became_a_link_or_a_pipe_meanwhile_is_not_read(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"))
    real = checked(path, tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TranscriptRefusedError, match="not a regular file"):
        tail(Path(real))
    path.unlink()
    (tmp_path / "secret.jsonl").write_text(said("user", "secret"))
    path.symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(OSError, match="symbolic links"):
        tail(Path(real))
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(TranscriptRefusedError, match="symbolic link"):
        tail(Path(real))
    with pytest.raises(FileNotFoundError):
        tail(tmp_path / "never.jsonl")


# -- from where it was told -------------------------------------------------------------


@pytest.mark.promise("hooks.told-once")
def test_each_line_is_told_once_and_a_line_under_way_when_it_is_whole(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"), said("assistant", "b")[:-20])
    first = tail(path)
    assert texts(first) == ["a"]
    assert texts(tail(path, first.kept)) == []
    path.write_text(said("user", "a") + said("assistant", "b") + said("user", "c"))
    second = tail(path, first.kept)
    assert texts(second) == ["b", "c"]
    assert second.kept.offset == path.stat().st_size


@pytest.mark.promise("hooks.told-once")
def test_a_result_is_told_with_its_call_wherever_the_line_of_that_stands(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"), called("Bash", "t1", command="make"))
    first = tail(path)
    path.write_text(
        path.read_text() + returned("t1", "made") + returned("t2", "tested") + returned("t3", "?")
    )
    path.write_text(path.read_text() + called("Bash", "t2", command="test") + said("assistant", "b"))
    found = tail(path, first.kept).turns
    assert [turn.call.command if turn.call else turn.text for turn in found] == ["make", "test", "", "b"]
    assert texts(tail(path)) == ["a", "made", "tested", "?", "b"]


@pytest.mark.promise("hooks.told-once")
def test_a_file_that_was_written_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"), said("user", "b"))
    kept = tail(path).kept
    path.write_text(said("user", "c"))  # shorter
    assert texts(tail(path, kept)) == ["c"]
    path.write_text(said("user", "d") * 20)  # longer
    assert len(tail(path, kept).turns) == 20
    path.write_text("")
    assert tail(path, kept) == Tail([], tail(path).kept)


def test_what_cannot_be_read_is_passed_over_and_the_rest_told(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "a"))
    with path.open("ab") as file:
        file.write(b"\n\xff\xfe\n{]\n[]\nnull\n" + b"\0" * 100 + b"\n")
        file.write(b'{"type":"user","message":{"content":"caf\xe9"}}\n')
        file.write(b'{"type":"user","message":{"content":"half \\ud83d"}}\n')
        file.write(b'{"type":"user","message":' + b"[" * 5_000 + b"\n")
        file.write(said("user", "z").encode())
    assert texts(tail(path)) == ["a", "caf\ufffd", "half \ud83d", "z"]


@pytest.mark.parametrize(
    "tag",
    [
        "ide_selection",
        "ide_opened_file",
        'teammate-message teammate_id="a"',
        'channel source="x"',
        "new-diagnostics",
    ],
)
def test_what_others_said_in_the_persons_name_is_not_told(tmp_path: Path, tag: str) -> None:
    blocks = [
        {"type": "text", "text": f"<{tag}>Always do it.\n</{tag.split(maxsplit=1)[0]}>"},
        {"type": "text", "text": "a"},
    ]
    line = {"type": "user", "message": {"role": "user", "content": blocks}}
    path = transcript(tmp_path, json.dumps(line) + "\n", said("user", f"\n<{tag}>\nx"), said("user", "<p>z"))
    assert texts(tail(path)) == ["a", "<p>z"]


def test_of_a_tail_that_takes_too_long_the_newest_part_is_looked_at(tmp_path: Path) -> None:
    # 64 MiB of short lines take longer than a hook has: it was ended, and the next one began there again.
    silent = said("user", "x" * 1_000_000, isMeta=True)
    path = transcript(tmp_path, said("user", "old"), *[silent] * 17, said("user", "new"))
    found = tail(path)
    assert texts(found) == ["new"]
    assert found.kept.offset == path.stat().st_size


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_is_none_in_utc_is_no_time(tmp_path: Path, written: str) -> None:
    line = {"type": "user", "message": {"content": "a"}, "timestamp": written}
    path = transcript(tmp_path, json.dumps(line) + "\n", said("user", "z"))
    assert [(turn.text, turn.at is None) for turn in tail(path).turns] == [("a", True), ("z", False)]


# -- its bounds -------------------------------------------------------------------------


def test_half_a_gigabyte_and_a_line_of_ten_megabytes_take_little_memory(tmp_path: Path) -> None:
    path = transcript(tmp_path, said("user", "the beginning"))
    with path.open("ab") as file:
        file.truncate(500 << 20)  # one line, with a hole in it
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + said("user", "before").encode())
        file.write(b'{"type":"user","message":{"content":"' + b"x" * (10 << 20) + b'"}}\n')
        file.write(said("user", "after").encode())
    tracemalloc.start()
    try:
        found = tail(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert texts(found) == ["before", "after"]
    assert found.kept.offset == path.stat().st_size
    assert peak < 4 * MAX_LINE
    assert texts(tail(path, found.kept)) == []


def test_of_a_long_tail_the_newest_turns_are_told(tmp_path: Path) -> None:
    path = transcript(tmp_path, *(said("user", f"number {number}") for number in range(2 * MAX_TURNS)))
    assert texts(tail(path)) == [f"number {number}" for number in range(MAX_TURNS, 2 * MAX_TURNS)]
    transcript(tmp_path, *(said("assistant", f"{number} " + "x" * 30_000) for number in range(100)))
    found = texts(tail(path))
    assert sum(map(len, found)) <= MAX_TEXT
    assert found[-1].startswith("99 ")
    assert MAX_SCAN < 500 << 20


def test_of_a_long_text_its_ends_are_told(tmp_path: Path) -> None:
    path = transcript(
        tmp_path, called("Bash", "1", command="begin" + "x" * 100_000 + "end"), returned("1", "y" * 100_000)
    )
    (turn,) = tail(path).turns
    assert turn.call is not None
    assert turn.call.command.startswith("begin")
    assert turn.call.command.endswith("end")
    assert len(turn.call.command) + len(turn.text) < 10_000
    assert truncate_middle("abc", 3) == "abc"
    assert truncate_middle("abc" * 100, 8) == "abc…abc"
    assert truncate_middle("abc", 2) == "ab"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("cli", [False]),
        ("exec", [True]),
        ({"subagent": "review"}, []),
        ({"subagent": {"thread_spawn": {}}}, []),
    ],
)
def test_a_rollout_of_codex_tells_who_wrote_the_prompts(
    source: object, told: list[bool], tmp_path: Path
) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text(line(type="session_meta", payload={"id": "s", "source": source}) + "\n")
    place = DIALECTS["codex"].transcripts
    assert place is not None
    _, kept = read_tail(str(path), place, None)
    with path.open("a") as file:
        file.write(line(type="event_msg", payload={"type": "user_message", "message": "Fix it"}) + "\n")
    found, _ = read_tail(str(path), place, kept)
    assert [turn.by_program for turn in found] == told
