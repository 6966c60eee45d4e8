"""People and keys in the console: who sees what, a key that is shown once, and browsers that are ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from support.agents import begin
from support.console import looker
from support.keyed import administrator, create_key, premises

from greenroom.actors import CreateApiKey, CreateSession, ListPeople, StoreMemory

if TYPE_CHECKING:
    from support.agents import Enter
    from support.console import Looker

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'
MANAGING = {"create_api_key", "rotate_api_key", "revoke_api_key", "end_browser", "erase_user"}
"""What an administrator's forms ask."""


async def test_an_administrator_sees_keys_people_and_browsers(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("bot", user="ann").ask(StoreMemory(content="x"))
        await at.agent("bot", user=HOSTILE).ask(CreateSession(purpose="p"))
        boss = await create_key(at, "admin", user="boss")
        hostile = CreateApiKey(name=HOSTILE, user=HOSTILE, projects=[HOSTILE], scopes=["*:read"])
        await administrator(at).ask(hostile)
        await here.settled()
        page = await (await looker(here, boss)).look("/people")
        page.check_inert()
        assert page.headings == [
            "People and keys",
            "API keys",
            "Browsers that are logged in",
            "Users and agents",
        ]
        for shown in ("ann", "boss", "<script>alert(1)</script>", "alice", boss.key.key_id):
            assert shown in page.text, shown
        forms = [each["data-request"] for each in page.named("form") if "data-request" in each]
        assert set(forms) == MANAGING


@pytest.mark.promise("console.scopes")
async def test_others_see_themselves_and_nobody_else(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        other = await create_key(at, "admin", user="boss", agent="chief")
        key = await create_key(at, "*:read", user="ann", agent="hers", projects=["atlas"])
        await here.settled()
        await looker(here, other)
        mine = await looker(here, key)
        page = await mine.look("/people")
        page.check_inert()
        for shown in ("hers", "ann", "atlas", key.key.key_id, "*:read"):
            assert shown in page.text, shown
        for hidden in ("boss", "chief", other.key.key_id, "alice"):
            assert hidden not in page.text, hidden
        assert not [each for each in page.named("form") if "data-request" in each]
        for request in ("list_people", "list_api_keys"):
            assert (await mine.post(request)).json()["code"] == "PERMISSION_DENIED"
        ended = await mine.post("end_browser", browser="ab" * 8)
        assert (ended.status, ended.json()["details"]["scope"]) == (403, "admin")
        reader = await (await looker(here, read_only=True)).look("/people")
        assert "You came without an API key." in reader.text


@pytest.mark.promise("console.key-once")
async def test_a_key_is_told_once_and_never_again(enter: Enter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner = await looker(here)
        made = (await owner.confirmed("create_api_key", name="ci", scopes=["*:read"])).json()
        rotated = (await owner.confirmed("rotate_api_key", key_id=made["key"]["key_id"])).json()
        await here.settled()
        secrets = [each["api_key"].rpartition("_")[2] for each in (made, rotated)]
        shown = [
            (await owner.look(path)).answer.body.decode() for path in ("/", "/people?status=all", "/audit")
        ]
        shown += [(await owner.post(request)).body.decode() for request in ("list_api_keys", "get_audit_log")]
        assert made["key"]["key_id"] in shown[1]
        for secret in secrets:
            assert len(secret) > 20
            assert not [text for text in (*shown, caplog.text) if secret in text]


async def test_revoking_a_key_asks_once_and_names_the_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await administrator(at).ask(CreateApiKey(name="ci of shop", scopes=["*:read"]))
        await here.settled()
        owner = await looker(here)
        page = await owner.look("/people")
        assert "Revoke…" in page.text
        assert f"( {key.key.key_id} ) stops working at once. This cannot be undone." in page.text
        assert key.key.expires_at is not None
        expiry = key.key.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert expiry in page.answer.body.decode()
        (done,) = {
            each["data-done"] for each in page.named("form") if each.get("data-request") == "revoke_api_key"
        }
        assert done == f"The key “ci of shop” ({key.key.key_id}) was revoked; its connections are closed."
        assert (await owner.post("revoke_api_key", key_id=key.key.key_id)).status == 200
        await here.settled()
        listed = await owner.look("/people?status=revoked")
        assert key.key.key_id in listed.text
        assert expiry not in listed.answer.body.decode()


@pytest.mark.slow
async def test_keys_are_listed_by_their_state_in_pages(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        made = []
        for _ in range(102):
            made.append(await create_key(at, "*:read"))
            at.tick()
        owner = await looker(here)
        await owner.post("revoke_api_key", key_id=made[0].key.key_id)
        await here.settled()
        first = await owner.look("/people")
        assert made[101].key.key_id in first.text
        assert made[1].key.key_id not in first.text
        (following,) = [link for link in first.links if "from=" in link]
        second = await owner.look(f"/{following.removeprefix('./')}")
        assert made[1].key.key_id in second.text
        gone = await owner.look("/people?status=revoked")
        assert made[0].key.key_id in gone.text
        assert made[1].key.key_id not in gone.text
        for strange in ("status=%3Cb%3E", "from=-1", "from=9e9", "from=%D9%A3"):
            assert (await owner.look(f"/people?{strange}")).status == 200


async def test_a_browser_that_an_administrator_ends_is_logged_out(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read", user="ann", agent="hers")
        await here.settled()
        owner, hers = await looker(here), await looker(here, key)
        page = await owner.look("/people")
        page.check_inert()
        assert "Browsers that are logged in" in page.headings
        (browser,) = await browsers_of(owner, "hers")
        assert browser in page.answer.body.decode()
        another = await looker(here)  # of the same agent and user
        texts = [(await each.look("/people")).text for each in (owner, another)]
        assert [text.count("this browser") for text in texts] == [1, 1]
        before = [text.partition("this browser")[0].count("greenroom console") for text in texts]
        assert before[0] < before[1]  # the one that logged in first is first
        assert (await owner.post("end_browser", browser=browser)).status == 200
        assert (await hers.look("/")).headings == ["Log in"]
        again = await owner.post("end_browser", browser=browser)
        assert again.json()["code"] == "BROWSER_NOT_FOUND"
        assert "end_browser" in (await owner.look("/audit")).text


async def browsers_of(owner: Looker, agent: str) -> list[str]:
    """Return what names the browsers of an agent."""
    said = (await owner.post("list_people")).json()["browsers"]
    return [client["browser"] for client in said if client["agent"] == agent]


async def test_agents_are_told_with_their_users_those_seen_last_first(enter: Enter) -> None:
    async with enter() as at:
        for agent, user in (("one", "ann"), ("two", "bob"), ("three", "ann"), ("four", None)):
            await at.agent(agent, user=user).ask(CreateSession(purpose="p"))
            at.tick()
        await create_key(at, "*:read", user="cat", agent="five")
        said = await administrator(at).ask(ListPeople())
        seen = {each.user: [agent.agent for agent in each.agents] for each in said.people}
        assert list(seen)[-1] == "cat"
        assert (seen["ann"], seen["bob"], seen["cat"]) == (["three", "one"], ["two"], ["five"])
        assert "four" in seen[None]
        ann = next(each for each in said.people if each.user == "ann")
        assert (ann.sessions, ann.keys, ann.has_memories) == (2, 0, False)
        assert said.is_whole


async def test_a_user_is_counted_before_being_erased(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("bot", user=HOSTILE).ask(StoreMemory(content="x"))
        owner = await looker(here)
        counted = (await owner.post("erase_user", user=HOSTILE)).json()
        assert (counted["erased"], counted["counts"]["memories"]) == (False, 1)
        erased = (await owner.post("erase_user", user=HOSTILE, confirm=True)).json()
        assert erased["erased"]
        page = await owner.look("/people")
        page.check_inert()
        assert "{{7*7}} erased" in page.text
