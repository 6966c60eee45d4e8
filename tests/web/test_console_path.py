"""The secret path of the console for browsers that come without TLS."""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from sockets.test_http_process import guests_at, server
from support.agents import AuditTrail, begin
from support.api import ROOT, Browser, posted
from support.console import Looker
from support.keyed import bearer, create_key, premises
from support.programs import running

from greenroom.transports.base import exit_codes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter
    from support.https import Answer
    from support.keyed import Premises

BELOW = "/Hk3vtLq0Zr8XwYb2mNc5sDf7"
COOKIE = "greenroom-8080"


@asynccontextmanager
async def in_the_clear(enter: Enter) -> AsyncIterator[Premises]:
    async with enter() as at, premises(at, path=BELOW) as here:
        await begin(at)
        yield here


async def in_page(here: Premises, path: str = BELOW) -> Looker:
    """Return a browser of the folder's owner that has logged in."""
    found = Looker(await here.guest(), path)
    answer = await found.log_in(link=here.browsers.make_link())
    assert answer.status == 200, answer
    return found


@pytest.mark.promise("api.browser")
async def test_the_cookie_is_for_the_path_alone_and_everything_is_below_it(enter: Enter) -> None:
    async with in_the_clear(enter) as here:
        ann = Looker(await here.guest(), BELOW)
        answer = await ann.log_in(link=here.browsers.make_link())
        name, *flags = answer.headers["set-cookie"].split("; ")
        assert name.startswith(f"{COOKIE}-")
        assert flags == [f"Path={BELOW}", "HttpOnly", "SameSite=Strict"]
        assert (await ann.look("/")).status == 200
        assert "s" in (await ann.look("/sessions")).text
        assert (await ann.post("get_session", session_id="s")).status == 200
        await ann.guest.send("GET", f"{BELOW}{ROOT}/events?topic=session://s", ann.headers)
        assert (await ann.guest.head())[0] == 200
        bob = await in_page(here)
        moved = await bob.again("")
        assert (moved.status, moved.headers["location"]) == (303, f".{BELOW}/")
        left = await bob.post("logout")
        assert (left.status, f"Path={BELOW};" in left.headers["set-cookie"]) == (204, True)
        assert (await bob.get("session")).status == 401
        page = await bob.look("/memories")
        assert (page.status, "API key" in page.text) == (200, True)


@pytest.mark.promise("api.browser")
async def test_where_programs_ask_no_cookie_counts_and_nobody_logs_in(enter: Enter) -> None:
    async with in_the_clear(enter) as here:
        key = await create_key(here.at, "*")
        await here.settled()
        ann = await in_page(here)
        assert (await ann.get("session")).status == 200
        ann.below = ""
        for path in ("session", "resources", "events?topic=session://s", "openapi.json"):
            assert (await ann.get(path)).status == 401, path
        for path in ("list_sessions", "create_session", "logout", "login"):
            assert (await ann.post(path)).status == 401, path
        guest = await here.guest()
        for shown in ({"key": key.api_key}, {"link": here.browsers.make_link()}):
            for headers in ({}, bearer(key)):
                answer = await posted(guest, "login", shown, headers)
                assert answer.status in (401, 404)
                assert "set-cookie" not in answer.headers
        assert len(here.browsers) == 1
        assert (await posted(guest, "list_sessions", {}, bearer(key))).status == 200
        assert (await posted(guest, "list_sessions", {}, bearer(key), BELOW)).status == 200


@pytest.mark.promise("api.browser")
async def test_no_cookie_that_another_port_sets_is_taken_for_it(enter: Enter) -> None:
    async with in_the_clear(enter) as here:
        ann = await in_page(here)
        own = ann.headers["cookie"]
        for value in ("x", "A" * 43):
            for cookies in (f"{own}; {COOKIE}={value}", f"{COOKIE}={value}; {own}"):
                ann.headers["cookie"] = cookies
                assert (await ann.get("session")).status == 200, cookies
                assert "API key" not in (await ann.look("/memories")).text, cookies
        token = str(own).partition("=")[2]
        ann.headers["cookie"] = f"{COOKIE}={token}"  # nobody else knows what it is called
        assert (await ann.get("session")).status == 401


def parts_of(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return what an answer says, without its time."""
    return answer.status, [each for each in answer.headers.items() if each[0] != "date"], answer.body


WRONG = (
    "/memories",
    "/login",
    f"/login/{'A' * 43}",
    "/logout",
    "/people",
    BELOW[:-1],
    f"{BELOW[:-1]}/",
    f"{BELOW}x/",
    f"{BELOW.lower()}/",
    f"/{BELOW}/",
    f"/x{BELOW}/",
    f"/%2F{BELOW[1:]}/",
    f"/{'A' * 24}/api/v1/session",
    f"/{'A' * 24}/login/{'A' * 43}",
)


@pytest.mark.quick
@pytest.mark.promise("console.ports")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_every_other_path_is_answered_alike(enter: Enter, method: str) -> None:
    async with in_the_clear(enter) as here:
        ann = await in_page(here)
        unknown = parts_of(await ann.guest.ask(method, "/no-such-path"))
        assert unknown[0] == 404
        for path in WRONG:
            for headers in ({}, ann.headers):
                await ann.guest.send(method, path, headers)
                found = await ann.guest.answer()
                assert (found.status, found.body) == (404, unknown[2]), path
        assert b"Overview" in (await ann.again("/")).body


@pytest.mark.promise("console.ports")
async def test_the_first_page_says_how_to_open_the_console_and_not_where_it_is(enter: Enter) -> None:
    async with in_the_clear(enter) as here:
        ann = await in_page(here)
        for headers in ({}, ann.headers):
            await ann.guest.send("GET", "/", headers)
            answer = await ann.guest.answer()
            assert answer.status == 200
            assert b"greenroom console" in answer.body
            assert BELOW[1:] not in repr(answer)
            assert answer.headers["referrer-policy"] == "no-referrer"
        page = Looker(await here.guest())
        for each in (await page.look("/")).named("link"):
            assert (await page.guest.ask("GET", (each["href"] or "").removeprefix("."))).status == 200


def own_form(**headers: str | None) -> dict[str, str | None]:
    """Return the headers that a browser sends with a form of ours."""
    return {"origin": "null", "sec-fetch-site": "same-origin", **headers}


@pytest.mark.promise("api.browser")
async def test_forms_of_pages_that_tell_no_address_work_and_those_of_others_do_not(enter: Enter) -> None:
    async with in_the_clear(enter) as here:
        ann = Looker(await here.guest(), BELOW)
        for site in ("same-site", "cross-site", "none", ""):
            sent = own_form(**{"sec-fetch-site": site})
            body = f"link={here.browsers.make_link()}"
            assert (await ann.form("/login", body, **sent)).status == 403, site
        twice = await ann.form("/login", body, **own_form(**{"sec-fetch-site": "same-origin, same-site"}))
        assert twice.status == 403
        entered = await ann.form("/login", body, **own_form())
        assert (entered.status, entered.headers["location"]) == (303, "./")
        assert "access-control-allow-origin" not in entered.headers
        ann.headers["cookie"] = entered.headers["set-cookie"].partition(";")[0]
        page = (await ann.again("/")).body.decode()
        token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        assert (await ann.form("/logout", f"csrf_token={token}", **own_form())).status == 303
        assert (await ann.get("session")).status == 401


@pytest.mark.promise("console.ports")
async def test_the_path_is_in_no_log_record_figure_page_or_refusal(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = BELOW[1:]
    async with in_the_clear(enter) as here:
        key = await create_key(here.at, "*")
        await here.settled()
        ann = await in_page(here)
        looked = ["/", "/memories", "/sessions/s", "/people", "/audit", "/nothing", f"/login/{'A' * 43}"]
        answers = [await ann.again(path) for path in looked]
        answers += [await ann.get(path) for path in ("session", "openapi.json", "nothing", "events")]
        asked = ("list_sessions", "list_people", "get_audit_log", "nothing")
        answers += [await ann.post(name) for name in asked]
        answers.append(await ann.form("/login", "key=x"))
        answers.append(await ann.form("/logout", "csrf_token=x"))
        refused: list[tuple[str, str, dict[str, str | None]]] = [
            ("GET", f"{BELOW}/memories", {"host": "evil.example"}),
            ("GET", f"{BELOW}/memories", {"origin": "https://evil.example"}),
            ("POST", f"{BELOW}/login", {"origin": "http://localhost:3000"}),
            ("DELETE", f"{BELOW}/memories", {}),
            ("GET", f"{BELOW}/static/x", {}),
            ("GET", f"{BELOW}/memories?key=x", {}),
            ("GET", f"/x{BELOW}/memories", {}),
            ("GET", f"{BELOW}x", {}),
            ("GET", f"{BELOW}/passport/x", {}),
            ("GET", f"/mcp{BELOW}", {}),
        ]
        for method, path, headers in refused:
            await ann.guest.send(method, path, {**ann.headers, **headers})
            answers.append(await ann.guest.answer())
            if path.startswith(f"{BELOW}/"):
                assert answers[-1].headers["referrer-policy"] == "no-referrer", path
        answers.append(await ann.guest.ask("GET", "/metrics", **bearer(key)))
        for answer in answers:
            assert secret not in answer.body.decode()
            for name, value in answer.headers.items():
                assert secret not in value or name == "set-cookie", (name, value)
        assert secret not in caplog.text
        assert secret not in repr(await here.at.runtime.query(AuditTrail()))
        assert secret not in json.dumps(await figures_of(here), default=repr)
        assert secret not in repr(here.app) + repr(vars(here))


async def figures_of(here: Premises) -> object:
    return await here.observed.figures(often=True)


async def console_at(home: Path, *flags: str) -> str:
    """Return the link that the command prints for a server of this folder."""
    async with running(home, "console", "--print", "--data", str(home / "store"), *flags) as program:
        assert await program.end() == exit_codes.OK
        return program.printed.split()[0]


def below(link: str) -> str:
    return urlsplit(link).path.partition("/login/")[0]


@pytest.mark.slow
@pytest.mark.promise("console.ports")
async def test_the_path_follows_from_the_secret_and_is_in_no_folder_of_data(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    paths = []
    for number, home in enumerate((first, first, second)):
        async with server(home) as (_, port):
            link = await console_at(home)
            assert urlsplit(link).port == port
            paths.append(below(link))
            kept = home / f"kept-{number}"
            async with running(home, "backup", str(kept), "--data", str(home / "store")) as program:
                assert await program.end() == exit_codes.OK
            for command in ("stats", "doctor", "config"):
                async with running(home, command, "--data", str(home / "store")) as program:
                    await program.end()
                    assert paths[-1][1:] not in program.printed
        for place in (home / "store", kept):
            for file in place.rglob("*") if place.is_dir() else [place]:
                if file.is_file():
                    assert paths[-1][1:].encode() not in file.read_bytes(), file
    assert paths[0] == paths[1] != paths[2]
    assert all(len(path) > 20 for path in paths)


@pytest.mark.slow
@pytest.mark.promise("api.browser")
async def test_behind_a_url_with_a_path_of_its_own_the_cookie_is_for_both(tmp_path: Path) -> None:
    url = "http://localhost:9999/rooms"
    async with server(tmp_path, "--base-url", url) as (_, port), guests_at(port) as (guest,):
        link = await console_at(tmp_path)
        path, _, token = link.removeprefix(url).partition("/login/")
        ann = Browser(guest, path)
        ann.headers |= {"host": f"127.0.0.1:{port}", "origin": "http://localhost:9999"}
        answer = await ann.log_in(link=token)  # a proxy has taken the path of the URL off
        assert answer.status == 200
        assert f"Path=/rooms{path};" in answer.headers["set-cookie"]


@pytest.mark.slow
@pytest.mark.promise("api.browser")
async def test_where_browsers_come_over_tls_the_console_stays_at_the_root(tmp_path: Path) -> None:
    url = "https://greenroom.example.org"
    async with server(tmp_path, "--base-url", url) as (_, port), guests_at(port) as (guest,):
        link = await console_at(tmp_path)
        assert link.startswith(f"{url}/login/")
        ann = Browser(guest)
        ann.headers |= {"host": f"127.0.0.1:{port}", "origin": None}
        answer = await ann.log_in(link=link.rpartition("/")[2])
        name, *flags = answer.headers["set-cookie"].split("; ")
        assert name.startswith("__Host-greenroom=")
        assert flags == ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]
