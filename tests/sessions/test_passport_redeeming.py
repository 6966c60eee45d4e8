"""Who may redeem a passport: how often, until when, and for whom it is."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from support.agents import house, refused
from support.keyed import administrator
from support.passports import begun, contents, forged, member, signer_of, text_of, two

from greenroom.actors import (
    AddMessage,
    Agent,
    EndSession,
    EraseUser,
    ExportSession,
    ListSessions,
    ReadResource,
    RestoreSession,
    StartSession,
    StoreMemory,
)
from greenroom.actors.sessions.passports.signing import Signers
from greenroom.runtime import ActorFailedError, InlineCommitter, Refusal, StoreFailedError, restore
from greenroom.testing import DAY, SECOND, CrashError, Fault, FaultyDisk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import House
    from support.passports import Opens

    from greenroom.testing import VirtualClock


@pytest.mark.promise("passport.one-time")
async def test_a_one_time_passport_is_taken_once(open_at: Opens) -> None:
    async with open_at() as here:
        claude, cursor = member(here.runtime), member(here.runtime, "cursor", user="other")
        await begun(claude, "hello")
        exported = await claude.ask(ExportSession(one_time=True))
        first = await claude.ask(RestoreSession(passport=exported.claim, idempotency_key="k"))
        again = await claude.ask(RestoreSession(passport=exported.claim, idempotency_key="k"))
        assert again == first
        for key in (None, "l"):
            again = await claude.ask(RestoreSession(passport=exported.claim, idempotency_key=key))
            assert again == first
        for key in ("k", None):
            with refused("PASSPORT_REDEEMED"):
                await cursor.ask(RestoreSession(passport=exported.claim, idempotency_key=key))
        here.tick(3_600)
    async with open_at() as here:
        claude = member(here.runtime)
        text = await text_of(claude, exported)
        for given, key in ((exported.claim, "k"), (exported.claim, None), (text, None)):
            again = await claude.ask(RestoreSession(passport=given, idempotency_key=key))
            assert (again.session_id, again.restored_at) == (first.session_id, first.restored_at)
        assert (await claude.ask(ListSessions())).count == 1


@pytest.mark.promise("passport.one-time")
async def test_of_many_at_once_one_redeems_a_one_time_passport(open_at: Opens) -> None:
    async with open_at() as here:
        claude = member(here.runtime)
        await begun(claude, "hello")
        exported = await claude.ask(ExportSession(one_time=True))
        made: list[str] = []
        codes: list[str] = []

        async def restore(number: int) -> None:
            somebody = member(here.runtime, "cursor", user=f"user-{number}")
            try:
                made.append((await somebody.ask(RestoreSession(passport=exported.claim))).session_id)
            except Refusal as refusal:
                codes.append(refusal.code)

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(restore, number)
        assert len(made) == 1
        assert codes == ["PASSPORT_REDEEMED"] * 7


@pytest.mark.promise("passport.one-time")
async def test_a_reusable_passport_makes_a_session_each_time(open_at: Opens) -> None:
    async with open_at() as here:
        claude = member(here.runtime)
        session = await begun(claude, "hello")
        exported = await claude.ask(ExportSession())
        await claude.ask(EndSession())  # else it would be the session itself
        ids = {(await claude.ask(RestoreSession(passport=exported.claim))).session_id for _ in range(3)}
        assert len(ids | {session}) == 4
        for each in ids:
            assert await contents(claude, each) == ["hello"]
        first = await claude.ask(RestoreSession(passport=exported.claim, idempotency_key="k"))
        other = await claude.ask(ExportSession(session_id=session))
        with pytest.raises(Exception, match="other arguments"):
            await claude.ask(RestoreSession(passport=other.claim, idempotency_key="k"))
        assert first.session_id not in ids


@pytest.mark.promise("passport.one-time")
async def test_many_at_once_make_a_session_each_of_a_reusable_passport(open_at: Opens) -> None:
    async with two(open_at) as (here, there, signer):
        claude = member(here.runtime)
        session = await begun(claude, "hello")
        text = await text_of(claude, await claude.ask(ExportSession()))
        made: list[str] = []

        async def restore(number: int) -> None:
            somebody = member(there.runtime, "cursor", user=f"user-{number}", trusted=(signer,))
            made.append((await somebody.ask(RestoreSession(passport=text))).session_id)
            assert await contents(somebody, made[-1]) == ["hello"]

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(restore, number)
        assert len(set(made)) == 8
        assert session in made


@pytest.mark.promise("passport.expiry")
async def test_after_its_time_a_passport_is_refused_and_forgotten(
    open_at: Opens, far_clock: VirtualClock
) -> None:
    async with open_at() as here:
        claude = member(here.runtime)
        session = await begun(claude, "hello")
        exported = await claude.ask(ExportSession(expires_in=3_600))
        text = await text_of(claude, exported)
        another = await claude.ask(StartSession(purpose="another"))
        await claude.ask(AddMessage(session_id=another.session_id, content="so it stays"))
        handed = another.memory_passport
        assert handed is not None
        in_time = RestoreSession(passport=text, idempotency_key="in time")
        first = await claude.ask(in_time)
        here.tick(3_601)
        for given in (text, exported.claim):
            for key in (None, "another"):
                with refused("PASSPORT_EXPIRED"):
                    await claude.ask(RestoreSession(passport=given, idempotency_key=key))
        assert await claude.ask(in_time) == first  # a repeat is no second redemption
        assert first.session_id == session
        assert (await claude.ask(ListSessions())).count == 2
        far_clock.jump(2 * DAY)
    async with open_at() as here:
        claude = member(here.runtime)
        await trio.testing.wait_all_tasks_blocked(0.05)
        with refused("RESOURCE_NOT_FOUND"):
            await claude.ask(ReadResource(uri=exported.uri))
        assert (await claude.ask(RestoreSession(passport=handed.claim))).tool == "claude-code"
        far_clock.jump(30 * DAY)
        for key in (None, "new"):
            with refused("PASSPORT_EXPIRED"):
                await claude.ask(RestoreSession(passport=handed.claim, idempotency_key=key))


@pytest.mark.promise("passport.audience")
async def test_a_passport_for_somebody_is_for_nobody_else(open_at: Opens) -> None:
    async with two(open_at) as (here, there, signer):
        claude = member(here.runtime)
        await begun(claude, "hello")
        alice = member(there.runtime, user="alice", trusted=(signer,))
        nobody = member(there.runtime, user=None, trusted=(signer,))
        second = f"server:{signer_of(there)}"
        cases: list[tuple[list[str], Agent, bool]] = [
            (["user:alice"], alice, True),
            (["user:alice"], nobody, False),
            (["user:bob", "user:alice"], alice, True),
            (["user:bob"], alice, False),
            ([second], alice, True),
            ([f"server:{signer}"], alice, False),
            ([second, "user:bob"], alice, False),
            ([second, "user:alice"], alice, True),
        ]
        for audience, agent, fits in cases:
            text = await text_of(claude, await claude.ask(ExportSession(audience=audience)))
            if fits:
                await agent.ask(RestoreSession(passport=text))
            else:
                with refused("PASSPORT_NOT_FOR_YOU"):
                    await agent.ask(RestoreSession(passport=text))
        with refused("VALIDATION_ERROR"):
            await claude.ask(ExportSession(audience=["tool:zed"]))
        odd = forged(text, Signers(here.runtime.derive), audience=["planet:mars"])
        with refused("PASSPORT_NOT_FOR_YOU"):
            await alice.ask(RestoreSession(passport=odd))


@pytest.mark.promise("passport.itself")
async def test_where_it_was_exported_a_passport_stands_for_the_session_itself(open_at: Opens) -> None:
    async with open_at() as here:
        claude, cursor = member(here.runtime), member(here.runtime, "cursor")
        bob = member(here.runtime, "zed", user="bob", projects=frozenset({"boreas"}))
        session = await begun(claude, "hello", project_id="atlas")
        await claude.ask(StoreMemory(content="a memory", key="k"))
        exported = await claude.ask(ExportSession(include_memories=True))
        await claude.ask(AddMessage(session_id=session, content="after the export"))
        for given in (exported.claim, await text_of(claude, exported)):
            restored = await cursor.ask(RestoreSession(passport=given))
            assert (restored.session_id, restored.talk.messages, restored.memories) == (session, 2, 1)
            assert (restored.tool, restored.original_tool) == ("cursor", "claude-code")
        await cursor.ask(AddMessage(session_id=session, content="and on"))
        assert await contents(claude, session) == ["hello", "after the export", "and on"]
        into = RestoreSession(passport=exported.claim, project_id="boreas")
        copies = [await bob.ask(into), await cursor.ask(into)]  # he may not write it; it wants one elsewhere
        await claude.ask(EndSession(session_id=session))
        copies.append(await cursor.ask(RestoreSession(passport=exported.claim)))
        for copy in copies:
            assert copy.session_id != session
            assert copy.original_session_id == session
        assert await contents(cursor, copies[-1].session_id) == ["hello"]


@pytest.mark.promise("passport.itself")
@pytest.mark.slow
async def test_a_store_that_was_put_back_gives_what_is_in_the_passport(
    tmp_path: Path, far_clock: VirtualClock
) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup.mdb"
    secrets = tmp_path / "secrets"
    async with house(store, far_clock, embedder="none", secrets=secrets) as here:
        claude = member(here.runtime)
        session = await begun(claude, "before")
        await here.runtime.backup(backup)
        far_clock.jump(SECOND)
        await claude.ask(AddMessage(session_id=session, content="after"))
        text = await text_of(claude, await claude.ask(ExportSession()))
    restore(backup, store)
    async with house(store, far_clock, embedder="none", secrets=secrets) as here:
        claude = member(here.runtime)
        restored = await claude.ask(RestoreSession(passport=text))
        assert restored.session_id != session
        assert await contents(claude, restored.session_id) == ["before", "after"]
        assert await contents(claude, session) == ["before"]


@pytest.mark.slow
@pytest.mark.promise("passport.itself", "passport.one-time")
@pytest.mark.parametrize("ending", ["crash before", "crash after"])
async def test_the_taking_up_by_a_passport_may_be_cut_short_anywhere(
    tmp_path: Path, far_clock: VirtualClock, ending: Fault
) -> None:
    refusals: set[str] = set()
    for cut in range(1, 12):
        store = tmp_path / f"{ending}-{cut}"
        async with house(store, far_clock, embedder="none") as here:
            claude = member(here.runtime)
            session = await begun(claude, "hello")
            exported = await claude.ask(ExportSession(one_time=True))
            claim = exported.claim
        saboteur = FaultyDisk(ending, cut)
        with suppress(ActorFailedError):
            try:
                async with house(
                    store, far_clock, embedder="none", committer=InlineCommitter(saboteur)
                ) as here:
                    await member(here.runtime, "cursor").ask(RestoreSession(passport=claim))
            except* (CrashError, StoreFailedError):
                pass
        async with house(store, far_clock, embedder="none") as here:
            cursor, zed = member(here.runtime, "cursor"), member(here.runtime, "zed")
            restored: set[str] = set()
            for agent in (zed, cursor, zed, cursor):
                try:
                    restored.add((await agent.ask(RestoreSession(passport=claim))).session_id)
                except Refusal as refusal:
                    refusals.add(refusal.sentence)
            assert restored <= {session}
            assert (await cursor.ask(ListSessions())).count == 1
            with refused("PASSPORT_REDEEMED"):
                await member(here.runtime, "code").ask(RestoreSession(passport=claim))
        if not saboteur.struck:
            break
    else:
        pytest.fail("it has more commits than were cut")
    assert any("another agent of the same user has begun" in sentence for sentence in refusals)


@pytest.mark.promise("passport.one-time")
async def test_of_several_agents_of_one_user_one_redeems_a_one_time_passport(open_at: Opens) -> None:
    async with two(open_at) as (here, there, signer):
        claude = member(here.runtime)
        await begun(claude, *(f"message {number} {'x' * 9_000}" for number in range(40)))
        text = await text_of(claude, await claude.ask(ExportSession(one_time=True)))
        made: list[str] = []
        refusals: list[str] = []

        async def race(number: int) -> None:
            agent = member(there.runtime, f"tool-{number}", trusted=(signer,))
            try:
                made.append((await agent.ask(RestoreSession(passport=text))).session_id)
            except Refusal as refusal:
                refusals.append(refusal.code)

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(race, number)
        assert len(made) == 1
        assert refusals == ["PASSPORT_REDEEMED"] * 5
        assert (await member(there.runtime, trusted=(signer,)).ask(ListSessions())).count == 1


@asynccontextmanager
async def one_passport(open_at: Opens, *, elsewhere: bool) -> AsyncIterator[tuple[House, Agent, Agent, Any]]:
    """Give a server, two agents of it, and a one-time passport that was exported there or elsewhere."""
    async with two(open_at) as (origin, there, signer):
        claude = member(origin.runtime)
        await begun(claude, "hello")
        await claude.ask(StoreMemory(content="a memory", key="k"))
        exported = await claude.ask(ExportSession(one_time=True, include_memories=True))
        text = await text_of(claude, exported)
        at = there if elsewhere else origin
        trusted = (signer,)
        yield at, member(at.runtime, trusted=trusted), member(at.runtime, "zed", trusted=trusted), text


@pytest.mark.promise("passport.one-time")
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_who_redeemed_it_gets_the_same_session_for_a_day_and_nobody_else(
    open_at: Opens, *, elsewhere: bool
) -> None:
    async with one_passport(open_at, elsewhere=elsewhere) as (at, claude, zed, text):
        first = await claude.ask(RestoreSession(passport=text))
        at.tick(86_400 - 1)
        again = await claude.ask(RestoreSession(passport=text, tool_id="cursor"))
        assert (again.session_id, again.restored_at) == (first.session_id, first.restored_at)
        assert (again.messages, again.memories) == (first.messages, first.memories)
        with refused("PASSPORT_REDEEMED") as caught:
            await zed.ask(RestoreSession(passport=text))
        assert first.session_id not in caught.value.sentence
        at.tick(1)
        for key in (None, "k"):
            with refused("PASSPORT_REDEEMED") as caught:
                await claude.ask(RestoreSession(passport=text, idempotency_key=key))
            assert first.session_id in caught.value.sentence
            assert "24 hours" in caught.value.sentence
        assert (await claude.ask(ListSessions())).count == 1


@pytest.mark.promise("passport.one-time")
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_repeat_with_an_idempotency_key_ends_after_a_day_too(
    open_at: Opens, *, elsewhere: bool
) -> None:
    async with one_passport(open_at, elsewhere=elsewhere) as (at, claude, _, text):
        asked = RestoreSession(passport=text, idempotency_key="k")
        first = await claude.ask(asked)
        at.tick(86_400 - 1)
        assert (await claude.ask(asked)).session_id == first.session_id
        at.tick(2)
        with refused("PASSPORT_REDEEMED"):
            await claude.ask(asked)


@pytest.mark.promise("passport.one-time", "passport.expiry")
async def test_a_repeat_is_answered_after_the_passport_expired(open_at: Opens) -> None:
    async with open_at() as here:
        claude, zed = member(here.runtime), member(here.runtime, "zed")
        await begun(claude, "hello")
        exported = await claude.ask(ExportSession(one_time=True, expires_in=3_600))
        text = await text_of(claude, exported)
        here.tick(3_599)
        first = await claude.ask(RestoreSession(passport=text))
        here.tick(3_600)
        for given in (text, exported.claim):
            assert (await claude.ask(RestoreSession(passport=given))).session_id == first.session_id
            with refused("PASSPORT_EXPIRED"):
                await zed.ask(RestoreSession(passport=given))
        here.tick(86_400)
        for given in (text, exported.claim):
            with refused("PASSPORT_EXPIRED"):
                await claude.ask(RestoreSession(passport=given))


@pytest.mark.promise("passport.one-time")
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_repeats_at_once_get_one_session(open_at: Opens, *, elsewhere: bool) -> None:
    async with one_passport(open_at, elsewhere=elsewhere) as (_, claude, _, text):
        answers: set[str] = set()

        async def restore() -> None:
            answers.add((await claude.ask(RestoreSession(passport=text))).session_id)

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(restore)
        assert len(answers) == 1
        assert (await claude.ask(ListSessions())).count == 1


@pytest.mark.promise("passport.one-time")
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_repeat_says_that_the_session_has_ended_and_makes_no_other(
    open_at: Opens, *, elsewhere: bool, key: str | None
) -> None:
    async with one_passport(open_at, elsewhere=elsewhere) as (_, claude, _, text):
        asked = RestoreSession(passport=text, idempotency_key=key)
        first = await claude.ask(asked)
        assert "since" not in first.notice
        await claude.ask(EndSession(session_id=first.session_id))
        again = await claude.ask(asked)
        assert again.session_id == first.session_id
        assert "It has been terminated since" in again.notice
        assert (await claude.ask(ListSessions())).count == 1


@pytest.mark.promise("passport.one-time")
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_repeat_makes_no_other_session_once_the_first_was_erased(
    open_at: Opens, *, elsewhere: bool, key: str | None
) -> None:
    async with one_passport(open_at, elsewhere=elsewhere) as (at, claude, _, text):
        asked = RestoreSession(passport=text, idempotency_key=key)
        first = await claude.ask(asked)
        await administrator(at).ask(EraseUser(user="user", confirm=True))
        with refused("PASSPORT_REDEEMED") as caught:
            await claude.ask(asked)
        assert first.session_id in caught.value.sentence
        assert "not here any more" in caught.value.sentence
        assert (await claude.ask(ListSessions())).count == 0
