"""Names of every kind in every view: each link leads where it says, as a browser reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec
import pytest
from support.agents import say
from support.console import looker
from support.corpora import document_of
from support.hook_events import Client, user
from support.keyed import create_key, premises

from greenroom.actors import CreateSession, ListMemories, Principal, PutDocument, StoreMemory, ask_corpus
from greenroom.actors.sessions.requests.hook_messages import session_id_of
from greenroom.transports.web.console.rendering import name_of, path_part

if TYPE_CHECKING:
    from support.agents import Enter, House
    from support.console import Shown

HOSTILE = '"><script>alert(1)</script>\u202e{{7*7}}'
NAMES = (".", "..", "a/b", "a%2Fb", "%2e%2e", " a b ", "ü/€?#&=+", "../../people", "//host/x", HOSTILE)
IDS = (".", "..", "...", "-", "_", ".2e.2e")
"""What may be a session's id."""
_STEP = re.compile(r"(\.|%2e){1,2}", re.IGNORECASE)


def followed(base: str, link: str) -> str:
    """Return the path and query to which a browser goes by a relative link, by the URL standard."""
    path, _, query = link.partition("#")[0].partition("?")
    if not path:
        return f"{base.partition('?')[0]}?{query}" if query else base
    parts = [] if path.startswith("/") else base.partition("?")[0].split("/")[1:-1]
    for part in path.removeprefix("/").split("/"):
        if not _STEP.fullmatch(part):
            parts.append(part)
        elif len(unquote(part)) > 1:
            parts = parts[:-1]
    if _STEP.fullmatch(path.rpartition("/")[2]):
        parts.append("")
    return "/" + "/".join(parts) + (f"?{query}" if query else "")


@pytest.mark.parametrize("name", [*NAMES, *IDS, "~", "~.", "~~..", "~x", ""])
def test_a_part_of_a_path_stands_for_its_name_and_is_no_step(name: str) -> None:
    part = path_part(name)
    assert name_of(unquote(part)) == name
    assert "/" not in part
    assert not _STEP.fullmatch(part)


def rows(page: Shown) -> int:
    return sum("data-row" in each for each in page.named("tr"))


async def fill(at: House) -> list[str]:
    """Have every name somewhere; return the ids of the memories that there are."""
    owner = at.agent("bot", user="owner")
    for number, session in enumerate(IDS):
        name = NAMES[number]
        await owner.ask(CreateSession(session_id=session, purpose="p", project_id=name, app_name=name))
        await say(owner, session, name)
    made = []
    for number, name in enumerate(NAMES):
        provenance = {"client": name, "session": name}
        given = msgspec.json.encode({"session": name, "session_id": name, "provenance": provenance})
        memory = await owner.ask(
            StoreMemory(
                content=f"the hull {number}",
                key=re.sub(r'[/\\:*?"<>|]', "", name),
                tags=[name.strip() or "x"],
                conversation_id=name[:100],
                metadata=msgspec.Raw(given),
            )
        )
        made.append(memory.memory_id)
        await at.agent("bot", user=name).ask(StoreMemory(content="x", namespace="team:.."))
        document = document_of(name, [(["One"], "some text")], title=name)
        who = Principal(agent_id="bot", user="owner")
        await ask_corpus(at.runtime, who, PutDocument(corpus="..", document=document), make=True)
        await create_key(at, "*:read", user=name)
    return made


@pytest.mark.slow
@pytest.mark.promise("console.links")
async def test_every_link_of_every_view_leads_to_a_page(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        made = await fill(at)
        await here.settled()
        me = await looker(here)
        views = ["/", "/sessions", "/memories", "/search?q=hull", "/told", "/map", "/knowledge", "/people"]
        views += ["/audit", *(f"/memories/{each}" for each in made[:2])]
        views += [f"/sessions?id={quote(name)}" for name in NAMES[:3]]
        leads: set[str] = set()
        for address in views:
            page = await me.look(address)
            page.check_inert()
            leads |= {followed(address, link) for link in page.links}
        other = {f"/memories/{each}" for each in made[2:]}
        for address in leads - other - {"/audit/export"}:  # which asks for a code
            page = await me.look(address)
            assert page.status == 200, (address, page.text[:300])
        for session in IDS:
            assert f"/sessions/{path_part(session)}" in leads
        assert {f"/sessions/~..{tab}" for tab in ("", "/context", "/passports", "/history")} <= leads


@pytest.mark.promise("console.links")
async def test_a_link_with_a_name_leads_to_what_has_that_name(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        await fill(at)
        await here.settled()
        me = await looker(here)

        async def led(path: str, parameter: str) -> dict[str, Shown]:
            """Return where the links of a page lead that have a parameter, by its value."""
            found = {followed(path, link) for link in (await me.look(path)).links}
            asked = {link: parse_qs(urlsplit(link).query, keep_blank_values=True) for link in found}
            return {
                given[parameter][0]: await me.look(link)
                for link, given in asked.items()
                if parameter in given
            }

        documents = await led("/knowledge/user:owner:..", "document")
        assert set(documents) == set(NAMES)
        for name, page in documents.items():
            assert f"Path {' '.join(name.split())} Kind" in page.text
        projects = await led("/sessions", "project")
        assert set(projects) == set(NAMES[: len(IDS)])
        assert {rows(page) for page in projects.values()} == {1}
        users = await led("/audit", "user")
        assert {" a b ", "a%2Fb", "../../people", HOSTILE} <= set(users)
        assert all(rows(page) for page in users.values())


@pytest.mark.slow
@pytest.mark.promise("console.links")
async def test_sessions_that_metadata_names_are_found_or_said_to_be_missing(enter: Enter) -> None:
    async with enter(embedder="none") as at, premises(at) as here:
        owner = Client(at, "owner")
        event = await owner.tells("stop", user("Remember that the hull is oak."), session="client/..")
        (found,) = (await owner.agent.ask(ListMemories())).memories
        await at.agent("bot", user="owner").ask(CreateSession(session_id="..", purpose="steps"))
        memory = await at.agent("bot", user="owner").ask(
            StoreMemory(
                content="x",
                metadata=msgspec.Raw(msgspec.json.encode({"session_id": "..", "session": f"gone {HOSTILE}"})),
            )
        )
        me = await looker(here)
        page = await me.look(f"/memories/{found.memory_id}")
        (lead,) = [followed("/memories/x", link) for link in page.links if "id=" in link]
        kept = session_id_of(event, owner.principal)
        assert kept in (await me.look(lead)).text
        page = await me.look(f"/memories/{memory.memory_id}")
        there, gone = [followed("/memories/x", link) for link in page.links if "id=" in link]
        assert "steps" in (await me.look(there)).text
        missing = await me.look(gone)
        missing.check_inert()
        assert (missing.status, "There is no session gone" in missing.text) == (200, True)
        assert not missing.named("main")[0].get("data-every")
        assert (await me.look(f"/sessions?id=s&from={'9' * 16}")).status == 422
