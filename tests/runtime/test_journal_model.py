"""A journal against a list: whatever works, fails, finds no room or dies, rows are those of the deeds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import trio
from hypothesis import given
from support.journals import JOURNALS, CheckDeeds, Deeds, Do, Look
from support.virtual_time import run_in_virtual_time

from greenroom.runtime import (
    ActorFailedError,
    Address,
    InlineCommitter,
    Refusal,
    Runtime,
    RuntimeOptions,
    StorageFullError,
    StoreFailedError,
    open_runtime,
)
from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("do"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("fail"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("full"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("look"), st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("group"), st.integers(1, 4), st.integers(0, 15)),
        st.tuples(st.just("wait"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("die before"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("die after"), st.integers(0, 3), st.integers(1, 5)),
    ),
    max_size=25,
)


class World:
    """A store, what went wrong with it, and what should be in its journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        self.rows: list[str] = []
        self.fault = ""
        self.full_for: set[str] = set()
        self.names = 0

    def commit(self, store: Any, works: Any) -> None:
        for work in works:
            cell = getattr(work, "activation", None)
            if cell is not None and cell.address.key in self.full_for:
                work.error = StorageFullError("full")
        if self.fault == "die before":
            raise StoreFailedError("the disk is gone")
        store.commit(works)
        if self.fault == "die after":
            raise StoreFailedError("the disk is gone")

    def opened(self) -> Any:
        return open_runtime(
            self.folder / "data",
            **JOURNALS,
            clock=self.clock,
            committer=InlineCommitter(self.commit),
            options=RuntimeOptions(durability="process"),
            secrets=self.folder / "secrets",
        )

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    async def run(self, steps: list[tuple[str, int, int]]) -> None:
        remaining = list(steps)
        while remaining or self.names == 0:
            self.fault = ""
            try:
                async with self.opened() as runtime:
                    while remaining:
                        step, who, count = remaining.pop(0)
                        if step == "restart":
                            break
                        await self.do(runtime, step, who, count)
                    self.names += 1
            except StoreFailedError:
                assert self.fault
        self.fault = ""
        async with self.opened() as runtime:
            entries = await runtime.query(Deeds())
            assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
            assert [entry.value for entry in entries if not entry.value.startswith("look")] == self.rows
            assert (await runtime.query(CheckDeeds())).findings == []

    async def do(self, runtime: Runtime, step: str, who: int, count: int) -> None:
        address, name = Address("doer", f"d{who}"), self.name()
        rows = [f"{name} {number}" for number in range(count)]
        match step:
            case "do":
                await runtime.ask(address, Do(what=name, times=count))
                self.rows += rows
            case "fail":
                with pytest.raises(ActorFailedError):
                    await runtime.ask(address, Do(what=name, times=count, fail=True))
            case "full":
                self.full_for = {address.key}
                with pytest.raises(StorageFullError):
                    await runtime.ask(address, Do(what=name, times=count))
                self.full_for = set()
            case "look":
                try:
                    await runtime.ask(address, Look(what=f"look {name}", refuse=bool(count)))
                except Refusal:
                    assert count
            case "group":
                await self.group(runtime, who, count)
            case "wait":
                await trio.sleep(2)
            case _:
                self.fault = step
                if step == "die after":
                    self.rows += rows
                await runtime.ask(address, Do(what=name, times=count))

    async def group(self, runtime: Runtime, size: int, full: int) -> None:
        """Ask several at once, some of which find no room."""
        names = [self.name() for _ in range(size)]
        self.full_for = {f"g{number}" for number in range(size) if full >> number & 1}
        done: list[str] = []

        async def one(number: int) -> None:
            try:
                await runtime.ask(Address("doer", f"g{number}"), Do(what=names[number]))
            except StorageFullError:
                assert full >> number & 1
            else:
                assert not full >> number & 1
                done.append(names[number])

        async with trio.open_nursery() as nursery:
            for number in range(size):
                nursery.start_soon(one, number)
        self.full_for = set()
        entries = await runtime.query(Deeds())
        written = [entry.value for entry in entries if not entry.value.startswith("look")]
        fresh = written[len(self.rows) :]
        assert sorted(fresh) == sorted(f"{name} 0" for name in done)
        self.rows += fresh


@pytest.mark.promise("audit.with-the-deed", "audit.crash")
@given(steps=STEPS)
def test_rows_are_those_of_the_deeds(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_in_virtual_time(World(Path(folder)).run, steps)
