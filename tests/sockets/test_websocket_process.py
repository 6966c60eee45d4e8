"""`greenroom serve --ws` as a process: where it listens, TLS, how it ends, what idle clients cost."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # has no types
import pytest
import trio
import trustme
from harness import PATIENCE, PROGRAM, clean_environment
from support.effort import by_night
from support.forking import forked_program
from support.websocket_programs import answer, connected, port_in, server, until
from support.websockets import CLOSE, Peer, frame

from greenroom.transports.base.config.parsers import host_port, origin
from greenroom.transports.base.errors import InvalidValueError

IDLE = 400
KB_EACH = 60
CLIENTS = by_night(10_000, by_day=1_000)
FEW = 60
HEAP_KB = 6 * 1024  # how much the heap may grow or shrink however many clients there were


def refused(home: Path, *flags: str) -> tuple[int, str]:
    """Return how a server that cannot start ends, and what it says."""
    done = subprocess.run(
        [*forked_program(), "serve", "--data", str(home / "store"), *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment(home),
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


@pytest.mark.quick
@pytest.mark.promise("websocket.loopback")
@pytest.mark.parametrize(
    "address", ["0.0.0.1:8765", "192.168.1.2:8765", "[::]:8765", "example.org:8765", "8.8.8.8:1"]
)
def test_an_address_that_other_machines_reach_is_known_as_one(tmp_path: Path, address: str) -> None:
    assert not host_port(address).is_loopback
    if address == "[::]:8765":
        code, said = refused(tmp_path, "--ws", address)
        assert (code, address in said, "need TLS" in said) == (2, True, True)


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        ("127.9.9.9:0", "127.9.9.9", 0),
        ("[::1]:65535", "::1", 65535),
        ("[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1),
        ("localhost:80", "localhost", 80),
    ],
)
def test_addresses_are_read(given: str, host: str, port: int) -> None:
    found = host_port(given)
    assert (found.host, found.port, str(found)) == (host, port, given)


@pytest.mark.parametrize(
    "given", ["", "8765", ":8765", "[]:1", "127.0.0.1", "::1:8765", "127.0.0.1:65536", "127.0.0.1:x", 80]
)
def test_what_is_no_address_is_refused(given: object) -> None:
    with pytest.raises(InvalidValueError, match="HOST:PORT"):
        host_port(given)


@pytest.mark.parametrize(
    "given",
    [
        *("", "example.org", "https://example.org/path", "https://", 7, "http://[::1", "http://a..example"),
        *("https://ann@example.org", "https://example.org:99999", "https://example.org#a", "https://a\\b"),
    ],
)
def test_what_is_no_origin_is_refused(given: object) -> None:
    with pytest.raises(InvalidValueError, match="origin"):
        origin(given)


def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = refused(tmp_path, "--ws", f"127.0.0.1:{taken.getsockname()[1]}")
    assert code == 1
    assert "cannot listen on 127.0.0.1" in said
    assert not (tmp_path / "store").exists()


@pytest.mark.quick
@pytest.mark.promise("websocket.tls")
async def test_with_a_certificate_it_speaks_tls_only(tmp_path: Path) -> None:
    flags = certificate(tmp_path, authority := trustme.CA())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with server(tmp_path, *flags) as (program, port):
        assert f"listening on wss://127.0.0.1:{port}/" in program.printed
        async with connected(f"wss://localhost:{port}/", agent="ann", ssl_context=trusting) as client:
            assert (await answer(client, "create_session", purpose="secret"))["created_by"] == "ann"
        with pytest.raises(ConnectionError, match="trusted"):
            async with connected(f"wss://localhost:{port}/"):
                raise AssertionError
        with pytest.raises(ConnectionError):
            async with connected(f"ws://localhost:{port}/"):
                raise AssertionError


@pytest.mark.promise("websocket.tls")
def test_files_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    good = certificate(tmp_path, trustme.CA())
    other = certificate(tmp_path / "other", trustme.CA())
    address = ["--ws", "127.0.0.1:0"]
    assert refused(tmp_path, *address, *good[:2]) == (
        2,
        "greenroom serve: --tls-cert and --tls-key go together; --tls-key is missing\n",
    )
    for flags, expected, says in [
        ([*good[:2], *other[2:]], 1, "belong together"),
        ([*good[:2], "--tls-key", str(tmp_path / "none")], 73, "none cannot be read"),
        (["--tls-cert", good[3], "--tls-key", good[1]], 1, "no certificate and key"),
    ]:
        code, said = refused(tmp_path, *address, *flags)
        assert (code, says in said) == (expected, True), said


@pytest.mark.promise("websocket.drain", "mcp.signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_a_word_to_every_client(tmp_path: Path, number: signal.Signals) -> None:
    async with server(tmp_path) as (program, port), peers_at(port, 20) as peers:
        for peer in peers:
            await peer.open()
        for peer in peers[:10]:
            await peer.initialize()
        program.process.send_signal(number)
        for peer in peers:
            assert await peer.closed() == (1001, "the server is stopping")
        assert await program.end() == 0


async def test_standard_streams_are_served_beside_sockets(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [*PROGRAM, "serve", "--data", str(tmp_path / "store"), "--ws", "127.0.0.1:0", "--stdio"]
        process = await trio.lowlevel.open_process(
            command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=clean_environment(tmp_path)
        )
        try:
            assert process.stderr is not None
            said = b""
            while b"/\n" not in said:
                said += await process.stderr.receive_some()
            ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            assert b'"result"' in await trio.to_thread.run_sync(ours.recv, 1_000)
            ours.shutdown(socket.SHUT_WR)  # the end of one client is not the end of the others
            async with connected(f"ws://127.0.0.1:{port_in(said.decode().strip())}/") as client:
                await answer(client, "list_sessions")
            process.terminate()
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()


@pytest.mark.promise("websocket.limits")
async def test_the_limits_of_the_command_line_hold(tmp_path: Path) -> None:
    flags = ("--max-connections", "1", "--max-frame", "4096", "--allow-origin", "https://example.org")
    async with server(tmp_path, *flags) as (_, port), peers_at(port, 2) as (first, second):
        await first.open(Origin="https://example.org")
        assert (await second.ask()).startswith(b"HTTP/1.1 503 ")
        await first.call("x" * 5_000, "")
        assert (await first.closed())[0] == 1009


@pytest.mark.quick
@pytest.mark.promise("websocket.idle")
async def test_idle_connections_cost_little(tmp_path: Path) -> None:
    async with server(tmp_path) as (program, port), AsyncExitStack() as stack:
        peers = []
        for count in range(100 + IDLE):  # one by one: who connects and says nothing for long is hung up on
            peers += await stack.enter_async_context(peers_at(port, 1))
            await (await peers[-1].open()).initialize()
            if count == 100:
                before = resident(program.process.pid)
        assert (resident(program.process.pid) - before) / IDLE < KB_EACH
        for peer in peers:
            await peer.stream.aclose()
        await until(lambda: descriptors(program.process.pid) < FEW)


@pytest.mark.quick
@pytest.mark.promise("websocket.no-leaks", "bus.bounded")
async def test_nothing_is_left_of_thousands_of_clients(tmp_path: Path) -> None:
    async with server(tmp_path) as (program, port):
        pid = program.process.pid
        idle = listeners(tmp_path)
        async with connected(f"ws://127.0.0.1:{port}/", agent="host") as host:
            await answer(host, "create_session", purpose="visited", session_id="inn")
        await visits(port, CLIENTS // 10)
        await until(lambda: listeners(tmp_path) == idle and descriptors(pid) < FEW)
        before = (descriptors(pid), resident(pid), statistics(tmp_path))
        await visits(port, CLIENTS - CLIENTS // 10)
        await until(lambda: listeners(tmp_path) == idle and descriptors(pid) <= before[0])
        after = statistics(tmp_path)
        assert after["actors"]["resident"] == before[2]["actors"]["resident"]
        assert after["messages"]["waiting"] == 0
        assert threads(pid) < FEW
        assert resident(pid) - before[1] < CLIENTS + HEAP_KB  # less than 1 KB for each that came and went


async def visits(port: int, count: int) -> None:
    """Let so many clients come, 50 at a time, subscribe, and go: half with a goodbye and half without."""

    async def visit(number: int, guests: trio.CapacityLimiter) -> None:
        async with guests, await trio.open_tcp_stream("127.0.0.1", port) as stream:
            peer = await (await Peer(stream).open("/?agent=guest")).initialize()
            await peer.request("resources/subscribe", {"uri": "session://inn"})
            assert "result" in await peer.receive()
            if number % 2:
                await stream.send_all(frame(CLOSE, (1000).to_bytes(2)))
                await peer.closed()

    guests = trio.CapacityLimiter(50)
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(visit, number, guests)


def descriptors(pid: int) -> int:
    return int(psutil.Process(pid).num_fds())


def threads(pid: int) -> int:
    return int(psutil.Process(pid).num_threads())


def statistics(home: Path) -> dict[str, Any]:
    """Return what `greenroom stats` says of the running server."""
    command = [*forked_program(), "stats", "--data", str(home / "store"), "--json"]
    done = subprocess.run(command, capture_output=True, env=clean_environment(home), check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def listeners(home: Path) -> tuple[int, int]:
    """Return how many subscribers and subscriptions there are."""
    bus = statistics(home)["bus"]
    return bus["subscribers"], bus["subscriptions"]


@asynccontextmanager
async def peers_at(port: int, count: int) -> AsyncIterator[list[Peer]]:
    """Connect to a port so many times."""
    async with AsyncExitStack() as stack:
        peers = []
        for _ in range(count):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            peers.append(Peer(await stack.enter_async_context(stream)))
        yield peers


def resident(pid: int) -> int:
    """Return the anonymous memory of a process, in KB."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("this system does not tell a process's anonymous memory")
    return int(status.read_text().partition("RssAnon:")[2].split()[0])


def certificate(folder: Path, authority: trustme.CA) -> tuple[str, str, str, str]:
    """Make a certificate for this machine; return the flags that name it."""
    folder.mkdir(exist_ok=True)
    issued = authority.issue_cert("localhost", "127.0.0.1")
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return "--tls-cert", str(chain), "--tls-key", str(key)
