"""A reply means fsynced: shown from outside, by making fdatasync slow or broken with strace."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from harness import PROGRAM, ServerProcess, server_process

DELAY_SECONDS = 0.05

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is missing: the order of fsync and answer is NOT checked"
)


@asynccontextmanager
async def injected(server: ServerProcess, fault: str) -> AsyncIterator[None]:
    """Make every fdatasync of the server suffer ``fault`` while the block runs."""
    strace = await trio.lowlevel.open_process(
        ["strace", "-f", "-qq", "-e", "trace=fdatasync", "-e", f"inject=fdatasync:{fault}",
         "-p", str(server.process.pid)],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        await attached(server.process.pid)
        yield
    finally:
        strace.terminate()
        with trio.CancelScope(shield=True):
            await strace.wait()


async def attached(pid: int) -> None:
    """Wait until every thread of the process is traced."""
    while True:
        states = [await task.read_text() for task in await trio.Path(f"/proc/{pid}/task").glob("*/status")]
        if all("TracerPid:\t0\n" not in state for state in states):
            return
        await trio.lowlevel.checkpoint()


@needs_strace
@pytest.mark.promise("runtime.reply-means-durable", "store.durability")
async def test_an_answer_comes_after_its_fsync(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize("writer")
        assert (await server.client.call("create_session", purpose="slow disk", session_id="s"))["success"]
        async with injected(server, f"delay_enter={int(DELAY_SECONDS * 1e6)}"):
            began = trio.current_time()
            answer = await server.client.call("add_message", session_id="s", content="waits for the disk")
            assert answer["success"]
            # A lower bound only: no machine is too slow for it.
            assert trio.current_time() - began >= DELAY_SECONDS


@needs_strace
@pytest.mark.promise("runtime.fatal-commit", "store.kill")
async def test_a_failed_fsync_is_never_answered_as_success(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        client = server.client
        await client.initialize("writer")
        assert (await client.call("create_session", purpose="dying disk", session_id="s"))["success"]
        async with injected(server, "error=EIO"):
            await client.send_call("add_message", {"session_id": "s", "content": "not on disk"})
            rest = await client.rest()
            await server.process.wait()
        for message in rest:
            assert (
                "error" in message or json.loads(message["result"]["content"][0]["text"])["success"] is False
            )
        assert server.process.returncode not in {0, None}
        assert "could not be written" in server.errors()
    async with server_process(tmp_path) as server:
        await server.client.initialize("writer")
        page = await server.client.call("get_messages", session_id="s")
        assert page["success"]
        assert len(page["messages"]) <= 1


@needs_strace
@pytest.mark.promise("store.durability")
async def test_without_fsync_at_each_commit_there_is_one_at_the_end(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    traced = ["strace", "-f", "-qq", "-y", "-e", "trace=fdatasync,fsync,msync", "-o", str(trace)]
    serve = [*PROGRAM, "serve", "--data", str(tmp_path / "store"), "--durability", "process"]

    def syncs() -> int:
        return trace.read_text().count("greenroom.mdb>")

    async with server_process(tmp_path, program=traced + serve) as server:
        await server.client.initialize("writer")
        before = syncs()
        assert (await server.client.call("create_session", purpose="fast", session_id="s"))["success"]
        assert syncs() == before
        await server.client.end_input()
        await server.client.rest()
        await server.process.wait()
    assert syncs() > before
