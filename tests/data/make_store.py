"""Make the golden stores: what a program of an older version wrote, and what it answered.

Run it with that program, whose tests lend their harness, and pack what it leaves:

    git worktree add ../old 78685ad && python3 -m venv old && old/bin/pip install -e ../old
    PYTHONPATH=../old/tests old/bin/python tests/data/make_store.py stores
    tar --exclude='*-lock' --exclude='*.sock' -C stores -cJf tests/data/store-0.1.0.tar.xz .

For each kind of store there is a folder with the store, its secret, its key, and `transcript.json`: the calls
in their order with their answers. Its process kills itself in the middle of an import, while messages for
actors are stored and not handled. Timers of many kinds are set.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import trio

from greenroom.actors import Agent, GetEmbedding, PassportOptions, Principal, open_greenroom
from greenroom.runtime import Encryption, InlineCommitter, key_source
from greenroom.testing import McpClient, mcp_client
from greenroom.transports.mcp.tools.tools import TOOLS

START = 1_700_000_000_000_000
SECOND = 1_000_000
PEOPLE = {
    "planner": Principal(agent_id="planner", agent_type="planner", user="ann"),
    "reviewer": Principal(
        agent_id="reviewer", agent_type="planner", user="bob", projects=frozenset({"other"})
    ),
    "coder": Principal(agent_id="coder", agent_type="coder", user="bob", projects=frozenset({"atlas"})),
    "root": Principal(agent_id="root", user="owner", scopes=frozenset({"admin", "*"})),
}
KINDS = {"plain": (250, 6), "encrypted": (30, 6), "staged": (30, 2)}
"""For each kind of store the memories that are imported into each of three namespaces, 200 at a time, and the
commits with messages for actors after which the process dies: after two the lines are there and nothing is
decided, after six some namespaces have theirs.
"""


class Clock:
    """Wall time from a moment on, in microseconds since 1970, and time itself."""

    def __init__(self, start: int = START) -> None:
        self._start = start
        self._began = trio.current_time()

    def now(self) -> int:
        return self._start + round((trio.current_time() - self._began) * SECOND)

    def perf(self) -> float:
        return trio.current_time()


class Killer:
    """Commits, and ends the process once enough commits have left a message on its way."""

    def __init__(self) -> None:
        self.left: int | None = None

    def commit(self, store: Any, works: Sequence[Any]) -> None:
        store.commit(works)
        if self.left is None:
            return
        told = [
            key
            for work in works
            for _, key, payload in work.ops
            if key.startswith(b"!outbox\0") and payload is not None
        ]
        self.left -= bool(told)
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


class House:
    """The agents of `PEOPLE` at one server, and what they said."""

    def __init__(self, clients: dict[str, McpClient], clock: Clock) -> None:
        self._clients = clients
        self._clock = clock
        self.writes: list[dict[str, Any]] = []
        self.reads: list[dict[str, Any]] = []

    async def write(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that changes something; one that takes an idempotency key gets one of its own."""
        if "idempotency_key" in TOOLS[tool].request.__struct_fields__:
            arguments["idempotency_key"] = f"golden-{len(self.writes)}"
        return await self._call(self.writes, agent, tool, arguments)

    async def read(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        return await self._call(self.reads, agent, tool, arguments)

    async def read_resource(self, agent: str, uri: str) -> None:
        result = (await self._clients[agent].request("resources/read", {"uri": uri}))["result"]
        self.reads.append({"agent": agent, "uri": uri, "answer": result})

    async def _call(self, calls: list[dict[str, Any]], agent: str, tool: str, arguments: Any) -> Any:
        answer = await self._clients[agent].call(tool, **arguments)
        calls.append({"agent": agent, "tool": tool, "arguments": arguments, "answer": answer})
        return answer

    def transcript(self) -> dict[str, Any]:
        return {"ended": self._clock.now(), "writes": self.writes, "reads": self.reads}


async def sessions(house: House) -> None:
    await house.write(
        "planner",
        "create_session",
        purpose="plan the release",
        session_id="release",
        metadata={"n": 1.0, "big": 12345678901234567890},
        initial_state={"step": 1},
    )
    first = await house.write("planner", "add_message", session_id="release", content="Shall we ship?")
    for visibility in ("public", "private", "agent_only"):
        for agent in ("planner", "reviewer", "coder"):
            await house.write(
                agent,
                "add_message",
                session_id="release",
                content=f"{visibility} words of the {agent}: {'zebra ' * 3}Ünïcödé 🦓",
                visibility=visibility,
                metadata={"of": agent},
                parent_message_id=first["message_id"],
            )
    await house.write("planner", "update_session", session_id="release", status="active", state={"step": 2})
    await house.write(
        "coder", "create_session", purpose="of a project", session_id="atlas", project_id="atlas"
    )
    await house.write("coder", "add_message", session_id="atlas", content="only members read this")
    await house.write("planner", "create_session", purpose="is over", session_id="over")
    await house.write("planner", "update_session", session_id="over", status="terminated")
    await house.write("planner", "add_message", session_id="over", content="too late")
    await house.write("planner", "add_message", session_id="nowhere", content="nobody hears")


async def memories(house: House) -> None:
    for number in range(3):
        await house.write("planner", "set_memory", key="plan", value={"day": number}, metadata={"n": number})
    await house.write("planner", "set_memory", key="brief", value=[1, None, "ü"], expires_in=600)
    await house.write("planner", "set_memory", key="note", value="of a session", session_id="release")
    await house.write("planner", "set_memory", key="gone", value=1)
    await house.write("planner", "delete_memory", key="gone")
    about = {"tags": ["maps", "ann"], "importance": 0.8, "scope": "private"}
    texts = ["Ann keeps her maps in the blue box.", "The release is on Friday, says Bob. " * 40]
    for number, content in enumerate(texts):
        await house.write("planner", "store_memory", content=content, key=f"kept{number}", metadata=about)
    stored = await house.write("planner", "store_memory", content="Ann lives in Oslo.", key="home")
    await house.write(
        "planner", "update_memory", key="home", content="Ann lives in Bergen.", expected_version=1
    )
    await house.write(
        "planner", "store_memory", content="Ann moved to Paris.", key="newer", supersedes=stored["memory_id"]
    )
    await house.write(
        "coder",
        "store_memory",
        value={"of": "the project"},
        key="fact",
        namespace="project:atlas",
        kind="procedural",
        conversation_id="talk",
        position=4,
        metadata={"expiry": "2024-01-01T00:00:00Z"},
    )
    await house.write("planner", "rate_memory", key="kept0", rating=1, note="helped")
    await house.write("planner", "store_memory", content="to be forgotten", key="lost")
    await house.write("planner", "forget_memory", key="lost")


async def travels(house: House) -> None:
    began = await house.write(
        "planner", "start_session", workspace_path="/home/ann/atlas", tool_id="cursor", purpose="cross tools"
    )
    session = began["session_id"]
    await house.write("planner", "add_message", session_id=session, content="taken along")
    await house.write(
        "planner",
        "record_context",
        session_id=session,
        decisions=[{"what": "ship on Friday", "why": "it is ready"}],
    )
    exported = await house.write("planner", "export_session", session_id=session, one_time=True)
    await house.read_resource("planner", exported["uri"])
    await house.write("planner", "migrate_session", session_id=session, to_tool="zed", note="go on there")
    await house.read("planner", "get_messages", session_id=session)


async def keys(house: House) -> None:
    made = await house.write("root", "create_api_key", name="lasting", scopes=["*:read"], agent="planner")
    await house.write("root", "rotate_api_key", key_id=made["key"]["key_id"])
    ended = await house.write("root", "create_api_key", name="ended", scopes=["*"], user="bob", rate_limit=60)
    await house.write("root", "revoke_api_key", key_id=ended["key"]["key_id"])


async def look_around(house: House) -> None:
    for agent in ("planner", "reviewer", "coder"):
        await house.read(agent, "get_session", session_id="release")
        await house.read(agent, "get_messages", session_id="release", limit=1000)
        await house.read(agent, "search_context", session_id="release", query="zebra")
        await house.read(agent, "list_sessions")
        await house.read(agent, "get_session", session_id="atlas")
    await house.read("planner", "get_session", session_id="over")
    for version in (1, 2, 3):
        await house.read("planner", "get_memory", key="plan", version=version)
    await house.read("planner", "get_memory", key="brief")
    await house.read("planner", "get_memory", key="note", session_id="release")
    await house.read("planner", "list_memory", session_id="all")
    await house.read("planner", "list_memories", namespace="user:ann")
    await house.read("coder", "list_memories", namespace="project:atlas")
    await house.read("planner", "list_memory_versions", key="home")
    for mode in ("exact", "semantic", "hybrid"):
        await house.read("planner", "memory_search", query="maps in a box", mode=mode, namespace="user:ann")
    exported = await house.write("planner", "export_memories", namespace="user:ann")
    await house.read_resource("planner", exported["uri"])
    await house.read_resource("planner", "session://release")
    [started] = [call["answer"] for call in house.writes if call["tool"] == "start_session"]
    await house.read("planner", "get_session_context", session_id=started["session_id"])
    await house.read("root", "list_api_keys")
    await house.read("root", "get_audit_log", limit=200)


def lines_to_import(count: int) -> str:
    lines = [
        {"key": f"k{number:04}", "content": f"memory {number}", "namespace": f"team:t{team}"}
        for number in range(count)
        for team in range(3)
    ]
    return "\n".join(json.dumps(line) for line in lines)


def door_to(agent: Agent) -> Callable[[str], Agent]:
    """Return what a server asks for the door of a client: here the client is always this one."""
    return lambda _: agent


async def make(home: Path, encryption: Encryption | None, count: int, killed_after: int) -> None:
    killer, clock = Killer(), Clock()
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            open_greenroom(
                home / "store",
                secrets=home / "secrets",
                clock=clock,
                committer=InlineCommitter(killer.commit),
                encryption=encryption,
            )
        )
        clients = {}
        for name, who in PEOPLE.items():
            agent = Agent(runtime, who, client=name, passports=PassportOptions())
            clients[name] = await stack.enter_async_context(mcp_client(door_to(agent)))
            await clients[name].initialize(name)
        house = House(clients, clock)
        for part in (sessions, memories, travels, keys):
            await part(house)
        while (await runtime.query(GetEmbedding())).texts_waiting:  # noqa: ASYNC110  nothing tells of it
            await trio.sleep(0.01)
        await look_around(house)
        source = lines_to_import(count)
        transcript = {**house.transcript(), "source": source}
        (home / "transcript.json").write_text(json.dumps(transcript, indent=1))
        killer.left = killed_after
        await clients["planner"].call("import_memories", source=source)


def main(folder: Path) -> None:
    for name, (count, killed_after) in KINDS.items():
        home = folder / name
        home.mkdir(parents=True)
        encryption = None
        if name == "encrypted":
            key = home / "key"
            key.touch(mode=0o600)
            key.write_text("5a" * 32)
            encryption = Encryption(key_source(f"file:{key}"), required=True)
        if (child := os.fork()) == 0:
            trio.run(make, home, encryption, count, killed_after)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"the import of {name} ended before the process died"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
