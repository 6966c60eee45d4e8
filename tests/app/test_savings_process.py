"""What was saved by several processes on one folder, and by one that was killed; the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from harness import PATIENCE, clean_environment, server_process
from support.forking import forked_program

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.testing import McpClient

PROGRAM = [sys.executable, "-m", "greenroom.transports.cli"]


def command(home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*forked_program(), "savings", "--data", str(home / "store"), *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=clean_environment(home),
    )


async def compressed(client: McpClient, times: int) -> dict[str, Any]:
    """Compress a text so often; return what was saved."""
    await client.initialize()
    for number in range(times):
        await client.call("compress_text", text=f"The boat number {number} is here. It is really nice. " * 40)
    return (await client.call("get_stats"))["savings"]  # type: ignore[no-any-return]  # decoded JSON


@pytest.mark.promise("savings.kept", "savings.everywhere")
async def test_two_processes_on_one_folder_add_up_and_the_command_tells_all(tmp_path: Path) -> None:
    async with server_process(tmp_path) as owner:
        async with server_process(tmp_path) as attached:
            assert (await compressed(owner.client, 3))["calls"] == 3
            assert (await compressed(attached.client, 2))["calls"] == 2
            await attached.client.end_input()
            assert await attached.process.wait() == 0
        said = (await owner.client.call("get_stats", whose="all"))["savings"]
        assert said["calls"] == 5
        await owner.client.end_input()
        assert await owner.process.wait() == 0
    done = command(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for name in ("calls", "baseline_tokens", "answer_tokens", "saved_tokens", "days"):
        assert told[name] == said[name]
    text = command(tmp_path, "--token-price", "1000000")
    assert f"{said['saved_tokens']:,} tokens saved in 5 calls" in text.stdout
    assert f"{said['saved_tokens']:,}.00 at 1e+06 a million" in text.stdout
    assert "whole_text: the text whole" in text.stdout
    assert "█" in text.stdout


@pytest.mark.promise("savings.kept")
async def test_who_takes_over_has_the_counts_and_a_kill_costs_what_was_not_written(tmp_path: Path) -> None:
    async with server_process(tmp_path) as owner, server_process(tmp_path) as attached:
        await compressed(owner.client, 3)
        await compressed(attached.client, 2)
        owner.process.send_signal(signal.SIGKILL)
        await owner.process.wait()
        said = await compressed(attached.client, 1)
        assert said["calls"] == 3
        await attached.client.end_input()
        assert await attached.process.wait() == 0
    assert json.loads(command(tmp_path, "--json").stdout)["calls"] == 3


@pytest.mark.promise("savings.everywhere")
def test_the_command_says_when_there_is_nothing(tmp_path: Path) -> None:
    missing = command(tmp_path)
    assert missing.returncode != 0
    assert "store" in missing.stderr
    wrong = command(tmp_path, "--days", "91")
    assert wrong.returncode == 2
    assert "1 to 90" in wrong.stderr


@pytest.mark.promise("savings.everywhere", "savings.baseline")
def test_a_console_exporter_tells_the_counts_and_a_wrong_baseline_is_refused(tmp_path: Path) -> None:
    environment = {**clean_environment(tmp_path), "OTEL_METRICS_EXPORTER": "console"}
    program = [*PROGRAM, "serve", "--data", str(tmp_path / "store")]
    call = {"name": "compress_text", "arguments": {"text": "The boat is here, and so on. " * 40}}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    }
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    done = subprocess.run(
        program,
        input="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env=environment,
    )
    for name in ("greenroom.savings.calls", "baseline.tokens", "answer.tokens"):
        assert name in done.stderr
    assert "compress_text" in done.stderr
    refused = subprocess.run(
        [*program, "--savings-baseline", "read_file=half"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert refused.returncode == 2
    assert "read_file=whole_file|none" in refused.stderr
