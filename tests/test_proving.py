"""Reading an unchecked store finds what LMDB finds, and in a damaged one the truth or nothing."""

from __future__ import annotations

import random
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb
import lmdb.verify
import pytest

from bench.damaging import KINDS, PAGE
from greenroom.runtime import ACTORS, INDEXES, PlainCodec, Store, StoreDamagedError, WriteBatch, verify
from greenroom.runtime.store.page_proofs import ProvenSnapshot, Prover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    found = reading.scan if which == "scan" else reading.keys
    return list(found(ACTORS, prefix, start=start, reverse=reverse))


def looks(keys: list[bytes], chance: random.Random) -> Iterator[Callable[[Snapshot], object]]:
    """Yield ways to look into a store."""
    for key in keys:
        yield partial(one, key)
    for _ in range(30):
        prefix = chance.choice([b"", b"a", b"b", b"b\xff", b"\xff", b"c", chance.choice(keys)[:3]])
        start = chance.choice([None, *chance.sample(keys, 3)])
        for reverse in (False, True):
            for which in ("scan", "keys"):
                yield partial(several, which, prefix, start, reverse)


@pytest.mark.promise("store.proven")
def test_what_is_proven_is_what_is_there(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    ways = list(looks(keys, chance))
    with closing(Store(tmp_path / "data")) as plain, plain.snapshot() as reading:
        expected = [look(reading) for look in ways]
    assert sum(isinstance(found, bytes) for found in expected) > 900
    with closing(Store(tmp_path / "data", is_checked=False)) as store:
        with store.snapshot() as reading:
            assert [look(reading) for look in ways] == expected
            store.commit([WriteBatch(None, [(ACTORS, key, b"new") for key in keys[:50]])])
            assert [look(reading) for look in ways] == expected, "a view stays what it was"
        glance = store.cached_snapshot(ACTORS)
        assert [store.get(ACTORS, key) for key in keys[:50]] == [b"new"] * 50
        assert [glance.get(key) for key in keys[:50]] == [b"new"] * 50
        glance.close()


@pytest.mark.promise("store.proven")
def test_a_store_proves_what_it_reads_until_it_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(Store(folder, sync=False)) as store:
        store.commit([WriteBatch(None, [(ACTORS, b"key %d" % n, b"v") for n in range(10)])])
    data = folder / "greenroom.mdb"
    data.write_bytes(data.read_bytes().replace(b"key 5", b"key\xff5"))  # which hides it and two more
    with closing(Store(folder, is_checked=False)) as store:
        looks: list[Callable[[], object]] = [
            lambda: store.get(ACTORS, b"key 5"),
            lambda: store.cached_snapshot(ACTORS).get(b"key 5"),
        ]
        for look in looks:
            with pytest.raises(StoreDamagedError):
                look()
        store.is_checked = True
        assert [look() for look in looks] == [None, None], "as LMDB itself says"


@pytest.mark.promise("store.proven")
def test_from_a_damaged_file_comes_the_truth_or_an_error(tmp_path: Path) -> None:
    chance = random.Random(4)  # noqa: S311
    keys = fill(tmp_path / "data", chance)
    ways = list(looks(keys, chance))
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
