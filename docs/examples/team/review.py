"""A planner and a reviewer work in one session, each with its own key.

`python review.py FOLDER` makes the keys and runs the server and both agents.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated

from greenroom.transports import WebSocketRefusedError, websocket_client


async def greenroom(*arguments: str) -> Any:
    """Run a command of the program; return the JSON that it prints."""
    done = await trio.run_process(["greenroom", *arguments, "--json"], capture_stdout=True)
    return json.loads(done.stdout)


async def new_key(folder: str, agent: str, agent_type: str) -> dict[str, Any]:
    """Create a key for an agent, its type and the project, with every tool listed."""
    bound = ["--for-agent", agent, "--for-type", agent_type, "--for-user", "crew", "--for-project", "atlas"]
    made: dict[str, Any] = await greenroom(
        "keys", "create", "--data", folder, "--name", agent, *bound, "--tools", "all"
    )
    return made


@asynccontextmanager
async def serving(folder: str) -> AsyncIterator[str]:
    """Run a server on a free port of this machine; give its URL."""
    command = ["greenroom", "serve", "--data", folder, "--ws", "127.0.0.1:0"]
    server = await trio.lowlevel.open_process(command, stderr=subprocess.PIPE)
    assert server.stderr is not None
    try:
        said = b""
        while b"listening on ws" not in said or not said.endswith(b"\n"):
            said += await server.stderr.receive_some()
        yield next(word for word in said.decode().split() if word.startswith("ws://"))
    finally:
        server.terminate()
        await server.wait()


def connected(url: str, key: str) -> AbstractAsyncContextManager[Client]:
    """Connect as the key's holder."""
    return Client(websocket_client(url, headers={"Authorization": f"Bearer {key}"}, reconnect=False))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers; a "no" becomes a `ValueError`."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise ValueError(json.loads(result.content[0].text)["error"])  # type: ignore[union-attr]  # it is a text
    answer: dict[str, Any] = result.structured_content
    return answer


async def say(client: Client, content: str, **more: Any) -> None:
    """Say something in the session."""
    await call(client, "add_message", session_id="release-2", content=content, **more)


async def read(client: Client, since: str | None = None) -> dict[str, Any]:
    """Show what an agent may read of the session, and return it."""
    page = await call(client, "get_messages", session_id="release-2", since_id=since)
    for message in page["messages"]:
        print(f"  {message['sender']}: {message['content']}")
    return page


async def work_together(planner: Client, reviewer: Client) -> None:
    """Talk in a session, wait for an answer, and share a memory."""
    await call(planner, "create_session", session_id="release-2", purpose="release 2", project_id="atlas")
    await say(planner, "Can the migration go out?")
    await say(planner, "If not I need a week more.", visibility="private")
    print("the reviewer reads")
    last = (await read(reviewer))["messages"][-1]["message_id"]

    async with planner.listen(resource_subscriptions=["session://release-2"]) as changes:
        await say(reviewer, "It locks the table for an hour; batch it.")
        async for change in changes:
            assert isinstance(change, ResourceUpdated)
            print("the planner is notified of", change.uri, "and reads")
            await read(planner, since=last)
            break

    await call(
        reviewer,
        "store_memory",
        key="migrations",
        content="Migrations go in batches of 1,000 rows.",
        namespace="project:atlas",
    )
    found = await call(planner, "memory_search", query="how do we migrate?", limit=1)
    print("the planner finds:", found["memories"][0]["content"], "by", found["memories"][0]["author"])
    try:
        await call(planner, "create_api_key", name="another", scopes=["admin"])
    except ValueError as no:
        print("no:", no)


async def main(folder: str) -> None:
    """Make two keys, let two agents work, and take one key back."""
    planner_key = await new_key(folder, "planner", "lead")
    reviewer_key = await new_key(folder, "reviewer", "review")
    async with serving(folder) as url:
        async with (
            connected(url, planner_key["api_key"]) as planner,
            connected(url, reviewer_key["api_key"]) as reviewer,
        ):
            await work_together(planner, reviewer)
        await greenroom("keys", "revoke", "--data", folder, reviewer_key["key"]["key_id"])
        try:
            async with connected(url, reviewer_key["api_key"]):
                raise AssertionError("a revoked key opened the door")
        except* WebSocketRefusedError as refused:
            print("the reviewer's key is revoked:", refused.exceptions[0])


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
