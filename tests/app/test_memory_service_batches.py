"""The memory service: several memories changed in one commit and kept longer, and where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.agents import AuditTrail, json

from greenroom.actors import (
    ForgetMemory,
    MemoryChange,
    MemoryLease,
    MemorySearch,
    MemoryService,
    Principal,
    SearchService,
    ServiceError,
    SetMemory,
    VerifyMemories,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests.requests import ListSubNamespaces
from greenroom.runtime import Encryption

if TYPE_CHECKING:
    from support.agents import Enter, House

ALICE = Principal(agent_id="app", user="alice")
MINUTE = 60.0


def put(key: str, value: Any = None, namespace: str = "user:alice:a", **more: Any) -> MemoryChange:
    return MemoryChange(namespace=namespace, key=key, value={"is": key} if value is None else value, **more)


def end(key: str, namespace: str = "user:alice:a") -> MemoryChange:
    return MemoryChange(namespace=namespace, key=key, value=None)


def service(at: House, principal: Principal = ALICE) -> MemoryService:
    return MemoryService(at.runtime, principal)


async def there(at: House, namespace: str = "user:alice") -> list[str]:
    return [memory.key for memory in (await service(at).page_memories(namespace)).memories]


@pytest.mark.promise("service.memory-batches")
async def test_changes_are_made_in_order_and_survive(enter: Enter) -> None:
    async with enter() as at:
        changes = [
            put("x"),
            put("y", metadata={"m": 1}),
            end("x"),
            put("z"),
            put("z", {"is": 2}),
            end("none"),
        ]
        await service(at).change_memories([*changes, put("w"), end("w"), put("w", {"is": 3}), end("y")])
        await service(at).change_memories([put("z", {"is": 4}, metadata={"m": 2})])
        await service(at).change_memories([])
    async with enter() as at:
        memories = (await service(at).page_memories("user:alice")).memories
        told = [(each.key, each.value, each.version, each.metadata) for each in memories]
        assert told == [("z", {"is": 4}, 3, {"m": 2}), ("w", {"is": 3}, 2, {})]
        search = SearchService(at.runtime, ALICE)
        found = await search.search_memories("z", namespace="user:alice:a")
        assert [(each.key, each.metadata) for each in found.memories] == [("z", {"m": 2})]
        assert (
            await SearchService(at.runtime, ALICE).search_memories("z", namespace="user:alice:b")
        ).total == 0
        assert not (await at.runtime.query(VerifyMemories())).problems
        await service(at).change_memories([end("z"), end("w")])
        assert await there(at) == []
        assert await service(at).list_namespaces("user:alice") == []


@pytest.mark.promise("service.memory-batches", "service.value-errors")
async def test_a_batch_that_is_refused_changes_nothing(enter: Enter) -> None:
    async with enter() as at:
        await service(at).change_memories([put("x")])
        for bad, code in [
            (put("bad/key"), "VALIDATION_ERROR"),
            (put("y", namespace="user:bob:a"), "VALIDATION_ERROR"),
            (put("y", {"t": {1}}), "SERIALIZATION_ERROR"),
            (put("y", expires_in=0), "VALIDATION_ERROR"),
            (put("y", expires_in=float("nan")), "SERIALIZATION_ERROR"),
            (put("y", expires_in=1e12), "VALIDATION_ERROR"),
        ]:
            with pytest.raises(ServiceError) as caught:
                await service(at).change_memories([put("x", {"is": "new"}), bad])
            assert caught.value.code == code
        bob = Principal(agent_id="app", user="bob")
        for changes in ([put("x")], [end("x")]):
            with pytest.raises(ServiceError, match="you may not write"):
                await service(at, bob).change_memories(changes)
        lease = MemoryLease(namespace="user:alice:a", key="x", expires_in=1)
        with pytest.raises(ServiceError, match="you may not write"):
            await service(at, bob).prolong_memories([lease])
        memory = await service(at).get_memory("user:alice:a", "x")
        assert memory is not None
        assert (memory.value, memory.version) == ({"is": "x"}, 1)


@pytest.mark.promise("service.memory-batches")
async def test_of_more_than_a_commit_takes_all_is_made(enter: Enter) -> None:
    async with enter() as at:
        changes = [put(f"k{number}", namespace=f"user:alice:n{number % 7}") for number in range(1_001)]
        await service(at).change_memories(changes)
        assert (await there(at))[0] == "k1000"
        assert len(await service(at).list_namespaces("user:alice")) == 7


@pytest.mark.promise("service.memory-batches")
async def test_a_memory_lasts_longer_without_a_new_version(enter: Enter) -> None:
    async with enter() as at:
        await service(at).change_memories([put("x", expires_in=MINUTE), put("for ever")])
        before = await service(at).get_memory("user:alice:a", "x")
        assert before is not None
        leases = [
            MemoryLease(namespace="user:alice:a", key=key, expires_in=10 * MINUTE)
            for key in ("x", "for ever", "nowhere")
        ]
        await service(at).prolong_memories(leases)
        await service(at).prolong_memories([MemoryLease(namespace="user:alice:a", key="x", expires_in=1)])
        at.tick(9 * MINUTE)
    async with enter() as at:
        after = await service(at).get_memory("user:alice:a", "x")
        assert after is not None
        assert after.expires_at is not None
        assert before.expires_at is not None
        assert (after.expires_at - before.expires_at).total_seconds() == 9 * MINUTE
        assert (after.version, after.updated_at) == (1, before.updated_at)
        assert (await at.runtime.query(MemorySearch(query="x"), principal=ALICE)).total == 1
        assert not (await at.runtime.query(VerifyMemories())).problems
        at.tick(MINUTE)
        assert await there(at) == ["for ever"]
        assert (await at.runtime.query(MemorySearch(query="x"), principal=ALICE)).total == 0


@pytest.mark.promise("service.memory-batches")
@pytest.mark.parametrize("encryption", [None, Encryption(lambda: b"\x07" * 32, required=True)])
async def test_namespaces_are_listed_with_what_is_seen_there(
    enter: Enter, encryption: Encryption | None
) -> None:
    async with enter(encryption=encryption) as at:
        spaces = [f"user:alice:{name}" for name in ("a", "a:b", "ab", "c:d:e")]
        await service(at).change_memories([put("k", namespace=name) for name in (*spaces, "user:alice:f")])
        await service(at).change_memories([put("gone", namespace="user:alice:g", expires_in=1)])
        agent = at.agent("app", user="alice")
        await agent.ask(ForgetMemory(namespace="user:alice:f", key="k"))
        await agent.ask(SetMemory(key="own", value=json("1")))
        at.tick(2)
        assert await service(at).list_namespaces("user:alice") == spaces
        assert await service(at).list_namespaces("user:alice:a") == ["user:alice:a", "user:alice:a:b"]
        assert await service(at).list_namespaces("agent:app") == ["agent:app"]
        assert await service(at, Principal(agent_id="spy")).list_namespaces("user:alice") == []
        assert await service(at, Principal(agent_id="spy")).list_namespaces("agent:app") == []
        found: list[str] = []
        cursor = None
        while True:
            request = ListSubNamespaces(namespace="user:alice", limit=1, cursor=cursor)
            page = await at.runtime.ask(memory_address("user:alice"), request, principal=ALICE)
            found += page.namespaces
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(found) == spaces


@pytest.mark.promise("service.memory-batches")
async def test_what_is_changed_is_in_the_audit_log(enter: Enter) -> None:
    async with enter() as at:
        await service(at).change_memories([put("x", expires_in=1), put("x", expires_in=1), end("none")])
        await service(at).prolong_memories([MemoryLease(namespace="user:alice:a", key="x", expires_in=9)])
        await service(at).change_memories([end("x")])
        rows = await at.runtime.query(AuditTrail())
        assert [(row.action, row.agent) for row in rows] == [
            (action, "app") for action in ("store_memory", "store_memory", "prolong_memory", "delete_memory")
        ]
        assert {row.details["key"] for row in rows} == {"x"}
