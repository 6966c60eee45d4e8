"""`greenroom verify` and the indexes of memories: the same, broken, and made anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.commands import run_on_store, serving

from greenroom.actors import (
    Agent,
    MemoryActor,
    MemorySearch,
    Principal,
    StoreMemory,
    VerifyMemories,
    open_greenroom,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.runtime import Context, Encryption, Index, Message, handles, open_runtime

if TYPE_CHECKING:
    from pathlib import Path

ANN = Principal(agent_id="ann", user="ann")
ROOT = "user:ann"


class Sabotage(Message[int], frozen=True):
    """Delete every other record of the index."""


class Saboteur(MemoryActor):
    """The memory actor, and an enemy within."""

    @handles(Sabotage)
    def sabotage(self, _: Sabotage, context: Context) -> int:
        found = [key for key, _ in context.scan(Any, prefix=b"ir")]
        for key in found[::2]:
            context.delete(key)
        return len(found[::2])


async def fill(folder: Path, encryption: Encryption | None = None) -> None:
    async with open_greenroom(folder, embedder="none", encryption=encryption) as runtime:
        agent = Agent(runtime, ANN)
        for number in range(40):
            await agent.ask(
                StoreMemory(content=f"the heron number {number} stands in the reeds", key=f"h{number}")
            )


async def sabotage(folder: Path) -> int:
    indexes = [Index(name) for name in ("namespaces", "embedding", "spaces", "audit")]
    async with open_runtime(folder, actors=[Saboteur], indexes=indexes) as runtime:
        return await runtime.ask(memory_address(ROOT), Sabotage())


async def found(folder: Path) -> set[str]:
    async with open_greenroom(folder, embedder="none") as runtime:
        answer = await Agent(runtime, ANN).ask(MemorySearch(query="herons in reeds", limit=100))
        return {memory.key for memory in answer.memories}


@pytest.mark.quick
@pytest.mark.promise("memory.verify")
@pytest.mark.parametrize(
    "encryption", [None, Encryption(lambda: b"\x07" * 32, required=True)], ids=["plain", "encrypted"]
)
async def test_an_index_is_what_the_memories_say(tmp_path: Path, encryption: Encryption | None) -> None:
    folder = tmp_path / "store"
    await fill(folder, encryption)
    async with open_greenroom(folder, embedder="none", encryption=encryption) as runtime:
        verified = await runtime.query(VerifyMemories())
    assert (verified.memories, verified.problems, verified.rebuilt) == (40, [], [])


@pytest.mark.promise("memory.verify")
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_broken_index_is_found_and_made_anew(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "store"
    trio.run(fill, folder)
    assert run_on_store(tmp_path, "verify").returncode == 0
    assert trio.run(sabotage, folder) == 20
    if state == "running":
        with serving(tmp_path):
            _verify_and_mend(tmp_path)
    else:
        _verify_and_mend(tmp_path)
    assert trio.run(found, folder) == {f"h{number}" for number in range(40)}


def _verify_and_mend(home: Path) -> None:
    broken = run_on_store(home, "verify")
    assert broken.returncode == 65
    assert f"in {ROOT}: memory " in broken.stdout
    assert "--rebuild" in broken.stdout
    mended = json.loads(run_on_store(home, "verify", "--rebuild", "--json").stdout)
    assert mended["index"]["rebuilt"] == [ROOT]
    assert mended["index"]["memories"] == 40
    assert run_on_store(home, "verify").returncode == 0
