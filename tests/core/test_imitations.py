"""Namespaces that read like those of a user, an agent or a project, and are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio
from support.commands import run_on_store, serving

from greenroom.actors import (
    Agent,
    ImportMemories,
    ListMemories,
    MemoryActor,
    Principal,
    StoreMemory,
    VerifyMemories,
    open_greenroom,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.memories.storage import directory
from greenroom.actors.memories.storage.records import HEADER, SECRET_BYTES, RootHeader
from greenroom.runtime import Context, Index, Message, Refusal, handles, open_runtime

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.promise("memory.imitations"), pytest.mark.slow]

ANN = Principal(agent_id="planner", user="ann")
BOB = Principal(agent_id="writer", user="bob")


class Begin(Message[None], frozen=True):
    """Make the root as a program did that refused none."""

    root: str


class Older(MemoryActor):
    """The memory actor of such a program."""

    @handles(Begin)
    def begin(self, asked: Begin, context: Context) -> None:
        partition = MemoryPartition("public", "ann", None)
        context.put(HEADER, RootHeader(asked.root, bytes(SECRET_BYTES), (partition,), None))
        directory.put(context, asked.root, (partition,))


async def made_before(folder: Path, root: str) -> None:
    indexes = [Index(name) for name in ("namespaces", "embedding", "spaces", "audit")]
    async with open_runtime(folder, actors=[Older], indexes=indexes) as runtime:
        await runtime.ask(memory_address(root), Begin(root))


@pytest.mark.parametrize("namespace", ["USER:ann", "User:bob:notes", "AGENT:writer", "Project:atlas"])
async def test_a_new_root_that_reads_like_somebodys_is_refused(tmp_path: Path, namespace: str) -> None:
    async with open_greenroom(tmp_path / "store", embedder="none") as runtime:
        bob = Agent(runtime, BOB)
        line = json.dumps({"key": "k", "content": "x", "namespace": namespace})
        for asked in (
            StoreMemory(content="x", namespace=namespace),
            ImportMemories(source=line),
            ImportMemories(source=line, dry_run=True),
        ):
            with pytest.raises(Refusal, match=r"reads like one below '(user|agent|project):'") as caught:
                await bob.ask(asked)
            assert caught.value.code == "VALIDATION_ERROR"
        assert (await bob.ask(ListMemories(namespace=namespace))).memories == []
        for other in ("users:ann", "USERS:ann", "Team:USER", "project:Atlas"):
            await bob.ask(StoreMemory(content="x", namespace=other))


@pytest.mark.quick
async def test_letters_of_other_widths_are_no_letters_of_a_namespace(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path / "store", embedder="none") as runtime:
        line = json.dumps({"key": "k", "content": "x", "namespace": "\uff55ser:ann"})
        with pytest.raises(Refusal, match="namespace"):
            await Agent(runtime, BOB).ask(ImportMemories(source=line))


def test_an_old_root_is_reported_and_stays_what_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "store"

    async def use() -> None:
        await made_before(folder, "USER:ann")
        async with open_greenroom(folder, embedder="none") as runtime:
            ann, bob = Agent(runtime, ANN), Agent(runtime, BOB)
            await bob.ask(StoreMemory(content="everybody's", namespace="USER:ann", key="k"))
            await ann.ask(StoreMemory(content="hers", namespace="user:ann", key="k"))
            there = await bob.ask(ListMemories(namespace="USER:ann"))
            assert [memory.content for memory in there.memories] == ["everybody's"]
            hers = await ann.ask(ListMemories(namespace="user:ann"))
            assert [memory.content for memory in hers.memories] == ["hers"]
            assert (await runtime.query(VerifyMemories())).imitations == ["USER:ann"]

    trio.run(use)
    verified = run_on_store(tmp_path, "verify")
    assert "USER:ann looks like a user's own" in run_on_store(tmp_path, "stats").stdout
    with serving(tmp_path) as server:
        shown = run_on_store(tmp_path, "stats")
        assert "a server is running" in shown.stdout
        assert "USER:ann looks like a user's own" in shown.stdout
        figures = json.loads(run_on_store(tmp_path, "stats", "--json").stdout)
        assert figures["imitations"] == ["USER:ann"]
        assert server.call("memory_stats", namespace="USER:ann")["imitates"] == "user:"
        assert server.call("list_memories", namespace="USER:ann")["imitates"] == "user:"
        server.call("store_memory", content="plain", namespace="birds:herons")
        assert "imitates" not in server.call("memory_stats", namespace="birds:herons")
        assert "imitates" not in server.call("list_memories", namespace="birds:herons")
    assert verified.returncode == 0
    assert "USER:ann looks like a user's own" in verified.stdout
