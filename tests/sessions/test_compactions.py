"""A client whose context is made shorter: what its hooks tell of that, once, on the time line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.agents import moment
from support.console import looker
from support.hook_events import Client, user
from support.keyed import premises

from greenroom.actors import Agent, EraseUser, Principal, ReadTranscript, ReopenSession
from greenroom.actors.sessions.requests.hook_messages import session_id_of
from greenroom.actors.sessions.storage.records import MOST_COMPACTIONS

if TYPE_CHECKING:
    from support.agents import Enter

    from greenroom.actors import HookEvent
    from greenroom.actors.sessions.requests.session_views import Transcript

HOSTILE = '"><script>alert(1)</script>\u202e{{7*7}}'


async def read(client: Client, event: HookEvent) -> Transcript:
    return await client.agent.ask(ReadTranscript(session_id=session_id_of(event, client.principal)))


@pytest.mark.promise("hook-context.compactions")
async def test_a_compaction_is_kept_once_even_if_nothing_was_said_since(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        event = await ann.tells("pre-compact", reason="auto")
        at.tick(60)
        await ann.tells_again(event)
        later = await ann.tells("pre-compact", user("Go on"), reason="manual")
        await ann.tells("stop", user("And on"))
        kept = (await read(ann, later)).compactions
        assert [(each.reason, each.by, each.client) for each in kept] == [
            ("auto", "claude-code", "claude-code"),
            ("manual", "claude-code", "claude-code"),
        ]
        assert kept[0].at == event.at


@pytest.mark.slow
@pytest.mark.promise("hook-context.compactions")
async def test_of_very_many_compactions_the_newest_are_kept(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        for number in range(MOST_COMPACTIONS + 3):
            event = await ann.tells("pre-compact", reason=str(number))
            at.tick()
        await ann.tells("pre-compact", reason="of long ago", at=moment(0))
        await ann.tells("pre-compact", reason="x" * 255, at=moment(at.clock.now() + 10**12))
        kept = [each.reason for each in (await read(ann, event)).compactions]
        assert len(kept) == MOST_COMPACTIONS
        assert (kept[0], kept[-1]) == ("4", "x" * 100)


@pytest.mark.promise("hook-context.compactions")
async def test_compactions_stand_on_the_time_line_between_the_steps(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = Client(at, "owner")
        early = at.clock.now()
        at.tick(60)
        first = await owner.tells("session-end", user("Hello"), reason="logout")
        session = session_id_of(first, owner.principal)
        at.tick(60)
        await owner.agent.ask(ReopenSession(session_id=session))
        at.tick(60)
        await owner.tells("pre-compact", reason=HOSTILE)
        at.tick(60)
        await owner.tells("pre-compact", reason="waited", at=moment(early))
        page = await (await looker(here)).look(f"/sessions/{session}/history")
        page.check_inert()
        line = page.text.partition("Hand-overs")[2].partition("Who wrote here")[0]
        found = [line.index(each) for each in ("waited", "Opened again", "<script>alert(1)</script>")]
        assert found == sorted(found)
        assert "The context of claude-code was made shorter (compacted)" in line


@pytest.mark.promise("hook-context.compactions")
async def test_compactions_are_seen_by_who_sees_the_session_and_are_erased(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        event = await ann.tells("pre-compact", user("Hello"), reason="auto")
        session = session_id_of(event, ann.principal)
        seen = await Client(at, "bob", "zed").agent.ask(ReadTranscript(session_id=session))
        assert ([each.reason for each in seen.compactions], seen.messages) == (["auto"], [])
        root = Agent(at.runtime, Principal(agent_id="root"))
        await root.ask(EraseUser(user="ann", confirm=True))
        again = await ann.tells("stop", user("Hello again"))
        assert (await read(ann, again)).compactions == []
