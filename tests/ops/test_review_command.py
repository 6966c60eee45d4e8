"""`greenroom review`: what nobody has looked at is listed, accepted or forgotten, also beside a server."""

from __future__ import annotations

import json as jsons
from functools import partial
from typing import TYPE_CHECKING

import trio
from support.agents import FAST, json
from support.commands import run_on_store

from greenroom.actors import (
    Agent,
    ImportMemories,
    ListMemories,
    MemoryFilters,
    Principal,
    StoreMemory,
    open_greenroom,
)

if TYPE_CHECKING:
    from pathlib import Path

PROVENANCE = '{"provenance":{"client":"claude-code","rule":"decision"}}'


def test_a_person_looks_at_what_was_found_and_accepts_or_forgets_it(tmp_path: Path) -> None:
    async def beside_a_server() -> list[str]:
        async with open_greenroom(tmp_path / "store", options=FAST, embedder="none") as runtime:
            ann = Agent(runtime, Principal(agent_id="claude-code", user="ann"))
            guesses = [
                StoreMemory(
                    content=f"{key} is\x1b[2J\nso", key=key, unreviewed=True, metadata=json(PROVENANCE)
                )
                for key in ("one", "two", "three")
            ]
            ids = [(await ann.ask(each)).memory_id for each in guesses]
            large = {"key": "large", "content": "so " * 400_000, "unreviewed": True}
            await ann.ask(ImportMemories(source=jsons.dumps(large)))
            accept = partial(run_on_store, tmp_path, "review", "accept", ids[0], "--user", "ann")
            done = await trio.to_thread.run_sync(accept)
            assert (done.returncode, done.stdout) == (0, f"{ids[0]} is accepted\n"), done.stderr
            kept = (await ann.ask(ListMemories(filters=MemoryFilters(unreviewed=False)))).memories
            assert [each.key for each in kept] == ["one"]
            return ids

    one, two, three = trio.run(beside_a_server)
    listed = run_on_store(tmp_path, "review", "list", "--user", "ann").stdout
    assert "too large for a list" in listed.splitlines()[1]
    assert [line.split()[0] for line in listed.splitlines()[2::2]] == [three, two]
    assert "decision, from claude-code" in listed
    assert "\x1b" not in listed
    done = run_on_store(tmp_path, "review", "forget", one, two, "--user", "ann")
    assert (done.returncode, done.stdout) == (1, f"{two} is forgotten\n")
    assert f"no memory '{one}' is unreviewed" in done.stderr
    left = jsons.loads(run_on_store(tmp_path, "review", "list", "--json", "--user", "ann").stdout)
    assert [(memory["key"], "content" in memory) for memory in left] == [("large", False), ("three", True)]
    assert run_on_store(tmp_path, "review", "list", "--user", "ben").stdout == "nothing is unreviewed\n"
