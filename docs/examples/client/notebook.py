"""A client that remembers: the next run knows what this one stored.

`python notebook.py FOLDER` starts a server of its own on the folder for each of two runs.
"""

import json
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def connected(folder: str, agent: str) -> AbstractAsyncContextManager[Client]:
    """Start a server as an MCP client does, and connect until the block ends."""
    arguments = ["serve", "--data", folder, "--agent", agent, "--user", "ann", "--log-level", "warning"]
    return Client(stdio_client(StdioServerParameters(command="greenroom", args=arguments)))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers; a "no" becomes a `ValueError`."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise ValueError(json.loads(result.content[0].text)["error"])  # type: ignore[union-attr]  # it is a text
    answer: dict[str, Any] = result.structured_content
    return answer


async def monday(client: Client) -> None:
    """Begin with a piece of work, and remember what was learned."""
    session = await call(client, "start_session", purpose="move the database", project_id="atlas")
    await call(
        client,
        "record_context",
        session_id=session["session_id"],
        decisions=[{"what": "migrate at night", "why": "no one works then"}],
        workflow_state={"task": "move the database", "step": "copy", "next": ["switch over"]},
    )
    await call(client, "store_memory", key="port", content="The gateway listens on port 8443.", tags=["ops"])
    await call(client, "store_memory", key="night", content="Ann allows migrations at night only.")


async def tuesday(client: Client) -> None:
    """Go on where the other run stopped, and look up what it knew."""
    session = await call(client, "start_session", project_id="atlas")
    print("goes on:", session["restored"])
    context = session["context"]
    print("decided:", context["decisions"][0]["what"], "-", context["decisions"][0]["why"])
    print("next:", *context["workflow_state"]["next"])
    found = await call(client, "memory_search", query="which port does the gateway use?", limit=1)
    print("found:", found["memories"][0]["content"])
    exact = await call(client, "memory_search", query="at night", mode="exact")
    print("as it stands:", [memory["key"] for memory in exact["memories"]])
    tagged = await call(client, "memory_search", tags=["ops"], time_expr="today")
    print("of today, about ops:", [memory["key"] for memory in tagged["memories"]])
    try:
        await call(client, "memory_search", query="port", time_expr="the other day")
    except ValueError as no:
        print("no:", no)
    await call(client, "end_session", session_id=session["session_id"], summary="The database has moved.")


async def main(folder: str) -> None:
    """Run twice, each time with another agent and a server of its own."""
    async with connected(folder, "editor") as client:
        await monday(client)
    async with connected(folder, "terminal") as client:
        await tuesday(client)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
