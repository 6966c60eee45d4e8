"""Stories of one agent that goes on where another one stopped, by real programs and what `setup` wrote.

Each begins with an empty home, in which `greenroom setup` is run. What starts a server or a hook is read in
the files that it wrote. A client on an SDK starts a server of its own, as AI tools do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from conformance import node
from harness import PATIENCE
from support.briefings import lines_of
from support.client_homes import ClientHome, unhurried
from support.forking import forked_program
from support.model_stand_in import Call, model_stand_in, results
from support.several import relay_statistics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.slow

TYPESCRIPT = Path(__file__).parent.parent / "conformance" / "typescript_client.cjs"

# Reads [tool, arguments] as JSON, one a line, and prints each answer as one, as the TypeScript program does.
PYTHON = """
import json, os, sys
import trio
from mcp import Client, StdioServerParameters
from mcp_types import Implementation

async def main(name, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server, client_info=Implementation(name=name, version="1")) as client:
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            tool, given = json.loads(line)
            result = await client.call_tool(tool, given)
            print(result.model_dump_json(by_alias=True), flush=True)

trio.run(main, *sys.argv[1:])
"""
ORDER = "Port the cart to integers of cents, and keep the rounding of refunds as it is."
READ = "I read cart.py: totals are floats, and refunds round half up."
REQUEST = "Leave the invoices alone, since Ann ports them this week."
LAST = "The totals are ported; test_refunds fails with AssertionError: 12 != 13."
NOTE = "I would rather have rewritten all of it."
REMARK = "The totals are ported. Next: the rounding of refunds."
ERROR = "ModuleNotFoundError: No module named 'prices'"
CODEX = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-m", "x"]
CODEX += ["--dangerously-bypass-approvals-and-sandbox", "-c", 'model_provider="x"']
CODEX += ["-c", "mcp_servers.greenroom.required=true"]  # it waits for the server before it asks its model
PROVIDER = 'model_providers.x={{name="x",base_url="{}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'


class Tool:
    """A client in a process of its own."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._printed = b""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers, which must not be a failure."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps([tool, arguments]).encode() + b"\n")
        result = json.loads(await self._line())
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def _line(self) -> bytes:
        assert self.process.stdout is not None
        while b"\n" not in self._printed:
            more = await self.process.stdout.receive_some()
            assert more, "the client ended"
            self._printed += more
        line, _, self._printed = self._printed.partition(b"\n")
        return line

    async def end(self) -> None:
        """End as a tool does that is closed."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        assert await self.process.wait() == 0


@asynccontextmanager
async def running(home: ClientHome, client: list[str], server: list[str], **more: str) -> AsyncIterator[Tool]:
    async with trio.open_nursery() as nursery:
        start: Callable[..., Any] = trio.run_process
        process = await nursery.start(
            lambda task_status: start(
                [*client, *server],
                cwd=home.work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                check=False,
                env=home.environment | more,
                task_status=task_status,
            )
        )
        try:
            with trio.fail_after(PATIENCE):
                yield Tool(process)
        finally:
            nursery.cancel_scope.cancel()


def project(folder: Path) -> Path:
    """Make a project under git."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "cart.py").write_text("def total(prices):\n    return sum(prices)\n")
    return folder


async def works(home: ClientHome, *, killed: bool = False) -> str:
    """Work as Claude Code does, as a client on the Python SDK; return the session."""
    home.setup("claude-code", "--yes")
    client = [sys.executable, "-c", PYTHON, "claude-code"]
    folder = str(home.work)  # which the real one says so, too (test_setup_clients)
    async with running(home, client, home.command_in(".claude.json"), CLAUDE_PROJECT_DIR=folder) as first:
        session: str = (await first.call("start_session"))["session_id"]

        async def says(content: str, **more: str) -> None:
            await first.call("add_message", session_id=session, content=content, **more)

        await says(ORDER, message_type="human_input")
        await first.call("read_file", path="cart.py")
        await says(READ)
        await first.call(
            "record_context",
            files_accessed=[{"path": "refunds.py", "importance": 0.9}],
            recent_searches=["who calls total"],
            decisions=[{"what": "amounts are integers of cents", "why": "floats lost a cent"}],
            workflow_state={"task": "port the cart", "step": "totals", "next": ["port the refunds"]},
        )
        await first.call("store_memory", content="releases are tagged by hand", key="tagging")
        await first.call("memory_search", query="how are refunds rounded?")
        await says(NOTE, visibility="private")
        await says(REQUEST, message_type="human_input")
        await says(LAST)
        if killed:  # with the server that it started
            store = home.folder / ".local/share/greenroom"
            for process in ((await relay_statistics(store))["owner_pid"], first.process.pid):
                os.kill(process, signal.SIGKILL)
            await first.process.wait()
        else:
            await first.end()
    return session


@asynccontextmanager
async def goes_on(home: ClientHome) -> AsyncIterator[Tool]:
    """Begin to work as Codex CLI does, as a client on the TypeScript SDK."""
    home.setup("codex", "--yes")
    client = [*node.script("typescript-client", TYPESCRIPT), "codex-mcp-client"]
    async with running(home, client, home.command_in(".codex/config.toml", "mcp_servers")) as second:
        yield second
        await second.end()


async def has_the_work(second: Tool, began: dict[str, Any], *, killed: bool = False) -> None:
    """Check that an answer carries the work that `works` left, and nothing that is its agent's alone."""
    noted = [] if killed else ["cart.py", "how are refunds rounded?"]  # they are written behind the answers
    briefing = "\n".join(lines_of(began["briefing"]))
    for each in (
        ORDER,
        REQUEST,
        LAST,
        "Task (active): port the cart, at: totals",
        "Next: port the refunds",
        "Decided: amounts are integers of cents (because floats lost a cent)",
        "Files: `refunds.py`",
        "who calls total",
        *noted,
    ):
        assert each in briefing
    assert f"a person: {REQUEST}" in briefing
    assert NOTE not in json.dumps(began)
    assert began["talk"]["messages"] == 4
    read = began["talk"]["read"]
    page = await second.call(read["tool"], **read["arguments"])
    assert [each["content"] for each in page["messages"]] == [ORDER, READ, REQUEST, LAST]
    context = began["context"]
    assert [(made["what"], made["why"]) for made in context["decisions"]] == [
        ("amounts are integers of cents", "floats lost a cent")
    ]
    assert context["workflow_state"]["next"] == ["port the refunds"]
    seen = {file["path"] for file in context["files_accessed"]}
    seen |= {search["query"] for search in context["recent_searches"]}
    assert seen >= {"refunds.py", "who calls total", *noted}
    found = await second.call("memory_search", query="tagging")
    assert "releases are tagged by hand" in [each["content"] for each in found["memories"]]


@pytest.mark.promise("passport.taken-up", "passport.held", "passport.client-folder")
@pytest.mark.parametrize("ending", ["closed", "killed"])
async def test_what_a_python_client_left_a_typescript_client_goes_on_with(
    tmp_path: Path, ending: str
) -> None:
    home = ClientHome(tmp_path, None, project(tmp_path / "shop"))
    session = await works(home, killed=ending == "killed")
    async with goes_on(home) as second:
        began = await second.call("start_session")
        assert (began["session_id"], began["restored"]) == (session, True)
        assert (began["tool"], began["taken_up"]["from_tool"]) == ("codex", "claude-code")
        assert "Resumed 'shop: Port the cart to integers of cents" in began["notice"]
        await has_the_work(second, began, killed=ending == "killed")
        await second.call("add_message", session_id=session, content="The refunds are ported, too.")


@pytest.mark.promise("passport.taken-up", "passport.story")
async def test_a_backup_and_a_passport_carry_the_work_to_another_machine(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")
    here, there, third = (ClientHome(tmp_path / name, None, shop) for name in ("here", "there", "third"))
    session = await works(here)
    backup, passport = str(tmp_path / "store.mdb"), str(tmp_path / "work.json")
    greenroom = forked_program()
    here.run(*greenroom, "backup", backup)
    there.run(*greenroom, "restore", backup)
    named = ["--session", session, "--file", passport]
    here.run(*greenroom, "passport", "export", *named, "--include-memories")
    signer = here.run(*greenroom, "passport", "signer").split()[-1]
    third.run(*greenroom, "passport", "restore", "--file", passport, "--trust-signer", signer)
    for home in (there, third):
        async with goes_on(home) as second:
            began = await second.call("start_session")
            assert (began["session_id"], began["restored"]) == (session, True)
            await has_the_work(second, began)


def answer_in(result: str) -> dict[str, Any]:
    """Return what a tool answered, of the text that Codex CLI makes of it."""
    answer: dict[str, Any] = json.loads(result[result.index("{") :])
    return answer


def makes_the_call(result: str) -> Call | str:
    """Make the call that is offered first."""
    calls = [offer["call"] for offer in answer_in(result)["offered"]]
    return Call(calls[0]["tool"], calls[0]["arguments"], "mcp__greenroom") if calls else "There is none."


@pytest.mark.promise("hook-context.offered", "passport.client-folder")
def test_what_hooks_of_claude_code_kept_codex_is_offered_and_goes_on_with(tmp_path: Path) -> None:
    with model_stand_in() as model:
        home = ClientHome(
            tmp_path,
            {"claude": "claude-code", "codex": "codex"},
            project(tmp_path / "shop"),
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="none",
            OPENAI_API_KEY="none",
        )
        home.setup("claude-code", "codex", "--hooks", "--yes")
        unhurried(tmp_path / ".claude/settings.json")
        unhurried(tmp_path / ".codex/hooks.json")
        cart = str(home.work / "cart.py")
        model.steps = [
            Call("Read", {"file_path": cart}),
            Call("Bash", {"command": f'echo "{ERROR}"; exit 1', "description": "run the tests"}),
            REMARK,
        ]
        home.run("claude", "--allowedTools", "Bash", "-p", ORDER)
        model.asked.clear()
        first = Call("start_session", {}, "mcp__greenroom")
        model.steps = [first, makes_the_call, "I go on with the refunds."]
        home.run("codex", *CODEX, "-c", PROVIDER.format(model.url), "Go on.")
    unasked, answers = json.dumps(model.asked[0]), results(model.asked[-1])
    began = answer_in(answers[0])
    assert f"the person's last request was: {ORDER}" in unasked
    assert (began["restored"], began["briefing"], began["context"]["files_accessed"]) == (False, "", [])
    (offer,) = began["offered"]
    # A hook may read the transcript between two calls: then one more message has no words for others.
    kept = [f"kept by hooks: {count} messages, 1 file" for count in (3, 4)]
    assert offer["tool"] == "claude-code"
    assert offer["contents"] in kept
    assert offer["call"] == {"tool": "start_session", "arguments": {"restore_from": offer["session_id"]}}
    for each in (REMARK, "ModuleNotFoundError"):
        assert each not in unasked + json.dumps(began)
    continued = answer_in(answers[1])
    assert (continued["continues"], continued["talk"]["messages"]) == (offer["session_id"], 3)
    lines = lines_of(continued["briefing"])
    assert f"Files: `{cart}`" in lines
    assert lines[-3:] == [f"a person: {ORDER}", f"tool output: {ERROR}", f"claude-code: {REMARK}"]
