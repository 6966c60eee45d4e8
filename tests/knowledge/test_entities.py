"""Entities of a corpus: declared, found in its documents, related; and nothing left of what was removed."""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from harness import PATIENCE
from support.agents import FAST
from support.corpora import document_of, ids_in

from greenroom.actors import (
    AddMessage,
    Agent,
    ClientContext,
    CreateSession,
    DeclarationFile,
    DefineEntities,
    DropCorpus,
    EntitiesDefined,
    EntitiesFound,
    EntityDeclaration,
    FindEntity,
    FindVendorInfo,
    GetFullContent,
    Principal,
    PutDocument,
    Relation,
    RemoveDocuments,
    SemanticSearch,
    StoreMemory,
    SuggestEntities,
    ask_corpus,
    open_greenroom,
)
from greenroom.runtime import Encryption, Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from greenroom.actors import Document
    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann")
BEN = Principal(agent_id="b", user="ben")
QUIET: dict[str, Any] = {"embedder": "none", "options": FAST}
PAYING = document_of(
    "docs/paying.md",
    [
        (["Paying"], "Stripe takes the money. Stripe's webhooks go to Redis."),
        (["Paying", "Queues"], "Jobs wait in redis until PostgreSQL has them."),
        (["Paying", "Other"], "Nothing of that kind."),
    ],
)
STORING = document_of("docs/storing.md", [(["Storing"], "We chose Postgres; Redis is a cache. Go on.")])
STRIPE = EntityDeclaration(
    name="Stripe",
    type="vendor",
    description="Takes payments.",
    relations=[Relation("PostgreSQL", "stores_in"), Relation("Nobody", "hates")],
)
REDIS = EntityDeclaration(name="Redis", type="service")
POSTGRES = EntityDeclaration(
    name="PostgreSQL", type="service", aliases=["Postgres"], relations=[Relation("Redis", "is_beside")]
)


class Corpus:
    """A corpus named ``docs``, and who asks it."""

    def __init__(self, runtime: RuntimeClient, who: Principal = ANN) -> None:
        self.runtime = runtime
        self.who = who
        self.agent = Agent(runtime, who)

    async def put(self, *documents: Document) -> None:
        for document in documents:
            await ask_corpus(self.runtime, self.who, PutDocument(corpus="docs", document=document), make=True)

    async def define(self, *entities: EntityDeclaration, **more: Any) -> EntitiesDefined:
        done = await self.agent.ask(DefineEntities(corpus="docs", entities=list(entities), **more))
        with trio.fail_after(PATIENCE):
            while (await self.find("*")).waiting_for_matching:
                await trio.lowlevel.checkpoint()
        return done

    async def find(self, wanted: str, **more: Any) -> EntitiesFound:
        return await self.agent.ask(FindVendorInfo(vendor_filter=wanted, corpus="docs", **more))

    async def counts(self, wanted: str = "*") -> dict[str, int]:
        return {each.name: each.mention_count for each in (await self.find(wanted)).entities}


@pytest.fixture
async def corpus(tmp_path: Path) -> AsyncIterator[Corpus]:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        yield Corpus(runtime)


def seen(found: EntitiesFound) -> list[tuple[str, str, int]]:
    return [
        (each.source_name, each.target_name, each.chunk_count)  # type: ignore[misc]
        for each in found.relationships
        if not each.declared
    ]


def declared(found: EntitiesFound) -> list[tuple[str, str, str]]:
    return [
        (each.source_name, each.relationship_type, each.target_name)
        for each in found.relationships
        if each.declared
    ]


@pytest.mark.promise("entities.mentions")
async def test_entities_are_found_in_documents_that_are_there_and_in_those_that_come(corpus: Corpus) -> None:
    await corpus.put(PAYING)
    done = await corpus.define(STRIPE, REDIS, POSTGRES)
    assert (done.added, done.changed, done.unchanged) == (["Stripe", "Redis", "PostgreSQL"], [], 0)
    assert await corpus.counts() == {"Redis": 2, "Stripe": 2, "PostgreSQL": 1}
    await corpus.put(STORING)
    assert await corpus.counts() == {"Redis": 3, "Stripe": 2, "PostgreSQL": 2}
    await corpus.put(document_of("docs/storing.md", [(["Storing"], "Nothing now.")]))
    assert await corpus.counts() == {"Redis": 2, "Stripe": 2, "PostgreSQL": 1}
    await ask_corpus(corpus.runtime, ANN, RemoveDocuments(corpus="docs", paths=["docs/paying.md"]))
    assert await corpus.counts() == {"PostgreSQL": 0, "Redis": 0, "Stripe": 0}


@pytest.mark.promise("entities.mentions")
async def test_an_answer_names_where_an_entity_is_mentioned_and_metadata_less(corpus: Corpus) -> None:
    await corpus.put(PAYING, STORING)
    await corpus.define(STRIPE, REDIS, POSTGRES)
    found = await corpus.find("strpe")
    [stripe] = found.entities
    assert (stripe.name, stripe.entity_type, stripe.description) == ("Stripe", "vendor", "Takes payments.")
    assert isinstance(stripe.source_chunks, list)
    content = await corpus.agent.ask(GetFullContent(chunk_ids=stripe.source_chunks, corpus="docs"))
    assert [each.citation for each in content.chunks] == ["docs/paying.md:1"]
    assert found.total_entities == 1
    assert found.freshness.indexed_at is not None
    short = await corpus.find("strpe", detail_level="metadata", include_relationships=False)
    assert short.relationships == []
    assert short.entities[0].mention_count == 2
    assert b"description" not in msgspec.json.encode(short)
    assert [each.name for each in (await corpus.find("*", entity_type="service")).entities] == [
        "Redis",
        "PostgreSQL",
    ]
    assert (await corpus.find("*", limit=1)).total_entities == 3


@pytest.mark.promise("entities.relations")
async def test_relations_are_answered_in_both_directions_and_those_seen_apart(corpus: Corpus) -> None:
    await corpus.put(PAYING, STORING)
    await corpus.define(STRIPE, REDIS, POSTGRES)
    found = await corpus.find("postgres")
    assert declared(found) == [
        ("Stripe", "stores_in", "PostgreSQL"),
        ("PostgreSQL", "is_beside", "Redis"),
    ]
    assert seen(found) == [("PostgreSQL", "Redis", 2)]
    assert found.total_relationships == 3
    [together] = [each for each in found.relationships if not each.declared]
    assert together.relationship_type == "mentioned_with"
    content = await corpus.agent.ask(GetFullContent(chunk_ids=together.example_chunks, corpus="docs"))  # type: ignore[arg-type]
    assert [each.source_file for each in content.chunks] == ["docs/paying.md", "docs/storing.md"]


@pytest.mark.promise("entities.results")
async def test_results_of_searches_name_the_entities_that_they_mention(corpus: Corpus) -> None:
    await corpus.put(PAYING)
    before = await corpus.agent.ask(SemanticSearch(query="webhooks", corpus="docs"))
    assert (before.results[0].entity_id, before.results[0].vendor_names) == (None, [])
    await corpus.define(STRIPE, REDIS)
    [stripe] = (await corpus.find("stripe")).entities
    for level in ("metadata", "full"):
        found = await corpus.agent.ask(SemanticSearch(query="webhooks", corpus="docs", detail_level=level))
        best = found.results[0]
        assert (best.entity_id, best.entity_type) == (stripe.entity_id, "vendor")
    assert best.vendor_names == ["Stripe", "Redis"]
    read = await corpus.agent.ask(GetFullContent(chunk_ids=[best.chunk_id], corpus="docs"))
    assert read.chunks[0].vendor_names == ["Stripe", "Redis"]
    assert read.chunks[0].entity_id == stripe.entity_id
    nothing = await corpus.agent.ask(SemanticSearch(query="nothing of that kind", corpus="docs"))
    assert nothing.results[0].entity_id is None


async def traces(corpus: Corpus, name: str, wanted: Sequence[str]) -> list[str]:
    """Return the answers that still name something."""
    answers = [repr(await corpus.find(each)) for each in ("*", *wanted)]
    answers += [
        repr(await corpus.agent.ask(SemanticSearch(query=query, corpus="docs")))
        for query in ("webhooks", "jobs", "cache")
    ]
    return [answer for answer in answers if f"{name!r}" in answer]


@pytest.mark.promise("entities.no-trace")
async def test_of_an_entity_that_was_removed_nothing_is_answered(corpus: Corpus) -> None:
    await corpus.put(PAYING, STORING)
    await corpus.define(STRIPE, REDIS, POSTGRES)
    assert await traces(corpus, "Redis", ["Stripe"])
    done = await corpus.agent.ask(DefineEntities(corpus="docs", remove=["redis", "unknown"]))
    assert done.removed == ["Redis"]
    assert await traces(corpus, "Redis", ["Stripe", "PostgreSQL", "redis"]) == []
    await corpus.define()
    assert await traces(corpus, "Redis", ["Stripe", "PostgreSQL", "redis"]) == []
    assert await corpus.counts() == {"PostgreSQL": 2, "Stripe": 2}
    await corpus.define(REDIS)
    assert declared(await corpus.find("redis")) == []


@pytest.mark.promise("entities.no-trace")
async def test_an_entity_that_gets_another_name_is_found_by_that_alone(corpus: Corpus) -> None:
    await corpus.put(PAYING, STORING)
    await corpus.define(STRIPE, REDIS, POSTGRES)
    [old] = (await corpus.find("redis")).entities
    await corpus.agent.ask(
        DefineEntities(
            corpus="docs",
            entities=[EntityDeclaration(name="Valkey", type="service", entity_id=old.entity_id)],
        )
    )
    assert await traces(corpus, "Redis", ["Stripe", "PostgreSQL"]) == []
    await corpus.define()
    [new] = (await corpus.find("valkey")).entities
    assert (new.entity_id, new.mention_count, new.created_at) == (old.entity_id, 0, old.created_at)
    assert declared(await corpus.find("valkey")) == [("PostgreSQL", "is_beside", "Valkey")]


async def test_what_is_declared_again_is_replaced_and_the_same_is_no_change(corpus: Corpus) -> None:
    await corpus.define(STRIPE, REDIS)
    done = await corpus.define(STRIPE, EntityDeclaration(name="REDIS", type="library"))
    assert (done.added, done.changed, done.unchanged) == ([], ["REDIS"], 1)
    assert (await corpus.find("redis")).entities[0].entity_type == "library"


@pytest.mark.promise("entities.mentions")
async def test_without_what_finds_names_nothing_is_declared_and_documents_wait_for_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await corpus.put(PAYING)
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "ahocorasick_rs", None)
        with pytest.raises(Refusal, match="pip install ahocorasick-rs"):
            await corpus.agent.ask(DefineEntities(corpus="docs", entities=[REDIS]))
    await corpus.define(REDIS)
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "ahocorasick_rs", None)
        await corpus.put(STORING)
        found = await corpus.find("redis")
        assert (found.entities[0].mention_count, found.waiting_for_matching) == (2, 1)
    await corpus.define()
    assert await corpus.counts() == {"Redis": 3}


@pytest.mark.parametrize(
    ("entity", "field"),
    [
        (EntityDeclaration(name=" \t_ ", type="vendor"), "name"),
        (EntityDeclaration(name="New", type="vendor", entity_id="e99"), "entity_id"),
        (EntityDeclaration(name="Stripe", type="vendor", entity_id="e2"), "name"),
    ],
)
async def test_a_declaration_that_cannot_be_is_refused_and_nothing_of_the_call_is_done(
    corpus: Corpus, entity: EntityDeclaration, field: str
) -> None:
    await corpus.define(STRIPE, REDIS)
    with pytest.raises(Refusal) as refused:
        await corpus.define(POSTGRES, entity)
    assert (refused.value.code, refused.value.details["field"]) == ("VALIDATION_ERROR", field)
    assert await corpus.counts() == {"Redis": 0, "Stripe": 0}


HOSTILE = ("(a+)+$", ".*", "'; DROP TABLE entities; --", "{{7*7}}", "\\", "[", "\u202egnp.exe", "%s%n", "*?*")


@pytest.mark.promise("entities.words")
async def test_names_that_look_like_patterns_or_code_are_text(corpus: Corpus) -> None:
    await corpus.put(document_of("a.md", [(["A"], f"Here is {name} once.") for name in HOSTILE]))
    await corpus.define(*(EntityDeclaration(name=name, type="library") for name in HOSTILE))
    assert await corpus.counts() == dict.fromkeys(HOSTILE, 1)
    for name in HOSTILE:
        assert name in await corpus.counts(name)


async def test_a_file_that_says_no_unicode_is_refused(corpus: Corpus) -> None:
    with pytest.raises(Refusal, match="lone surrogates"):
        await corpus.define(files=[DeclarationFile("package.json", r'{"dependencies": {"a\ud800": "1"}}')])


@pytest.mark.promise("entities.files")
async def test_files_in_the_call_and_manifests_in_the_corpus_declare_entities(corpus: Corpus) -> None:
    toml: list[tuple[list[str], str]] = [
        ([], '[project]\ndependencies = [\n  "httpx>=0.27",'),
        ([], '  "attrs-x",\n]'),
    ]
    await corpus.put(
        document_of("x/pyproject.toml", toml), document_of("b.md", [(["B"], "Use httpx, not Redis.")])
    )
    done = await corpus.define(
        files=[
            DeclarationFile("e.yaml", "- {name: Redis, type: service}"),
            DeclarationFile("package.json", '{"dependencies": {"react-dom": "^19"}}'),
            DeclarationFile("broken.yaml", "- {"),
        ],
        manifests=True,
    )
    assert done.added == ["Redis", "react-dom", "httpx", "attrs-x"]
    [unreadable] = done.unreadable
    assert unreadable.startswith("broken.yaml: ")
    [httpx] = (await corpus.find("httpx")).entities
    assert (httpx.entity_type, httpx.version, httpx.mention_count) == ("library", ">=0.27", 2)


async def test_a_manifest_changes_the_version_alone_of_what_is_declared(corpus: Corpus) -> None:
    await corpus.define(
        EntityDeclaration(name="React", type="framework", description="Renders.", version="18")
    )
    await corpus.define(files=[DeclarationFile("package.json", '{"dependencies": {"react": "^19"}}')])
    [react] = (await corpus.find("react")).entities
    assert (react.entity_type, react.description, react.version) == ("framework", "Renders.", "^19")


@pytest.mark.promise("entities.suggestions")
async def test_suggestions_are_what_documents_repeat_until_it_is_declared(corpus: Corpus) -> None:
    await corpus.put(PAYING, STORING)
    await corpus.put(document_of("c.md", [(["C"], "We ask Redis, then we ask PostgreSQL and Redis.")]))

    async def suggested() -> dict[str, int]:
        found = await corpus.agent.ask(SuggestEntities(corpus="docs", min_count=2))
        assert found.documents == 3
        return {each.name: each.count for each in found.suggestions}

    assert await suggested() == {"Redis": 3, "PostgreSQL": 2}
    await corpus.define(REDIS)
    assert await suggested() == {"PostgreSQL": 2}


@pytest.mark.promise("entities.elsewhere")
@pytest.mark.promise("entities.undeclared")
async def test_names_that_nobody_declared_are_found_behind_those_that_somebody_did(corpus: Corpus) -> None:
    said = "We ask Grafana first, then Grafana Loki, for Grafana has all."
    await corpus.put(
        document_of("a.md", [(["A"], said), (["A", "B"], "When Grafana is down, Grafana Loki is, too.")]),
        document_of("b.md", [(["C"], "It needs Grafana, and Grafana Loki after that; Terraform once.")]),
    )
    (grafana, loki) = (await corpus.find("grafana")).entities
    assert (grafana.name, grafana.mention_count, grafana.declared) == ("Grafana", 4, False)
    assert (grafana.entity_id, grafana.entity_type) == (None, None)
    chunks = await ids_in(corpus.runtime, "docs", 1, 2, 3)
    assert (grafana.source_chunks, grafana.source_files) == (chunks, ["a.md", "b.md"])
    assert (loki.name, loki.mention_count) == ("Grafana Loki", 3)
    suggested = (await corpus.agent.ask(SuggestEntities(corpus="docs"))).suggestions
    assert (
        {each.name: each.count for each in suggested}
        == await corpus.counts("gra*")
        == {
            "Grafana": 4,
            "Grafana Loki": 3,
        }
    )
    for wanted in ("Grafna", "GRAFANA", "rafan", "*loki", "grafana-loki"):
        assert (await corpus.find(wanted)).entities, wanted
    for wanted in ("Terraform", "needs", "the", "zebra", "*", "Loki Grafana"):  # once; no name; not there
        found = await corpus.find(wanted)
        assert (found.entities, found.total_entities) == ([], 0), wanted
    assert (await corpus.find("grafana", entity_type="vendor")).entities == []
    metadata = (await corpus.find("grafana", detail_level="metadata", limit=1)).entities
    assert msgspec.to_builtins(metadata) == [
        {"entity_id": None, "name": "Grafana", "entity_type": None, "mention_count": 4, "declared": False}
    ]

    await corpus.define(EntityDeclaration(name="Grafana Labs", type="vendor"))
    found = await corpus.find("grafana")
    assert [(each.name, each.declared) for each in found.entities] == [
        ("Grafana Labs", msgspec.UNSET),
        ("Grafana", False),
        ("Grafana Loki", False),
    ]
    assert found.total_entities == 3
    await corpus.define(EntityDeclaration(name="Grafana", type="service"))
    assert [each.name for each in (await corpus.find("grafana")).entities] == ["Grafana", "Grafana Labs"]


async def test_a_name_that_nobody_declared_is_found_in_memories_and_sessions(corpus: Corpus) -> None:
    await corpus.put(document_of("a.md", [(["A"], "We ask Grafana. Then Grafana asks. Only Grafana knows.")]))
    await corpus.agent.ask(StoreMemory(content="Grafana is slow on Mondays.", key="slow"))
    await corpus.agent.ask(CreateSession(purpose="plan", session_id="s"))
    await corpus.agent.ask(AddMessage(session_id="s", content="who knows grafana?"))
    found = await corpus.agent.ask(FindEntity(vendor_filter="grafana", corpus="docs"))
    assert [each.key for each in found.memories] == ["slow"]
    assert [each.session_id for each in found.sessions] == ["s"]


async def test_memories_and_sessions_that_mention_an_entity_are_found_by_who_may_see_them(
    corpus: Corpus,
) -> None:
    await corpus.put(PAYING)
    await corpus.define(STRIPE, POSTGRES)
    for content in ("We left Stripe.", "A stripling fell.", "postgres it is", "Striped."):
        await corpus.agent.ask(StoreMemory(content=content, key=content, namespace="user:ann"))
    await Agent(corpus.runtime, BEN).ask(StoreMemory(content="Stripe is mine", namespace="user:ben"))
    for session, content in (("one", "Does Stripe answer?"), ("two", "no stripling"), ("three", "Postgres")):
        await corpus.agent.ask(CreateSession(session_id=session, purpose=f"About {session}"))
        await corpus.agent.ask(AddMessage(session_id=session, content="hello"))
        await corpus.agent.ask(AddMessage(session_id=session, content=content))
    found = await corpus.agent.ask(FindEntity(vendor_filter="strpe", corpus="docs"))
    assert [each.name for each in found.entities] == ["Stripe"]
    assert [each.key for each in found.memories] == ["We left Stripe."]
    assert [(each.session_id, each.purpose) for each in found.sessions] == [("one", "About one")]
    assert len(found.sessions[0].message_ids) == 1
    postgres = await corpus.agent.ask(FindEntity(vendor_filter="postgresql", corpus="docs"))
    assert [each.key for each in postgres.memories] == ["postgres it is"]
    assert [each.session_id for each in postgres.sessions] == ["three"]
    reader = msgspec.structs.replace(ANN, scopes=frozenset({"knowledge:read"}))
    narrow = await Agent(corpus.runtime, reader).ask(FindEntity(vendor_filter="stripe", corpus="docs"))
    assert (len(narrow.entities), narrow.memories, narrow.sessions) == (1, [], [])


@pytest.mark.promise("knowledge.policy")
async def test_another_user_neither_sees_nor_declares(corpus: Corpus) -> None:
    await corpus.put(PAYING)
    await corpus.define(STRIPE)
    ben = Agent(corpus.runtime, BEN)
    name = "user:ann:docs"
    for request in (
        FindVendorInfo(vendor_filter="*", corpus=name),
        SuggestEntities(corpus=name),
        DefineEntities(entities=[REDIS], corpus=name),
    ):
        with pytest.raises(Refusal) as refused:
            await ben.ask(request)
        assert refused.value.code == "CORPUS_NOT_FOUND"
    assert await corpus.counts() == {"Stripe": 2}


@pytest.mark.promise("entities.mentions")
async def test_entities_and_mentions_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        first = Corpus(runtime)
        await first.put(PAYING, STORING)
        await first.define(STRIPE, REDIS, POSTGRES)
        before = await first.find("*")
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        after = await Corpus(runtime).find("*")
    assert (after.entities, after.relationships) == (before.entities, before.relationships)


@pytest.mark.slow
@pytest.mark.promise("entities.mentions")
async def test_looking_for_names_in_many_documents_goes_on_after_a_restart(tmp_path: Path) -> None:
    text = "Redis is here. " + "word " * 20_000
    many = [document_of(f"{number}.md", [(["A"], text)]) for number in range(40)]
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        corpus = Corpus(runtime)
        await corpus.put(*many)
        done = await corpus.agent.ask(DefineEntities(corpus="docs", entities=[REDIS]))
        assert done.waiting_for_matching == 40
    async with open_greenroom(tmp_path, **QUIET) as runtime:
        corpus = Corpus(runtime)
        await corpus.define()
        assert await corpus.counts() == {"Redis": 40}


@pytest.mark.promise("entities.mentions", "entities.no-trace")
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_comes_and_goes_counts_are_those_of_what_is_there(corpus: Corpus, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - the same changes each time
    names = ["Redis", "Stripe", "React", "React Native", "Go"]
    texts: dict[str, str] = {}
    known: dict[str, EntityDeclaration] = {}
    await corpus.put(document_of("first.md", [(["A"], "Nothing.")]))
    for _ in range(25):
        path, name = f"{chance.randrange(4)}.md", chance.choice(names)
        match chance.randrange(5):
            case 0 | 1:
                texts[path] = " and ".join(chance.choices(names, k=6))
                await corpus.put(document_of(path, [(["A"], texts[path])]))
            case 2:
                texts.pop(path, None)
                await ask_corpus(corpus.runtime, ANN, RemoveDocuments(corpus="docs", paths=[path]))
            case 3:
                known[name] = EntityDeclaration(name=name, type="library")
                await corpus.agent.ask(DefineEntities(corpus="docs", entities=[known[name]]))
            case _:
                known.pop(name, None)
                await corpus.agent.ask(DefineEntities(corpus="docs", remove=[name]))
        assert set(await corpus.counts()) == set(known)
    await corpus.define()
    words = [word for text in texts.values() for word in text.split(" and ")]
    if "React Native" not in known:
        words = ["React" if word == "React Native" else word for word in words]
    assert await corpus.counts() == {name: words.count(name) for name in known}


@pytest.mark.promise("entities.no-trace")
async def test_a_corpus_that_is_dropped_takes_its_entities_along(corpus: Corpus) -> None:
    await corpus.put(PAYING)
    await corpus.define(STRIPE)
    await DropCorpus(corpus="docs").run(ClientContext(corpus.runtime, ANN))
    await corpus.put(PAYING)
    assert await corpus.counts() == {}
    await corpus.define(REDIS)
    assert await traces(corpus, "Stripe", []) == []


def contents(folder: Path) -> list[bytes]:
    return [each.read_bytes() for each in folder.rglob("*") if each.is_file()]


@pytest.mark.promise("entities.mentions")
async def test_in_an_encrypted_store_entities_are_found_and_their_names_are_not_readable(
    tmp_path: Path,
) -> None:
    key = Encryption(lambda: b"\x07" * 32, required=True)
    async with open_greenroom(tmp_path, encryption=key, **QUIET) as runtime:
        corpus = Corpus(runtime)
        await corpus.put(PAYING)
        await corpus.define(STRIPE)
        assert await corpus.counts() == {"Stripe": 2}
    assert not any(b"Stripe" in each for each in contents(tmp_path))
