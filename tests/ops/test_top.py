"""`greenroom top`: what it shows of a running server, and what it does without one."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from harness import server_process
from support.programs import running

from greenroom.transports.ops.cli.support.terminal import folded, printable, width
from greenroom.transports.ops.cli.support.top_screen import (
    GaugeGroup,
    GaugeRow,
    Sample,
    bars,
    groups,
    line,
    plain,
    rates,
    tables,
)

ALTERNATE_SCREEN = "\x1b[?1049h"
ORDINARY_SCREEN = "\x1b[?1049l"
DISPOSING = """\
import os, signal, sys
if "top" in sys.argv:
    from greenroom.transports.ops.control import client
    look = client.call

    class Interrupted:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)

    def call(*arguments, **more):
        Interrupted()
        return look(*arguments, **more)

    client.call = call
"""
"""Presses Ctrl-C while an object is disposed of, where Python drops every exception."""


def store(home: Path) -> list[str]:
    return ["--data", str(home / "store"), "--interval", "0.05"]


@pytest.mark.promise("cli.top")
async def test_a_pipe_gets_a_line_for_each_look_and_a_server_that_went_is_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path, "top", *store(tmp_path)) as top:
        assert "waiting for one" in await top.line_with(f"no server uses {tmp_path / 'store'}")
        async with server_process(tmp_path) as server:
            assert "waiting 0" in await top.line_with("handled ")
            server.process.kill()
            await top.line_with("no server uses")
        async with server_process(tmp_path):
            await top.line_with("handled ")
            assert await top.interrupt() == 0
    assert "\x1b" not in top.printed
    assert "Traceback" not in top.printed
    # Waiting is said once, not at every look.
    assert top.printed.count("no server uses") == 2


@pytest.mark.promise("cli.top")
async def test_what_the_server_does_is_in_the_figures(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        async with running(tmp_path, "top", "--json", *store(tmp_path)) as top:
            first = json.loads(await top.line_with('"running"'))
            assert first["per_second"]["handled"] is None
            await server.client.call("create_session", purpose="seen from above")
            looks = [first]
            while looks[-1]["store"]["commits"] == 0:  # handled in one frame, committed in the next
                looks.append(json.loads(await top.line_with('"running"')))
            assert any((look["per_second"]["handled"] or 0) > 0 for look in looks)
            assert looks[-1]["per_second"]["commits"] > 0
            assert looks[-1]["store"]["commits"] == 1
            server.process.kill()
            while (look := json.loads(await top.line_with('"running"')))["running"]:
                pass
            assert "no server uses" in look["reason"]


@pytest.mark.quick
@pytest.mark.promise("cli.top")
async def test_once_prints_one_frame_or_says_that_there_is_no_server(tmp_path: Path) -> None:
    async with running(tmp_path, "top", "--once", *store(tmp_path)) as top:
        assert await top.end() == 1
    assert top.printed == f"greenroom top: no server uses {tmp_path / 'store'}\n"
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        for arguments in (["--once"], ["--once", "--json"]):
            async with running(tmp_path, "top", *arguments, *store(tmp_path), terminal=True) as top:
                assert await top.end() == 0
            assert "subscribers" in top.printed
            assert "\x1b" not in top.printed


@pytest.mark.promise("cli.top")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_terminal_gets_a_screen_and_gets_its_own_back(tmp_path: Path, number: signal.Signals) -> None:
    async with (
        server_process(tmp_path) as server,
        running(tmp_path, "top", *store(tmp_path), terminal=True) as top,
    ):
        await top.until(ALTERNATE_SCREEN)
        await server.client.initialize()
        await top.until("a server uses")
        await top.until("slow or wrong")
        server.process.kill()
        await top.until("no server uses")
        top.process.send_signal(number)
        assert await top.end() == 0
        assert ORDINARY_SCREEN in top.printed
        assert "Traceback" not in top.printed


@pytest.mark.promise("cli.top")
async def test_ctrl_c_ends_it_whatever_it_is_at(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(DISPOSING)
    async with running(tmp_path, "top", *store(tmp_path), terminal=True, PYTHONPATH=str(tmp_path)) as top:
        assert await top.end() == 0
    assert "Exception ignored in" in top.printed
    assert ORDINARY_SCREEN in top.printed


@pytest.mark.promise("cli.top")
async def test_q_ends_it_and_the_terminal_is_as_it_was(tmp_path: Path) -> None:
    async with (
        server_process(tmp_path),
        running(tmp_path, "top", *store(tmp_path), terminal=True, keyboard=True) as top,
    ):
        await top.until(ALTERNATE_SCREEN)
        await top.until("a server uses")
        assert top.modes() != top.modes_before
        await top.press("xq")
        assert await top.end() == 0
        assert ORDINARY_SCREEN in top.printed
        assert top.modes() == top.modes_before


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan"])
async def test_an_interval_that_is_none_is_refused(tmp_path: Path, seconds: str) -> None:
    async with running(tmp_path, "top", f"--interval={seconds}") as top:
        assert await top.end() == 2
    assert "--interval" in top.printed


# -- what is computed -----------------------------------------------------------


NOTHING_YET: dict[str, dict[str, Any]] = {
    "actors": {
        "resident": 0,
        "resident_bytes": 0,
        "activations": 0,
        "passivations": 0,
        "restarts": 0,
        "set_aside": [],
    },
    "messages": {
        "waiting": 0,
        "handled": 0,
        "refused": 0,
        "failed": 0,
        "expired": 0,
        "abandoned": 0,
        "overloaded": 0,
        "not_committed": 0,
        "timers_fired": 0,
        "dead_letters": 0,
    },
    "dispatcher": {"ready": 0, "longest_slice_ms": 0.0},
    "commits": {"collected": 0, "in_flight": 0},
    "bus": {"subscribers": 0, "subscriptions": 0, "topics": 0, "waiting": 0, "published": 0, "told": 0},
    "store": {
        "used_bytes": 0,
        "map_bytes": 1 << 30,
        "file_bytes": 0,
        "disk_free": 0,
        "rows": 0,
        "commits": 0,
        "works": 0,
        "last_commit_seconds": 0.0,
        "max_commit_seconds": 0.0,
        "scans": 0,
    },
}


def look(moment: float, **changed: dict[str, Any]) -> Sample:
    """Return a look at a server that has done nothing yet, but for what is changed."""
    return Sample(moment, {part: values | changed.get(part, {}) for part, values in NOTHING_YET.items()})


def test_rates_are_differences_over_the_time_between() -> None:
    before, now = look(10, store={"works": 100}), look(12, store={"works": 300, "commits": 3})
    assert rates(now, before)["works"] == 100
    assert rates(now, before)["commits"] == 1.5
    assert "1.5/s" in plain(groups(now, before))


def test_connections_are_counted_by_transport() -> None:
    now = look(10)
    assert shown(now, "connected") == "-"
    now.figures["websocket"] = {"connections": 4096, "accepted": 5000, "refused": 1}
    assert shown(now, "connected") == "4,096 ws"
    now.figures["http"] = {"connections": 12, "accepted": 12, "refused": 0, "overdue": 0, "sessions": 3}
    assert shown(now, "connected") == "4,096 ws, 12 http"


@pytest.mark.quick
@pytest.mark.promise("sharing.operator")
def test_who_shares_the_folder_is_shown_and_who_gives_no_sign_is_alarming() -> None:
    alone = {
        "role": "owner",
        "owner_pid": 40123,
        "attached_pids": [],
        "takeovers": 0,
        "unanswered": 0,
        "oldest_seconds": 0.0,
        "silent_seconds": 0,
    }
    now = look(10)
    now.figures["relay"] = alone
    assert [shown(now, name) for name in ("owner", "attached", "their ids")] == ["40123", "0", "-"]
    now.figures["relay"] = alone | {"attached_pids": [1, 2, 3, 4, 50001], "unanswered": 4096}
    assert shown(now, "attached") == "5"
    assert shown(now, "their ids") == "1 2 3 and 2 more"
    assert shown(now, "relayed, waiting") == "4,096"
    assert "silent" not in line(now, None)
    now.figures["relay"] = alone | {"attached_pids": [1], "silent_seconds": 5}
    assert "silent attached 5 s" in line(now, None)


def shown(now: Sample, name: str) -> str:
    """Return the value of a gauge."""
    (value,) = (gauge.value for group in groups(now, None) for gauge in group.gauges if gauge.name == name)
    return value


def test_the_rates_of_a_server_that_was_restarted_are_not_known() -> None:
    before, now = look(10, store={"works": 100}), look(12, store={"works": 3})
    assert set(rates(now, before).values()) == {None}
    assert set(rates(now, None).values()) == {None}
    assert "-/s" in line(now, before)


def test_troubles_are_named_in_the_line_and_only_then() -> None:
    assert "dead letters" not in line(look(1), None)
    wrong = look(
        1,
        messages={"dead_letters": 2, "overloaded": 3},
        actors={"set_aside": ["session/a\x1b[2J", "b", "c", "d"]},
        dispatcher={"longest_slice_ms": 1234.5},
        store={"used_bytes": 1 << 30},
    )
    said = line(wrong, None)
    for trouble in (
        "dead letters 2",
        "overloaded 3",
        "longest slice 1,234.5 ms",
        "used 1.0 GiB",
        "set aside session/a␛[2J, b, c and 1 more",
    ):
        assert trouble in said


def unpainted(text: str, *_styles: str) -> str:
    return text


@pytest.mark.parametrize(("columns", "beside"), [(20, 1), (39, 1), (78, 1), (79, 2), (119, 3), (200, 5)])
def test_groups_stand_side_by_side_as_far_as_there_is_room(columns: int, beside: int) -> None:
    group = GaugeGroup(
        "store", [GaugeRow("used", "1 B"), GaugeRow("set aside", "session/\u6771\u4eac " * 5, True)]
    )
    lines = list(tables([group] * beside, columns, unpainted))
    assert lines[0].split() == ["store"] * beside
    assert lines[1].split() == ["used", "1", "B"] * beside
    assert {width(each) for each in lines} == {40 * beside - 1}
    assert "".join("".join(each[:39].split()) for each in lines[2:]).startswith(
        "setasidesession/\u6771\u4eac"
    )
    assert len(list(tables([group] * (beside + 1), columns, unpainted))) == 2 * len(lines)


def test_a_text_is_folded_by_the_columns_that_it_takes() -> None:
    assert folded("", 3) == [""]
    assert folded("abcdefg", 3) == ["abc", "def", "g"]
    assert folded("a\u6771\u4eace\u0301f", 3) == ["a\u6771", "\u4eace\u0301", "f"]
    assert [width(text) for text in ("ab", "\u6771", "e\u0301")] == [2, 2, 1]


def test_bars_are_as_high_as_their_share_of_the_highest() -> None:
    assert bars([]) == ""
    assert bars([0, 0]) == "  "
    assert bars([0, 0.1, 4, 8]) == " ▁▄█"


@pytest.mark.quick
@pytest.mark.promise("cli.untrusted-text")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢 👩\N{ZERO WIDTH JOINER}🚀", "plain é 漢 👩\N{ZERO WIDTH JOINER}🚀"),
        ("\x1b]0;title\x07\x1b[2J", "␛]0;title␇␛[2J"),
        ("two\nlines\r\tx", "two␊lines␍␉x"),
        ("\x7f\x9b31m", "␡<U+009B>31m"),
        ("\u202eesrever\u2069", "<U+202E>esrever<U+2069>"),
        ("\U000e0041", "<U+E0041>"),
        ("\ud800", "<U+D800>"),
        ("\u2028", "<U+2028>"),
    ],
)
def test_what_would_not_be_seen_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown
