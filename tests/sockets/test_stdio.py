"""`greenroom serve` on real descriptors: what stays off the wire, what comes back, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tty
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import PATIENCE, PROGRAM, clean_environment, greenroom, server_process

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
CALL = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"%s","arguments":%s}}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'

STRAY_PRINTS = """
import ctypes, os, subprocess, sys
from greenroom.transports.sockets.stdio.pipe import claim_stdio

with claim_stdio() as pipe:
    print("printed")
    os.write(1, b"written\\n")
    ctypes.CDLL(None).printf(b"printed by C\\n")
    subprocess.run(["echo", "echoed by a child"])
    os.write(pipe.output, b"wire: " + os.read(pipe.input, 100))
    print("input is empty:", os.read(0, 100) == b"")
    print("private:", min(pipe) > 2 and not any(map(os.get_inheritable, pipe)))
print("printed after", os.read(0, 100))
"""


def run(
    program: list[str], home: Path, given: bytes = b"", **streams: Any
) -> subprocess.CompletedProcess[bytes]:
    home.mkdir(exist_ok=True)
    streams = {"input": given, "stdout": subprocess.PIPE, **streams} if "stdin" not in streams else streams
    return subprocess.run(
        program,
        **{"stdout": subprocess.PIPE, **streams},
        stderr=subprocess.PIPE,
        env=clean_environment(home),
        timeout=PATIENCE,
        check=False,
    )


def serve(home: Path) -> list[str]:
    return [*PROGRAM, "serve", "--data", str(home / "store")]


@pytest.mark.quick
@pytest.mark.promise("mcp.wire")
def test_stray_prints_stay_off_the_wire(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", STRAY_PRINTS], tmp_path, b"asked\n")
    assert done.stdout.splitlines() == [b"wire: asked", b"printed after b''"]
    strays = {"printed", "written", "printed by C", "echoed by a child"}
    truths = {"input is empty: True", "private: True"}
    assert set(done.stderr.decode().splitlines()) == strays | truths


@pytest.mark.parametrize("closed", [0, 1])
def test_a_closed_descriptor_is_an_error_and_no_other_file_is_taken_for_it(
    tmp_path: Path, closed: int
) -> None:
    program = f"""
import os
from greenroom.transports.sockets.stdio.pipe import claim_stdio
os.close({closed})
try:
    with claim_stdio(): pass
except OSError: os.write(2, b"refused")
"""
    done = run([sys.executable, "-c", program], tmp_path)
    assert done.stderr == b"refused"


def test_without_stderr_the_wire_still_works(tmp_path: Path) -> None:
    program = """
import os
os.close(2)
from greenroom.transports.sockets.stdio.pipe import claim_stdio
with claim_stdio() as pipe:
    print("stray")
    os.write(pipe.output, b"wire")
"""
    assert run([sys.executable, "-c", program], tmp_path).stdout == b"wire"


def test_regular_files_are_served(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(PING)
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        done = run(serve(tmp_path), tmp_path, stdin=stdin, stdout=stdout)
    assert (done.returncode, answered.read_bytes()) == (0, PONG), done.stderr


def test_the_null_device_is_an_input_that_has_ended(tmp_path: Path) -> None:
    done = run(serve(tmp_path), tmp_path, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr


@pytest.mark.promise("mcp.wire")
def test_one_socket_serves_both_ways_and_is_left_blocking(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(PING)
        ours.shutdown(socket.SHUT_WR)
        done = run(serve(tmp_path), tmp_path, stdin=theirs, stdout=theirs)
        assert (done.returncode, ours.recv(1_000)) == (0, PONG), done.stderr
        assert os.get_blocking(theirs.fileno())


def test_a_terminal_is_served_and_left_blocking(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        tty.setraw(theirs)
        with subprocess.Popen(
            serve(tmp_path),
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env=clean_environment(tmp_path),
        ) as process:
            os.write(ours, PING)
            received = b""
            while not received.endswith(b"\n"):
                received += os.read(ours, 1_000)
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        assert received == PONG
        assert os.get_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.promise("mcp.end-of-input")
def test_a_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    done = run(serve(tmp_path), tmp_path, PING.rstrip())
    assert (done.returncode, done.stdout) == (0, PONG), done.stderr


async def test_a_client_that_vanishes_leaves_no_traceback(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        process = server.process
        assert process.stdout is not None
        await process.stdout.aclose()

        async def ask_on() -> None:
            while True:
                await server.client.send_request("ping")

        with pytest.raises(trio.BrokenResourceError):
            await ask_on()
        assert await process.wait() == 0
    assert "Traceback" not in server.errors()


@pytest.mark.promise("mcp.hostile-frames")
async def test_a_client_that_vanishes_within_a_frame_leaves_a_sound_store(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        await server.client.call("set_memory", key="k", value=1)
        await server.client.send_bytes(
            b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"set_mem'
        )
        await server.client.end_input()
        (answer,) = await server.client.rest()
        assert answer["error"]["code"] == -32700
        assert await server.process.wait() == 0
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        assert (await server.client.call("get_memory", key="k"))["value"] == 1


@pytest.mark.promise("mcp.signals", "runtime.drain")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.promise("mcp.signals")
async def test_a_signal_ends_it_after_the_answers(tmp_path: Path, number: signal.Signals) -> None:
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        session = (await server.client.call("create_session", purpose="signals"))["session_id"]
        for index in range(50):
            await server.client.send_call("add_message", {"session_id": session, "content": str(index)})
        first = await server.client.receive()
        server.process.send_signal(number)
        answers = [first, *await server.client.rest()]
        assert await server.process.wait() == 0, server.errors()
    async with server_process(tmp_path) as server:
        await server.client.initialize()
        kept = await server.client.call("get_messages", session_id=session, limit=1_000)
    successes = [answer for answer in answers if "structuredContent" in answer.get("result", {})]
    written = {message["message_id"] for message in kept["messages"]}
    assert {answer["result"]["structuredContent"]["message_id"] for answer in successes} <= written


@pytest.mark.promise("mcp.pipelining", "runtime.in-order")
async def test_a_thousand_pipelined_messages_keep_their_order(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server, trio.open_nursery() as nursery:
        client = server.client
        await client.initialize()
        session = (await client.call("create_session", purpose="order"))["session_id"]

        async def write() -> None:
            for index in range(1_000):
                await client.send_call("add_message", {"session_id": session, "content": str(index)})

        nursery.start_soon(write)
        for _ in range(1_000):
            assert (await client.receive())["result"]["isError"] is False
        kept = await client.call("get_messages", session_id=session, limit=1_000)
        assert [message["content"] for message in kept["messages"]] == [str(index) for index in range(1_000)]
        await client.end_input()
        assert await server.process.wait() == 0
        assert server.errors() == ""


@pytest.mark.promise("mcp.slow-reader")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to read a process's memory")
@pytest.mark.promise("mcp.slow-reader")
async def test_a_client_that_never_reads_costs_bounded_memory(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        client = server.client
        await client.initialize()
        await client.call("set_memory", key="k", value="x" * 900_000)
        before = anonymous_memory(server.process.pid)
        with trio.move_on_after(2):  # how long it is flooded; there is nothing to wait for
            for _ in range(5_000):
                await client.send_call("get_memory", {"key": "k"})
        assert anonymous_memory(server.process.pid) - before < 150_000
        assert server.process.returncode is None


def anonymous_memory(pid: int) -> int:
    """Return a process's RssAnon in kB."""
    (line,) = [
        row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("RssAnon")
    ]
    return int(line.split()[1])


DEEP = "[" * 5_000 + "]" * 5_000


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("set_memory", '{"key":"k","value":"\\ud800"}', "SERIALIZATION_ERROR"),
        ("set_memory", '{"key":"k","value":1e400}', "SERIALIZATION_ERROR"),
        ("set_memory", '{"key":"k","value":{"a":1,"a":2}}', "SERIALIZATION_ERROR"),
        ("set_memory", f'{{"key":"k","value":{DEEP}}}', "SERIALIZATION_ERROR"),
        ("set_memory", '{"key":"","value":1}', "VALIDATION_ERROR"),
        ("set_memory", '{"key":"a/b","value":1}', "VALIDATION_ERROR"),
        ("set_memory", '{"key":"k\\u0000","value":1}', "VALIDATION_ERROR"),
        ("set_memory", '{"key":"k"}', "VALIDATION_ERROR"),
        ("set_memory", '{"key":7,"value":1}', "VALIDATION_ERROR"),
        ("set_memory", '{"key":"k","value":1,"owner":"me"}', "VALIDATION_ERROR"),
        ("create_session", '{"purpose":"' + "p" * 501 + '"}', "VALIDATION_ERROR"),
        ("create_session", '{"purpose":"p","session_id":"../../etc/passwd"}', "VALIDATION_ERROR"),
        ("get_session", '{"session_id":"nobody"}', "SESSION_NOT_FOUND"),
        ("get_messages", '{"session_id":"nobody","visibility_filter":"everything"}', "VALIDATION_ERROR"),
        ("get_memory", '{"key":"nothing"}', "MEMORY_NOT_FOUND"),
    ],
    ids=lambda value: value[:40],
)
@pytest.mark.promise("mcp.errors", "memory.json")
async def test_what_a_tool_cannot_take_is_answered_under_its_id(
    tmp_path: Path, tool: str, arguments: str, code: str
) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        await client.send_bytes((CALL % (tool, arguments)).encode())
        answer = await client.receive()
        assert answer["id"] == "x"
        assert answer["result"]["isError"] is True
        failure = json.loads(answer["result"]["content"][0]["text"])
        assert failure["code"] == code
        assert set(failure) == {"success", "error", "code", "details"}
        await client.request("ping")


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "value",
    [
        "123456789012345678901234567890",
        "1.50",
        "1E5",
        '"123"',
        '"\\u0000\\ud83d\\ude00"',
        '{"b":1, "a":[ ]}',
        "-0",
    ],
)
@pytest.mark.promise("memory.json")
async def test_a_value_comes_back_as_the_bytes_it_came_in(tmp_path: Path, value: str) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        await client.send_bytes((CALL % ("set_memory", f'{{"key":"k","value":{value}}}')).encode())
        await client.receive()
        await client.send_call("get_memory", {"key": "k"})
        assert f'"value":{value},'.encode() in await client.receive_line()


async def test_answers_are_lines_however_long(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        text = "\n\u2028\r\x1f" * 50_000
        await client.call("set_memory", key="k", value=text)
        assert (await client.call("get_memory", key="k"))["value"] == text
