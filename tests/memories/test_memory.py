"""Memory: a value comes back as it went in, to its owner only, until the microsecond in which it expires."""

from __future__ import annotations

import datetime as dt
import itertools
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
from support.agents import AuditTrail, json, keep, keys, moment, refused, value_of

from greenroom.actors import (
    AddMessage,
    CreateSession,
    DeleteMemory,
    GetMemory,
    ListMemory,
    SetMemory,
)
from greenroom.runtime import InlineCommitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter

    from greenroom.runtime import Store, WriteBatch

FOUR_BYTES = "\U0001f600"
MINUTE = 60


@pytest.mark.promise("memory.expiry")
async def test_an_entry_is_gone_in_the_microsecond_in_which_it_expires(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        await keep(alice, "other")
        stored = await alice.ask(SetMemory(key="k", value=json("1"), expires_in=10))
        assert stored.expires_at == moment(at.clock.now() + 10_000_000)
        at.clock.jump(9_999_999)
        assert await value_of(alice, "k") == "1"
        assert await keys(alice) == ["k", "other"]
        with refused("KEY_EXISTS", key="k"):
            await keep(alice, "k", overwrite=False)
        at.clock.jump(1)
        with refused("MEMORY_NOT_FOUND", key="k"):
            await value_of(alice, "k")
        with refused("MEMORY_NOT_FOUND"):
            await value_of(alice, "k", version=1)
        assert await keys(alice) == ["other"]
        assert await keys(alice, session_id="all") == ["other"]
        assert await keys(alice, prefix="k") == []
        assert not (await alice.ask(DeleteMemory(key="k"))).existed
        await keep(alice, "k", expires_in=10)
        at.clock.jump(10_000_000)
        assert await keep(alice, "k", "2", overwrite=False) == 3
        assert await value_of(alice, "k") == "2"


@pytest.mark.promise("memory.expiry")
async def test_each_version_has_its_own_end(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        await keep(alice, "k", "1", expires_in=10)
        await keep(alice, "k", "2", expires_in=MINUTE * 30)
        await keep(alice, "k", "3")
        assert await value_of(alice, "k", version=1) == "1"
        at.tick(10)
        for _ in range(2):
            with refused("MEMORY_NOT_FOUND"):
                await value_of(alice, "k", version=1)
            assert await value_of(alice, "k", version=2) == "2"
            assert await value_of(alice, "k") == "3"
            await trio.sleep(5 * MINUTE)  # the sweeper has been here
        await keep(alice, "k", "4", expires_in=1)
        at.tick()
        for version in (None, 2, 3, 4):
            with refused("MEMORY_NOT_FOUND"):
                await value_of(alice, "k", version=version)


def balance(effects: list[int] | None = None) -> tuple[InlineCommitter, dict[bytes, int]]:
    """Return a committer and what it finds in the store of memories: the size of each record by its key.

    It adds to ``effects`` how many each message has.
    """
    there: dict[bytes, int] = {}

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        for work in works:
            if effects is not None:
                effects.append(len(work.ops))
            for _, key, payload in work.ops:
                if key.startswith((b"memory\0", b"!timer\0")):
                    if payload is None:
                        there.pop(key, None)
                    else:
                        there[key] = len(payload)
        store.commit(works)

    return InlineCommitter(commit), there


def is_kept(key: bytes) -> bool:
    """Return whether a record is of the memory as a whole, or of one of its timers."""
    own = tuple(b"memory\0alice\0" + name for name in (b"t", b"uk", b"un", b"ut", b"uim"))
    return key.startswith((b"!timer", *own))


def entries_of(there: dict[bytes, int]) -> dict[bytes, int]:
    return {key: size for key, size in there.items() if not is_kept(key)}


@pytest.mark.slow
@pytest.mark.promise("memory.expiry")
async def test_what_expired_leaves_the_disk_within_five_minutes(enter: Enter) -> None:
    committer, there = balance()
    async with enter(committer=committer) as at:
        alice = at.agent("alice")
        await keep(alice, "stays")
        before = dict(there)
        for number in range(450):
            await keep(alice, f"k{number % 430}", expires_in=1 + number % 90)
        assert len(there) > 5 * 430
        await trio.sleep(5 * MINUTE)
        assert entries_of(there) == entries_of(before)
        trail = await at.runtime.query(AuditTrail())
        expired = [row for row in trail if row.action == "expire_memory"]
        assert sum(row.details["versions"] for row in expired) == 450
        assert {(row.agent, row.session, row.details["owner"]) for row in expired} == {(None, None, "alice")}
        assert await keys(alice) == ["stays"]


@pytest.mark.promise("memory.expiry")
@pytest.mark.promise("memory.overwrite")
@pytest.mark.slow
async def test_no_message_removes_more_than_a_batch(enter: Enter) -> None:
    effects: list[int] = []
    committer, there = balance(effects)
    async with enter(committer=committer) as at:
        alice = at.agent("alice")
        await keep(alice, "stays")
        before = dict(there)
        for number in range(900):
            await keep(alice, f"k{number % 30}", expires_in=1_000 if number < 870 else 10)
        for number in range(300):
            await keep(alice, "long", str(number), expires_in=1_000)
        assert (await alice.ask(DeleteMemory(key="long"))).existed
        await trio.sleep(5 * MINUTE)
        assert [key for key in there if key not in before and not is_kept(key)] == []
        assert max(effects) < 250
        assert await keys(alice) == ["stays"]


@pytest.mark.promise("memory.expiry")
@pytest.mark.promise("runtime.timers")
async def test_what_expired_meanwhile_is_swept_after_a_restart(enter: Enter) -> None:
    async with enter() as at:
        await keep(at.agent("alice"), "k", expires_in=30)
        at.clock.jump(10 * MINUTE * 1_000_000)
    committer, there = balance()
    async with enter(committer=committer) as at:
        await trio.sleep(1)
        assert "expire_memory" in [row.action for row in await at.runtime.query(AuditTrail())]
        assert await keys(at.agent("alice")) == []
        assert entries_of(there) == {}


async def test_a_clock_that_jumps_changes_no_order(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for number, jump in enumerate((0, -3_600, 10 * 365 * 86_400, -9 * 365 * 86_400, 0)):
            at.tick(jump)
            await keep(alice, f"k{number}", expires_in=MINUTE)
        assert (await keys(alice))[:2] == ["k4", "k3"]
        assert await value_of(alice, "k4") == "1"


@pytest.mark.promise("memory.keys")
@pytest.mark.parametrize("session_id", [None, "s" * 128])
async def test_long_keys_of_four_byte_characters_are_told_apart(enter: Enter, session_id: str | None) -> None:
    long = [FOUR_BYTES * 254 + last for last in (FOUR_BYTES, "\U0001f601", "x", "")]
    async with enter() as at:
        agent = at.agent("a" * 100)
        await agent.ask(CreateSession(purpose="p", session_id="s" * 128))
        for number, key in enumerate(long):
            await keep(agent, key, str(number), session_id=session_id, expires_in=9)
        for number, key in enumerate(long):
            assert await value_of(agent, key, session_id=session_id) == str(number)
        assert await keys(agent, session_id=session_id, prefix=FOUR_BYTES * 254) == long[::-1]
        assert await keys(agent, session_id=session_id, prefix=long[1]) == [long[1]]


@pytest.mark.promise("memory.keys")
@pytest.mark.parametrize(
    "key", ["", "x" * 256, *(f"a{bad}b" for bad in '/\\:*?"<>|\0\n\t\x1f\x7f\x85\x9f'), "a\n", "\n"]
)
async def test_bad_keys_are_refused_everywhere(enter: Enter, key: str) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for made in (partial(SetMemory, value=json("1")), GetMemory, DeleteMemory):
            with refused("VALIDATION_ERROR", field="key", size=len(key)):
                made(key=key)
            with refused("VALIDATION_ERROR", field="key", size=len(key)):
                await alice.ask(msgspec.structs.replace(made(key="k"), key=key))


@pytest.mark.promise("memory.keys")
async def test_keys_that_look_alike_are_different_keys(enter: Enter) -> None:
    looks = ["a", "A", "a ", " a", "á", "\uff41", "..", ".", "a.b", "a-b", "a b", "%2F", "__proto__"]
    async with enter() as at:
        alice = at.agent("alice")
        for key in looks:
            assert await keep(alice, key, overwrite=False) == 1
        assert await keys(alice) == looks[::-1]


@pytest.mark.promise("memory.scopes")
async def test_global_and_session_entries_of_one_key_are_different_entries(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        scopes = (None, "s", "t", "g")
        for name in scopes[1:]:
            await alice.ask(CreateSession(purpose="p", session_id=name))
        for number, session_id in enumerate(scopes):
            stored = await alice.ask(SetMemory(key="k", value=json(str(number)), session_id=session_id))
            assert (stored.version, stored.scope) == (1, "global" if session_id is None else "session")
        for number, session_id in enumerate(scopes):
            assert await value_of(alice, "k", session_id=session_id) == str(number)
            listed = await alice.ask(ListMemory(session_id=session_id))
            assert [(entry.key, entry.session_id) for entry in listed.entries] == [("k", session_id)]
            assert listed.scope_filter == (session_id or "global")
        listed = await alice.ask(ListMemory(session_id="all"))
        assert [entry.session_id for entry in listed.entries] == ["g", "t", "s", None]
        assert (await alice.ask(DeleteMemory(key="k", session_id="s"))).existed
        assert [entry.session_id for entry in (await alice.ask(ListMemory(session_id="all"))).entries] == [
            "g",
            "t",
            None,
        ]
        with refused("SESSION_NOT_FOUND", session_id="nowhere"):
            await keep(alice, "k", session_id="nowhere")
        with refused("SESSION_NOT_FOUND", session_id="all"):
            await keep(alice, "k", session_id="all")
        with refused("MEMORY_NOT_FOUND"):
            await value_of(alice, "k", session_id="nowhere")
        assert await keys(alice, session_id="nowhere") == []


@pytest.mark.promise("memory.overwrite")
async def test_versions_count_up_and_older_ones_stay(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        created = moment(at.clock.now())
        for number in range(1, 6):
            assert await keep(alice, "k", str(number)) == number
            at.tick()
        with refused("KEY_EXISTS", key="k", scope="global"):
            await keep(alice, "k", "6", overwrite=False)
    async with enter() as at:
        alice = at.agent("alice")
        for number in range(1, 6):
            read = await alice.ask(GetMemory(key="k", version=number))
            assert (bytes(read.value), read.version) == (str(number).encode(), number)
            assert (read.created_at, read.updated_at) == (created, created + dt.timedelta(seconds=number - 1))
        assert await value_of(alice, "k") == "5"
        for version in (6, 2**64, 10**40):
            with refused("MEMORY_NOT_FOUND"):
                await value_of(alice, "k", version=version)
        with refused("VALIDATION_ERROR", field="version", value="0"):
            await value_of(alice, "k", version=0)


@pytest.mark.slow
@pytest.mark.promise("memory.overwrite")
async def test_deleting_ends_every_version_however_many(enter: Enter) -> None:
    committer, there = balance()
    async with enter(committer=committer) as at:
        alice = at.agent("alice")
        for number in range(450):
            await keep(alice, "k", str(number), expires_in=1_000 if number % 2 else None)
        assert (await alice.ask(DeleteMemory(key="k"))).existed
        assert await keep(alice, "k", '"new"') == 451
        for version in range(1, 451):
            with refused("MEMORY_NOT_FOUND"):
                await value_of(alice, "k", version=version)
        assert await value_of(alice, "k", version=451) == '"new"'
        assert (await alice.ask(DeleteMemory(key="k"))).existed
        assert not (await alice.ask(DeleteMemory(key="k"))).existed
        await trio.sleep(2)
        assert [key for key in there if not is_kept(key)] == []
    async with enter() as at:
        assert await keep(at.agent("alice"), "k", overwrite=False) == 452


@pytest.mark.promise("memory.overwrite")
async def test_a_write_costs_the_same_however_many_there_were(enter: Enter) -> None:
    written: list[int] = []

    def weigh(store: Store, works: Sequence[WriteBatch]) -> None:
        written.append(sum(len(key) + len(payload or b"") for work in works for _, key, payload in work.ops))
        store.commit(works)

    async with enter(committer=InlineCommitter(weigh)) as at:
        alice = at.agent("alice")
        for number in range(300):
            await keep(alice, "k", str(1_000 + number))
        assert max(written) < 1_500
        assert max(written[200:]) - max(written[1:100]) < 20


@pytest.mark.promise("memory.listing")
async def test_listings_go_newest_update_first_page_by_page_while_entries_change(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for number in range(30):
            await keep(alice, f"k{number:02}", '"long enough"', metadata=json('{"a": 1}'))
        await keep(alice, "k07")
        everything = ["k07", *(f"k{number:02}" for number in range(29, -1, -1) if number != 7)]
        assert await keys(alice) == everything
        seen: list[str] = []
        cursor = None
        for page_number in itertools.count():
            page = await alice.ask(ListMemory(limit=7, cursor=cursor))
            assert page.count == len(page.entries)
            seen += [entry.key for entry in page.entries]
            if (cursor := page.next_cursor) is None:
                break
            await keep(alice, everything[page_number * 7])  # one that was listed
            await alice.ask(DeleteMemory(key=seen[-1]))  # the one that the cursor stands on
            await keep(alice, f"new{page_number}")
        assert seen == everything
        with refused("VALIDATION_ERROR", field="cursor"):
            await alice.ask(ListMemory(prefix="k", cursor=(await alice.ask(ListMemory(limit=1))).next_cursor))
        assert await keys(alice, prefix="new", limit=3) == ["new3", "new2", "new1"]
        assert await keys(alice, prefix="K") == []
        [entry] = (await alice.ask(ListMemory(prefix="k19"))).entries
        assert (entry.value_size, entry.version, entry.scope, entry.expires_at) == (13, 1, "global", None)


@pytest.mark.promise("runtime.exactly-once")
async def test_a_repeated_key_stores_and_deletes_once(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        await alice.ask(CreateSession(purpose="p", session_id="s"))
        request = SetMemory(key="k", value=json("1"), session_id="s", idempotency_key="once")
        first = await alice.ask(request)
        assert await alice.ask(request) == first
        assert first.version == 1
        gone = DeleteMemory(key="k", session_id="s", idempotency_key="once")
        assert [(await alice.ask(gone)).existed for _ in range(2)] == [True, True]
        refusing = SetMemory(key="k", value=json("1"), overwrite=False, idempotency_key="no")
        await keep(alice, "k")
        for _ in range(2):
            with refused("KEY_EXISTS", key="k"):
                await alice.ask(refusing)
            await alice.ask(DeleteMemory(key="k"))


@pytest.mark.promise("sessions.audit")
async def test_changes_of_memory_leave_a_trail_without_values(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        await keep(alice, "k", '"secret"', metadata=json('{"x": "secret"}'))
        await value_of(alice, "k")
        await alice.ask(DeleteMemory(key="k"))
        await alice.ask(DeleteMemory(key="k"))
        trail = await at.runtime.query(AuditTrail())
        assert sorted((row.agent, row.action, row.details["key"]) for row in trail) == [
            ("alice", "delete_memory", "k"),
            ("alice", "set_memory", "k"),
        ]
        assert b"secret" not in msgspec.json.encode(trail)


async def test_only_requests_of_tools_are_asked(enter: Enter) -> None:
    async with enter() as at:
        for other in (AuditTrail(), AddMessage, "add_message"):
            with pytest.raises(TypeError, match="not a request"):
                await at.agent("alice").ask(other)  # type: ignore[arg-type]  # on purpose
