"""Imports keep what lines say, leave what is there as they are told to, and have no effect a second time."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from support.agents import AuditTrail
from support.exchanges import ANN, BOB, QUIET, export, imported, keys, line

from greenroom.actors import GetMemory, ListVersions, MemorySearch, Principal, StoreMemory, open_greenroom
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests.requests import ReadMemory

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

    from greenroom.runtime import RuntimeClient


async def read(
    runtime: RuntimeClient, principal: Principal, key: str, namespace: str = "user:ann", **more: Any
) -> Any:
    message = ReadMemory(key=key, namespace=namespace, **more)
    return (await runtime.ask(memory_address(namespace), message, principal=principal)).memory


# -- what is kept ------------------------------------------------------------------


@pytest.mark.promise("exchange.import")
async def test_everything_that_a_line_says_is_kept(enter: Enter) -> None:
    given = line(
        "atlas.1",
        "Ann likes maps",
        namespace="project:atlas:notes",
        created_at="2023-05-08T13:56:00Z",
        updated_at="2024-01-01T00:00:00+01:00",
        created_by="Caroline",
        conversation_id="atlas chat",
        position=7,
        tags=["maps", "ann", "maps "],
        kind="episodic",
        importance=0.9,
        scope="public",
        expires_at="2030-01-01T00:00:00Z",
        metadata={"n": 1.0, "big": 12345678901234567890},
    )
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, given)
        assert (done.lines, done.counts, done.namespaces) == (1, {"created": 1}, {"project:atlas:notes": 1})
        memory = await read(home.runtime, ANN, "atlas.1", "project:atlas:notes")
    assert memory.content == "Ann likes maps"
    assert memory.created_at == dt.datetime(2023, 5, 8, 13, 56, tzinfo=dt.UTC)
    assert memory.updated_at == dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC)
    assert memory.expires_at == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert (memory.author, memory.conversation_id, memory.position) == ("Caroline", "atlas chat", 7)
    assert (memory.tags, memory.kind, memory.importance) == (["maps", "ann", "maps "], "episodic", 0.9)
    assert (memory.scope, memory.version) == ("public", 1)
    assert bytes(memory.metadata) == b'{"n":1.0,"big":12345678901234567890}' or json.loads(
        bytes(memory.metadata)
    ) == {"n": 1.0, "big": 12345678901234567890}


@pytest.mark.promise("exchange.owner")
async def test_the_owner_is_who_imports_whoever_wrote_it(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, line("secret", created_by="bob"))
        await imported(
            home.runtime, ANN, line("hers", namespace="project:atlas", scope="private", created_by="bob")
        )
        await imported(home.runtime, ANN, line("ours", namespace="project:atlas", created_by="bob"))
        assert await keys(home.runtime, BOB) == ["ours"]
        assert await keys(home.runtime, ANN) == ["hers", "ours", "secret"]


@pytest.mark.promise("exchange.import")
async def test_lines_without_a_namespace_go_to_the_users_own_or_to_the_one_given(enter: Enter) -> None:
    nobody = Principal(agent_id="planner")
    async with enter(**QUIET) as home:
        first = await imported(home.runtime, ANN, line("a"))
        second = await imported(
            home.runtime, ANN, line("a"), line("b", namespace="team:x"), namespace="user:ann:work"
        )
        third = await imported(home.runtime, nobody, line("a"))
    assert first.namespaces == {"user:ann": 1}
    assert second.namespaces == {"user:ann:work": 1, "team:x": 1}
    assert third.namespaces == {"agent:planner": 1}


async def test_what_an_agent_imports_into_its_own_namespace_its_old_tools_find(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        own = {"namespace": "agent:planner"}
        lines = [line("plan", value={"step": 1}, **own), line("note", "as text", **own)]
        await imported(home.runtime, ANN, *lines, line("plan", value=[2], session_id="s", **own))
        agent = home.agent("planner", user="ann")
        assert bytes((await agent.ask(GetMemory(key="plan"))).value) == b'{"step": 1}'
        assert bytes((await agent.ask(GetMemory(key="note"))).value) == b'"as text"'


async def test_the_next_search_finds_what_was_imported(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(f"k{n}", f"the {n}th lighthouse keeper") for n in range(50)))
        found = await home.runtime.query(MemorySearch(query="lighthouse", limit=100), principal=ANN)
    assert {each.key for each in found.memories} == {f"k{n}" for n in range(50)}


# -- keys that are there -------------------------------------------------------------


@pytest.mark.promise("exchange.idempotent")
@pytest.mark.parametrize("on_conflict", ["skip", "overwrite", "version"])
async def test_a_second_time_changes_nothing(enter: Enter, on_conflict: Any) -> None:
    lines = [
        line("a", created_at="2020-01-01T00:00:00Z", created_by="x", tags=["t"], importance=0.25),
        line("b", value={"n": [1, 2.50]}, metadata={"m": 1}, expires_at="2040-01-01T00:00:00Z"),
        line("c", namespace="project:atlas", supersedes="d", conversation_id="c", position=0),
        line("d", namespace="project:atlas"),
        line("e", namespace="agent:planner", value=None),
    ]
    async with enter(**QUIET) as home:
        first = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        before = await export(home.runtime, ANN)
        home.tick(3_600)
        second = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        after = await export(home.runtime, ANN)
        versions = {
            each["key"]: (await read(home.runtime, ANN, each["key"], each["namespace"])).version
            for each in after
        }
    assert first.counts == {"created": 5}
    assert second.counts == {"skipped": 5} if on_conflict == "skip" else {"unchanged": 5}
    assert before == after
    assert set(versions.values()) == {1}


@pytest.mark.promise("exchange.conflict")
@pytest.mark.parametrize(
    ("on_conflict", "counts", "content", "versions"),
    [
        ("skip", {"skipped": 1, "created": 1}, "old", [1]),
        ("overwrite", {"overwritten": 1, "created": 1}, "new", [2]),
        ("version", {"versioned": 1, "created": 1}, "new", [1, 2]),
    ],
)
async def test_a_key_that_is_there_is_skipped_or_overwritten_or_gets_a_version(
    enter: Enter, on_conflict: Any, counts: dict[str, int], content: str, versions: list[int]
) -> None:
    async with enter(**QUIET) as home:
        agent = home.agent("planner", user="ann")
        stored = await agent.ask(StoreMemory(key="a", content="old"))
        home.tick()
        lines = [line("a", "new", created_at="2020-01-01T00:00:00Z"), line("b")]
        tried = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict, dry_run=True)
        assert await keys(home.runtime, ANN) == ["a"]
        done = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        memory = await read(home.runtime, ANN, "a")
        listed = await agent.ask(ListVersions(key="a"))
    assert tried.counts == done.counts == counts
    assert (memory.content, memory.memory_id) == (content, stored.memory_id)
    assert [each.version for each in listed.versions] == versions
    if on_conflict != "skip":
        assert memory.created_at == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


async def test_what_is_another_ones_is_not_touched(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        here = {"namespace": "project:atlas"}
        await imported(home.runtime, BOB, line("a", "bob's", **here))
        done = await imported(home.runtime, ANN, line("a", "ann's", **here), on_conflict="overwrite")
        assert done.counts == {"created": 1}
        both = await export(home.runtime, ANN)
    assert [each["content"] for each in both] == ["bob's", "ann's"]
    assert [each["key"] for each in both] == ["a", "a~ann"]  # so that the export can be imported


async def test_what_has_expired_is_counted_and_left_out(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        old = line("a", expires_at="2000-01-01T00:00:00Z")
        done = await imported(home.runtime, ANN, old, line("b"))
        assert done.counts == {"expired": 1, "created": 1}
        assert await keys(home.runtime, ANN) == ["b"]


async def test_links_are_made_whichever_line_comes_first(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        lines = [
            line("3", supersedes="2"),
            line("2", supersedes="1"),
            line("1"),
            line("4", supersedes="nowhere"),
        ]
        done = await imported(home.runtime, ANN, *lines)
        assert done.counts == {"created": 4}
        by_key = {each["key"]: each.get("supersedes") for each in await export(home.runtime, ANN)}
        found = await home.runtime.query(MemorySearch(query="what says", limit=10), principal=ANN)
    assert by_key == {"1": None, "2": "1", "3": "2", "4": None}
    assert sorted(each.key for each in found.memories) == ["3", "4"]


@pytest.mark.slow
async def test_thousands_of_links_to_nowhere_cost_no_more_than_they_should(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        nowhere = [line(f"n{n}", supersedes=f"gone {n}") for n in range(3_000)]
        chain = [line(f"c{n}", supersedes=f"c{n - 1}") for n in range(1, 300)]
        done = await imported(home.runtime, ANN, *nowhere, *chain, line("c0"))
        assert done.counts == {"created": 3_300}
        links = {each["key"]: each.get("supersedes") for each in await export(home.runtime, ANN)}
    assert all(links[each["key"]] == each["supersedes"] for each in chain)


async def test_links_in_a_circle_do_not_stop_an_import(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, line("1", supersedes="2"), line("2", supersedes="1"))
        assert done.counts == {"created": 2}
        assert sorted(await keys(home.runtime, ANN)) == ["1", "2"]


# -- nasty content ------------------------------------------------------------------------


@pytest.mark.promise("exchange.hostile")
async def test_hostile_content_comes_back_as_it_went_in(enter: Enter) -> None:
    texts = {
        "rtl": "\u202eevil\u202c שלום עולם",
        "emoji": "👩\u200d👩\u200d👧\u200d👦 🇩🇪",
        "zero width": "a\u200bb\ufeffc\u00ad",
        "combining": "e\u0301\u0301\u0301 Å vs A\u030a",
        "controls": "\x00\x01\x1b[31m\x7f\u0085\u2028\u2029",
        "blank": " \t\n",
        "astral": "\U0010ffff\U0001d49c",
    }
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(key, content) for key, content in texts.items()))
        assert {each["key"]: each["content"] for each in await export(home.runtime, ANN)} == texts


@pytest.mark.promise("exchange.hostile")
@pytest.mark.slow
async def test_ten_megabytes_and_ten_thousand_tags(enter: Enter) -> None:
    large = "".join(f"word{n} " for n in range(1_100_000))[: 10 << 20]
    tags = [f"tag number {n}" for n in range(10_000)]
    async with enter(**QUIET) as home:
        await imported(
            home.runtime,
            ANN,
            line("large", large),
            line("tagged", tags=tags),
            line("json", value=[large[:1_000_000]]),
        )
        found = {each["key"]: each for each in await export(home.runtime, ANN)}
        assert found["large"]["content"] == large
        assert found["tagged"]["tags"] == tags
        assert found["json"]["value"] == [large[:1_000_000]]
        hits = await home.runtime.query(MemorySearch(query="word424242", namespace="user:ann"), principal=ANN)
        assert [each.key for each in hits.memories] == ["large"]
        tagged = await home.runtime.query(MemorySearch(tags=["tag number 9999"]), principal=ANN)
        assert [each.key for each in tagged.memories] == ["tagged"]


async def test_an_import_is_audited_without_its_contents(enter: Enter) -> None:
    async with enter(queries=[AuditTrail], **QUIET) as home:
        await imported(home.runtime, ANN, line("secret key", "secret content"))
        rows = await home.runtime.query(AuditTrail())
    said = {row.action: row.details for row in rows if "import" in row.action}
    assert said.keys() == {"decide_import", "import_memories"}
    assert said["import_memories"]["counts"] == {"created": 1}
    assert "secret" not in repr(said)


@pytest.mark.promise("exchange.embedded")
async def test_an_import_ends_when_all_have_vectors(tmp_path: Path) -> None:
    stages: list[str] = []

    def note(stage: str, _done: int, _total: int) -> None:
        stages.append(stage)

    async with open_greenroom(tmp_path / "data", embedder="static") as runtime:
        done = await imported(runtime, ANN, *(line(f"k{n}") for n in range(300)), progress=note)
        found = await runtime.query(MemorySearch(query="k7", include_debug=True), principal=ANN)
    assert done.embedded is True
    assert list(dict.fromkeys(stages)) == ["checking", "staging", "importing", "embedding"]
    assert found.memories
