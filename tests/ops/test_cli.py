"""The command line and the server's life: settings, streams, signals, terminals."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from harness import PROGRAM, clean_environment
from support.commands import INITIALIZE, run, run_on_store, sentence, serving

# -- the command line -----------------------------------------------------------


def test_the_installed_program_and_the_module_are_one(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("greenroom")
    printed = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"greenroom \d+\.\d+\.\d+\S*\n", printed)
    assert run(tmp_path, "--version").stdout == printed


@pytest.mark.parametrize(
    "command", ["serve", "config", "backup", "restore", "verify", "stats", "top", "watch", "readmit"]
)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--data DIR" in done.stdout
    assert "[GREENROOM_DATA]" in done.stdout


def test_a_command_without_a_store_does_not_take_one(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--data" not in done.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["serve", "--dta", "x"], ["backup"], ["serve", "extra"]]
)
def test_a_command_line_that_is_none_is_told_what_is(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: greenroom")


@pytest.mark.promise("cli.settings")
def test_config_shows_values_and_sources(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('agent = "from-file"\nuser = "from-file"\nmax_size = "1GiB"\n')
    variables = {"GREENROOM_CONFIG": str(file), "GREENROOM_USER": "from-env", "GREENROOM_MAX_SIZE": "2GiB"}
    arguments = ["config", "--max-size", "3GiB", "--data", str(tmp_path)]
    shown = run(tmp_path, *arguments, **variables)
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines() if line}
    assert rows["agent"] == ["from-file", "file", str(file)]
    assert rows["user"] == ["from-env", "env", "GREENROOM_USER"]
    assert rows["max_size"] == ["3GiB", "flag", "--max-size"]
    assert rows["durability"] == ["power", "default"]
    assert rows["agent_type"] == ["-", "default"]
    as_json = json.loads(run(tmp_path, *arguments, "--json", **variables).stdout)
    assert as_json["config"] == str(file)
    assert as_json["settings"]["max_size"] == {"value": 3 << 30, "source": "flag", "place": "--max-size"}
    assert as_json["settings"]["project"] == {"value": [], "source": "default", "place": None}


def test_config_finds_the_platforms_file(tmp_path: Path) -> None:
    platform_home = tmp_path / "configuration"
    (platform_home / "greenroom").mkdir(parents=True)
    (platform_home / "greenroom" / "config.toml").write_text("audit_days = 3\n")
    done = run(tmp_path, "config", "--json", XDG_CONFIG_HOME=str(platform_home))
    assert json.loads(done.stdout)["settings"]["audit_days"]["value"] == 3


@pytest.mark.parametrize("command", ["serve", "config", "stats", "verify"])
def test_a_bad_setting_is_one_sentence_whatever_the_command(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, GREENROOM_MIN_FREE="lots")
    assert done.returncode == 2
    assert sentence(done).startswith(f"greenroom {command}: GREENROOM_MIN_FREE is 'lots', but a size is")


def test_a_path_that_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/somewhere/\xff")
    assert "/somewhere/\\udcff" in run(tmp_path, "config", "--data", odd).stdout


def test_the_reader_of_the_output_may_leave_early(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as output:
        done = subprocess.run(
            [*PROGRAM, "config"],
            stdout=output,
            stderr=subprocess.PIPE,
            env=clean_environment(tmp_path),
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


# -- serving: clean ends ----------------------------------------------------------


@pytest.mark.promise("mcp.end-of-input")
def test_at_the_end_of_input_everything_asked_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        session = server.call("create_session", purpose="ends well")["session_id"]
        asked = {server.send_call("add_message", session_id=session, content=f"m{n}") for n in range(200)}
        server.input.close()
        answered = {json.loads(line)["id"] for line in server.output}
        assert answered == asked
        assert server.process.wait() == 0
    assert not (tmp_path / "store" / "control.sock").exists()
    assert "Traceback" not in server.errors.read_text()


@pytest.fixture
def heard_hangup() -> Iterator[None]:
    """Let the server hear SIGHUP also when these tests run under nohup, whose mask it would inherit."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard_hangup")
@pytest.mark.promise("mcp.signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_an_idle_server_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "--log-level", "debug") as server:
        server.process.send_signal(number)
        assert server.process.wait() == 0
        assert server.output.read() == b""
    assert number.name in server.errors.read_text()
    assert not (tmp_path / "store" / "control.sock").exists()


@pytest.mark.promise("mcp.signals", "store.kill")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_mid_request_loses_nothing_that_was_answered(
    tmp_path: Path, number: signal.Signals
) -> None:
    with serving(tmp_path) as server:
        session = server.call("create_session", purpose="interrupted")["session_id"]
        for n in range(300):
            server.send_call("add_message", session_id=session, content=f"m{n}")
        answers = [server.receive()]
        server.process.send_signal(number)
        answers += [json.loads(line) for line in server.output]
        assert server.process.wait() == 0
    written = {
        answer["result"]["structuredContent"]["message_id"] for answer in answers if "result" in answer
    }
    assert written
    with serving(tmp_path) as server:
        found = server.call("get_messages", session_id=session, limit=1000)["messages"]
        kept = [message["message_id"] for message in found]
        assert written <= set(kept)
        assert len(kept) == len(set(kept))


@contextlib.contextmanager
def unread(pipe: Path) -> Iterator[int]:
    """Make a named pipe that has a reader who never reads; `fill` it when the time has come."""
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)


def fill(pipe: Path) -> None:
    filler = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(filler, b"x")
    os.close(filler)


@pytest.mark.promise("mcp.signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_client_that_does_not_read_standard_error_stops_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    pipe = tmp_path / "unread"
    with unread(pipe) as reader, serving(tmp_path, "--log-level", "debug", errors=pipe) as server:
        fill(pipe)
        wrong = b'{"jsonrpc": "2.0", "method": "notifications/unheard_of"}\n'
        server.input.write(wrong * 10)  # each is logged
        assert server.call("create_session", purpose="still here")["success"]
        with contextlib.suppress(BlockingIOError):
            while True:
                os.read(reader, 65536)
        server.input.write(wrong)
        assert server.call("create_session", purpose="heard again")["success"]
        assert b"entries before this one were dropped" in os.read(reader, 65536)
        fill(pipe)
        server.process.send_signal(number)
        assert server.process.wait() == 0


STUCK = """
import sys, time
from greenroom.transports.ops.cli.commands import serve
from greenroom.transports.ops.cli.main import main

async def stuck(*_, stop, **__):
    print("ready", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    time.sleep(3600)

serve.serve_stdio = stuck
sys.exit(main())
"""


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STUCK, "serve", "--data", str(tmp_path / "store")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment(tmp_path)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.stdout.readline() == b"stopping\n"
        process.terminate()
        assert process.wait() == -signal.SIGTERM


INTERRUPTED_EARLY = """
import os, signal, sys
from greenroom.transports.ops.cli.main import main

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "greenroom.transports.ops.cli.commands.serve":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.exit(main())
"""


@pytest.mark.promise("mcp.signals")
def test_an_interrupt_while_it_still_starts_says_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_EARLY, "serve", "--data", str(tmp_path / "store")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment(tmp_path),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.promise("store.durability")
def test_durability_process_warns(tmp_path: Path) -> None:
    with serving(tmp_path, "--durability", "process") as server:
        assert server.end() == 0
    assert "power cut" in server.errors.read_text()


def test_a_misspelt_variable_is_warned_of(tmp_path: Path) -> None:
    with serving(tmp_path, GREENROOM_MAXSIZE="1GiB") as server:
        assert server.end() == 0
    said = server.errors.read_text()
    assert "GREENROOM_MAXSIZE is not a setting; did you mean 'GREENROOM_MAX_SIZE'?" in said


def test_settings_reach_the_domain(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "named-by-flag", "--content-limit", "5") as server:
        created = server.call("create_session", purpose="who am I")
        assert created["created_by"] == "named-by-flag"
        server.send_call("add_message", session_id=created["session_id"], content="123456")
        refused = server.receive()["result"]
        assert refused["isError"]
        assert '"VALIDATION_ERROR"' in refused["content"][0]["text"]


@pytest.mark.parametrize(("closed", "name"), [("0<&-", "input"), ("1>&-", "output")])
def test_without_standard_streams_it_says_so(tmp_path: Path, closed: str, name: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, "serve", "--data", str(tmp_path / "store")],
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=False,
    )
    assert f"standard {name} is closed" in sentence(done)


def test_without_standard_error_the_store_is_safe_from_messages(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *PROGRAM, "serve", "--data", str(tmp_path / "store")],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n",
        stdout=subprocess.PIPE,
        env=clean_environment(tmp_path, GREENROOM_LOG_LEVEL="debug"),
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["id"]) == (0, 1)
    assert run_on_store(tmp_path, "verify").returncode == 0


# -- serving: a person at a terminal ------------------------------------------------


@pytest.mark.promise("cli.terminal")
def test_at_a_terminal_it_explains_itself_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--data", str(tmp_path / "store"), "--project", "p1", "--project", "p2"],
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
            env=clean_environment(tmp_path),
            start_new_session=True,
        )
        with process:
            assert process.stderr is not None
            said = b""
            while not said.endswith(b"}\n\n"):
                said += os.read(process.stderr.fileno(), 65536)
            os.kill(process.pid, signal.SIGINT)
            assert process.wait() == 0
        assert os.get_blocking(terminal)
    finally:
        os.close(controller)
        os.close(terminal)
    text = said.decode()
    assert "waits for an MCP client on standard input" in text
    entry = json.loads(text[text.index("{") :])["mcpServers"]["greenroom"]
    assert entry["args"][-4:] == ["--project", "p1", "--project", "p2"]
    started = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
        + b"\n",
        capture_output=True,
        env=clean_environment(tmp_path),
        check=True,
    )
    assert json.loads(started.stdout)["result"]["serverInfo"]["name"] == "greenroom"


def said_on_a_terminal(home: Path, *flags: str) -> str:
    """Return what a server says to a terminal before its first client, which is none: it is interrupted."""
    controller, terminal = pty.openpty()
    said = b""
    with subprocess.Popen(
        [*PROGRAM, "serve", "--data", str(home / "store"), *flags],
        stdin=subprocess.DEVNULL,
        stderr=terminal,
        env=clean_environment(home),
    ) as process:
        os.close(terminal)
        while said.count(b"}\r\n\r\n") < sum(flag in {"--ws", "--http"} for flag in flags):
            said += os.read(controller, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    os.close(controller)
    return said.decode().replace("\r", "")


@pytest.mark.quick
@pytest.mark.promise("cli.terminal")
@pytest.mark.parametrize(("flag", "kind", "path"), [("--ws", "ws", "/"), ("--http", "http", "/mcp")])
def test_at_a_terminal_a_server_with_sockets_tells_its_folder_and_a_configuration(
    tmp_path: Path, flag: str, kind: str, path: str
) -> None:
    text = said_on_a_terminal(tmp_path, flag, "127.0.0.1:0")
    assert f"Greenroom keeps its data in {tmp_path / 'store'}\n" in text
    listening = re.search(rf"listening on ({kind}://127.0.0.1:\d+{path})\n", text)
    assert listening is not None
    entry = json.loads(text[text.index("{") :])["mcpServers"]["greenroom"]
    assert entry == {"type": kind, "url": listening[1]}


@pytest.mark.promise("cli.terminal")
def test_what_a_configuration_needs_when_keys_are_wanted_is_in_it(tmp_path: Path) -> None:
    text = said_on_a_terminal(tmp_path, "--ws", "127.0.0.1:0", "--http", "127.0.0.1:0", "--require-key")
    assert text.count("keeps its data in") == 1
    for block in text[text.index("{") :].split("\n\n")[:2]:
        entry = json.loads(block)["mcpServers"]["greenroom"]
        assert entry["headers"] == {"Authorization": "Bearer gr_..."}


def test_nobody_but_a_terminal_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, "--ws", "127.0.0.1:0", "--stdio") as server:
        server.process.terminate()
        assert server.process.wait() == 0
    assert "mcpServers" not in server.errors.read_text()


def test_the_certificate_that_the_page_makes_serves_a_client_that_trusts_it(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs/how-to/serve-http.md").read_text()
    (command,) = re.findall(r"^\$ (openssl req .*)$", page, re.MULTILINE)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    flags = ["--http", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key]
    with subprocess.Popen(
        [*PROGRAM, "serve", "--data", str(tmp_path / "store"), *flags],
        stderr=subprocess.PIPE,
        env=clean_environment(tmp_path),
        text=True,
    ) as server:
        assert server.stderr is not None
        url = next(line.split()[-1] for line in server.stderr if "listening on" in line)
        trusting = ssl.create_default_context(cafile=certificate)
        for host in ("127.0.0.1", "localhost"):
            healthy = url.replace("127.0.0.1", host).replace("/mcp", "/healthz")
            with urlopen(healthy, context=trusting) as answer:  # noqa: S310  it is https, or the test fails
                assert json.load(answer) == {"status": "ok"}
        server.terminate()
