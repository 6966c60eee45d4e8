"""`greenroom doctor`: each finding is made to happen and seen, and nothing is changed for it."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import by_night
from support.embedding import WAITS, Settled
from support.stores import small_disk

from greenroom.actors import Agent, Principal, PutDocument, StoreMemory, ask_corpus, open_greenroom
from greenroom.actors.content.documents.document_types import Chunk, Document
from greenroom.actors.knowledge.corpora.requests.corpus_requests import RemoveDocuments
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.runtime import Encryption, FolderLock, RuntimeOptions, SharedRuntime, backup, key_source
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import resolve
from greenroom.transports.base.observability.meter import RequestMeter
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.clients.hooks.failures import note_failure
from greenroom.transports.ops.cli.commands.doctor import ALL_CHECKS
from greenroom.transports.ops.cli.doctor.examination import CHECKS, SECONDS, examine
from greenroom.transports.ops.cli.doctor.finding import Finding, error, exit_code, ok, warning, worst
from greenroom.transports.ops.cli.doctor.machine import of_address_space, of_files, of_watches
from greenroom.transports.ops.cli.main import main
from greenroom.transports.ops.cli.support.startup_notice import program
from greenroom.transports.ops.control.server import Served, serve_control

pytestmark = pytest.mark.promise("cli.doctor")

ANN = Principal(agent_id="a", user="ann")
LOCAL = [("/", "ext4")]
IS_ROOT = os.geteuid() == 0


class Home:
    """A home with a store and its secrets, and what the doctor says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / "store"
        self.secrets = path / "secrets"
        self.data = self.store / "greenroom.mdb"

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[SharedRuntime]:
        async with open_greenroom(
            self.store, **{"embedder": "none", "secrets": self.secrets, **options}
        ) as runtime:
            yield runtime

    async def make(self, **options: Any) -> None:
        async with self.opened(**options) as runtime:
            await Agent(runtime, ANN).ask(StoreMemory(namespace="user:ann", key="k", content="a pump is due"))

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        async with self.opened() as runtime, trio.open_nursery() as nursery:
            await nursery.start(serve_control, self.store, Served(ObservedServer(RequestMeter([]), runtime)))
            yield
            nursery.cancel_scope.cancel()

    async def examined(self, *topics: str, **more: Any) -> dict[str, list[Finding]]:
        """Return the findings by topic, of some topics or all; nothing at all may have changed."""
        flags = {"data": str(self.store), "secrets": str(self.secrets)}
        flags |= {name: str(value) for name, value in more.pop("settings", {}).items()}
        resolved = resolve(flags, {}, default_file=lambda: self.path / "none")
        checks = {topic: ALL_CHECKS[topic] for topic in topics or ALL_CHECKS}
        before = everything(self.path)
        found = await examine(resolved, {}, **{"checks": checks, "mounts": lambda: LOCAL, **more})
        assert everything(self.path) == before
        return {topic: [each for each in found if each.topic == topic] for topic in {e.topic for e in found}}

    async def finding(self, topic: str, level: str, said: str, **more: Any) -> Finding:
        """Return the one finding of a level about a topic, which says this and has a remedy."""
        found = await self.examined(topic, **more)
        (only,) = [each for each in found.get(topic, []) if each.level == level] or [ok(str(found))]
        assert said in only.finding, only
        assert (only.remedy is None) == (level == "ok")
        return only


def everything(path: Path) -> dict[str, tuple[Any, ...]]:
    """Return what is below a folder: names, modes, owners, times and contents."""
    found = {}
    for each in [path, *path.rglob("*")]:
        status = each.lstat()
        content = each.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(each)] = (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def levels(found: dict[str, list[Finding]]) -> set[str]:
    return {each.level for findings in found.values() for each in findings}


def code(found: dict[str, list[Finding]]) -> int:
    return exit_code([each for findings in found.values() for each in findings])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in [each for each in os.environ if each.startswith(("XDG_", "GREENROOM_", "CLAUDE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path)


@contextmanager
def owned_by_another(folder: Path) -> Iterator[int]:
    """Have a child own the folder; return its id."""
    ready, told = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            with FolderLock(folder):
                os.write(told, b".")
                signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(told)
        assert os.read(ready, 1) == b"."
        yield child
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def answering(folder: Path, answer: bytes | None) -> Iterator[None]:
    """Answer at the control socket; None: take the connection and stay silent."""
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "control.sock"))
        (folder / "control.sock").chmod(0o600)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 14)
                if answer is None:
                    over.wait()
                else:
                    connection.sendall(answer + b"\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        over.set()
        thread.join()
    (folder / "control.sock").unlink()


# -- the store -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("sound"))
    trio.run(home.make)
    return home


@settings(max_examples=by_night(1_000, by_day=20))
@given(st.data())
@pytest.mark.promise("store.damage")
def test_no_damage_kills_or_hides(sound: Home, data: st.DataObject) -> None:
    whole = sound.data.read_bytes()
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 40))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    length = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    sound.data.write_bytes(content[:length])
    try:
        topics = ("folder", "locks", "permissions", "encryption", "audit", "embedder")
        found = trio.run(partial(sound.examined, *topics))
    finally:
        sound.data.write_bytes(whole)
    assert code(found) in {exit_codes.FAILED, exit_codes.DAMAGED, exit_codes.TOO_NEW, exit_codes.NO_ACCESS}
    assert found["locks"][0].level == "warning"  # the file is not what its owner left


@pytest.mark.parametrize("content", [b"", b"not a store" * 1_000])
async def test_a_damaged_store_is_65(home: Home, content: bytes) -> None:
    await home.make()
    home.data.write_bytes(content)
    found = await home.examined()
    assert code(found) == exit_codes.DAMAGED
    assert "greenroom restore" in str([each.remedy for each in found["folder"]])


async def test_a_newer_store_is_76(home: Home) -> None:
    await home.make()
    with (
        lmdb.open(str(home.data), subdir=False, max_dbs=4, lock=False) as opened,
        opened.begin(write=True) as transaction,
    ):
        transaction.put(b"greenroom.format", b"9999")
    found = await home.finding("folder", "error", "store format 9999")
    assert found.code == exit_codes.TOO_NEW


async def test_all_is_well_with_a_stopped_store_and_with_a_served_one(home: Home) -> None:
    await home.make()
    found = await home.examined()
    assert (levels(found), code(found)) == ({"ok"}, exit_codes.OK), found
    async with home.served():
        found = await home.examined()
        assert (levels(found), code(found)) == ({"ok"}, exit_codes.OK), found
        assert f"process {os.getpid()} owns the folder and answers" in found["locks"][0].finding
        assert "same version" in found["versions"][1].finding
    await home.make()  # the lock was not lost when the owner's own file was looked at


# -- the folder ----------------------------------------------------------------------


async def test_no_store_is_made_where_there_is_none(home: Home) -> None:
    found = await home.examined()
    assert not home.store.exists()
    assert (code(found), worst(found["folder"])) == (exit_codes.FAILED, "warning")
    assert "is not there yet" in found["folder"][0].finding


async def test_what_is_no_folder_of_a_store(home: Home) -> None:
    home.store.mkdir()
    await home.finding("folder", "warning", "is empty")
    (home.store / "owner.lock").touch()
    await home.finding("folder", "warning", "has no store yet")
    (home.store / "owner.lock").rename(home.store / "letter")
    assert (await home.finding("folder", "error", "holds other things")).code == exit_codes.NO_ACCESS
    (home.store / "letter").unlink()
    home.store.rmdir()
    home.store.mkdir()
    os.mkfifo(home.data)  # to open it would wait for ever
    await home.finding("folder", "error", "holds other things")
    home.data.unlink()
    home.data.symlink_to("nowhere")
    await home.finding("folder", "error", "holds other things")
    home.data.unlink()
    home.store.rmdir()
    home.store.write_text("mine")
    assert (await home.finding("folder", "error", "is no folder")).code == exit_codes.NO_ACCESS


async def test_a_folder_that_cannot_be_looked_into(home: Home) -> None:
    if IS_ROOT:  # whom no mode keeps out
        home.store.symlink_to(home.store)
        found = await home.examined()
    else:
        await home.make()
        home.store.chmod(0)
        found = await home.examined()
        home.store.chmod(0o700)
    assert "cannot be looked into" in found["folder"][0].finding
    assert code(found) == exit_codes.NO_ACCESS


async def test_a_disk_that_is_full_and_one_that_is_only_read(home: Home) -> None:
    with small_disk(home.path / "disk", "2M") as disk:
        home.store, home.data = disk / "store", disk / "store" / "greenroom.mdb"
        await home.make(options=RuntimeOptions(min_free=0))
        (disk / "rest").write_bytes(b"x" * 100)
        with (disk / "rest").open("ab", buffering=0) as rest:
            while rest.write(bytes(1 << 16)) == 1 << 16:
                if os.statvfs(disk).f_bavail == 0:
                    break
        assert (await home.finding("disk", "error", "writes stop")).code == exit_codes.NO_ACCESS
        await trio.run_process(["mount", "-o", "remount,ro", os.fspath(disk)])
        assert (await home.finding("folder", "error", "cannot be written")).code == exit_codes.NO_ACCESS


@pytest.mark.parametrize(
    ("kind", "level", "said"),
    [("nfs4", "error", "neither locks nor shared memory"), ("tmpfs", "warning", "is empty after")],
)
async def test_a_file_system_that_keeps_nothing_or_locks_nothing(
    home: Home, kind: str, level: str, said: str
) -> None:
    await home.make()
    await home.finding("folder", level, said, mounts=lambda: [*LOCAL, (str(home.path), kind)])


async def test_what_commands_left_in_the_folder(home: Home) -> None:
    await home.make()
    (home.store / "greenroom.mdb.restoring").touch(0o600)
    await home.finding("folder", "warning", "greenroom.mdb.restoring")
    (home.store / "greenroom.mdb.restoring").rename(home.store / "greenroom.mdb.before-restore")
    assert "before-restore" in (await home.examined("folder"))["folder"][-1].finding


# -- the owner -----------------------------------------------------------------------


async def test_an_owner_that_does_not_listen(home: Home) -> None:
    await home.make()
    with owned_by_another(home.store) as child:
        found = await home.finding("locks", "warning", "does not listen", patience=0.0)
        assert f"process {child} " in found.finding


async def test_a_stuck_owner_is_75_and_not_waited_for(home: Home) -> None:
    await home.make()
    with owned_by_another(home.store) as child:
        with answering(home.store, None):
            found = await home.finding("locks", "error", "has not answered", patience=0.01)
        assert (found.code, str(child) in (found.remedy or "")) == (exit_codes.OWNED, True)
        os.kill(child, signal.SIGSTOP)
        await trio.to_thread.run_sync(os.waitpid, child, os.WUNTRACED)
        with answering(home.store, None):
            found = await home.finding("locks", "error", "was suspended", patience=0.01)
        assert found.remedy == f"continue it: kill -CONT {child}"


async def test_an_owner_of_another_version(home: Home) -> None:
    await home.make()
    with owned_by_another(home.store):
        with answering(home.store, b'{"op":"done","result":{"running":true,"version":"99.0"}}'):
            found = await home.examined("versions", "server", "disk", "embedder", "clock", "locks")
        assert [each.level for each in found["versions"]] == ["ok", "warning", "warning"]
        assert "is greenroom 99.0" in found["versions"][1].finding
        assert levels({"rest": [*found["disk"], *found["clock"], *found["locks"]]}) == {"ok"}
        with answering(home.store, b'{"op":"done","result":{"running":true}}'):
            found = await home.examined("versions")
        assert "an older greenroom" in found["versions"][1].finding
        with answering(home.store, b'{"op":"failed","sentence":"the request cannot be understood: often"}'):
            await home.finding("locks", "warning", "its version does not know this request")


async def test_how_the_last_owner_left(home: Home) -> None:
    await home.make()
    lock = home.store / "owner.lock"
    for line, level, said in [
        (b"Fatal Python error: Segmentation fault\n\nCurrent thread", "warning", "Segmentation fault"),
        (f"{0:<20} {'x' * 32} {'doubt':<8}\n".encode(), "error", "found damage in the store"),
        (f"{0:<20} {'x' * 32} {'':<8}\n".encode(), "warning", "changed or replaced"),
        (f"{4194304:<20} {'x' * 32} {'':<8}\n".encode(), "warning", "the folder was copied"),
        (f"{4194304:<20} {'x' * 16:<32} {'':<8}\n".encode(), "ok", "was killed"),
    ]:
        lock.write_bytes(line)
        await home.finding("locks", level, said)
    lock.write_bytes(f"{0:<20} {'x' * 32} {'':<8}\n".encode())
    home.data.unlink()
    assert (await home.finding("locks", "error", "is gone or empty")).code == exit_codes.DAMAGED


@pytest.mark.promise("store.damage")
async def test_a_folder_that_was_copied_while_it_was_open(home: Home) -> None:
    await home.make()
    copy = home.path / "copy"
    async with home.opened():
        shutil.copytree(home.store, copy, ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(home.store)
    copy.rename(home.store)
    await home.finding("locks", "warning", "the next start checks its structure")
    with FolderLock(home.store) as owner:
        assert (owner.unclean, owner.survived) == (True, False)


async def test_a_part_of_the_owner_that_is_not_well(home: Home) -> None:
    await home.make()
    async with home.opened() as runtime:
        figures = await ObservedServer(RequestMeter([]), runtime).figures(often=True)
    figures["actors"]["set_aside"] = ["session/s"]
    figures["relay"]["silent_seconds"] = 9
    figures["embedding"] |= {"state": "failing", "embedder": "minilm", "trouble": "the model is gone"}
    figures["store"] |= {"used_bytes": 95, "map_bytes": 100}
    answer = msgspec.json.encode({"op": "done", "result": figures})
    with owned_by_another(home.store), answering(home.store, answer):
        found = await home.examined("server", "locks", "embedder", "disk")
    assert "session/s" in found["server"][0].finding
    assert ": greenroom readmit --data " in (found["server"][0].remedy or "")
    assert (found["server"][0].remedy or "").endswith(" session s")
    assert "silent for 9 s" in found["locks"][1].finding
    assert "the model is gone" in found["embedder"][0].finding
    assert "at 95 % writes stop" in found["disk"][1].finding


async def test_a_lock_that_is_a_link_is_not_followed(home: Home) -> None:
    await home.make()
    lock = home.store / "owner.lock"
    lock.rename(home.path / "elsewhere")
    lock.symlink_to(home.path / "elsewhere")
    found = await home.finding("locks", "error", "cannot be found out")
    assert (found.code, str(lock) in found.finding) == (exit_codes.NO_ACCESS, True)


# -- permissions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "level", "said"),
    [
        (lambda home: home.store.chmod(0o755), "warning", "has mode 0755"),
        (lambda home: home.data.chmod(0o644), "warning", "others may read or change greenroom.mdb"),
        (lambda home: home.secrets.chmod(0o777), "error", "can be changed by others"),
        (lambda home: key(home).chmod(0o640), "error", "can be read or changed by others"),
        (lambda home: key(home).write_text("no key"), "error", "is no secret of a store"),
        (lambda home: key(home).write_text("11" * 32), "error", "used with a secret with the mark"),
        (lambda home: key(home).unlink(), "error", "and there is no "),
    ],
)
async def test_what_others_may_read_and_what_is_lost(
    home: Home, change: Callable[[Home], None], level: str, said: str
) -> None:
    await home.make()
    change(home)
    found = await home.finding("permissions", level, said)
    assert found.code == (exit_codes.NO_ACCESS if level == "error" else exit_codes.OK)


def key(home: Home) -> Path:
    (found,) = home.secrets.glob("*.key")
    return found


@pytest.mark.skipif(not IS_ROOT, reason="only the superuser can give a file away")
async def test_what_belongs_to_another_user(home: Home) -> None:
    await home.make()
    os.chown(home.data, 65534, -1)
    await home.finding("permissions", "warning", "greenroom.mdb in")
    for each in (home.store, *home.store.iterdir()):
        os.chown(each, 65534, -1)
    found = await home.finding("permissions", "warning", "belongs to user 65534, and this is root")
    assert "sudo -u '#65534'" in (found.remedy or "")


async def test_a_key_of_tls_that_others_may_read(home: Home) -> None:
    place = home.path / "key.pem"
    await home.finding("permissions", "error", "cannot be looked at", settings={"tls_key": place})
    place.write_text("key")
    place.chmod(0o644)
    await home.finding("permissions", "warning", "the key of TLS", settings={"tls_key": place})


# -- encryption, audit, embedder -----------------------------------------------------


async def test_the_key_of_an_encrypted_store(home: Home) -> None:
    places = {name: home.path / name for name in ("right", "wrong")}
    for number, place in enumerate(places.values(), start=1):
        place.write_text(f"{number}{number}" * 32)
        place.chmod(0o600)
    right, wrong = ({"encryption_key": f"file:{place}"} for place in places.values())
    await home.make(encryption=Encryption(key_source(f"file:{places['right']}"), required=True))
    found = await home.examined(settings=right)
    assert (levels(found), "encrypted" in found["folder"][0].finding) == ({"ok"}, True)
    assert "--encryption-key" in str((await home.finding("encryption", "error", "no key was given")).remedy)
    await home.finding("encryption", "error", "another key", settings=wrong)
    places["right"].chmod(0o644)
    found_open = await home.finding("encryption", "error", "can be read", settings=right)
    assert found_open.code == exit_codes.NO_ACCESS
    places["right"].unlink()
    await home.finding("encryption", "error", "cannot be read", settings=right)


async def test_a_key_for_a_store_in_the_clear(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    await home.make()
    monkeypatch.setenv("KEY", "11" * 32)
    settings = {"encryption_key": "env:KEY"}
    await home.finding("encryption", "warning", "is not encrypted", settings=settings)
    await home.finding("encryption", "error", "is not encrypted", settings={**settings, "encrypt": "true"})


async def test_an_older_store_that_was_put_back(home: Home) -> None:
    await home.make()
    await trio.to_thread.run_sync(backup, home.store, home.path / "copy")
    async with home.opened() as runtime:
        await Agent(runtime, ANN).ask(StoreMemory(namespace="user:ann", key="k2", content="another"))
    home.data.write_bytes((home.path / "copy").read_bytes())
    await home.finding("audit", "warning", "an older store was put there")
    async with home.opened():
        pass
    await home.finding("audit", "warning", "were gone at a start on")


LETTERS = """
class Letters:
    name = "letters:1"

    def embed(self, texts):
        return [[float(text.count(letter)) + 1 for letter in "abc"] for text in texts]
"""


@pytest.mark.parametrize(
    ("kept", "other", "space"),
    [
        ("static", "python:doctors_letters:Letters", "static:"),
        ("python:doctors_letters:Letters", "static", "python:letters:1:3"),
    ],
)
async def test_vectors_of_another_embedder(
    home: Home, monkeypatch: pytest.MonkeyPatch, kept: str, other: str, space: str
) -> None:
    (home.path / "doctors_letters.py").write_text(LETTERS)
    monkeypatch.syspath_prepend(home.path)
    async with home.opened(embedder=kept, queries=WAITS) as runtime:
        await Agent(runtime, ANN).ask(StoreMemory(namespace="user:ann", key="k", content="a pump is due"))
        await runtime.query(Settled())
    assert levels(await home.examined("embedder", settings={"embedder": kept})) == {"ok"}
    said = f"vectors of another embedder ({space}"
    await home.finding("embedder", "warning", said, settings={"embedder": other})


async def test_an_embedder_that_cannot_be_had(home: Home) -> None:
    gone = {"embedder": f"onnx:{home.path / 'gone'}"}
    assert (await home.finding("embedder", "error", "does not exist", settings=gone)).code == 73
    nobody = {"embedder": "http://127.0.0.1:1/v1", "embedder_model": "m"}
    await home.finding("embedder", "warning", "is not available now", settings=nobody)


# -- room, clock, limits -------------------------------------------------------------


async def test_room_that_is_short(home: Home) -> None:
    await home.make()
    free = os.statvfs(home.path).f_bavail * os.statvfs(home.path).f_frsize
    most = str(16 << 40)
    assert (await home.finding("disk", "error", "writes stop", settings={"min_free": most})).code == 73
    await home.finding("disk", "warning", "only ", settings={"min_free": str(free * 3 // 4)})
    os.truncate(home.data, 1_000_000)
    await home.finding("disk", "warning", "at 95 % writes stop", settings={"max_size": "1MiB"})


async def test_what_is_from_the_future(home: Home) -> None:
    await home.make()
    await home.finding("clock", "warning", "it was set back", now=lambda: 1e9)
    async with home.served():
        later = datetime.now(UTC) + timedelta(hours=2)
        await home.finding("clock", "warning", "was set forward by 7,", now=later.timestamp)


def test_limits_of_the_system() -> None:
    assert [each.level for each in of_files(64, "it")] == ["warning"]
    assert [each.level for each in of_files(resource.RLIM_INFINITY, "it")] == ["ok"]
    assert [each.code for each in of_address_space(1 << 30, 1 << 38)] == [exit_codes.NO_ACCESS]
    assert not list(of_address_space(resource.RLIM_INFINITY, 1 << 38))
    assert [each.remedy for each in of_watches("max_user_watches", 10, 8192)] == [
        "as root: sysctl fs.inotify.max_user_watches=65536"
    ]
    assert not list(of_watches("max_user_watches", 8192, 8192))


# -- clients, hooks, spool -----------------------------------------------------------


async def test_clients_that_start_something_else(home: Home) -> None:
    await home.make()
    file = home.path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    for content, said in [
        ('{"mcpServers": {"greenroom": {"command": "greenroom", "args": ["serve"]}}}', "without a folder"),
        ('{"mcpServers": {"greenroom": {"command": "/gone/greenroom", "args": []}}}', "there is no /gone"),
        ('{"mcpServers": {"greenroom": {"command": "/bin/sh", "args": []}}}', "is not this program"),
        ("{", "cannot be read as JSON"),
    ]:
        file.write_text(content)
        found = (await home.examined("clients"))["clients"]
        assert any(said in each.finding and each.level == "warning" for each in found), found
    file.unlink()
    assert "found, without Greenroom" not in (await home.examined("clients"))["clients"][0].finding


async def test_a_client_with_another_folder(home: Home) -> None:
    entry = {"command": program()[0], "args": [*program()[1], "serve", "--data", "/elsewhere"]}
    (home.path / ".gemini").mkdir()
    (home.path / ".gemini/settings.json").write_text(json.dumps({"mcpServers": {"greenroom": entry}}))
    await home.finding("clients", "warning", "its data are in /elsewhere")


IN_MEMORY = "which is memory"
"""A right warning about the folder, where the tests' own folder lies on a tmpfs."""


def warnings_in(printed: str) -> list[str]:
    """Return the lines with warnings, but for that about the tests' own folder."""
    return [line for line in printed.splitlines() if line.startswith("warning ") and IN_MEMORY not in line]


async def test_a_client_is_tried_when_that_is_asked_for(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    await home.make()
    arguments = [*program()[1], "serve", "--data", str(home.store), "--nonsense"]
    entry = {"command": program()[0], "args": arguments}
    (home.path / ".gemini").mkdir()
    (home.path / ".gemini/settings.json").write_text(json.dumps({"mcpServers": {"greenroom": entry}}))
    await home.finding("clients", "ok", "gemini: configured in")
    arguments = ["doctor", "--data", str(home.store), "--secrets", str(home.secrets), "--try-clients"]
    assert await trio.to_thread.run_sync(main, arguments) == exit_codes.FAILED
    told = capsys.readouterr().out
    assert "does not answer as a server" in told
    assert len(warnings_in(told)) == 1


async def test_hooks_that_failed_and_what_waits_for_an_owner(home: Home) -> None:
    await home.make()
    note_failure(home.store, "stop", "the transcript is outside")
    await home.finding("hooks", "warning", "1 has failed, stop last, on ")
    later = datetime.now(UTC) + timedelta(days=8)
    await home.finding("hooks", "ok", "the transcript is outside", now=later.timestamp)
    refused = home.store / "spool" / "refused"
    refused.mkdir(mode=0o700)
    (refused / f"{1:020d}-{0:032x}.json").write_text("{")
    await home.finding("spool", "warning", "1 files could not be read")
    (refused / f"{1:020d}-{0:032x}.json").rename(home.store / "spool" / f"{10**18:020d}-{0:032x}.json")
    await home.finding("spool", "ok", "the next server takes them")
    with owned_by_another(home.store), answering(home.store, b'{"op":"done","result":{"running":true}}'):
        await home.finding("spool", "warning", "although a server is running")
    (home.store / "spool").chmod(0o755)
    await home.finding("permissions", "warning", "spool")


async def test_variables_that_are_none_of_ours(home: Home) -> None:
    resolved = resolve({"data": str(home.store)}, {"GREENROOM_DATAA": "x"}, default_file=lambda: home.path)
    (found,) = await examine(resolved, {}, checks={"settings": CHECKS["settings"]})
    assert (found.level, "GREENROOM_DATA'" in found.finding) == ("warning", True)


# -- checks --------------------------------------------------------------------------


@asynccontextmanager
async def hanging(clock: trio.testing.MockClock) -> AsyncIterator[Callable[..., list[Any]]]:
    """Give a function that hangs while the block runs; the time of a check passes once it does."""
    begun, over = threading.Event(), threading.Event()

    def hang(*_: object) -> list[Any]:
        begun.set()
        over.wait()
        return []

    async def let_time_pass() -> None:
        await trio.to_thread.run_sync(begun.wait)
        clock.jump(SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(let_time_pass)
        yield hang
    over.set()


async def test_a_check_that_hangs_is_a_finding(home: Home, mock_clock: trio.testing.MockClock) -> None:
    resolved = resolve({"data": str(home.store)}, {}, default_file=lambda: home.path)
    async with hanging(mock_clock) as hang:
        (found,) = await examine(resolved, {}, checks={"hung": hang})
    assert (found.topic, found.code) == ("hung", exit_codes.NO_ACCESS)
    assert "within 15 s" in found.finding


async def test_a_check_that_fails_is_a_finding(home: Home) -> None:
    resolved = resolve({"data": str(home.store)}, {}, default_file=lambda: home.path)
    checks: dict[str, Any] = {"broken": lambda _: 1 / 0, "denied": lambda _: [Path("/nowhere").stat()]}
    found = await examine(resolved, {}, checks=checks)
    codes = [exit_codes.INTERNAL, exit_codes.NO_ACCESS]
    assert [(each.topic, each.code) for each in found] == list(zip(checks, codes, strict=True))


async def test_a_folder_that_hangs_does_not_keep_the_others_from_being_looked_at(
    home: Home, mock_clock: trio.testing.MockClock
) -> None:
    async with hanging(mock_clock) as hang:
        found = await home.examined("folder", "versions", "locks", mounts=hang)
    assert found.keys() == {"folder", "versions"}
    assert "nothing came for 15 s" in found["folder"][0].finding


@pytest.mark.quick
@pytest.mark.promise("cli.exit-codes")
def test_the_gravest_error_decides() -> None:
    errors = [error("f", "r", each) for each in (73, 76, 65, 75)]
    assert exit_code([]) == exit_code([ok("f")]) == exit_codes.OK
    assert exit_code([ok("f"), warning("f", "r")]) == exit_codes.FAILED
    assert exit_code([warning("f", "r"), *errors]) == exit_codes.DAMAGED
    assert exit_code(errors[:2]) == exit_codes.TOO_NEW


# -- the command ---------------------------------------------------------------------


async def test_the_command_shows_all_of_it(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    await home.make()
    arguments = ["doctor", "--data", str(home.store), "--secrets", str(home.secrets)]
    code = await trio.to_thread.run_sync(main, arguments)
    told = capsys.readouterr().out
    assert warnings_in(told) == []
    if IN_MEMORY not in told:
        assert code == exit_codes.OK
        assert told.endswith("\nnothing wrong was found\n")
    home.store.chmod(0o711)
    assert await trio.to_thread.run_sync(main, arguments) == exit_codes.FAILED
    told = capsys.readouterr().out
    [wrong] = warnings_in(told)
    lines = told.splitlines()
    assert f"-> chmod 700 {home.store}" in lines[lines.index(wrong) + 1]
    assert re.fullmatch(r"[12] warnings?", lines[-1])
    home.store.chmod(0o700)
    home.data.write_bytes(b"")
    assert await trio.to_thread.run_sync(main, [*arguments, "--json"]) == exit_codes.DAMAGED
    report = json.loads(capsys.readouterr().out)
    assert report.keys() == {"version", "folder", "worst", "findings"}
    assert (report["worst"], report["folder"]) == ("error", str(home.store))
    for each in report["findings"]:
        assert each.keys() == {"topic", "level", "finding", "remedy", "code"}
    assert {each["topic"] for each in report["findings"]} <= ALL_CHECKS.keys()


async def test_names_that_are_no_text_are_shown(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home.path / os.fsdecode(b"\xff\x1b[31m")
    arguments = ["doctor", "--data", str(folder), "--secrets", str(home.secrets)]
    for more, escape in (([], "␛"), (["--json"], r"\u241b")):
        assert await trio.to_thread.run_sync(main, [*arguments, *more]) == exit_codes.FAILED
        told = capsys.readouterr().out
        assert ("\x1b" in told, f"{escape}[31m" in told) == (False, True)


async def test_files_with_secrets_are_named_by_path_and_line(tmp_path: Path) -> None:
    home = Home(tmp_path)
    chunk = Chunk("password = '[secret left out: password]'", [], "a.py", 1, 9, 0, 40)
    document = Document("src/a.py", "a.py", "code", "0" * 32, 40, 0, [chunk], masking=1, masked=[4, 9])
    async with home.opened() as runtime:
        row = await ensure_corpus(runtime, ANN, "user:ann:code", "/code")
        for path, lines in (("src/a.py", [4, 9]), ("src/gone.py", [1]), ("src/none.py", [])):
            own = msgspec.structs.replace(document, path=path, masked=lines)
            await ask_corpus(runtime, ANN, PutDocument(corpus=row.full_name, document=own))
        await ask_corpus(runtime, ANN, RemoveDocuments(corpus=row.full_name, paths=["src/gone.py"]))
    sentence = "/code/src/a.py has secrets, masked for clients: lines 4, 9"
    await home.finding("masked", "ok", sentence)
    async with home.served():
        await home.finding("masked", "ok", sentence)
