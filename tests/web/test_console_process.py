"""`greenroom console` as a process: for a folder that any process owns, through takeovers, until its end."""

from __future__ import annotations

import re
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from sockets.test_http_process import guests_at
from support.console import Looker
from support.programs import Program, running
from support.several import relay_statistics, tool_client

from greenroom.actors import Agent, ListMemories, Principal, StoreMemory, open_greenroom
from greenroom.transports.base import exit_codes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.actors import MemoryPage

pytestmark = [pytest.mark.slow, pytest.mark.promise("console.anywhere")]

WHERE = "http://127.0.0.1:"


@asynccontextmanager
async def console(home: Path, *flags: str) -> AsyncIterator[tuple[Program, str]]:
    """Run the command; give the link that it prints."""
    arguments = ("console", "--print", "--data", str(home / "store"), "--embedder", "none", *flags)
    async with running(home, *arguments) as program:
        yield program, await program.line_with(WHERE)


@asynccontextmanager
async def looking(link: str) -> AsyncIterator[Looker]:
    """Give a browser that has logged in by a link."""
    at = urlsplit(link)
    assert at.port is not None
    async with guests_at(at.port) as (guest,):
        below, _, token = at.path.partition("/login/")
        browser = Looker(guest, below)
        browser.headers |= {"host": at.netloc, "origin": f"http://{at.netloc}"}
        answer = await browser.log_in(link=token)
        assert answer.status == 200, answer
        yield browser


def maps_store(pid: int) -> bool:
    """Return whether a process has the store in its memory."""
    return "/store/" in Path(f"/proc/{pid}/maps").read_text()


async def test_it_shows_the_folder_of_a_server_without_http_and_goes_on_when_that_is_killed(
    tmp_path: Path,
) -> None:
    async with tool_client(tmp_path, "ann") as ann:
        session = (await ann.call("create_session", purpose="paint the mast"))["session_id"]
        async with console(tmp_path, "--user", "ann") as (program, link), looking(link) as browser:
            relay = await relay_statistics(tmp_path / "store")
            assert (relay["owner_pid"], relay["attached_pids"]) == (ann.process.pid, [program.process.pid])
            assert not maps_store(program.process.pid)
            assert "paint the mast" in (await browser.look("/sessions")).text
            assert (await browser.get("session")).json()["user"] == "ann"
            await ann.call("add_message", session_id=session, content="before")
            port = urlsplit(link).port
            assert port is not None
            async with guests_at(port) as (hearing,):
                await hearing.send(
                    "GET", f"{browser.below}/api/v1/events?topic=session://{session}", browser.headers
                )
                assert (await hearing.head())[0] == 200
                await hearing.event()
                await ann.kill()
                event = await hearing.event()
                while event is not None and event.comment is not None:
                    event = await hearing.event()
                assert event is not None
                assert event.json() == {"uri": f"session://{session}"}  # it may have missed a change
            assert (await relay_statistics(tmp_path / "store"))["owner_pid"] == program.process.pid
            assert maps_store(program.process.pid)
            assert "paint the mast" in (await browser.look("/sessions")).text
            assert (await browser.post("add_message", session_id=session, content="after")).status == 200
            async with tool_client(tmp_path, "bob") as bob:
                assert await bob.contents(session) == ["before", "after"]
                program.process.send_signal(signal.SIGTERM)
                assert await program.end() == exit_codes.OK
                assert await bob.contents(session) == ["before", "after"]


async def memories(home: Path, *new: str) -> MemoryPage:
    """Return the memories of ann's in a store that nobody has open, with new ones."""
    async with open_greenroom(home / "store", secrets=home / "secrets", embedder="none") as runtime:
        ann = Agent(runtime, Principal(agent_id="ann", user="ann"))
        for each in new:
            await ann.ask(StoreMemory(content=each))
        return await ann.ask(ListMemories())


async def test_for_a_folder_that_nobody_has_open_it_ends_with_the_log_out_and_leaves_all_as_it_was(
    tmp_path: Path,
) -> None:
    before = await memories(tmp_path, "the mast is painted")
    secrets = "--secrets", str(tmp_path / "secrets")
    async with console(tmp_path, "--read-only", "--user", "ann", *secrets) as (program, link):
        async with looking(link) as browser:
            for path in ("/", "/sessions"):
                assert (await browser.look(path)).status == 200
            assert "the mast is painted" in (await browser.look("/memories")).text
            assert (await browser.post("store_memory", content="x")).status == 403
            async with console(tmp_path) as (second, other):
                assert urlsplit(other).port == urlsplit(link).port, "the first one has the folder open"
                assert await second.end() == exit_codes.OK
            async with looking(other) as another:
                assert (await another.post("logout")).status == 204
            assert (await browser.get("session")).status == 200
            assert (await browser.post("logout")).status == 204
        assert await program.end() == exit_codes.OK
        assert "no browser is logged in any more" in program.printed
    assert await memories(tmp_path) == before


CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}")


def folder(home: Path) -> tuple[str, ...]:
    """Return the options that name the store that `memories` makes."""
    return "--data", str(home / "store"), "--secrets", str(home / "secrets"), "--embedder", "none"


async def confirmed(browser: Looker, code: str) -> int:
    """Have a key made with a code; return the status."""
    browser.confirmation = lambda: code
    return (await browser.confirmed("create_api_key", name="n", scopes=["*:read"])).status


async def code_of(program: Program) -> str:
    """Return the code that a command prints next."""
    found = CODE.search(await program.line_with("Code: "))
    assert found is not None
    return found[0]


@pytest.mark.quick
@pytest.mark.promise("console.confirmed")
@pytest.mark.parametrize("served_by", ["itself", "owner"])
async def test_on_a_terminal_it_prints_a_code_and_another_one_at_each_enter(
    tmp_path: Path, served_by: str
) -> None:
    await memories(tmp_path)
    arguments = ("console", "--print", *folder(tmp_path))
    server = ("serve", "--http", "127.0.0.1:0", *arguments[2:])
    async with AsyncExitStack() as stack:
        if served_by == "owner":
            owner = await stack.enter_async_context(running(tmp_path, *server))
            await owner.line_with("listening on")
        terminal = running(tmp_path, *arguments, terminal=True, keyboard=True)
        program = await stack.enter_async_context(terminal)
        first = await code_of(program)
        browser = await stack.enter_async_context(looking((await program.line_with(WHERE)).strip()))
        assert await confirmed(browser, first) == 200
        assert await confirmed(browser, first) == 403
        await program.until("Ctrl-C")
        await program.press("\n")
        second = await code_of(program)
        await program.press("anything\n")
        third = await code_of(program)
        assert len({first, second, third}) == 3
        assert [await confirmed(browser, each) for each in (second, third)] == [403, 200]
        if served_by == "owner":
            await program.press("\x04")
            assert await program.end() == exit_codes.OK
            assert (await browser.get("session")).status == 200
        else:
            assert (await browser.post("logout")).status == 204
            assert await program.end() == exit_codes.OK


@pytest.mark.promise("console.confirmed")
async def test_ctrl_c_ends_it_beside_a_server_and_the_end_of_that_is_told(tmp_path: Path) -> None:
    arguments = ("console", "--print", *folder(tmp_path))
    async with running(tmp_path, "serve", "--http", "127.0.0.1:0", *arguments[2:]) as owner:
        await owner.line_with("listening on")
        async with running(tmp_path, *arguments, terminal=True, keyboard=True) as program:
            await program.until("Ctrl-C")
            assert await program.interrupt() == exit_codes.OK
        async with running(tmp_path, *arguments, terminal=True, keyboard=True) as program:
            await program.until("Ctrl-C")
            assert await owner.interrupt() == exit_codes.OK
            await program.press("\n")
            assert await program.end() == exit_codes.FAILED
            assert "has ended" in program.printed


@pytest.mark.quick
@pytest.mark.promise("console.confirmed")
async def test_into_a_pipe_it_prints_the_link_alone_and_what_asks_for_codes_is_refused(
    tmp_path: Path,
) -> None:
    await memories(tmp_path)
    secrets = folder(tmp_path)[2:4]
    async with console(tmp_path, *secrets) as (program, link), looking(link) as browser:
        denial = await browser.post("create_api_key", name="n", scopes=["*"])
        assert (denial.status, denial.json()["details"]["by"]) == (403, None)
        assert "greenroom keys create" in denial.json()["detail"]
        assert (await browser.post("logout")).status == 204
        assert await program.end() == exit_codes.OK
        assert "Code:" not in program.printed
