"""Ends of a relay that talk nonsense, read nothing, or are somebody else's."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.actors import Add, Append, Read
from support.relays import (
    LOG,
    NEWS,
    RELAY,
    VISITS,
    PeerError,
    Publish,
    PublishAll,
    add,
    attached,
    bare_guest,
    bare_host,
    hello,
    welcome,
)

from greenroom.runtime import (
    ActorFailedError,
    FolderLock,
    Refusal,
)
from greenroom.runtime.sharing import frames

if TYPE_CHECKING:
    from pathlib import Path

    from support.relays import Join

    from greenroom.runtime import SharedRuntime

pytestmark = pytest.mark.slow


GARBAGE = [
    b"",
    b"\0",
    b"\xff" * 4,
    b"\0\0\0\1\xc1",
    b"\0\0\0\5hello",
    b"GET / HTTP/1.1\r\n\r\n",
    frames.encode_frame([frames.Heartbeat()]),
    frames.encode_frame([]),
    frames.encode_frame([hello(), add(1)]),
    (1 << 21).to_bytes(4) + bytes(1 << 20),
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.promise("sharing.hostile-relay")
async def test_garbage_instead_of_a_greeting_ends_its_own_connection(
    join: Join, folder: Path, garbage: bytes
) -> None:
    async with join() as owner:
        with bare_guest(folder) as guest:
            guest.send(garbage)
            with pytest.raises(PeerError):
                await guest.hear(frames.Welcome)
        assert await owner.ask(VISITS, Add()) == 1


@pytest.mark.promise("sharing.hostile-relay")
async def test_a_long_greeting_is_read_and_one_over_a_mebibyte_is_not(join: Join, folder: Path) -> None:
    async with join():
        with bare_guest(folder) as guest:
            await guest.say_all(hello(program="x" * 1_048_000))
            await guest.hear(frames.Welcome)
        with bare_guest(folder) as guest:
            await guest.say_all(hello(program="x" * (1 << 20)))
            with pytest.raises(PeerError):
                await guest.hear(frames.Welcome)


@pytest.mark.quick
@pytest.mark.parametrize(
    "garbage", [*GARBAGE[3:5], b"\xff" * 4, frames.encode_frame([hello()])[:-1] + b"\xc1"]
)
@pytest.mark.promise("sharing.hostile-relay")
async def test_garbage_after_the_greeting_ends_its_own_connection(
    join: Join, folder: Path, garbage: bytes
) -> None:
    async with join() as owner:
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(add(1))
            await guest.hear(frames.Response)
            guest.send(garbage)
            with pytest.raises(PeerError):
                await guest.hear(frames.Response)
        assert await owner.ask(VISITS, Add()) == 2


ODD = [
    add(1, kind="nobody"),
    add(1, key=""),
    add(1, key="x\0y"),
    add(1, name="Nothing"),
    add(1, body=b"{"),
    add(1, body=b'{"by": "x"}'),
    add(1, body=b'{"unknown": 1}'),
    add(1, principal=b"7"),
    add(1, principal=b"\xff"),
    frames.QueryRequest(1, "Nothing", b"{}", b"null"),
    frames.QueryRequest(1, "Rows", b'{"index": 1}', b"null"),
    frames.QueryRequest(1, "Rows", b'{"index": "none"}', b"null"),
    frames.QueryRequest(1, "Rows", b"{}", b"]"),
]


@pytest.mark.parametrize("word", ODD)
@pytest.mark.promise("sharing.hostile-relay")
async def test_what_cannot_be_asked_fails_alone(join: Join, folder: Path, word: Any) -> None:
    async with join():
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(
                frames.Cancel(77), frames.Confirm([5, 6]), frames.Watch(["a"], wanted=False), word, add(2)
            )
            assert (await guest.hear(frames.Failure)).number == 1
            assert (await guest.hear(frames.Response)).number == 2


@pytest.mark.promise("sharing.versions")
async def test_what_a_newer_program_adds_is_passed_over(join: Join, folder: Path) -> None:
    async with join():
        with bare_guest(folder) as guest:
            words = msgspec.msgpack.decode(msgspec.msgpack.encode([hello(protocol=3)]))
            words[0] += [{"colour": "green"}]
            payload = msgspec.msgpack.encode(words)
            guest.send(len(payload).to_bytes(4) + payload)
            assert (await guest.hear(frames.Welcome)).protocol == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        [frames.Heartbeat()],
        [frames.Response(1, b"1")],
        [welcome(), frames.Response(1, b"[")],
        [welcome(), frames.Response(1, b'"x"')],
        [welcome(), frames.Response(1, b"1", "Nothing")],
        [welcome(), frames.Failure(1, "Nothing", "s")],
        [welcome(), frames.Failure(1, "Refusal", "s", b"[")],
        [
            welcome(),
            frames.Response(99, b"1", kept=True),
            frames.Changed("x", b"\xc1"),
            frames.Changed("x", b"\x91\x07"),
        ],
    ],
)
@pytest.mark.promise("sharing.hostile-relay")
async def test_an_owner_that_talks_nonsense_harms_nobody_for_good(
    join: Join, folder: Path, words: list[Any]
) -> None:
    async with trio.open_nursery() as nursery:
        with FolderLock(folder) as lock, bare_host(lock.folder) as place:
            guest_over = await nursery.start(ask_once, join)
            bare = await place.accept()
            await bare.hear(frames.Hello)
            bare.say(*words)
            await trio.sleep(1)
        with trio.fail_after(100):
            await guest_over.wait()


async def ask_once(join: Join, *, task_status: trio.TaskStatus[trio.Event]) -> None:
    over = trio.Event()
    task_status.started(over)
    async with join() as guest:
        for _ in range(2):
            try:
                assert await guest.ask(VISITS, Add()) in (1, 2)
            except (ActorFailedError, Refusal):
                continue
        assert await guest.ask(VISITS, Read()) in (1, 2)
    over.set()


@pytest.mark.promise("sharing.hostile-relay")
async def test_the_socket_is_for_this_user_alone_and_leaves_with_the_owner(
    join: Join, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with join() as owner:
        place = folder / "relay.sock"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        monkeypatch.setattr("greenroom.runtime.sharing.owner_side.peer_is_ours", lambda _: False)
        with bare_guest(folder) as stranger:
            stranger.say(hello())
            with pytest.raises(PeerError):
                await stranger.hear(frames.Welcome)
        assert await owner.ask(VISITS, Add()) == 1
    assert not place.exists()


@pytest.mark.promise("sharing.hostile-relay")
async def test_who_reads_nothing_costs_no_memory_and_holds_up_nobody(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        with bare_guest(folder) as deaf:
            deaf.say(hello())
            await deaf.hear(frames.Welcome)
            large = frames.Request(
                1, "log", "log", "Append", msgspec.json.encode({"entry": "x" * 1_000_000}), b"null"
            )
            await deaf.say_all(large)
            await deaf.hear(frames.Response)
            deaf.say(
                frames.Watch(["news"]),
                *[frames.Request(n, "log", "log", "Entries", b"{}", b"null") for n in range(2, 400)],
            )
            for number in range(50):
                await guest.ask(NEWS, Publish(label=str(number)))
            await trio.sleep(5)
            (unread,) = [each for each in owner._process.owner_side.attached.values() if each.relay == RELAY]
            assert unread.connection.unsent < 100_000_000
            for number in range(2, 400):
                assert (await deaf.hear(frames.Response)).number == number
            labels = msgspec.msgpack.decode((await deaf.hear(frames.Changed)).labels)
            assert "49" in labels
            with trio.move_on_after(3) as waited:
                await deaf.hear(frames.Changed)
            assert waited.cancelled_caught, "a change is told once"
        nursery.cancel_scope.cancel()


def attached_pids(owner: SharedRuntime) -> list[int]:
    relay = owner.statistics().relay
    assert relay is not None
    return relay.attached_pids


def entries(*numbers: int) -> list[frames.Request]:
    return [frames.Request(number, "log", "log", "Entries", b"{}", b"null") for number in numbers]


@pytest.mark.promise("sharing.hostile-relay")
async def test_a_process_that_leaves_a_quarter_of_a_gibibyte_unread_is_let_go(
    join: Join, folder: Path
) -> None:
    async with join() as owner:
        for number in range(5):
            await owner.ask(LOG, Append(entry=f"{number}" + "x" * 900_000))

        with bare_guest(folder) as deaf:
            deaf.say(hello())
            await deaf.hear(frames.Welcome)
            deaf.say(*entries(*range(50)))
            await trio.sleep(5)
            assert attached_pids(owner) == [1], "225 MB wait for it"
            deaf.say(*entries(*range(50, 64)))  # which are read once there is room
            assert (await deaf.hear(frames.Response)).number == 0
        await trio.sleep(5)
        with bare_guest(folder) as deaf:
            deaf.say(hello())
            await deaf.hear(frames.Welcome)
            deaf.say(*entries(*range(100, 164)))  # at once, so that all of them are read
            await trio.sleep(5)
            assert attached_pids(owner) == []
            with pytest.raises(PeerError):
                await deaf.hear(frames.Failure)
        with bare_guest(folder) as again:
            again.say(hello())
            await again.hear(frames.Welcome)
            again.say(*entries(200))
            assert (await again.hear(frames.Response)).number == 200


@pytest.mark.promise("sharing.hostile-relay")
async def test_a_process_that_leaves_more_than_a_hundred_thousand_labels_unread_is_let_go(
    join: Join, folder: Path
) -> None:
    async with join() as owner:
        await owner.ask(LOG, Append(entry="x" * 900_000))
        with bare_guest(folder) as deaf:
            deaf.say(hello())
            await deaf.hear(frames.Welcome)
            deaf.say(frames.Watch(["news"]), *entries(*range(20)))
            await trio.sleep(1)
            for _ in range(2):  # the same ones are kept once
                await owner.ask(NEWS, PublishAll(first=1, last=100_000))
            await trio.sleep(5)
            assert attached_pids(owner) == [1]
            await owner.ask(NEWS, PublishAll(first=100_001, last=100_001))
            await trio.sleep(5)
            assert attached_pids(owner) == []
