"""The MCP Inspector, a client of another SDK in another language, drives the server over stdio and HTTP."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from conformance import node
from harness import PATIENCE, clean_environment
from support.forking import forked_program
from support.listed import LISTED
from support.sdk_clients import listening

from greenroom.actors import TEMPLATES

Era = Literal["legacy", "modern", "auto"]
ERAS: list[Era] = ["legacy", "modern", "auto"]
AGENT = "inspector-cli"
MEMORY = f"agent://{AGENT}/memory"
FAILED, TOOL_FAILED = 1, 5  # the inspector's exit codes


class Inspector:
    """The inspector's command line.

    Args:
        home: Where the store is.
        era: What it is told to speak.
        url: Where the server is; without it each use starts a server of its own.
    """

    def __init__(self, home: Path, era: Era, url: str | None = None) -> None:
        self._command = [*node.command("inspector"), "--cli", "--protocol-era", era, "--format", "json", "-q"]
        # It calls no tool that is not listed.
        server = ["--", *forked_program(), "serve", "--data", str(home / "store"), "--tools", "all"]
        self._target = server if url is None else ["--transport", "http", "--server-url", f"{url}?tools=all"]
        self._environment = clean_environment(home)

    async def use(self, method: str, *options: str) -> tuple[int, Any, str]:
        """Return the exit code, the result and what was said of errors."""
        with trio.fail_after(PATIENCE):
            done = await trio.run_process(
                [*self._command, "--method", method, *options, *self._target],
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=self._environment,
            )
        printed = json.loads(done.stdout)["result"] if done.stdout else None
        return done.returncode, printed, done.stderr.decode()

    async def result(self, method: str, *options: str) -> Any:
        """Return the result of what must succeed."""
        code, result, said = await self.use(method, *options)
        assert code == 0, said
        return result

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Return what a tool answers, which must not be a failure."""
        given = json.dumps(arguments)
        result = await self.result("tools/call", "--tool-name", tool, "--tool-args-json", given)
        assert result["isError"] is False
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result


@pytest.mark.promise("mcp.inspector")
@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_lists_calls_and_reads(tmp_path: Path, era: Era) -> None:
    await list_call_and_read(Inspector(tmp_path, era), era)


@pytest.mark.promise("mcp.inspector")
@pytest.mark.parametrize("era", ERAS)
async def test_so_it_does_over_http(tmp_path: Path, era: Era) -> None:
    async with listening(tmp_path, "http") as url:
        await list_call_and_read(Inspector(tmp_path, era, url), era)


async def list_call_and_read(inspector: Inspector, era: Era) -> None:
    listed = await inspector.result("tools/list")
    assert {tool["name"] for tool in listed["tools"]} == LISTED
    templates = await inspector.result("resources/templates/list")
    assert {each["uriTemplate"] for each in templates["resourceTemplates"]} == {
        template.uri_template for template in TEMPLATES
    }

    written = await inspector.call("set_memory", key="k", value={"n": [1, None, "é\n"]})
    # Only in the later era a result says who gave it: that is how the era shows.
    assert ("io.modelcontextprotocol/serverInfo" in written.get("_meta", {})) == (era != "legacy")
    recalled = await inspector.call("get_memory", key="k")
    assert recalled["structuredContent"]["value"] == {"n": [1, None, "é\n"]}

    resources = await inspector.result("resources/list")
    assert MEMORY in [resource["uri"] for resource in resources["resources"]]
    (contents,) = (await inspector.result("resources/read", "--uri", MEMORY))["contents"]
    assert (contents["uri"], contents["mimeType"]) == (MEMORY, "application/json")
    assert list(json.loads(contents["text"])["memory"]["global"]) == ["k"]


@pytest.mark.promise("mcp.inspector")
@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_understands_what_goes_wrong(tmp_path: Path, era: Era) -> None:
    inspector = Inspector(tmp_path, era)
    code, result, said = await inspector.use(
        "tools/call", "--tool-name", "get_memory", "--tool-arg", "key=no"
    )
    assert (code, result["isError"]) == (TOOL_FAILED, True), said
    assert json.loads(result["content"][0]["text"])["code"] == "MEMORY_NOT_FOUND"
    code, result, said = await inspector.use("resources/read", "--uri", "agent://somebody/memory")
    assert (code, result) == (FAILED, None)
    assert "agent://somebody/memory" in json.loads(said)["error"]["message"]


@pytest.mark.promise("mcp.tools")
async def test_the_inspector_finds_no_fault_with_the_schemas(tmp_path: Path) -> None:
    code, _, said = await Inspector(tmp_path, "modern").use("tools/list", "--strict")
    assert code == 0, said
