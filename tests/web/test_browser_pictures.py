"""The console over the store of a small team: each view shows what is in it. Its pictures are for the docs.

`GREENROOM_SCREENSHOTS=docs/images` makes those of the docs again; `python docs/generate.py` lists them there.
"""

from __future__ import annotations

import io
import os
import tomllib
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp import Client
from mcp_types import Implementation
from PIL import Image
from support.browser import SCREENSHOTS, console_server_in, logged_in, profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page
    from support.browser import ConsoleServer

pytestmark = pytest.mark.slow

STORY = Path(__file__).parent.parent / "data" / "console_story.toml"
DOCS = Path(__file__).parent.parent.parent / "docs"
HANDBOOK = ["security.md", "sharing.md", "how-to/back-up-and-restore.md"]
CLIENTS = {"planner": "claude-code", "backend": "codex", "frontend": "cursor"}
MOST_BYTES = 150_000
COLOURS = 128
SHOWN = {
    "overview": ("", "Clients"),
    "sessions": ("sessions", "Redesign the checkout: fewer steps, one page"),
    "memories": ("memories?namespace=project:shop", "Code is frozen until the release on Thursday."),
    "search": ("search?q=when+do+we+release", "We release on Thursdays, never on the day before a holiday."),
    "map": ("map", "We release on Thursdays, never on the day before a holiday."),
}
"""Of each picture where it is and what is read there."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server whose store several agents have filled, as clients of the official SDK."""
    with console_server_in(tmp_path_factory.mktemp("team") / "data") as server:
        trio.run(fill, server.mcp, tomllib.loads(STORY.read_text(encoding="utf-8")))
        yield server


@pytest.fixture(scope="module")
def page(team: ConsoleServer, chromium: Browser) -> Iterator[Page]:
    with profile_of(chromium, viewport={"width": 1280, "height": 800}, color_scheme="light") as profile:
        yield logged_in(profile, team)


@pytest.mark.parametrize("name", SHOWN)
def test_a_view_shows_what_agents_did(page: Page, team: ConsoleServer, name: str) -> None:
    path, text = SHOWN[name]
    page.goto(team.url + path)
    page.locator("main").get_by_text(text, exact=True).first.wait_for()
    if name == "map":
        page.locator(".map[data-ready]").wait_for()
    if folder := os.environ.get(SCREENSHOTS):
        keep(page.screenshot(), Path(folder) / f"console-{name}.png")


def keep(picture: bytes, path: Path) -> None:
    """Write a picture with few colours, so that it takes little room."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    assert path.stat().st_size < MOST_BYTES


async def fill(url: str, story: dict[str, Any]) -> None:
    """Tell a server a story, each agent by a client of its own."""
    agents = {name: None for session in story["sessions"] for name, _ in session["messages"]}
    async with AsyncExitStack() as connections:
        team = {
            name: await connections.enter_async_context(
                Client(
                    f"{url}?agent={name}",
                    client_info=Implementation(name=CLIENTS.get(name, "zed"), version="1"),
                )
            )
            for name in agents
        }
        for session in story["sessions"]:
            await hold(team, session)
        await remember(team["planner"], story)
        for task in story["tasks"]:
            await answer(team["backend"], "recall_context", task=task, max_tokens=200)
        texts = [{"path": name, "text": (DOCS / name).read_text(encoding="utf-8")} for name in HANDBOOK]
        await answer(team["writer"], "ingest_documents", texts=texts, corpus="handbook")
        for question in story["questions"]:
            await answer(team["writer"], "semantic_search", query=question, corpus="handbook")


async def hold(team: dict[str, Client], session: dict[str, Any]) -> None:
    """Have agents talk in a session."""
    where = {"session_id": session["session_id"]}
    first = team[session["messages"][0][0]]
    await answer(
        first, "create_session", **where, purpose=session["purpose"], project_id=session["project_id"]
    )
    for name, text in session["messages"]:
        await answer(team[name], "add_message", **where, content=text)
    given = {"decisions": "decisions", "files": "files_accessed", "state": "workflow_state"}
    context = {parameter: session[member] for member, parameter in given.items() if member in session}
    if context:
        await answer(first, "record_context", **where, **context)
    if session.get("closed"):
        await answer(first, "end_session", **where)


async def remember(client: Client, story: dict[str, Any]) -> None:
    """Have an agent store memories, some of which take the place of others or are for some days."""
    ids: dict[str, str] = {}
    for block in story["memories"]:
        place = {} if block["namespace"] == "user" else {"namespace": block["namespace"]}
        for key, tags, content, *importance in block["items"]:
            more = {"importance": importance[0]} if importance else {}
            stored = await answer(
                client, "store_memory", key=key, tags=tags.split(", "), content=content, **place, **more
            )
            ids[key] = stored["memory_id"]
    for newer in story["newer"]:
        given = {**newer, "tags": [newer["tags"]]}
        if "supersedes" in given:
            given["supersedes"] = ids[given["supersedes"]]
        if "days" in given:
            given["expiry"] = (datetime.now(UTC) + timedelta(days=given.pop("days"))).isoformat()
        await answer(client, "store_memory", **given)


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers, which must not be a failure."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content
