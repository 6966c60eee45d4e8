"""The memory service: what it promises an embedding program; and it is the memory that agents have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail, json, keep, moment, refused, value_of, wire

from greenroom.actors import ListMemories, MemoryService, Principal, ServiceError, StoreMemory
from greenroom.actors.core.auth.namespaces import owner_of, segment, user_namespace

if TYPE_CHECKING:
    from support.agents import Enter

ALICE = "user:alice:preferences"


async def add(
    service: MemoryService, key: str = "theme", value: Any = None, namespace: str = ALICE, **more: Any
) -> int:
    given = {"memory_type": "semantic", "created_by": "ada", "task_id": "t1"} | more
    return await service.add_memory(namespace, key, {"is": "dark"} if value is None else value, **given)


async def update(service: MemoryService, value: Any, namespace: str = ALICE, **more: Any) -> int:
    return await service.update_memory(namespace, "theme", value, "bob", "t2", **more)


@pytest.mark.promise("service.memory")
async def test_a_memory_comes_back_with_all_its_fields(enter: Enter) -> None:
    value = {"a": [1, 2.5, None, True], "é": "\u202eRTL\U0001f469\u200d\U0001f680", "n": 10**30}
    async with enter() as at:
        service = MemoryService(at.runtime)
        began = at.clock.now()
        number = await add(service, value=value, memory_type="episodic", metadata={"tags": 5, "x": {}})
    async with enter() as at:
        service = MemoryService(at.runtime)
        memory = await service.get_memory(ALICE, "theme")
        assert memory is not None
        assert (memory.id, memory.version, memory.namespace, memory.key) == (number, 1, ALICE, "theme")
        assert (memory.value, memory.metadata) == (value, {"tags": 5, "x": {}})
        assert (memory.memory_type, memory.created_by, memory.updated_by) == ("episodic", "ada", "ada")
        assert memory.created_at == memory.updated_at == moment(began)
        assert memory.expires_at is None


@pytest.mark.promise("service.memory")
async def test_versions_stay_readable_and_ids_are_unique(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        ids = [await add(service)]
        for number in range(5):
            at.tick()
            ids.append(await update(service, {"is": number}))
        await add(service, "other")
        assert len(set(ids)) == 6
        for version, number in enumerate(ids, 1):
            memory = await service.get_memory(ALICE, "theme", version)
            assert memory is not None
            assert memory["value"] is memory.value
            assert (memory.id, memory.version) == (number, version)
            assert memory.value == {"is": "dark" if version == 1 else version - 2}
            assert (memory.created_by, memory.updated_by) == ("ada", "ada" if version == 1 else "bob")
        for version in (7, 2**40):
            assert await service.get_memory(ALICE, "theme", version) is None
        history = await service.list_versions(ALICE, "theme")
        assert [(one.id, one.version) for one in history] == list(zip(ids, range(1, 7), strict=True))
        assert [(one.author, one.task_id) for one in history] == [("ada", "t1"), *[("bob", "t2")] * 5]
        assert [one["author"] for one in history] == [one.author for one in history]
        assert [one.stored_at for one in history] == sorted(one.stored_at for one in history)
        assert {one.deleted_at for one in history} == {None}


@pytest.mark.promise("service.memory")
async def test_every_no_is_a_value_error_that_says_why(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        await add(service)
        bad: list[tuple[str, dict[str, Any]]] = [
            ("KEY_EXISTS", {}),
            ("VALIDATION_ERROR", {"namespace": "user"}),
            ("VALIDATION_ERROR", {"namespace": "user:al ice"}),
            ("VALIDATION_ERROR", {"namespace": "user::x"}),
            ("VALIDATION_ERROR", {"namespace": ":".join("abcdefghi")}),
            ("VALIDATION_ERROR", {"namespace": f"user:{'a' * 101}"}),
            ("VALIDATION_ERROR", {"namespace": "user:alice\n"}),
            ("VALIDATION_ERROR", {"memory_type": "vague", "key": "new"}),
            ("VALIDATION_ERROR", {"key": "a/b"}),
            ("VALIDATION_ERROR", {"key": "new", "value": ["no", "dictionary"]}),
            ("SERIALIZATION_ERROR", {"key": "new", "value": {"a": (1, 2)}}),
            ("SERIALIZATION_ERROR", {"key": "new", "value": {1: 2}}),
            ("VALIDATION_ERROR", {"key": "new", "value": {"a": "x" * 1_048_576}}),
            ("VALIDATION_ERROR", {"key": "new", "task_id": ""}),
        ]
        for code, wrong in bad:
            with refused(code) as caught:
                await add(service, **wrong)
            assert isinstance(caught.value, ValueError)
        with refused("MEMORY_NOT_FOUND", namespace=ALICE):
            await service.update_memory(ALICE, "unknown", {}, "bob", "t")
        with refused("VALIDATION_ERROR", field="limit"):
            await service.search_memories(ALICE, limit=0)
        assert await service.get_memory(ALICE, "unknown") is None
        assert not await service.delete_memory(ALICE, "unknown", "bob", "t")
        assert await service.list_versions(ALICE, "unknown") == []


@pytest.mark.promise("service.memory")
async def test_a_writer_who_came_second_gets_a_conflict_with_the_current_version(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        await add(service)
        won: list[int] = []
        lost: list[ServiceError] = []

        async def compete(number: int) -> None:
            try:
                won.append(await update(service, {"is": number}, expected_version=1))
            except ServiceError as error:
                lost.append(error)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(compete, number)
        assert (len(won), len(lost)) == (1, 19)
        for error in lost:
            assert error.code == "VERSION_CONFLICT"
            assert (error.details["current_version"], error.details["expected_version"]) == (2, 1)
        await update(service, {"is": "new"}, expected_version=2)
        with refused("VERSION_CONFLICT", current_version=0):
            await service.update_memory(ALICE, "none", {}, "bob", "t", expected_version=1)


@pytest.mark.promise("service.memory")
async def test_deleting_is_soft_until_it_is_purged(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        await add(service)
        await update(service, {"is": 2})
        at.tick()
        assert await service.delete_memory(ALICE, "theme", "eve", "t3")
        deleted_at = moment(at.clock.now())
        assert not await service.delete_memory(ALICE, "theme", "eve", "t3")
        assert await service.get_memory(ALICE, "theme") is None
        assert await service.get_memory(ALICE, "theme", 1) is None
        assert await service.search_memories("user:alice") == []
        with refused("MEMORY_NOT_FOUND"):
            await update(service, {})
    async with enter() as at:
        service = MemoryService(at.runtime)
        old = await service.list_versions(ALICE, "theme")
        assert [(one.version, one.deleted_at) for one in old] == [(1, deleted_at), (2, deleted_at)]
        number = await add(service, value={"is": "new"})
        assert number > max(one.id for one in old)
        versions = await service.list_versions(ALICE, "theme")
        assert versions[:2] == old
        assert [(one.id, one.version, one.deleted_at) for one in versions[2:]] == [(number, 3, None)]
        assert versions[2].memory_id != old[0].memory_id
        assert await service.delete_memory(ALICE, "theme", "eve", "t4")
        await add(service, value={"is": "newest"})
        assert len(await service.list_versions(ALICE, "theme")) == 4
        assert await service.purge_memory(ALICE, "theme", "eve", "t5")
        assert await service.list_versions(ALICE, "theme") == []
        assert not await service.purge_memory(ALICE, "theme", "eve", "t5")
        await trio.sleep(2)
        assert await add(service) > number


@pytest.mark.promise("service.memory")
@pytest.mark.slow
async def test_searching_goes_by_whole_segments_newest_update_first(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        places = ["user:alice", "user:alice:a", "user:alice:a:b", "user:alice:ab", "user:al", "user:alice2"]
        for number, place in enumerate(places):
            await add(
                service, f"k{number}", namespace=place, memory_type="semantic" if number % 2 else "episodic"
            )
            at.tick()
        await service.update_memory("user:alice:a", "k1", {}, "bob", "t")

        async def keys(prefix: str, **more: Any) -> list[str]:
            return [memory.key for memory in await service.search_memories(prefix, **more)]

        assert await keys("user:alice") == ["k1", "k3", "k2", "k0"]
        assert await keys("user:alice:a") == ["k1", "k2"]
        assert await keys("user:alice:a:b") == ["k2"]
        assert await keys("user:al") == ["k4"]
        assert await keys("user:alice:b") == []
        assert await keys("user:alice", memory_type="episodic") == ["k2", "k0"]
        assert await keys("user:alice", limit=1) == ["k1"]
        assert await keys("user") == ["k1", "k5", "k4", "k3", "k2", "k0"]
        assert await keys("user", limit=2) == ["k1", "k5"]
        assert await keys("us") == []
        assert await keys("user:alice:") == await keys("user:alice")
        assert await keys("user:al:") == ["k4"]
        assert await keys("user:") == await keys("user")
        for wrong in ("", ":", "user::", "user:alice::", "user:a b", "a:" * 9):
            with refused("VALIDATION_ERROR"):
                await keys(wrong)
        alice = MemoryService(at.runtime, Principal(agent_id="a", user="alice"))
        assert [memory.key for memory in await alice.search_memories("user")] == ["k1", "k3", "k2", "k0"]
        for number in range(450):
            await add(service, f"many{number:03}", namespace="team:x:y")
        found = await keys("team:x", limit=1_000)
        assert found == [f"many{number:03}" for number in range(449, -1, -1)]
        assert await keys("team:x", limit=300) == found[:300]


@pytest.mark.promise("service.memory")
@pytest.mark.promise("memory.audit")
async def test_every_change_leaves_an_audit_record_with_its_task(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        began = at.clock.now()
        await add(service)
        at.tick()
        await update(service, {})
        at.tick()
        await service.delete_memory(ALICE, "theme", "eve", "t3")
        at.tick()
        await service.purge_memory(ALICE, "theme", "gus", "t4")
        trail = await at.runtime.query(AuditTrail())
        told = ("task_id", "by", "old_version", "version")
        assert [(row.action, *(row.details.get(name) for name in told)) for row in trail] == [
            ("add_memory", "t1", "ada", None, 1),
            ("update_memory", "t2", "bob", 1, 2),
            ("delete_memory", "t3", "eve", 2, None),
            ("delete_memory", "t4", "gus", 2, None),
        ]
        assert [row.at for row in trail] == [began + number * 1_000_000 for number in range(4)]
        for row in trail:
            assert (row.agent, row.details["namespace"], row.details["key"]) == ("app", ALICE, "theme")
            assert "dark" not in str(row)


@pytest.mark.promise("service.memory")
@pytest.mark.promise("memory.private")
async def test_a_service_with_a_principal_may_do_what_that_one_may(enter: Enter) -> None:
    async with enter() as at:
        bob = MemoryService(at.runtime, Principal(agent_id="b", user="bob", projects=frozenset({"p"})))
        everyone = MemoryService(at.runtime)
        await add(everyone, "secret", namespace="user:alice")
        await add(everyone, "ours", namespace="project:p")
        await add(everyone, "theirs", namespace="project:q")
        for namespace in ("user:alice", "agent:c", "project:q"):
            with refused("PERMISSION_DENIED", field="namespace"):
                await add(bob, "new", namespace=namespace)
            with refused("PERMISSION_DENIED", field="namespace"):
                await bob.update_memory(namespace, "secret", {}, "bob", "t")
            with refused("PERMISSION_DENIED", field="namespace"):
                await bob.delete_memory(namespace, "secret", "bob", "t")
            for key in ("secret", "theirs", "unknown"):
                assert await bob.get_memory(namespace, key) is None
                assert await bob.list_versions(namespace, key) == []
            assert await bob.search_memories(namespace) == []
        assert await bob.get_memory("project:p", "ours") is not None
        await bob.update_memory("project:p", "ours", {"is": "bob's"}, "bob", "t")
        await add(bob, "mine", namespace="user:bob")
        await add(bob, "mine", namespace="agent:b")


async def test_it_is_the_memory_that_agents_have(enter: Enter) -> None:
    async with enter() as at:
        service = MemoryService(at.runtime)
        agent = at.agent("planner", user="alice")
        await keep(agent, "k", '{"is": 1}', metadata=json('{"m": 1}'))
        memory = await service.get_memory("agent:planner", "k")
        assert memory is not None
        assert (memory.value, memory.metadata, memory.created_by) == ({"is": 1}, {"m": 1}, "planner")
        await service.update_memory("agent:planner", "k", {"is": 2}, "bob", "t")
        assert await value_of(agent, "k") == '{"is":2}'
        assert await keep(agent, "k", "3") == 3
        await add(service, "theme")
        [found] = (await agent.ask(ListMemories(namespace=ALICE))).memories
        assert (found.key, wire(found)["value"]) == ("theme", {"is": "dark"})
        await agent.ask(StoreMemory(namespace=ALICE, key="text", content="Hi"))
        told = await service.get_memory(ALICE, "text")
        assert told is not None
        assert told.value == {"content": "Hi"}
        assert told.memory_id == (await agent.ask(ListMemories(namespace=ALICE))).memories[0].memory_id


def test_names_and_segments_tell_different_users_apart() -> None:
    users = [
        "alice",
        "Alice",
        "al:ice",
        "al~3aice",
        "DOMAIN\\al",
        "Zoë",
        "Zoe\u0308",
        "",
        "x" * 101,
        "x" * 102,
        "~",
    ]
    nobody = Principal(agent_id="app")
    spaces = set()
    for user in users:
        space = user_namespace(Principal(agent_id="a", user=user))
        spaces.add(space)
        assert len(segment(user)) <= 100
        if len(user) <= 100 and user:
            assert owner_of(f"{space}:x", nobody).user == user
    assert len(spaces) == len(users)
