"""How the server is: every part with its cause, and the same as the command and `/healthz` say."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from greenroom.actors import Agent, GetStats, HealthCheck, Principal, open_savings
from greenroom.actors.app.administration.health import parts_of, serving_status, worst_of
from greenroom.actors.search.embedding.embedding_service import EmbeddingStatistics
from greenroom.transports.base.observability.meter import RequestMeter
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.ops.control.client import Stats
from greenroom.transports.ops.control.server import Served, perform

if TYPE_CHECKING:
    from support.agents import Enter

READY = EmbeddingStatistics(embedder="static", state="ready")


def troubled(statistics: Any, **parts: dict[str, Any]) -> Any:
    """Return statistics with some figures changed."""
    changed = {}
    for part, figures in parts.items():
        now = getattr(statistics, part)
        change = msgspec.structs.replace if isinstance(now, msgspec.Struct) else replace
        changed[part] = change(now, **figures)
    return msgspec.structs.replace(statistics, **changed)


@pytest.mark.promise("health.causes")
@pytest.mark.parametrize(
    ("part", "status", "cause", "figures"),
    [
        ("actors", "degraded", "session/secret", {"actors": {"set_aside": ["session/secret"]}}),
        ("messages", "degraded", "3 writes failed for lack of room", {"messages": {"not_committed": 3}}),
        ("messages", "degraded", "2 handlers raised", {"messages": {"failed": 2}}),
        ("space", "degraded", "max_size", {"store": {"used_bytes": 95, "map_bytes": 100}}),
        ("space", "degraded", "disk", {"store": {"disk_free": 1}}),
        ("relay", "degraded", "no process owns", {"relay": {"owner_pid": 0}}),
        ("relay", "degraded", "silent for 7 s", {"relay": {"silent_seconds": 7}}),
    ],
)
async def test_a_part_that_is_troubled_says_why(
    enter: Enter, part: str, status: str, cause: str, figures: dict[str, Any]
) -> None:
    async with enter() as at:
        statistics = troubled(at.runtime.statistics(), **figures)
    parts = parts_of(statistics, READY, is_sound=True, names=True)
    (found,) = [each for each in parts if each.part == part]
    assert found.status == status
    assert cause in found.cause
    assert worst_of(parts) == "degraded"
    for each in parts_of(statistics, READY, is_sound=True, names=False):
        assert "secret" not in each.cause
        assert not re.search("[0-9]{2}", each.cause)


@pytest.mark.promise("health.causes")
async def test_an_embedder_that_fails_and_a_store_that_failed_are_told(enter: Enter) -> None:
    async with enter() as at:
        statistics = at.runtime.statistics()
    failing = EmbeddingStatistics(embedder="http:x", state="failing", trouble="no route to 10.0.0.7")
    parts = {each.part: each for each in parts_of(statistics, failing, is_sound=False, names=True)}
    assert (parts["store"].status, parts["embedder"].status) == ("failed", "degraded")
    assert "10.0.0.7" in parts["embedder"].cause
    assert worst_of(list(parts.values())) == "failed"
    others = {each.part: each for each in parts_of(statistics, failing, is_sound=False, names=False)}
    assert "10.0.0.7" not in others["embedder"].cause
    assert serving_status(is_sound=False, is_stopping=True) == "failed"
    assert serving_status(is_sound=True, is_stopping=True) == "stopping"


@pytest.mark.promise("health.causes")
async def test_what_the_install_lacks_is_named_with_its_command(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enter() as at:
        agent = at.agent("a")
        parts = {each.part: each for each in (await agent.ask(HealthCheck())).parts}
        assert parts["packages"].status == "ok"
        monkeypatch.setitem(sys.modules, "re2", None)
        health = await agent.ask(HealthCheck())
        parts = {each.part: each for each in health.parts}
        assert (health.worst, parts["packages"].status) == ("ok", "off")
        assert "takes google-re2, not installed here: pip install google-re2" in parts["packages"].cause


@pytest.mark.promise("health.one-source")
async def test_an_administrator_is_told_what_the_command_says(enter: Enter) -> None:
    async with enter() as at, open_savings(at.runtime, time.time_ns) as ledger:
        stopping = False
        observed = ObservedServer(RequestMeter(()), at.runtime, savings=ledger, is_stopping=lambda: stopping)
        root = Agent(at.runtime, Principal(agent_id="root"), savings=ledger, server=observed)
        told = (await root.ask(GetStats())).server
        assert isinstance(told, dict)
        said = msgspec.json.decode(await perform(Served(observed), Stats()))
        assert set(told) == set(said)
        for part in ("running", "actors", "embedding", "requests", "imitations"):
            assert told[part] == said[part]
        healthy = await root.ask(HealthCheck())
        assert (healthy.status, healthy.worst) == ("ok", "ok")
        assert {each.part for each in healthy.parts} == {
            "store", "space", "actors", "messages", "relay", "embedder", "packages",
        }  # fmt: skip
        stopping = True
        assert (await root.ask(HealthCheck())).status == "stopping"
