"""Preferences of a user: changed by merge patches, checked, bounded, and nobody else's affair."""

from __future__ import annotations

import json as jsons
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from support.agents import AuditTrail, json, keys, refused, wire
from support.commands import run_on_store, sentence

from greenroom.actors import (
    Agent,
    EraseUser,
    ListResources,
    Principal,
    ReadResource,
    RetrieveMemory,
    SetPreferences,
    StoreMemory,
    parse_request,
)
from greenroom.actors.memories.preferences.actor import merge, preferences_address
from greenroom.actors.memories.preferences.requests import GetPreferences
from greenroom.runtime import Refusal
from greenroom.testing import mcp_client

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

ANN, HERS, BEN = ({"user": "ann"}, {"user": "ann"}, {"user": "ben"})
OWN = ("greenroom://user/preferences", "omnimemory://user/preferences")
BY_NAME = ("greenroom://user/ann/preferences", "omnimemory://user/ann/preferences")


async def prefer(agent: Agent, text: str, **more: Any) -> int:
    """Apply a merge patch as a client sends it; return the version."""
    arguments = f'{{"preferences":{text}}}' if not more else jsons.dumps({"preferences": text, **more})
    return (await agent.ask(parse_request(SetPreferences, arguments.encode()), checked=True)).version


async def preferred(agent: Agent, uri: str = OWN[0]) -> Any:
    return wire(await agent.ask(ReadResource(uri=uri)))["preferences"]


# -- whose they are --------------------------------------------------------------------------


@pytest.mark.promise("resources.preferences", "resources.alike")
async def test_all_agents_of_a_user_have_the_same_ones_and_nobody_else_any_of_them(enter: Enter) -> None:
    async with enter() as at:
        mine, second = at.agent("a", **ANN), at.agent("b", **HERS)
        await prefer(mine, '{"theme":"dark"}')
        for uri in (*OWN, *BY_NAME):
            assert await preferred(second, uri) == {"theme": "dark"}
        others = (at.agent("c", **BEN), at.agent("a"), at.agent("ann"), at.agent("ben", user="BEN"))
        for other in others:
            assert await preferred(other) == {}
        answers = set()
        for other, uri in [
            (other, uri) for other in others[:2] for uri in (BY_NAME[0], OWN[0].replace("p", "q"))
        ]:
            with refused("RESOURCE_NOT_FOUND") as caught:
                await other.ask(ReadResource(uri=uri))
            answers.add((caught.value.code, str(caught.value).replace(uri, "URI")))
        assert len(answers) == 1
        nobody = "greenroom://user/nobody/preferences"
        with refused("RESOURCE_NOT_FOUND"):
            await mine.ask(ReadResource(uri=nobody))


@pytest.mark.promise("resources.preferences")
async def test_an_agent_without_a_user_has_its_own_which_are_not_those_of_a_user_of_its_name(
    enter: Enter,
) -> None:
    async with enter() as at:
        agent, user = at.agent("ann"), at.agent("x", user="ann")
        await prefer(agent, '{"theme":"agent"}')
        await prefer(user, '{"theme":"user"}')
        assert await preferred(agent, BY_NAME[0]) == {"theme": "agent"}
        assert await preferred(user, BY_NAME[0]) == {"theme": "user"}


@pytest.mark.quick
@pytest.mark.promise("resources.preferences")
@pytest.mark.parametrize("user", ["a/b?c#d", "ünï cödé", "..", "%61nn", "x" * 128, "a\nb"])
async def test_users_with_odd_names_find_theirs_by_the_uri_in_the_listing(enter: Enter, user: str) -> None:
    async with enter() as at:
        agent = at.agent("a", user=user)
        await prefer(agent, '{"theme":"t"}')
        (uri,) = [
            each.uri for each in (await agent.ask(ListResources())).resources if "preferences" in each.uri
        ]
        read = wire(await agent.ask(ReadResource(uri=uri)))
        assert (read["user_id"], read["preferences"]) == (user, {"theme": "t"})
        with refused("RESOURCE_NOT_FOUND"):
            await at.agent("a", user="other").ask(ReadResource(uri=uri))


@pytest.mark.promise("resources.preferences")
@pytest.mark.parametrize(
    "name",
    ["%ff", "ann%00", "a%6en%", "ann/", "", "ann?x=1", "ann#", "ANN", "ann%2Fpreferences", "a" * 2_000],
)
async def test_what_is_nearly_ones_own_uri_is_nobodys(enter: Enter, name: str) -> None:
    async with enter() as at:
        with refused("RESOURCE_NOT_FOUND"):
            await at.agent("a", **ANN).ask(ReadResource(uri=f"greenroom://user/{name}/preferences"))


# -- two writers -----------------------------------------------------------------------------


@pytest.mark.promise("resources.preferences-written")
async def test_of_two_writers_who_expect_the_same_version_one_is_told(enter: Enter) -> None:
    async with enter() as at:
        agents = [at.agent(f"a{number}", **ANN) for number in range(4)]
        outcomes: list[int | str] = []
        told: list[dict[str, Any]] = []

        async def write(agent: Agent, number: int) -> None:
            try:
                outcomes.append(await prefer(agent, f'{{"n{number}":1}}', expected_version=0))
            except Refusal as refusal:
                outcomes.append(refusal.code)
                told.append(refusal.details)

        async with trio.open_nursery() as nursery:
            for number, agent in enumerate(agents):
                nursery.start_soon(write, agent, number)
        assert sorted(map(str, outcomes)) == ["1", *["VERSION_CONFLICT"] * 3]
        assert told == [{"expected_version": 0, "current_version": 1}] * 3
        assert len(await preferred(agents[0])) == 1


@pytest.mark.promise("resources.preferences-written")
async def test_two_writers_of_different_members_lose_nothing_and_a_repeat_is_none(enter: Enter) -> None:
    async with enter() as at:
        one, two = at.agent("a", **ANN), at.agent("b", **ANN)
        async with trio.open_nursery() as nursery:
            for agent, name in ((one, "x"), (two, "y")):
                nursery.start_soon(prefer, agent, f'{{"s":{{"{name}":1}}}}')
        assert await preferred(one) == {"s": {"x": 1, "y": 1}}
        first = await one.ask(SetPreferences(preferences=json('{"z":1}'), idempotency_key="k"))
        await prefer(two, '{"z":2}')
        again = await one.ask(SetPreferences(preferences=json('{"z":1}'), idempotency_key="k"))
        assert (again.version, (await preferred(one))["z"]) == (first.version, 2)
        assert await prefer(one, '{"z":2}') == await prefer(one, "{}") == first.version + 1


# -- what is kept ----------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.promise("resources.preferences-written")
@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ('{"theme":5}', "theme"),
        ('{"theme":""}', "theme"),
        ('{"theme":"' + "x" * 65 + '"}', "theme"),
        ('{"default_compression":[1]}', "default_compression"),
        ('{"default_compression":1.5}', "default_compression"),
        ('{"default_compression":-1}', "default_compression"),
        ('{"search_defaults":7}', "search_defaults"),
        ('{"search_defaults":{"min_relevance":1.1}}', "search_defaults.min_relevance"),
        ('{"search_defaults":{"min_relevance":"high"}}', "search_defaults.min_relevance"),
        ('{"search_defaults":{"max_results":0}}', "search_defaults.max_results"),
        (
            '{"search_defaults":{"max_results":1000000000000000000000000000000}}',
            "search_defaults.max_results",
        ),
        ('{"search_defaults":{"max_results":2.5}}', "search_defaults.max_results"),
        ('{"auto_features":{"workflow_learning":"yes"}}', "auto_features.workflow_learning"),
        ('{"auto_features":{"context_compression":1}}', "auto_features.context_compression"),
        ('{"auto_features":[]}', "auto_features"),
    ],
)
async def test_a_known_member_takes_what_it_means_alone_and_nothing_is_changed(
    enter: Enter, patch: str, field: str
) -> None:
    async with enter() as at:
        agent = at.agent("a", **ANN)
        await prefer(agent, '{"theme":"before"}')
        with refused("VALIDATION_ERROR", field=f"preferences.{field}") as caught:
            await prefer(agent, patch)
        assert str(caught.value).count(f"preferences.{field}: it takes ") == 1
        assert await preferred(agent) == {"theme": "before"}


@pytest.mark.promise("resources.preferences-written")
async def test_unknown_members_stay_the_bytes_they_were_and_null_removes(enter: Enter) -> None:
    digits = "123456789012345678901234567890.10"
    async with enter() as at:
        agent = at.agent("a", **ANN)
        await prefer(
            agent,
            f'{{"n":{digits},"__proto__":{{"x":1}},"":0,"search_defaults":{{"mine":[null]}},"theme":"t"}}',
        )
        await prefer(agent, '{"theme":null,"search_defaults":{"max_results":7},"gone":null}')
        read = await agent.ask(ReadResource(uri=OWN[0]))
        document = bytes(read.preferences).decode()  # type: ignore[attr-defined]
        assert f'"n":{digits}' in document
        assert jsons.loads(document, parse_float=str) == {
            "n": digits,
            "__proto__": {"x": 1},
            "": 0,
            "search_defaults": {"mine": [None], "max_results": 7},
        }


@pytest.mark.promise("resources.preferences-written")
@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ("[]", "VALIDATION_ERROR"),
        ("7", "VALIDATION_ERROR"),
        ('"text"', "VALIDATION_ERROR"),
        ('{"a":' * 101 + "1" + "}" * 101, "SERIALIZATION_ERROR"),
        ('{"a":"' + "x" * 65_536 + '"}', "VALIDATION_ERROR"),
        ("{" + ",".join(f'"{number}":null' for number in range(6_000)) + "}", "VALIDATION_ERROR"),
        ("{" + ",".join(f'"{number}":1' for number in range(201)) + "}", "VALIDATION_ERROR"),
        ('{"' + "k" * 129 + '":1}', "VALIDATION_ERROR"),
        ('{"a":[{"' + "k" * 129 + '":1}]}', "VALIDATION_ERROR"),
        ('{"a":1,"a":2}', "SERIALIZATION_ERROR"),
        ('{"a":"\\ud800"}', "SERIALIZATION_ERROR"),
        ('{"a":1e999}', "SERIALIZATION_ERROR"),
    ],
)
async def test_hostile_documents_are_refused_and_change_nothing(enter: Enter, patch: str, code: str) -> None:
    async with enter() as at:
        agent = at.agent("a", **ANN)
        with refused(code):
            await prefer(agent, patch)
        assert await preferred(agent) == {}
        assert await prefer(agent, '{"a":1}') == 1


async def test_many_small_patches_do_not_get_beyond_the_limit_of_one(enter: Enter) -> None:
    async with enter() as at:
        agent = at.agent("a", **ANN)
        for number in range(6):
            await prefer(agent, f'{{"m{number}":"{"x" * 10_000}"}}')
        with refused("VALIDATION_ERROR", limit=65_536, unit="bytes"):
            await prefer(agent, f'{{"more":"{"x" * 10_000}"}}')
        assert len(await preferred(agent)) == 6


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


def by_the_letter(target: Any, patch: Any) -> Any:
    """Return what the pseudocode of RFC 7396 does."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = by_the_letter(result.get(name), value)
    return result


@pytest.mark.promise("resources.preferences-written")
@given(documents, documents)
def test_patches_do_what_the_rfc_says(target: Any, patch: Any) -> None:
    done = merge(msgspec.json.encode(target), msgspec.json.encode(patch))
    assert msgspec.json.decode(done) == by_the_letter(target, patch)


# -- heard of, audited, erased, used ---------------------------------------------------------


@pytest.mark.promise("resources.preferences", "resources.heard")
async def test_a_change_is_heard_of_under_every_uri_by_its_user_and_by_nobody_else(enter: Enter) -> None:
    async with enter() as at:
        mine, other = at.agent("a", **ANN), at.agent("b", **BEN)
        with mine.subscriber(0) as hers, other.subscriber(0) as his:
            for uri in (*OWN, *BY_NAME):
                hers.add(uri)
                his.add(uri)
            hers.remove(BY_NAME[1])
            assert (len(hers), len(his)) == (3, 4)
            await prefer(at.agent("c", **ANN), '{"theme":"dark"}')
            assert {await hers.next(), await hers.next(), await hers.next()} == {*OWN, BY_NAME[0]}
            await prefer(mine, '{"theme":"dark"}')  # nothing new
            for subscriber in (hers, his):
                with trio.move_on_after(1) as scope:
                    await subscriber.next()
                assert scope.cancelled_caught
            await prefer(other, '{"theme":"dark"}')
            assert await his.next() in OWN


@pytest.mark.promise("resources.audited")
async def test_reads_writes_and_denials_are_in_the_audit_log_without_what_is_preferred(enter: Enter) -> None:
    async with enter() as at:
        mine, other = at.agent("a", **ANN), at.agent("b", **BEN)
        await prefer(mine, '{"secret-key":"secret-value"}')
        await preferred(mine)
        with refused("RESOURCE_NOT_FOUND"):
            await preferred(other, BY_NAME[0])
        await trio.testing.wait_all_tasks_blocked()  # a denial is told, and nobody waits for it
        rows = await at.runtime.query(AuditTrail())
        seen = [(row.agent, row.action, row.outcome) for row in rows]
        assert seen == [
            ("a", "set_preferences", "done"),
            ("a", "read_resource", "done"),
            ("b", "read_resource", "denied"),
        ]
        assert b"secret" not in msgspec.json.encode(rows)


@pytest.mark.promise("erase.nothing-is-left")
async def test_whoever_is_erased_leaves_no_preferences(enter: Enter) -> None:
    async with enter() as at:
        mine, other = at.agent("a", **ANN), at.agent("b", **BEN)
        for agent in (mine, other):
            await prefer(agent, '{"theme":"dark"}')
        counted = await at.agent("root").ask(EraseUser(user="ann"))
        assert counted.counts["preferences"] == 1
        assert await preferred(mine) == {"theme": "dark"}
        await at.agent("root").ask(EraseUser(user="ann", confirm=True))
        assert (await preferred(mine), await preferred(other)) == ({}, {"theme": "dark"})


async def known(at: House, agent: Agent) -> Any:
    return await at.runtime.ask(
        preferences_address(agent.principal), GetPreferences(), principal=agent.principal
    )


@pytest.mark.quick
@pytest.mark.promise("resources.preferences-known")
async def test_parts_of_the_program_read_what_the_user_allows(enter: Enter) -> None:
    async with enter() as at:
        agent = at.agent("a", **ANN)
        assert (await known(at, agent)).auto_features.workflow_learning is UNSET
        await prefer(agent, '{"auto_features":{"workflow_learning":true,"more":{}}}')
        assert (await known(at, agent)).auto_features.workflow_learning is True
        with refused("PERMISSION_DENIED"):
            await at.runtime.ask(
                preferences_address(agent.principal), GetPreferences(), principal=Principal(agent_id="b")
            )


@pytest.mark.promise("resources.preferences-known")
async def test_searches_of_the_universal_memory_profile_go_by_the_users_defaults(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agent = at.agent("a", **ANN)
        for number in range(12):
            await agent.ask(StoreMemory(key=f"k{number}", content=f"the harbour of city {number}"))
        assert len((await agent.ask(RetrieveMemory(query="harbour"))).memories) == 10

        async def found(**arguments: Any) -> int:
            answer = await client.call("retrieve_memory", query="harbour", **arguments)
            assert answer["success"], answer
            return len(answer["memories"])

        async with mcp_client(lambda _: agent, profiles=("universal-memory",)) as client:
            await client.initialize()
            assert await found() == 10
            await prefer(agent, '{"search_defaults":{"max_results":3}}')
            assert (await found(), await found(limit=5)) == (3, 5)
            await prefer(agent, '{"search_defaults":{"min_relevance":1.0}}')
            assert (await found(), await found(min_relevance=0.0)) == (0, 3)
            await prefer(agent, '{"search_defaults":null}')
            assert await found() == 10
        assert len((await agent.ask(RetrieveMemory(query="harbour"))).memories) == 10


@pytest.mark.promise("resources.preferences-written")
async def test_they_are_there_after_a_restart(enter: Enter) -> None:
    async with enter() as at:
        await prefer(at.agent("a", **ANN), '{"theme":"dark"}')
    async with enter() as at:
        agent = at.agent("a", **ANN)
        assert await preferred(agent) == {"theme": "dark"}
        assert await keys(agent) == []
        assert await prefer(agent, '{"theme":"light"}', expected_version=1) == 2


def test_a_patch_may_come_as_text() -> None:
    read = parse_request(SetPreferences, b'{"preferences":"{\\"theme\\":\\"dark\\"}"}')
    assert read.preferences == Raw(b'{"theme":"dark"}')


def test_preferences_are_changed_and_shown_by_the_command(tmp_path: Path) -> None:
    assert run_on_store(tmp_path, "keys", "create", "--name", "n").returncode == 0  # so that there is a store
    ann = ("--user", "ann")
    for arguments in (
        ("set", "search_defaults.max_results", "20"),
        ("set", "theme", "dark", "--expected-version", "1"),
        ("set", "editor", "[1, {}]"),
        ("remove", "editor", "--expected-version", "3"),
    ):
        done = run_on_store(tmp_path, "preferences", *arguments, *ann)
        assert done.returncode == 0, done.stderr
    shown = run_on_store(tmp_path, "preferences", "get", *ann, "--json")
    assert jsons.loads(shown.stdout) == {
        "preferences": {"search_defaults": {"max_results": 20}, "theme": "dark"},
        "version": 4,
    }
    late = run_on_store(tmp_path, "preferences", "set", "theme", "light", "--expected-version", "1", *ann)
    assert "version 4" in sentence(late)
    wrong = run_on_store(tmp_path, "preferences", "set", "search_defaults.max_results", "many", *ann)
    assert "max_results" in sentence(wrong)
    assert jsons.loads(run_on_store(tmp_path, "preferences", "get", "--user", "ben").stdout) == {}
