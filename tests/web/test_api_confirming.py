"""What a browser confirms: making keys, seeing as another agent, and exports."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail, begin
from support.api import ROOT, Browser, browser, posted
from support.keyed import bearer, create_key, premises, revoke_key

from greenroom.actors import ListApiKeys, StoreMemory
from greenroom.transports.auth import authenticator
from greenroom.transports.web.rest import terminal_codes

if TYPE_CHECKING:
    from support.agents import Enter, House
    from support.https import Answer

pytestmark = pytest.mark.promise("api.confirmed")

KEY: dict[str, Any] = {"name": "n", "scopes": ["*"]}


async def asks(owner: Browser, key_id: str) -> dict[str, Any]:
    """Return what asks for a confirmation, each as a request with more headers."""

    def post(path: str, **arguments: Any) -> Any:
        async def ask(confirmation: str | None) -> Answer:
            token = {"x-csrf-token": owner.token, "x-confirmation": confirmation}
            return await posted(owner.guest, path, arguments, {**owner.headers, **token})

        return ask

    def get(path: str, **headers: str) -> Any:
        async def ask(confirmation: str | None) -> Answer:
            await owner.guest.send("GET", path, {**owner.headers, "x-confirmation": confirmation, **headers})
            return await owner.guest.answer()

        return ask

    return {
        "create_api_key": post("create_api_key", **KEY),
        "rotate_api_key": post("rotate_api_key", key_id=key_id),
        "export_memories": post("export_memories"),
        "export_session": post("export_session", session_id="s"),
        "export_audit_log": post("export_audit_log"),
        "see_as": get(f"{ROOT}/session?as=alice"),
        "see_as by a header": get(f"{ROOT}/session", **{"greenroom-as": "bob"}),
        "see_as of a page": get("/sessions?as=carol"),
        "see_as of changes": get(f"{ROOT}/events?topic=session://s&as=dora"),
        "audit/export": get("/audit/export"),
        "audit/export with filters": get("/audit/export?action=confirm"),
    }


def code_of(answer: Answer) -> str | None:
    """Return why a request was refused."""
    if not answer.body.startswith(b"{"):
        return "CONFIRMATION_NEEDED" if b'name="confirmation"' in answer.body else None
    code: str | None = answer.json().get("code")
    return code


@pytest.mark.slow
async def test_what_lets_others_in_or_takes_something_along_asks_once_more(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=1_000_000, rate_burst=100_000) as here:
        await begin(at)
        kept = await create_key(at, "*:read")
        key = await create_key(at, "*")
        await here.settled()
        for way in (None, key):
            owner = await browser(here, way)
            for name, ask in (await asks(owner, kept.key.key_id)).items():
                for nothing in (None, "", "wrong"):
                    answer = await ask(nothing)
                    assert (answer.status, code_of(answer)) == (403, "CONFIRMATION_NEEDED"), name
            denial = await owner.post("create_api_key", **KEY)
            by = "code" if way is None else "key"
            assert denial.json()["details"] == {"action": "create_api_key", "by": by, "is_wrong": False}
            for name, ask in (await asks(owner, kept.key.key_id)).items():
                if name != "see_as of changes":
                    answer = await ask(owner.confirmation())
                    assert answer.status == 200, (name, answer)
            kept = await create_key(at, "*:read")


async def keys_of(at: House) -> int:
    return len((await at.agent("root", scopes=frozenset({"admin"})).ask(ListApiKeys())).keys)


async def make_key(owner: Browser, confirmation: str) -> int:
    """Have a key made; return the status."""
    headers = {**owner.headers, "x-csrf-token": owner.token, "x-confirmation": confirmation}
    return (await posted(owner.guest, "create_api_key", KEY, headers)).status


@pytest.mark.slow
async def test_a_code_confirms_once_within_ten_minutes_and_until_another_one_is_printed(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner, other = await browser(here), await browser(here)
        code = owner.confirmation()
        assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}", code)
        assert await make_key(other, code) == 403, "a code of another browser's terminal"
        written = code.replace("-", " ").lower().replace("0", "o").replace("1", "l")
        assert [await make_key(owner, each) for each in (written, code)] == [200, 403]
        old, new = owner.confirmation(), owner.confirmation()
        assert [await make_key(owner, each) for each in (old, new, new)] == [403, 200, 403]
        code = owner.confirmation()
        await trio.sleep(terminal_codes.CODE_SECONDS)
        assert await make_key(owner, code) == 403
        code = owner.confirmation()
        await trio.sleep(terminal_codes.CODE_SECONDS - 1)
        assert await make_key(owner, code) == 200
        assert await keys_of(at) == 3


@pytest.mark.slow
async def test_a_code_is_gone_after_five_wrong_tries_and_no_sooner(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = await browser(here)
        for wrong, status in ((4, 200), (5, 403), (6, 403)):
            code = owner.confirmation()
            tried = [await make_key(owner, f"WRNG-{number:04}") for number in range(wrong)]
            assert tried == [403] * wrong
            assert await make_key(owner, code) == status, wrong
        assert await make_key(owner, owner.confirmation()) == 200
        assert await keys_of(at) == 2


async def test_wrong_tries_of_one_browser_take_no_code_of_another_away(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner, thief = await browser(here), await browser(here)
        code = owner.confirmation()
        thief.confirmation()
        for _ in range(6):
            assert await make_key(thief, code) == 403
        assert await make_key(owner, code) == 200


@pytest.mark.parametrize("path", ["create_api_key", "export_audit_log"])
async def test_of_many_requests_with_the_one_code_one_is_done(enter: Enter, path: str) -> None:
    async with enter() as at, premises(at) as here:
        owner = await browser(here)
        code, statuses = owner.confirmation(), []

        async def race() -> None:
            guest = await here.guest()
            headers = {**owner.headers, "x-csrf-token": owner.token, "x-confirmation": code}
            body = KEY if path == "create_api_key" else {}
            statuses.append((await posted(guest, path, body, headers)).status)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(race)
        assert sorted(statuses) == [200, 403, 403, 403]
        assert await keys_of(at) == (path == "create_api_key")


async def test_what_was_refused_has_used_no_code_up(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = await browser(here)
        code = owner.confirmation()
        headers = {**owner.headers, "x-csrf-token": owner.token, "x-confirmation": code}
        for path, body in (
            ("create_api_key", {"name": "n", "scopes": ["nonsense"]}),
            ("create_api_key", {"name": 1}),
            ("export_session", {"session_id": "none"}),
        ):
            answer = await posted(owner.guest, path, body, headers)
            assert answer.json()["code"] in ("VALIDATION_ERROR", "SESSION_NOT_FOUND")
        assert await make_key(owner, code) == 200
        assert await make_key(owner, code) == 403


async def test_who_came_by_a_key_gives_that_key_and_no_other(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key, other = await create_key(at, "*"), await create_key(at, "*")
        await here.settled()
        ann, owner = await browser(here, key), await browser(here)
        for wrong in (other.api_key, key.api_key[:-1] + "-", "gr_x", "a b", owner.confirmation()):
            answer = await ann.get("session?as=bob", x_confirmation=wrong)
            assert (answer.status, answer.json()["details"]["is_wrong"]) == (403, True), wrong
        assert await make_key(owner, key.api_key) == 403, "who came by a link shows a code"
        assert await make_key(ann, other.api_key) == 403
        assert await make_key(ann, key.api_key) == 200
        await revoke_key(at, other)
        await here.settled()
        assert await make_key(ann, key.api_key) == 200


async def test_a_right_key_confirms_however_many_wrong_ones_came_before(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=1, rate_burst=6) as here:
        key = await create_key(at, "*")
        await here.settled()
        ann, thief = await browser(here, key), await here.guest()
        wrong = {"authorization": f"Bearer {key.api_key[:-1]}-"}
        tried = [(await thief.ask("GET", f"{ROOT}/session", **wrong)).status for _ in range(6)]
        assert tried == [401] * 6
        assert [await make_key(ann, each) for each in ("gr_wrong", key.api_key)] == [429, 200]


def as_written(page: str) -> str:
    """Return a refusal as it is written, whether it came as JSON or as a page."""
    return page.replace("&#39;", "'").replace("<code>", "`").replace("</code>", "`")


async def test_without_a_terminal_it_is_refused_with_the_command_that_does_it(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        kept = await create_key(at, "*:read")
        await here.settled()
        owner = Browser(await here.guest())
        await owner.log_in(link=here.browsers.make_link())
        commands = {
            "create_api_key": "greenroom keys create",
            "rotate_api_key": "greenroom keys rotate",
            "export_memories": "greenroom export",
            "export_session": "greenroom passport export",
            "export_audit_log": "greenroom audit export",
            "audit/export": "greenroom audit export",
            "see_as": "greenroom console",
        }
        for name, ask in (await asks(owner, kept.key.key_id)).items():
            answer = await ask("ABCD-EFGH")
            assert answer.status == 403
            if name in commands:
                assert f"use `{commands[name]}`" in as_written(answer.body.decode()), name
        denial = (await owner.post("create_api_key", **KEY)).json()
        assert denial["details"]["by"] is None


async def test_programs_with_a_key_are_not_asked(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        guest, owner = await here.guest(), await browser(here)
        for path, body in (
            ("create_api_key", KEY),
            ("export_memories", {}),
            ("export_session", {"session_id": "s"}),
            ("export_audit_log", {}),
        ):
            assert (await posted(guest, path, body, bearer(key))).status == 200, path
        assert (await guest.ask("GET", f"{ROOT}/session?as=alice", **bearer(key))).status == 200
        both = {**owner.headers, **bearer(key)}
        assert (await posted(guest, "create_api_key", KEY, both)).status == 200


async def test_who_may_not_do_it_is_told_that_and_asked_for_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        reader = await browser(here, read_only=True)
        code = reader.confirmation()
        refused: dict[str, dict[str, Any]] = {
            "create_api_key": KEY,
            "rotate_api_key": {"key_id": "a" * 12},
            "export_audit_log": {},
        }
        for path, body in refused.items():
            assert (await reader.post(path, **body)).json()["code"] == "PERMISSION_DENIED"
        assert "admin" in (await reader.get("session?as=alice")).json()["detail"]
        headers = {**reader.headers, "x-csrf-token": reader.token, "x-confirmation": code}
        assert (await posted(reader.guest, "export_memories", {}, headers)).status == 200


async def test_exported_memories_are_read_by_that_browser_and_whatever_else_asks_for_a_code(
    enter: Enter,
) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await at.agent("console", user="owner").ask(StoreMemory(content="x"))
        owner, other = await browser(here), await browser(here)
        memories = (await owner.confirmed("export_memories")).json()["uri"]
        passport = (await owner.confirmed("export_session", session_id="s")).json()["uri"]
        for uri, status in ((memories, 200), (passport, 403)):
            assert (await owner.get(f"resources?uri={uri}")).status == status
            read = await owner.get(f"resources?uri={uri}", x_confirmation=owner.confirmation())
            assert read.status == 200
            denied = await other.get(f"resources?uri={uri}")
            assert (denied.status, denied.json()["code"]) == (403, "CONFIRMATION_NEEDED")


@pytest.mark.slow
async def test_no_request_gives_a_browser_a_link_to_a_passport(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner = await browser(here)
        for path, body in (
            ("start_session", {"purpose": "p"}),
            ("start_session", {"restore_from": "s"}),
        ):
            said = (await owner.post(path, **body)).json()
            assert "memory_passport" in said, said
            assert said["memory_passport"]["export_url"] is None
            assert "/passport/" not in json.dumps(said)


@pytest.mark.slow
async def test_seeing_is_confirmed_for_one_agent_and_for_half_an_hour(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner, other = await browser(here), await browser(here)
        assert (await owner.see_as("as=alice&as_user=ann")).json()["seen_by"] == "console"
        seen = {
            "as=alice&as_user=ann": 200,
            "as_user=ann&as=alice": 200,
            "as=alice": 403,
            "as=alice&as_user=bob": 403,
            "as=alice&as_user=ann&as_type=writer": 403,
            "as=alice&as_user=ann&as_project=p": 403,
            "as=bob&as_user=ann": 403,
        }
        for query, status in seen.items():
            assert (await owner.get(f"session?{query}")).status == status, query
        assert (await other.get("session?as=alice&as_user=ann")).status == 403
        await owner.guest.send("GET", f"{ROOT}/events?topic=session://s&as=alice&as_user=ann", owner.headers)
        assert (await owner.guest.head())[0] == 200
        await owner.guest.event()
        await trio.sleep(900)
        again = Browser(await here.guest())
        again.headers, again.token = owner.headers, owner.token
        assert (await again.get("session?as=alice&as_user=ann")).status == 200
        await trio.sleep(900)
        event = await owner.guest.event()
        while event is not None and event.comment is not None:
            event = await owner.guest.event()
        assert event is not None
        assert "to be confirmed again" in event.json()["reason"]
        assert (await again.get("session?as=alice&as_user=ann")).status == 403


async def test_a_page_of_another_origin_confirms_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner = await browser(here)
        code = owner.confirmation()
        own = {**owner.headers, "x-confirmation": code}
        for forged in (
            {**own},
            {**own, "x-csrf-token": "A" * 43},
            {**own, "x-csrf-token": owner.token, "origin": "http://localhost:3000"},
            {**own, "x-csrf-token": owner.token, "origin": None, "sec-fetch-site": "same-site"},
        ):
            assert (await posted(owner.guest, "create_api_key", KEY, forged)).status == 403
        body = f"confirmation={code}"
        for path in ("/audit/export", "/sessions?as=alice"):
            assert (await owner.form(path, body)).status == 403
            assert (await owner.form(path, f"{body}&csrf_token={'A' * 43}")).status == 403
            denial = await owner.form(path, f"{body}&csrf_token={owner.token}", origin="http://evil.example")
            assert denial.status in (401, 403)
        assert (await owner.get("session?as=alice")).status == 403
        assert await make_key(owner, code) == 200, "none of that was a wrong try, or used it up"


async def test_a_form_confirms_without_any_script(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        owner = await browser(here)
        page = "/sessions?as=alice&as_type="
        await owner.guest.send("GET", page, owner.headers)
        shown = (await owner.guest.answer()).body.decode()
        assert 'name="confirmation"' in shown
        assert str(owner.token) in shown
        wrong = await owner.form(page, f"confirmation=AAAA-AAAA&csrf_token={owner.token}")
        assert (wrong.status, b"not the code" in wrong.body) == (403, True)
        right = await owner.form(page, f"confirmation={owner.confirmation()}&csrf_token={owner.token}")
        assert (right.status, right.headers["location"]) == (303, "?as=alice&as_type=")
        await owner.guest.send("GET", page, owner.headers)
        assert (await owner.guest.answer()).status == 200
        log = await owner.form(
            "/audit/export?action=confirm", f"confirmation={owner.confirmation()}&csrf_token={owner.token}"
        )
        assert log.headers["content-disposition"] == 'attachment; filename="greenroom-audit.jsonl"'
        outcomes = [json.loads(line)["outcome"] for line in log.body.splitlines() if b'"confirm"' in line]
        assert outcomes[:2] == ["denied", "done"]
        assert (await owner.form("/memories", f"csrf_token={owner.token}")).status == 405


async def test_what_was_confirmed_is_on_record_without_the_code(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*", agent="bot")
        await here.settled()
        owner, bot = await browser(here), await browser(here, key)
        code = owner.confirmation()
        await make_key(owner, "WRNG-0000")
        await make_key(owner, code)
        await bot.see_as("as=alice")
        rows = [row for row in await at.runtime.query(AuditTrail()) if row.action == "confirm"]
        assert [(row.agent, row.outcome, row.details) for row in rows] == [
            ("console", "denied", {"target": "create_api_key", "by": "code"}),
            ("console", "done", {"target": "create_api_key", "by": "code"}),
            ("bot", "done", {"target": "see_as", "by": "key"}),
        ]
        trail = repr(await at.runtime.query(AuditTrail()))
        for secret in (code, code.replace("-", ""), "WRNG", key.api_key):
            assert secret not in trail
            assert secret not in caplog.text


@pytest.mark.slow
async def test_right_keys_and_links_log_in_however_many_were_wrong(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "LINK_RATE", 1)
    async with enter() as at, premises(at, rate_limit=1, rate_burst=4) as here:
        key = await create_key(at, "*")
        await here.settled()
        thief = Browser(await here.guest())
        links = [(await thief.log_in(link="A" * 43)).status for _ in range(authenticator.LINK_BURST + 2)]
        assert links == [401] * authenticator.LINK_BURST + [429, 429]
        keys = [(await thief.log_in(key="gr_" + "a" * 56)).status for _ in range(6)]
        assert keys == [401] * 4 + [429] * 2, "keys have a limit of their own"
        passports = [
            (await thief.guest.ask("GET", f"/passport/{'A' * 22}")).status
            for _ in range(authenticator.LINK_BURST + 1)
        ]
        assert passports == [404] * authenticator.LINK_BURST + [429], "and so have passports"
        assert (await thief.log_in(key=key.api_key)).status == 200
        assert (await thief.log_in(link=here.browsers.make_link())).status == 200
