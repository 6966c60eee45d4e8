"""What a handler can reach: its own records in order, its own rows, and nothing of anybody else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.actors import ACTORS, Everything, Find, Place, Rows, Take
from support.asking import Open, post
from support.virtual_time import run_in_virtual_time

from bench.damaging import rewrite
from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    Index,
    InlineCommitter,
    Message,
    RecordDamagedError,
    RuntimeOptions,
    handles,
    open_runtime,
    pass_over,
)
from greenroom.testing import GatedCommitter, VirtualClock

SHELF = Address("shelf", "s")


class Scan(Message[list[tuple[bytes, int]]], frozen=True):
    """Put and delete first, then scan, then say no or not."""

    puts: dict[str, int] = msgspec.field(default_factory=dict)
    deletes: tuple[str, ...] = ()
    prefix: str = ""
    start: str | None = None
    reverse: bool = False

    def effects(self) -> dict[bytes, int | None]:
        return {bytes.fromhex(key): value for key, value in self.puts.items()} | {
            bytes.fromhex(key): None for key in self.deletes
        }


class Scanner(Actor):
    kind = "scanner"

    @handles(Scan)
    def scan(self, message: Scan, context: Context) -> list[tuple[bytes, int]]:
        for key, value in message.effects().items():
            if value is None:
                context.delete(key)
            else:
                context.put(key, value)
        start = None if message.start is None else bytes.fromhex(message.start)
        prefix = bytes.fromhex(message.prefix)
        found = list(context.scan(int, prefix=prefix, start=start, reverse=message.reverse))
        for key, value in found:
            assert context.get(key, int) == value
        for gone in message.deletes:
            assert context.get(bytes.fromhex(gone), int) is None
        return found


KEYS = st.lists(st.sampled_from([b"\0", b"\1", b"a", b"b", b"\xfe", b"\xff"]), max_size=4).map(b"".join)
HEX = KEYS.map(bytes.hex)
EFFECTS = st.dictionaries(HEX, st.integers(0, 9), max_size=6)
SCANS = st.builds(
    Scan,
    puts=EFFECTS,
    deletes=st.lists(HEX, max_size=3).map(tuple),
    prefix=HEX,
    start=st.none() | HEX,
    reverse=st.booleans(),
)


def expected(model: dict[bytes, int], scan: Scan) -> list[tuple[bytes, int]]:
    start = None if scan.start is None else bytes.fromhex(scan.start)
    rows = sorted(model.items(), reverse=scan.reverse)
    return [
        (key, value)
        for key, value in rows
        if key.startswith(bytes.fromhex(scan.prefix))
        and (start is None or (key <= start if scan.reverse else key >= start))
    ]


def simulate(main: Any, *arguments: Any) -> None:
    """Run ``main`` in virtual time on a folder of its own."""
    with TemporaryDirectory() as folder:
        run_in_virtual_time(main, Path(folder) / "data", *arguments)


@pytest.mark.promise("runtime.isolation")
@given(stored=st.lists(SCANS, max_size=3), in_flight=st.lists(SCANS, min_size=1, max_size=4))
def test_a_scan_merges_what_is_stored_in_flight_and_staged_like_a_sorted_map(
    stored: list[Scan], in_flight: list[Scan]
) -> None:
    """With neighbours whose keys begin alike, full of rows that nobody may see."""

    async def main(folder: Path) -> None:
        gate = GatedCommitter()
        gate.open = True
        model: dict[bytes, int] = {}

        def advance(scan: Scan) -> list[tuple[bytes, int]]:
            for key, value in scan.effects().items():
                model.pop(key, None)
                if value is not None:
                    model[key] = value
            return expected(model, scan)

        async with open_runtime(
            folder,
            actors=[Scanner],
            committer=gate,
            clock=VirtualClock(),
            options=RuntimeOptions(durability="process"),
        ) as runtime:
            noise = Scan(puts={key.hex(): 99 for key in (b"", b"\0", b"a", b"\xff", b"\xff" * 200)})
            for neighbour in ("s", "sa", "s\x01", "r", "t", "sau"):
                await runtime.ask(Address("scanner", neighbour), noise)
            await runtime.ask(Address("scanner", "s"), Scan(deletes=tuple(noise.puts)))
            for scan in stored:
                assert await runtime.ask(Address("scanner", "s"), scan) == advance(scan)
            gate.open = False
            async with trio.open_nursery() as nursery:
                pending = [await post(nursery, runtime, Address("scanner", "s"), scan) for scan in in_flight]
                while not all(ask.over.is_set() for ask in pending):
                    await trio.testing.wait_all_tasks_blocked()
                    if gate.held:
                        gate.let_through()
                for ask, scan in zip(pending, in_flight, strict=True):
                    assert await ask.reply() == advance(scan)
                gate.open = True

    simulate(main)


@pytest.mark.promise("runtime.isolation")
async def test_actors_whose_addresses_are_alike_see_nothing_of_each_other(reopen: Open) -> None:
    addresses = [
        Address(kind, key)
        for kind in ("a", "ab", "a\x01")
        for key in ("b", "b\x01", "bu", "bt", "b\x01u", "u", "t", "\x01", "é", "b" * 200)
    ]

    def keeper(name: str) -> type[Actor]:
        class Keeper(Scanner):
            kind = name

        return Keeper

    async with reopen(actors=[keeper("a"), keeper("ab"), keeper("a\x01")]) as runtime:
        for number, address in enumerate(addresses):
            await runtime.ask(address, Scan(puts=dict.fromkeys(("", "00", "75", "ff", "7500"), number)))
        for number, address in enumerate(addresses):
            rows = await runtime.ask(address, Scan())
            assert rows == [(bytes.fromhex(key), number) for key in ("", "00", "75", "7500", "ff")]
            assert await runtime.ask(address, Scan(reverse=True)) == rows[::-1]


@pytest.mark.promise("runtime.isolation")
async def test_keys_with_any_bytes_come_back(reopen: Open) -> None:
    keys = [b"", b"\0", b"\0\0", b"\0\xff", b"a\0b", b"\xff", b"\xff\xff", b"\xff" * 200, b"\0" * 200]
    async with reopen() as runtime:
        for key in keys:
            await runtime.ask(SHELF, Place(key=key, value=key.hex()))
        assert await runtime.ask(SHELF, Everything()) == [(key, key.hex()) for key in sorted(keys)]
        assert [row[0] for row in await runtime.query(Rows())] == sorted(keys)
        for key in keys:
            await runtime.ask(SHELF, Take(key=key))
        assert await runtime.ask(SHELF, Everything()) == []
        assert await runtime.query(Rows()) == []


@pytest.mark.promise("runtime.isolation", "runtime.failure-contained")
@pytest.mark.parametrize("size", [201, 300, 511, 512, 5_000])
async def test_a_key_over_the_limit_fails_its_handler_and_nothing_else(reopen: Open, size: int) -> None:
    async with reopen() as runtime:
        for message in (Place(key=b"x" * size, value=""), Take(key=b"x" * size), Find(key=b"x" * size)):
            with pytest.raises(ActorFailedError) as failure:
                await runtime.ask(SHELF, message)
            assert isinstance(failure.value.__cause__, ValueError)
            runtime.readmit(SHELF)
        await runtime.ask(SHELF, Place(key=b"x" * 200, value=""))
        assert len(await runtime.ask(SHELF, Everything())) == 1


class DeleteOnly(Message[None], frozen=True):
    key: bytes


class Deleter(Actor):
    kind = "deleter"

    @handles(DeleteOnly)
    def delete(self, message: DeleteOnly, context: Context) -> None:
        context.delete(message.key)


@pytest.mark.promise("runtime.failure-contained", "runtime.fatal-commit")
async def test_deleting_under_a_key_over_the_limit_does_not_end_the_runtime(reopen: Open) -> None:
    async with reopen(actors=[Deleter]) as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(Address("deleter", "d"), DeleteOnly(key=b"x" * 600))
        await runtime.ask(Address("deleter", "d"), DeleteOnly(key=b"x" * 200))


@pytest.mark.promise("runtime.isolation", "runtime.shared-indexes")
async def test_an_actor_cannot_remove_or_change_another_ones_row(reopen: Open) -> None:
    other = Address("shelf", "other")
    async with reopen() as runtime:
        await runtime.ask(SHELF, Place(key=b"k", value="mine"))
        await runtime.ask(other, Place(key=b"k", value="other's"))
        await runtime.ask(other, Take(key=b"k"))
        assert await runtime.query(Rows()) == [(b"k", "s", "mine")]
        assert await runtime.ask(other, Find(key=b"k")) is None


@pytest.mark.promise("runtime.shared-indexes")
@given(
    rows=st.lists(st.tuples(KEYS, st.sampled_from("abc")), unique=True, max_size=12),
    scans=st.lists(st.tuples(KEYS, st.none() | KEYS, st.booleans()), min_size=1, max_size=8),
)
def test_a_query_reads_rows_like_a_sorted_list(
    rows: list[tuple[bytes, str]], scans: list[tuple[bytes, bytes | None, bool]]
) -> None:
    async def main(folder: Path) -> None:
        async with open_runtime(
            folder,
            actors=ACTORS,
            indexes=[Index("shelves"), Index("shelve"), Index("shelvest")],
            committer=InlineCommitter(),
            options=RuntimeOptions(durability="process"),
        ) as runtime:
            for key, shelf in rows:
                await runtime.ask(Address("shelf", shelf), Place(key=key, value=shelf))
            for prefix, start, reverse in scans:
                found = await runtime.query(Rows(prefix=prefix, start=start, reverse=reverse))
                wanted = [
                    (key, shelf)
                    for key, shelf in rows
                    if key.startswith(prefix)
                    and (start is None or (key <= start if reverse else key >= start))
                ]
                assert [key for key, _, _ in found] == sorted((key for key, _ in wanted), reverse=reverse)
                assert {(key, shelf) for key, shelf, _ in found} == set(wanted)
                assert all(shelf == value for _, shelf, value in found)
            assert await runtime.query(Rows(index="shelve")) == []
            assert await runtime.query(Rows(index="shelvest")) == []

    simulate(main)


class Mend(Message[list[str]], frozen=True):
    """Put or delete what is damaged, and read beside it before and behind that."""

    beside: bytes
    value: str | None


class Mender(Actor):
    """Has one record from another one's contents."""

    kind = "mender"

    @handles(Place)
    def place(self, message: Place, context: Context) -> None:
        context.put(message.key, message.value)

    @handles(Mend)
    def mend(self, message: Mend, context: Context) -> list[str]:
        met: list[RecordDamagedError] = []
        found = [value for _, value in context.scan(str, prefix=b"k", on_damage=met.append)]
        for error in met:
            if not context.is_own(error, b"k"):
                with pytest.raises(RecordDamagedError):
                    context.own_key(error, b"k")
                continue
            with pytest.raises(RecordDamagedError):
                context.get(message.beside, str)
            key = b"k" + context.own_key(error, b"k")
            if message.value is None:
                context.delete(key)
            else:
                context.put(key, message.value)
        found += [f"beside: {context.get(message.beside, str)}"]
        here = context.scan(str, prefix=b"k", on_damage=pass_over)
        assert list(context.keys(b"k")) == [key for key, _ in here]
        return found


@pytest.mark.promise("store.damage")
@pytest.mark.parametrize("value", ["anew", None])
async def test_what_a_message_writes_in_place_of_a_damaged_record_hides_nothing(
    folder: Path, value: str | None
) -> None:
    """Two bits of it are others, so that any key of its length beside it may have been its own."""
    config: dict[str, Any] = {"actors": [Mender], "committer": InlineCommitter()}
    one, next_one = Address("mender", "m"), Address("mender", "n")
    async with open_runtime(folder, **config) as runtime:
        for number in (2, 4, 6):
            await runtime.ask(one, Place(key=b"k%d" % number, value=f"value of {number}"))
        await runtime.ask(next_one, Place(key=b"k2", value="next one's"))
    data = folder / "greenroom.mdb"
    rewrite(data, data.read_bytes().replace(b"value of 6", b"value of 5"))
    async with open_runtime(folder, **config) as runtime:
        assert runtime.statistics().store.damaged_records == 1
        assert await runtime.ask(next_one, Mend(beside=b"k9", value=value)) == ["next one's", "beside: None"]
        assert runtime.statistics().store.damaged_records == 1
        told = await runtime.ask(one, Mend(beside=b"k7", value=value))
        assert told == ["value of 2", "value of 4", "beside: None"]
        assert runtime.statistics().store.damaged_records == 0
        assert (await runtime.ask(one, Mend(beside=b"k7", value=value)))[2:-1] == [value] * bool(value)
