"""Reading an unchecked store finds what LMDB finds, and in a damaged one the truth or nothing."""

from __future__ import annotations

import random
import re
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb
import lmdb.verify
import pytest

from bench.damaging import KINDS, PAGE, rewrite
from greenroom.runtime import (
    ACTORS,
    INDEXES,
    PlainCodec,
    RecordDamagedError,
    Store,
    StoreDamagedError,
    WriteBatch,
    pass_over,
    verify,
)
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.record_cipher import SealedCodec
from greenroom.runtime.store.page_proofs import ProvenSnapshot, Prover
from greenroom.runtime.store.record_damage import DamagedRecord, StoreCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from greenroom.runtime.lmdb.codec import RecordCodec
    from greenroom.runtime.lmdb.pages import Head
    from greenroom.runtime.lmdb.snapshot import Snapshot

pytestmark = pytest.mark.slow

SIZES = (0, 10, 200, 1_900, 2_100, 9_000)
"""Bytes of payloads; from half a page on a record has pages of its own."""


def fill(folder: Path, chance: random.Random) -> list[bytes]:
    """Make a store of three levels, some of whose rows have gone again; return the keys, and some of none."""
    keys = [
        b"%b\0%d" % (chance.choice([b"a", b"b", b"b\xff", b"\xff"]), chance.getrandbits(60))
        for _ in range(900)
    ]
    keys += [key.ljust(400, b".") for key in keys[:300]]
    with closing(Store(folder, sync=False)) as store:
        for at in range(0, len(keys), 100):
            puts = [(ACTORS, key, chance.randbytes(chance.choice(SIZES))) for key in keys[at : at + 100]]
            store.commit([WriteBatch(None, puts)])
        store.commit([WriteBatch(None, [(ACTORS, key, None) for key in keys[::7]])])
        store.commit([WriteBatch(None, [(INDEXES, b"only", b"one")])])
    return [*keys, b"\0", b"a", b"b\0", b"b\xff", b"\xff\xff", b"\xff" * 500]


def one(key: bytes, reading: Snapshot) -> bytes | None:
    return reading.get(ACTORS, key)


def several(
    which: str,
    prefix: bytes,
    start: bytes | None,
    reverse: bool,  # noqa: FBT001  for partial
    reading: Snapshot,
) -> list[object]:
    if which == "keys":
        return list(reading.keys(ACTORS, prefix, start=start))
    return list(reading.scan(ACTORS, prefix, start=start, reverse=reverse))


def looks(
    keys: list[bytes], chance: random.Random, kinds: tuple[str, ...] = ("scan", "keys")
) -> Iterator[Callable[[Snapshot], object]]:
    """Yield ways to look into a store."""
    for key in keys:
        yield partial(one, key)
    for _ in range(30):
        prefix = chance.choice([b"", b"a", b"b", b"b\xff", b"\xff", b"c", chance.choice(keys)[:3]])
        start = chance.choice([None, *chance.sample(keys, 3)])
        for which in kinds:
            for reverse in (False, True) if which == "scan" else (False,):
                yield partial(several, which, prefix, start, reverse)


@pytest.mark.promise("store.proven")
def test_what_is_proven_is_what_is_there(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    ways = list(looks(keys, chance))
    with closing(Store(tmp_path / "data")) as plain, plain.snapshot() as reading:
        expected = [look(reading) for look in ways]
    assert sum(isinstance(found, bytes) for found in expected) > 900
    with closing(Store(tmp_path / "data", check=StoreCheck(is_whole=False))) as store:
        with store.snapshot() as reading:
            assert [look(reading) for look in ways] == expected
            store.commit([WriteBatch(None, [(ACTORS, key, b"new") for key in keys[:50]])])
            assert [look(reading) for look in ways] == expected, "a view stays what it was"
        glance = store.cached_snapshot(ACTORS)
        assert [store.get(ACTORS, key) for key in keys[:50]] == [b"new"] * 50
        assert [glance.get(key) for key in keys[:50]] == [b"new"] * 50
        glance.close()


@pytest.mark.quick
@pytest.mark.promise("store.proven")
def test_a_store_proves_what_it_reads_until_it_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder, sync=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"key %d" % n, b"v") for n in range(10)])])
    data = folder / "greenroom.mdb"
    data.write_bytes(data.read_bytes().replace(b"key 5", b"key\xff5"))  # which hides it and two more
    with closing(Store(folder, check=StoreCheck(is_whole=False))) as store:
        looks: list[Callable[[], object]] = [
            lambda: store.get(ACTORS, b"key 5"),
            lambda: store.cached_snapshot(ACTORS).get(b"key 5"),
        ]
        for look in looks:
            with pytest.raises(StoreDamagedError):
                look()
        store.take_check(StoreCheck(is_whole=True))
        assert [look() for look in looks] == [None, None], "as LMDB itself says"


@pytest.mark.promise("store.proven")
def test_from_a_damaged_file_comes_the_truth_or_an_error(tmp_path: Path) -> None:
    chance = random.Random(4)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    ways = list(looks(keys, chance, kinds=("scan",)))  # keys come as they are, damaged or not
    with closing(Store(tmp_path / "data")) as plain, plain.snapshot() as reading:
        expected = [look(reading) for look in ways]
    sound = (tmp_path / "data" / "greenroom.mdb").read_bytes()
    assert len(sound) > 500 * PAGE
    damaged = tmp_path / "damaged"
    errors = 0
    for number in range(24):
        content = bytearray(sound)
        KINDS[number % len(KINDS)](content, chance)
        damaged.write_bytes(content)
        with closing(Prover(damaged, PlainCodec())) as prover:
            for way, right in zip(ways, expected, strict=True):
                try:
                    found = way(ProvenSnapshot(prover))
                except StoreDamagedError as error:
                    errors += 1
                    assert "greenroom verify" in str(error)  # noqa: PT017  both outcomes are right
                else:
                    assert found == right, (number, KINDS[number % len(KINDS)])
    assert errors > 1_000


@pytest.mark.promise("store.proven")
def test_a_bit_of_a_page_that_leads_to_others_hides_nothing(tmp_path: Path) -> None:
    chance = random.Random(9)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    with closing(Store(tmp_path / "data")) as plain:
        expected = [plain.get(ACTORS, key) for key in keys]
    sound = (tmp_path / "data" / "greenroom.mdb").read_bytes()
    branches = [at for at in range(2 * PAGE, len(sound), PAGE) if is_branch(sound, at)]
    assert len(branches) > 5
    damaged = tmp_path / "damaged"
    errors = 0
    for _ in range(100):
        content = bytearray(sound)
        page = chance.choice(branches)
        nodes = int.from_bytes(content[page + 14 : page + 16], sys.byteorder)
        content[page + chance.randrange(nodes, PAGE)] ^= 1 << chance.randrange(8)
        damaged.write_bytes(content)
        with closing(Prover(damaged, PlainCodec())) as prover:
            for key, right in zip(keys, expected, strict=True):
                try:
                    found = ProvenSnapshot(prover).get(ACTORS, key)
                except StoreDamagedError:
                    errors += 1
                else:
                    assert found == right
    assert errors > 100


@pytest.mark.promise("store.proven")
@pytest.mark.parametrize("flips", [1, 2])
def test_a_damaged_row_is_told_of_and_all_others_are_answered(tmp_path: Path, flips: int) -> None:
    chance = random.Random(5)  # noqa: S311
    rows = {b"%s\0%04d" % (chance.choice([b"a", b"b"]), 2 * n): chance.randbytes(200) for n in range(400)}
    with closing(Store(tmp_path / "data", sync=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, key, payload) for key, payload in rows.items()])])
    sound = (tmp_path / "data" / "greenroom.mdb").read_bytes()
    keys = sorted(rows)
    absent = [key[:-1] + b"~" for key in keys] + [key + b"." for key in keys]
    for index in chance.sample(range(len(keys)), 60):
        key = keys[index]
        low, high = ([b"", *keys, b"\xff"][index + beside] for beside in (0, 2))
        flipped = chance.choice([len(key) - 1, len(key) + 4, len(key) + 100])  # the keys rise as before
        between = {key + b"."} if flipped < len(key) else set()  # and where the record lies now
        if flips > 1:  # it may have had any key here
            between = {each for each in absent if low < each < high and len(each) - len(key) in {0, 1}}
        content = bytearray(sound)
        for place in re.finditer(re.escape(key + b"\x01"), sound):  # a page that was split has some still
            content[place.start() + flipped] ^= 1
            content[place.start() + flipped + 50] ^= flips - 1
        data = tmp_path / "damaged"
        data.write_bytes(content)
        with closing(Prover(data, PlainCodec())) as prover:
            reading = ProvenSnapshot(prover)
            refused = {other for other in [*keys, *absent] if answers(reading, other) is RecordDamagedError}
            lies_at = key if flipped >= len(key) else key[:-1] + bytes([key[-1] ^ 1])
            assert refused == {lies_at if flips > 1 and lies_at in absent else key} | between - {lies_at}
            assert all(answers(reading, other) == rows.get(other) for other in {*keys, *absent} - refused)
            for prefix in (b"", key[:2], key):
                for reverse in (False, True):
                    told: list[RecordDamagedError] = []
                    there = [each for each in keys if each.startswith(prefix) and each != key]
                    found = reading.scan(ACTORS, prefix, reverse=reverse, on_damage=told.append)
                    assert [each for each, _ in found] == there[:: -1 if reverse else 1]
                    assert [each.key for each in told] == [key if flips == 1 else lies_at]
                    with pytest.raises(RecordDamagedError):
                        list(reading.scan(ACTORS, prefix, reverse=reverse))
            far = keys[(index + 20) % len(keys)]
            assert [each for each, _ in reading.scan(ACTORS, far)] == [far]
            told = []
            if low:
                assert [each for each, _ in reading.scan(ACTORS, low, on_damage=told.append)] == [low]
                assert bool(told) == (flips > 1), "only what may be of the range"


PAYLOAD_BITS = 24
"""Of each payload that many are flipped, those at its ends among them."""


def page_of(folder: Path, rows: dict[bytes, bytes], encryption: Encryption | None) -> tuple[Path, int]:
    """Make a store whose rows are on one page; return its file, and where the page begins."""
    with closing(Store(folder, sync=False, encryption=encryption)) as store:
        store.commit([WriteBatch(None, [(ACTORS, key, payload) for key, payload in rows.items()])])
    data = folder / "greenroom.mdb"
    with closing(Prover(data, None)) as prover:
        return data, prover.trees()[ACTORS].root * PAGE


def places_of(content: bytes, page: int, chance: random.Random) -> Iterator[tuple[bytes, int, int]]:
    """Yield each bit of the keys and of what is before payloads, and some of payloads, with the row's key."""
    lower = int.from_bytes(content[page + 12 : page + 14], sys.byteorder)
    for at in range(page + 16, page + lower, 2):
        node = page + int.from_bytes(content[at : at + 2], sys.byteorder)
        size = int.from_bytes(content[node : node + 2], sys.byteorder)
        start, length = node + 8, int.from_bytes(content[node + 6 : node + 8], sys.byteorder)
        head = 24 if content[start + length] & 0x80 else 5
        for bit in range(8 * (length + head)):
            yield content[start : start + length], 8 * start + bit, length
        for bit in chance.sample(range(8 * (length + head), 8 * (length + size)), PAYLOAD_BITS):
            yield content[start : start + length], 8 * start + bit, length
        yield content[start : start + length], 8 * (start + length + size) - 1, length


@pytest.mark.promise("store.proven")
@pytest.mark.parametrize(
    "encryption", [None, Encryption(lambda: bytes(range(32)), required=True)], ids=["plain", "encrypted"]
)
def test_of_one_flipped_bit_it_is_known_whose_it_is(tmp_path: Path, encryption: Encryption | None) -> None:
    chance = random.Random(6)  # noqa: S311
    rows = {b"%b\0%03d" % (chance.choice([b"a", b"b"]), 5 * n): chance.randbytes(40 + n) for n in range(12)}
    data, page = page_of(tmp_path / "data", rows, encryption)
    sound = data.read_bytes()
    keys = sorted(rows)
    absent = [key + b"~" for key in keys] + [key[:-1] for key in keys] + [b"\0", b"a", b"b\0", b"\xff"]
    with closing(Store(tmp_path / "data", encryption=encryption, check=StoreCheck(is_whole=False))) as store:
        refused = 0
        for key, bit, length in places_of(sound, page, chance):
            content = bytearray(sound)
            content[bit // 8] ^= 1 << bit % 8
            data.write_bytes(content)
            at = sound.index(key, page) + len(key) - length
            lies_at = bytes(content[at : at + length])
            low, high = ([b"", *keys, b"\xff"][keys.index(key) + beside] for beside in (0, 2))
            with store.snapshot() as reading:
                if not low < lies_at < high:  # LMDB itself would not find its neighbours any more
                    refused += 1
                    with pytest.raises(StoreDamagedError, match="do not rise"):
                        reading.get(ACTORS, key)
                    continue
                with pytest.raises(RecordDamagedError) as met:
                    reading.get(ACTORS, key)
                assert (met.value.key, met.value.lies_at, met.value.is_key_known) == (key, lies_at, True)
                for other in {*keys, *absent} - {key}:
                    if not min(key, lies_at) <= other <= max(key, lies_at):
                        assert reading.get(ACTORS, other) == rows.get(other)
                for prefix in (b"", b"a", b"b", low, key, high):
                    for start in (None, low, key, lies_at):
                        for reverse in (False, True):
                            is_in = key.startswith(prefix) and (
                                start is None or (key <= start if reverse else key >= start)
                            )
                            told: list[RecordDamagedError] = []
                            list(
                                reading.scan(
                                    ACTORS, prefix, start=start, reverse=reverse, on_damage=told.append
                                )
                            )
                            assert [each.key for each in told] == [key] * is_in
        assert refused < 600


def answers(reading: Snapshot | Store, key: bytes) -> object:
    try:
        return reading.get(ACTORS, key)
    except RecordDamagedError:
        return RecordDamagedError


def is_branch(content: bytes, at: int) -> bool:
    """Say whether a page is one of a tree's that leads to others, and not what a record has in it."""
    number = int.from_bytes(content[at : at + 8], sys.byteorder)
    return number == at // PAGE and int.from_bytes(content[at + 10 : at + 12], sys.byteorder) == 1


@pytest.mark.promise("store.damage")
def test_a_key_that_is_not_where_it_is_looked_for_is_damage(tmp_path: Path) -> None:
    chance = random.Random(9)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    data = tmp_path / "data" / "greenroom.mdb"
    sound = data.read_bytes()
    branches = [at for at in range(2 * PAGE, len(sound), PAGE) if is_branch(sound, at)]
    found = 0
    while found < 3:
        content = bytearray(sound)
        page = chance.choice(branches)
        content[chance.randrange(page + PAGE // 2, page + PAGE)] ^= 1 << chance.randrange(8)
        data.write_bytes(content)
        if lmdb.verify.verify(str(data), subdir=False) or not misleads(data, keys):  # type: ignore[no-untyped-call]  # has no types
            continue
        found += 1
        with pytest.raises(StoreDamagedError, match="restore"):
            verify(tmp_path / "data")


def misleads(path: Path, keys: list[bytes]) -> bool:
    """Say whether anything is not found that is there."""
    with closing(Prover(path, PlainCodec())) as prover:
        try:
            for key in keys:
                ProvenSnapshot(prover).get(ACTORS, key)
        except StoreDamagedError:
            return True
    return False


def flip_last(data: Path, word: bytes) -> None:
    """Flip the last bit of some bytes, wherever they are in a file."""
    rewrite(data, data.read_bytes().replace(word, word[:-1] + bytes([word[-1] ^ 1])))


def known(store: Store) -> list[tuple[str, bytes, bytes]]:
    return [(table, key, lies_at) for table, key, _, lies_at in store.damage]


@pytest.mark.promise("store.damage")
@pytest.mark.parametrize("word", [b"key 4", b"payload 4"])
@pytest.mark.parametrize("payload", [b"anew", None])
def test_a_damaged_record_that_is_written_or_deleted_is_damaged_no_more(
    tmp_path: Path, word: bytes, payload: bytes | None
) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder, sync=False)) as store:
        rows = [(ACTORS, b"key %d" % n, b"payload %d" % n) for n in (0, 2, 4, 6)]
        store.commit([WriteBatch(None, rows)])
    flip_last(folder / "greenroom.mdb", word)
    with closing(Store(folder, sync=False)) as store:  # which does not know of it yet
        lies_at = b"key 5" if word == b"key 4" else b""
        list(store.scan(ACTORS, b"", on_damage=pass_over))
        assert known(store) == [("actors", b"key 4", lies_at)]
        assert answers(store, b"key 4") is RecordDamagedError
        store.commit([WriteBatch(None, [(INDEXES, b"key 4", b"of another table")])])
        assert len(list(store.damage)) == 1
        with store.snapshot() as before:
            store.commit([WriteBatch(None, [(ACTORS, b"key 4", payload)])])
            assert answers(before, b"key 4") is RecordDamagedError, "a view stays what it was"
        assert (known(store), store.is_sound) == ([], True)
        assert store.get(ACTORS, b"key 4") == payload
        assert len(list(store.scan(ACTORS, b""))) == 3 + (payload is not None)
        assert store.statistics().damaged_records == 0
    verify(folder)


@pytest.mark.promise("store.scrub")
def test_a_check_forgets_no_damage_that_was_met_after_its_copy_and_brings_none_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder, sync=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"key %d" % n, b"payload %d" % n) for n in range(9)])])
        store.writer.settle()
        since = store.damage.step
        flip_last(folder / "greenroom.mdb", b"payload 3")
        flip_last(folder / "greenroom.mdb", b"payload 5")
        list(store.scan(ACTORS, b"", on_damage=pass_over))
        store.commit([WriteBatch(None, [(ACTORS, b"key 5", b"anew")])])
        found = StoreCheck(is_whole=True, damaged=(DamagedRecord("actors", b"key 5"),))
        store.take_check(found, since)
        assert known(store) == [("actors", b"key 3", b"")]


@pytest.mark.promise("store.proven")
def test_a_view_is_opened_again_where_commits_came_meanwhile(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "data", sync=False, check=StoreCheck(is_whole=False))) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"key", b"0")])])
        passed = iter(range(3))

        class Busy(Prover):
            """Reads the heads when two more commits have come."""

            def heads(self) -> list[Head]:
                if next(passed, None) is not None:
                    for n in range(2):
                        store.commit([WriteBatch(None, [(ACTORS, b"key", b"%d" % n)])])
                return super().heads()

        busy = Busy(tmp_path / "data" / "greenroom.mdb", PlainCodec())
        store._prover.close()
        store._prover = busy
        assert store.get(ACTORS, b"key") == b"1"
        assert next(passed, None) is None


@pytest.mark.promise("store.proven")
@pytest.mark.parametrize("codec", [PlainCodec(), SealedCodec(bytes(32))], ids=["plain", "sealed"])
def test_of_two_flipped_bits_no_other_key_is_said_to_be_known(codec: RecordCodec) -> None:
    chance = random.Random(8)  # noqa: S311
    unknown = 0
    for _ in range(300):
        key = chance.randbytes(chance.randrange(1, 40))
        content = bytearray(key + codec.seal(key, chance.randbytes(chance.randrange(200))))
        for bit in chance.sample(range(8 * len(content)), 2):
            content[bit // 8] ^= 1 << bit % 8
        lies_at = bytes(content[: len(key)])
        with pytest.raises(RecordDamagedError) as met:
            codec.open(lies_at, bytes(content[len(key) :]))
        unknown += not met.value.is_key_known
        assert met.value.key == (key if met.value.is_key_known else lies_at)
    assert unknown > 250
