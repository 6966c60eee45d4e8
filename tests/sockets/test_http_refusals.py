"""Refusals at `/mcp` that are Greenroom's own: the SDK's client shows their sentence, in both eras."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from harness import PATIENCE
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from sockets.test_http_reference import HOST, MEDIA, call, ours
from support.desk import Desk
from support.sdk_clients import ERAS, Mode, listening

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.promise("http.refusals")

WRONG_URLS = {
    "schemas=strict": "schemas is 'strict', but",
    "tools=nosuch": "tools is 'nosuch', but",
    "agent=a/b": "agent is 'a/b', but",
    "who=ann": "the URL has no parameter 'who'; it takes agent",
    "agent=a&agent=b": "agent is given 2 times; give it once",
    "api_key=x": "does not belong in a URL",
}
WRONG_HEADERS = {
    "greenroom-schemas": "schemas is 'a/b', but",
    "greenroom-tools": "tools is 'a/b', but",
    "greenroom-agent": "agent is 'a/b', but",
}


async def told(url: str, mode: Mode, headers: dict[str, str]) -> str:
    """Return what the SDK's client raises at a URL."""
    async with AsyncExitStack() as stack:
        sender = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
        try:
            with trio.fail_after(PATIENCE):
                async with Client(streamable_http_client(url, http_client=sender), mode=mode) as client:
                    await client.list_tools()
        except Exception as error:  # noqa: BLE001 - whatever a client raises
            return "\n".join(_sentences(error))
    raise AssertionError("it was let in")


def _sentences(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [sentence for each in error.exceptions for sentence in _sentences(each)]
    return [str(error)]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_sdks_client_shows_what_is_wrong_in_a_url_or_a_header(tmp_path: Path, mode: Mode) -> None:
    async with listening(tmp_path, "http") as url:
        for query, sentence in WRONG_URLS.items():
            assert sentence in await told(f"{url}?{query}", mode, {}), query
        for name, sentence in WRONG_HEADERS.items():
            assert sentence in await told(url, mode, {name: "a/b"}), name


SMUGGLED = {"transfer-encoding": "chunked"}


@pytest.mark.quick
@pytest.mark.parametrize("version", [None, "2026-07-28"])
async def test_all_that_the_sdks_server_does_not_refuse_is_an_error_of_json_rpc(version: str | None) -> None:
    server, app = ours(Desk())
    plain = {"host": HOST, "accept": MEDIA, "content-type": "application/json"}
    plain["mcp-protocol-version"] = version  # type: ignore[assignment]  # None is no header

    async def refused(**headers: str) -> tuple[int, str, int]:
        called = await call(app, "POST", {**plain, **headers}, b"{}")
        assert called.headers["content-type"] == "application/json"
        answer: dict[str, Any] = json.loads(called.body)
        return called.status, answer["error"]["message"], answer["error"]["code"]

    async with server.running(), app.running():
        status, sentence, code = await refused(**SMUGGLED)
        assert (status, code) == (HTTPStatus.BAD_REQUEST, -32600)
        assert "given twice" in sentence
        await app.drain()
        assert await refused() == (HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping", -32603)
        elsewhere = await call(app, "POST", {**plain, "host": "evil.example"}, b"{}")
        assert elsewhere.status == HTTPStatus.MISDIRECTED_REQUEST
        assert elsewhere.headers["content-type"].startswith("text/plain"), "as the SDK's server has it"
