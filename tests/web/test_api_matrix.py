"""Every request below `/api/v1`, asked by everybody: allowed or denied exactly as docs/security.md says.

As `test_matrix` asks agents, here each path is asked over HTTP, by a key of each reader of the page, and by
an administrator who looks on as that reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from core.test_matrix import ASKED, CLOSED, WORKSPACE, arranged, filled, verdicts
from core.test_security import READERS
from support.api import posted
from support.keyed import administrator, bearer, premises

from greenroom.actors import API_REQUESTS, Agent, CreateApiKey, Principal, is_write
from greenroom.actors.app.requests import NEEDED
from greenroom.actors.core.auth.scopes import ADMIN, AUDIT, SCOPES

if TYPE_CHECKING:
    from support.agents import House
    from support.https import Guest
    from support.passports import Opens

pytestmark = pytest.mark.promise("api.matrix")

OF_ALL_PROJECTS = frozenset({ADMIN, AUDIT})
KEPT_FOR_A_WHILE = frozenset({"export_memories", "export_session"})
"""What needs a scope that reads, and keeps what it answers in the agent's name."""


async def shown_by(at: House, reader: str, scopes: frozenset[str]) -> dict[str, Any]:
    """Return the header of a key of a reader with some scopes; those of all projects go to no member."""
    who = READERS[reader]
    member = scopes.isdisjoint(OF_ALL_PROJECTS)
    request = CreateApiKey(
        name="n",
        scopes=sorted(scopes),
        agent=who["agent_id"],
        agent_type=who.get("agent_type"),
        user=who["user"],
        projects=sorted(who["projects"]) if member else None,
    )
    return bearer(await administrator(at).ask(request))


def looking_on_as(reader: str) -> dict[str, Any]:
    """Return the headers of somebody who looks on as a reader."""
    who = READERS[reader]
    named = {"greenroom-as": who["agent_id"], "greenroom-as-user": who["user"]}
    named["greenroom-as-project"] = ",".join(who["projects"])
    return named if "agent_type" not in who else {**named, "greenroom-as-type": who["agent_type"]}


def may_look_on(tool: str) -> bool:
    """Return whether the page lets an onlooker ask a request."""
    needed = NEEDED[tool]
    return needed.endswith(":read") and needed != AUDIT and tool not in KEPT_FOR_A_WHILE


async def answers(guest: Guest, tool: str, names: dict[str, str], shown: dict[str, Any]) -> bool:
    """Return whether a request tells of what is there."""
    answer = await posted(guest, tool, filled(ASKED[tool].arguments, names).encode(), shown)
    if answer.status != 200:
        assert answer.json()["code"] in CLOSED, answer
        return False
    return filled(ASKED[tool].shows, names) in answer.body.decode()


@pytest.mark.parametrize("reader", READERS)
async def test_every_request_answers_everybody_as_the_page_says(open_at: Opens, reader: str) -> None:
    often: dict[str, Any] = {"rate_limit": 1_000_000, "rate_burst": 100_000, "reach": WORKSPACE}
    async with open_at() as at, premises(at, **often) as here:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        page, everything = verdicts(), frozenset(SCOPES) - OF_ALL_PROJECTS
        whole = await shown_by(at, reader, everything)
        narrow = {scope: await shown_by(at, reader, everything - {scope}) for scope in everything}
        above = await shown_by(at, reader, OF_ALL_PROJECTS)
        looks_on = bearer(await administrator(at).ask(CreateApiKey(name="n", scopes=[ADMIN])))
        looks_on |= looking_on_as(reader)
        await here.settled()
        guest = await here.guest()
        shared = await arranged(at, scribe, 0)
        code = "search_code_semantic"  # begins the reader's index, which who looks on does not
        assert await answers(guest, code, shared, whole) == page[ASKED[code].row][reader]
        for number, tool in enumerate(ASKED, 1):
            scope = NEEDED[tool]
            names = await arranged(at, scribe, number) if is_write(API_REQUESTS[tool]) else shared
            at.tick()
            denied = await posted(
                guest, tool, filled(ASKED[tool].arguments, names).encode(), narrow.get(scope, whole)
            )
            problem = denied.json()
            assert (denied.status, problem["code"]) == (403, "PERMISSION_DENIED"), (tool, problem)
            assert problem["details"]["scope"] == scope
            if may_look_on(tool):
                assert await answers(guest, tool, names, looks_on) == page[ASKED[tool].row][reader], tool
            else:
                denied = await posted(guest, tool, filled(ASKED[tool].arguments, names).encode(), looks_on)
                assert (denied.status, denied.json()["code"]) == (403, "PERMISSION_DENIED"), tool
                assert f"ask for {tool} as yourself" in denied.json()["detail"]
            found = await answers(guest, tool, names, above if scope in OF_ALL_PROJECTS else whole)
            assert found == page[ASKED[tool].row][reader], tool
