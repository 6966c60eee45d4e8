"""Procedures, which ask several actors where the actors are, and the sidecar beside the actors."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.actors import ACTORS, INDEXES, Add, Counter, FailAfter, Read, Rows, Whoami

from greenroom.runtime import (
    ActorFailedError,
    Address,
    Context,
    Message,
    Procedure,
    ProcedureContext,
    Refusal,
    UnknownKindError,
    handles,
    open_runtime,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.relays import Join

    from greenroom.runtime import RuntimeClient


class Sum(Procedure[int], frozen=True):
    """Add what several counters say, asked side by side."""

    keys: list[str]

    async def run(self, context: ProcedureContext) -> int:
        said: list[int] = []

        async def read(key: str) -> None:
            said.append(await context.ask(Address("counter", key), Read()))

        async with trio.open_nursery() as nursery:
            for key in self.keys:
                nursery.start_soon(read, key)
        return sum(said)


class Asker(Procedure[str], frozen=True):
    """Say who asks, as an actor and a procedure have it."""

    async def run(self, context: ProcedureContext) -> str:
        heard = await context.ask(Address("counter", "any"), Whoami())
        return f"{heard} {context.principal} {context.sidecar}"


class Failing(Procedure[int], frozen=True):
    async def run(self, context: ProcedureContext) -> int:
        return await context.ask(Address("counter", "any"), FailAfter())


class Wait(Procedure[int], frozen=True):
    async def run(self, context: ProcedureContext) -> int:
        await context.ask(Address("counter", "any"), Read())
        await trio.sleep_forever()
        raise AssertionError("nobody wakes it")


class Beside(Message[str], frozen=True):
    pass


class Sees(Counter):
    kind = "sees"

    @handles(Beside)
    def beside(self, _: Beside, context: Context) -> str:
        return str(context.sidecar)


@pytest.mark.promise("runtime.procedures")
async def test_a_procedure_asks_several_actors_and_sees_what_was_written(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES) as runtime:
        for number in range(20):
            await runtime.ask(Address("counter", f"{number}"), Add(by=number))
        assert await runtime.query(Sum(keys=[f"{number}" for number in range(20)])) == 190


@pytest.mark.promise("runtime.procedures", "identity.principal")
async def test_an_attached_process_has_procedures_carried_out_by_the_owner_in_its_own_name(
    join: Join,
) -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def sidecar(_runtime: RuntimeClient) -> AsyncIterator[str]:
        opened.append("opened")
        yield "the owner's"

    options = {"queries": [Rows, Sum, Asker, Failing, Wait], "sidecar": sidecar}
    async with join(**options), join(**options) as guest:
        assert opened == ["opened"]
        await guest.ask(Address("counter", "a"), Add(by=3))
        assert await guest.query(Sum(keys=["a", "b"])) == 3
        assert await guest.query(Asker(), principal="ann") == "ann ann the owner's"
        with pytest.raises(ActorFailedError):
            await guest.query(Failing())
        with trio.move_on_after(5) as scope:
            await guest.query(Wait())
        assert scope.cancelled_caught
        assert await guest.query(Sum(keys=["a"])) == 3
    async with join(queries=[Rows]), join(queries=[Rows]) as stranger:
        with pytest.raises(UnknownKindError, match="Sum"):
            await stranger.query(Sum(keys=[]))


@pytest.mark.promise("runtime.sidecar")
async def test_a_companion_runs_as_long_as_the_actors_and_can_ask_them(tmp_path: Path) -> None:
    story: list[Any] = []

    @asynccontextmanager
    async def sidecar(runtime: RuntimeClient) -> AsyncIterator[str]:
        story.append(await runtime.ask(Address("sees", "a"), Beside()))
        yield "here"
        story.append(await runtime.ask(Address("sees", "a"), Add(by=2)))

    async with open_runtime(tmp_path / "data", actors=[Sees], sidecar=sidecar) as runtime:
        story.append(await runtime.ask(Address("sees", "a"), Beside()))
    assert story == ["None", "here", 2]
    async with open_runtime(tmp_path / "data", actors=[Sees]) as runtime:
        assert await runtime.ask(Address("sees", "a"), Read()) == 2


@pytest.mark.promise("runtime.sidecar")
async def test_a_companion_that_cannot_begin_ends_the_opening_and_leaves_the_store_whole(
    tmp_path: Path,
) -> None:
    @asynccontextmanager
    async def sidecar(runtime: RuntimeClient) -> AsyncIterator[None]:
        await runtime.ask(Address("counter", "a"), Add())
        raise Refusal("NO_MODEL", "there is no model here")
        yield

    with pytest.raises(Refusal, match="no model"):
        async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES, sidecar=sidecar):
            raise AssertionError("it must not begin")
    async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES) as runtime:
        assert await runtime.ask(Address("counter", "a"), Read()) == 1
