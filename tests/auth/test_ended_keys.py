"""Whole keys that have ended, shown over each transport: the SDK's client passes on when and why."""

from __future__ import annotations

import re
import secrets
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from core.test_keys_process import create, keys
from harness import PATIENCE, clean_environment
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from support.agents import begin
from support.forking import forked_program
from support.keyed import administrator, bearer, create_key, premises, revoke_key
from support.sdk_clients import ERAS, TRANSPORTS, Mode, Transport, listening

from greenroom.actors import EraseUser
from greenroom.actors.core.auth.key_format import new_key, parse_key
from greenroom.transports import websocket_client

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

pytestmark = pytest.mark.promise("keys.store")

INSTANT = r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
NOT_VALID = "the key is not valid on this server"


def with_another_secret(key: str) -> str:
    shown = parse_key(key)
    assert shown is not None
    return shown._replace(secret=new_key(secrets.choice).secret).whole


async def refusal(home: Path, transport: Transport, mode: Mode, key: str) -> str:
    """Return what the SDK's client raises that shows a key."""
    async with AsyncExitStack() as stack:
        target: Any
        if transport == "stdio":
            command = [*forked_program(), "serve", "--data", str(home / "store")]
            target = StdioServerParameters(
                command=command[0],
                args=command[1:],
                env={**clean_environment(home), "GREENROOM_API_KEY": key},
            )
        else:
            url = await stack.enter_async_context(listening(home, transport))
            header = {"Authorization": f"Bearer {key}"}
            if transport == "ws":
                target = websocket_client(url, headers=header)
            else:
                sender = await stack.enter_async_context(httpx2.AsyncClient(headers=header))
                target = streamable_http_client(url, http_client=sender)
        told: list[str] = []
        try:
            with trio.fail_after(PATIENCE):
                async with Client(target, mode=mode) as client:
                    await client.list_tools()
        except Exception as error:  # noqa: BLE001 - whatever a client raises
            _collect(error, told)
        assert told, "the key let the client in"
        return "\n".join(told)


def _collect(error: BaseException, told: list[str]) -> None:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            _collect(each, told)
    else:
        told.append(str(error))


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_sdks_client_hears_when_its_key_ended_and_of_a_wrong_one_nothing(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    revoked = await trio.to_thread.run_sync(create, tmp_path)
    rotated = await trio.to_thread.run_sync(create, tmp_path)
    old, ended = rotated["key"]["key_id"], revoked["key"]["key_id"]
    await trio.to_thread.run_sync(keys, tmp_path, "revoke", ended)
    rotation = await trio.to_thread.run_sync(keys, tmp_path, "rotate", old, "--overlap", "0")
    following = parse_key(rotation.strip())
    assert following is not None
    hear = partial(refusal, tmp_path, transport, mode)
    assert re.search(
        f"the key {ended} was revoked at {INSTANT}; ask for a new one", await hear(revoked["api_key"])
    )
    assert re.search(
        f"the key {old} expired at {INSTANT}; the key {following.key_id} replaces it",
        await hear(rotated["api_key"]),
    )
    for wrong in (with_another_secret(revoked["api_key"]), new_key(secrets.choice).whole):
        told = await hear(wrong)
        assert NOT_VALID in told
        assert not re.search("revoked|expired", told)


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/sessions"])
async def test_wrong_keys_are_refused_alike_to_the_byte_whatever_became_of_the_right_one(
    enter: Enter, path: str
) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        ended, going = await create_key(at), await create_key(at)
        await revoke_key(at, ended)
        await here.settled()
        refused = set()
        for key in (
            new_key(secrets.choice).whole,
            with_another_secret(ended.api_key),
            with_another_secret(going.api_key),
        ):
            guest = await here.guest()
            answer = await guest.ask("GET", path, authorization=f"Bearer {key}")
            headers = {name: value for name, value in answer.headers.items() if name != "date"}
            refused.add((answer.status, answer.body, tuple(sorted(headers.items()))))
        ((status, body, lines),) = refused
        assert status == HTTPStatus.UNAUTHORIZED
        assert NOT_VALID in body.decode()
        assert f'error_description="{NOT_VALID}; send the header' in dict(lines)["www-authenticate"]


async def test_a_wrong_secret_costs_the_same_look_at_the_store_whether_the_id_is_known(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enter() as at, premises(at) as here:
        key = await create_key(at)
        await here.settled()
        looks: list[str] = []
        load = here.cache.load

        async def counted() -> None:
            looks.append(shown)
            await load()

        monkeypatch.setattr(here.cache, "load", counted)
        wrong = [with_another_secret(key.api_key), new_key(secrets.choice).whole]
        for shown in wrong:
            assert (await (await here.guest()).ask("GET", authorization=f"Bearer {shown}")).status == 401
            await trio.sleep(60)
        assert looks == wrong


async def test_after_an_erasure_a_key_is_not_valid_and_no_more_is_said(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at, user="ann")
        await here.settled()
        websocket = await here.websocket(key)
        await administrator(at).ask(EraseUser(user="ann", confirm=True))
        code, reason = await websocket.closed()
        assert (code, reason.startswith(f"the key {key.key.key_id} was revoked at 2")) == (1008, True)
        await here.settled()
        answer = await (await here.guest()).ask("GET", **bearer(key))
        assert (answer.status, NOT_VALID in answer.body.decode()) == (401, True)


async def test_a_session_of_http_hears_why_its_key_ended(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        key = await create_key(at)
        await here.settled()
        session, browser = await here.session(key), await here.guest()
        await revoke_key(at, key)
        await here.settled()
        await session.request("tools/list")
        refused = (await session.answer()).json()["error"]["message"]
        assert re.fullmatch(f"the key {key.key.key_id} was revoked at {INSTANT}; ask for a new one", refused)
        problem = await browser.ask("GET", "/api/v1/sessions", **bearer(key))
        assert refused in problem.body.decode()
