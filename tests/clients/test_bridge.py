"""Clients of one machine on the server of another: set up once, carried both ways, told when it cannot be."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from harness import PATIENCE, clean_environment
from mcp import Client, StdioServerParameters
from sockets.test_websocket_process import certificate
from support.commands import run, run_on_store
from support.forking import forked_program
from support.programs import Program, running
from support.websocket_programs import answer

pytestmark = [pytest.mark.slow, pytest.mark.promise("bridge.carries")]
ERAS = ["legacy", "2026-07-28"]


class Machines:
    """A desktop with a server, and a laptop."""

    def __init__(self, folder: Path) -> None:
        self.desktop = folder / "desktop"
        self.laptop = folder / "laptop"
        for home in (self.desktop, self.laptop):
            home.mkdir()
        self.flags = certificate(folder / "tls", trustme.CA())
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def known(self) -> Path:
        return self.laptop / ".config/greenroom/secrets" / f"server-127.0.0.1-{self.port}.json"

    def key(self, name: str = "laptop") -> str:
        made = run_on_store(self.desktop, "keys", "create", "--json", "--name", name)
        key: str = json.loads(made.stdout)["api_key"]
        return key

    @asynccontextmanager
    async def serving(self, *more: str) -> AsyncIterator[Program]:
        store = str(self.desktop / "store")
        address = f"127.0.0.1:{self.port}"
        command = ("serve", "--data", store, "--http", address, *(more or self.flags))
        async with running(self.desktop, *command) as program:
            line = await program.line_with("listening on https://")
            found = re.search(r":([0-9]+)/mcp", line)
            assert found is not None, line
            self.port = int(found[1])
            yield program

    def set_up(self, *arguments: str, key: str) -> Any:
        return run(self.laptop, "setup", "cursor", "--url", self.url, *arguments, GREENROOM_API_KEY=key)

    @asynccontextmanager
    async def client(self, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        command, *before = forked_program()
        server = StdioServerParameters(
            command=command, args=[*before, "bridge", self.url], env=clean_environment(self.laptop)
        )
        with trio.fail_after(PATIENCE):
            async with Client(server, mode=mode, **options) as client:
                yield client


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


@asynccontextmanager
async def bridge(machines: Machines, **more: str) -> AsyncIterator[Lines]:
    """A bridge that is spoken to in lines."""
    process = await trio.lowlevel.open_process(
        [*forked_program(), "bridge", machines.url],
        stdin=-1,
        stdout=-1,
        stderr=-1,
        env=clean_environment(machines.laptop, **more),
    )
    try:
        with trio.fail_after(PATIENCE):
            yield Lines(process)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


class Lines:
    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._held = b""
        self._number = 0

    async def send(self, message: dict[str, Any], before: bytes = b"") -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(before + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def request(self, method: str, **params: Any) -> int:
        self._number += 1
        await self.send({"id": self._number, "method": method, "params": params})
        return self._number

    async def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while b"\n" not in self._held:
            data = await self.process.stdout.receive_some()
            assert data, "it ended"
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    async def until(self, **members: Any) -> dict[str, Any]:
        """Read on to a message with these members."""
        while True:
            message = await self.receive()
            if members.items() <= message.items():
                return message

    async def end(self) -> int:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        return await self.process.wait()

    async def initialize(self, **capabilities: Any) -> None:
        number = await self.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities=capabilities,
            clientInfo={"name": "tester", "version": "1"},
        )
        assert "result" in await self.until(id=number)
        await self.send({"method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        number = await self.request("tools/call", name=tool, arguments=arguments)
        message = await self.until(id=number)
        content: dict[str, Any] = message["result"]["structuredContent"]
        return content


@pytest.mark.promise("bridge.secrets")
async def test_setup_shows_the_certificate_once_and_asks_for_the_key(machines: Machines) -> None:
    (machines.laptop / ".cursor").mkdir()
    async with machines.serving():
        key = machines.key()
        command = ("setup", "cursor", "--url", machines.url)
        async with running(machines.laptop, *command, terminal=True, keyboard=True) as asked:
            await asked.until("is this its certificate? [y/N]")
            await asked.press("y\n")
            await asked.until("API key of")
            await asked.press(f"{key}\n")
            await asked.until("Write this? [Y/n]")
            await asked.press("y\n")
            assert await asked.end() == 0, asked.printed
        assert re.search(r"\b([0-9A-F]{2}:){31}[0-9A-F]{2}\b", asked.printed)
        assert "starts and lists 15 tools" in asked.printed
        assert key not in asked.printed
        assert machines.known.stat().st_mode & 0o777 == 0o600
        assert json.loads(machines.known.read_text())["key"] == key
        written = (machines.laptop / ".cursor/mcp.json").read_text()
        entry = json.loads(written)["mcpServers"]["greenroom"]
        assert entry["args"][-2:] == ["bridge", machines.url]
        assert key not in written
        again = run(machines.laptop, "setup", "cursor", "--url", machines.url)
        assert again.returncode == 0, again.stderr
        assert "has it already" in again.stdout
        assert "certificate" not in again.stdout
        checked = run(machines.laptop, "setup", "cursor", "--check")
        assert checked.returncode == 0, checked.stdout + checked.stderr
    undone = run(machines.laptop, "setup", "--undo", "--yes")
    assert "taken back" in undone.stdout


@pytest.mark.quick
@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_works_in_both_eras_with_big_messages(machines: Machines, mode: str) -> None:
    async with machines.serving(*machines.flags, "--content-limit", "200000"):
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
        async with machines.client(mode) as client:
            assert len((await client.list_tools()).tools) == 15
            session = (await answer(client, "create_session", purpose="both"))["session_id"]
            content = "the émigré's plan\n" * 5_000
            await answer(client, "add_message", session_id=session, content=content)
            found = await answer(client, "get_messages", session_id=session)
            assert found["messages"][0]["content"] == content


@pytest.mark.quick
@pytest.mark.promise("bridge.resumes")
async def test_a_killed_server_loses_only_what_may_have_been_done(machines: Machines) -> None:
    async with machines.serving() as server:
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
        async with bridge(machines) as client:
            await client.initialize(roots={})
            created = await client.request(
                "tools/call", name="start_session", arguments={"purpose": "to be killed"}
            )
            asked = await client.until(method="roots/list")
            await client.send({"id": asked["id"], "result": {"roots": [{"uri": "file:///home/ann/atlas"}]}})
            session = (await client.until(id=created))["result"]["structuredContent"]["session_id"]
            uri = f"session://{session}"
            assert "result" in await client.until(id=await client.request("resources/subscribe", uri=uri))
            server.process.send_signal(signal.SIGSTOP)
            message = {"session_id": session, "content": "once"}
            lost = await client.request("tools/call", name="add_message", arguments=message)
            kept = await client.request(
                "tools/call", name="add_message", arguments=message | {"idempotency_key": "a"}
            )
            gone = await client.request("tools/call", name="get_messages", arguments={"session_id": session})
            await client.send({"method": "notifications/cancelled", "params": {"requestId": gone}})
            server.process.kill()
            error = (await client.until(id=lost))["error"]
            assert error["data"] == {"code": "CONNECTION_LOST"}
            assert "it is not known whether" in error["message"]
            async with machines.serving():
                assert "result" in await client.until(id=kept)
                await client.until(method="notifications/resources/updated")
                found = await client.call("get_messages", session_id=session)
                assert [each["content"] for each in found["messages"]] == ["once"]
                await client.call("add_message", session_id=session, content="twice")
                assert await client.end() == 0


@pytest.mark.quick
@pytest.mark.promise("bridge.certificate")
async def test_a_changed_certificate_is_refused_and_taken_only_by_a_person(
    machines: Machines, tmp_path: Path
) -> None:
    other = certificate(tmp_path / "other", trustme.CA())
    async with machines.serving() as server:
        key = machines.key()
        assert machines.set_up("--yes", key=key).returncode == 0
        async with bridge(machines) as client:
            await client.initialize()
            server.process.send_signal(signal.SIGSTOP)
            numbers = [await client.request("tools/list")]
            server.process.kill()
            numbers.append(await client.request("tools/list"))
            async with machines.serving(*other):
                answers: dict[int, str] = {}
                while len(answers) < len(numbers):
                    message = await client.receive()
                    if message.get("id") in numbers:
                        answers[message["id"]] = message["error"]["message"]
                assert all("another certificate than the known one" in each for each in answers.values())
                said = answers[numbers[0]]
                assert "greenroom setup --url" in said
                assert await client.process.wait() == 1
    async with machines.serving(*other):
        async with bridge(machines) as client:
            number = await client.request("ping")
            assert "another certificate" in (await client.until(id=number))["error"]["message"]
        before = machines.known.read_bytes()
        refused = machines.set_up("--yes", key=key)
        assert refused.returncode == 1
        assert "another than before" in refused.stderr
        assert machines.known.read_bytes() == before
        command = ("setup", "cursor", "--url", machines.url)
        async with running(machines.laptop, *command, terminal=True, keyboard=True) as asked:
            await asked.until("until now it had another one")
            await asked.until("[y/N]")
            await asked.press("y\n")
            assert await asked.end() == 0, asked.printed
        async with machines.client() as client:
            assert (await client.list_tools()).tools


@pytest.mark.quick
@pytest.mark.promise("bridge.secrets")
async def test_a_key_that_is_refused_is_told_and_not_stored(machines: Machines) -> None:
    async with machines.serving():
        good = machines.key("good")
        bad = machines.key("bad")
        identity = bad.split("_")[1]
        done = run_on_store(machines.desktop, "keys", "revoke", identity)
        assert done.returncode == 0, done.stderr
        refused = machines.set_up("--yes", key=bad)
        assert refused.returncode == 1
        assert "refused this client" in refused.stderr
        assert "greenroom keys create" in refused.stderr
        assert bad not in refused.stdout + refused.stderr
        assert not machines.known.exists()
        assert not (machines.laptop / ".cursor/mcp.json").exists()
        async with bridge(machines) as client:
            number = await client.request("ping")
            said = (await client.until(id=number))["error"]["message"]
            assert f"greenroom setup --url {machines.url}" in said
        assert machines.set_up("--yes", key=good).returncode == 0
        done = run_on_store(machines.desktop, "keys", "revoke", good.split("_")[1])
        assert done.returncode == 0, done.stderr
        async with bridge(machines) as client:
            number = await client.request("ping")
            assert "was revoked" in (await client.until(id=number))["error"]["message"]
            assert await client.process.wait() == 1


@pytest.mark.promise("bridge.secrets")
async def test_a_given_key_wins_and_a_spoilt_one_is_never_shown(machines: Machines) -> None:
    async with machines.serving():
        first, second = machines.key("first"), machines.key("second")
        done = machines.set_up("--yes", key=f"{first}\r")
        assert done.returncode == 0, done.stderr
        assert json.loads(machines.known.read_text())["key"] == first
        done = machines.set_up("--yes", key=second)
        assert done.returncode == 0, done.stderr
        assert json.loads(machines.known.read_text())["key"] == second
        for spoilt in (f"{first[:-1]}\r{first[-1]}", f"{first}é"):
            refused = machines.set_up("--yes", key=spoilt)
            assert refused.returncode == 1
            assert "has a character that no key has" in refused.stderr
            assert first[:12] not in refused.stdout + refused.stderr
            assert "Traceback" not in refused.stderr
        assert json.loads(machines.known.read_text())["key"] == second


async def test_a_request_that_cannot_be_carried_is_answered(machines: Machines) -> None:
    async with machines.serving():
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
        async with bridge(machines) as client:
            await client.initialize()
            call = {"name": "add_message", "arguments": {"session_id": "s", "content": "\ud800 x"}}
            await client.send({"id": 11, "method": "tools/call", "params": call})
            assert "lone surrogate" in (await client.until(id=11))["error"]["message"]
            await client.send({"method": "notifications/cancelled", "params": {"requestId": []}})
            await client.send({"id": 20, "method": "ping"}, before=b"\xef\xbb\xbf")
            assert (await client.until(id=20))["result"] == {}


async def test_the_bridge_waits_for_no_answer_that_will_not_come(machines: Machines) -> None:
    async with machines.serving() as server:
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
        async with bridge(machines, GREENROOM_REQUEST_TIMEOUT="600") as client:
            await client.initialize()
            server.process.send_signal(signal.SIGSTOP)
            given_up = await client.request("tools/list")
            await client.send({"method": "notifications/cancelled", "params": {"requestId": given_up}})
            await client.request("subscriptions/listen", notifications={"toolsListChanged": True})
            assert await client.end() == 0
            server.process.kill()


async def test_the_end_of_input_is_seen_while_no_server_is_there(machines: Machines) -> None:
    async with machines.serving() as server:
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
        async with bridge(machines, GREENROOM_REQUEST_TIMEOUT="1") as client:
            await client.initialize()
            server.process.kill()
            await server.process.wait()
            for _ in range(300):
                await client.request("ping")
            assert await client.end() == 0


async def test_the_words_of_a_refusal_cannot_steer_the_terminal(machines: Machines) -> None:
    async with machines.serving():
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(machines.flags[1], machines.flags[3])

    async def refuse(stream: trio.SSLStream[trio.SocketStream]) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(
                b"HTTP/1.1 500 No\r\nContent-Length: 8\r\nConnection: close\r\n\r\n\x1b[31mred"
            )

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_ssl_over_tcp, refuse, machines.port, context, host="127.0.0.1")
        await nursery.start(serve)
        done = await trio.to_thread.run_sync(run, machines.laptop, "bridge", machines.url)
        nursery.cancel_scope.cancel()
    assert done.returncode == 1
    assert "␛[31mred" in done.stderr
    assert "\x1b" not in done.stderr


async def test_a_setup_without_names_keeps_the_other_machines_server(machines: Machines) -> None:
    async with machines.serving():
        assert machines.set_up("--yes", key=machines.key()).returncode == 0
    written = (machines.laptop / ".cursor/mcp.json").read_bytes()
    done = run(machines.laptop, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert "cursor: it uses the server of another machine" in done.stdout
    assert (machines.laptop / ".cursor/mcp.json").read_bytes() == written
    told = run(machines.laptop, "doctor").stdout
    assert "no store is needed here" in told
    assert "greenroom setup --yes" not in told
    assert '"serve"' in run(machines.laptop, "setup", "cursor", "--print").stdout
    command = json.loads(written)["mcpServers"]["greenroom"]["command"].encode()
    (machines.laptop / ".cursor/mcp.json").write_bytes(written.replace(command, b"/nowhere/greenroom"))
    assert "-> set it up again with --url" in run(machines.laptop, "doctor").stdout


def test_a_server_that_says_nothing_is_told(machines: Machines) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        machines.port = silent.getsockname()[1]
        done = machines.set_up("--yes", key="none")
    assert done.returncode == 1
    assert "no answer within" in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8443",
        "https://",
        "https://me:word@host",
        "https://host/else",
        "host:8443",
        "https://h:x",
    ],
)
def test_what_is_no_url_of_a_server_is_refused(machines: Machines, url: str) -> None:
    done = run(machines.laptop, "setup", "cursor", "--url", url, "--yes")
    assert done.returncode == 1
    assert "https://HOST:PORT" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_told(machines: Machines) -> None:
    machines.port = 9
    done = machines.set_up("--yes", key="none")
    assert done.returncode == 1
    assert "no server is reached at https://127.0.0.1:9" in done.stderr
    hooks = machines.set_up("--hooks", key="none")
    assert hooks.returncode == 2
