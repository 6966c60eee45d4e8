"""`greenroom serve --http` as a process: where it listens, TLS, what it serves besides, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trustme
from harness import PROGRAM, clean_environment, server_process
from sockets.test_websocket_process import (
    HEAP_KB,
    certificate,
    descriptors,
    refused,
    resident,
    statistics,
    threads,
)
from support.api import Browser
from support.https import HEADERS, UPDATED, Guest, told
from support.programs import Program, running
from support.websocket_programs import answer as ask
from support.websocket_programs import connected, until

pytestmark = pytest.mark.slow

CLIENTS = 1_000
FEW = 60


@asynccontextmanager
async def server(home: Path, *flags: str) -> AsyncIterator[tuple[Program, int]]:
    """Run a server process; give its port of HTTP."""
    arguments = ("serve", "--data", str(home / "store"), "--http", "127.0.0.1:0", *flags)
    async with running(home, *arguments) as program:
        yield program, port_in(await program.line_with("listening on http"))


def port_in(line: str) -> int:
    found = re.search(r"https?://127\.0\.0\.1:([0-9]+)/mcp$", line)
    assert found is not None, line
    return int(found[1])


@asynccontextmanager
async def guests_at(port: int, count: int = 1) -> AsyncIterator[list[Guest]]:
    """Connect to a port so many times."""
    async with AsyncExitStack() as stack:
        guests = []
        for _ in range(count):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            guests.append(Guest(await stack.enter_async_context(stream)))
        yield guests


async def call(guest: Guest, tool: str, *, modern: bool = False, **arguments: Any) -> Any:
    """Return what a tool answers."""
    params = {"name": tool, "arguments": arguments}
    await (guest.modern if modern else guest.request)("tools/call", params)
    answer = await guest.answer()
    assert answer.status == 200, answer
    return told(answer.json())


@pytest.mark.quick
@pytest.mark.promise("http.together")
async def test_three_transports_serve_one_store(tmp_path: Path) -> None:
    flags = ("--stdio", "--ws", "127.0.0.1:0", "--http", "127.0.0.1:0")
    async with server_process(tmp_path, *flags) as here:
        await here.client.initialize("at the pipe")
        said = here.errors()
        websocket = re.search(r"ws://\S+", said)
        http = re.search(r"http://\S+", said)
        assert websocket is not None
        assert http is not None
        created = await here.client.call("create_session", purpose="shared", session_id="inn")
        assert created["created_by"] == "at-the-pipe"
        async with connected(f"{websocket[0]}?agent=ann") as client, guests_at(port_in(http[0])) as (guest,):
            await ask(client, "add_message", session_id="inn", content="over WebSocket")
            await call(guest, "add_message", modern=True, session_id="inn", content="of the later era")
            await guest.initialize(greenroom_agent="bob")
            await call(guest, "add_message", session_id="inn", content="in a session")
            page = await here.client.call("get_messages", session_id="inn")
            assert [(each["sender"], each["content"]) for each in page["messages"]] == [
                ("ann", "over WebSocket"),
                ("tester", "of the later era"),
                ("bob", "in a session"),
            ]
            await here.client.end_input()  # the end of one client is not the end of the others
            assert len((await call(guest, "get_messages", session_id="inn"))["messages"]) == 3
        here.process.terminate()
        assert await here.process.wait() == 0


@pytest.mark.promise("http.sessions")
async def test_a_handshake_that_takes_long_opens_a_session_too(tmp_path: Path) -> None:
    async with server(tmp_path) as (_, port), guests_at(port) as (guest,):
        params = {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        await guest.request("initialize", {**params, "odd": "so the SDK is asked, which must be imported"})
        answer = await guest.answer()
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["result"]["protocolVersion"] == "2025-03-26"
        await guest.request("ping", mcp_session_id=answer.headers["mcp-session-id"])
        assert (await guest.answer()).json()["result"] == {}


@pytest.mark.promise("http.health")
async def test_health_and_metrics_are_told_beside_mcp(tmp_path: Path) -> None:
    async with server(tmp_path) as (_, port), guests_at(port) as (guest,):
        assert (await guest.ask("GET", "/healthz")).json() == {"status": "ok"}
        await guest.initialize()
        await call(guest, "set_memory", key="k", value=1)
        answer = await guest.ask("GET", "/metrics")
        assert answer.status == 200
        assert b'tool="set_memory"' in answer.body
        assert b'transport="http"' in answer.body
        assert (await guest.ask("GET", "/metrics", origin="https://evil.example")).status == 403


def test_an_address_that_is_taken_is_told_before_there_is_a_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = refused(tmp_path, "--http", address)
        assert (code, f"cannot listen on {address}" in said) == (1, True)
        code, said = refused(tmp_path, "--ws", "127.0.0.1:0", "--http", address)
        assert (code, "listening on" in said) == (1, False)
    assert not (tmp_path / "store").exists()
    code, said = refused(tmp_path, "--http", "192.168.1.2:80")
    assert (code, "other machines reach" in said) == (2, True)


@pytest.mark.quick
@pytest.mark.promise("http.tls")
async def test_with_a_certificate_it_speaks_tls_only(tmp_path: Path) -> None:
    flags = certificate(tmp_path, authority := trustme.CA())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    async with server(tmp_path, *flags) as (program, port):
        assert f"listening on https://127.0.0.1:{port}/mcp" in program.printed
        stream = await trio.open_ssl_over_tcp_stream(
            "127.0.0.1", port, ssl_context=trusting, https_compatible=True
        )
        async with stream:
            guest = await Guest(stream).initialize(greenroom_agent="ann")
            assert (await call(guest, "create_session", purpose="secret"))["created_by"] == "ann"
            assert stream.selected_alpn_protocol() in {None, "http/1.1"}
        async with guests_at(port) as (plain,):
            await plain.send("GET", "/healthz")
            assert b"HTTP" not in await plain.hung_up()
        async with guests_at(port, 2) as silent:  # who shakes no hands keeps nobody from ending
            assert await program.interrupt() == 0
            assert all([await each.hung_up() == b"" for each in silent])


@pytest.mark.promise("http.drain", "mcp.signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_whatever_its_clients_do(tmp_path: Path, number: signal.Signals) -> None:
    async with server(tmp_path) as (program, port), guests_at(port, 8) as guests:
        silent, half, resting, listening, own, *deaf = guests
        await half.stream.send_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx")
        await call(await resting.initialize(), "create_session", purpose="p", session_id="inn")
        wanted = {"notifications": {"resourceSubscriptions": ["session://inn"]}}
        stream = await listening.modern("subscriptions/listen", wanted)
        await listening.head()
        await listening.event()
        own.session = resting.session
        await (await own.listen()).event()
        for each in deaf:
            await fill(each)
        program.process.send_signal(number)
        last = (await listening.events())[-1].json()
        assert (last["id"], "result" in last) == (stream, True)
        assert await own.events() == []
        assert await resting.hung_up() == b""
        assert await silent.hung_up() == b""
        assert await program.end() == 0
        assert b"200" not in await half.hung_up()


async def fill(guest: Guest) -> None:
    """Ask for much, without reading, until the server cannot write any more."""
    await guest.initialize()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    names = {**HEADERS, **guest.session, "content-length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    await guest.stream.send_all((f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body) * 300)
    await until(lambda: unread_by(guest) > 10_000)


def unread_by(guest: Guest) -> int:
    """Return how many bytes the server has written that wait in the system for this client."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("this system does not tell what waits in its sockets")
    assert isinstance(guest.stream, trio.SocketStream)
    ours, theirs = guest.stream.socket.getsockname()[1], guest.stream.socket.getpeername()[1]
    for line in table.read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if local.endswith(f":{theirs:04X}") and remote.endswith(f":{ours:04X}"):
            return int(queues.partition(":")[0], 16)
    return 0


@pytest.mark.promise("http.bounded", "http.admission")
async def test_the_limits_of_the_command_line_hold(tmp_path: Path) -> None:
    flags = ("--max-connections", "2", "--max-frame", "4096", "--allow-origin", "https://example.org")
    async with server(tmp_path, *flags) as (_, port), guests_at(port, 2) as (first, second):
        await first.initialize(origin="https://example.org")
        await second.initialize()
        async with guests_at(port, 1) as (
            third,
        ):  # who comes while they are newcomers takes a place of theirs
            assert (await third.hung_up()).startswith(b"HTTP/1.1 503 ")
        await first.request("ping", {"x": "x" * 5_000})
        assert (await first.answer()).status == 413
        info = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        await second.request("initialize", info, mcp_session_id=None)
        assert (await second.answer()).status == 503


@pytest.mark.promise("http.subscriptions-kept")
async def test_what_changed_while_nobody_listened_is_told_by_a_real_server(tmp_path: Path) -> None:
    async with server(tmp_path) as (_, port), guests_at(port, 2) as (guest, own):
        await guest.initialize()
        await call(guest, "create_session", purpose="p", session_id="inn")
        await guest.request("resources/subscribe", {"uri": "session://inn"})
        assert (await guest.answer()).json()["result"] == {}
        for number in range(5):
            await call(guest, "add_message", session_id="inn", content=f"{number}")
        own.session = guest.session
        await (await own.listen()).event()
        event = await own.event()
        assert event is not None
        assert (event.json()["method"], event.json()["params"]) == (UPDATED, {"uri": "session://inn"})


@pytest.mark.promise("http.bounded")
async def test_nothing_is_left_of_thousands_of_clients(tmp_path: Path) -> None:
    async with server(tmp_path) as (program, port):
        pid = program.process.pid
        idle = statistics(tmp_path)["bus"]
        async with guests_at(port) as (host,):
            await host.initialize(greenroom_agent="host")
            await call(host, "create_session", purpose="visited", session_id="inn")
        await visits(port, CLIENTS // 4)
        await until(lambda: descriptors(pid) < FEW)
        before = (descriptors(pid), resident(pid))
        await visits(port, CLIENTS - CLIENTS // 4)
        await until(lambda: descriptors(pid) <= before[0])
        await until(lambda: statistics(tmp_path)["bus"]["subscriptions"] == idle["subscriptions"])
        after = statistics(tmp_path)
        assert after["bus"]["subscribers"] == idle["subscribers"]
        assert after["messages"]["waiting"] == 0
        assert threads(pid) < FEW
        assert resident(pid) - before[1] < CLIENTS * 2 + HEAP_KB  # less than 2 KB for each that came and went


async def visits(port: int, count: int) -> None:
    """Let so many clients come, 20 at a time, in both eras, subscribe, and go: some without a word."""

    async def visit(number: int, limit: trio.CapacityLimiter) -> None:
        async with limit, guests_at(port, 2) as (guest, own):
            if number % 3 == 0:
                wanted = {"notifications": {"resourceSubscriptions": ["session://inn"]}}
                await guest.modern("subscriptions/listen", wanted)
                await guest.head()
                await guest.event()
                return
            await guest.initialize(greenroom_agent="guest")
            await guest.request("resources/subscribe", {"uri": "session://inn"})
            assert "result" in (await guest.answer()).json()
            own.session = guest.session
            await (await own.listen()).event()
            assert (await guest.end_session()).status == 200

    limit = trio.CapacityLimiter(20)
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(visit, number, limit)


def test_for_stdio_alone_nothing_of_http_and_websocket_is_imported(tmp_path: Path) -> None:
    code = "import sys; from greenroom.transports.ops.cli.commands import serve; print([*sys.modules])"
    done = subprocess.run(
        [PROGRAM[0], "-c", code], capture_output=True, env=clean_environment(tmp_path), check=True, text=True
    )
    assert "'hypercorn'" not in done.stdout
    assert "'greenroom.transports.sockets.http" not in done.stdout
    assert "'wsproto'" not in done.stdout


@pytest.mark.promise("api.link")
async def test_a_link_from_the_command_line_logs_one_browser_in_once(tmp_path: Path) -> None:
    async with server(tmp_path, "--user", "ann") as (_, port), guests_at(port) as (guest,):
        done = await trio.run_process(
            [*PROGRAM, "console", "--print", "--read-only", "--data", str(tmp_path / "store")],
            capture_stdout=True,
            capture_stderr=True,
            env=clean_environment(tmp_path),
        )
        base, _, link = done.stdout.decode().strip().rpartition("/login/")
        origin, below = f"http://127.0.0.1:{port}", urlsplit(base).path
        assert base == origin + below
        browser = Browser(guest, below)
        browser.headers |= {"host": f"127.0.0.1:{port}", "origin": origin}
        assert (await browser.get("session")).status == 401
        said = (await browser.log_in(link=link)).json()
        assert (said["user"], said["scopes"]) == ("ann", ["*:read"])
        assert (await browser.post("list_sessions")).status == 200
        denied = await browser.post("create_session", purpose="p")
        assert (denied.status, denied.json()["code"]) == (403, "PERMISSION_DENIED")
        assert (await browser.log_in(link=link)).status == 401
