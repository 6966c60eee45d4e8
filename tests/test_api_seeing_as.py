"""Seeing below `/api/v1` what another agent sees: for administrators, to read only, and on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.agents import AuditTrail, begin
from support.api import ROOT, posted
from support.keyed import bearer, create_key, premises

from greenroom.actors import (
    AddMessage,
    CreateSession,
    SetMemory,
    StoreMemory,
)

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors.audit.record import AuditRow

pytestmark = pytest.mark.promise("api.seeing-as")

AS_SCRIBE = {"greenroom-as": "scribe", "greenroom-as-user": "ann"}


async def looks(at: House) -> list[AuditRow]:
    return [row for row in await at.runtime.query(AuditTrail()) if row.action == "see_as"]


async def test_an_administrator_reads_what_an_agent_reads_and_no_more(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        scribe = at.agent("scribe", agent_type="writer", user="ann", projects=frozenset({"apollo"}))
        await begin(at)
        await scribe.ask(CreateSession(session_id="mine", purpose="p", project_id="apollo"))
        await scribe.ask(AddMessage(session_id="mine", content="to myself", visibility="private"))
        await scribe.ask(AddMessage(session_id="mine", content="to writers", visibility="agent_only"))
        await at.agent("other", user="bob").ask(
            CreateSession(session_id="hers", purpose="p", project_id="zeus")
        )
        await scribe.ask(StoreMemory(key="k", content="a memory of ann"))
        await scribe.ask(SetMemory(key="kept", value="scribe's own"))
        key = await create_key(at, "admin", agent="root")
        await here.settled()
        guest, shown = await here.guest(), {**bearer(key), **AS_SCRIBE}

        async def asked(path: str, arguments: Any, **more: str) -> Any:
            return await posted(guest, path, arguments, {**shown, **more})

        assert (await posted(guest, "get_messages", {"session_id": "mine"}, bearer(key))).status == 403
        said = (await asked("get_messages", {"session_id": "mine"})).json()["messages"]
        assert [each["content"] for each in said] == ["to myself"]  # it was not said that it is a writer
        writer = {"greenroom-as-type": "writer", "greenroom-as-project": "apollo"}
        said = (await asked("get_messages", {"session_id": "mine"}, **writer)).json()["messages"]
        assert [each["content"] for each in said] == ["to myself", "to writers"]
        assert (await asked("get_session", {"session_id": "hers"}, **writer)).status == 404
        assert (await asked("get_memory", {"key": "kept"})).json()["value"] == "scribe's own"
        assert "a memory of ann" in (await asked("list_memories", {})).body.decode()
        nobody = {**bearer(key), "greenroom-as": "scribe", "greenroom-as-user": ""}
        assert "a memory of ann" not in (await posted(guest, "list_memories", {}, nobody)).body.decode()
        query = "as=scribe&as_type=writer&as_user=ann&as_project=apollo"
        read = await guest.ask("GET", f"{ROOT}/resources?uri=session://mine&{query}", **bearer(key))
        assert (read.status, read.json()["session"]["session_id"]) == (200, "mine")
        who = (await guest.ask("GET", f"{ROOT}/session?{query}", **bearer(key))).json()
        assert who == {
            "agent": "scribe",
            "agent_type": "writer",
            "user": "ann",
            "projects": ["apollo"],
            "scopes": ["*:read"],
            "seen_by": "root",
            "csrf_token": None,
            "expires_in": None,
        }
