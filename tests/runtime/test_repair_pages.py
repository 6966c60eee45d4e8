"""What a repair saves where pages at the top are damaged: actors as they were, or none of it, or entries."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import lmdb
import msgspec
import pytest
from support.agents import FAST

from bench.damaging import PAGE, rewrite
from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    DeleteMemory,
    Principal,
    SetMemory,
    open_greenroom,
    repair_greenroom,
)
from greenroom.runtime import StoreDamagedError
from greenroom.runtime.store.page_proofs import Prover

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.promise("store.repair", "store.orphans", "store.rerooted"), pytest.mark.slow]

ADA = Principal(agent_id="ada", user="ada")
STORES = 60
MENDED = b"keys\0all\0"
BY_ENTRIES = b"memory\0", b"session\0"
"""Kinds of which entries are kept: their other records are made anew."""
TOLD = b"!outbox\0"


async def fill(folder: Path, chance: random.Random) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        ada = Agent(runtime, ADA)
        for number in range(20):
            name = f"session-{number}"
            await ada.ask(CreateSession(purpose="p", session_id=name))
            for _ in range(8):
                size = chance.choice([10, 100, 900, 9_000])  # the last are on pages of their own
                await ada.ask(AddMessage(session_id=name, content="x" * size))
        for number in range(100):
            await ada.ask(SetMemory(key=f"key-{number}", value=msgspec.Raw(b'"%d"' % number)))
        for number in range(0, 100, 2):
            await ada.ask(DeleteMemory(key=f"key-{number}"))


def rows_of(path: Path) -> list[dict[bytes, bytes]]:
    """Return all rows of a file, by table."""
    found = []
    with lmdb.open(str(path), subdir=False, lock=False, readonly=True, max_dbs=3) as environment:
        for name in (b"actors", b"indexes", b"meta"):
            table = environment.open_db(name, create=False)
            with environment.begin(db=table) as transaction:
                found.append(dict(transaction.cursor()))
    return found


def is_entry(key: bytes) -> bool:
    """Return whether a record is a memory, a version of one, or a message."""
    kind, _, own = key.split(b"\0", 2)
    return own.startswith((b"ue", b"uv")) if kind == b"memory" else own.startswith(b"um")


def counts_of(records: dict[bytes, bytes]) -> Counter[bytes]:
    return Counter(b"\0".join(key.split(b"\0")[:2]) for key in records if not key.startswith(MENDED))


def top_of(path: Path) -> list[int]:
    """Return the pages that lead to others."""
    with closing(Prover(path, None)) as prover:
        trees = prover.trees()
        head = max(prover.heads())
        below = [page for tree in trees if tree.depth > 2 for page in prover.page(tree.root).values]
        return [head.root, head.free_root, *(tree.root for tree in trees), *map(int, below)]  # type: ignore[arg-type]


async def test_actors_are_saved_as_they_were_or_not_at_all_or_by_entries(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311
    await fill(tmp_path / "store", chance)
    store, saved = tmp_path / "store", tmp_path / "saved"
    data, lock = store / "greenroom.mdb", store / "owner.lock"
    sound, left, top = data.read_bytes(), lock.read_bytes(), top_of(data)
    records, rows, _ = rows_of(data)
    whole, numbers = counts_of(records), range(2, len(sound) // PAGE)
    outcomes: Counter[str] = Counter()
    for _ in range(STORES):
        content = bytearray(sound)
        for page in [chance.choice(top), *chance.choices(numbers, k=chance.randrange(3))]:
            other = PAGE * chance.choice(numbers)
            content[PAGE * page : PAGE * (page + 1)] = chance.choice(
                [bytes(PAGE), chance.randbytes(PAGE), sound[other : other + PAGE]]
            )
        rewrite(data, bytes(content))
        lock.write_bytes(left)
        saved.unlink(missing_ok=True)
        try:
            said = repair_greenroom(tmp_path / "store", saved, now=1)
        except StoreDamagedError:
            outcomes["nothing"] += 1
            continue
        found, found_rows, _ = rows_of(saved)
        counts = counts_of(found)
        partly = {actor for actor, count in counts.items() if count != whole[actor]}
        assert all(actor.startswith(BY_ENTRIES) for actor in partly)
        assert all(
            records.get(key) == record
            for key, record in found.items()
            if not key.startswith(MENDED) and (is_entry(key) or not key.startswith(BY_ENTRIES))
        )
        assert all(rows.get(key) == row for key, row in found_rows.items() if not key.startswith(TOLD))
        assert said.ranges or (counts == whole and found_rows.keys() >= rows.keys())
        outcomes["all" if counts == whole else "some"] += 1
    assert outcomes["all"] > STORES // 4
    assert outcomes["some"]
