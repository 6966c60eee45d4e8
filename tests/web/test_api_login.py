"""Logging in below `/api/v1`: keys, links, cookies, tokens against forgery, and when all of it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio
from support.agents import AuditTrail, begin
from support.api import ROOT, Browser, browser, posted
from support.keyed import bearer, create_key, premises, revoke_key

from greenroom.actors import ListSessions
from greenroom.transports.auth import authenticator
from greenroom.transports.base.defaults import RATE_BURST
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.web.rest import browser_sessions
from greenroom.transports.web.rest.browser_checks import SessionCookie, is_own_page

if TYPE_CHECKING:
    from support.agents import Enter

OTHER_PORT = {"origin": "http://localhost:3000"}


@pytest.mark.promise("api.log-in-always")
async def test_nobody_is_answered_who_shows_nothing_also_where_mcp_needs_no_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        guest = await here.session()  # MCP on loopback, without a key
        assert (await guest.end_session()).status == 200
        for path in ("session", "resources", "events?topic=session://s", "openapi.json", "nonsense", ""):
            answer = await guest.ask("GET", f"{ROOT}/{path}")
            assert answer.status == 401, path
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for path in ("list_sessions", "create_session", "logout", "nonsense"):
            assert (await posted(guest, path, {}, {})).status == 401
        for shown in ("gr_aaaaaaaaaaaa_" + "a" * 43, "x", ""):
            assert (await posted(guest, "login", {"key": shown}, {})).status in (400, 401)
        assert len(here.browsers) == 0


@pytest.mark.promise("api.browser")
async def test_a_browser_logs_in_by_a_key_and_out(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "sessions:*", agent="bot", user="ann")
        await here.settled()
        ann = Browser(await here.guest())
        answer = await ann.log_in(key=key.api_key)
        said = answer.json()
        assert (said["agent"], said["user"], said["scopes"]) == ("bot", "ann", ["sessions:*"])
        name, *flags = answer.headers["set-cookie"].split("; ")
        assert name.startswith("__Host-greenroom=")
        assert flags == ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]
        assert (await ann.get("session")).json()["csrf_token"] == ann.token
        assert (await ann.post("add_message", session_id="s", content="hello")).status == 200
        answer = await ann.post("logout")
        assert (answer.status, answer.headers["set-cookie"].count("Max-Age=0")) == (204, 1)
        assert (await ann.get("session")).status == 401
        assert (await ann.post("list_sessions")).status == 401
        done = [row for row in await at.runtime.query(AuditTrail()) if row.action in ("log_in", "log_out")]
        assert [(row.action, row.key_id) for row in done] == [
            ("log_in", key.key.key_id),
            ("log_out", key.key.key_id),
        ]


FORGED: list[tuple[dict[str, str | None], int]] = [
    ({"x-csrf-token": None}, 403),
    ({"x-csrf-token": ""}, 403),
    ({"x-csrf-token": "A" * 43}, 403),
    ({**OTHER_PORT}, 403),
    ({"origin": "http://127.0.0.1:8080"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "null", "sec-fetch-site": "cross-site"}, 403),
    ({"origin": "null", "sec-fetch-site": "same-site"}, 403),
    ({"origin": "null", "sec-fetch-site": "none"}, 403),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": None, "sec-fetch-site": "cross-site"}, 403),
    ({"origin": None, "sec-fetch-site": "same-site"}, 403),
    ({"cookie": "__Host-greenroom=" + "A" * 43}, 401),
    ({"cookie": "__Host-greenroom="}, 401),
]


@pytest.mark.promise("api.browser")
async def test_a_request_that_no_page_of_ours_sends_does_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        ann = await browser(here)
        body = {"session_id": "s", "content": "forged"}
        for headers, status in FORGED:
            sent = {**ann.headers, "x-csrf-token": ann.token, **headers}
            assert (await posted(ann.guest, "add_message", body, sent)).status == status, headers
        assert (await ann.post("get_messages", session_id="s")).json()["messages"] == []
        twice = {**ann.headers, "cookie": f"{ann.headers['cookie']}; __Host-greenroom={'B' * 43}"}
        assert (await ann.guest.ask("GET", f"{ROOT}/session", **twice)).status == 401


@pytest.mark.slow
@pytest.mark.promise("api.browser")
async def test_a_page_of_another_port_reads_nothing_by_a_cookie_that_is_sent_to_it(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        ann = await browser(here)
        for headers in (OTHER_PORT, {"origin": None, "sec-fetch-site": "same-site"}):
            for path in ("session", "resources?uri=session://s", "events?topic=session://s"):
                answer = await ann.get(path, **headers)
                assert answer.status == 403
                assert "access-control-allow-credentials" not in answer.headers
            await ann.guest.send("GET", "/", {**ann.headers, **headers})
            assert str(ann.token) not in (await ann.guest.answer()).body.decode()
        forged = await posted(ann.guest, "login", {"key": "x"}, {**ann.headers, **OTHER_PORT})
        assert forged.status == 403


@pytest.mark.slow
@pytest.mark.promise("api.link")
async def test_a_link_works_once_and_not_for_long_and_opening_it_uses_nothing_up(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        link = here.browsers.make_link()
        guest = await here.guest()
        for _ in range(2):
            page = await guest.ask("GET", f"/login/{link}", sec_purpose="prefetch")
            assert page.status == 200
            assert link in page.body.decode()
            assert page.headers["referrer-policy"] == "no-referrer"
        ann = Browser(guest)
        assert (await ann.form("/login", f"link={link}", origin=None)).status == 403
        entered = await ann.form("/login", f"link={link}")
        assert (entered.status, entered.headers["location"]) == (303, "./")
        ann.headers["cookie"] = entered.headers["set-cookie"].partition(";")[0]
        await guest.send("GET", "/", ann.headers)
        start = (await guest.answer()).body.decode()
        assert "owner" in start
        replayed = await ann.form("/login", f"link={link}")
        late = here.browsers.make_link()
        await trio.sleep(browser_sessions.LINK_SECONDS)
        expired = await ann.form("/login", f"link={late}")
        unknown = await ann.form("/login", f"link={'A' * 43}")
        assert {(each.status, each.body) for each in (replayed, expired, unknown)} == {(401, unknown.body)}
        token = start.partition('name="csrf_token" value="')[2].partition('"')[0]
        assert (await ann.form("/logout", "csrf_token=x")).status == 403
        assert (await ann.form("/logout", f"csrf_token={token}")).status == 303
        assert (await ann.get("session")).status == 401
        denied = [row for row in await at.runtime.query(AuditTrail()) if row.action == "log_in"]
        assert [row.outcome for row in denied].count("denied") >= 2


@pytest.mark.promise("api.link")
async def test_who_comes_by_a_link_that_only_reads_changes_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        await create_key(at)  # the owner needs none
        await here.settled()
        ann = await browser(here, read_only=True)
        assert (await ann.post("get_session", session_id="s")).status == 200
        for name, arguments in (
            ("add_message", {"session_id": "s", "content": "x"}),
            ("set_memory", {"key": "k", "value": 1}),
            ("create_api_key", {"name": "n", "scopes": ["*"]}),
            ("get_audit_log", {}),
        ):
            assert (await ann.post(name, **arguments)).json()["code"] == "PERMISSION_DENIED"


@pytest.mark.promise("api.ends")
async def test_a_session_ends_with_its_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key, other = await create_key(at, "*"), await create_key(at, "*")
        await here.settled()
        ann, bob = await browser(here, key), await browser(here, other)
        await revoke_key(at, key)
        await here.settled()
        assert (await ann.get("session")).status == 401
        assert (await bob.get("session")).status == 200
        assert len(here.browsers) == 1
        assert (await ann.log_in(key=key.api_key)).status == 401


@pytest.mark.promise("api.ends")
async def test_a_request_whose_body_comes_after_its_right_has_ended_does_nothing(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "*")
        await here.settled()
        ann = await browser(here)
        shown = {**ann.headers, "x-csrf-token": ann.token, "content-type": "application/json"}
        body = b'{"session_id": "late", "purpose": "p"}'
        slow = [await here.guest(), await here.guest()]
        for guest, headers in zip(slow, (shown, bearer(key)), strict=True):
            lines = {"host": "localhost:8080", "content-type": "application/json", **headers}
            told = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            head = f"POST {ROOT}/create_session HTTP/1.1\r\n{told}content-length: {len(body)}\r\n\r\n"
            await guest.stream.send_all(head.encode() + body[:1])
        await here.settled()
        assert (await ann.post("logout")).status == 204
        await revoke_key(at, key)
        await here.settled()
        for guest in slow:
            await guest.stream.send_all(body[1:])
            with trio.fail_after(60):
                assert (await guest.stream.receive_some()).startswith(b"HTTP/1.1 401")
        sessions = await at.agent("root").ask(ListSessions())
        assert "late" not in {each.session_id for each in sessions.sessions}


@pytest.mark.slow
@pytest.mark.promise("api.ends")
async def test_a_session_ends_when_nobody_asks_and_at_the_latest_after_its_life(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_sessions, "IDLE", 180.0)
    monkeypatch.setattr(browser_sessions, "LIFETIME", 420.0)
    async with enter() as at, premises(at) as here:
        ann, bob = await browser(here), await browser(here)
        for _ in range(4):
            await trio.sleep(100)
            assert (await ann.get("session")).status == 200
        assert (await bob.get("session")).status == 401
        assert (await ann.get("session")).json()["expires_in"] == 20
        await trio.sleep(20)
        assert (await ann.get("session")).status == 401
        assert len(here.browsers) == 0


@pytest.mark.slow
@pytest.mark.promise("api.ends")
async def test_nobody_uses_the_console_any_more_once_all_have_logged_out_or_gone(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:

        async def unused() -> float:
            """Return after how many seconds nobody is logged in, and no link works."""
            began = trio.current_time()
            await here.browsers.wait_until_unused()
            return trio.current_time() - began

        assert await unused() == 0
        here.browsers.make_link()
        assert await unused() == browser_sessions.LINK_SECONDS
        ann, bob = await browser(here), await browser(here)
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.browsers.wait_until_unused)
            await trio.sleep(1_000)
            assert (await ann.get("session")).status == 200
            assert (await bob.post("logout")).status == 204
            await trio.sleep(1_000)
            assert nursery.child_tasks
            assert (await ann.post("logout")).status == 204
        assert trio.current_time() - began == 2_000
        await browser(here)
        assert await unused() == browser_sessions.IDLE


@pytest.mark.slow
@pytest.mark.promise("api.link")
async def test_who_came_by_a_link_may_have_many_pages_open(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=1, rate_burst=1) as here:
        key = await create_key(at, "*")
        await here.settled()
        owner, other = await browser(here), await browser(here, key)
        answers = {
            who: [(await each.get("session")).status for _ in range(25)]
            for who, each in (("owner", owner), ("other", other))
        }
        assert set(answers["owner"]) == {200}
        assert answers["other"].count(429) > 10


@pytest.mark.promise("api.link")
async def test_who_makes_a_link_is_on_record(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        token = here.browsers.make_link(read_only=True)
        await browser(here)
        rows = [row for row in await at.runtime.query(AuditTrail()) if row.action == "make_link"]
        assert [(row.outcome, row.details) for row in rows] == [
            ("done", {"read_only": True}),
            ("done", {"read_only": False}),
        ]
        assert token not in repr(rows)


@pytest.mark.promise("api.ends")
async def test_there_are_so_many_sessions_and_links_and_the_oldest_make_room(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_sessions, "MOST_OF_ONE", 2)
    monkeypatch.setattr(browser_sessions, "MOST_LINKS", 2)
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        links = [here.browsers.make_link() for _ in range(3)]
        late = Browser(await here.guest())
        assert [(await late.log_in(link=link)).status for link in links] == [401, 200, 200]
        first, second, third = [await browser(here, key) for _ in range(3)]
        assert [(await each.get("session")).status for each in (first, second, third)] == [401, 200, 200]


@pytest.mark.promise("api.browser")
async def test_wrong_attempts_to_log_in_are_limited_and_right_ones_are_not(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "LINK_RATE", 1)  # so that none comes while a busy machine tries
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        ann = await browser(here, key)
        thief = Browser(await here.guest())
        wrong = "gr_" + "a" * 56
        tried = [(await thief.log_in(key=wrong)).status for _ in range(RATE_BURST + 1)]
        assert tried[:RATE_BURST] == [401] * RATE_BURST
        tried = [(await thief.log_in(link="A" * 43)).status for _ in range(authenticator.LINK_BURST + 1)]
        assert tried == [401] * authenticator.LINK_BURST + [429]
        assert (await thief.log_in(key=key.api_key)).status == 200
        entered = await Browser(await here.guest()).form("/login", f"link={here.browsers.make_link()}")
        assert entered.status == 303
        assert (await ann.get("session")).status == 200
        assert (await posted(thief.guest, "list_sessions", {}, bearer(key))).status == 200


async def test_nothing_that_opens_is_logged_or_kept(enter: Enter, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*")
        await here.settled()
        link = here.browsers.make_link()
        ann = Browser(await here.guest())
        await ann.guest.ask("GET", f"/login/{link}/x")
        await ann.log_in(link=link)
        bob = await browser(here, key)
        await posted(bob.guest, "list_sessions", {}, {**bob.headers, "x-csrf-token": "wrong"})
        trail = repr(await at.runtime.query(AuditTrail()))
        for each in (ann, bob):
            value = str(each.headers["cookie"]).partition("=")[2]
            for secret in (value, str(each.token), link, key.api_key):
                assert secret not in caplog.text
                assert secret not in trail


def head_of(**headers: str) -> RequestHead:
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RequestHead({"method": "GET", "path": "/", "query_string": b"", "headers": lines})


@pytest.mark.promise("api.browser")
def test_over_tls_a_cookie_belongs_to_one_host_and_is_sent_over_nothing_else() -> None:
    cookie, value = SessionCookie(None), "A" * 43
    head = head_of(host="greenroom.example.org")
    _, header = cookie.header(head, value)
    name, *flags = header.decode().split("; ")
    assert name == f"__Host-greenroom={value}"
    assert flags == ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]
    assert cookie.read(head_of(host="greenroom.example.org", cookie=f"a=b; {name}")) == value
    assert cookie.read(head_of(host="greenroom.example.org", cookie=f"greenroom-80={value}")) is None
    assert cookie.read(head_of(host="greenroom.example.org", cookie=f"{name}; {name}")) is None


@pytest.mark.promise("api.browser")
@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"origin": "https://greenroom.example.org"}, True),  # behind a proxy that says another Host
        ({"origin": "http://127.0.0.1:8080"}, True),
        ({"origin": "https://other.example.org"}, False),
        ({"origin": "https://greenroom.example.org.evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "null", "sec_fetch_site": "same-origin"}, True),  # a form on a page without referrers
        ({"origin": "null", "sec_fetch_site": "same-site"}, False),
        ({"origin": "null", "sec_fetch_site": "none"}, False),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "cross-site", "origin": "https://greenroom.example.org"}, False),
        ({}, True),
    ],
)
def test_a_page_is_ours_by_the_origin_that_browsers_reach(headers: dict[str, str], own: bool) -> None:  # noqa: FBT001 - a verdict of the table
    head = head_of(host="127.0.0.1:8080", **headers)
    assert is_own_page(head, "https://greenroom.example.org") == own
