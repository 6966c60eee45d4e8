"""A version number means one state of a key, also when the key ended meanwhile and was taken anew."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import json, refused
from support.exchanges import line, text

from greenroom.actors import (
    DeleteMemory,
    EraseUser,
    ForgetMemory,
    GetMemory,
    ImportMemories,
    MemoryFilters,
    MoveMemory,
    RestoreMemory,
    SetMemory,
    StoreMemory,
    UpdateMemory,
)
from greenroom.runtime import InlineCommitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter, House

    from greenroom.actors import Agent
    from greenroom.runtime import WriteBatch

pytestmark = pytest.mark.promise("memory.versions")
KEY = "wyvern"
OWN, SHARED, AGENTS = "user:ann", "team:x", "agent:a"


def ann(at: House) -> Agent:
    return at.agent("a", user="ann")


async def stored(agent: Agent, content: str, namespace: str, **more: Any) -> Any:
    return await agent.ask(StoreMemory(content=content, key=KEY, namespace=namespace, **more))


async def forget(at: House, namespace: str) -> None:
    await ann(at).ask(ForgetMemory(key=KEY, namespace=namespace))


async def purge(at: House, namespace: str) -> None:
    await ann(at).ask(ForgetMemory(key=KEY, namespace=namespace, purge=True))


async def forget_then_purge(at: House, namespace: str) -> None:
    await forget(at, namespace)
    await purge(at, namespace)


async def purge_by_filter(at: House, namespace: str) -> None:
    filters = MemoryFilters(namespace=namespace, key=KEY)
    await ann(at).ask(ForgetMemory(namespace=namespace, filters=filters, confirm=True, purge=True))


async def expire(at: House, namespace: str) -> None:
    soon = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at.clock.now() + 1_000_000)
    await ann(at).ask(UpdateMemory(key=KEY, namespace=namespace, expiry=soon.isoformat()))
    at.tick(2)


async def expire_and_sweep(at: House, namespace: str) -> None:
    await expire(at, namespace)
    await trio.sleep(300)


async def move(at: House, namespace: str) -> None:
    moved = await ann(at).ask(UpdateMemory(key=KEY, namespace=namespace, tags=["moves"]))
    await ann(at).ask(MoveMemory(memory_id=moved.memory_id, to=f"{namespace}:elsewhere"))


async def hide(at: House, namespace: str) -> None:
    await ann(at).ask(UpdateMemory(key=KEY, namespace=namespace, scope="private"))


async def erase(at: House, _: str) -> None:
    await at.agent("root", scopes=frozenset({"admin"})).ask(EraseUser(user="ann", confirm=True))


Ends = Callable[["House", str], Awaitable[None]]
ENDS: list[tuple[Ends, str]] = [
    (end, namespace)
    for end in (forget, purge, forget_then_purge, purge_by_filter, expire, expire_and_sweep, move)
    for namespace in (OWN, f"{OWN}:deep", SHARED, AGENTS)
] + [(hide, SHARED), (erase, SHARED)]


@pytest.mark.parametrize(
    ("end", "namespace"), ENDS, ids=[f"{end.__name__}-{namespace}" for end, namespace in ENDS]
)
async def test_who_expects_a_version_of_what_ended_is_refused(
    enter: Enter, end: Ends, namespace: str
) -> None:
    async with enter() as at:
        for content in ("one", "two"):
            last = await stored(ann(at), content, namespace, scope="public")
        assert last.version == 2
        await end(at, namespace)
    async with enter() as at:
        other = at.agent("b", user="bob") if namespace == SHARED else ann(at)
        new = await stored(other, "of somebody else", namespace, expected_version=0, idempotency_key="i")
        repeated = await stored(other, "of somebody else", namespace, expected_version=0, idempotency_key="i")
        assert (new.created, repeated) == (True, new)
        assert new.version > last.version
        for stale in (1, 2):
            with refused("VERSION_CONFLICT", current_version=new.version):
                await stored(other, "a stale write", namespace, expected_version=stale)
            with refused("VERSION_CONFLICT", current_version=new.version):
                await other.ask(UpdateMemory(memory_id=new.memory_id, content="x", expected_version=stale))


@pytest.mark.parametrize("session", [None, "s"])
async def test_versions_go_on_in_an_agents_own_memory(enter: Enter, session: str | None) -> None:
    async with enter() as at:
        alice = at.agent("a", user="ann")
        if session is not None:
            from greenroom.actors import CreateSession  # noqa: PLC0415

            await alice.ask(CreateSession(purpose="p", session_id=session))

        async def kept(**more: Any) -> int:
            request = SetMemory(key=KEY, value=json("1"), session_id=session, **more)
            return (await alice.ask(request)).version

        assert [await kept(), await kept()] == [1, 2]
        await alice.ask(DeleteMemory(key=KEY, session_id=session))
        assert await kept(expires_in=1) == 3
        at.tick(2)
        assert await kept(overwrite=False) == 4
        assert (await alice.ask(SetMemory(key="another", value=json("1"), session_id=session))).version == 1


async def test_what_is_restored_and_what_took_its_key_share_no_version(enter: Enter) -> None:
    async with enter() as at:
        agent = ann(at)
        first = await stored(agent, "first", OWN)
        await forget(at, OWN)
        second = await stored(agent, "second", OWN)
        await forget(at, OWN)
        restored = await agent.ask(RestoreMemory(memory_id=first.memory_id))
        assert (first.version, second.version, restored.version) == (1, 2, 3)
        again = await agent.ask(RestoreMemory(memory_id=first.memory_id, version=1, expected_version=3))
        assert again.version == 4


@pytest.mark.parametrize("on_conflict", ["skip", "overwrite", "version"])
async def test_an_import_goes_on_behind_what_ended(enter: Enter, on_conflict: Any) -> None:
    async with enter() as at:
        agent = ann(at)
        await stored(agent, "first", OWN)
        await purge(at, OWN)
        source = text(line(KEY, "imported", namespace=OWN))
        await agent.ask(ImportMemories(source=source, on_conflict=on_conflict))
        assert (await agent.ask(GetMemory(key=KEY))).version == 2
        with refused("VERSION_CONFLICT", current_version=2):
            await stored(agent, "a stale write", OWN, expected_version=1)


async def test_a_purge_leaves_a_number_alone(enter: Enter) -> None:
    left: dict[bytes, bytes] = {}

    def commit(store: Any, works: Sequence[WriteBatch]) -> None:
        for work in works:
            for _, key, payload in work.ops:
                if payload is None:
                    left.pop(bytes(key), None)
                else:
                    left[bytes(key)] = bytes(payload)
        store.commit(works)

    async with enter(committer=InlineCommitter(commit)) as at:
        await stored(ann(at), "a griffin sleeps", OWN)
        await purge(at, OWN)
        rows = {key: value for key, value in left.items() if key.startswith(b"memory\0user:ann\0ut")}
        ((key, value),) = rows.items()
        assert len(key) == len(b"memory\0user:ann\0ut") + 2
        assert msgspec.msgpack.decode(value[-1:]) == 1
        assert not any(
            word in record
            for record in left.values()
            for word in (b"griffin", b"wyvern")
            if not record.startswith(b"!")
        )
