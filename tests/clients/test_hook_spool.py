"""The spool: what a hook told outlives a kill at any point, and the next owner takes it once."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
import trio
from support.hook_inputs import KEY, called, line, returned, said, transcript
from support.repositories import repository

from greenroom.actors import Agent, Principal, TakeHookEvent, open_greenroom
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.sessions.requests.hook_events import HookEvent, HookName, Turn
from greenroom.actors.sessions.requests.hook_messages import session_id_of
from greenroom.actors.sessions.requests.requests import GetMessages
from greenroom.runtime import ActorFailedError
from greenroom.transports.clients.hooks import spool as spool_module
from greenroom.transports.clients.hooks.dialects import HookInput
from greenroom.transports.clients.hooks.drain import Drain
from greenroom.transports.clients.hooks.enqueue import enqueue
from greenroom.transports.clients.hooks.failures import failures_of, note_failure, note_reported
from greenroom.transports.clients.hooks.spool import (
    MAX_FILES,
    REFUSED,
    Entry,
    SpoolError,
    hold_spool,
    names_in,
    read_entry,
    remove_refused,
    waiting,
)
from greenroom.transports.clients.hooks.turns import Conversation

PRINCIPAL = Principal(agent_id="claude-code", user="ann")
pytestmark = pytest.mark.promise("hooks.spool")


def entry(number: int = 0, **more: Any) -> Entry:
    event = HookEvent(
        id=f"{number:032x}",
        name="stop",
        client="claude-code",
        session="s-1",
        project="app-1",
        folder="/srv/app",
        at=datetime.now(UTC),
        turns=[Turn(role="user", text=f"said {number}")],
    )
    return Entry(principal=PRINCIPAL, event=event, **more)


def put(folder: Path, *entries: Entry) -> None:
    with hold_spool(folder) as spool:
        for each in entries:
            spool.put(each.event.id, msgspec.json.encode(each))


def told(folder: Path) -> list[str]:
    return [turn.text for name in names_in(folder) for turn in read_entry(folder, name).event.turns]


def hidden(folder: Path) -> list[str]:
    return [each.name for each in (folder / "spool").iterdir() if each.name.startswith(".")]


def stop(folder: Path, home: Path, hook: HookName = "stop") -> bool:
    """Tell the transcript of `home` as the hook `stop` does, or another one."""
    path = home / ".claude" / "projects" / "-work-app" / "s-1.jsonl"
    said_to_hook = HookInput(session="s-1", folder="/srv/app", transcript=str(path))
    environment = {"CLAUDE_CONFIG_DIR": str(home / ".claude")}
    return enqueue(folder, PRINCIPAL, hook, "claude-code", said_to_hook, environment)


def cd(folder: Path, text: str, role: str = "user") -> str:
    """A line of a transcript from a folder, which exists."""
    folder.mkdir(parents=True, exist_ok=True)
    return said(role, text, cwd=str(folder))


def by_folder(folder: Path) -> dict[str, list[str]]:
    """Return what waits, by the names of the projects' folders."""
    found: dict[str, list[str]] = {}
    for name in names_in(folder):
        event = read_entry(folder, name).event
        found.setdefault(event.project.rpartition("-")[0], []).extend(turn.text for turn in event.turns)
    return found


def stop_in(home: Path, folder: Path, **more: str) -> bool:
    path = home / ".claude" / "projects" / "-work-app" / "s-1.jsonl"
    told = HookInput(session="s-1", folder=str(folder), transcript=str(path))
    environment = {"CLAUDE_CONFIG_DIR": str(home / ".claude"), **more}
    return enqueue(home / "store", PRINCIPAL, "stop", "claude-code", told, environment)


# -- where it was said ------------------------------------------------------------------


@pytest.mark.promise("hooks.switches")
def test_what_was_said_where_hooks_are_off_is_kept_nowhere(tmp_path: Path) -> None:
    app, off = tmp_path / "app", tmp_path / "off"
    transcript(
        tmp_path,
        cd(app, "before"),
        cd(off / "src", "secret"),
        called("Bash", "1", command="make secret").replace("{", f'{{"cwd": "{off}", ', 1),
        returned("1", "secret").replace("{", f'{{"cwd": "{off}", ', 1),
        cd(app, "after"),
    )
    (off / ".greenroom.toml").write_text("hooks = false")
    assert stop_in(tmp_path, app)
    assert by_folder(tmp_path / "store") == {"app": ["before", "after"]}
    (off / ".greenroom.toml").write_text("hooks = what")
    with (tmp_path / ".claude/projects/-work-app/s-1.jsonl").open("a") as file:
        file.write(cd(off, "secret") + cd(app, "later"))
    assert stop_in(tmp_path, app, GREENROOM_RUN_HOOKS="")
    assert by_folder(tmp_path / "store") == {"app": ["before", "after", "later"]}


@pytest.mark.promise("hooks.switches")
def test_what_the_person_set_counts_for_each_folder(tmp_path: Path) -> None:
    app, off = tmp_path / "app", tmp_path / "off"
    transcript(tmp_path, cd(off, "there"), cd(app, "here"))
    (off / ".greenroom.toml").write_text("hooks = false")
    assert stop_in(tmp_path, app, GREENROOM_RUN_HOOKS="on")
    assert by_folder(tmp_path / "store") == {"off": ["there"], "app": ["here"]}


@pytest.mark.promise("hooks.switches")
def test_an_exclusion_counts_in_the_folder_of_its_line(tmp_path: Path) -> None:
    app, other = tmp_path / "app", tmp_path / "other"
    moved = f'{{"cwd": "{other}", '
    transcript(
        tmp_path,
        cd(other, "typed"),
        called("Bash", "1", command="cat private.txt").replace("{", moved, 1),
        returned("1", "hidden").replace("{", moved, 1),
        cd(app, "here"),
    )
    (other / ".greenroom.toml").write_text('exclude = ["private.txt"]')
    assert stop_in(tmp_path, app)
    assert by_folder(tmp_path / "store") == {"other": ["typed"], "app": ["here"]}


@pytest.mark.promise("hooks.told-once", "hook-context.own")
def test_what_was_said_in_a_project_is_told_as_of_that_project(tmp_path: Path) -> None:
    app, other = repository(tmp_path / "app"), tmp_path / "other"
    path = transcript(tmp_path, cd(app, "a"), cd(app / "src", "b"), cd(other, "c"), said("user", "d"))
    assert stop_in(tmp_path, other)
    assert by_folder(tmp_path / "store") == {"app": ["a", "b"], "other": ["c", "d"]}
    assert not stop_in(tmp_path, other)
    with path.open("a") as file:
        file.write(cd(app, "e"))
    assert stop_in(tmp_path, other)
    assert not stop_in(tmp_path, other)
    assert by_folder(tmp_path / "store") == {"app": ["a", "b", "e"], "other": ["c", "d"]}


@pytest.mark.promise("hook-context.own")
def test_a_rollout_tells_the_folder_of_each_turn() -> None:
    talk = Conversation("rollout")

    def lines(kind: str, **payload: object) -> list[str]:
        line_of_kind = line(type=kind, payload=payload).encode()
        return [turn.folder for turn in talk.turns_in(line_of_kind)]

    lines("session_meta", source="cli", cwd="/a")
    assert lines("event_msg", type="user_message", message="x") == ["/a"]
    lines("turn_context", cwd="/b")
    assert lines("event_msg", type="user_message", message="x") == ["/b"]
    assert [turn.folder for turn in Conversation("messages").turns_in(said("user", "x", cwd=3).encode())] == [
        ""
    ]


# -- what it holds ----------------------------------------------------------------------


def test_what_is_put_waits_in_its_order_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "store"
    assert waiting(folder) == spool_module.Waiting()
    previous = os.umask(0)
    try:
        put(folder, entry(1), entry(2))
    finally:
        os.umask(previous)
    assert told(folder) == ["said 1", "said 2"]
    found = waiting(folder)
    assert (found.files, found.refused) == (2, 0)
    assert found.bytes == sum(path.stat().st_size for path in (folder / "spool").glob("*.json"))
    assert found.oldest_at is not None
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_too_much_is_refused_and_nothing_left_of_it(tmp_path: Path) -> None:
    put(tmp_path, entry())
    large = entry(1)
    large.event.turns.extend(Turn(role="user", text="x" * 20_000) for _ in range(300))
    with pytest.raises(SpoolError, match="bytes; at most"):
        put(tmp_path, large)
    for number in range(1, MAX_FILES):
        (tmp_path / "spool" / f"{number:020d}-{number:032x}.json").touch()
    with pytest.raises(SpoolError, match=r"1,000 events .* wait already"):
        put(tmp_path, entry(2))
    assert waiting(tmp_path).files == MAX_FILES
    assert hidden(tmp_path) == []


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path) -> None:
    put(tmp_path, entry())
    before = sorted(each.name for each in (tmp_path / "spool").iterdir())

    def without_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            put(tmp_path, entry(1))
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG else 1)

    assert in_fork(without_room) == 0
    assert sorted(each.name for each in (tmp_path / "spool").iterdir()) == before


def test_a_link_in_the_place_of_the_spool_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "spool").symlink_to(elsewhere)
    with pytest.raises(OSError, match="spool"):
        put(folder, entry())
    with pytest.raises(OSError, match="spool"):
        waiting(folder)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder away")
def test_another_users_spool_is_not_taken_for_ours(tmp_path: Path) -> None:
    put(tmp_path, entry())
    os.chown(tmp_path / "spool", 65534, 65534)
    with pytest.raises(PermissionError, match="another user"):
        put(tmp_path, entry(1))
    with pytest.raises(PermissionError, match="another user"):
        waiting(tmp_path)


def test_a_folder_with_other_things_gets_no_spool(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(Exception, match="holds other things"):
        put(tmp_path, entry())
    assert [each.name for each in tmp_path.iterdir()] == ["letter.txt"]


# -- killed at any point ----------------------------------------------------------------


def in_fork(work: Callable[[], None]) -> int:
    """Return the status with which a fork ends that does this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


CHANGING = {"open", "write", "fsync", "rename", "unlink", "mkdir", "fchmod", "flock"}
"""System calls between which nothing on the disk changes."""


SYNCING = {"fsync", "fcntl", "rename"}
"""System calls of which a failing disk says so."""


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    sys.setprofile(None)
    raise OSError(errno.EIO, "the disk fails")


def ended_at(point: int, work: Callable[[], Any], end: Callable[[], None], calls: set[str]) -> bool:
    """Do this in a fork that ends so before its system call of this number; return whether it did."""
    count = 0

    def count_calls(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal count
        if event == "c_call" and called.__module__ in {"posix", "fcntl"} and called.__name__ in calls:
            count += 1
            if count == point:
                end()

    def counted() -> None:
        sys.setprofile(count_calls)
        with suppress(OSError):
            work()
            return
        kill()

    status = in_fork(counted)
    assert status in {0, signal.SIGKILL}
    return status != 0


@pytest.mark.promise("hooks.told-once")
@pytest.mark.parametrize(
    ("end", "calls", "least"), [(kill, CHANGING, 20), (fail, SYNCING, 5)], ids=["killed", "a disk that fails"]
)
def test_a_transcript_is_told_once_wherever_a_hook_ends(
    tmp_path: Path, end: Callable[[], None], calls: set[str], least: int
) -> None:
    home = tmp_path / "home"
    path = transcript(home, said("user", "a"))
    points = 0
    while True:
        folder = tmp_path / f"store-{points}"
        stop(folder, home)  # so that there is an offset, and what a killed hook adds to
        with path.open("a") as file:
            file.write(said("user", "b"))
        points += 1
        has_ended = ended_at(points, lambda folder=folder: stop(folder, home), end, calls)  # type: ignore[misc]
        if not has_ended:  # it exited, so all of it is there
            assert told(folder) == ["a", "b"]
            break
        with path.open("a") as file:
            file.write(said("user", "c"))
        stop(folder, home)
        assert told(folder) == ["a", "b", "c"], points
        assert hidden(folder) == []
        path.write_text(said("user", "a"))
    assert points > least


def test_a_compaction_is_told_though_nothing_was_said_since(tmp_path: Path) -> None:
    transcript(tmp_path, said("user", "a"))
    assert stop(tmp_path / "store", tmp_path)
    assert not stop(tmp_path / "store", tmp_path)
    assert stop(tmp_path / "store", tmp_path, "pre-compact")
    events = [read_entry(tmp_path / "store", name).event for name in names_in(tmp_path / "store")]
    assert [(each.name, len(each.turns)) for each in events] == [("stop", 1), ("pre-compact", 0)]


def test_two_hooks_at_once_wait_for_each_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    transcript(home, *(said("user", str(number)) for number in range(50)))
    children = []
    for _ in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            stop(tmp_path / "store", home)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert told(tmp_path / "store") == [str(number) for number in range(50)]


# -- the owner takes it -----------------------------------------------------------------


async def kept_in(runtime: Any) -> list[str]:
    session = session_id_of(entry().event, PRINCIPAL)
    page = await Agent(runtime, PRINCIPAL).ask(GetMessages(session_id=session))
    return [message.content for message in page.messages]


async def test_what_waits_is_taken_once_though_the_owner_dies_before_it_removes_it(tmp_path: Path) -> None:
    put(tmp_path, entry(1), entry(2))
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        # As far as one comes who is killed between the commit and the removal.
        await runtime.query(TakeHookEvent(event=entry(1).event), principal=PRINCIPAL)
    assert told(tmp_path) == ["said 1", "said 2"]
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        assert await Drain(runtime, tmp_path).take_all()
        assert told(tmp_path) == []
        assert await kept_in(runtime) == ["said 1", "said 2"]


async def test_what_comes_later_is_taken_when_the_owner_is_poked(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime, trio.open_nursery() as nursery:
        drain = Drain(runtime, tmp_path)
        await trio.to_thread.run_sync(put, tmp_path, entry(1))
        nursery.start_soon(drain.run)
        for number in (2, 3, 4):
            await drain.wait_until_idle()
            assert waiting(tmp_path).files == 0
            await trio.to_thread.run_sync(put, tmp_path, entry(number))
            drain.poke()
        await drain.wait_until_idle()
        assert await kept_in(runtime) == ["said 1", "said 2", "said 3", "said 4"]
        nursery.cancel_scope.cancel()


async def test_a_time_without_an_offset_is_put_aside_and_sets_no_actor_aside(tmp_path: Path) -> None:
    timeless = datetime(2026, 1, 1)  # noqa: DTZ001 - it is what must not come in
    for number in range(6):
        event = msgspec.structs.replace(entry(number).event, at=timeless)
        put(tmp_path, Entry(principal=PRINCIPAL, event=event))
    put(tmp_path, entry(7))
    async with open_greenroom(tmp_path / "other", embedder="none") as runtime:
        assert await Drain(runtime, tmp_path).take_all()
        assert await kept_in(runtime) == ["said 7"]
    assert waiting(tmp_path).refused == 6


async def test_an_actor_that_is_set_aside_holds_up_nobody_elses_events(tmp_path: Path) -> None:
    put(tmp_path, entry(1))
    bob = Principal(agent_id="claude-code", user="bob")
    put(tmp_path, Entry(principal=bob, event=entry(2).event))
    async with open_greenroom(tmp_path / "other", embedder="none") as runtime:
        timeless = msgspec.structs.replace(entry().event, at=datetime(1, 1, 1), turns=[])  # noqa: DTZ001 - likewise
        for _ in range(5):
            with pytest.raises(ActorFailedError):
                await runtime.query(TakeHookEvent(event=timeless), principal=PRINCIPAL)
        assert not await Drain(runtime, tmp_path).take_all()
        assert [read_entry(tmp_path, name).principal.user for name in names_in(tmp_path)] == ["ann"]
        runtime.readmit(hook_address("user:ann"))
        assert await Drain(runtime, tmp_path).take_all()
        assert await kept_in(runtime) == ["said 1"]


async def test_what_cannot_be_taken_is_put_aside_and_counted_and_the_rest_taken(tmp_path: Path) -> None:
    put(tmp_path, entry(1))
    for number, content in enumerate([b"", b"\xff", b"{}", b"[" * 100_000, b"x" * (5 << 20)]):
        (tmp_path / "spool" / f"{number:020d}-{number:032x}.json").write_bytes(content)
    secret = tmp_path / "secret"
    secret.write_bytes(b"{}")
    (tmp_path / "spool" / f"{9:020d}-{9:032x}.json").symlink_to(secret)
    os.mkfifo(tmp_path / "spool" / f"{8:020d}-{8:032x}.json")
    (tmp_path / "spool" / f"{7:020d}-{7:032x}.json").mkdir()
    async with open_greenroom(tmp_path / "other", embedder="none") as runtime:
        assert await Drain(runtime, tmp_path).take_all()
        assert await kept_in(runtime) == ["said 1"]
    assert (waiting(tmp_path).files, waiting(tmp_path).refused) == (0, 8)
    assert len(list((tmp_path / "spool" / REFUSED).iterdir())) == 8
    assert secret.read_bytes() == b"{}"
    remove_refused(tmp_path)
    assert waiting(tmp_path).refused == 1  # a folder is nobody's file


def test_a_folder_in_the_spool_stops_nobody(tmp_path: Path) -> None:
    put(tmp_path, entry(1))
    (tmp_path / "spool" / ".trash").mkdir()
    (tmp_path / "spool" / "offsets" / "trash").mkdir()
    with hold_spool(tmp_path) as spool:
        spool.put(entry(2).event.id, msgspec.json.encode(entry(2)))
        spool.forget_old()
    assert told(tmp_path) == ["said 1", "said 2"]


# -- failures ---------------------------------------------------------------------------


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_secret_is_in_no_note_of_a_failure(states: Path) -> None:
    note_failure(states / "store", "stop", f"there is no transcript '/x/{KEY}.jsonl', and {'x' * 460}{KEY}")
    said_of_it = failures_of(states / "store").last_sentence
    assert said_of_it.startswith("there is no transcript '/x/[secret left out")
    assert KEY[:12] not in said_of_it


@pytest.mark.promise("hooks.never-silent")
def test_failures_are_counted_and_told_once(states: Path) -> None:
    folder = states / "store"
    assert failures_of(folder).count == 0
    note_failure(folder, "stop", "first")
    note_failure(folder, "session-end", "second")
    found = failures_of(folder)
    assert (found.count, found.untold, found.last_hook, found.last_sentence) == (
        2,
        2,
        "session-end",
        "second",
    )
    note_reported(folder)
    note_failure(folder, "stop", "third")
    assert (failures_of(folder).count, failures_of(folder).untold) == (3, 1)


@pytest.mark.quick
@pytest.mark.promise("hooks.never-silent")
def test_a_failure_is_noted_where_the_folder_cannot_be_written(states: Path) -> None:
    folder = states / "store"
    folder.mkdir()
    (folder / "spool").symlink_to(states)
    note_failure(folder, "stop", "a link")
    note_failure(None, "stop", "no folder")
    assert {failures_of(folder).count, failures_of(states / "other").count} == {2, 1}
    assert failures_of(folder).last_sentence == "no folder"
    note_reported(folder)
    assert failures_of(folder).untold == 0


@pytest.mark.promise("hooks.never-silent")
def test_the_note_of_failures_stays_small_and_readable(states: Path) -> None:
    folder = states / "store"
    for number in range(1_000):
        note_failure(folder, "stop", f"{number} " + "\ud800x" * 1_000)
    sizes = [each.stat().st_size for each in (folder / "spool").glob("failures*")]
    assert max(sizes) < 80_000
    assert len(sizes) == 2
    assert failures_of(folder).count > 50
    with (folder / "spool" / "failures.jsonl").open("ab") as file:
        file.write(b'{"at": "2026')  # of a process that was killed
    assert failures_of(folder).last_sentence.startswith("999 ")
    note_failure(folder, "stop", "after that")
    assert failures_of(folder).last_sentence == "after that"
