"""Keys with programs: the command line makes and ends them, and every process on the folder hears of it."""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme
from harness import PATIENCE, clean_environment
from sockets.test_websocket_process import certificate, refused
from support.commands import Server, serving
from support.forking import forked_program
from support.programs import running
from support.websocket_programs import answer, connected, port_in, server
from support.websockets import Peer

from greenroom.actors.core.auth.key_format import new_key
from greenroom.transports import WebSocketRefusedError
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

if TYPE_CHECKING:
    from pathlib import Path


def keys(home: Path, *arguments: str, code: int = 0) -> str:
    """Run `greenroom keys`; return what it prints on standard output."""
    done = subprocess.run(
        [*forked_program(), "keys", *arguments, "--data", str(home / "store")],
        capture_output=True,
        env=clean_environment(home),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() + (done.stderr.decode() if code else "")


def create(home: Path, *arguments: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(keys(home, "create", *arguments, "--json"))
    return made


def bearer(made: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {made['api_key']}"}


@pytest.mark.promise("keys.admin")
def test_keys_are_made_listed_rotated_and_revoked_on_the_command_line(tmp_path: Path) -> None:
    with serving(tmp_path) as server:  # for there is no list without a store
        assert server.end() == 0
    assert "no API key" in keys(tmp_path, "list")
    made = create(tmp_path, "--name", "ci", "--scopes", "sessions:read, memory:*", "--for-agent", "bot")
    assert made["key"]["scopes"] == ["memory:*", "sessions:read"]
    key_id = made["key"]["key_id"]
    plain = keys(tmp_path, "rotate", key_id, "--overlap", "0").strip()
    assert plain.startswith("gr_")
    assert "\n" not in plain
    listed = json.loads(keys(tmp_path, "list", "--json"))["keys"]
    assert [(each["status"], each["agent"]) for each in listed] == [("expired", "bot"), ("active", "bot")]
    keys(tmp_path, "revoke", listed[1]["key_id"])
    assert "revoked" in keys(tmp_path, "list")
    keys(tmp_path, "create", "--for-project", "", "--rate", "6000", "--tools", "services,core")
    assert "no project, tools services, core, rate 6,000" in keys(tmp_path, "list")
    secrets = [made["api_key"].rpartition("_")[2], plain.rpartition("_")[2]]
    told = keys(tmp_path, "list") + keys(tmp_path, "list", "--json")
    assert not [secret for secret in secrets if secret in told]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("forge",), 2, "invalid choice: 'forge'"),
        (("rotate",), 2, "required: KEY_ID"),
        (("create", "aaaaaaaaaaaa"), 2, "unrecognized arguments: aaaaaaaaaaaa"),
        (("revoke", "aaaaaaaaaaaa"), 1, "no API key"),
        (("revoke", "x"), 1, "KEY_ID"),
        (("revoke", "gr_aaaaaaaaaaaa_" + "b" * 43), 1, '12 characters behind gr_ and got "gr_aaaaaaaaaaaa_…'),
        (("create", "--scopes", "*", "--for-project", "p"), 1, "leave the projects out"),
        (("create", "--scopes", ","), 1, "1 to 50 elements"),
        (("create", "--scopes", "root"), 1, "there is no root"),
        (("create", "--days", "0"), 2, "--days"),
    ],
)
def test_a_command_that_cannot_be_says_why(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    create(tmp_path)
    assert said in keys(tmp_path, *arguments, code=code)


@pytest.mark.promise("keys.revocation")
async def test_a_revoked_key_ends_connections_of_every_process(tmp_path: Path) -> None:
    made = create(tmp_path)
    async with server(tmp_path) as (_owner, first), server(tmp_path) as (_attached, second):

        async def hold(port: int, task_status: trio.TaskStatus[None]) -> None:
            peer = await Peer(await trio.open_tcp_stream("127.0.0.1", port)).open(
                "/", Host=f"localhost:{port}", **bearer(made)
            )
            await peer.initialize()
            task_status.started()
            code, reason = await peer.closed()
            assert code == 1008
            assert reason.startswith(f"the key {made['key']['key_id']} was revoked at 2")
            await peer.stream.aclose()

        # That it takes less than a second is shown on virtual time, without other programs.
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for port in (first, second, first, second):
                    await nursery.start(hold, port)
                await trio.to_thread.run_sync(keys, tmp_path, "revoke", made["key"]["key_id"])
        for port in (first, second):
            with pytest.raises(WebSocketRefusedError, match="revoked"):
                async with connected(f"ws://127.0.0.1:{port}", headers=bearer(made)):
                    pass


@pytest.mark.promise("keys.sockets")
async def test_a_key_outlives_the_owner_of_the_folder(tmp_path: Path) -> None:
    made = create(tmp_path, "--for-agent", "bot")
    async with server(tmp_path) as (owner, first), server(tmp_path) as (_attached, second):
        async with connected(f"ws://127.0.0.1:{first}", headers=bearer(made)) as client:
            await answer(client, "create_session", purpose="p", session_id="s")
        owner.process.kill()
        async with connected(f"ws://127.0.0.1:{second}", headers=bearer(made)) as client:
            assert (await answer(client, "get_session", session_id="s"))["session"]["created_by"] == "bot"
            with pytest.raises(WebSocketRefusedError, match="a key is needed"):
                async with connected(f"ws://127.0.0.1:{second}"):
                    pass


@pytest.mark.promise("keys.sockets")
def test_a_client_on_standard_input_may_come_by_a_key(tmp_path: Path) -> None:
    made = create(tmp_path, "--scopes", "sessions:*", "--for-agent", "bot")
    with serving(tmp_path, GREENROOM_API_KEY=made["api_key"]) as client:
        assert client.call("create_session", purpose="p")["created_by"] == "bot"
        client.send_call("get_memory", key="k")
        assert "memory:read" in client.receive()["result"]["content"][0]["text"]
        keys(tmp_path, "revoke", made["key"]["key_id"])
        assert client.process.wait(PATIENCE) == 1
        assert "was revoked" in client.errors.read_text()
        assert made["api_key"].rpartition("_")[2] not in client.errors.read_text()
    again = Server(tmp_path, GREENROOM_API_KEY=made["api_key"])
    again.input.close()
    assert (again.process.wait(PATIENCE), "was revoked" in again.errors.read_text()) == (1, True)
    again.output.close()


@pytest.mark.promise("mcp.profiles")
def test_a_key_on_standard_input_goes_before_what_the_server_lists(tmp_path: Path) -> None:
    made = create(tmp_path, "--tools", "memory-search")
    with serving(tmp_path, "--tools", "services", GREENROOM_API_KEY=made["api_key"]) as client:
        client.send("tools/list", {})
        listed = [tool["name"] for tool in client.receive()["result"]["tools"]]
        assert listed == list(PROFILES["memory-search"].tools or ())


@pytest.mark.promise("keys.revocation")
async def test_a_client_on_standard_input_of_an_attached_process_ends_with_its_key(tmp_path: Path) -> None:
    made, other = create(tmp_path), create(tmp_path)
    async with server(tmp_path) as (_owner, port):
        with (
            serving(tmp_path, GREENROOM_API_KEY=made["api_key"]) as client,
            serving(tmp_path, GREENROOM_API_KEY=other["api_key"]) as witness,
        ):
            for each in (client, witness):
                assert each.call("list_sessions")["count"] == 0
            await trio.to_thread.run_sync(keys, tmp_path, "revoke", made["key"]["key_id"])
            assert await trio.to_thread.run_sync(client.process.wait, PATIENCE) == 1
            assert "was revoked" in client.errors.read_text()
            assert witness.call("list_sessions")["count"] == 0
        async with connected(f"ws://127.0.0.1:{port}", headers=bearer(other)) as there:
            assert (await answer(there, "list_sessions"))["count"] == 0


@pytest.mark.promise("keys.nowhere-else")
async def test_what_is_logged_shows_no_key(tmp_path: Path) -> None:
    made, wrong = create(tmp_path), new_key(secrets.choice).whole
    async with server(tmp_path, "--log-level", "debug") as (program, port):
        for target in (f"?agent={made['api_key']}", f"{wrong}", f"?{wrong}"):
            with pytest.raises(WebSocketRefusedError):
                async with connected(f"ws://127.0.0.1:{port}/{target}", headers=bearer(made)):
                    pass
        with pytest.raises(WebSocketRefusedError):
            async with connected(f"ws://127.0.0.1:{port}/", headers={"Authorization": f"Bearer {wrong}"}):
                pass
        await program.interrupt()
    assert "was refused" in program.printed
    for text in (made["api_key"], wrong):
        assert text.rpartition("_")[2] not in program.printed


@pytest.mark.promise("keys.nowhere-else")
def test_the_log_itself_shows_no_key_whoever_logs_one(tmp_path: Path) -> None:
    key = new_key(secrets.choice)
    program = (
        "import logging, sys\n"
        "from greenroom.transports.ops.cli.support.error_report import start_logging\n"
        "start_logging('debug')\n"
        "log = logging.getLogger('greenroom.somewhere')\n"
        "log.debug('it was %s', sys.argv[1])\n"
        "try:\n    raise ValueError(sys.argv[1])\n"
        "except ValueError:\n    log.exception('it failed')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, key.whole],
        capture_output=True,
        env=clean_environment(tmp_path),
        timeout=PATIENCE,
        check=True,
    )
    told = done.stderr.decode()
    assert told.count(f"gr_{key.key_id}_…") == 2
    assert key.secret[:8] not in told


@pytest.mark.promise("websocket.loopback")
@pytest.mark.parametrize("flag", ["--ws", "--http"])
async def test_other_machines_are_served_with_keys_and_tls_or_behind_a_proxy_alone(
    tmp_path: Path, flag: str
) -> None:
    code, said = refused(tmp_path, flag, "0.0.0.0:0")
    assert (code, "need TLS" in said) == (2, True)
    code, said = refused(tmp_path, flag, "0.0.0.0:0", "--behind-proxy")
    assert (code, "there is no API key yet" in said) == (1, True)
    code, said = refused(tmp_path, flag, "127.0.0.1:0", "--behind-proxy")
    assert (code, "behind its proxy" in said) == (1, True)
    create(tmp_path)
    arguments = ("serve", "--data", str(tmp_path / "store"), flag, "0.0.0.0:0", "--behind-proxy")
    async with running(tmp_path, *arguments) as program:
        assert f"{flag[2:]}://0.0" in await program.line_with("listening on")
        assert "there is no API key" not in program.printed


@pytest.mark.promise("websocket.loopback", "websocket.tls")
async def test_other_machines_are_served_over_tls_once_there_is_a_key(tmp_path: Path) -> None:
    made = create(tmp_path)
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    flags = ("--ws", "0.0.0.0:0", *certificate(tmp_path, authority))
    async with running(tmp_path, "serve", "--data", str(tmp_path / "store"), *flags) as program:
        port = port_in(await program.line_with("listening on wss"))
        url = f"wss://127.0.0.1:{port}"
        async with connected(url, headers=bearer(made), ssl_context=trusting) as client:
            assert (await answer(client, "list_sessions"))["sessions"] == []
        with pytest.raises(WebSocketRefusedError, match="a key is needed"):
            async with connected(url, ssl_context=trusting):
                pass


@pytest.mark.promise("websocket.loopback")
async def test_without_keys_a_server_warns_once_that_everybody_here_may_come(tmp_path: Path) -> None:
    async with server(tmp_path) as (program, port):
        async with connected(f"ws://127.0.0.1:{port}") as client:
            await answer(client, "list_sessions")
        await program.interrupt()
    assert program.printed.count("there is no API key") == 1
    async with server(tmp_path, "--require-key") as (program, port):
        with pytest.raises(WebSocketRefusedError, match="a key is needed"):
            async with connected(f"ws://127.0.0.1:{port}"):
                pass
