"""Keys at the door: who comes in over WebSocket and HTTP, as whom, and until when."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import AuditTrail, begin
from support.https import UPDATED, Guest
from support.https import told as http_told
from support.keyed import Premises, bearer, create_key, premises, revoke_key
from support.websockets import Peer, told

from greenroom.actors import AddMessage, ApiKeyMade
from greenroom.actors.core.auth.key_format import new_key

if TYPE_CHECKING:
    from support.agents import Enter

pytestmark = pytest.mark.promise("keys.sockets")


async def call(client: Peer, tool: str, **arguments: Any) -> Any:
    await client.request("tools/call", {"name": tool, "arguments": arguments})
    return told(await client.receive())


async def http_call(guest: Guest, tool: str, *, modern: bool = False, **arguments: Any) -> Any:
    headers = arguments.pop("headers", {})
    params = {"name": tool, "arguments": arguments}
    await (guest.modern if modern else guest.request)("tools/call", params, **headers)
    answer = await guest.answer()
    assert answer.status == 200, answer
    return http_told(answer.json())


async def refused_by_websocket(here: Premises, target: str = "/", **headers: str | None) -> bytes:
    return await (await here.peer()).ask(target, headers)


@pytest.mark.slow
async def test_a_key_says_who_somebody_is_on_every_way_in(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "sessions:*", agent="bot", user="ann")
        await here.settled()
        websocket, session, modern = (
            await here.websocket(key),
            await here.session(key),
            await here.guest(),
        )
        said: dict[str, Any] = {"session_id": "s", "content": "hello"}
        await call(websocket, "add_message", **said)
        await http_call(session, "add_message", **said)
        await http_call(modern, "add_message", modern=True, headers=bearer(key), **said)
        page = await call(websocket, "get_messages", session_id="s")
        assert [message["sender"] for message in page["messages"]] == ["bot"] * 3


async def come_as(here: Premises, key: ApiKeyMade, agent: str) -> Peer:
    return await (await (await here.peer()).open(f"/?agent={agent}", **bearer(key))).initialize()


@pytest.mark.slow
async def test_a_key_that_is_bound_to_no_agent_opens_no_other_users_agent(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        bound = await create_key(at, "*", agent="bot", user="ann")
        loose = await create_key(at, "*", user="ann")
        second = await create_key(at, "*", user="ann")
        other = await create_key(at, "*", user="bob")
        await here.settled()
        anns = await come_as(here, loose, "bot")
        await call(anns, "set_memory", key="k", value="secret")
        said = {"session_id": "s", "content": "hello", "visibility": "private"}
        await call(anns, "add_message", **said)
        own = await call(anns, "get_messages", session_id="s")
        name = own["messages"][0]["sender"]
        assert name.startswith("bot.")
        same = await come_as(here, second, "bot")
        assert (await call(same, "get_memory", key="k"))["value"] == "secret"
        for key, claimed in ((other, "bot"), (other, name), (loose, name), (bound, "bot")):
            stranger = await come_as(here, key, claimed)
            assert (await call(stranger, "get_memory", key="k"))["code"] == "MEMORY_NOT_FOUND"
            assert (await call(stranger, "get_messages", session_id="s"))["messages"] == []


@pytest.mark.slow
@pytest.mark.promise("identity.scopes")
async def test_a_key_shows_and_opens_what_its_scopes_reach(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, "sessions:read")
        chief = await create_key(at, "*", "admin")
        await here.settled()
        modern = await here.guest()
        await modern.modern("tools/list", **bearer(key))
        listed = (await modern.answer()).json()["result"]
        websocket = await here.websocket(key)
        await websocket.request("tools/list")
        assert (await websocket.receive())["result"]["tools"] == listed["tools"]
        names = {tool["name"] for tool in listed["tools"]}
        assert "get_session" in names
        assert not names & {"add_message", "get_memory", "create_api_key"}
        assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
        failed = await call(websocket, "add_message", session_id="s", content="x")
        assert (failed["code"], failed["details"]) == ("PERMISSION_DENIED", {"scope": "sessions:write"})
        await websocket.request("resources/templates/list")
        templates = (await websocket.receive())["result"]["resourceTemplates"]
        assert {template["name"] for template in templates} == {
            "session",
            *("workflow_pattern", "omnimemory_workflow_pattern"),
            *("conversation", "omnimemory_conversation"),
        }
        await websocket.request("resources/subscribe", {"uri": "agent://tester/memory"})
        assert (await websocket.receive())["error"]["data"]["code"] == "PERMISSION_DENIED"
        await websocket.request("resources/read", {"uri": "agent://tester/memory"})
        assert (await websocket.receive())["error"]["data"]["scope"] == "memory:read"
        admin = await here.websocket(chief)
        await admin.request("tools/list")
        assert "revoke_api_key" in {tool["name"] for tool in (await admin.receive())["result"]["tools"]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Basic dXNlcjpwYXNz"},
        {"authorization": "Bearer gr_aaaaaaaaaaaa_" + "a" * 43},
        {"authorization": "Bearer eyJhbGciOiJub25lIn0.e30."},
        {"authorization": "gr_aaaaaaaaaaaa_" + "a" * 43},
    ],
)
async def test_without_a_right_key_nobody_comes_in(enter: Enter, headers: dict[str, Any]) -> None:
    async with enter() as at, premises(at) as here:
        await create_key(at)
        await here.settled()
        answer = await refused_by_websocket(here, **headers)
        assert answer.startswith(b"HTTP/1.1 401"), answer
        assert b'www-authenticate: bearer realm="greenroom"' in answer.lower()
        guest = await here.guest()
        for ask in (guest.modern("tools/list", **headers), guest.request("initialize", {}, **headers)):
            await ask
            told = await guest.answer()
            assert told.status == 401
            assert told.headers["www-authenticate"].startswith('Bearer realm="greenroom"')
        assert (await guest.ask("GET", "/metrics", **headers)).status == 401
        assert (await guest.ask("GET", "/healthz")).status == 200


@pytest.mark.slow
async def test_the_header_is_given_once(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        peer = await here.peer()
        twice = f"Bearer {key.api_key}\r\nAuthorization: Bearer {key.api_key}"
        answer = await peer.ask("/", {"authorization": twice})
        assert answer.startswith(b"HTTP/1.1 400")
        assert key.api_key.encode() not in answer


@pytest.mark.slow
@pytest.mark.promise("keys.nowhere-else")
@pytest.mark.parametrize(
    "query",
    [
        "api_key={}",
        "token={}",
        "agent={}",
        "{}=1",
        "{}",
        "x=%67%72_{rest}",
        "Authorization=Bearer%20{}",
        "key=x",
    ],
)
async def test_a_key_in_a_url_is_refused_and_is_told_nowhere(
    enter: Enter, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        target = "/mcp?" + query.format(key.api_key, rest=key.api_key[3:])
        answer = await refused_by_websocket(here, target, **bearer(key))
        guest = await here.guest()
        told = await guest.ask("POST", target, **bearer(key))
        for said in (answer, b"%d " % told.status + told.body):
            assert b"400" in said
            assert b"Authorization: Bearer" in said
        secret = key.api_key.rpartition("_")[2]
        assert secret not in f"{caplog.text}{told.body!r}{answer!r}"


@pytest.mark.slow
@pytest.mark.promise("keys.nowhere-else")
async def test_a_key_in_a_path_or_in_the_wrong_place_is_not_repeated(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        secret = key.api_key.rpartition("_")[2]
        guest = await here.guest()
        told = [
            await guest.ask("GET", f"/{key.api_key}", **bearer(key)),
            await guest.ask("GET", "/mcp", greenroom_agent=key.api_key, **bearer(key)),
            await guest.ask("GET", "/mcp", origin=f"https://{key.api_key}.org", **bearer(key)),
            await guest.ask("GET", "/mcp", host=f"{key.api_key}.org", **bearer(key)),
            await guest.ask("GET", "/mcp", authorization=f"Bearer {key.api_key}x"),
        ]
        answer = await refused_by_websocket(here, f"/{key.api_key}", **bearer(key))
        assert [each.status for each in told] == [404, 400, 403, 421, 401]
        assert secret[:12] not in f"{caplog.text}{told!r}{answer!r}"


@pytest.mark.promise("keys.nowhere-else")
async def test_a_key_that_is_given_for_a_name_is_not_repeated(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        websocket, text = await here.websocket(key), key.api_key
        told: list[Any] = []
        for tool, arguments in (
            ("get_memory", {"key": text}),
            ("get_session", {"session_id": text}),
            ("update_memory", {"key": text, "content": "x"}),
            ("revoke_api_key", {"key_id": text}),
            ("add_message", {"session_id": "s", text: "x"}),
            (text, {}),
        ):
            await websocket.request("tools/call", {"name": tool, "arguments": arguments})
            told.append(await websocket.receive())
        for uri in (f"session://{text}", text):
            await websocket.request("resources/read", {"uri": uri})
            told.append(await websocket.receive())
        assert all("error" in answer or answer["result"]["isError"] for answer in told), told
        assert text.rpartition("_")[2][:8] not in str(told)


@pytest.mark.slow
async def test_what_a_key_is_bound_to_is_not_taken_for_more(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, "*:read", agent="bot", agent_type="worker", projects=["p", "q"])
        await here.settled()
        for headers, status in (
            ({"greenroom-agent": "other"}, 403),
            ({"greenroom-agent-type": "other"}, 403),
            ({"greenroom-project": "r"}, 403),
            ({"greenroom-project": "p,r"}, 403),
            ({"greenroom-agent": "bot", "greenroom-agent-type": "worker", "greenroom-project": "p"}, 101),
        ):
            answer = await refused_by_websocket(here, **bearer(key), **headers)
            assert answer.startswith(b"HTTP/1.1 %d" % status), (headers, answer)
        answer = await refused_by_websocket(here, "/?agent=other", **bearer(key))
        assert answer.startswith(b"HTTP/1.1 403")


async def test_a_session_is_its_opener_s_alone(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        one, other = await create_key(at), await create_key(at)
        await here.settled()
        session = await here.session(one)
        thief = await here.guest()
        thief.session = {**session.session, **bearer(other)}
        await thief.request("tools/list")
        assert (await thief.answer()).status == 404
        thief.session = {**session.session, "authorization": None}
        await thief.request("tools/list")
        assert (await thief.answer()).status == 401


@pytest.mark.slow
async def test_metrics_are_for_administrators_where_there_are_keys(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        guest = await here.guest()
        assert (await guest.ask("GET", "/metrics")).status == 200
        some, chief = await create_key(at, "*:read"), await create_key(at, "admin")
        await here.settled()
        assert (await guest.ask("GET", "/metrics", **bearer(some))).status == 403
        assert (await guest.ask("GET", "/metrics", **bearer(chief))).status == 200


async def test_a_browser_may_ask_what_it_may_send_before_it_sends_its_key(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await create_key(at)
        await here.settled()
        asked = {"origin": "http://localhost:3000", "access_control_request_method": "POST"}
        guest = await here.guest()
        told = await guest.ask("OPTIONS", **asked, access_control_request_headers="authorization")
        assert (told.status, told.headers["access-control-allow-headers"]) == (204, "authorization")


@pytest.mark.slow
async def test_without_keys_everybody_comes_in_but_not_with_a_wrong_one(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await call(await here.websocket(), "create_session", purpose="p")
        answer = await refused_by_websocket(here, authorization=f"Bearer {new_key(secrets.choice).whole}")
        assert answer.startswith(b"HTTP/1.1 401")


async def test_where_keys_are_required_nobody_comes_in_before_there_is_one(enter: Enter) -> None:
    async with enter() as at, premises(at, required=True) as here:
        assert (await refused_by_websocket(here)).startswith(b"HTTP/1.1 401")


@pytest.mark.slow
@pytest.mark.promise("keys.nowhere-else")
async def test_the_audit_log_tells_who_was_let_in_and_who_was_not(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        wrong = new_key(secrets.choice)
        await refused_by_websocket(here)
        await refused_by_websocket(here, authorization=f"Bearer {wrong.whole}")
        guest = await here.guest()
        for _ in range(3):
            await guest.modern("tools/list", **bearer(key))
            assert (await guest.answer()).status == 200
        await here.settled()
        trail = [row for row in await at.runtime.query(AuditTrail()) if row.action == "authenticate"]
        assert [(row.outcome, row.key_id) for row in trail] == [
            ("denied", None),
            ("denied", wrong.key_id),
            ("done", key.key.key_id),
        ]
        assert wrong.secret not in str(trail)


@pytest.mark.slow
async def test_a_key_opens_as_soon_as_it_is_told(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        for _ in range(2):
            key = await create_key(at)  # and nobody waits until the ring has heard of it
            await here.websocket(key)


# -- the end of a key --------------------------------------------------------------------------------


async def ended_within_a_second(here: Premises, key: ApiKeyMade, websocket: Peer) -> None:
    began = trio.current_time()
    await revoke_key(here.at, key)
    code, reason = await websocket.closed()
    assert code == 1008
    assert reason.startswith(f"the key {key.key.key_id} was revoked at 2")
    assert trio.current_time() - began < 1


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_revoking_a_key_ends_its_connections_and_nobody_else_s(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key, other = await create_key(at), await create_key(at)
        await here.settled()
        mine, again, others = [await here.websocket(each) for each in (key, key, other)]
        await ended_within_a_second(here, key, mine)
        assert (await again.closed())[0] == 1008
        assert (await call(others, "get_session", session_id="s"))["success"]
        assert (await refused_by_websocket(here, **bearer(key))).startswith(b"HTTP/1.1 401")


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_revoking_a_key_ends_its_subscriptions(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        key = await create_key(at, "sessions:read")
        await here.settled()
        websocket = await here.websocket(key)
        await websocket.request("resources/subscribe", {"uri": "session://s"})
        assert "result" in await websocket.receive()
        await alice.ask(AddMessage(session_id="s", content="one"))
        assert (await websocket.receive())["method"] == UPDATED
        before = at.runtime.statistics().bus.subscriptions
        await ended_within_a_second(here, key, websocket)
        await here.settled()
        assert at.runtime.statistics().bus.subscriptions < before


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_revoking_a_key_ends_its_sessions_and_streams_of_http(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        alice = await begin(at)
        key = await create_key(at, "sessions:read")
        await here.settled()
        session = await here.session(key)
        await session.request("resources/subscribe", {"uri": "session://s"})
        assert (await session.answer()).status == 200
        stream = await here.guest()
        stream.session = session.session
        await stream.listen()
        modern = await here.guest()
        listen = {"notifications": {"resourceSubscriptions": ["session://s"]}}
        await modern.modern("subscriptions/listen", listen, **bearer(key))
        assert (await modern.head())[0] == 200
        acknowledged = await modern.event()
        assert acknowledged is not None
        assert len(here.app.sessions) == 1
        await revoke_key(at, key)
        began = trio.current_time()
        await modern.hung_up()
        await stream.events()
        assert trio.current_time() - began < 1
        assert len(here.app.sessions) == 0
        await alice.ask(AddMessage(session_id="s", content="nobody hears of this"))
        await session.request("tools/list")
        assert (await session.answer()).status == 401
        assert at.runtime.statistics().bus.subscriptions == 1  # the ring's own


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_an_expired_key_ends_its_connections(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at, expires_in_days=1)
        await here.settled()
        peer = await (await here.peer()).open("/", **bearer(key))
        while not await _closes_within(peer, 3_600):
            assert trio.current_time() < 25 * 3_600


async def _closes_within(peer: Peer, seconds: float) -> bool:
    with trio.move_on_after(seconds):
        while (await peer.event()) is not None:
            pass
        return True
    return False


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_whoever_came_without_a_key_goes_with_the_first_one(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        websocket, session = await here.websocket(), await here.session()
        await create_key(at)
        assert await websocket.closed() == (1008, "a key is needed from now on")
        await here.settled()
        assert len(here.app.sessions) == 0
        await session.request("tools/list")
        assert (await session.answer()).status == 401


@pytest.mark.slow
@pytest.mark.promise("keys.revocation")
async def test_a_key_that_is_revoked_while_its_handshake_arrives_leaves_nothing_behind(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        guest = await here.guest()
        content = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        content += b'"capabilities":{},"clientInfo":{"name":"late","version":"1"}}}'
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key.api_key}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        await guest.stream.send_all(head.encode() + content[:9])
        await here.settled()
        await revoke_key(at, key)
        await here.settled()
        await guest.stream.send_all(content[9:])
        assert b"Connection closed" in await guest.stream.receive_some(4_096)
        assert (len(here.app.sessions), len(here.cache._holds)) == (0, 0)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Basic YTpi"}, {"Authorization": f"Bearer gr_{'a' * 12}_{'b' * 43}"}],
)
async def test_who_is_turned_away_is_told_which_header_opens(enter: Enter, headers: dict[str, str]) -> None:
    async with enter() as at, premises(at) as here:
        await create_key(at, "*")
        await here.settled()
        refused = await (await here.guest()).ask("POST", **headers)
        over_websocket = await refused_by_websocket(here, **headers)
    assert refused.status == 401
    for answer in (refused.body, over_websocket):
        assert b"send the header Authorization: Bearer gr_..." in answer
