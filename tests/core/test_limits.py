"""Limits: how often a key may ask, whatever its connections; who fails is limited by address."""

from __future__ import annotations

import json
from ipaddress import ip_network
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from support.agents import AuditTrail, begin
from support.https import Guest
from support.keyed import administrator, bearer, create_key, premises, revoke_key
from support.websockets import TEXT, Peer, frame, told

from greenroom.actors import ApiKeyMade, RotateApiKey, open_key_cache
from greenroom.actors.core.keys.rate_limits import REMEMBERED, CountLimit, TokenBucket, TokenBuckets
from greenroom.transports import Caller, KeyAuthenticator
from greenroom.transports.base.config.parsers import network
from greenroom.transports.base.errors import HttpRefusedError, InvalidValueError
from greenroom.transports.base.net.addresses import client_address

if TYPE_CHECKING:
    from support.agents import Enter

pytestmark = pytest.mark.promise("limits.rate")


@given(
    st.integers(1, 10_000),
    st.integers(1, 100),
    st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=200),
)
@example(rate=348, burst=3, pauses=[0.0, 0.0, 0.0])  # three are a burst, whatever the sums are rounded to
def test_in_no_time_are_there_more_requests_than_were_promised(
    rate: int, burst: int, pauses: list[float]
) -> None:
    bucket, taken = TokenBucket(rate, burst), []
    times = list(accumulate(pauses, initial=1_000.0))[1:]
    for now in times:
        wait = bucket.take(now)
        if not wait:
            taken.append(now)
        elif wait > 1e-6:
            assert bucket.take(now + wait * 0.99) > 0
    assert taken[:burst] == times[:burst]  # it was full
    for first, began in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - began) * rate / 60 + 1e-6


def test_a_full_bucket_gives_a_burst_and_then_one_at_a_time() -> None:
    bucket = TokenBucket(60, 3)
    assert [bucket.take(100.0) for _ in range(5)] == [0, 0, 0, 1, 1]
    assert [bucket.take(101.0) for _ in range(2)] == [0, 1]
    assert [bucket.take(9_000.0) for _ in range(4)] == [0, 0, 0, 1]


def test_buckets_are_kept_as_far_as_there_is_room() -> None:
    buckets = TokenBuckets(60, 1)
    assert buckets.of("a").take(0.0) == 0
    assert buckets.of("a").take(0.0) > 0
    assert buckets.of("a", rate=30).take(0.0) == 0  # what it may take has changed
    for number in range(REMEMBERED + 5):
        buckets.of(str(number))
    assert len(buckets) == REMEMBERED
    assert buckets.of("newcomer").take(0.0) == 0
    assert buckets.of("newcomer").take(0.0) > 0  # whose bucket is not the one that goes


def test_a_tally_has_an_end() -> None:
    counter = CountLimit(2)
    assert [counter.add(), counter.add(), counter.add()] == [True, True, False]
    counter.remove()
    assert (counter.add(2), counter.add()) == (False, True)
    assert CountLimit(None).add(1_000_000)


# -- at the door -------------------------------------------------------------------------------------


async def ask(client: Peer, tool: str = "list_sessions", **arguments: Any) -> Any:
    await client.request("tools/call", {"name": tool, "arguments": arguments})
    return told(await client.receive())


async def http_ask(guest: Guest, key: ApiKeyMade) -> Any:
    params = {"name": "list_sessions", "arguments": {}}
    await guest.modern("tools/call", params, **bearer(key))
    return await guest.answer()


async def test_a_key_is_limited_over_all_its_connections(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=60, rate_burst=5) as here:
        await begin(at)
        key, other = await create_key(at), await create_key(at)
        await here.settled()
        peers = [await here.websocket(key), await here.websocket(key)]  # a handshake is a request, too
        answers = [await ask(peer) for peer in (*peers, *peers)]
        assert [answer["success"] for answer in answers] == [True, True, True, False]
        limited = answers[-1]
        assert (limited["code"], limited["details"]) == ("RATE_LIMITED", {"retry_after_ms": 1_000})
        again = await (await here.peer()).open("/", **bearer(key))  # connecting again does not help
        await again.request("initialize", {})
        failed = await again.receive()
        assert failed["error"]["data"] == {"code": "RATE_LIMITED", "retry_after_ms": 1_000}
        assert (await ask(await here.websocket(other)))["success"]
        await trio.sleep(1.01)
        assert (await ask(peers[0]))["success"]
        assert not (await ask(peers[1]))["success"]
        await peers[1].request("ping")
        assert "result" in await peers[1].receive()


@pytest.mark.slow
async def test_over_http_a_tool_says_when_to_come_back_and_else_the_status_does(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=6, rate_burst=2) as here:
        key = await create_key(at)
        await here.settled()
        guest = await here.guest()
        answers = [await http_ask(guest, key) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 200]
        assert [answer.json()["result"]["isError"] for answer in answers] == [False, False, True]
        told = json.loads(answers[-1].json()["result"]["content"][0]["text"])
        assert (told["code"], told["details"]) == ("RATE_LIMITED", {"retry_after_ms": 10_000})
        await guest.modern("tools/list", {}, **bearer(key))
        assert (await guest.answer()).status == 200, "some clients list the tools before each call"
        await guest.modern("resources/list", {}, **bearer(key))
        limited = await guest.answer()
        assert (limited.status, limited.headers["retry-after"]) == (429, "10")
        error = limited.json()["error"]
        assert (error["data"]["code"], error["data"]["retry_after_ms"]) == ("RATE_LIMITED", 10_000)
        assert (await guest.ask("GET", "/healthz")).status == 200
        await trio.sleep(10.1)
        session = await here.session(key)
        await session.request("resources/list")
        assert (await session.answer()).status == 429
        await session.request("tools/call", {"name": "list_sessions", "arguments": {}})
        called = await session.answer()
        assert (called.status, called.json()["result"]["isError"]) == (200, True)
        await session.request("ping")
        assert (await session.answer()).status == 200


@pytest.mark.slow
async def test_a_key_may_have_a_rate_of_its_own(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=60, rate_burst=2) as here:
        key = await create_key(at, rate_limit=60_000, burst=50)
        await here.settled()
        peer = await here.websocket(key)
        assert all([(await ask(peer))["success"] for _ in range(40)])


@pytest.mark.slow
async def test_without_a_key_nobody_is_limited(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=1, rate_burst=1) as here:
        peer = await here.websocket()
        assert all([(await ask(peer))["success"] for _ in range(30)])


@pytest.mark.promise("limits.failures")
async def test_guessing_is_slowed_down_and_who_has_a_key_is_not(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=60, rate_burst=3) as here:
        key = await create_key(at, rate_limit=6_000, burst=100)
        await here.settled()
        guest = await here.guest()
        wrong = {"authorization": "Bearer gr_aaaaaaaaaaaa_" + "b" * 43}
        statuses = [(await guest.ask("POST", **headers)).status for headers in ({}, wrong, {}, wrong, {})]
        assert statuses == [401, 401, 401, 429, 429]
        refused = await (await here.peer()).ask("/", wrong)
        assert refused.startswith(b"HTTP/1.1 429")
        assert b"retry-after: 1\r\n" in refused.lower()
        assert (await http_ask(guest, key)).status == 200
        await trio.sleep(1.01)
        assert (await guest.ask("POST", **wrong)).status == 401


@pytest.mark.slow
@pytest.mark.promise("limits.failures")
async def test_keys_that_are_made_up_keep_the_keeper_of_keys_no_busier(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await create_key(at)
        await here.settled()
        guest = await here.guest()
        before = at.runtime.statistics().messages.handled
        for letter in "abcdefghij":
            wrong = {"authorization": f"Bearer gr_{letter * 12}_" + "b" * 43}
            assert (await guest.ask("POST", **wrong)).status == 401
        asked = at.runtime.statistics().messages.handled - before
        assert asked == 10 + 2, "each is noted, and the keys were read anew for two of them"


def addresses(*found: str) -> list[Caller]:
    return [Caller(address=address) for address in found]


@pytest.mark.promise("limits.failures")
@pytest.mark.parametrize(
    ("one", "another", "together"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::1", "127.0.0.1", False),
    ],
)
async def test_an_address_of_ipv6_is_counted_with_those_that_one_host_has(
    enter: Enter, one: str, another: str, *, together: bool
) -> None:
    async with enter() as at, open_key_cache(at.runtime, required=True, clock=at.clock) as cache:
        authenticator, statuses = KeyAuthenticator(cache, rate=60, burst=2), []
        for caller in addresses(one, another, one, another):
            with pytest.raises(HttpRefusedError) as caught:
                await authenticator.authenticate(caller, [])
            statuses.append(caught.value.status)
        assert statuses == [401, 401, *([429, 429] if together else [401, 401])]


# -- what is no request ------------------------------------------------------------------------------


FLOODS = {
    "pings": '{"jsonrpc":"2.0","id":"p","method":"ping"}',
    "notifications": '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
    "answers": '{"jsonrpc":"2.0","id":"nobody asked","result":{}}',
    "no JSON": "{",
    "nothing": " ",
}


@pytest.mark.promise("limits.frames")
@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_what_is_no_request_is_read_at_its_pace(enter: Enter, flood: str) -> None:
    async with enter() as at, premises(at, rate_limit=60, rate_burst=2) as here:
        key, other = await create_key(at), await create_key(at)
        await here.settled()
        peer = await here.websocket(key)
        began = trio.current_time()
        await peer.stream.send_all(frame(TEXT, FLOODS[flood].encode()) * 100)
        last = await peer.request("ping")
        assert (await ask(await here.websocket(other)))["success"]  # nobody else waits for it
        assert trio.current_time() - began < 1
        while (await peer.receive()).get("id") != last:
            pass
        assert trio.current_time() - began >= 7  # ten in a second, and twenty at once


@pytest.mark.promise("limits.frames", "keys.revocation")
async def test_whoever_is_read_slowly_still_hears_that_its_key_is_revoked(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=1, rate_burst=1) as here:
        key = await create_key(at)
        await here.settled()
        peer = await (await here.peer()).open("/", **bearer(key))
        await peer.stream.send_all(frame(TEXT, FLOODS["pings"].encode()) * 100)
        await here.settled()
        began = trio.current_time()
        await revoke_key(at, key)
        assert (await peer.closed())[0] == 1008
        assert trio.current_time() - began < 1


@pytest.mark.slow
@pytest.mark.promise("limits.frames")
async def test_what_is_no_request_is_counted_over_http_too(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=6, rate_burst=1) as here:
        for ways in (
            ["GET"] * 11,
            ["DELETE"] * 11,
            ["PUT"] * 11,
            ["POST"] * 11,
        ):
            key = await create_key(at)
            await here.settled()
            guest = await here.guest()
            answers = [await guest.ask(way, **bearer(key)) for way in ways]
            assert [answer.status == 429 for answer in answers] == [False] * 10 + [True]
            assert answers[-1].headers["retry-after"] == "1"
            assert (await guest.ask("GET", "/healthz")).status == 200


@pytest.mark.promise("limits.frames")
async def test_connecting_again_and_again_is_counted(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=6, rate_burst=1) as here:
        key, other = await create_key(at), await create_key(at)
        await here.settled()
        answers = [await (await here.peer()).ask("/", bearer(key)) for _ in range(11)]
        assert [answer.startswith(b"HTTP/1.1 101") for answer in answers] == [True] * 10 + [False]
        assert answers[-1].startswith(b"HTTP/1.1 429")
        assert (await (await here.peer()).ask("/", bearer(other))).startswith(b"HTTP/1.1 101")
        trail = [row for row in await at.runtime.query(AuditTrail()) if row.action == "authenticate"]
        assert {row.outcome for row in trail} <= {"done"}  # it was a right key
        await trio.sleep(1.01)
        assert (await (await here.peer()).ask("/", bearer(key))).startswith(b"HTTP/1.1 101")


async def test_a_key_that_takes_another_s_place_takes_its_limit_over(enter: Enter) -> None:
    async with enter() as at, premises(at, rate_limit=6, rate_burst=2) as here:
        key = await create_key(at)
        fresh = await administrator(at).ask(RotateApiKey(key_id=key.key.key_id))
        await here.settled()
        guest = await here.guest()
        answers = [(await http_ask(guest, each)).json() for each in (key, fresh, key, fresh)]
        assert [answer["result"]["isError"] for answer in answers] == [False, False, True, True]


# -- what a key may have -----------------------------------------------------------------------------


@pytest.mark.promise("limits.quotas")
async def test_a_key_has_no_more_sessions_and_bytes_than_it_may(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, rate_limit=60_000, burst=1_000, max_sessions=2, max_stored_bytes=2_000)
        free = await create_key(at, rate_limit=60_000, burst=1_000)
        await here.settled()
        peer, other = await here.websocket(key), await here.websocket(free)
        for session_id in ("s", "t"):
            assert (await ask(peer, "create_session", purpose="p", session_id=session_id))["success"]
        refused = await ask(peer, "create_session", purpose="p", session_id="u")
        assert (refused["code"], refused["details"]["unit"]) == ("QUOTA_EXCEEDED", "sessions")
        assert (await ask(peer, "get_session", session_id="u"))["code"] == "SESSION_NOT_FOUND"
        assert (await ask(peer, "add_message", session_id="s", content="x" * 500))["success"]
        refused = await ask(peer, "set_memory", key="k", value="x" * 1_500)
        assert (refused["code"], refused["details"]["unit"]) == ("QUOTA_EXCEEDED", "stored bytes")
        assert (await ask(peer, "get_memory", key="k"))["code"] == "MEMORY_NOT_FOUND"
        assert (await ask(peer, "get_messages", session_id="s"))["total"] == 1
        assert not (await ask(peer, "delete_memory", key="k"))["existed"]
        assert (await ask(other, "add_message", session_id="s", content="x" * 5_000))["success"]


@pytest.mark.slow
@pytest.mark.promise("limits.quotas")
async def test_a_quota_of_bytes_counts_what_is_given_to_be_kept(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, rate_limit=60_000, burst=1_000, max_stored_bytes=100)
        await here.settled()
        peer = await here.websocket(key)
        assert (await ask(peer, "create_session", purpose="Ship release 2"))["success"]  # 14 bytes
        assert (await ask(peer, "start_session"))["success"]
        said = {"session_id": "s", "purpose": "p", "idempotency_key": "i" * 200}
        assert (await ask(peer, "create_session", **said))["success"]  # 2 bytes
        assert (await ask(peer, "add_message", session_id="s", content="ä" * 30))["success"]  # 61 bytes
        refused = await ask(peer, "set_memory", key="k", value="x" * 30)
        details = refused["details"]
        assert (refused["code"], details["limit"], details["used"]) == ("QUOTA_EXCEEDED", 100, 14 + 2 + 61)
        assert details["asked"] == 1 + 32
        assert "may have 100 stored bytes and has had 77, and this takes 33 more" in refused["error"]
        assert (await ask(peer, "set_memory", key="k", value="x" * 20))["success"]
        assert (await ask(peer, "add_message", session_id="s", content="x"))["code"] == "QUOTA_EXCEEDED"
        assert (await ask(peer, "start_session"))["success"], "it takes no bytes"


@pytest.mark.promise("limits.quotas")
async def test_a_key_begins_no_more_namespaces_than_it_may(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        key = await create_key(at, rate_limit=60_000, burst=1_000, max_namespaces=2, user="ann")
        free = await create_key(at, rate_limit=60_000, burst=1_000)
        await here.settled()
        peer, other = await here.websocket(key), await here.websocket(free)
        assert (await ask(other, "store_memory", content="x", namespace="team:theirs"))["success"]
        for namespace in ("team:one", "team:one:sub", "team:theirs", "user:ann", "team:one"):
            assert (await ask(peer, "store_memory", content="x", namespace=namespace))["success"]
        assert (await ask(peer, "store_memory", content="x", namespace="team:two"))["success"]
        refused = await ask(peer, "store_memory", content="x", namespace="team:last")
        assert (refused["code"], refused["details"]["unit"]) == ("QUOTA_EXCEEDED", "namespaces")
        assert (await ask(other, "store_memory", content="x", namespace="team:last"))["success"]
        assert (await ask(peer, "store_memory", content="x", namespace="team:last"))["success"]


@pytest.mark.promise("limits.quotas")
async def test_a_quota_tells_nobody_whether_there_is_something_in_a_namespace(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        limits = {"rate_limit": 60_000, "burst": 1_000, "max_namespaces": 1}
        key = await create_key(at, "memory:*", projects=["other"], user="ann", **limits)
        bobs = await create_key(at, rate_limit=60_000, burst=1_000, user="bob")
        await here.settled()
        peer, bob = await here.websocket(key), await here.websocket(bobs)
        assert (await ask(bob, "store_memory", content="x", namespace="user:bob"))["success"]
        denied = ("user:bob", "user:bob:sub", "user:carol", "project:atlas", "agent:somebody")
        for code in ("before", "after"):
            for namespace in denied:
                refused = await ask(peer, "store_memory", content="x", namespace=namespace)
                assert refused["code"] == "PERMISSION_DENIED"
                assert repr(namespace) in refused["error"]
            refused = await ask(peer, "store_memory", content="x", namespace="User:dora")
            assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "namespace")
            if code == "before":  # nothing of that was counted
                assert (await ask(peer, "store_memory", content="x", namespace="team:one"))["success"]
        refused = await ask(peer, "store_memory", content="x", namespace="team:two")
        assert refused["code"] == "QUOTA_EXCEEDED"


@pytest.mark.slow
@pytest.mark.promise("limits.quotas")
async def test_a_quota_outlives_the_server_and_the_rotation_of_the_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, max_sessions=1)
        await here.settled()
        said = {"purpose": "p", "session_id": "s", "idempotency_key": "i"}
        for _ in range(2):  # a repeat is counted once
            assert (await ask(await here.websocket(key), "create_session", **said))["success"]
    async with enter() as at, premises(at) as here:
        fresh = await administrator(at).ask(RotateApiKey(key_id=key.key.key_id))
        await here.settled()
        for each in (key, fresh):
            answer = await ask(await here.websocket(each), "create_session", purpose="p")
            assert answer["code"] == "QUOTA_EXCEEDED"


@pytest.mark.promise("limits.quotas")
async def test_a_key_hears_of_no_more_resources_than_it_may(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, max_subscriptions=2)
        await here.settled()
        one, other = await here.websocket(key), await here.websocket(key)

        async def subscribe(peer: Peer, uri: str, method: str = "resources/subscribe") -> Any:
            await peer.request(method, {"uri": uri})
            return (await peer.receive()).get("error", {}).get("data", {}).get("code", "ok")

        assert await subscribe(one, "session://a") == "ok"
        assert await subscribe(one, "session://a") == "ok"
        assert await subscribe(other, "session://b") == "ok"
        assert await subscribe(other, "session://c") == "QUOTA_EXCEEDED"
        await subscribe(one, "session://a", "resources/unsubscribe")
        assert await subscribe(other, "session://c") == "ok"
        await other.stream.aclose()
        await here.settled()
        assert [await subscribe(one, f"session://{name}") for name in "xyz"] == ["ok", "ok", "QUOTA_EXCEEDED"]


# -- where somebody comes from -----------------------------------------------------------------------


@pytest.mark.promise("limits.failures")
@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("10.0.0.1", ["for=192.0.2.1"], "192.0.2.1"),
        ("192.0.2.9", ["for=192.0.2.1"], "192.0.2.9"),  # no proxy of ours says so
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["for=203.0.113.5, for=192.0.2.1"], "192.0.2.1"),  # what the client made up is before
        ("10.0.0.1", ["for=203.0.113.5", "for=192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", ["for=192.0.2.1, for=10.0.0.7"], "192.0.2.1"),
        ("10.0.0.1", ['for="192.0.2.1:4711";proto=https;by=10.0.0.1'], "192.0.2.1"),
        ("10.0.0.1", ['proto=https; For="[2001:db8::7]:443"'], "2001:db8::7"),
        ("::ffff:10.0.0.1", ['for="[::ffff:192.0.2.1]"'], "192.0.2.1"),
        ("10.0.0.1", ["for=unknown"], "10.0.0.1"),
        ("10.0.0.1", ["for=192.0.2.1, for=_hidden"], "10.0.0.1"),
        ("10.0.0.1", ["for=192.0.2.1, for=_hidden, for=10.0.0.7"], "10.0.0.7"),
        ("10.0.0.1", ['for="192.0.2.1, for=10.0.0.9'], "10.0.0.9"),
        ("10.0.0.1", ['for="192.0.2.1, for=198.51.100.7'], "198.51.100.7"),  # a quote that swallows nothing
        ("10.0.0.1", ["nothing at all"], "10.0.0.1"),
        ("10.0.0.1", ["for=192.0.2.1;" + "x" * 10_000], "10.0.0.1"),
        ("10.0.0.1", ["," * 100_000], "10.0.0.1"),
        (None, ["for=192.0.2.1"], None),
    ],
)
def test_only_what_a_trusted_proxy_says_counts(peer: str | None, forwarded: list[str], found: str) -> None:
    assert client_address(peer, forwarded, [ip_network("10.0.0.0/8")]) == found
    assert client_address(peer, forwarded, []) == peer


def test_networks_are_read() -> None:
    assert network(" 10.0.0.0/8 ") == "10.0.0.0/8"
    assert network("::1") == "::1/128"
    for wrong in ("", "proxy", "10.0.0.1/8", 7):
        with pytest.raises(InvalidValueError):
            network(wrong)


@pytest.mark.promise("limits.quotas")
async def test_another_request_under_the_same_idempotency_key_is_counted_too(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, rate_limit=60_000, burst=1_000, max_stored_bytes=2_000)
        await here.settled()
        peer = await here.websocket(key)
        assert (await ask(peer, "set_memory", key="k", value="x", idempotency_key="i"))["success"]
        for content in ("x" * 9_000, "y" * 9_000):
            refused = await ask(peer, "store_memory", content=content, idempotency_key="i")
            assert (refused["code"], refused["details"]["unit"]) == ("QUOTA_EXCEEDED", "stored bytes")
        assert (await ask(peer, "list_memories"))["memories"] == []
