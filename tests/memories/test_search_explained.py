"""Searches explained: every mode beside the others, signals with their weights, and why one is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.agents import refused

from greenroom.actors import (
    ExplainSearch,
    ForgetMemory,
    MemorySearch,
    SearchExplained,
    StoreMemory,
)

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import Agent, ModeExplained, WhyNotFound

OTHERS = (
    "Invoices are numbered by year and quarter",
    "The mascot of the company is a grey heron",
    "Releases are cut on Thursday from the branch called stable",
    "Backups are kept for ninety days",
)


async def filled(agent: Agent) -> dict[str, str]:
    """Store memories; return their ids by their keys."""
    made = {}
    for number, text in enumerate(OTHERS):
        made[f"k{number}"] = (await agent.ask(StoreMemory(key=f"k{number}", content=text))).memory_id
    return made


def mode(said: SearchExplained, name: str) -> ModeExplained:
    return next(each for each in said.modes if each.mode == name)


def about(said: SearchExplained, name: str) -> WhyNotFound:
    return next(each for each in said.memory if each.mode == name)


async def test_every_mode_is_beside_the_others_as_its_tool_answers(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        await filled(agent)
        said = await agent.ask(ExplainSearch(query="releases stable"))
        assert [each.mode for each in said.modes] == ["semantic", "hybrid", "exact", "recall", "retrieve"]
        found = await agent.ask(MemorySearch(query="releases stable"))
        semantic = mode(said, "semantic")
        assert [each.memory_id for each in semantic.hits] == [each.memory_id for each in found.memories]
        assert [each.score for each in semantic.hits] == [each.score for each in found.memories]
        assert semantic.places[semantic.hits[0].memory_id] == 1
        assert mode(said, "exact").hits == []
        assert semantic.timings.keys() >= {"owners", "merge"}


async def test_parts_are_values_times_the_weights_of_the_table(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        await filled(agent)
        found = mode(await agent.ask(ExplainSearch(query="grey heron mascot")), "semantic").hits[0]
        assert found.weighed_as == ("note", "words")
        parts = {each.name: (each.part, each.weight) for each in found.signals}
        assert parts["words"][1] == 0.09
        assert parts["words"][0] > 0
        assert sum(each.share for each in found.signals) == pytest.approx(1, abs=0.001)
        assert [abs(each.part) for each in found.signals] == sorted(
            (abs(each.part) for each in found.signals), reverse=True
        )


async def test_it_says_how_words_and_times_were_understood(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        await filled(agent)
        said = await agent.ask(ExplainSearch(query="relaeses qqxyzzy yesterday"))
        terms = {term.word: term for term in said.terms}
        assert terms["relaeses"].meant == ["releas"]
        assert terms["relaeses"].memories == 1
        assert (terms["qqxyzzy"].meant, terms["qqxyzzy"].memories) == ([], 0)
        assert "yesterday" not in said.text
        assert len(said.times) == 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"tags": ["other"]}, "it has other tags"),
        ({"kind": "episodic"}, "it is of another kind"),
        ({"namespace": "project:p"}, "it is below another namespace"),
        ({"namespace": "user:ann:elsewhere"}, "it is below another namespace"),
        ({"author": "nobody"}, "it is by another author"),
        ({"before": "2000-01-01"}, "it was made at another time"),
    ],
)
async def test_why_a_memory_is_missing_that_does_not_fit(
    enter: Enter, given: dict[str, Any], reason: str
) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        ids = await filled(agent)
        said = await agent.ask(ExplainSearch(query="releases", memory_id=ids["k2"], **given))
        assert about(said, "semantic").place is None
        assert about(said, "semantic").reasons == [reason]


async def test_why_a_memory_is_missing_that_fits(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        ids = await filled(agent)
        said = await agent.ask(ExplainSearch(query="releases", memory_id=ids["k0"]))
        assert about(said, "semantic").reasons == ["it has nothing of the query"]
        assert about(said, "exact").reasons == ["it does not hold this text"]
        said = await agent.ask(ExplainSearch(query="releases", memory_id=ids["k2"]))
        assert (about(said, "semantic").place, about(said, "semantic").reasons) == (1, [])
        newer = StoreMemory(content="Releases are cut on Friday", supersedes=ids["k2"])
        await agent.ask(newer)
        said = await agent.ask(ExplainSearch(query="releases", memory_id=ids["k2"]))
        assert about(said, "semantic").reasons == ["another memory takes its place"]
        assert about(said, "semantic").hit is not None


async def test_nobody_learns_of_what_is_hidden_from_them(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ids = await filled(at.agent("bot", user="ann"))
        await filled(bob := at.agent("other", user="bob"))
        said = await bob.ask(ExplainSearch(query="releases stable", memory_id=ids["k2"]))
        gone = (await bob.ask(StoreMemory(content="soon forgotten"))).memory_id
        await bob.ask(ForgetMemory(memory_id=gone))
        unknown = await bob.ask(ExplainSearch(query="releases stable", memory_id=gone))
        assert [each.reasons for each in said.memory] == [each.reasons for each in unknown.memory]
        assert ids["k2"] not in {hit for each in said.modes for hit in each.places}
        with refused("PERMISSION_DENIED"):
            await at.agent("bot", user="ann", scopes=frozenset({"sessions:read"})).ask(
                ExplainSearch(query="releases")
            )


async def test_explaining_counts_as_no_use(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("bot", user="ann")
        ids = await filled(agent)
        for _ in range(3):
            await agent.ask(ExplainSearch(query="releases", memory_id=ids["k2"]))
        found = mode(await agent.ask(ExplainSearch(query="releases")), "hybrid").hits[0]
        await agent.ask(MemorySearch(query="releases"))
        again = mode(await agent.ask(ExplainSearch(query="releases")), "hybrid").hits[0]
        assert found.quality_parts == again.quality_parts
