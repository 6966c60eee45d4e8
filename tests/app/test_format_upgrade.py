"""A store of the format before this one, as its users meet it: all is there, and they are told once."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.agents import FAST
from support.commands import run_on_store, sentence, serving
from support.formats import NEW, OLD, WAYS, format_in, names_in

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMessages,
    HealthCheck,
    MemorySearch,
    Principal,
    StoreMemory,
    VerifyMemories,
    open_greenroom,
)
from greenroom.runtime import Encryption, SharedRuntime, backup, downgrade, restore
from greenroom.transports.base import exit_codes

ANN = Principal(agent_id="a", user="ann")
TEXT = "Ann keeps her maps in the blue box."

pytestmark = pytest.mark.promise("store.versions", "store.upgrade-told")


@asynccontextmanager
async def opened(home: Path, encryption: Encryption | None = None) -> AsyncIterator[SharedRuntime]:
    options: dict[str, Any] = {"embedder": "none", "secrets": home / "secrets", "options": FAST}
    async with open_greenroom(home / "store", encryption=encryption, **options) as runtime:
        yield runtime


async def make_older(home: Path, encryption: Encryption | None = None) -> None:
    async with opened(home, encryption) as runtime:
        agent = Agent(runtime, ANN)
        await agent.ask(StoreMemory(key="maps", content=TEXT))
        await agent.ask(CreateSession(session_id="work", purpose="maps"))
        await agent.ask(AddMessage(session_id="work", content="where are they?"))
    downgrade(home / "store", encryption=encryption)
    assert format_in(home / "store") == OLD


async def check(runtime: SharedRuntime) -> None:
    agent = Agent(runtime, ANN)
    assert [each.key for each in (await agent.ask(MemorySearch(query="blue box"))).memories] == ["maps"]
    [message] = (await agent.ask(GetMessages(session_id="work"))).messages
    assert message.content == "where are they?"
    assert (await runtime.query(VerifyMemories())).problems == []


async def told(runtime: SharedRuntime) -> list[str]:
    health = await Agent(runtime, ANN).ask(HealthCheck())
    return [each.cause for each in health.parts if each.part == "format"]


@pytest.mark.parametrize("encryption", WAYS.values(), ids=WAYS)
async def test_an_older_store_has_everything_and_the_first_health_check_tells_of_it(
    tmp_path: Path, encryption: Encryption | None
) -> None:
    await make_older(tmp_path, encryption)
    backup(tmp_path / "store", tmp_path / "before", encryption=encryption)
    async with opened(tmp_path, encryption) as runtime:
        await check(runtime)  # nobody asks how the server is
    async with opened(tmp_path, encryption) as runtime:
        [said] = await told(runtime)
        assert said.startswith(f"the store had format {OLD} and has {NEW} now, which earlier programs refuse")
        assert "`greenroom downgrade`" in said
        assert await told(runtime) == []
    async with opened(tmp_path, encryption) as runtime:
        assert await told(runtime) == []
        await check(runtime)
    restore(tmp_path / "before", tmp_path / "store", encryption=encryption, secrets=tmp_path / "secrets")
    assert format_in(tmp_path / "store") == OLD
    async with opened(tmp_path, encryption) as runtime:
        await check(runtime)
        assert len(await told(runtime)) == 1


async def test_of_several_processes_one_tells_of_it(tmp_path: Path) -> None:
    await make_older(tmp_path)
    async with opened(tmp_path) as owner, opened(tmp_path) as guest:
        assert (owner.role, guest.role) == ("owner", "attached")
        assert len(await told(guest)) == 1
        assert await told(owner) == []
        assert await told(guest) == []


async def test_a_new_store_has_nothing_to_tell(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        assert await told(runtime) == []


def run_here(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_on_store(home, *arguments, "--secrets", str(home / "secrets"))


@pytest.mark.slow
@pytest.mark.promise("store.downgrade")
async def test_the_command_goes_back_and_the_doctor_says_what_was_and_what_comes(tmp_path: Path) -> None:
    await make_older(tmp_path)
    comes = f"the store has format {OLD}, and the next start makes it {NEW}, which earlier programs refuse"
    was = f"the store had format {OLD} until "
    found = run_here(tmp_path, "doctor").stdout
    assert (comes in found, was in found) == (True, False)
    with serving(tmp_path, "--secrets", str(tmp_path / "secrets")) as server:
        assert server.call("set_memory", key="new", value=1)["success"] is True
        found = run_here(tmp_path, "doctor").stdout
        assert (comes in found, was in found) == (False, True)
        assert "`greenroom downgrade`" in found
        refused = run_here(tmp_path, "downgrade")
        assert refused.returncode == exit_codes.OWNED
        assert str(server.process.pid) in sentence(refused)
        server.end()
    assert format_in(tmp_path / "store") == NEW
    done = run_here(tmp_path, "downgrade")
    assert done.returncode == 0, done.stderr
    assert f"has store format {OLD}; start the earlier program now" in done.stdout
    before = names_in(tmp_path / "store")
    assert "already" in run_here(tmp_path, "downgrade").stdout
    assert names_in(tmp_path / "store") == before
    found = run_here(tmp_path, "doctor").stdout
    assert (comes in found, was in found) == (True, False)
    log = run_here(tmp_path, "audit", "tail").stdout
    assert log.count("downgrade_store") == 1


@pytest.mark.slow
@pytest.mark.promise("store.downgrade")
async def test_a_downgrade_without_the_secret_says_that_it_is_not_recorded(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    done = run_on_store(tmp_path, "downgrade", "--secrets", str(tmp_path / "elsewhere"))
    assert done.returncode == 0
    assert "this is not in the audit log" in done.stderr
    assert format_in(tmp_path / "store") == OLD
