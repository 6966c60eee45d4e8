"""Memory: a value comes back as it went in, to its owner only, until the microsecond in which it expires."""

from __future__ import annotations

import datetime as dt
import itertools
from json import dumps
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.agents import AuditTrail, json, refused

from greenroom.actors import (
    AddMessage,
    CreateSession,
    DeleteMemory,
    GetMemory,
    ListMemory,
    SetMemory,
    parse_request,
)
from greenroom.runtime import InlineCommitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.agents import Enter

    from greenroom.actors import Agent
    from greenroom.runtime._store import Store, Work

FOUR_BYTES = "\U0001f600"
MINUTE = 60


async def keep(agent: Agent, key: str, value: str = "1", **arguments: Any) -> int:
    return (await agent.ask(SetMemory(key=key, value=json(value), **arguments))).version


async def value_of(agent: Agent, key: str, **arguments: Any) -> str:
    return bytes((await agent.ask(GetMemory(key=key, **arguments))).value).decode()


async def keys(agent: Agent, **arguments: Any) -> list[str]:
    return [entry.key for entry in (await agent.ask(ListMemory(**arguments))).entries]


def moment(microseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)


# -- JSON ------------------------------------------------------------------------


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "text",
    [
        '"123"',
        "123",
        "123456789012345678901234567890",
        "-0",
        "-0.0",
        "1.10",
        "1E5",
        "1e-400",
        "9" * 5_000,
        "null",
        "true",
        '""',
        '"\\u0000\\ud83d\\ude00\\/"',
        '"\U0001f600\u2028\x7f"',
        "[]",
        "{}",
        '{"b": 1, "a" : [ 1,2.50 ],"": null}',
        '{"a": {"a": {"a": 1}}, "A": 2}',
        "[" * 100 + "]" * 100,
        '"' + "x" * 1_048_574 + '"',
    ],
    ids=lambda text: text[:20],
)
async def test_a_value_comes_back_as_it_went_in(enter: Enter, text: str) -> None:
    arguments = f'{{"key": "k", "value": {text}, "metadata": {{"n": 1.10}}}}'.encode()
    async with enter() as at:
        alice = at.agent("alice")
        await alice.ask(parse_request(SetMemory, arguments), checked=True)
        assert await value_of(alice, "k") == text
    async with enter() as at:
        read = await at.agent("alice").ask(GetMemory(key="k"))
        assert (bytes(read.value).decode(), bytes(read.metadata)) == (text, b'{"n": 1.10}')
        [entry] = (await at.agent("alice").ask(ListMemory())).entries
        assert entry.value_size == len(text.encode())


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e400",
        "[1, 1e999]",
        "NaN",
        "Infinity",
        "-Infinity",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '{"\\udfff": 1}',
        '[{"a": "\\ud83d x"}]',
        '{"a": 1, "a": 1}',
        '[{"a": {"b": 1, "c": 2, "b": 3}}]',
        "[" * 101 + "]" * 101,
        '{"a":' * 101 + "1" + "}" * 101,
        "[" * 100_000 + "]" * 100_000,
        "[" * 100_000,
        "",
        "1,",
        "01",
        "'a'",
        '"\n"',
        '"\\x"',
        "tru",
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_kept_is_refused(text: str) -> None:
    with refused("SERIALIZATION_ERROR"):
        parse_request(SetMemory, f'{{"key": "k", "value": {text}}}'.encode())
    with refused("SERIALIZATION_ERROR"):
        parse_request(CreateSession, f'{{"purpose": "p", "metadata": {{"x": {text}}}}}'.encode())


@pytest.mark.promise("memory.json")
@pytest.mark.parametrize(
    "raw",
    [
        b'{"key": "k", "value": "\xff"}',
        b'{"key": "k", "value": "\xed\xa0\x80"}',
        b'{"key": "k", "value": 1, "value": 2}',
        b'{"key": "\\ud800", "value": 1}',
        b'\xef\xbb\xbf{"key": "k", "value": 1}',
        b'{"key": "k", "value": 1} {}',
        b"",
    ],
)
def test_bytes_that_are_no_strict_json_are_refused(raw: bytes) -> None:
    with refused("SERIALIZATION_ERROR"):
        parse_request(SetMemory, raw)


@pytest.mark.promise("memory.json")
async def test_a_value_made_in_python_is_checked_as_one_from_outside(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for text in ("1e400", '{"a":1,"a":1}', "[" * 101 + "]" * 101, "no json", ""):
            with refused("SERIALIZATION_ERROR"):
                await keep(alice, "k", text)
        with refused("SERIALIZATION_ERROR"):
            await keep(alice, "\ud800")
        with refused("VALIDATION_ERROR", field="key"):
            await keep(alice, "")
        assert await keys(alice) == []


texts = st.text(st.characters(codec="utf-8"))
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts


@given(value=st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_every_representable_value_is_let_in(value: Any) -> None:
    text = dumps(value).encode()
    request = parse_request(SetMemory, b'{"key":"k","value":' + text + b"}")
    assert bytes(request.value) == text


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize("field", ["value", "metadata"])
def test_a_value_has_a_limit_in_bytes(field: str) -> None:
    text = {"value": '"%s"', "metadata": '{"a":"%s"}'}[field]
    arguments = {"key": '"k"', "value": "1", "metadata": "{}"}
    for size in (1_048_576, 1_048_577):
        arguments[field] = text % ("é" * ((size - len(text) + 2) // 2) + "x" * ((size - len(text)) % 2))
        assert len(arguments[field].encode()) == size
        raw = "{" + ",".join(f'"{name}":{value}' for name, value in arguments.items()) + "}"
        if size == 1_048_576:
            parse_request(SetMemory, raw.encode())
        else:
            with refused("VALIDATION_ERROR", field=field, limit=1_048_576, size=size, unit="bytes"):
                parse_request(SetMemory, raw.encode())


def test_null_leaves_optional_things_out() -> None:
    request = parse_request(
        SetMemory, b'{"key":"k","value":null,"metadata":null,"session_id":null,"expires_in":null}'
    )
    assert (bytes(request.value), bytes(request.metadata), request.session_id) == (b"null", b"{}", None)


# -- expiry ------------------------------------------------------------------------


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
        assert await keep(alice, "k", "2", overwrite=False) == 1
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


def balance() -> tuple[InlineCommitter, dict[bytes, int]]:
    """Return a committer and what it finds in the store of memories: the size of each record by its key."""
    there: dict[bytes, int] = {}

    def commit(store: Store, works: Sequence[Work]) -> None:
        for work in works:
            for _, key, payload in work.ops:
                if key.startswith((b"memory\0", b"!timer\0")):
                    if payload is None:
                        there.pop(key, None)
                    else:
                        there[key] = len(payload)
        store.commit(works)

    return InlineCommitter(commit), there


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
        assert there == before
        trail = await at.runtime.query(AuditTrail())
        expired = [row for row in trail if row.action == "expire_memory"]
        assert sum(row.details["versions"] for row in expired) == 450
        assert {(row.agent, row.session, row.details["owner"]) for row in expired} == {(None, None, "alice")}
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
        assert there == {}


async def test_a_clock_that_jumps_changes_no_order(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for number, jump in enumerate((0, -3_600, 10 * 365 * 86_400, -9 * 365 * 86_400, 0)):
            at.tick(jump)
            await keep(alice, f"k{number}", expires_in=MINUTE)
        assert (await keys(alice))[:2] == ["k4", "k3"]
        assert await value_of(alice, "k4") == "1"


# -- keys and scopes -----------------------------------------------------------------


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
        for request in (SetMemory(key=key, value=json("1")), GetMemory(key=key), DeleteMemory(key=key)):
            with refused("VALIDATION_ERROR", field="key", size=len(key)):
                await alice.ask(request)


@pytest.mark.promise("memory.keys")
async def test_keys_that_look_alike_are_different_keys(enter: Enter) -> None:
    looks = ["a", "A", "a ", " a", "á", "a\u0301", "..", ".", "a.b", "a-b", "a b", "%2F", "__proto__"]
    async with enter() as at:
        alice = at.agent("alice")
        for key in looks:
            assert await keep(alice, key, overwrite=False) == 1
        assert await keys(alice) == looks[::-1]


@pytest.mark.promise("memory.scopes")
async def test_global_and_session_entries_of_one_key_are_different_entries(enter: Enter) -> None:
    async with enter() as at:
        alice = at.agent("alice")
        for session_id in ("s", "t", "g"):
            await alice.ask(CreateSession(purpose="p", session_id=session_id))
        for number, session_id in enumerate((None, "s", "t", "g")):
            stored = await alice.ask(SetMemory(key="k", value=json(str(number)), session_id=session_id))
            assert (stored.version, stored.scope) == (1, "global" if session_id is None else "session")
            assert stored.session_scoped is (session_id is not None)
        for number, session_id in enumerate((None, "s", "t", "g")):
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


# -- versions and listings -------------------------------------------------------------


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


@pytest.mark.promise("memory.overwrite")
async def test_deleting_ends_every_version_however_many(enter: Enter) -> None:
    committer, there = balance()
    async with enter(committer=committer) as at:
        alice = at.agent("alice")
        for number in range(450):
            await keep(alice, "k", str(number), expires_in=1_000 if number % 2 else None)
        assert (await alice.ask(DeleteMemory(key="k"))).existed
        assert await keep(alice, "k", '"new"') == 1
        for version in range(2, 450):
            with refused("MEMORY_NOT_FOUND"):
                await value_of(alice, "k", version=version)
        assert await value_of(alice, "k", version=1) == '"new"'
        assert (await alice.ask(DeleteMemory(key="k"))).existed
        assert not (await alice.ask(DeleteMemory(key="k"))).existed
        await trio.sleep(2)
        assert [key for key in there if not key.startswith(b"!timer") and b"\0t" not in key] == []
    async with enter() as at:
        assert await keep(at.agent("alice"), "k", overwrite=False) == 1


@pytest.mark.promise("memory.overwrite")
async def test_a_write_costs_the_same_however_many_there_were(enter: Enter) -> None:
    written: list[int] = []

    def weigh(store: Store, works: Sequence[Work]) -> None:
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
