"""`greenroom demo`: it shows what it says, and says so when something is not as it says."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.programs import running

from greenroom.transports.ops.cli.support.step_printer import StepPrinter

CAST = Path(__file__).parents[2] / "docs/images/demo.svg"
SVG = "{http://www.w3.org/2000/svg}"

LEAKY = """\
import sys
if "serve" in sys.argv:
    from greenroom.actors.core.auth import policy
    policy.own_audience = lambda agent_id: "agent:everybody"
"""
"""Makes a server whose agents see each other's private messages."""

MUTE = """\
import os, sys
if "serve" in sys.argv:
    os.write(2, b"something\\nno server today\\n")
    os._exit(1)
"""
"""Makes a server that does not start."""


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.promise("cli.demo", "store.kill", "sessions.visibility")
async def test_every_claim_holds_and_nothing_is_left(tmp_path: Path) -> None:
    async with running(tmp_path, "demo", TMPDIR=str(tmp_path)) as demo:
        assert await demo.end() == 0, demo.printed
    assert re.search(r"^All 17 checks passed in [\d.]+ s\.$", demo.printed, re.MULTILINE)
    assert demo.printed.count("  ok ") == 17
    assert "FAILED" not in demo.printed
    assert "\x1b" not in demo.printed
    assert names(tmp_path) == []
    without_numbers = [re.sub(r"\d[\d.]*", "0", line) for line in demo.printed.splitlines() if line]
    texts = [text.text or "" for text in ET.fromstring(CAST.read_text()).iter(f"{SVG}text")]  # noqa: S314  it is ours
    assert texts[0] == "$ greenroom demo"
    for text in texts[1:]:
        line = re.sub(r"\d[\d.]*", "0", text.removesuffix("…"))
        assert any(each.startswith(line) for each in without_numbers), (
            f"docs/demo_cast.py draws it anew: {text}"
        )


@pytest.mark.promise("cli.demo")
async def test_on_a_terminal_it_is_coloured_and_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    async with running(tmp_path, "demo", terminal=True, TMPDIR=str(tmp_path)) as demo:
        await demo.until("it listens at ws://127.0.0.1:")
        port = int((await demo.until("/"))[:-1])
        assert await demo.interrupt() == 130
    assert "\x1b[" in demo.printed
    assert "Traceback" not in demo.printed
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass
    assert names(tmp_path) == []


@pytest.mark.promise("cli.demo")
async def test_a_claim_that_does_not_hold_fails_the_demo(tmp_path: Path) -> None:
    site, temporary = tmp_path / "site", tmp_path / "temporary"
    for folder in (site, temporary):
        folder.mkdir()
    (site / "sitecustomize.py").write_text(LEAKY)
    async with running(tmp_path, "demo", TMPDIR=str(temporary), PYTHONPATH=str(site)) as demo:
        assert await demo.end() == 1
    assert "FAILED coder sees" in demo.printed
    assert re.search(r"of 17 checks failed: .*coder's search does not find it", demo.printed)
    assert names(temporary) == []


@pytest.mark.quick
@pytest.mark.promise("cli.demo")
async def test_a_server_that_does_not_start_is_said(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(MUTE)
    async with running(tmp_path, "demo", TMPDIR=str(tmp_path), PYTHONPATH=str(site)) as demo:
        assert await demo.end() == 1
    assert "FAILED no server today" in demo.printed
    assert "Traceback" not in demo.printed


def test_a_narrator_counts_what_held(capsys: pytest.CaptureFixture[str]) -> None:
    narrator = StepPrinter()
    narrator.check("one is one", True)
    assert narrator.finish(1.25)
    narrator.check("one is two", False, found="\x1b[2J")
    assert not narrator.finish(1.25)
    assert capsys.readouterr().out.splitlines() == [
        "  ok one is one",
        "",
        "All 1 checks passed in 1.2 s.",
        "  FAILED one is two; found: ␛[2J",
        "",
        "1 of 2 checks failed: one is two",
    ]
