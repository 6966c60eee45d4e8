"""`greenroom watch`: a session printed as it grows, through a real server and its crashes."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from harness import ServerProcess, clean_environment, server_process
from support.forking import forked_program
from support.programs import Program, running

from greenroom.transports.ops.cli.commands.watch import coloured, plain

TEXT = {
    "message_id": 7,
    "sender": "alice",
    "content": "two\nlines \x1b[2J",
    "timestamp": "2026-01-02T03:04:05.678901Z",
    "visibility": "private",
}


@asynccontextmanager
async def serving(home: Path, port: int) -> AsyncIterator[ServerProcess]:
    """Run a server with WebSocket at `port`, and an agent, alice, at its pipes."""
    flags = ["--ws", f"127.0.0.1:{port}", "--stdio", "--agent", "alice"]
    async with server_process(home, *flags) as server:
        await server.client.initialize()
        yield server


@pytest.fixture
def port() -> int:
    """A port that was free a moment ago, so that a second server can have the first one's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
        return number


@asynccontextmanager
async def watching(home: Path, port: int, *arguments: str, terminal: bool = False) -> AsyncIterator[Program]:
    """Run the command on session s as agent bob, unless told otherwise; wait for its first line."""
    flags = ["--url", f"ws://127.0.0.1:{port}", "--agent", "bob", *arguments]
    async with running(home, "watch", "session://s", *flags, terminal=terminal) as watch:
        await watch.until("greenroom watch: session://s")
        yield watch


async def create(server: ServerProcess) -> None:
    assert (await server.client.call("create_session", purpose="p", session_id="s"))["success"]


async def say(server: ServerProcess, content: str, **more: object) -> None:
    assert (await server.client.call("add_message", session_id="s", content=content, **more))["success"]


async def send(server: ServerProcess, content: str) -> None:
    """Add a message without waiting for the answer."""
    await server.client.send_call("add_message", {"session_id": "s", "content": content})


@pytest.mark.promise("cli.watch", "identity.visible-only")
async def test_messages_are_printed_as_they_are_written_until_the_session_ends(
    tmp_path: Path, port: int
) -> None:
    async with serving(tmp_path, port) as server:
        await create(server)
        await say(server, "written before")
        async with watching(tmp_path, port) as watch:
            assert "'p' is active; 1 messages" in await watch.until("\n")
            assert (await watch.line_with("written before")).endswith("Z  alice  public  written before")
            await say(server, "for nobody else", visibility="private")
            await say(server, "for all\nwho read")
            assert (await watch.line_with("for all")).endswith("  alice  public  for all␊who read")
            await server.client.call("update_session", session_id="s", status="terminated")
            await watch.line_with("session://s is terminated")
            assert await watch.end() == 0
        assert "for nobody else" not in watch.printed
        assert "\x1b" not in watch.printed
        async with watching(tmp_path, port, "--agent", "alice", "--json") as watch:
            await watch.line_with("session://s is terminated")
            assert await watch.end() == 0
        lines = [json.loads(line) for line in watch.printed.splitlines() if line.startswith("{")]
        contents = [line["content"] for line in lines]
        assert contents == ["written before", "for nobody else", "for all\nwho read"]


@pytest.mark.promise("cli.watch")
async def test_a_server_that_is_killed_and_started_again_costs_no_message(tmp_path: Path, port: int) -> None:
    async with serving(tmp_path, port) as server:
        await create(server)
        async with watching(tmp_path, port) as watch:
            await say(server, "before the crash")
            await watch.line_with("before the crash")
            server.process.kill()
            await watch.until("connecting again")
            async with serving(tmp_path, port) as second:
                await say(second, "after the crash")
                await watch.line_with("after the crash")
                assert await watch.interrupt() == 0
    for content in ("before the crash", "after the crash"):
        assert watch.printed.count(content) == 1
    assert "Traceback" not in watch.printed


@pytest.mark.quick
@pytest.mark.promise("cli.watch")
@pytest.mark.parametrize("transport", ["--stdio", "--ws=127.0.0.1:0", "--http=127.0.0.1:0"])
async def test_any_server_on_the_folder_will_do_and_the_next_one_too(tmp_path: Path, transport: str) -> None:
    """Watch without a URL: attached to the process that has the folder, never owning it."""
    flags = dict.fromkeys([transport, "--stdio", "--agent=alice"])
    store = ["--data", str(tmp_path / "store")]
    async with server_process(tmp_path, *flags) as first:
        await first.client.initialize()
        await create(first)
        await say(first, "written before")
        await say(first, "for nobody else", visibility="private")
        async with running(tmp_path, "watch", "s", "--agent", "bob", *store) as watch:
            assert "'p' is active; 1 messages" in await watch.line_with("greenroom watch: session://s")
            assert (await watch.line_with("written before")).endswith("Z  alice  public  written before")
            await say(first, "while it looks")
            await watch.line_with("while it looks")
            first.process.kill()
            await first.process.wait()
            async with server_process(tmp_path, *flags) as second:
                await second.client.initialize()
                stats = json.loads(
                    (
                        await trio.run_process(
                            [*forked_program(), "stats", "--json", *store],
                            env=clean_environment(tmp_path),
                            capture_stdout=True,
                        )
                    ).stdout
                )
                assert stats["relay"]["owner_pid"] == second.process.pid
                for number in range(120):
                    await send(second, f"after {number:03}.")
                for _ in range(120):
                    await second.client.receive()
                await watch.line_with("after 119.")
                await second.client.call("update_session", session_id="s", status="terminated")
                await watch.line_with("session://s is terminated")
                assert await watch.end() == 0
    assert "for nobody else" not in watch.printed
    printed = [line.rpartition("  ")[2] for line in watch.printed.splitlines() if "public" in line]
    assert printed == ["written before", "while it looks", *(f"after {n:03}." for n in range(120))]


@pytest.mark.promise("cli.watch")
async def test_without_a_server_or_a_session_it_says_so_and_changes_nothing(tmp_path: Path) -> None:
    store = ["--data", str(tmp_path / "store")]
    async with running(tmp_path, "watch", "s", *store) as watch:
        assert await watch.end() == 73
    sentence = f"there is no store at {tmp_path / 'store'}; the first server on that folder makes one"
    assert watch.printed == f"greenroom watch: {sentence}\n"
    assert not (tmp_path / "store").exists()
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        async with running(tmp_path, "watch", "s", *store) as watch:
            assert await watch.end() == 1
        assert watch.printed.startswith(
            "greenroom watch: session://s: there is no resource 'session://s' that you may see"
        )
        await server.client.end_input()
        await server.process.wait()
    async with running(tmp_path, "watch", "s", *store) as watch:
        assert await watch.end() == 1
    assert watch.printed.startswith(f"greenroom watch: no server uses {tmp_path / 'store'}; start one")
    assert watch.printed.count("\n") == 1


@pytest.mark.promise("cli.watch")
async def test_more_messages_at_once_than_a_resource_holds_are_all_printed(tmp_path: Path, port: int) -> None:
    async with serving(tmp_path, port) as server:
        await create(server)
        for number in range(120):
            await send(server, f"old {number:03}.")
        for _ in range(120):
            await server.client.receive()
        async with watching(tmp_path, port) as watch:
            await watch.until("the newest 100 of 120 messages")
            await watch.until("old 119.")
            for number in range(350):
                await send(server, f"new {number:03}.")
            await watch.until("new 349.")
            assert await watch.interrupt() == 0
    printed = [line.rpartition("  ")[2] for line in watch.printed.splitlines() if "public" in line]
    assert printed == [f"old {n:03}." for n in range(20, 120)] + [f"new {n:03}." for n in range(350)]


@pytest.mark.promise("cli.watch", "cli.untrusted-text")
async def test_a_terminal_gets_colours_and_nothing_that_a_message_commands(tmp_path: Path, port: int) -> None:
    async with serving(tmp_path, port) as server:
        await create(server)
        async with watching(tmp_path, port, terminal=True) as watch:
            await say(server, "wipe \x1b[2J\x1b]0;mine\x07 it\nalice  public  forged")
            line = await watch.line_with("wipe ")
            assert line.endswith("wipe ␛[2J␛]0;mine␇ it\r")
            assert "\x1b[" in line
            assert "| " in await watch.line_with("forged")
            assert await watch.interrupt() == 0
    assert "\x1b[2J" not in watch.printed


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["session://nobody"], 1, "session://nobody: "),
        (["no/session"], 2, "the session is 'no/session', but"),
        (["s", "--url", "http://127.0.0.1:1"], 2, "is no WebSocket URL"),
        (["s", "--url", "ws://127.0.0.1:1"], 1, "no server was reached at ws://127.0.0.1:1"),
    ],
)
async def test_what_cannot_be_watched_is_said_in_a_sentence(
    tmp_path: Path, port: int, arguments: list[str], code: int, sentence: str
) -> None:
    async with serving(tmp_path, port):
        url = [] if "--url" in arguments else ["--url", f"ws://127.0.0.1:{port}"]
        async with running(tmp_path, "watch", *arguments, *url) as watch:
            assert await watch.end() == code
    assert sentence in watch.printed
    assert watch.printed.startswith("greenroom watch: ")
    assert watch.printed.count("\n") == 1


@pytest.mark.promise("cli.untrusted-text")
def test_a_message_keeps_to_its_own_line() -> None:
    assert plain(TEXT) == "2026-01-02T03:04:05.678901Z  alice  private  two␊lines ␛[2J"
    assert json.loads(json.dumps(TEXT)) == TEXT
    assert json.dumps(TEXT).isprintable()
    first, second = coloured(TEXT).split("\n")
    assert first.endswith("two")
    assert second.endswith("lines ␛[2J")
    assert "| " in second
