"""The audit log at the doors: who is not let in, who fails again and again, and who wants too much."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from support.audits import last_number, since
from support.keyed import create_key, premises, revoke_key
from support.websockets import told

from greenroom.actors import open_key_cache
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth.key_format import new_key
from greenroom.transports import Caller, KeyAuthenticator
from greenroom.transports.base.errors import HttpRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.agents import Enter
    from support.keyed import Premises

    from greenroom.actors import ApiKeyMade
    from greenroom.actors.core.auth.key_format import ParsedKey

pytestmark = pytest.mark.promise("audit.records")

QUIET: dict[str, Any] = {"embedder": "none"}


class Way(NamedTuple):
    """How somebody comes who is not let in, and what the one record of it says."""

    headers: Callable[[Keys], dict[str, str]]
    statuses: set[int]
    action: str = "authenticate"
    shows: str | None = None
    """Which key's id is in it."""
    query: Callable[[Keys], str] = lambda _: ""


class Keys(NamedTuple):
    """Keys that open or do not."""

    right: ApiKeyMade
    revoked: ApiKeyMade
    wrong: ParsedKey


def shown(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


WAYS: dict[str, Way] = {
    "no key": Way(lambda _: {}, {401}),
    "no key at all": Way(lambda _: shown("nothing like a key"), {401}),
    "a made up key": Way(lambda keys: shown(keys.wrong.whole), {401}, shows="wrong"),
    "a revoked key": Way(lambda keys: shown(keys.revoked.api_key), {401}, shows="revoked"),
    "another's name": Way(
        lambda keys: {**shown(keys.right.api_key), "greenroom-agent": "mallory"}, {403}, shows="right"
    ),
    "a key in the URL": Way(lambda _: {}, {400}, "connect", query=lambda keys: f"?key={keys.right.api_key}"),
    "a web page": Way(
        lambda keys: {**shown(keys.right.api_key), "origin": "https://evil.example"}, {403}, "connect"
    ),
    "another name of this machine": Way(
        lambda keys: {**shown(keys.right.api_key), "host": "evil.example"}, {403, 421}, "connect"
    ),
}


async def by_websocket(here: Premises, query: str, headers: dict[str, str]) -> int:
    titled = {name.title(): value for name, value in headers.items()}
    answer = await (await here.peer()).ask(f"/{query}", titled)
    return int(answer.split()[1])


async def by_http(here: Premises, query: str, headers: dict[str, str]) -> int:
    guest = await here.guest()
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    await guest.send("POST", f"/mcp{query}", headers, body)
    return (await guest.answer()).status


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("come", [by_websocket, by_http])
async def test_who_is_not_let_in_leaves_one_record(
    enter: Enter, way: str, come: Callable[[Premises, str, dict[str, str]], Awaitable[int]]
) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        keys = Keys(await create_key(at, agent="alice"), await create_key(at), new_key(secrets.choice))
        await revoke_key(at, keys.revoked)
        await here.settled()
        before = await last_number(at.runtime)
        tried = WAYS[way]
        status = await come(here, tried.query(keys), tried.headers(keys))
        assert status in tried.statuses
        await here.settled()
        (record,) = await since(at.runtime, before)
        assert (record.action, record.outcome, record.times) == (tried.action, "denied", 1)
        assert record.details == {"status": status}
        ids = {
            "right": keys.right.key.key_id,
            "revoked": keys.revoked.key.key_id,
            "wrong": keys.wrong.key_id,
            None: None,
        }
        assert record.key_id == ids[tried.shows]
        whole = msgspec.json.encode(record).decode()
        for key in (keys.right.api_key, keys.revoked.api_key, keys.wrong.whole):
            assert key.rpartition("_")[2] not in whole


async def test_who_fails_again_and_again_is_summed_by_address_and_fills_no_log(enter: Enter) -> None:
    async with enter(**QUIET) as at:
        await create_key(at)
        async with open_key_cache(at.runtime, clock=at.clock) as ring:
            before = await last_number(at.runtime)
            authenticator = KeyAuthenticator(ring, rate=60, burst=5, heard=partial(record_action, at.runtime))
            for number in range(300):
                headers = [(b"authorization", f"Bearer {new_key(secrets.choice).whole}".encode())]
                with pytest.raises(HttpRefusedError):
                    await authenticator.authenticate(Caller(address=f"192.0.2.{number % 3}"), headers)
            records = await since(at.runtime, before)
        failed = [each for each in records if each.details["status"] == 401]
        beyond = [each for each in records if each.details["status"] == 429]
        assert len(failed) == 15, "each with the id that it showed"
        assert sorted(each.address or "" for each in beyond) == ["192.0.2.0", "192.0.2.1", "192.0.2.2"]
        assert {each.key_id for each in beyond} == {None}
        assert sum(each.times for each in records) == 300


@pytest.mark.slow
async def test_figures_are_denied_to_who_is_no_administrator(enter: Enter) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        key = await create_key(at, "sessions:*")
        await here.settled()
        guest = await here.guest()
        await guest.send("GET", "/metrics", shown(key.api_key))
        assert (await guest.answer()).status == 403
        await here.settled()
        records = [each for each in await since(at.runtime, 0) if each.outcome == "denied"]
        assert [(each.action, each.key_id) for each in records] == [("read_metrics", key.key.key_id)]


@pytest.mark.slow
async def test_a_session_of_http_that_another_opened_is_denied_and_one_that_nobody_has_is_not_there(
    enter: Enter,
) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        mine, others = await create_key(at), await create_key(at)
        await here.settled()
        opened = (await here.session(mine)).session
        before = await last_number(at.runtime)
        for session in (opened, {**opened, "mcp-session-id": "nobodys"}):
            guest = await here.guest()
            await guest.send("POST", "/mcp", {**session, **shown(others.api_key)}, b"{}")
            assert (await guest.answer()).status == 404
        await here.settled()
        records = [each for each in await since(at.runtime, before) if each.outcome == "denied"]
        assert [(each.action, each.key_id, each.details) for each in records] == [
            ("take_http_session", others.key.key_id, {"status": 404})
        ]


async def test_what_is_beyond_a_quota_leaves_one_record_each(enter: Enter) -> None:
    async with enter(**QUIET) as at, premises(at) as here:
        key = await create_key(at, max_sessions=1, max_subscriptions=1, agent="bot")
        await here.settled()
        peer = await here.websocket(key)
        before = await last_number(at.runtime)
        for number in range(2):
            await peer.request("tools/call", {"name": "create_session", "arguments": {"purpose": "p"}})
            answer = told(await peer.receive())
            assert ("code" in answer) is bool(number)
        for number in range(2):
            await peer.request("resources/subscribe", {"uri": f"session://s{number}"})
            assert ("error" in await peer.receive()) is bool(number)
        await here.settled()
        records = [each for each in await since(at.runtime, before) if each.outcome == "denied"]
        assert [(each.action, each.agent, each.details["unit"]) for each in records] == [
            ("create_session", "bot", "sessions"),
            ("subscribe", "bot", "subscriptions"),
        ]
        assert {each.details["code"] for each in records} == {"QUOTA_EXCEEDED"}
