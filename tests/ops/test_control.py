"""The control socket: what the owner answers, and what its callers cannot do to it."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from harness import PATIENCE

from greenroom.actors import Principal, open_greenroom
from greenroom.actors.sessions.requests.hook_events import MAX_PROMPT, HookEvent, Turn
from greenroom.runtime import (
    Actor,
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    Context,
    GreenroomError,
    Message,
    SharedRuntime,
    handles,
)
from greenroom.runtime.base import unix_socket
from greenroom.transports.base.observability.meter import RequestMeter
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.clients.hooks.drain import Drain as SpoolDrain
from greenroom.transports.clients.hooks.spool import Entry, hold_spool
from greenroom.transports.ops.control import server as control_server
from greenroom.transports.ops.control.client import (
    Backup,
    Code,
    ControlSocketError,
    Drain,
    Hook,
    Link,
    NoOwnerError,
    Readmit,
    Request,
    Stats,
    Verify,
    call,
    socket_path,
)
from greenroom.transports.ops.control.exchange import ANSWER_LIMIT, REQUEST_LIMIT, SOCKET_NAME
from greenroom.transports.ops.control.server import CONNECTIONS, LINE_SECONDS, Served, serve_control


class Break(Message[None], frozen=True):
    """Fails."""


class Fragile(Actor):
    kind = "fragile"

    @handles(Break)
    def on_break(self, _message: Break, _context: Context) -> None:
        raise ZeroDivisionError


@asynccontextmanager
async def owner(folder: Path) -> AsyncIterator[SharedRuntime]:
    opened = open_greenroom(folder, actors=[Fragile], embedder="none")
    async with opened as runtime, trio.open_nursery() as nursery:
        observed = ObservedServer(RequestMeter([]), runtime)
        drain = SpoolDrain(runtime, folder)
        nursery.start_soon(drain.run)
        await nursery.start(serve_control, folder, Served(observed, drain))
        yield runtime
        nursery.cancel_scope.cancel()


async def asked(folder: Path, request: Request) -> Any:
    return json.loads(await trio.to_thread.run_sync(call, folder, request))


async def connected(folder: Path) -> trio.SocketStream:
    return await trio.open_unix_socket(str(socket_path(folder)))


async def everything(stream: trio.SocketStream) -> bytes:
    received = b""
    try:
        async for part in stream:
            received += part
    except trio.BrokenResourceError:
        pass  # the owner closed with our bytes unread, which unix sockets report as a reset
    return received


# -- what it is for -----------------------------------------------------------


async def test_the_owner_answers_every_request(tmp_path: Path) -> None:
    folder, copy = tmp_path / "store", tmp_path / "copy"
    async with owner(folder):
        assert isinstance(await asked(folder, Stats()), dict)
        assert isinstance(await asked(folder, Verify()), dict)
        assert isinstance(await asked(folder, Backup(destination=str(copy))), dict)
        assert copy.is_file()
        assert await asked(folder, Readmit(kind="fragile", key="x")) == {"readmitted": False}
        assert await asked(folder, Drain()) == {"draining": True}
        with pytest.raises(ControlSocketError, match="serves no browser"):
            await asked(folder, Link())
        with pytest.raises(ControlSocketError, match="run `greenroom console` again"):
            await asked(folder, Code(terminal="x"))
        longest = HookEvent(
            id="0" * 32,
            name="user-prompt",
            client="claude-code",
            session="s",
            project="p",
            folder="/work",
            at=datetime.now(UTC),
            prompt="\x01" * MAX_PROMPT,
        )
        assert await asked(folder, Hook(principal=Principal(agent_id="a"), event=longest)) == {}


async def test_a_session_starts_with_what_waited_when_the_owner_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a busy machine takes to read what waits.
    monkeypatch.setattr("greenroom.transports.ops.control.hook_runs.CATCH_UP_SECONDS", PATIENCE)
    ann = Principal(agent_id="claude-code", user="ann")
    stop = HookEvent(
        id="0" * 32,
        name="stop",
        client="claude-code",
        session="before",
        project="p",
        folder="/work",
        at=datetime.now(UTC),
        turns=[Turn(role="user", text="Paint the mast")],
    )
    replace = msgspec.structs.replace
    told = [replace(stop, id=f"{number:032x}") for number in range(20)]
    ended = replace(stop, id="e" * 32, name="session-end", reason="logout", turns=[])
    with hold_spool(tmp_path) as spool:
        for event in (*told, ended):
            spool.put(event.id, msgspec.json.encode(Entry(principal=ann, event=event)))
    start = replace(stop, id="f" * 32, name="session-start", session="next", reason="startup", turns=[])
    async with owner(tmp_path):
        answer = await asked(tmp_path, Hook(principal=ann, event=start))
        assert "(logout)" in answer["context"]


async def test_an_actor_set_aside_is_let_in_again(tmp_path: Path) -> None:
    address = Address("fragile", "x")
    async with owner(tmp_path / "store") as runtime:
        failure: GreenroomError = ActorFailedError()
        while not isinstance(failure, ActorQuarantinedError):
            with pytest.raises(GreenroomError) as caught:
                await runtime.ask(address, Break())
            failure = caught.value
        assert await asked(tmp_path / "store", Readmit(kind="fragile", key="x")) == {"readmitted": True}
        assert await asked(tmp_path / "store", Readmit(kind="fragile", key="x")) == {"readmitted": False}


async def test_what_cannot_be_done_is_said_and_the_owner_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    async with owner(folder):
        with pytest.raises(ControlSocketError, match="'copy' is not an absolute path"):
            await asked(folder, Backup(destination="copy"))
        with pytest.raises(ControlSocketError, match="exists"):
            await asked(folder, Backup(destination=str(folder)))
        with pytest.raises(ControlSocketError, match="at most"):
            await asked(folder, Backup(destination="/" + "x" * REQUEST_LIMIT))
        assert await asked(folder, Stats())


# -- the socket's place ---------------------------------------------------------


async def test_the_socket_is_the_owners_alone_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    before = os.umask(0)
    try:
        async with owner(folder):
            status = (folder / SOCKET_NAME).lstat()
            assert stat.S_ISSOCK(status.st_mode)
            assert stat.S_IMODE(status.st_mode) == 0o600
    finally:
        os.umask(before)
    assert not (folder / SOCKET_NAME).exists()
    with pytest.raises(NoOwnerError):
        call(folder, Stats())


@pytest.mark.parametrize("shadow", ["socket", "file", "dangling link"])
async def test_what_a_dead_owner_left_is_replaced(tmp_path: Path, shadow: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    if shadow == "socket":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(folder / SOCKET_NAME))
    elif shadow == "file":
        (folder / SOCKET_NAME).write_bytes(b"")
    else:
        (folder / SOCKET_NAME).symlink_to(tmp_path / "nowhere")
    with pytest.raises(NoOwnerError):
        call(folder, Stats())
    (folder / SOCKET_NAME).rename(tmp_path / "left")  # a folder of other things would be refused as a store
    async with owner(folder):
        pass
    (tmp_path / "left").rename(folder / SOCKET_NAME)
    async with owner(folder):
        assert await asked(folder, Stats())
    assert not (folder / SOCKET_NAME).is_symlink()


async def test_a_path_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30) / "store"
    assert len(os.fsencode(folder / SOCKET_NAME)) > unix_socket.PATH_LIMIT
    folder.parent.mkdir()
    async with owner(folder):
        place = socket_path(folder)
        assert place != folder / SOCKET_NAME
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert await asked(folder, Stats())
    assert not place.exists()
    assert not (folder / SOCKET_NAME).is_symlink()
    with pytest.raises(NoOwnerError):
        call(folder, Stats())


async def test_a_short_place_that_others_can_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / "run" / f"greenroom-{os.geteuid()}"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(open_to_all.parent))
    folder = tmp_path / ("long" * 30) / "store"
    folder.parent.mkdir()
    async with owner(folder):
        assert socket_path(folder).parent != open_to_all
        assert list(open_to_all.iterdir()) == []


async def test_without_a_place_for_the_socket_the_owner_says_so_and_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "store"
    async with owner(folder):
        pass
    (folder / SOCKET_NAME).mkdir()
    async with owner(folder) as runtime:
        assert runtime.statistics()
    assert "no control socket" in caplog.text


async def test_a_socket_of_somebody_else_in_our_place_stays(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    async with owner(folder):
        (folder / SOCKET_NAME).unlink()
        (folder / SOCKET_NAME).write_text("somebody else's")
    assert (folder / SOCKET_NAME).read_text() == "somebody else's"


# -- hostile callers ----------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"\0\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xfe\n",
        b"[" * 10_000 + b"\n",
        b"{}\n",
        b'{"op": "erase"}\n',
        b'{"op": "stats", "more": 1}\n',
        b'{"op": "backup"}\n',
        b'{"op": "backup", "destination": 1}\n',
        b'{"op": "backup", "destination": "\\u0000"}\n',
        b'{"op": "backup", "destination": "\\ud800"}\n',
        b'{"op": "stats"}\n{"op": "stats"}\n',
        b"x" * (REQUEST_LIMIT + 1),
        b"x" * 1_000_000 + b"\n",
    ],
    ids=lambda line: repr(line[:30]),
)
async def test_what_is_no_request_is_answered_as_that(tmp_path: Path, line: bytes) -> None:
    folder = tmp_path / "store"
    async with owner(folder):
        async with await connected(folder) as stream:
            try:
                await stream.send_all(line)
            except trio.BrokenResourceError:
                assert len(line) > REQUEST_LIMIT
            answer = await everything(stream)
            assert msgspec.json.decode(answer)["op"] == "failed"
        assert await asked(folder, Stats())


async def test_a_caller_that_says_nothing_costs_one_place_for_a_while(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    folder = tmp_path / "store"
    async with owner(folder), trio.open_nursery() as nursery:
        silent = [await connected(folder) for _ in range(CONNECTIONS)]
        await silent[0].send_all(b'{"op": ')
        late: list[Any] = []

        async def come_late() -> None:
            late.append(await asked(folder, Stats()))

        nursery.start_soon(come_late)
        await trio.testing.wait_all_tasks_blocked()
        assert late == []
        mock_clock.jump(LINE_SECONDS + 1)
        for stream in silent:
            assert await everything(stream) == b""
            await stream.aclose()
    assert len(late) == 1


@pytest.mark.parametrize("said", [b"", b'{"op": "st', b'{"op": "verify"}\n', b'{"op": "verify"}\nmore'])
@pytest.mark.parametrize("end", ["half", "whole"])
async def test_a_caller_that_goes_away_withdraws_its_request(tmp_path: Path, said: bytes, end: str) -> None:
    folder = tmp_path / "store"
    async with owner(folder):
        for _ in range(CONNECTIONS + 1):
            stream = await connected(folder)
            await stream.send_all(said)
            if end == "half":
                await stream.send_eof()
                await everything(stream)
            await stream.aclose()
        assert await asked(folder, Stats())


# -- an owner that is none ------------------------------------------------------


@contextmanager
def impostor(folder: Path, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET_NAME))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(REQUEST_LIMIT)
                behave(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_an_owner_that_ends_is_said(tmp_path: Path) -> None:
    with (
        impostor(tmp_path, lambda _connection: None),
        pytest.raises(ControlSocketError, match=r"ended|went away"),
    ):
        call(tmp_path, Stats())


@pytest.mark.parametrize(
    "answer", [b"\n", b"nonsense\n", b'{"op": "done"}\n', b"\xff\n", b"[" * 100_000 + b"\n"]
)
def test_an_answer_that_is_none_is_said(tmp_path: Path, answer: bytes) -> None:
    with (
        impostor(tmp_path, lambda connection: connection.sendall(answer)),
        pytest.raises(ControlSocketError, match="no answer that can be understood"),
    ):
        call(tmp_path, Stats())


def test_an_endless_answer_is_cut_off(tmp_path: Path) -> None:
    def flood(connection: socket.socket) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            while True:
                connection.sendall(b"x" * ANSWER_LIMIT)

    with impostor(tmp_path, flood), pytest.raises(ControlSocketError, match="larger than"):
        call(tmp_path, Stats())


def test_a_silent_owner_is_not_waited_for_longer_than_asked(tmp_path: Path) -> None:
    def wait_for_the_end(connection: socket.socket) -> None:
        while connection.recv(1024):
            pass

    with impostor(tmp_path, wait_for_the_end), pytest.raises(ControlSocketError, match="has not answered"):
        call(tmp_path, Stats(), patience=0.01)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="takes a second user")
@pytest.mark.parametrize("module", [unix_socket, control_server])
def test_another_users_end_is_not_ours(module: Any) -> None:
    name = f"\0greenroom-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        for user, ours in ((65534, False), (0, True)):
            child = fork_and_connect(name, user)
            connection, _ = listener.accept()
            with connection:
                assert module.peer_is_ours(connection) is ours
            assert os.waitpid(child, 0)[1] == 0


def fork_and_connect(name: str, user: int) -> int:
    """Another user could not start this interpreter where its folder is private; a fork need not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            os.setuid(user)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(name)
                connection.recv(1)
            os._exit(0)
        finally:
            os._exit(1)
    return child
