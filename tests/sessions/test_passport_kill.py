"""A restoring whose process is killed after each of its commits: nothing came in, or everything does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio
from harness import clean_environment, secrets_of
from support.agents import json, refused
from support.exchanges import export
from support.passports import begun, member, text_of

from greenroom.actors import (
    ExportSession,
    ListSessions,
    RestoreSession,
    SetMemory,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.sessions.passports.signing import Signers

if TYPE_CHECKING:
    from pathlib import Path

MEMORIES = 250  # more than one batch, and besides one in another namespace
MOST_COMMITS = 60

# Restores again and again, each time into another folder and in a process of its own, which kills itself
# after so many commits; the last one is let live.
KILLED_AFTER_EACH_COMMIT = """
import os, signal, sys
import trio
from greenroom.actors import Agent, PassportOptions, Principal, RestoreSession, open_greenroom
from greenroom.runtime import InlineCommitter

text, signer, home, most = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3], int(sys.argv[4])
WHO = Principal(agent_id="claude-code", user="user")

async def restore(folder, left):
    def commit(store, works):
        nonlocal left
        store.commit(works)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    options = {"embedder": "none", "secrets": folder + "-secrets", "committer": InlineCommitter(commit)}
    async with open_greenroom(folder, **options) as runtime:
        agent = Agent(runtime, WHO, passports=PassportOptions((signer,)))
        await agent.ask(RestoreSession(passport=text, idempotency_key="once"))
    os._exit(0)

for cut in range(1, most):
    child = os.fork()
    if not child:
        trio.run(restore, f"{home}/{cut}", cut)
    if os.waitpid(child, 0)[1] == 0:
        print(cut)
        break
"""


async def _exported(folder: Path, secrets: Path | None) -> tuple[str, str]:
    async with open_greenroom(folder, embedder="none", secrets=secrets) as runtime:
        claude = member(runtime)
        session = await begun(claude, *(f"message {number}" for number in range(40)))
        async with trio.open_nursery() as nursery:
            for number in range(MEMORIES):
                nursery.start_soon(claude.ask, StoreMemory(content=f"memory {number}", key=f"k{number}"))
            nursery.start_soon(claude.ask, SetMemory(key="mark", value=json("7"), session_id=session))
        exported = await claude.ask(ExportSession(one_time=True, include_memories=True))
        return await text_of(claude, exported), Signers(runtime.derive).name


async def _is_all_or_nothing(folder: Path, text: str, signer: str) -> int:
    """Return how many sessions there were before anybody restored again."""
    secrets = folder.with_name(f"{folder.name}-secrets")
    async with open_greenroom(folder, embedder="none", secrets=secrets) as runtime:
        claude = member(runtime, trusted=(signer,))
        found = (await claude.ask(ListSessions())).count
        lines = await export(runtime, claude.principal)
        assert (found, len(lines)) in {(0, 0), (1, MEMORIES + 1)}
        restoring = RestoreSession(passport=text, idempotency_key="once" if int(folder.name) % 2 else None)
        first = await claude.ask(restoring)
        assert (first.messages, first.memories) == (40, MEMORIES + 1)
        assert await claude.ask(restoring) == first
        assert (await claude.ask(ListSessions())).count == 1
        assert len(await export(runtime, claude.principal)) == MEMORIES + 1
        assert (await claude.ask(RestoreSession(passport=text))).session_id == first.session_id
        assert (await claude.ask(ListSessions())).count == 1
        for agent in ("cursor", "claude-code"):
            with refused("PASSPORT_REDEEMED"):
                other = member(runtime, agent, user="other", trusted=(signer,))
                await other.ask(RestoreSession(passport=text))
    return found


@pytest.mark.promise("passport.all-or-nothing", "passport.one-time")
def test_a_restoring_that_is_killed_left_nothing_or_becomes_whole_by_itself(tmp_path: Path) -> None:
    text, signer = trio.run(_exported, tmp_path / "origin", secrets_of(tmp_path))
    passport = tmp_path / "passport.json"
    passport.write_text(text)
    command = [sys.executable, "-c", KILLED_AFTER_EACH_COMMIT, passport, signer, tmp_path, MOST_COMMITS]
    done = subprocess.run(
        list(map(str, command)), env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    whole = int(done.stdout)
    found = [trio.run(_is_all_or_nothing, tmp_path / str(cut), text, signer) for cut in range(1, whole + 1)]
    assert found == sorted(found)
    # Several times before and after the commit that makes the session, in which the memories are decided.
    assert found.count(0) > 3
    assert found.count(1) > 3
