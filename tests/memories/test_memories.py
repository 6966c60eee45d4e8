"""Memories: found at once, forgotten with care, given back as given, and seen by those who may."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from msgspec import UNSET
from support.agents import AuditTrail, json, keep, moment, refused, value_of
from support.postings import posted

from greenroom.actors import Agent, GetMemory, ListMemory, MemoryFilters, MemorySaved, MemoryView
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests import requests
from greenroom.runtime import Address

if TYPE_CHECKING:
    from support.agents import Enter, House

HOSTILE = [
    "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family \U0001f44d\U0001f3fd",
    "zero\u200bwidth\u200djoiner\ufeff",
    "a\u0301 e\u0302\u0323 combining " + "\u0300" * 200,
    "\t tabs \r\n and \x00 nul \x1b[31m",
    "\U00020000\U000323af \ud7ff\ue000\ufffd",
    " ",
    '{"looks": "like JSON"}',
]


async def store(agent: Agent, content: str | None = None, **more: Any) -> MemorySaved:
    metadata = more.pop("metadata", {})
    if "value" in more:
        more["value"] = msgspec.Raw(more["value"])
    raw = msgspec.Raw(msgspec.json.encode(metadata))
    return await agent.ask(requests.StoreMemory(content=content, metadata=raw, **more))


async def find(
    at: House, agent: Agent, text: str | None, namespace: str = "user:alice", **more: Any
) -> list[MemoryView]:
    request = requests.FindMemories(text=text, **{"limit": 100, **more})
    found = await at.runtime.ask(memory_address(namespace), request, principal=agent.principal)
    return [hit.memory for hit in found.hits]


async def names(at: House, agent: Agent, text: str | None, **more: Any) -> set[str]:
    return {memory.key for memory in await find(at, agent, text, **more)}


async def read(at: House, agent: Agent, **more: Any) -> MemoryView:
    request = requests.ReadMemory(**more)
    address = memory_address(more.get("namespace", "user:alice"))
    return (await at.runtime.ask(address, request, principal=agent.principal)).memory


@pytest.mark.promise("memory.found")
async def test_a_memory_is_found_by_the_very_next_search(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number in range(30):
            await store(alice, f"the project codenamed zebra{number} ships", key=f"k{number}")
            assert f"k{number}" in await names(at, alice, f"zebra{number}")
        await alice.ask(requests.UpdateMemory(key="k3", content="renamed to giraffe"))
        assert await names(at, alice, "giraffe") == {"k3"}
        assert "k3" not in await names(at, alice, "zebra3", mode="exact")
        await alice.ask(requests.ForgetMemory(key="k3"))
        assert await names(at, alice, "giraffe") == set()
        await keep(alice, "plain", '{"animal": "okapi", "n": 42}')
        assert await names(at, alice, "okapi", namespace="agent:a") == {"plain"}
        assert await names(at, alice, "animal", namespace="agent:a") == {"plain"}
        await keep(alice, "plain", '"quagga"')
        assert await names(at, alice, "okapi", namespace="agent:a") == set()
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        assert await names(at, alice, "quagga", namespace="agent:a") == {"plain"}
        assert await names(at, alice, "zebra7") >= {"k7"}


@pytest.mark.slow
@pytest.mark.promise("memory.found")
async def test_filters_choose_before_anything_is_ranked(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        everything: dict[str, dict[str, Any]] = {}
        kinds = ("semantic", "episodic", "procedural")
        for number in range(60):
            at.tick(3_600)
            fields = {
                "kind": kinds[number % 3],
                "author": f"author {number % 4}",
                "conversation_id": f"c{number % 5}",
                "namespace": f"user:alice:n{number % 2}",
            }
            metadata = {"tags": [f"t{number % 7}", f"u{number % 2}", "a,b c"], "importance": number % 11 / 10}
            key = f"{'even' if number % 2 == 0 else 'odd'}-{number}"
            saved = await store(alice, f"common words {number}", key=key, metadata=metadata, **fields)
            everything[key] = {**fields, **metadata, "at": saved.stored_at, "number": number}
        times = [fields["at"] for fields in everything.values()]
        cases: list[tuple[dict[str, Any], Any]] = [
            ({}, lambda _: True),
            ({"kind": "episodic"}, lambda one: one["kind"] == "episodic"),
            ({"author": "author 1"}, lambda one: one["author"] == "author 1"),
            ({"author": "author"}, lambda _: False),
            ({"conversation_id": "c4"}, lambda one: one["conversation_id"] == "c4"),
            ({"namespace": "user:alice:n1"}, lambda one: one["namespace"] == "user:alice:n1"),
            ({"tags": ["t1", "t2"]}, lambda one: bool({"t1", "t2"} & set(one["tags"]))),
            ({"tags": ["t1", "u0"], "tag_match": "all"}, lambda one: {"t1", "u0"} <= set(one["tags"])),
            ({"tags": ["a,b c"]}, lambda _: True),
            ({"tags": ["a"]}, lambda _: False),
            ({"min_importance": 0.7}, lambda one: one["importance"] >= 0.7),
            ({"after": times[20]}, lambda one: one["number"] >= 20),
            ({"before": times[20]}, lambda one: one["number"] < 20),
            ({"after": times[5], "before": times[9]}, lambda one: 5 <= one["number"] < 9),
            ({"max_age_days": 0.5}, lambda one: one["number"] >= 47),
            ({"max_age_days": 1e300}, lambda _: True),
            ({"key_prefix": "odd-"}, lambda one: one["number"] % 2 == 1),
            ({"key": "odd-7"}, lambda one: one["number"] == 7),
            ({"scope": "private"}, lambda _: True),
            ({"scope": "public"}, lambda _: False),
            ({"kind": "semantic", "tags": ["u1"], "after": times[30]},
             lambda one: one["kind"] == "semantic" and "u1" in one["tags"] and one["number"] >= 30),
        ]  # fmt: skip
        for text, mode in ((None, "semantic"), ("common", "semantic"), ("common w", "exact")):
            for given, fits in cases:
                wanted = {key for key, fields in everything.items() if fits(fields)}
                filters = MemoryFilters(**given)
                assert await names(at, alice, text, mode=mode, filters=filters) == wanted, (given, mode)
                page = await alice.ask(requests.ListMemories(filters=filters, limit=200))
                assert {memory.key for memory in page.memories} == wanted, given
        unfiltered = [memory.key for memory in await find(at, alice, "common words")]
        filtered = await find(at, alice, "common words", filters=MemoryFilters(kind="episodic"), limit=7)
        assert [one.key for one in filtered] == [
            key for key in unfiltered if everything[key]["kind"] == "episodic"
        ][:7]


@pytest.mark.promise("memory.as-given")
async def test_hostile_content_is_stored_and_found_as_given(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number, text in enumerate(HOSTILE):
            await store(
                alice, text, key=f"k{number}", metadata={"tags": [text.strip()[:200] or "blank"], "x": text}
            )
            await store(alice, value=msgspec.json.encode({"v": text}), key=f"v{number}")
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number, text in enumerate(HOSTILE):
            memory = await read(at, alice, key=f"k{number}")
            assert (memory.content, memory.tags) == (text, [text.strip()[:200] or "blank"])
            assert msgspec.json.decode(memory.metadata) == {"x": text}  # type: ignore[arg-type]
            assert memory.size_bytes == len(text.encode())
            assert f"k{number}" in await names(at, alice, text, mode="exact")
            tagged = MemoryFilters(tags=[text.strip()[:200] or "blank"])
            assert f"k{number}" in await names(at, alice, None, filters=tagged)
            value = (await read(at, alice, key=f"v{number}")).value
            assert msgspec.json.decode(value) == {"v": text}  # type: ignore[arg-type]


@pytest.mark.promise("memory.as-given")
@pytest.mark.slow
async def test_large_content_is_compressed_without_loss(enter: Enter) -> None:
    rows = [f"line {number} of a long note, which is like the others; " for number in range(20_000)]
    text = "".join(rows)[:1_000_000]
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        saved = await store(alice, text, key="long")
        assert saved.compressed
        assert saved.size_bytes < len(text) // 4
        assert saved.compression_ratio == pytest.approx(saved.size_bytes / len(text), abs=0.0001)
        assert saved.tokens == 250_000
        assert saved.tokens_saved > 180_000
        assert not (await store(alice, text[:4_000], key="short")).compressed
        plain = await store(alice, text, key="plain", compress=False)
        assert (plain.compressed, plain.size_bytes, plain.compression_ratio) == (False, len(text), 1.0)
        for key, told in (("long", saved), ("plain", plain)):
            memory = await read(at, alice, key=key)
            assert (memory.content, memory.compressed) == (text, key == "long")
            (version,) = (await alice.ask(requests.ListVersions(key=key))).versions
            assert {memory.size_bytes, version.size_bytes} == {told.size_bytes}
        assert await names(at, alice, "line 17000 of a long", mode="exact") == {"long", "plain"}
        assert "long" in await names(at, alice, "17000")
        await store(alice, text, key="of-agent", namespace="agent:a")
        assert msgspec.json.decode(await value_of(alice, "of-agent")) == text
        with refused("VALIDATION_ERROR", field="content"):
            await store(alice, "\U0001f600" * 262_145)
        (forgotten,) = (await alice.ask(requests.ForgetMemory(key="long"))).memories
        assert forgotten.size_bytes == saved.size_bytes


@pytest.mark.slow
@pytest.mark.promise("memory.as-given")
async def test_ten_thousand_tags(enter: Enter) -> None:
    tags = [f"tag number {number}" for number in range(10_000)]
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        await store(alice, "tagged", key="k", metadata={"tags": tags})
        await store(alice, "other", key="l", metadata={"tags": tags[:1]})
        assert (await read(at, alice, key="k")).tags == tags
        assert await names(at, alice, None, filters=MemoryFilters(tags=["tag number 9999"])) == {"k"}
        every = MemoryFilters(tags=tags, tag_match="all")
        assert await names(at, alice, None, filters=every) == {"k"}
        assert await names(at, alice, None, filters=MemoryFilters(tags=tags)) == {"k", "l"}
        statistics = await alice.ask(requests.MemoryStats())
        assert (len(statistics.by_tag), statistics.by_tag["tag number 0"]) == (100, 2)
        with refused("VALIDATION_ERROR", field="metadata.tags", size=10_001):
            await store(alice, "tagged", metadata={"tags": [*tags, "one more"]})
        with refused("VALIDATION_ERROR", field="metadata.tags[0]", size=201):
            await store(alice, "tagged", metadata={"tags": ["x" * 201]})


@pytest.mark.promise("memory.forget")
async def test_several_are_listed_before_they_are_forgotten(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number in range(150):
            await store(alice, f"note {number}", key=f"k{number}", metadata={"tags": [f"t{number % 2}"]})
        even = MemoryFilters(tags=["t0"])
        asked = await alice.ask(requests.ForgetMemory(filters=even))
        assert (asked.forgotten, asked.confirm_needed, asked.matched, asked.purged) == (0, True, 75, False)
        assert [memory.key for memory in asked.memories[:2]] == ["k148", "k146"]
        assert len(await names(at, alice, None, limit=1_000)) == 150
        done = await alice.ask(requests.ForgetMemory(filters=even, confirm=True))
        assert (done.forgotten, done.confirm_needed, len(done.memories)) == (75, False, 75)
        assert await names(at, alice, None, limit=1_000) == {f"k{number}" for number in range(1, 150, 2)}
        one = await alice.ask(requests.ForgetMemory(filters=MemoryFilters(key="k1")))
        assert (one.forgotten, one.confirm_needed) == (1, False)
        assert (await alice.ask(requests.ForgetMemory(filters=even))).matched == 0
        with refused("MEMORY_NOT_FOUND"):
            await alice.ask(requests.ForgetMemory(key="k0"))
        with refused("VERSION_CONFLICT", current_version=1, expected_version=2):
            await alice.ask(requests.ForgetMemory(key="k3", expected_version=2))
        for wrong in (requests.ForgetMemory(), requests.ForgetMemory(key="k", filters=even)):
            with refused("VALIDATION_ERROR"):
                await alice.ask(wrong)
        history = await alice.ask(requests.ListVersions(key="k0"))
        assert [version.deleted_at is not None for version in history.versions] == [True]
        purged = await alice.ask(requests.ForgetMemory(key="k0", purge=True))
        assert (purged.forgotten, purged.purged) == (1, True)
        with refused("MEMORY_NOT_FOUND"):
            await alice.ask(requests.ListVersions(key="k0"))
        trail = await at.runtime.query(AuditTrail())
        assert sum(row.action == "forget_memory" for row in trail) == 77


@pytest.mark.promise("memory.similar")
async def test_near_duplicates_are_reported_and_not_merged(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = at.agent("a", user="alice"), at.agent("b", user="bob")
        first = await store(alice, "Deploys happen on Fridays in the Frankfurt cluster", namespace="team:x")
        assert first.similar == []
        await store(alice, "The cat sleeps on the Frankfurt sofa", namespace="team:x")
        again = await store(bob, "Deploys happen on friday, in the Frankfurt cluster", namespace="team:x")
        assert [one.memory_id for one in again.similar] == [first.memory_id]
        assert again.similar[0].similarity > 0.9
        secret = await store(
            alice, "Salaries rise by ten percent in Q4", namespace="team:x", metadata={"scope": "private"}
        )
        assert (await store(bob, "Salaries rise by ten percent in Q4", namespace="team:x")).similar == []
        mine = await store(alice, "Salaries rise by ten percent in Q4!", namespace="team:x")
        assert secret.memory_id in {one.memory_id for one in mine.similar}
        successor = await store(
            alice, "Salaries rise by twelve percent in Q4", namespace="team:x", supersedes=secret.memory_id
        )
        assert secret.memory_id not in {one.memory_id for one in successor.similar}


@pytest.mark.promise("memory.similar")
async def test_what_others_hide_changes_no_near_duplicates(enter: Enter) -> None:
    chance = random.Random(3)  # noqa: S311 - as in a test
    words = [f"word{number}" for number in range(24)]
    said = [chance.choices(words, k=10) for _ in range(30)]
    said += [[*chance.choice(said)[:9], chance.choice(words)] for _ in range(30)]
    found: dict[str, list[list[str]]] = {"crew:x": [], "team:x": []}
    async with enter(embedder="none") as at:
        alice, bob = at.agent("a", user="alice"), at.agent("b", user="bob")
        for number, content in enumerate(said):
            hidden = " ".join(chance.choices(words[:12], k=10))
            await store(bob, hidden, namespace="crew:x", metadata={"scope": "private"})
            for namespace, similar in found.items():
                saved = await store(alice, " ".join(content), key=f"k{number}", namespace=namespace)
                similar.append([one.key for one in saved.similar])
    assert found["crew:x"] == found["team:x"]
    assert sum(map(bool, found["crew:x"])) > 20


@pytest.mark.promise("memory.ratings")
async def test_a_rater_has_one_opinion_and_uses_are_counted(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        people = [at.agent(name, user=name) for name in ("alice", "bob", "eve")]
        saved = await store(people[0], "a fact", key="k", namespace="team:x")

        async def rate(agent: Agent, rating: float) -> tuple[float, int]:
            rated = await agent.ask(requests.RateMemory(memory_id=saved.memory_id, rating=rating))
            return rated.rating, rated.ratings

        assert await rate(people[0], 1) == (1.0, 1)
        assert await rate(people[1], 0) == (0.5, 2)
        assert await rate(people[1], -1) == (0.0, 2)
        assert await rate(people[2], 0.5) == (0.1667, 3)
        for _ in range(3):
            await find(at, people[0], "fact", namespace="team:x")
        await find(at, people[0], "fact", namespace="team:x", use=False)
        await trio.sleep(60)
    async with enter(embedder="none") as at:
        alice = at.agent("alice", user="alice")
        [memory] = await find(at, alice, "fact", namespace="team:x")
        assert (memory.rating, memory.ratings, memory.uses) == (0.1667, 3, 4)
        statistics = await alice.ask(requests.MemoryStats(namespace="team:x"))
        assert [(used.key, used.uses) for used in statistics.top_used] == [("k", 4)]
        await alice.ask(requests.UpdateMemory(key="k", namespace="team:x", content="a better fact"))
        assert (await read(at, alice, key="k", namespace="team:x")).ratings == 3


@pytest.mark.slow
async def test_every_use_of_a_memory_that_is_only_read_now_and_then_is_counted(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("alice", user="alice")
        await keep(alice, "k", "1")
        for _ in range(10):
            await trio.sleep(310)  # the actor leaves memory between two uses
            await posted(alice, GetMemory(key="k"))
        await trio.sleep(60)
        statistics = await alice.ask(requests.MemoryStats(namespace="agent:alice"))
        assert [(used.key, used.uses) for used in statistics.top_used] == [("k", 10)]


@pytest.mark.promise("memory.ratings")
async def test_quality_decides_as_far_as_it_is_boosted(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for number in range(40):
            await store(alice, f"release notes, number {number}", key=f"k{number}")
        await store(alice, "release", key="good", metadata={"importance": 1})
        await store(alice, "release", key="bad", metadata={"importance": 0})
        await alice.ask(requests.RateMemory(key="good", rating=1))
        await alice.ask(requests.RateMemory(key="bad", rating=-1))

        async def order(**more: Any) -> list[Any]:
            request = requests.FindMemories(text="release notes number 7", limit=50, use=False, **more)
            address = memory_address("user:alice")
            return (await at.runtime.ask(address, request, principal=alice.principal)).hits

        by_relevance = await order()
        assert by_relevance[0].memory.key == "k7"
        relevance = {hit.memory.key: hit.score for hit in by_relevance}  # without a boost that is the score
        assert [hit.memory.key for hit in await order(quality_boost=1)] == [
            hit.memory.key for hit in by_relevance
        ]
        by_quality = await order(mode="hybrid", quality_boost=1, debug=True)
        assert (by_quality[0].memory.key, by_quality[-1].memory.key) == ("good", "bad")
        for hit in by_quality:
            assert hit.score == pytest.approx(hit.quality)
            parts = [share for name, share in hit.components.items() if name.startswith("quality.")]
            assert sum(parts) == pytest.approx(hit.quality, abs=0.001)
        for hit in await order(mode="hybrid", quality_boost=0.3):
            wanted = 0.7 * relevance[hit.memory.key] + 0.3 * hit.quality
            assert hit.score == pytest.approx(wanted, abs=1e-6)


async def test_statistics_count_what_the_caller_may_see(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice, bob = at.agent("a", user="alice"), at.agent("b", user="bob")
        await store(alice, "x" * 8_000, namespace="team:x", kind="episodic", author="ann")
        await store(alice, "secret", namespace="team:x:y", metadata={"scope": "private", "tags": ["t"]})
        old = await store(alice, "old", namespace="team:x", metadata={"scope": "public"})
        await store(alice, "new", namespace="team:x", supersedes=old.memory_id)
        mine = await alice.ask(requests.MemoryStats(namespace="team:x"))
        assert (mine.memories, mine.bytes, mine.compressed, mine.superseded) == (4, 8_012, 1, 1)
        assert mine.stored_bytes < 100
        assert mine.compression_ratio == pytest.approx(mine.stored_bytes / mine.bytes, abs=0.0001)
        assert mine.tokens_saved > 1_900
        assert mine.by_namespace == {"team:x": 3, "team:x:y": 1}
        assert mine.by_scope == {"shared": 2, "private": 1, "public": 1}
        assert mine.by_kind == {"semantic": 3, "episodic": 1}
        assert mine.by_author == {"a": 3, "ann": 1}
        assert mine.by_age == {"day": 4, "week": 0, "month": 0, "year": 0, "older": 0}
        assert mine.more_namespaces == 0
        for n in range(120):
            await store(bob, "y", namespace=f"team:wide:{n}")
        await store(bob, "z", namespace="team:wide:77")
        wide = await alice.ask(requests.MemoryStats(namespace="team:wide"))
        assert (wide.memories, len(wide.by_namespace), wide.more_namespaces) == (121, 100, 20)
        assert wide.by_namespace["team:wide:77"] == 2
        theirs = await bob.ask(requests.MemoryStats(namespace="team:x"))
        assert (theirs.memories, theirs.by_tag) == (3, {})
        below = await alice.ask(requests.MemoryStats(namespace="team:x:y"))
        assert (below.memories, below.bytes) == (1, 6)


@pytest.mark.promise("memory.expiry")
async def test_an_expiry_ends_a_memory_in_its_microsecond(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        ends = moment(at.clock.now() + 10_000_000)
        saved = await store(alice, "short lived", key="k", metadata={"expiry": ends.isoformat()})
        assert saved.expires_at == ends
        today = await store(alice, "today", key="day", metadata={"expiry": ends.date().isoformat()})
        midnight = dt.datetime.combine(ends.date() + dt.timedelta(days=1), dt.time(), dt.UTC)
        assert today.expires_at == midnight
        at.clock.jump(9_999_999)
        assert await names(at, alice, "lived") == {"k"}
        assert (await read(at, alice, key="k")).content == "short lived"
        at.clock.jump(1)
        assert await names(at, alice, "lived") == set()
        assert await names(at, alice, "lived", mode="exact") == set()
        with refused("MEMORY_NOT_FOUND"):
            await read(at, alice, key="k")
        with refused("MEMORY_NOT_FOUND"):
            await at.runtime.ask(
                memory_address("user:alice"),
                requests.ReadMemory(memory_id=saved.memory_id),
                principal=alice.principal,
            )
        assert (await alice.ask(requests.MemoryStats())).memories == 1
        again = await store(alice, "again", key="k")
        assert (again.version, again.created, again.expires_at) == (2, True, None)
        for wrong in ("soon", "2020-01-01", "2026-13-01", ""):
            with refused("VALIDATION_ERROR", field="metadata.expiry"):
                await store(alice, "x", metadata={"expiry": wrong})


async def test_what_is_given_wrongly_is_named(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for field, wrong in [
            ("content", {}),
            ("value", {"content": "a", "value": b"1"}),
            ("metadata.importance", {"content": "a", "metadata": {"importance": 2}}),
            ("metadata.importance", {"content": "a", "metadata": {"importance": "high"}}),
            ("metadata.scope", {"content": "a", "metadata": {"scope": "world"}}),
            ("metadata.tags", {"content": "a", "metadata": {"tags": "x"}}),
            ("namespace", {"content": "a", "namespace": "alice"}),
            ("key", {"content": "a", "key": "a:b"}),
            ("expected_version", {"content": "a", "expected_version": -1}),
            ("position", {"content": "a", "position": -1}),
        ]:
            with refused("VALIDATION_ERROR", field=field):
                await store(alice, **wrong)  # type: ignore[arg-type]
        with refused("MEMORY_NOT_FOUND"):
            await store(alice, "a", supersedes="00000000-0000-8000-8000-000000000000")
        with refused("VALIDATION_ERROR", field="supersedes"):
            await store(alice, "a", supersedes="no id")


@pytest.mark.promise("memory.namespaces")
async def test_two_namespaces_never_see_each_other(enter: Enter) -> None:
    spaces = ["user:alice", "user:alic", "user:alice2", "team:alice", "agent:a", "project:user", "user:a"]
    async with enter(embedder="none") as at:
        owners = {
            space: at.agent("a" if space != "user:a" else "b", user=space.split(":")[1]) for space in spaces
        }
        for space, agent in owners.items():
            await store(agent, f"common secret of {space}", key="k", namespace=space)
        addresses = {memory_address(space) for space in spaces}
        assert len(addresses) == len(spaces)
        for space, agent in owners.items():
            [memory] = await find(at, agent, "common", namespace=space)
            assert (memory.namespace, memory.version) == (space, 1)
            [listed] = (await agent.ask(requests.ListMemories(namespace=space))).memories
            assert listed.memory_id == memory.memory_id
        nobody = at.agent("z", user="zoe", projects=frozenset())
        for space in spaces:
            assert await find(at, nobody, "common", namespace=space) == []
            assert await find(at, nobody, None, namespace=space) == []
            assert (await nobody.ask(requests.MemoryStats(namespace=space))).memories == 0
            with refused("MEMORY_NOT_FOUND"):
                await nobody.ask(requests.RateMemory(namespace=space, key="k", rating=1))
        # Whoever shares a place with what is hidden cannot tell that its key is taken.
        for number, agent in enumerate((nobody, at.agent("y", user="yan", projects=frozenset()))):
            saved = await store(agent, "mine", key="k", namespace="team:alice", expected_version=0)
            assert (saved.version, saved.created) == (1, True)
            assert len(await find(at, agent, "mine", namespace="team:alice")) == 1, number


@pytest.mark.slow
async def test_a_thousand_writers_on_a_hundred_namespaces(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agents = [at.agent(f"a{number}", user=f"u{number}") for number in range(100)]

        async def work(number: int) -> None:
            agent = agents[number % 100]
            namespace = f"user:u{number % 100}" if number % 3 else f"agent:a{number % 100}"
            for turn in range(3):
                await store(agent, f"writer {number} turn {turn}", key=f"w{number}", namespace=namespace)
            await store(agent, f"shared {number}", key="shared", namespace=namespace)

        async with trio.open_nursery() as nursery:
            for number in range(1_000):
                nursery.start_soon(work, number)
        for owner, kind in itertools.product((0, 37, 99), ("user:u", "agent:a")):
            namespace = f"{kind}{owner}"
            writers = [one for one in range(owner, 1_000, 100) if bool(one % 3) == (kind == "user:u")]
            page = await agents[owner].ask(requests.ListMemories(namespace=namespace, limit=200))
            versions = {memory.key: memory.version for memory in page.memories}
            assert versions == {f"w{one}": 3 for one in writers} | {"shared": len(writers)}
            ids = [memory.id for memory in page.memories]
            assert ids == sorted(set(ids), reverse=True)


async def test_what_agents_keep_and_memories_are_one(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        await store(
            alice, "kept text", key="k", namespace="agent:a", metadata={"tags": ["t"], "importance": 0.9}
        )
        assert await value_of(alice, "k") == '"kept text"'
        assert await keep(alice, "k", "[1]") == 2
        memory = await read(at, alice, namespace="agent:a", key="k")
        assert (memory.tags, memory.importance, memory.version) == (["t"], 0.9, 2)
        assert bytes(memory.value) == b"[1]"  # type: ignore[arg-type]
        assert (await read(at, alice, namespace="agent:a", key="k", version=1)).content == "kept text"
        await store(alice, "below", key="k", namespace="agent:a:sub")
        assert [entry.key for entry in (await alice.ask(ListMemory())).entries] == ["k"]
        assert [entry.version for entry in (await alice.ask(ListMemory(session_id="all"))).entries] == [2]
        await keep(alice, "plain", "1", metadata=json('{"m": 1}'))
        updated = await alice.ask(requests.UpdateMemory(namespace="agent:a", key="plain", content="2"))
        assert (updated.version, updated.created) == (2, False)
        assert await value_of(alice, "plain") == '"2"'
        assert (await read(at, alice, namespace="agent:a", key="plain")).value is UNSET


async def test_the_longest_names_work(enter: Enter) -> None:
    longest = f"{'a' * 100}:{'b' * 100}"
    namespaces = [longest, f"{longest}:{':'.join('c' * 100 for _ in range(6))}", f"{longest[:-1]}x"]
    async with enter(embedder="none") as at:
        alice = at.agent("a" * 100, user="u" * 100)
        for namespace in namespaces:
            saved = await store(alice, f"common {namespace[-3:]}", key="k" * 255, namespace=namespace)
            assert saved.namespace == namespace
    async with enter(embedder="none") as at:
        alice = at.agent("a" * 100, user="u" * 100)
        for namespace in namespaces:
            memory = await read(at, alice, key="k" * 255, namespace=namespace)
            assert memory.namespace == namespace
            rated = await alice.ask(requests.RateMemory(memory_id=memory.memory_id, rating=1))
            assert rated.namespace == namespace
        listed = (await alice.ask(requests.ListMemories(namespace=longest))).memories
        assert {memory.namespace for memory in listed} == set(namespaces[:2])


def test_the_actor_of_an_agent_is_where_it_always_was() -> None:
    assert memory_address("agent:planner") == Address("memory", "planner")
    assert memory_address("agent:planner:sub:deep") == Address("memory", "planner")
    assert memory_address("user:alice:x") == Address("memory", "user:alice")
    longest = memory_address(f"{'a' * 100}:{'b' * 100}")
    assert len(longest.key) == 200
    assert longest != memory_address(f"{'a' * 100}:{'b' * 99}c")


@pytest.mark.promise("memory.as-given")
@pytest.mark.parametrize("over", [0, 1])
async def test_contents_are_whole_as_long_as_the_answer_has_room(enter: Enter, over: int) -> None:
    size = 1_048_576 - 500  # what an answer takes for a memory besides
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice")
        for length in (size + over, size, size, size):
            await store(alice, "x" * length)
        found = await find(at, alice, None)
        assert [memory.content is None for memory in found] == [False, False, False, bool(over)]


@pytest.mark.promise("memory.scopes-of-sight")
@pytest.mark.parametrize("ends", ["expires", "is forgotten"])
async def test_what_has_ended_is_in_no_memory_s_way_to_another_scope(enter: Enter, ends: str) -> None:
    async with enter(embedder="none") as at:
        alice = at.agent("a", user="alice", projects=frozenset({"p"}))
        soon = moment(at.clock.now() + 1_000_000).isoformat()
        named: dict[str, Any] = {"key": "k", "namespace": "project:p"}
        await store(alice, "old", scope="private", expiry=soon if ends == "expires" else None, **named)
        if ends == "is forgotten":
            await alice.ask(requests.ForgetMemory(**named))
        at.tick(2)
        assert (await store(alice, "new", scope="shared", **named)).created
        await alice.ask(requests.UpdateMemory(scope="private", **named))
        (memory,) = await find(at, alice, None, namespace="project:p")
        assert (memory.content, memory.scope) == ("new", "private")
