"""The console's pages without a browser: who sees them, what is on them, and that nothing on them runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jinja2 import Environment, nodes
from support.agents import AuditTrail, begin
from support.console import Looker, Shown, looker
from support.keyed import create_key, premises, revoke_key

from greenroom.actors import StoreMemory

if TYPE_CHECKING:
    from support.agents import Enter

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'


async def test_whoever_has_not_logged_in_sees_the_log_in_alone(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        stranger = Looker(await here.guest())
        for path in ("/", "/sessions", "/sessions/s", "/memories?namespace=user:owner"):
            page = await stranger.look(path)
            assert (page.status, page.headings) == (200, ["Log in"])
            page.check_inert()
            assert not page.named("nav")


async def test_the_log_in_leads_back_to_where_one_wanted_to_go_and_nowhere_else(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read")
        await here.settled()
        for wanted, leads in {
            "memories%3Fnamespace%3Duser:owner": "./memories?namespace=user:owner",
            "sessions%2Fs": "./sessions/s",
            "": "./",
            "%2F%2Fevil.example": "./",
            "https%3A%2F%2Fevil.example": "./",
            "memories%0d%0aset-cookie:x": "./",
            "nonsense": "./",
        }.items():
            guest = Looker(await here.guest())
            answer = await guest.form("/login", f"key={key.api_key}&next={wanted}")
            assert (answer.status, answer.headers["location"]) == (303, leads)
        kept = await (await looker(here, key)).again("/login?next=memories")
        assert (kept.status, kept.headers["location"]) == (303, "./"), "a bookmark"


async def test_a_page_shows_what_its_visitor_may_see(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("bot", user="ann").ask(StoreMemory(content="mine", key="of ann"))
        key = await create_key(at, "memory:read", agent="bot", user="bob")
        await here.settled()
        owner, bob = await looker(here), await looker(here, key)
        assert "of ann" not in (await bob.look("/memories")).text
        page = await bob.look("/sessions")
        assert (page.status, page.headings) == (403, ["Forbidden"])
        assert "sessions:read" in page.text
        assert "./sessions" not in page.links
        assert "./sessions" in (await owner.look("/")).links


@pytest.mark.promise("console.inert")
async def test_what_agents_write_stays_text(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await at.agent("bot", user="owner").ask(StoreMemory(content=HOSTILE, tags=[HOSTILE]))
        page = await (await looker(here)).look("/memories")
        page.check_inert()
        assert "<script>alert(1)</script>" in page.text
        assert "{{7*7}}" in page.text


@pytest.mark.slow
@pytest.mark.promise("api.seeing-as")
async def test_a_page_is_seen_as_an_agent_sees_it_and_so_are_those_that_it_leads_to(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("bot", user="ann").ask(StoreMemory(content="mine", key="of ann"))
        key = await create_key(at, "*:read", agent="spy")
        await here.settled()
        owner, spy = await looker(here), await looker(here, key)
        assert "of ann" not in (await owner.look("/memories")).text
        await owner.see_as("as=bot&as_user=ann")
        seen = await owner.look("/memories?as=bot&as_user=ann")
        seen.check_inert()
        assert "of ann" in seen.text
        assert "You see what bot may read, and change nothing. It is recorded. See it as console" in seen.text
        assert {"./?as=bot&as_user=ann", "./sessions?as=bot&as_user=ann", "?"} <= set(seen.links)
        assert (await spy.look("/memories?as=bot&as_user=ann")).status == 403
        assert (await owner.look("/memories?as=b%22%3E")).status == 400
        looks = [row for row in await at.runtime.query(AuditTrail()) if row.action == "see_as"]
        assert [(row.agent, row.details.get("agent"), row.outcome) for row in looks] == [
            ("console", "bot", "done"),
            (None, None, "denied"),
        ]


async def test_a_revoked_key_shows_the_log_in(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read")
        await here.settled()
        guest = await looker(here, key)
        assert (await guest.look("/memories")).headings == ["Memories"]
        await revoke_key(at, key)
        await here.settled()
        assert (await guest.look("/memories")).headings == ["Log in"]


async def test_static_files_are_kept_by_their_version(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        page = await (await looker(here)).look("/")
        source = next(each["src"] for each in page.named("script"))
        assert source is not None
        guest = Looker(await here.guest())
        await guest.guest.send("GET", source.removeprefix("."), {"accept-encoding": "gzip"})
        answer = await guest.guest.answer()
        assert (answer.status, answer.headers["content-encoding"]) == (200, "gzip")
        assert "immutable" in answer.headers["cache-control"]
        other = source.removeprefix(".").replace("/console.js", "x/console.js")
        for path in (other, "/static/x/../endpoint.py", "/static/", "/static/x/console.js"):
            await guest.guest.send("GET", path)
            assert (await guest.guest.answer()).status == 404, path


def test_a_broken_page_is_seen() -> None:
    with pytest.raises(AssertionError):
        Shown(type("A", (), {"body": b"<main><p>x</main>"})())


def test_templates_use_only_macros_that_there_are() -> None:
    # A page that is seldom seen, such as one for an empty namespace, would fail when somebody sees it.
    folder = Path(__file__).parent.parent.parent / "transports/greenroom/transports/web/console/templates"
    parsed = {each.name: Environment(autoescape=True).parse(each.read_text()) for each in folder.iterdir()}
    made = {name: {macro.name for macro in of.find_all(nodes.Macro)} for name, of in parsed.items()}
    for name, template in parsed.items():
        imported = {
            each.target: made[each.template.as_const()]
            for each in template.find_all(nodes.Import)
            if isinstance(each.template, nodes.Const)
        }
        used = [
            (each.node.name, each.attr)
            for each in template.find_all(nodes.Getattr)
            if isinstance(each.node, nodes.Name) and each.node.name in imported
        ]
        assert not [pair for pair in used if pair[1] not in imported[pair[0]]], name
