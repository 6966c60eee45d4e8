"""Passports and hand-overs of a session in the console: who issued and took them, whose they are, when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.console import looker
from support.keyed import premises
from support.passports import begun, member
from trio.testing import wait_all_tasks_blocked

from greenroom.actors import (
    EndSession,
    EraseUser,
    ExportSession,
    ListPassports,
    MigrateSession,
    RestoreSession,
)
from greenroom.testing import DAY

if TYPE_CHECKING:
    from support.agents import Enter


async def test_passports_are_listed_with_who_took_them(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = member(at.runtime, "claude-code", user="owner")
        session = await begun(owner, "hello")
        made: Any = await owner.ask(ExportSession(session_id=session, one_time=True, expires_in=3_600))
        await owner.ask(EndSession(session_id=session))
        other = member(at.runtime, "zed", user="owner")
        restored: Any = await other.ask(RestoreSession(passport=made.claim))
        guest = await looker(here)
        page = await guest.look(f"/sessions/{session}/passports")
        assert made.passport_id[:8] in page.text
        assert "once" in page.text
        assert "zed" in page.text
        assert any(link.endswith(f"sessions/{restored.session_id}") for link in page.links)
        assert made.signer[:15] in page.text
        came = await guest.look(f"/sessions/{restored.session_id}/passports")
        assert made.passport_id[:8] in came.text.partition("Redeemed")[2]
        assert "not finished" not in came.text
        assert (
            "Restored from a passport" in (await guest.look(f"/sessions/{restored.session_id}/history")).text
        )
        at.clock.jump(2 * DAY)
    async with enter() as at:
        await wait_all_tasks_blocked(0.05)
        owner = member(at.runtime, "claude-code", user="owner")
        for session_id in (session, restored.session_id):
            found = await owner.ask(ListPassports(session_id=session_id))
            assert (found.issued, found.redeemed) == ([], [])


async def test_passports_are_listed_for_who_issued_or_redeemed_them(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = (member(at.runtime, "claude-code", user=user) for user in ("ann", "bob"))
        session = await begun(ann, "hello")
        made: Any = await ann.ask(ExportSession(session_id=session))
        await ann.ask(EndSession(session_id=session))
        restored: Any = await bob.ask(RestoreSession(passport=made.claim))
        for agent, issued, redeemed in ((ann, 1, 0), (bob, 0, 1)):
            one = await agent.ask(ListPassports(session_id=session))
            other = await agent.ask(ListPassports(session_id=restored.session_id))
            assert (len(one.issued), len(other.redeemed)) == (issued, redeemed)
            assert (len(one.redeemed), len(other.issued)) == (0, 0)
            assert [each.deed for each in one.of_others] == (["issued"] if issued == 0 else [])
            assert [each.deed for each in other.of_others] == (["redeemed"] if redeemed == 0 else [])


async def test_of_others_passports_readers_see_what_the_sessions_way_tells(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        ann = member(at.runtime, "of-ann", user="ann", projects=frozenset({"atlas"}))
        bob = member(at.runtime, "of-bob", user="bob", projects=frozenset({"borealis"}))
        shared = await begun(ann, "hello", project_id="atlas")
        made: Any = await ann.ask(ExportSession(session_id=shared))
        await ann.ask(EndSession(session_id=shared))
        hidden: Any = await bob.ask(RestoreSession(passport=made.claim, project_id="borealis"))
        eve = member(at.runtime, "of-eve", user="eve", projects=frozenset({"atlas"}))
        (seen,) = (await eve.ask(ListPassports(session_id=shared))).of_others
        assert (seen.deed, seen.agent, seen.is_expired, seen.sessions) == ("issued", "of-ann", False, [])
        nothing = await eve.ask(ListPassports(session_id=hidden.session_id))
        assert (nothing.issued, nothing.redeemed, nothing.of_others) == ([], [], [])
        page = await (await looker(here)).look(f"/sessions/{shared}/passports")
        page.check_inert()
        told = page.text.partition("Of others")[2]
        assert "Issued by of-ann" in told
        assert "redeemed by of-bob" in told
        assert any(link.endswith(f"sessions/{hidden.session_id}") for link in page.links)
        assert made.passport_id[:8] not in page.text
        at.clock.jump(8 * DAY)
        assert "expired" in (await (await looker(here)).look(f"/sessions/{shared}/passports")).text


async def test_who_is_erased_is_in_no_list_of_passports(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = (member(at.runtime, f"of-{user}", user=user) for user in ("ann", "bob"))
        session = await begun(ann, "hello")
        made: Any = await ann.ask(ExportSession(session_id=session))
        await ann.ask(EndSession(session_id=session))
        await bob.ask(RestoreSession(passport=made.claim))
        taken = (await ann.ask(ListPassports(session_id=session))).issued[0].taken
        assert [each.agent for each in taken] == ["of-bob"]
        await at.agent("root").ask(EraseUser(user="bob", confirm=True))
        assert (await ann.ask(ListPassports(session_id=session))).issued[0].taken == []
        await at.agent("root").ask(EraseUser(user="ann", confirm=True))
        other = member(at.runtime, "of-ann", user="ann")
        assert (await other.ask(ListPassports(session_id=session))).issued == []


async def test_hand_overs_are_stretches_of_time(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        claude = member(at.runtime, "claude-code", user="owner")
        session = await begun(claude, "hello")
        at.tick(600)
        moved: Any = await claude.ask(
            MigrateSession(session_id=session, to_tool="zed", note="the tests are next")
        )
        claude.close()
        at.tick(60)
        zed = member(at.runtime, "zed", user="owner")
        await zed.ask(RestoreSession(passport=moved.claim))
        at.tick(120)
        await zed.ask(EndSession(session_id=session))
        page = await (await looker(here)).look(f"/sessions/{session}/history")
        line = page.text.partition("Hand-overs")[2].partition("Who wrote here")[0]
        assert re.search("claude-code claude-code , from .* zed zed , from .* Ended", line), line
        assert "10 min" in page.text
        assert "2 min" in page.text
        assert "the tests are next" in page.text
        assert "Taken up from claude-code to zed by zed" in page.text
