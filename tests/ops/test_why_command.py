"""`greenroom why`: the ledger of what hooks gave, for people and for programs."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING

import pytest
import trio
from support.agents import house
from support.commands import run_on_store
from support.hook_events import Client, fill, model

from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.promise("hook-context.why")
async def test_it_says_what_was_given_to_whom_and_why_and_whether_it_was_used(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000 - round(trio.current_time() * 1_000_000)
    async with house(tmp_path / "store", VirtualClock(now)) as at:
        ann = Client(at)
        await fill(ann)
        await ann.knows("The staging port is 5433 in Frankfurt", key="port")
        assert await ann.asks("Which port has staging?\n")
        await ann.tells("stop", model("It is 5433, in Frankfurt."))
        await ann.starts("s2")
    shown = run_on_store(tmp_path, "why", "--user", "ann")
    said = json.loads(run_on_store(tmp_path, "why", "--user", "ann", "--session", "s1", "--json").stdout)
    (given,) = said["given"]
    (memory,) = given["memories"]
    assert (said["total"], given["client"], memory["version"]) == (1, "claude-code", 1)
    signals = ", ".join(f"{name} {value:g}" for name, value in memory["signals"].items())
    given_at, used = (dt.datetime.fromisoformat(each) for each in (given["at"], memory["used"]))
    lines = shown.stdout.splitlines()
    head = f"{given_at:%Y-%m-%d %H:%M:%S} UTC  user-prompt of claude-code, session s1, agent claude-code"
    found = f"port in user:ann, version 1, score {memory['score']:.2f} ({signals})"
    assert lines[-3:] == [
        f"{head}: 1 memory, {given['tokens']} tokens",
        "  for the prompt: Which port has staging?\u240a",
        f"  {found}: used by {used:%Y-%m-%d %H:%M:%S} UTC",
    ]
    start = " UTC  session-start (startup) of claude-code, session s2, agent claude-code"
    assert f"{start}: 4 memories and 1 line, " in lines[0]
    others = lines[1:-3]
    assert len(others) == 4
    assert all(" in user:ann, version 1: not seen to be used" in each for each in others)
