"""Stores after power cuts and kills: what was answered is there, and nothing contradicts anything."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest
from support.forking import all_forked

from bench import crash_images, kills, recording
from bench.harness import Plan
from bench.recording import Cut, Event, Put

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TRACE = rb"""7  openat(AT_FDCWD<\x2f>, "\x2f\x73", O_RDWR|O_CREAT, 0600) = 4<\x2f\x73>
7  openat(AT_FDCWD<\x2f>, "\x2f\x73", O_WRONLY|O_DSYNC|O_CLOEXEC) = 5<\x2f\x73>
9  write(1<\x70\x3a\x32>, "\x33\x0a", 2) = 2
7  pwrite64(4<\x2f\x73>, "\x61\x62", 2, 8 <unfinished ...>
8  write(1<\x70\x3a\x31>, "\x7b\x7d\x0a", 3) = 3
7  <... pwrite64 resumed>)           = 2
7  lseek(4<\x2f\x73>, 4, SEEK_SET)   = 4
7  writev(4<\x2f\x73>, [{iov_base="\x63", iov_len=1}, {iov_base="\x64\x65", iov_len=2}], 2) = 3
7  pwrite64(6<\x2f\x6f>, "\x61", 1, 0) = 1
7  fdatasync(4<\x2f\x73> <unfinished ...>
8  write(1<\x70\x3a\x31>, "\x7b", 1) = 1
7  <... fdatasync resumed>)          = 0
7  pwrite64(5<\x2f\x73>, "\x66", 1, 0) = 1
7  fdatasync(4<\x2f\x73>)            = -1 EIO (Input/output error)
"""


def test_a_recording_says_what_was_written_and_said_and_when_it_was_certain(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_bytes(TRACE)
    found = recording.events(trace, tmp_path.joinpath("/s"))
    assert found == [
        Event(said=b"{}\n"),
        Event(put=Put(8, b"ab")),
        Event(put=Put(4, b"cde")),
        Event(said=b"{"),
        Event(is_sync=True),
        Event(put=Put(0, b"f")),
        Event(is_sync=True),
    ]
    assert recording.cuts(found) == [Cut(0, 4), Cut(5, 6)]


def test_what_cannot_be_replayed_is_not_passed_over(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_bytes(rb"""7  fallocate(4<\x2f\x73>, 0, 0, 4096) = 0""" + b"\n")
    with pytest.raises(recording.UnknownCallError, match="fallocate"):
        recording.events(trace, tmp_path.joinpath("/s"))


def test_an_image_has_what_was_certain_and_parts_of_what_followed() -> None:
    sync, page = Event(is_sync=True), recording.PAGE
    recorded = [
        Event(put=Put(0, b"a" * page)),
        sync,
        *(Event(put=Put(at * page, b"b" * 2 * page)) for at in (1, 3)),
        sync,
    ]
    cut = recording.cuts(recorded)[1]
    chance = random.Random(1)  # noqa: S311  which pages are there is no secret
    images = {
        how: recording.image(b"", recorded, cut, how, chance) for how in ("none", "some", "all", "torn")
    }
    certain = b"a" * page
    assert images["none"] == certain
    assert images["all"] == certain + b"b" * 4 * page
    pages = [images["some"][at : at + page] for at in range(0, len(images["some"]), page)]
    assert pages[0] == certain
    assert {*pages[1:]} == {b"b" * page, bytes(page)}
    assert images["torn"].startswith(certain)
    torn = [images["torn"][at : at + page] for at in range(page, len(images["torn"]), page)]
    assert any(len({*each}) == 2 for each in torn)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing: power cuts are NOT checked")
@pytest.mark.promise("store.durability")
def test_a_power_cut_leaves_what_was_answered_and_nothing_that_contradicts_it(tmp_path: Path) -> None:
    with all_forked():
        report = crash_images.run(Plan(smoke=True, data=None, work=tmp_path))
    assert [row[:2] for row in report.tables[0].rows] == [["none", 1], ["some", 1], ["all", 1], ["torn", 1]]


@pytest.mark.promise("store.kill", "sharing.exactly-once")
def test_who_is_killed_while_it_writes_leaves_a_store_that_agrees_with_itself(tmp_path: Path) -> None:
    with all_forked():
        report = kills.run(Plan(smoke=True, data=None, work=tmp_path))
    counts = {what: count for what, count in report.tables[0].rows if isinstance(count, int)}
    assert counts["kills"] >= kills.SMOKE_KILLS
    assert counts["owners killed"] > 0
    assert counts["answers"] >= counts["writes"]
