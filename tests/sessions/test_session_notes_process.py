"""Notes of real processes: over every transport, by several on one folder, after an end or a kill."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from harness import server_process
from sockets.test_http_process import call, guests_at, port_in
from support.api import posted
from support.commands import serving
from support.https import told
from support.websocket_programs import answer as ask
from support.websocket_programs import connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


def begun(server: Any) -> str:
    session: str = server.call("start_session", new=True, purpose="the pumps")["session_id"]
    return session


def queries(server: Any, session: str) -> list[str]:
    context = server.call("get_session_context", session_id=session)["context"]
    return [each["query"] for each in context["recent_searches"]]


@pytest.mark.promise("passport.noted-behind")
def test_kill_9_costs_the_last_notes_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "ann") as server:
        session = begun(server)
        server.call("memory_search", query="written")
        assert queries(server, session) == ["written"]
        server.call("memory_search", query="just before the kill")
        server.call("add_message", session_id=session, content="answered")
        server.process.kill()
        server.process.wait()
    with serving(tmp_path, "--agent", "ann") as server:
        found = queries(server, session)
        assert found in (["written"], ["just before the kill", "written"])
        (message,) = server.call("get_messages", session_id=session)["messages"]
        assert message["content"] == "answered"


@pytest.mark.promise("passport.noted-behind")
def test_processes_on_one_folder_write_their_notes_at_their_end(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "owner") as owner:
        with serving(tmp_path, "--agent", "attached") as attached:
            session = begun(attached)
            attached.call("memory_search", query="shown at once")
            assert queries(attached, session) == ["shown at once"]
            attached.call("memory_search", query="at the end")
            assert attached.end() == 0
        assert queries(owner, session) == ["at the end", "shown at once"]
        owner.call("restore_session", session_id=session)
        owner.call("memory_search", query="at the owner's end")
        assert owner.end() == 0
    with serving(tmp_path, "--agent", "next") as server:
        assert queries(server, session)[0] == "at the owner's end"


@pytest.mark.promise("passport.noted-behind")
def test_the_death_of_the_owner_costs_other_processes_no_note(tmp_path: Path) -> None:
    with serving(tmp_path, "--agent", "owner") as owner, serving(tmp_path, "--agent", "heir") as heir:
        session = begun(heir)
        heir.call("memory_search", query="before")
        owner.process.kill()
        owner.process.wait()
        heir.call("memory_search", query="after")
        assert queries(heir, session) == ["after", "before"]


@pytest.mark.promise("passport.noted")
async def test_over_every_transport_work_is_in_the_session(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "prices.py").write_text("x = 1\n")
    flags = ("--stdio", "--ws", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workspace", str(code))
    async with server_process(tmp_path, *flags) as here:
        await here.client.initialize("at the pipe")
        said = here.errors()
        websocket, http = re.search(r"ws://\S+", said), re.search(r"http://\S+", said)
        assert websocket is not None
        assert http is not None
        async with (
            connected(f"{websocket[0]}?agent=peer") as peer,
            guests_at(port_in(http[0]), 2) as (guest, alone),
        ):
            await guest.initialize(greenroom_agent="guest")

            async def by_itself(tool: str, **arguments: Any) -> Any:
                params = {"name": tool, "arguments": arguments}
                await alone.modern("tools/call", params, greenroom_agent="alone")
                return told((await alone.answer()).json())

            await notes_work("stdio", here.client.call)
            await notes_work("websocket", lambda tool, **given: ask(peer, tool, **given))
            await notes_work("http session", lambda tool, **given: call(guest, tool, **given))
            await notes_work("http alone", by_itself)
        key = await here.client.call("create_api_key", name="plain", scopes=["*"], agent="plain")
        async with guests_at(port_in(http[0])) as (plain,):

            async def rest(tool: str, **arguments: Any) -> Any:
                shown = {"authorization": f"Bearer {key['api_key']}"}
                return (await posted(plain, tool, arguments, shown)).json()

            await notes_work("rest", rest)


async def notes_work(name: str, asking: Callable[..., Awaitable[Any]]) -> None:
    """Read and search in a new session; its context has that."""
    await asking("start_session", new=True, purpose=name)
    await asking("read_file", path="prices.py")
    await asking("symbol_search", symbol="total")
    await asking("memory_search", query=f"over {name}")
    read = await asking("get_session_context")
    assert "context" in read, (name, read)
    found = read["context"]
    assert [each["query"] for each in found["recent_searches"]] == [f"over {name}", "total"], name
    assert [each["path"] for each in found["files_accessed"]] == ["prices.py"], name
