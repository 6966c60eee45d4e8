"""Ten small worlds for hooks, written by somebody who had not read the code: `worlds/world-NN.json`.

A world is a person's memories in one project: when each was written and by whom, how often it was used,
whether the person confirmed it, what it replaced, which files it is about. Its prompts are answered by some
of them (in the same words, or in others) or by none; and some memories are needed as soon as a session
starts. The first five are for tuning. Nothing is tuned on the others.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import msgspec

from greenroom.actors import (
    Agent,
    HookEvent,
    Principal,
    RateMemory,
    StoreMemory,
    TakeHookEvent,
    Turn,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests.requests import NoteUses
from greenroom.runtime import RuntimeClient

FOLDER: Final = Path(__file__).parent / "worlds"
TUNED: Final = 5
"""This many worlds, the first ones, are for tuning."""
PROJECT: Final = "bench-00000000"
PRESENT: Final = datetime(2026, 11, 18, 15, tzinfo=UTC)
AGENT: Final = Principal(agent_id="coder", user="ann")
PERSON: Final = Principal(agent_id="console", user="ann")
ROOT: Final = "user:ann"


class Known(msgspec.Struct, frozen=True):
    """A memory of a world."""

    id: str
    content: str
    tags: list[str]
    scope: Literal["project", "user"]
    written: datetime
    used: int
    confirmed: bool
    by: Literal["person", "agent"]
    type: str = ""
    supersedes: str = ""
    files: list[str] = []


class Asked(msgspec.Struct, frozen=True):
    """A prompt, and the memories that answer it."""

    text: str
    kind: Literal["same_words", "other_words", "unrelated", "continue"]
    answer: list[str] = []


class World(msgspec.Struct, frozen=True):
    """A world, as its file has it."""

    name: str
    language: str
    memories: list[Known]
    files_in_hand: list[str]
    needed_at_start: list[str]
    prompts: list[Asked]

    @property
    def outdated(self) -> dict[str, str]:
        """The memories that were replaced, each with what replaced it."""
        return {each.supersedes: each.id for each in self.memories if each.supersedes}


class Moment:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = PRESENT - timedelta(days=3_650)

    def now(self) -> int:
        """Return microseconds since 1970 UTC."""
        return round(self.at.timestamp() * 1e6)

    def perf(self) -> float:
        """Return the same moment in seconds."""
        return self.at.timestamp()


def load() -> list[World]:
    """Return the worlds in their order."""
    paths = sorted(FOLDER.glob("world-*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=World) for path in paths]


async def fill(runtime: RuntimeClient, world: World, clock: Moment, *, linked: bool) -> dict[str, str]:
    """Store a world's memories and the session before; return the world's id of each memory.

    What replaces a memory names it only if ``linked``.
    """
    ids: dict[str, str] = {}
    for each in sorted(world.memories, key=lambda known: known.written):
        clock.at = each.written
        writer = Agent(runtime, PERSON if each.by == "person" else AGENT)
        store = StoreMemory(
            content=each.content,
            namespace=f"{ROOT}:{PROJECT}" if each.scope == "project" else ROOT,
            tags=each.tags,
            kind="procedural" if each.type == "procedural" else "semantic",
            metadata=msgspec.Raw(msgspec.json.encode({"files": each.files})),
            supersedes=ids.get(each.supersedes) if linked else None,
        )
        ids[each.id] = memory_id = (await writer.ask(store)).memory_id
        for _ in range(each.used):
            clock.at += timedelta(hours=1)
            uses = NoteUses(memory_ids=[memory_id])
            await runtime.ask(memory_address(ROOT), uses, principal=AGENT)
        if each.confirmed:
            await Agent(runtime, PERSON).ask(RateMemory(memory_id=memory_id, rating=1.0))
    clock.at = PRESENT - timedelta(hours=20)
    turns = [Turn(role="user", text="Please go on with these files")]
    turns += [Turn(role="tool", tool="Edit", path=f"/bench/{path}") for path in world.files_in_hand]
    told = event("session-end", "before", clock, turns=turns, reason="logout")
    await runtime.query(TakeHookEvent(event=told), principal=AGENT)
    clock.at = PRESENT
    return {memory_id: known for known, memory_id in ids.items()}


def event(name: str, session: str, clock: Moment, **members: object) -> HookEvent:
    """Return what a client's hook tells or asks."""
    given = {
        "id": f"{abs(hash((name, session, clock.at))):032x}",
        "name": name,
        "client": "claude-code",
        "session": session,
        "project": PROJECT,
        "folder": "/bench",
        "at": clock.at,
    }
    return msgspec.convert({**given, **members}, HookEvent)
