"""The map's data: which memories are on it, what they are linked to, what is said of the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import begin, json, refused
from support.corpora import document_of
from support.embedding import WAITS, Settled
from support.meanings import CONTROL

from greenroom.actors import (
    CreateSession,
    DefineEntities,
    EntityDeclaration,
    ForgetMemory,
    MemoryFilters,
    MemoryMap,
    MemoryMapped,
    MoveMemory,
    PutDocument,
    RateMemory,
    RetrieveMemory,
    SetMemory,
    SettleMemoryPair,
    StoreMemory,
    UpdateMemory,
    ask_corpus,
)

if TYPE_CHECKING:
    from support.agents import Enter, House

    from greenroom.actors import Agent

ALL = MemoryFilters(superseded=True)
MEANINGS: dict[str, Any] = {"embedder": "python:support.meanings:Meanings", "queries": WAITS}
SUBJECTS = ("Refunds: you get money back.", "The office building is closed and shut.", "Anna painted it.")


async def store(agent: Agent, content: str, **more: Any) -> str:
    return (await agent.ask(StoreMemory(content=content, **more))).memory_id


def labels(mapped: MemoryMapped, kind: str = "memory") -> list[str]:
    """Return what the nodes of a type are called."""
    return [
        label
        for label, number in zip(mapped.nodes.label, mapped.nodes.type, strict=True)
        if mapped.types[number] == kind
    ]


def links(mapped: MemoryMapped) -> set[tuple[str, str, str]]:
    """Return what is linked to what, by their labels."""
    edges, label = mapped.edges, mapped.nodes.label
    return {
        (label[source], mapped.links[kind], label[target])
        for source, target, kind in zip(edges.source, edges.target, edges.type, strict=True)
    }


def check_whole(mapped: MemoryMapped) -> None:
    """Check that columns are of one length, and places where they must be."""
    count = len(mapped.nodes.id)
    columns = [getattr(mapped.nodes, name) for name in mapped.nodes.__struct_fields__ if name not in "xy"]
    assert {len(column) for column in columns} == {count}
    placed = 0 if mapped.kind == "list" else count
    assert len(mapped.nodes.x) == len(mapped.nodes.y) == placed
    assert all(math.isfinite(place) and abs(place) <= 1.2 for place in mapped.nodes.x + mapped.nodes.y)
    assert all(0 <= node < count for node in mapped.edges.source + mapped.edges.target)
    assert labels(mapped) == mapped.nodes.label[: mapped.memories]


async def test_memories_are_linked_to_what_they_replace_and_come_from(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        await ann.ask(CreateSession(session_id="release", purpose="Plan the release"))
        old = await store(ann, "Deploy on Mondays.", key="monday")
        await store(ann, "Deploy on Tuesdays.", key="tuesday", supersedes=old, conversation_id="chat 7")
        await store(ann, "The release is late.", key="late", conversation_id="release")
        await ann.ask(SetMemory(key="draft", value=json("1"), session_id="release"))
        mapped = await ann.ask(MemoryMap(filters=ALL))
        check_whole(mapped)
        monday, tuesday, late = "Deploy on Mondays.", "Deploy on Tuesdays.", "The release is late."
        assert set(labels(mapped)) == {monday, tuesday, late, "draft"}
        assert links(mapped) == {
            (tuesday, "supersedes", monday),
            (tuesday, "conversation", "chat 7"),
            (late, "session", "Plan the release"),
            ("draft", "session", "Plan the release"),
        }
        hidden = await ann.ask(MemoryMap())
        assert monday not in labels(hidden)
        assert hidden.total == mapped.total - 1


async def test_a_memory_is_linked_to_an_older_one_that_it_may_contradict(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        for number in range(30):
            await store(ann, f"filler{number} words{number} of{number} no{number} matter{number}")
        before, now = (
            "Payments deploy to Frankfurt with Jenkins.",
            "Payments no longer deploy with Jenkins, but Argo.",
        )
        await store(ann, before)
        await store(ann, now)
        assert links(await ann.ask(MemoryMap())) == {(now, "contradicts", before)}
        assert links(await ann.ask(MemoryMap(limit=1))) == set(), "of what is not shown there are no links"


async def test_memories_are_linked_to_the_entities_that_they_mention(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        put = PutDocument(corpus="docs", document=document_of("a.md", [([], "About databases.")]))
        await ask_corpus(at.runtime, ann.principal, put, make=True)
        declared = [
            EntityDeclaration(name="PostgreSQL", type="vendor", aliases=["Postgres"]),
            EntityDeclaration(name="React Native", type="framework"),
            EntityDeclaration(name="C", type="library"),
        ]
        await ann.ask(DefineEntities(corpus="docs", entities=declared))
        moved, app = "We moved to postgres last year.", "The app is in react-native, the rest in C++."
        for text in (moved, app, "A native speaker would react."):
            await store(ann, text)
        mentioned = {(moved, "mentions", "PostgreSQL"), (app, "mentions", "React Native")}
        assert links(await ann.ask(MemoryMap())) == mentioned
        deaf = at.agent("bot", user="ann", scopes=frozenset({"memory:read"}))
        assert links(await deaf.ask(MemoryMap())) == set()
        stranger = at.agent("bot", user="bob")
        await store(stranger, "postgres too", key="bobs")
        assert labels(await stranger.ask(MemoryMap()), "entity") == []


@pytest.mark.promise("console.map")
async def test_nothing_tells_of_what_its_reader_may_not_see(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann", projects=frozenset({"p", "q"}))
        bob = at.agent("bot", user="bob", projects=frozenset({"p"}))
        secret = await store(ann, "secret one", key="secret-key", namespace="project:p", scope="private")
        shared = {"namespace": "project:p", "scope": "shared"}
        await store(ann, "open", key="of ann", supersedes=secret, conversation_id="c", **shared)
        await ann.ask(CreateSession(session_id="hers", purpose="her secret plan", project_id="q"))
        await store(ann, "from", key="of hers", conversation_id="hers", **shared)
        seen = await bob.ask(MemoryMap(filters=ALL))
        check_whole(seen)
        assert set(labels(seen)) == {"open", "from"}
        assert seen.total == 2
        assert links(seen) == {("open", "conversation", "c"), ("from", "conversation", "hers")}
        told = repr(seen)
        assert secret not in told
        assert "secret" not in told
        whole = await ann.ask(MemoryMap(filters=ALL))
        assert ("open", "supersedes", "secret one") in links(whole)
        with refused("PERMISSION_DENIED", scope="memory:read"):
            await at.agent("bot", scopes=frozenset({"sessions:read"})).ask(MemoryMap())


async def test_labels_are_one_line_in_which_nothing_is_hidden(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        await store(ann, "\u200b", key="a\u202egnp.exe\u200b \u2066x")
        await ann.ask(SetMemory(key="k" * 255, value=json("1")))
        await store(ann, "# A heading\n\nand more")
        await store(ann, "<script>alert(1)</script>\u202e\n\tline\x7f")
        await store(ann, "first\n" + "long " * 200_000, conversation_id="\u202e\u200b")
        await store(ann, "\u200b\u202e")
        mapped = await ann.ask(MemoryMap())
        check_whole(mapped)
        found = labels(mapped)
        expected = {"a gnp.exe x", "k" * 59 + "…", "<script>alert(1)</script> line", "A heading and more"}
        assert expected < set(found)
        assert any(label.startswith("first long long") for label in found)
        assert labels(mapped, "conversation") == ["conversation"]
        assert all(0 < len(label) <= 60 and label.isprintable() for label in mapped.nodes.label)


@pytest.mark.promise("console.map")
async def test_what_has_no_room_is_left_out_and_counted(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        for number in range(6):
            await store(ann, f"m{number}", key=f"m{number}")
            await store(ann, f"p{number}", key=f"p{number}", namespace="project:p")
            at.tick()
        used = await store(ann, "gone soon", key="gone")
        await ann.ask(ForgetMemory(memory_id=used))
        for _ in range(3):
            await ann.ask(RetrieveMemory(key="m1"))
        await trio.sleep(120)  # uses are written down now and then
        mapped = await ann.ask(MemoryMap(kind="list", limit=4))
        assert (mapped.memories, mapped.total) == (4, 12)
        assert mapped.nodes.label[0] == "m1"
        assert set(mapped.nodes.label) == {"m1", "m5", "p5", "p4"}
        newest = await ann.ask(MemoryMap(kind="list", limit=4, order="newest"))
        assert set(newest.nodes.label) == {"m5", "m4", "p5", "p4"}
        below = await ann.ask(MemoryMap(kind="list", namespace="project:p", limit=4))
        assert (below.total, below.namespaces) == (6, ["project:p"])
        first = await ann.ask(MemoryMap(kind="list", limit=1, namespace="user"))
        assert first.nodes.label == ["m1"]


async def test_uses_and_ratings_make_a_memory_large(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        small, large = await store(ann, "small", key="small"), await store(ann, "large", key="large")
        await ann.ask(RateMemory(memory_id=large, rating=1.0))
        await ann.ask(RateMemory(memory_id=small, rating=-1.0))
        nodes = (await ann.ask(MemoryMap())).nodes
        assert nodes.label == ["large", "small"]
        assert nodes.size == [2.5, 1.5]
        assert nodes.rating == [1.0, -1.0]


async def test_filters_narrow_as_in_a_listing(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        await store(ann, "old", key="old", kind="episodic", tags=["a"])
        at.tick(3 * 86_400)
        await store(ann, "new", key="new", kind="procedural", namespace="user:ann:sub")
        for narrowed, wanted in [
            (MemoryFilters(kind="episodic"), ["old"]),
            (MemoryFilters(max_age_days=1), ["new"]),
            (MemoryFilters(tags=["a"]), ["old"]),
            (MemoryFilters(key_prefix="ne"), ["new"]),
            (MemoryFilters(namespace="user:ann:sub"), ["new"]),
            (MemoryFilters(key="none"), []),
        ]:
            mapped = await ann.ask(MemoryMap(kind="list", filters=narrowed))
            check_whole(mapped)
            assert (labels(mapped), mapped.total) == (wanted, len(wanted))
        for wrong in ({"limit": 0}, {"limit": 10_001}, {"kind": "sphere"}, {"namespace": "a b"}):
            with refused("VALIDATION_ERROR"):
                await ann.ask(MemoryMap(**wrong))
        with refused("VALIDATION_ERROR"):
            await ann.ask(MemoryMap(namespace="user:ann", filters=MemoryFilters(namespace="user:ann")))


async def test_without_vectors_a_plane_is_a_graph_and_says_so(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        empty = await ann.ask(MemoryMap(kind="plane"))
        assert (empty.kind, empty.total, empty.notes) == ("graph", 0, [])
        await store(ann, "one", key="one")
        mapped = await ann.ask(MemoryMap(kind="plane"))
        check_whole(mapped)
        assert (mapped.kind, mapped.space, mapped.without_vectors) == ("graph", None, 1)
        assert mapped.notes == ["no memory here has a vector yet, so they are placed by their links"]


async def about(at: House, agent: Agent, each: int) -> None:
    """Store memories about some subjects, and wait for their vectors."""
    for number in range(each * len(SUBJECTS)):
        subject = number % len(SUBJECTS)
        await store(agent, f"{subject} {SUBJECTS[subject]} {number}", key=f"{subject} {number}")
    await at.runtime.query(Settled())


@pytest.mark.promise("console.map")
async def test_a_plane_has_what_means_the_same_together(enter: Enter) -> None:
    async with enter(**MEANINGS) as at:
        ann = at.agent("bot", user="ann")
        await about(at, ann, 12)
        mapped = await ann.ask(MemoryMap(kind="plane"))
        check_whole(mapped)
        assert (mapped.kind, mapped.without_vectors, mapped.notes) == ("plane", 0, [])
        nodes = mapped.nodes
        places = [
            (label[0], complex(x, y)) for label, x, y in zip(nodes.label, nodes.x, nodes.y, strict=True)
        ]
        middles = {
            name: sum(place for other, place in places if other == name) / 12 for name in ("0", "1", "2")
        }
        for name, place in places:
            assert min(middles, key=lambda each, at=place: abs(at - middles[each])) == name  # type: ignore[misc]
        similar = {(one[0], other[0]) for one, how, other in links(mapped) if how == "similar"}
        assert similar == {("0", "0"), ("1", "1"), ("2", "2")}
        again = await ann.ask(MemoryMap(kind="plane"))
        assert (again.nodes, again.edges) == (mapped.nodes, mapped.edges)


@pytest.mark.promise("console.clusters")
async def test_clusters_of_one_meaning_have_names(enter: Enter) -> None:
    async with enter(**MEANINGS) as at:
        ann = at.agent("bot", user="ann")
        await about(at, ann, 3)
        assert (await ann.ask(MemoryMap())).clusters == [], "nine memories are seen at a glance"
        await about(at, ann, 12)
        mapped = await ann.ask(MemoryMap())
        check_whole(mapped)
        subject = [label[0] for label in mapped.nodes.label]
        pairs = {
            (name, number) for name, number in zip(subject, mapped.cluster_of, strict=True) if name != "A"
        }
        assert len(pairs) == len(mapped.clusters) == 3, "each subject is one cluster"
        names = {name: mapped.clusters[number] for name, number in pairs}
        assert any(word in names["0"] for word in ("Refunds", "money"))
        assert any(word in names["1"] for word in ("office", "building", "closed", "shut"))
        assert "Anna" in names["2"]
        again = await ann.ask(MemoryMap())
        assert (again.clusters, again.cluster_of, again.nodes) == (
            mapped.clusters,
            mapped.cluster_of,
            mapped.nodes,
        )


@pytest.mark.promise("console.clusters")
async def test_tags_name_a_cluster_before_words(enter: Enter) -> None:
    async with enter(**MEANINGS) as at:
        ann = at.agent("bot", user="ann")
        for number in range(24):
            subject = number % 2
            await store(ann, f"{SUBJECTS[subject]} {number}", tags=["billing"] if subject == 0 else [])
        await at.runtime.query(Settled())
        assert any("billing" in name for name in (await ann.ask(MemoryMap())).clusters)


async def test_what_changed_is_on_the_next_map(enter: Enter) -> None:
    async with enter(**MEANINGS) as at:
        ann = at.agent("bot", user="ann")
        await about(at, ann, 1)
        await ann.ask(UpdateMemory(key="0 0", content="An office building again."))
        await at.runtime.query(Settled())
        similar = {link for link in links(await ann.ask(MemoryMap())) if link[1] == "similar"}
        office = {"An office building again.", f"1 {SUBJECTS[1]} 1"}
        assert {frozenset((one, other)) for one, _, other in similar} == {frozenset(office)}


@pytest.mark.promise("console.map-changes")
async def test_a_revision_changes_with_all_that_a_map_shows(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        put = PutDocument(corpus="docs", document=document_of("a.md", [([], "About databases.")]))
        await ask_corpus(at.runtime, ann.principal, put, make=True)
        seen: list[str] = []

        async def changed() -> bool:
            (revision,) = {
                (await ann.ask(request)).revision
                for request in (
                    MemoryMap(kind="list", limit=1),
                    MemoryMap(),
                    MemoryMap(kind="plane", limit=2),
                )
            }
            seen.append(revision)
            return revision not in seen[:-1]

        assert await changed()
        deploy = "The payments team deploys to Frankfurt with Jenkins every Tuesday"
        old = await store(ann, deploy, key="old")
        assert await changed()
        new = await store(ann, f"{deploy} no longer", key="new", namespace="user:ann:sub")
        assert await changed()
        await ann.ask(UpdateMemory(memory_id=old, content=f"{deploy}, and at night"))
        assert await changed()
        await ann.ask(RateMemory(memory_id=old, rating=1.0))
        assert await changed()
        await ann.ask(RetrieveMemory(key="old"))
        await trio.sleep(120)  # uses are written down now and then
        assert await changed()
        await ann.ask(CreateSession(session_id="s", purpose="Plan"))
        assert await changed()
        await ann.ask(
            DefineEntities(corpus="docs", entities=[EntityDeclaration(name="Argo", type="library")])
        )
        assert await changed()
        await ann.ask(SettleMemoryPair(memory_id=new, other_id=old))
        assert await changed()
        await ann.ask(ForgetMemory(memory_id=new))
        assert await changed()
        await store(at.agent("bot", user="bob"), "not hers", key="bobs")
        assert not await changed()


async def test_a_revision_changes_when_vectors_come(enter: Enter) -> None:
    async with enter(**MEANINGS) as at:
        ann = at.agent("bot", user="ann")
        await store(ann, SUBJECTS[0], key="one")
        await at.runtime.query(Settled())
        CONTROL.hold()
        try:
            await store(ann, SUBJECTS[1], key="two")
            before = await ann.ask(MemoryMap(kind="list"))
        finally:
            CONTROL.release()
        await at.runtime.query(Settled())
        after = await ann.ask(MemoryMap(kind="list"))
        assert (await ann.ask(MemoryMap(kind="plane"))).without_vectors == 0
        assert after.nodes == before.nodes
        assert after.revision != before.revision


async def test_what_a_map_showed_before_is_shown_as_it_is_now(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        first = await store(ann, "of a generated key")
        moved = await store(ann, "moves", key="moves", namespace="user:ann:here")
        assert set((await ann.ask(MemoryMap())).nodes.label) == {"of a generated key", "moves"}
        await ann.ask(UpdateMemory(memory_id=first, content="says another thing", kind="procedural"))
        await ann.ask(MoveMemory(memory_id=moved, to="user:ann:there", expected_version=1))
        mapped = await ann.ask(MemoryMap())
        shown = {
            label: (mapped.kinds[kind], mapped.namespaces[namespace])
            for label, kind, namespace in zip(
                mapped.nodes.label, mapped.nodes.kind, mapped.nodes.namespace, strict=True
            )
        }
        assert shown == {
            "says another thing": ("procedural", "user:ann"),
            "moves": ("semantic", "user:ann:there"),
        }


async def test_whoever_gives_up_waits_for_no_drawing(enter: Enter) -> None:
    async with enter() as at:
        ann = await begin(at)
        await store(ann, "one")
        with trio.CancelScope() as scope:
            scope.cancel()
            await ann.ask(MemoryMap())
        assert scope.cancelled_caught
        assert (await ann.ask(MemoryMap())).memories == 1


async def test_what_a_hook_found_is_linked_to_its_session(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("bot", user="ann")
        told = '{"provenance": {"client": "claude-code", "session": "abc", "rule": "r"}}'
        await store(ann, "found by a rule", metadata=json(told), unreviewed=True)
        await store(ann, "not of a hook", metadata=json('{"provenance": ["x"]}'), unreviewed=True)
        mapped = await ann.ask(MemoryMap())
        (session,) = labels(mapped, "session")
        assert links(mapped) == {("found by a rule", "session", session)}
        assert session.startswith("claude-code-")
