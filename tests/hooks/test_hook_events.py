"""What hooks tell: kept once, by whom it belongs to, and seen in ratings where it was of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
import pytest
import trio
import trio.testing
from support.agents import AuditTrail, moment, refused, wire
from support.hook_events import FOLDER, PROJECT, Client, call, fill, model, user

from greenroom.actors import (
    Agent,
    CreateSession,
    EraseUser,
    Finding,
    ForgetMemory,
    GetMessages,
    GetSessionContext,
    ListMemories,
    ListSessions,
    MemoryView,
    Principal,
    RateMemory,
    StartSession,
    TakeHookEvent,
)
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.briefing.context_lines import is_used, marks_of
from greenroom.actors.hooks.extraction.turns import MOST_CHARACTERS
from greenroom.actors.sessions.handlers import hook_turns
from greenroom.actors.sessions.requests import injection_log
from greenroom.actors.sessions.requests.hook_messages import session_id_of
from greenroom.actors.sessions.requests.injection_log import KEPT_DAYS, ReadGiven
from greenroom.actors.sessions.summary.retained_messages import HOOKS_APP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter

    from greenroom.actors import HookEvent, MessageView, Turn
    from greenroom.runtime import Address, Message, ProcedureContext

R = TypeVar("R")

PORT = "The staging database of the shop listens on port 5433 in Frankfurt"
ASKED = "On which port does the staging database listen?"
REMEMBER = user("Remember that releases are cut from the branch called stable.")


class DeathError(Exception):
    """The process is gone."""


async def messages(ann: Client, event: HookEvent) -> list[MessageView]:
    page = await ann.agent.ask(GetMessages(session_id=session_id_of(event, ann.principal), limit=1_000))
    return page.messages


async def memories(ann: Client) -> list[MemoryView]:
    return (await ann.agent.ask(ListMemories(limit=200))).memories


# -- once ----------------------------------------------------------------------


@pytest.mark.promise("hook-context.exactly-once")
async def test_an_event_is_taken_once_however_often_and_at_once_it_is_told(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        event = ann.event("stop", turns=[REMEMBER, model("I will.")])
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ann.tells_again, event)
        await ann.tells_again(event)
        assert len(await messages(ann, event)) == 2
        (memory,) = await memories(ann)
        assert (memory.version, memory.tags[0]) == (1, "remember")
        taken = [row for row in await at.runtime.query(AuditTrail()) if row.action == "take_hook_event"]
        assert len(taken) == 1


class Dying:
    """Asks actors as a procedure's context does, and dies once one kind of message was answered."""

    def __init__(self, ann: Client, last: str) -> None:
        self.principal = ann.principal
        self._runtime = ann.at.runtime
        self._last = last

    async def ask(self, address: Address, message: Message[R]) -> R:
        answer = await self._runtime.ask(address, message, principal=self.principal)
        if type(message).__name__ == self._last:
            raise DeathError
        return answer


@pytest.mark.promise("hook-context.exactly-once")
@pytest.mark.parametrize("last", ["KeepTurns", "StoreMemory", "NoteHelp", "NoteTaken"])
async def test_what_ended_on_the_way_is_completed_by_the_repeat(enter: Enter, last: str) -> None:
    async with enter() as at:
        ann = Client(at)
        memory_id = await ann.knows(PORT)
        await ann.asks(ASKED)
        used = model("I set the shop to 5433 in Frankfurt.")
        event = ann.event("stop", turns=[REMEMBER, used])
        with pytest.raises(DeathError):
            await TakeHookEvent(event=event).run(cast("ProcedureContext", Dying(ann, last)))
        await ann.tells_again(event)
        assert [each.content for each in await messages(ann, event)] == [REMEMBER.text, used.text]
        known = {each.memory_id: each for each in await memories(ann)}
        assert len(known) == 2
        assert (known[memory_id].uses, known[memory_id].rating, known[memory_id].ratings) == (1, 0.2, 1)


@pytest.mark.promise("hook-context.findings")
async def test_the_same_said_again_is_one_memory_and_one_that_was_forgotten_stays_so(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        for session, hook in (("s1", "pre-compact"), ("s1", "session-end"), ("s2", "pre-compact")):
            await ann.tells(hook, REMEMBER, model("Yes."), session=session)
        (memory,) = await memories(ann)
        assert memory.namespace == f"user:ann:{PROJECT}"
        assert (memory.scope, memory.unreviewed) == ("private", True)
        assert memory.version == 1
        provenance = wire(memory)["metadata"]["provenance"]
        assert {**provenance, "at": ""} == {
            "client": "claude-code", "session": "s1", "hook": "pre-compact", "at": "", "rule": "remember",
        }  # fmt: skip
        await ann.agent.ask(ForgetMemory(memory_id=memory.memory_id))
        await ann.tells("session-end", REMEMBER, session="s3")
        assert await memories(ann) == []
        await ann.tells("session-end", REMEMBER, session="s4", project="blog-99999999")
        assert [each.namespace for each in await memories(ann)] == ["user:ann:blog-99999999"]


@pytest.mark.promise("hook-context.findings")
async def test_a_program_finds_what_is_worth_a_memory_by_means_of_its_own(enter: Enter) -> None:
    async def find(turns: Sequence[Turn], /) -> list[Finding]:
        if "fail" in turns[0].text:
            raise ValueError(turns)
        return [Finding(rule="decision", kind="semantic", text="Ship it", tags=["decision"], turn=0)]

    async with enter(extractor=find) as at:
        ann = Client(at)
        await ann.tells("pre-compact", REMEMBER)
        assert [(each.content, each.unreviewed) for each in await memories(ann)] == [("Ship it", True)]
        await ann.tells("pre-compact", user("fail"), REMEMBER)
        assert "stable" in str((await memories(ann))[0].content)


@pytest.mark.promise("hook-context.findings")
async def test_what_one_event_begins_the_next_may_complete_and_no_other_session(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        proposal = model("I suggest cutting releases from the branch called stable.")
        broken = call("Bash", command="make test", failed=True, text="all of it\nError: no rule")
        await ann.tells("stop", user("How do we release?"), broken, proposal)
        await ann.tells("stop", user("Yes, go ahead."), session="s2")
        assert await memories(ann) == []
        event = await ann.tells("stop", user("Yes, go ahead."), call("Edit", path="cart.mk", wrote=True))
        await ann.tells_again(event)
        await ann.tells("stop", call("Bash", command="make test", text="fine"))
        assert {each.tags[0]: each.content for each in await memories(ann)} == {
            "decision": f"Agreed: {proposal.text}",
            "fix": "`make test` failed with \u201cError: no rule\u201d and passed after editing `cart.mk`.",
        }
        await ann.tells("stop", broken, call("Edit", path="shop.mk", wrote=True))
        await ann.tells("session-end", reason="logout")
        await ann.tells("stop", call("Bash", command="make test", text="fine"))
        assert len(await memories(ann)) == 2


# -- the session ---------------------------------------------------------------


@pytest.mark.promise("hook-context.session")
async def test_a_clients_session_is_one_session_of_short_turns_that_its_agent_alone_reads(
    enter: Enter,
) -> None:
    async with enter() as at:
        ann = Client(at)
        first = await ann.tells(
            "pre-compact",
            user("Fix the cart"),
            call("Read", path=f"{FOLDER}/cart.py", text="secret file"),
            call("Bash", command="pytest -q", failed=True, text="E" * 9_000),
            model("Done. " + "y" * 19_000),
            reason="auto",
        )
        await ann.tells("session-end", user("Thanks"), reason="logout")
        said = await messages(ann, first)
        assert [(each.sender, each.visibility) for each in said] == [
            ("user", "private"), ("claude-code", "private"), ("claude-code", "private"), ("user", "private"),
        ]  # fmt: skip
        assert said[1].content == f"Read: {FOLDER}/cart.py; Bash: pytest -q (failed)"
        assert len(said[2].content) <= 4_000
        (session,) = (await ann.agent.ask(ListSessions())).sessions
        assert (session.user_id, session.project_id, session.status) == ("ann", PROJECT, "terminated")
        read = await ann.agent.ask(GetSessionContext(session_id=session.session_id))
        assert [each.path for each in read.context.files_accessed] == [f"{FOLDER}/cart.py"]
        eve = Client(at, "eve", "claude")
        listed = await eve.agent.ask(GetMessages(session_id=session.session_id))
        assert listed.messages == []
        await ann.tells("stop", user("One more thing"))
        (session,) = (await ann.agent.ask(ListSessions())).sessions
        assert session.status == "active"


@pytest.mark.promise("hook-context.session")
async def test_what_hooks_keep_is_no_work_that_start_session_takes_up(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        event = await ann.tells("stop", user("Hello"), call("Edit", path=f"{FOLDER}/a.py", wrote=True))
        started = await ann.agent.ask(StartSession(project_id=PROJECT))
        kept = session_id_of(event, ann.principal)
        assert (started.restored, started.taken_up) == (False, None)
        assert started.session_id not in {None, kept}
        assert [each.session_id for each in started.offered] == [kept]


@pytest.mark.promise("hook-context.session")
async def test_a_session_that_somebody_made_under_its_name_is_not_written_into(enter: Enter) -> None:
    async with enter() as at:
        ann, eve = Client(at), Client(at, "eve")
        event = ann.event("stop", turns=[user("Hello")])
        squatted = session_id_of(event, ann.principal)
        await eve.agent.ask(CreateSession(session_id=squatted, purpose="p", app_name=HOOKS_APP))
        with refused("KEY_EXISTS"):
            await ann.tells_again(event)
        assert (await eve.agent.ask(GetMessages(session_id=squatted))).messages == []


@pytest.mark.promise("hook-context.session")
async def test_how_much_is_kept_is_bounded(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_turns, "MOST_TURNS", 150)
    async with enter() as at:
        ann = Client(at)
        turns = [model(f"{number} " + "z" * 3_500) for number in range(100)]
        event = await ann.tells("stop", *turns)
        said = await messages(ann, event)
        assert sum(len(each.content) for each in said) <= MOST_CHARACTERS
        assert said[-1].content.startswith("99 ")
        for _ in range(3):
            await ann.tells("stop", *turns)
        assert len(await messages(ann, event)) == 150


# -- of use --------------------------------------------------------------------


@pytest.mark.promise("hook-context.use")
async def test_a_memory_whose_telling_words_come_back_is_rated_once_for_each_time_it_was_given(
    enter: Enter,
) -> None:
    async with enter() as at:
        ann = Client(at)
        memory_id = await ann.knows(PORT)
        at.tick()
        assert PORT in await ann.asks(ASKED)
        await ann.tells("stop", model("I do not know which port that is."))
        assert (await memories(ann))[0].ratings == 0
        said = model("In Frankfurt the shop has it on 5433.")
        for _ in range(2):
            await ann.tells("stop", said)
        (memory,) = await memories(ann)
        assert (memory.uses, memory.rating, memory.ratings) == (1, 0.2, 1)
        ((given,),) = [row.memories for row in (await ann.given()).given]
        assert (given.memory_id, given.used is not None) == (memory_id, True)
        await ann.asks(ASKED, session="s2")
        await ann.tells("stop", said, session="s2")
        (memory,) = await memories(ann)
        assert (memory.uses, round(memory.rating, 4), memory.ratings) == (2, 0.3, 1)


@pytest.mark.promise("hook-context.use")
async def test_a_use_makes_no_rating_worse_and_leaves_the_agents_own_alone(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        memory_id = await ann.knows(PORT)
        await ann.agent.ask(RateMemory(memory_id=memory_id, rating=1.0))
        await ann.asks(ASKED)
        await ann.tells("stop", model("In Frankfurt the shop has it on 5433."))
        (memory,) = await memories(ann)
        assert (memory.uses, memory.rating, memory.ratings) == (1, 1.0, 1)


@pytest.mark.promise("hook-context.use")
async def test_what_was_said_before_it_was_given_or_by_the_person_or_a_tool_is_no_use(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        await ann.knows(PORT)
        before = moment(at.clock.now())
        at.tick()
        await ann.asks(ASKED)
        words = "In Frankfurt the shop has it on 5433."
        await ann.tells("stop", model(words, at=before), user(words), call("Bash", text=words))
        assert (await memories(ann))[0].uses == 0


def test_marks_are_words_that_the_prompt_has_not_and_tell_nobody_what_they_are() -> None:
    marks = marks_of(PORT, ASKED)
    assert marks
    assert is_used(marks, ["the SHOP, in frankfurt:", "5433"])
    assert not is_used(marks, [ASKED])
    assert not is_used(marks_of("Use tabs", "How do I indent?"), ["Use spaces"])
    assert not is_used([], ["anything"])


# -- the ledger ----------------------------------------------------------------


@pytest.mark.promise("hook-context.why")
async def test_the_ledger_says_what_was_given_to_whom_when_and_why(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        await fill(ann)
        memory_id = await ann.knows(PORT, key="port")
        key = "ghp_" + "a1B2c3D4" * 5
        await ann.asks(f"{ASKED} {key} " + "it is. " * 100)
        at.tick()
        await ann.starts("other", reason="resume")
        newest, oldest = (await ann.given()).given
        assert (newest.hook, newest.session, newest.reason, newest.lines) == (
            "session-start",
            "other",
            "resume",
            1,
        )
        assert (oldest.hook, oldest.client, oldest.agent) == ("user-prompt", "claude-code", "claude-code")
        assert oldest.query.startswith(ASKED)
        assert key not in oldest.query
        assert len(oldest.query) <= 300
        (memory,) = oldest.memories
        assert (memory.memory_id, memory.key, memory.version, memory.used) == (memory_id, "port", 1, None)
        assert 0.2 < (memory.score or 0) <= 1
        assert memory.signals
        assert "5433" not in msgspec.json.encode(await ann.given()).decode()
        some = await ann.given(session="oth")
        assert ([row.session for row in some.given], some.total) == (["other"], 1)
        assert len((await ann.given(limit=1)).given) == 1
        assert (await Client(at, "eve").given()).given == []
        with refused("PERMISSION_DENIED"):
            await at.runtime.ask(hook_address("user:ann"), ReadGiven(), principal=Client(at, "eve").principal)


@pytest.mark.promise("hook-context.forgotten")
async def test_what_is_old_is_forgotten_and_of_very_much_the_oldest(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injection_log, "MOST_GIVEN", 3)
    async with enter() as at:
        ann = Client(at)
        await ann.knows(PORT)
        event = await ann.tells("stop", REMEMBER)
        for number in range(5):
            await ann.asks(ASKED, session=f"n{number}")
        assert [row.session for row in (await ann.given()).given] == ["n4", "n3", "n2"]
        at.tick((KEPT_DAYS - 1) * 86_400)
        await trio.testing.wait_all_tasks_blocked()
        await ann.tells_again(event)
        assert len(await messages(ann, event)) == 1
        assert (await ann.given()).total == 3
        await ann.asks(ASKED, session="late")
        at.tick(2 * 86_400)
        await trio.sleep(120)
        assert [row.session for row in (await ann.given()).given] == ["late"]


@pytest.mark.promise("hook-context.forgotten")
async def test_a_person_who_is_erased_leaves_nothing_of_what_hooks_told(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = Client(at), Client(at, "bob")
        for client in (ann, bob):
            await client.knows(PORT)
            await client.asks(ASKED)
            await client.tells("session-end", REMEMBER, reason="logout")
        root = Agent(at.runtime, Principal(agent_id="root"))
        counted = (await root.ask(EraseUser(user="ann"))).counts
        assert {name: counted[name] for name in ("given", "hook_events", "hook_sessions", "sessions")} == {
            "given": 1, "hook_events": 1, "hook_sessions": 1, "sessions": 1,
        }  # fmt: skip
        assert (await root.ask(EraseUser(user="ann", confirm=True))).counts == counted
        assert (await root.ask(EraseUser(user="ann"))).counts == {}
        assert (await ann.given()).given == []
        assert len((await bob.given()).given) == 1


@pytest.mark.promise("hook-context.audited")
async def test_what_is_kept_and_given_is_audited_without_what_was_said(enter: Enter) -> None:
    async with enter() as at:
        ann = Client(at)
        await ann.knows(PORT)
        await ann.asks(ASKED)
        await ann.tells("session-end", REMEMBER, model("In Frankfurt the shop has it on 5433."))
        await ann.given()
        rows = [row for row in await at.runtime.query(AuditTrail()) if row.user == "ann"]
        deeds = {row.action: row.details for row in rows}
        assert deeds["give_context"]["memories"] == 1
        assert deeds["keep_turns"] == {"turns": 2, "left_out": 0}
        assert (deeds["take_hook_event"]["findings"], deeds["take_hook_event"]["used"]) == (1, 1)
        assert {"note_help", "read_given", "store_memory"} <= set(deeds)
        assert not any(word in str(rows) for word in ("5433", "stable", "listen"))
