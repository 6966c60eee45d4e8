"""Agents in the console: by their names, told apart where two share one, with the whole id one click away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.console import looker
from support.keyed import create_key, premises

from greenroom.actors import CreateSession, StoreMemory
from greenroom.transports.web.console.agent_names import AgentNames

if TYPE_CHECKING:
    from support.agents import Enter

ONE, TWO, LIKE_ONE = "0a87cfd733075854", "aa6ca1d74da309e4", "0a87cfd733075999"


def named(agent: str, *others: str) -> tuple[str, str]:
    texts = [f'{{"by":"{each}"}}'.encode() for each in (agent, *others)]
    return AgentNames(texts).of(agent)


@pytest.mark.parametrize(
    ("agent", "others", "expected"),
    [
        (f"planner.{ONE}", (), ("planner", "")),
        (f"planner.{ONE}", (f"planner.{ONE}", f"writer.{TWO}"), ("planner", "")),
        (f"planner.{ONE}", (f"planner.{TWO}",), ("planner", "0a87")),
        (f"planner.{ONE}", (f"planner.{LIKE_ONE}",), ("planner", "0a87cfd7330758")),
        (f"planner.{ONE}", ("planner",), ("planner", "0a87")),
        ("planner", (f"planner.{ONE}",), ("planner", "")),
        ("planner.0a87", (), ("planner.0a87", "")),
        (f".{ONE}", (), (f".{ONE}", "")),
    ],
)
def test_a_name_has_digits_where_another_agent_has_it_too(
    agent: str, others: tuple[str, ...], expected: tuple[str, str]
) -> None:
    assert named(agent, *others) == expected


def test_an_agent_that_no_reply_names_has_its_name() -> None:
    assert AgentNames().of(f"planner.{ONE}") == ("planner", "")


async def test_pages_have_names_and_an_agents_page_its_whole_id(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await at.agent(f"planner.{ONE}", user="owner").ask(CreateSession(session_id="s", purpose="the sale"))
        await at.agent(f"planner.{ONE}", user="owner").ask(StoreMemory(content="one", key="one"))
        me = await looker(here)
        listed = await me.look("/sessions")
        assert f"./people/planner.{ONE}" in listed.links
        assert ONE not in listed.text
        await at.agent(f"planner.{TWO}", user="owner").ask(CreateSession(session_id="t", purpose="another"))
        listed = await me.look("/sessions")
        assert "planner 0a87" in listed.text
        assert "planner aa6c" in listed.text
        assert ONE not in (await me.look("/memories")).text
        page = await me.look(f"/people/planner.{ONE}")
        assert f"planner.{ONE}" in page.text
        assert "the sale" in page.text
        assert "another" not in page.text
        assert f"../memories?author=planner.{ONE}&namespace=user%3Aowner" in page.links
        assert "What it wrote in user:owner" in page.text


async def test_an_agents_page_shows_others_users_to_administrators_alone(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        key = await create_key(at, "*:read", agent="hers", user="ann")
        await here.settled()
        await at.agent(f"bot.{ONE}", user="bob").ask(CreateSession(session_id="s", purpose="it"))
        page = await (await looker(here, key)).look(f"/people/bot.{ONE}")
        assert page.status == 200
        assert "User" not in page.text
        assert "User bob" in (await (await looker(here)).look(f"/people/bot.{ONE}")).text
