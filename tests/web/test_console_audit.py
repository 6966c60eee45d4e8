"""The audit log in the console: filters in the URL, pages, whether it is whole, and who sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from support.agents import begin, refused, say
from support.console import looker
from support.keyed import create_key, premises
from trio.testing import lockstep_stream_pair

from greenroom.actors import AuditRecord, GetAuditState, StoreMemory
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.audit.query import ReadAuditLog

if TYPE_CHECKING:
    from support.agents import Enter
    from support.console import Looker, Shown
    from support.https import Answer

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'
MANY = 2_001
"""Records: two parts of a download, and one record."""


def rows(page: Shown) -> int:
    """Return how many records a page shows."""
    return sum("data-row" in each for each in page.named("tr"))


@pytest.mark.slow
async def test_filters_stand_in_the_url_and_narrow_what_is_shown(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", "hello")
        at.tick(86_400)
        await at.agent("bot", user=HOSTILE).ask(StoreMemory(content="x"))
        record_action(at.runtime, "authenticate", outcome="denied", address=HOSTILE)
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


@pytest.mark.slow
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


@pytest.mark.slow
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


# -- the download --------------------------------------------------------------------------------


def lines_of(answer: Answer) -> list[Any]:
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    assert answer.headers["content-disposition"] == 'attachment; filename="greenroom-audit.jsonl"'
    return [json.loads(line) for line in answer.body.splitlines()]


async def fetched(who: Looker, path: str) -> Answer:
    await who.guest.send("GET", path, {**who.headers, "x-confirmation": who.confirmation()})
    return await who.guest.answer()


@pytest.mark.promise("console.audit-export")
async def test_the_download_keeps_the_filters_and_ends_with_a_checkpoint(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        await say(alice, "s", *map(str, range(3)))
        await at.agent("bot", user=HOSTILE).ask(StoreMemory(content="x"))
        await here.settled()
        owner = await looker(here)
        page = await owner.look(f"/audit?{urlencode({'action': 'add_message', 'agent': 'alice'})}")
        (lead,) = [link for link in page.links if "audit/export" in link]
        *records, last = lines_of(await fetched(owner, f"/{lead.removeprefix('./')}"))
        assert [(each["action"], each["agent"]) for each in records] == [("add_message", "alice")] * 3
        assert set(records[0]) == set(AuditRecord.__struct_fields__)
        whole = lines_of(await fetched(owner, "/audit/export"))
        numbers = [each["number"] for each in whole[:-1]]
        assert numbers == list(range(1, whole[-1]["checkpoint"]["count"] + 1))
        assert last["checkpoint"]["count"] < whole[-1]["checkpoint"]["count"]
        assert {each["user"] for each in whole[:-1]} >= {HOSTILE}
        exported = [each for each in whole[:-1] if each["action"] == "export_audit"]
        assert [(each["agent"], each["details"]["filters"]) for each in exported] == [
            ("console", ["action", "agent"])
        ]
        for number in (-1, 1 << 63, 10**30):
            assert (await owner.post("export_audit_log", start=number)).status == 422
            assert (await owner.post("export_audit_log", until=number)).status == 422
        assert (await owner.confirmed("export_audit_log", start=(1 << 63) - 1)).json()["records"] == []
        refused_page = await owner.look("/audit/export?outcome=maybe")
        assert (refused_page.status, "outcome" in refused_page.text) == (422, True)


@pytest.mark.slow
@pytest.mark.promise("console.audit-export")
async def test_a_long_log_comes_in_parts_that_wait_for_the_reader_and_end_with_the_log_out(
    enter: Enter,
) -> None:
    async with enter() as at, premises(at) as here:
        for number in range(MANY):
            record_action(at.runtime, "authenticate", agent=str(number))
            if number % 200 == 0:
                await here.settled()
                await at.runtime.query(GetAuditState())
        await here.settled()
        owner = await looker(here)
        *records, _ = lines_of(await fetched(owner, "/audit/export?action=authenticate"))
        named = [each["details"].get("agent") for each in records]
        assert [each for each in named if each] == [str(each) for each in range(MANY)]

        async def exports() -> int:
            await here.settled()
            found = await at.runtime.query(ReadAuditLog(limit=100_000))
            return sum(each.action == "export_audit" for each in found.records)

        before = await exports()
        slow = await here.guest(lockstep_stream_pair)
        await slow.send("GET", "/audit/export", {**owner.headers, "x-confirmation": owner.confirmation()})
        assert (await slow.head())[0] == 200
        assert await exports() <= before + 2, "who does not read is not read for"
        assert (await owner.post("logout")).status == 204
        said = await slow.hung_up()
        assert b"checkpoint" not in said


@pytest.mark.promise("console.audit-export", "console.scopes")
async def test_a_download_that_takes_too_long_says_so_and_that_nothing_was_changed(enter: Enter) -> None:
    async with enter() as at, premises(at, request_timeout=0.0) as here:
        answer = await fetched(await looker(here), "/audit/export")
        assert answer.status == 504
        said = answer.body.decode()
        assert "The file was not read within 0 s; nothing was changed" in said


async def test_the_download_is_for_those_alone_who_may_read_the_log(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        for scopes, status in ((("*:read",), 403), (("admin",), 403), (("audit:read",), 200)):
            key = await create_key(at, *scopes)
            await here.settled()
            answer = await fetched(await looker(here, key), "/audit/export")
            assert (answer.status, b"alice" in answer.body) == (status, status == 200)
        nobody = await (await here.guest()).ask("GET", "/audit/export")
        assert b"alice" not in nobody.body
        seen_as = await fetched(await looker(here), "/audit/export?as=alice")
        assert (seen_as.status, b"add_message" in seen_as.body) == (403, False)
