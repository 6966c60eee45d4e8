"""An agent that asks Greenroom where the lines may be, and reads these."""

import json
from collections.abc import AsyncIterator
from typing import Any

from mcp import Client
from tasks import Task

FILES = 5
"""How many files it asks for."""
PASSAGES = 3
"""Of so many it reads the best passage; after that, the best file whole."""


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """Return what a tool answers, as the model reads it."""
    result = await client.call_tool(tool, arguments)
    text: str = result.content[0].text  # type: ignore[union-attr]  # it is a text
    if result.is_error:
        raise ValueError(text)
    return text


async def reads(client: Client, task: Task) -> AsyncIterator[str]:
    """Yield what the agent reads, one after the other."""
    if task.about == "question":
        found = await call(client, "search_code_semantic", query=task.query, limit=FILES)
        yield found
        results = json.loads(found)["results"]
        for each in results[:PASSAGES]:
            lines = "{}-{}".format(*each["line_range"])
            yield await call(client, "read_file", path=each["file_path"], lines=lines)
        yield await call(client, "read_file", path=results[0]["file_path"])
        return
    found = await call(client, "symbol_search", symbol=task.query)
    yield found
    if task.about == "definition":
        for each in json.loads(found)["definitions"]:
            yield await call(client, "read_file", path=each["file_path"], symbol=each["symbol"])
    else:
        for each in json.loads(found)["references"]:
            if each["role"] == "call":
                yield await call(
                    client, "read_file", path=each["file_path"], lines=str(each["line"]), around=10
                )
