"""The audit log in the console: filters in the URL, pages, whether it is whole, and who sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from support.agents import begin, refused, say
from support.console import looker
from support.keyed import create_key, premises

from greenroom.actors import GetAuditState, StoreMemory
from greenroom.actors.audit.actor import tell

if TYPE_CHECKING:
    from support.agents import Enter
    from support.console import Shown

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'


def rows(page: Shown) -> int:
    """Return how many records a page shows."""
    return sum("data-row" in each for each in page.named("tr"))


async def test_filters_stand_in_the_url_and_narrow_what_is_shown(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "hello")
        at.tick(86_400)
        await at.agent("bot", user=HOSTILE).ask(StoreMemory(content="x"))
        tell(at.runtime, "authenticate", outcome="denied", address=HOSTILE)
        await here.settled()
        owner = await looker(here)
        whole = await owner.look("/audit")
        whole.check_inert()
        assert "<script>alert(1)</script>" in whole.text
        for given, shown in (
            ({"action": "add_message"}, 1),
            ({"agent": "alice"}, 2),
            ({"agent": "alice", "action": "create_session", "outcome": "done"}, 1),
            ({"outcome": "denied"}, 1),
            ({"user": HOSTILE}, 1),
            ({"session_id": "s", "before": "2100-01-01"}, 2),
            ({"agent": "alice", "after": "2100-01-01T00:00:00Z"}, 0),
            ({"agent": " ", "action": "", "user": HOSTILE, "strange": "x"}, 1),
        ):
            page = await owner.look(f"/audit?{urlencode(given)}")
            page.check_inert()
            assert (page.status, rows(page)) == (200, shown), given
        narrowed = [link for link in whole.links if "action=add_message" in link]
        assert narrowed
        again = await owner.look(f"/{narrowed[0].removeprefix('./')}")
        assert rows(again) == 1


async def test_what_is_no_filter_is_refused_beside_the_form(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*:read")
        await here.settled()
        owner, other = await looker(here), await looker(here, key)
        for given, said in (
            ({"after": "yesterday-ish<b>"}, "after"),
            ({"outcome": "<i>maybe"}, "outcome"),
            ({"agent": "a" * 1_000}, "agent"),
            ({"session_id": "/" * 10}, "session_id"),
        ):
            page = await owner.look(f"/audit?{urlencode(given)}")
            page.check_inert()
            assert (page.status, rows(page)) == (400, 0)
            assert said in page.text
            closed = await other.look(f"/audit?{urlencode(given)}")
            assert (closed.status, closed.headings) == (403, ["Forbidden"])
        stale = await owner.look("/audit?cursor=bm9uc2Vuc2U")
        assert (stale.status, stale.headings) == (422, ["Unprocessable Entity"])


async def test_pages_follow_each_other_until_the_first_record(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", *map(str, range(120)))
        await here.settled()
        owner = await looker(here)
        path, seen = "/audit?agent=alice", []
        while path:
            page = await owner.look(path)
            seen.append(rows(page))
            following = [link for link in page.links if "cursor=" in link]
            assert all("agent=alice" in link for link in following)
            path = f"/{following[0].removeprefix('./')}" if following else ""
        assert seen == [50, 50, 21]


@pytest.mark.promise("console.scopes")
async def test_the_log_is_for_those_alone_who_may_read_it(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        for scopes, status in ((("*:read",), 403), (("admin",), 403), (("audit:read",), 200), (("*",), 200)):
            key = await create_key(at, *scopes)
            await here.settled()
            page = await (await looker(here, key)).look("/audit")
            assert page.status == status, scopes
            assert ("alice" in page.text) == (status == 200)
            assert ("./audit" in (await (await looker(here, key)).look("/audit")).links) == (status == 200)


async def test_the_whole_log_is_checked_when_somebody_asks(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "one", "two")
        await here.settled()
        owner = await looker(here)
        checked = (await owner.post("verify_audit")).json()
        assert checked["is_intact"]
        assert checked["records"] >= 3
        assert checked["summary"] == f"{checked['records']:,} records are intact"
        with refused("PERMISSION_DENIED", scope="audit:read"):
            await at.agent("bot", scopes=frozenset({"*:read", "admin"})).ask(GetAuditState())
