"""Exact search, filters and large values: what is shown is found, in slices, and counts say what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import wire

from greenroom.actors import Agent, ImportMemories, MemorySearch
from greenroom.actors.memories.reading import search_root
from greenroom.actors.memories.requests import requests
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from support.agents import Enter

TICK = 0.001
VALUES = {
    "null": r'{"a": null, "b": 2}',
    "list": r'[1, 2, [null, true], {"deep": -1.50e3}, "x y"]',
    "tight": r'{"a":null,"b":[1,2],"c":"one two"}',
    "escapes": r'{"said": "caf\u00e9 au lait", "then": "line one\nline two \"quoted\" end"}',
    "dates": r'{"on": "2026-03-04", "snake_case": "camelCase word", "n": 007.5}'.replace("007.5", "7.5"),
}


async def store(agent: Agent, content: str | None = None, **more: Any) -> str:
    return (await agent.ask(requests.StoreMemory(content=content, **more))).memory_id


async def exact(agent: Agent, text: str) -> set[str]:
    found = await agent.ask(MemorySearch(query=text, mode="exact", limit=100))
    return {memory.key for memory in found.memories}


@pytest.mark.promise("memory.exact")
@pytest.mark.slow
async def test_every_piece_of_a_value_as_it_is_shown_is_found(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for key, value in VALUES.items():
            await store(alice, value=msgspec.Raw(value.encode()), key=key)
            await store(alice, value, key=f"{key} as text")
        for key, value in VALUES.items():
            for start in range(0, len(value), 5):
                for end in range(start + 1, len(value) + 1, 6):
                    if value[start:end].strip():
                        assert {key, f"{key} as text"} <= await exact(alice, value[start:end]), value[
                            start:end
                        ]
        assert "escapes" in await exact(alice, "line one\nline two"), "also as it is meant"
        assert await exact(alice, '"a": null, "b": 3') == set()
        assert await exact(alice, "a null b") == set()


@pytest.mark.promise("memory.exact")
async def test_an_exact_search_says_when_its_total_is_a_minimum(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_root, "COUNTED", 20)
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number in range(30):
            await store(alice, f"the same words, number {number}", key=f"k{number}")

        async def totals(**more: Any) -> tuple[int, Any]:
            found = wire(await alice.ask(MemorySearch(query="same words", mode="exact", **more)))
            return found["total"], found.get("total_is_minimum")

        assert await totals(limit=5) == (20, True)
        assert await totals(limit=20) == (20, True)
        assert await totals(limit=25) == (25, True)
        assert await totals(limit=30) == (30, None)
        assert await totals(limit=31) == (30, None)
        found = await alice.ask(MemorySearch(query="same words", mode="semantic", limit=5))
        assert (found.total, "total_is_minimum" in wire(found)) == (30, False)


@pytest.mark.slow
@pytest.mark.promise("memory.as-given")
async def test_a_large_value_is_found_by_what_its_escapes_mean(enter: Enter) -> None:
    said = [
        "\u05e9\u05dc\u05d5\u05dd",
        "line\nfeed",
        "\U0001f600 smile",
        'the "quoted" word',
        "back\\slash",
        "zebra",
    ]
    value = {"said": said, "filler": ["etwas F\u00fcllung"] * 20_000}
    plain, escaped = msgspec.json.encode(value), _escaped(value)
    assert len(plain) > 262_144
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        await store(alice, value=msgspec.Raw(plain), key="plain")
        await store(alice, value=msgspec.Raw(escaped), key="escaped")
        for words in (said[0], "feed", "smile", "quoted", "slash", "zebra", "f\u00fcllung"):
            found = await alice.ask(MemorySearch(query=words, limit=10))
            assert {memory.key for memory in found.memories} == {"plain", "escaped"}, words
        for text in (said[0], "etwas F\u00fcllung", "line\nfeed"):
            assert "escaped" in await exact(alice, text)
        assert await exact(alice, r"line\nfeed") == {"plain", "escaped"}


def _escaped(value: Any) -> bytes:
    """Return JSON of ASCII alone."""
    import json  # noqa: PLC0415 - msgspec writes UTF-8

    return json.dumps(value).encode()


class TestSlices:
    """Counted in looks at a clock that ticks only when it is looked at."""

    @pytest.fixture
    def clock(self) -> VirtualClock:
        return VirtualClock(tick=TICK)

    @pytest.mark.promise("memory.slices")
    async def test_each_tag_of_a_filter_is_a_step(self, enter: Enter, clock: VirtualClock) -> None:
        tags = [f"tag {number}" for number in range(10_000)]
        async with enter(embedder="none") as at:
            alice = at.agent("a", user="alice")
            metadata = msgspec.Raw(msgspec.json.encode({"tags": tags}))
            await store(alice, "tagged", key="k", metadata=metadata)
            await alice.ask(MemorySearch(query="tagged"))
            for match in ("any", "all"):
                before = clock.perf()
                found = await alice.ask(MemorySearch(query="tagged", tags=tags, tag_match=match))
                assert [memory.key for memory in found.memories] == ["k"]
                assert clock.perf() - before > 10_000 * TICK
            assert at.runtime.statistics().dispatcher.longest_slice_ms <= 10

    @pytest.mark.promise("memory.slices")
    @pytest.mark.slow
    async def test_each_stretch_of_escapes_is_a_step(self, enter: Enter, clock: VirtualClock) -> None:
        value = [f"\u00e9{number}" for number in range(50_000)]
        line = msgspec.json.encode({"key": "k", "value": msgspec.Raw(_escaped(value))})
        async with enter(embedder="none") as at:
            alice = at.agent("a", user="alice")
            before = clock.perf()
            await alice.ask(ImportMemories(source=line.decode()))
            assert clock.perf() - before > 50_000 * TICK
            found = await alice.ask(MemorySearch(query="\u00e949999"))
            assert [memory.key for memory in found.memories] == ["k"]
