"""What one family of memory tools stored, the other one's tools find by its key, or say where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness import greenroom
from support.agents import begin, json, keep, refused, value_of

from greenroom.actors import (
    Agent,
    DeleteMemory,
    ForgetMemory,
    GetMemory,
    ListVersions,
    Principal,
    RateMemory,
    RetrieveMemory,
    SetMemory,
    StoreMemory,
    UpdateMemory,
)
from greenroom.runtime import Encryption, Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

pytestmark = [pytest.mark.promise("memory.look-alikes"), pytest.mark.slow]

SECRET = Encryption(lambda: bytes(32), required=True)


def member(at: House, agent_id: str = "alice", **identity: Any) -> Agent:
    """Return an agent of the user Ann, who is a member of two projects."""
    settings = {"user": "ann", "projects": frozenset({"atlas", "borea"}), **identity}
    return Agent(at.runtime, Principal(agent_id=agent_id, **settings))


async def found(agent: Agent, key: str, **arguments: Any) -> list[tuple[str, str | None]]:
    """Return where `retrieve_memory` finds a key, with the sessions."""
    reply = await agent.ask(RetrieveMemory(key=key, **arguments))
    return [(hit.namespace, hit.session_id or None) for hit in reply.memories]


def places(refusal: Refusal) -> list[str]:
    return [place["namespace"] for place in refusal.details["places"]]


# -- reading -----------------------------------------------------------------------------------------


async def test_get_memory_finds_what_store_memory_stored(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await ann.ask(StoreMemory(key="text", content="hello", metadata=json('{"a":1,"tags":["x"]}')))
        await ann.ask(StoreMemory(key="number", value=json("42.0")))
        read = await ann.ask(GetMemory(key="text"))
        assert (bytes(read.value), bytes(read.metadata)) == (b'"hello"', b'{"a":1}')
        assert (read.namespace, read.scope, read.version) == ("user:ann", "global", 1)
        assert await value_of(ann, "number") == "42.0"


async def test_get_memory_finds_the_one_project_that_has_the_key(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await ann.ask(StoreMemory(key="k", content="in atlas", namespace="project:atlas:decisions"))
        assert (await ann.ask(GetMemory(key="k"))).namespace == "project:atlas:decisions"
        await ann.ask(StoreMemory(key="k", content="in borea", namespace="project:borea"))
        with refused("MEMORY_NOT_FOUND", key="k") as caught:
            await ann.ask(GetMemory(key="k"))
        assert places(caught.value) == ["project:atlas:decisions", "project:borea"]
        assert "get_memory with namespace 'project:borea'" in caught.value.sentence
        named = await ann.ask(GetMemory(key="k", namespace="project:borea"))
        assert bytes(named.value) == b'"in borea"'


async def test_one_s_own_comes_first_and_then_the_user_s(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await ann.ask(StoreMemory(key="k", content="shared", namespace="project:atlas"))
        await ann.ask(StoreMemory(key="k", content="the user's"))
        assert await value_of(ann, "k") == '"the user\'s"'
        assert await found(ann, "k") == [("user:ann", None), ("project:atlas", None)]
        await keep(ann, "k", "1")
        assert await value_of(ann, "k") == "1"
        assert [where for where, _ in await found(ann, "k")] == ["agent:alice", "user:ann", "project:atlas"]
        assert await found(ann, "k", limit=1) == [("agent:alice", None)]
        assert await found(ann, "k", namespace="project:atlas") == [("project:atlas", None)]


async def test_an_older_version_is_not_taken_from_elsewhere(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await keep(ann, "k")
        for content in ("one", "two"):
            await ann.ask(StoreMemory(key="k", content=content))
        with refused("MEMORY_NOT_FOUND", key="k", scope="global"):
            await ann.ask(GetMemory(key="k", version=2))
        await ann.ask(StoreMemory(key="other", content="one"))
        await ann.ask(StoreMemory(key="other", content="two"))
        assert bytes((await ann.ask(GetMemory(key="other", version=1))).value) == b'"one"'


@pytest.mark.quick
@pytest.mark.parametrize("encryption", [None, SECRET])
async def test_a_key_that_is_bound_to_a_session_is_named_with_it(
    enter: Enter, encryption: Encryption | None
) -> None:
    async with enter(embedder="none", encryption=encryption) as at:
        alice = await begin(at)
        await keep(alice, "k", session_id="s")
        with refused("MEMORY_NOT_FOUND") as caught:
            await alice.ask(GetMemory(key="k"))
        assert "for session 's' (get_memory with session_id 's')" in caught.value.sentence
        with refused("MEMORY_NOT_FOUND") as caught:
            await alice.ask(DeleteMemory(key="k"))
        assert "delete_memory with session_id 's'" in caught.value.sentence
        assert await found(alice, "k") == [("agent:alice", "s")]
        await keep(alice, "global")
        with refused("MEMORY_NOT_FOUND") as caught:
            await alice.ask(GetMemory(key="global", session_id="s"))
        assert "get_memory without session_id" in caught.value.sentence
        gone = await alice.ask(DeleteMemory(key="global", session_id="s"))
        assert not gone.existed


async def test_namespace_and_session_are_not_both_taken(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        with refused("VALIDATION_ERROR", field="namespace"):
            await ann.ask(GetMemory(key="k", session_id="s", namespace="user:ann"))


# -- changing ----------------------------------------------------------------------------------------


async def test_what_set_memory_stored_is_changed_and_rated_and_its_versions_are_listed(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await keep(ann, "k", "1")
        updated = await ann.ask(UpdateMemory(key="k", value=json("2"), idempotency_key="once"))
        assert (updated.namespace, updated.version) == ("agent:alice", 2)
        assert await ann.ask(UpdateMemory(key="k", value=json("2"), idempotency_key="once")) == updated
        assert await value_of(ann, "k") == "2"
        assert (await ann.ask(RateMemory(key="k", rating=1))).namespace == "agent:alice"
        assert (await ann.ask(ListVersions(key="k"))).count == 2


async def test_a_change_goes_nowhere_while_several_have_the_key(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await keep(ann, "k", "1")
        await ann.ask(StoreMemory(key="k", content="shared", namespace="project:atlas"))
        with refused("MEMORY_NOT_FOUND", namespace="user:ann") as caught:
            await ann.ask(UpdateMemory(key="k", value=json("2")))
        assert places(caught.value) == ["agent:alice", "project:atlas"]
        assert await value_of(ann, "k") == "1"
        assert (await ann.ask(ListVersions(key="k"))).count == 1


async def test_a_wrong_version_is_refused_where_the_key_lies(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await keep(ann, "k", "1")
        with refused("VERSION_CONFLICT", namespace="agent:alice", current_version=1):
            await ann.ask(UpdateMemory(key="k", value=json("2"), expected_version=7))


# -- removing ----------------------------------------------------------------------------------------


async def test_nothing_is_removed_elsewhere_and_the_call_that_does_is_named(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await ann.ask(StoreMemory(key="theirs", content="x"))
        with refused("MEMORY_NOT_FOUND", key="theirs") as caught:
            await ann.ask(DeleteMemory(key="theirs"))
        assert "forget_memory with namespace 'user:ann'" in caught.value.sentence
        assert (await ann.ask(ForgetMemory(key="theirs", namespace="user:ann"))).forgotten == 1

        await keep(ann, "own")
        with refused("MEMORY_NOT_FOUND", key="own") as caught:
            await ann.ask(ForgetMemory(key="own"))
        assert "forget_memory with namespace 'agent:alice'" in caught.value.sentence
        assert (await ann.ask(ForgetMemory(key="own", namespace="agent:alice"))).forgotten == 1


async def test_deleting_what_is_nowhere_says_so_again_and_again(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await keep(ann, "k")
        for existed in (True, False, False):
            assert (await ann.ask(DeleteMemory(key="k"))).existed is existed
        repeated = DeleteMemory(key="k", idempotency_key="once")
        assert (await ann.ask(repeated)) == (await ann.ask(repeated))


# -- who may see what --------------------------------------------------------------------------------


async def test_what_is_hidden_is_not_told_of(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, bob = member(at), member(at, "bob", user="bob", projects=frozenset({"atlas"}))
        await keep(ann, "k")
        await ann.ask(StoreMemory(key="k", content="hers"))
        await ann.ask(StoreMemory(key="k", content="b", namespace="project:borea"))
        await ann.ask(
            StoreMemory(key="k", content="p", namespace="project:atlas", metadata=json('{"scope":"private"}'))
        )
        nowhere: list[Any] = []
        for key in ("k", "unknown"):
            with refused("MEMORY_NOT_FOUND") as caught:
                await bob.ask(GetMemory(key=key))
            nowhere.append({**caught.value.details, "key": ""})
            assert not (await bob.ask(DeleteMemory(key=key))).existed
            assert await found(bob, key) == []
        assert nowhere[0] == nowhere[1]


async def test_another_user_s_public_memory_is_named_and_never_taken(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, bob = member(at), member(at, "bob", user="bob")
        await bob.ask(StoreMemory(key="k", content="planted", metadata=json('{"scope":"public"}')))
        with refused("MEMORY_NOT_FOUND") as caught:
            await ann.ask(GetMemory(key="k"))
        assert "get_memory with namespace 'user:bob'" in caught.value.sentence
        with refused("MEMORY_NOT_FOUND") as caught:
            await ann.ask(UpdateMemory(key="k", content="mine"))
        assert "'user:bob' (yours to read only)" in caught.value.sentence


# -- over the wire -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [{}, {"odd": True}])  # what is not plain goes by way of the SDK
async def test_clients_find_what_the_other_family_stored(tmp_path: Path, way: dict[str, bool]) -> None:
    async with greenroom(tmp_path / "data", "alice") as client:
        await client.initialize()

        async def call(tool: str, **arguments: Any) -> Any:
            params = {"name": tool, "arguments": arguments, **way}
            return (await client.request("tools/call", params))["result"]["structuredContent"]

        await call("store_memory", key="k", content="hello")
        await call("set_memory", key="own", value=[1])
        assert (await call("get_memory", key="k"))["value"] == "hello"
        assert (await call("retrieve_memory", key="own"))["memories"][0]["value"] == [1]
        assert (await call("update_memory", key="own", value=[2]))["namespace"] == "agent:alice"
        assert (await call("delete_memory", key="nowhere"))["existed"] is False
        params = {"name": "delete_memory", "arguments": {"key": "k"}, **way}
        result = (await client.request("tools/call", params))["result"]
        assert result["isError"]
        assert "forget_memory with namespace 'user:user'" in result["content"][0]["text"]


async def test_set_memory_writes_the_agent_s_own_whatever_others_have(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = member(at)
        await ann.ask(StoreMemory(key="k", content="the user's"))
        await ann.ask(SetMemory(key="k", value=json("1"), overwrite=False))
        assert await value_of(ann, "k") == "1"
        assert (await ann.ask(GetMemory(key="k", namespace="user:ann"))).version == 1
