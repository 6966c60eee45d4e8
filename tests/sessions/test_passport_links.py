"""Links that give a passport without a key: once, for a while, and to nobody who is not told of them."""

from __future__ import annotations

import base64
import json
import logging
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail
from support.https import Answer, Guest
from support.https import told as http_told
from support.keyed import BASE_URL, Premises, create_key, premises, revoke_key
from support.passports import contents, member, signer_of

from greenroom.actors import (
    ApiKeyMade,
    PassportOptions,
    RestoreSession,
    StartSession,
    open_link,
)
from greenroom.actors.sessions.passports import packing
from greenroom.transports.auth import authenticator
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.base.net.addresses import HostPort
from greenroom.transports.ops.cli.support.listeners import open_sockets

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import House
    from support.passports import Opens

    from greenroom.testing import VirtualClock

pytestmark = pytest.mark.promise("passport.links")

QUARTER = 15 * 60


async def call(guest: Guest, tool: str, **arguments: Any) -> Any:
    await guest.request("tools/call", {"name": tool, "arguments": arguments})
    return http_told((await guest.answer()).json())


async def started(here: Premises, key: ApiKeyMade, **arguments: Any) -> Any:
    """Start a session with a message over HTTP; return its memory passport."""
    guest = await here.session(key)
    answer = await call(guest, "start_session", new=True, **arguments)
    await call(guest, "add_message", session_id=answer["session_id"], content="hello")
    return answer["memory_passport"]


def path_of(passport: Any) -> str:
    url: str = passport["export_url"]
    assert url.startswith(f"{BASE_URL}/passport/")
    return url.removeprefix(BASE_URL)


async def opened(here: Premises, path: str, method: str = "GET", **headers: str | None) -> Answer:
    return await (await here.guest()).ask(method, path, **headers)


async def rows(at: House, action: str) -> list[Any]:
    trail = await at.runtime.query(AuditTrail())
    return [row for row in trail if row.action == action]


async def test_whoever_has_the_link_gets_the_passport_once(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here, open_at("two") as there:
        key = await create_key(at, "sessions:*", agent="claude", user="ann")
        await here.settled()
        passport = await started(here, key, purpose="Port the gateway")
        answer = await opened(here, path_of(passport))
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        document = answer.json()
        assert document["passport_id"] == passport["passport_id"]
        assert document["metadata"]["messages"] == 1, "as the session is when the link is opened"
        name = f'attachment; filename="{document["session_id"]}.passport.json"'
        assert answer.headers["content-disposition"] == name
        arrived = member(there.runtime, trusted=(signer_of(at),))
        restored = await arrived.ask(RestoreSession(passport=document))
        assert await contents(arrived, restored.session_id) == ["hello"]

        assert (await opened(here, path_of(passport))).status == 404
        done, denied = await rows(at, "open_passport_link")
        assert (done.outcome, done.key_id, done.user) == ("done", key.key.key_id, "ann")
        assert done.details == {
            "passport_id": passport["passport_id"],
            "characters": len(answer.body.decode()),
        }
        assert (denied.outcome, denied.key_id, denied.details) == ("denied", None, {})


async def test_of_several_who_open_a_link_at_once_one_gets_it(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        path = path_of(await started(here, key))
        statuses: list[int] = []

        async def race() -> None:
            statuses.append((await opened(here, path)).status)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(race)
        assert sorted(statuses) == [200, 404, 404, 404, 404]


async def test_a_link_that_could_not_give_its_passport_gives_it_later(
    open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        passport = await started(here, key)
        token = passport["export_url"].rpartition("/")[2]
        with trio.CancelScope() as away:

            def leave(_: str | None) -> bool:
                away.cancel()
                return True

            await open_link(at.runtime, token, None, options=PassportOptions(), is_valid=leave)
        assert away.cancelled_caught
        with monkeypatch.context() as patched:
            patched.setattr(packing, "MOST_MESSAGES", 0)
            assert (await opened(here, path_of(passport))).status == 404
        assert (await opened(here, path_of(passport))).status == 200
        tried = await rows(at, "open_passport_link")
        assert [(row.outcome, row.key_id) for row in tried] == [
            (outcome, key.key.key_id) for outcome in ("failed", "failed", "done")
        ]


async def test_no_answer_says_why_a_link_gives_nothing(
    open_at: Opens, far_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        other = await create_key(at, "sessions:*")
        await here.settled()
        used, revoked, expired, large = [
            path_of(await started(here, each)) for each in (key, other, key, key)
        ]
        assert (await opened(here, used)).status == 200
        await revoke_key(at, other)
        await here.settled()
        answers = [await opened(here, path) for path in (used, revoked, "/passport/" + "A" * 22)]
        answers += [await opened(here, path) for path in ("/passport/", "/passport/x", f"/a{used}")]
        monkeypatch.setattr(packing, "MOST_MESSAGES", 0)
        answers.append(await opened(here, large))
        far_clock.jump(QUARTER * 1_000_000)
        answers.append(await opened(here, expired))
        told = {(each.status, each.body, *sorted(strip_date(each.headers).items())) for each in answers}
        assert len(told) == 1, told
        assert answers[0].status == 404
        assert answers[0].headers["cache-control"] == "no-store"


def strip_date(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "date"}


@pytest.mark.slow
async def test_a_link_ends_with_its_time(open_at: Opens, far_clock: VirtualClock) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        first, second = [path_of(await started(here, key)) for _ in range(2)]
        far_clock.jump((QUARTER - 60) * 1_000_000)
        assert (await opened(here, first)).status == 200
        far_clock.jump(60 * 1_000_000)
        assert (await opened(here, second)).status == 404


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("HEAD", {}, 405),
        ("POST", {}, 405),
        ("OPTIONS", {}, 405),
        ("GET", {"sec-purpose": "prefetch;prerender"}, 503),
        ("GET", {"purpose": "prefetch"}, 503),
        ("GET", {"x-purpose": "preview"}, 503),
        ("GET", {"x-moz": "Prefetch"}, 503),
        ("GET", {"host": "evil.example"}, 421),
        ("GET", {"origin": "https://evil.example"}, 403),
    ],
)
async def test_only_a_get_that_somebody_means_uses_a_link_up(
    open_at: Opens, method: str, headers: dict[str, str | None], status: int
) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        path = path_of(await started(here, key))
        for each in (path, "/passport/" + "A" * 22):
            assert (await opened(here, each, method, **headers)).status == status
        assert (await opened(here, path)).status == 200


async def test_wrong_links_are_limited_and_a_right_one_opens_however_many_there_were(
    open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "LINK_RATE", 1)  # so that none comes while a busy machine tries
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        path = path_of(await started(here, key))
        for _ in range(authenticator.LINK_BURST):
            assert (await opened(here, "/passport/" + "A" * 22)).status == 404
        late = await opened(here, "/passport/" + "A" * 22)
        assert late.status == 429
        assert int(late.headers["retry-after"]) >= 1
        assert late.headers["cache-control"] == "no-store"
        assert (await opened(here, path)).status == 200
        assert (await started(here, key))["export_url"] is not None
        (limited,) = [row for row in await rows(at, "open_passport_link") if row.details.get("status") == 429]
        assert limited.outcome == "denied"


def bytes_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def test_nothing_that_opens_is_logged_or_kept(
    open_at: Opens, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        paths = [path_of(await started(here, key)) for _ in range(2)]
        for path in (paths[0], paths[0], f"/below{paths[1]}", f"{paths[1]}/"):
            await opened(here, path)
        await opened(here, paths[1], "HEAD")
        tokens = [path.removeprefix("/passport/") for path in paths]
        trail = repr(await at.runtime.query(AuditTrail()))
        files = bytes_below(tmp_path)
        for token in tokens:
            assert token not in caplog.text
            assert token not in trail
            assert token.encode() not in files


async def test_who_may_not_export_gets_no_link(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        key = await create_key(at, "sessions:write")
        await here.settled()
        passport = await started(here, key)
        assert (passport["export_url"], passport["export_expires_at"]) == (None, None)
        assert passport["claim"].startswith("GREENROOM:C1:")


async def test_without_http_there_is_a_claim_and_no_link(open_at: Opens) -> None:
    async with open_at() as at:
        claude = member(at.runtime)
        answer = await claude.ask(StartSession(new=True, qr=True))
        passport = answer.memory_passport
        assert passport is not None
        assert (passport.export_url, passport.export_expires_at) == (None, None)
        assert passport.qr_code is not None
        head, _, data = passport.qr_code.partition(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
        other = member(at.runtime, "cursor")
        whole: dict[str, Any] = json.loads(json.dumps({"claim": passport.claim, "qr_code": passport.qr_code}))
        assert (await other.ask(RestoreSession(passport=whole))).session_id == answer.session_id


async def test_a_link_that_needed_no_key_gives_nothing_once_one_is_needed(open_at: Opens) -> None:
    async with open_at() as at, premises(at) as here:
        guest = await here.session()
        links = []
        for _ in range(2):
            links.append(path_of((await call(guest, "start_session", new=True))["memory_passport"]))
            await call(guest, "add_message", content="so the session stays")
        first, second = links
        assert (await opened(here, first)).status == 200
        await create_key(at, "sessions:*")
        await here.settled()
        assert (await opened(here, second)).status == 404


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, r"http://127\.0\.0\.1:\d+"),
        ({"base_url": "https://greenroom.example.org/below/"}, r"https://greenroom\.example\.org/below"),
        (
            {"base_url": "https://greenroom.example.org", "behind_proxy": True},
            r"https://greenroom\.example\.org",
        ),
        ({"behind_proxy": True}, None),
        ({"http": HostPort("0.0.0.0", 0), "behind_proxy": False}, None),  # noqa: S104  (that is what is tried)
        ({"http": None, "base_url": "https://greenroom.example.org"}, None),
    ],
)
async def test_links_begin_with_what_clients_reach(settings: dict[str, Any], expected: str | None) -> None:
    async with AsyncExitStack() as stack:
        chosen: Any = {"http": HostPort("127.0.0.1", 0)} | settings
        found = (await open_sockets(Settings(**chosen), stack)).base_url()
        assert found == expected or re.fullmatch(expected or "", found or "-")
