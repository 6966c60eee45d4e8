"""Ids of chunks: each means one chunk in the whole store, and says nothing of those that are hidden."""

from __future__ import annotations

import tarfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from data.make_corpora import ANN, BEN, CORPORA, SEVERAL
from support.agents import FAST, wire
from support.archives import unpack
from support.corpora import document_of, ids_in

from greenroom.actors import (
    Agent,
    ClientContext,
    DefineEntities,
    DropCorpus,
    EntityDeclaration,
    FindVendorInfo,
    FullContent,
    GetAuditLog,
    GetFullContent,
    Principal,
    PutDocument,
    RemoveDocuments,
    SemanticSearch,
    VerifyMemories,
    ask_corpus,
    encrypt_greenroom,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.runtime import Encryption, Refusal, Store, StoreTooNewError, WriteBatch, restore
from greenroom.runtime.lmdb import environment
from greenroom.runtime.lmdb.environment import ACTORS
from greenroom.runtime.lmdb.keys import prefix_of

if TYPE_CHECKING:
    from greenroom.runtime import RuntimeClient

pytestmark = pytest.mark.promise("knowledge.ids")

ONE = Path(__file__).parent.parent / "data" / "corpus-zlib.tar.xz"
SEALED = Encryption(lambda: b"\x07" * 32, required=True)


def opened(home: Path, **options: Any) -> Any:
    own: dict[str, Any] = {"secrets": home / "secrets", "embedder": "none", "options": FAST}
    return open_greenroom(home / "store", **own | options)


async def put(runtime: RuntimeClient, corpus: str, *texts: str, who: Principal = ANN) -> None:
    document = document_of("birds.md", [([], text) for text in texts])
    await ask_corpus(runtime, who, PutDocument(corpus=corpus, document=document), make=True)


async def read(runtime: RuntimeClient, *ids: int, who: Principal = ANN, **more: Any) -> FullContent:
    return await Agent(runtime, who).ask(GetFullContent(chunk_ids=list(ids), **more))


def said(found: FullContent) -> list[tuple[str, Any]]:
    return [(each.chunk_text, each.corpus or None) for each in found.chunks]


# -- an id is enough -------------------------------------------------------------------------------


async def test_an_id_opens_its_chunk_whatever_other_corpora_there_are(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        await put(runtime, "docs", "heron one", "heron two")
        await put(runtime, "contracts", "heron three", "heron four")
        found = (await Agent(runtime, ANN).ask(SemanticSearch(query="heron", corpus="*"))).results
        assert len({each.chunk_id for each in found}) == 4
        for each in found:
            assert 1 << schemas.NUMBER_BITS <= each.chunk_id < 1 << 53
            alone = await read(runtime, each.chunk_id)
            assert said(alone) == [(each.chunk_text, None)]
            assert (alone.corpus, alone.unknown_ids) == (each.corpus, [])
        some = [each.chunk_id for each in found]
        together = await read(runtime, *some, some[0] + 99)
        assert said(together) == [(each.chunk_text, each.corpus) for each in found]
        assert (together.corpus or None, together.unknown_ids) == (None, [some[0] + 99])


async def test_a_corpus_that_is_named_is_the_only_one_that_is_looked_in(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        await put(runtime, "docs", "heron one")
        await put(runtime, "contracts", "heron two")
        ids = [*await ids_in(runtime, "docs", 1), *await ids_in(runtime, "contracts", 1)]
        found = await read(runtime, *ids, corpus="contracts")
        assert (said(found), found.unknown_ids) == ([("heron two", None)], ids[:1])


async def test_entities_name_chunks_by_ids_that_open_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        for corpus in ("docs", "contracts"):
            await put(runtime, corpus, f"Acme of {corpus} and Bolt", "nothing")
            named = [EntityDeclaration(name=name, type="vendor") for name in ("Acme", "Bolt")]
            await Agent(runtime, ANN).ask(DefineEntities(corpus=corpus, entities=named))
        for corpus in ("docs", "contracts"):
            asked = FindVendorInfo(vendor_filter="Acme", corpus=corpus)
            while (found := await Agent(runtime, ANN).ask(asked)).waiting_for_matching:
                pass
            [together] = found.relationships
            for ids in (found.entities[0].source_chunks, together.example_chunks):
                assert isinstance(ids, list)
                assert said(await read(runtime, *ids)) == [(f"Acme of {corpus} and Bolt", None)]


# -- an id that is over opens nothing --------------------------------------------------------------


async def test_the_id_of_a_chunk_that_was_replaced_is_unknown_for_ever(tmp_path: Path) -> None:
    seen: dict[int, str] = {}
    async with opened(tmp_path) as runtime:
        for number in range(6):
            await put(runtime, "docs", f"heron {number}", "reeds")
            if number == 3:
                await ask_corpus(runtime, ANN, RemoveDocuments(corpus="docs", paths=["birds.md"]))
                continue
            if number == 4:
                await DropCorpus(corpus="docs").run(ClientContext(runtime, ANN))
                await put(runtime, "docs", f"heron {number}", "reeds")
            found = (
                await Agent(runtime, ANN).ask(SemanticSearch(query="heron reeds", corpus="docs"))
            ).results
            now = {each.chunk_id: str(each.chunk_text) for each in found}
            assert all(seen.get(each, text) == text for each, text in now.items()), "it means another text"
            gone = [each for each in seen if each not in now]
            seen |= now
            if gone:
                assert (await read(runtime, *gone)).unknown_ids == gone


@pytest.mark.slow
async def test_ids_that_a_restored_backup_does_not_know_never_open_what_came_later(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        await put(runtime, "docs", "heron one")
        await runtime.backup(tmp_path / "backup")
        await put(runtime, "docs", "heron two")
        lost = await ids_in(runtime, "docs", 2)
    restore(tmp_path / "backup", tmp_path / "store", secrets=tmp_path / "secrets")
    for _ in range(2):
        async with opened(tmp_path) as runtime:
            await put(runtime, "docs", "heron three")
            assert (await read(runtime, *lost)).unknown_ids == lost
            assert said(await read(runtime, *await ids_in(runtime, "docs", 2))) == [("heron three", None)]


# -- an id tells nothing ---------------------------------------------------------------------------


async def test_an_id_of_a_hidden_corpus_is_answered_as_one_that_was_never_given(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        await put(runtime, "user:ann:docs", "heron one")
        await put(runtime, "user:ben:docs", "heron two", who=BEN)
        [hidden] = await ids_in(runtime, "user:ann:docs", 1)
        [own] = await ids_in(runtime, "user:ben:docs", 1)
        never = hidden ^ own ^ 1  # of a prefix that no corpus has
        for more in ([], [own]):
            answers = []
            for asked in (hidden, never):
                found = wire(await read(runtime, asked, *more, who=BEN))
                found.pop("execution_time_ms")
                answers.append((found.pop("unknown_ids"), found))
            assert answers[0] == ([hidden], answers[1][1])
            assert answers[1][0] == [never]
        boss = Agent(runtime, Principal(agent_id="boss", scopes=frozenset({"audit:read"})))
        log = (await boss.ask(GetAuditLog(action="get_full_content"))).records
        found = {(each.details.get("corpus"), each.details["found"]) for each in log}
        assert found == {("user:ben:docs", 1), (None, 0)}


async def test_prefixes_are_different_also_from_those_of_dropped_corpora(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "PREFIX_BITS", 3)
    seen: list[int] = []
    async with opened(tmp_path) as runtime:
        for number in range(7):
            await put(runtime, f"docs-{number}", "heron")
            seen += await ids_in(runtime, f"docs-{number}", 0)
            if number % 2:
                await DropCorpus(corpus=f"docs-{number}").run(ClientContext(runtime, ANN))
        with pytest.raises(Refusal, match="no ids are left"):
            await put(runtime, "docs-7", "heron")
    assert sorted(seen) == [prefix << schemas.NUMBER_BITS for prefix in range(1, 8)]


async def test_prefixes_whose_record_was_lost_are_known_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "PREFIX_BITS", 1)
    async with opened(tmp_path) as runtime:
        await put(runtime, "docs", "heron")
    with closing(Store(tmp_path / "store")) as store:
        lost = list(store.keys(ACTORS, prefix_of(schemas.ID_PREFIXES, None)))
        assert lost
        store.commit([WriteBatch(None, [(ACTORS, key, None) for key in lost])])
    async with opened(tmp_path) as runtime:
        with pytest.raises(Refusal, match="no ids are left"):
            await put(runtime, "contracts", "heron")


async def test_a_corpus_that_has_used_its_numbers_up_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "MAX_NUMBER", 3)
    async with opened(tmp_path) as runtime:
        await put(runtime, "docs", "heron one", "heron two")
        with pytest.raises(Refusal, match="has used all 3 ids"):
            await put(runtime, "docs", "heron three", "heron four")
        assert said(await read(runtime, *await ids_in(runtime, "docs", 1))) == [("heron one", None)]


# -- small numbers, of before ----------------------------------------------------------------------


async def test_a_number_alone_is_refused_with_the_corpora_that_one_may_see(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        with pytest.raises(Refusal, match=r"no corpus$"):
            await read(runtime, 1)
        await put(runtime, "user:ann:docs", "heron one")
        await put(runtime, "user:ben:docs", "heron two", who=BEN)
        with pytest.raises(Refusal) as refused:
            await read(runtime, 1)
        assert refused.value.code == "VALIDATION_ERROR"
        assert refused.value.details["corpora"] == ["user:ann:docs"]
        assert "ben" not in str(refused.value)
        (known,) = await ids_in(runtime, "user:ann:docs", 1)
        both = await read(runtime, 1, known)
        assert ([each.chunk_id for each in both.chunks], both.unknown_ids) == ([known], [1])


@pytest.mark.promise("store.versions")
@pytest.mark.parametrize("encryption", [None, SEALED], ids=["plain", "encrypted"])
async def test_in_an_older_store_of_several_corpora_new_ids_alone_open_chunks(
    tmp_path: Path, encryption: Encryption | None
) -> None:
    unpacked(SEVERAL, tmp_path)
    if encryption is not None:
        encrypt_greenroom(tmp_path / "store", encryption)
    before: dict[str, list[int]] = {}
    for _ in range(2):
        async with opened(tmp_path, encryption=encryption) as runtime:
            for corpus, owner in CORPORA.items():
                ids = await ids_in(runtime, corpus, 1, 2, 3)
                assert before.setdefault(corpus, ids) == ids
                found = await read(runtime, *ids, who=owner)
                assert said(found) == [(f"heron of {corpus}", None), (f"bittern of {corpus}", None)]
                assert found.unknown_ids == ids[1:2], "the avocet was replaced"
                with pytest.raises(Refusal) as refused:
                    await read(runtime, 1, who=owner)
                seen = {name for name in CORPORA if name.startswith(("all:", f"user:{owner.user}:"))}
                assert set(refused.value.details["corpora"]) == seen
    assert len({ids[0] for ids in before.values()}) == len(CORPORA)


@pytest.mark.promise("store.versions")
async def test_new_ids_are_given_without_a_change_of_what_corpora_have(tmp_path: Path) -> None:
    unpacked(SEVERAL, tmp_path)
    before = rows_of(tmp_path)
    async with opened(tmp_path):
        pass
    after = rows_of(tmp_path)
    changed = [key for key, row in before.items() if after.get(key) != row]
    assert len(changed) == len(CORPORA), "the row of each corpus in its owner's catalogue"


@pytest.mark.promise("store.versions")
async def test_in_an_older_store_of_one_corpus_its_numbers_open_what_they_opened(tmp_path: Path) -> None:
    unpacked(ONE, tmp_path)
    async with opened(tmp_path) as runtime:
        ids = await ids_in(runtime, "docs", 7, 400, 401)
        new = await read(runtime, *ids)
        assert [each.chunk_id for each in new.chunks] == ids[:2]
        assert (await read(runtime, 7, 400)).chunks == new.chunks
        with pytest.raises(Refusal, match="401 names no corpus"):
            await read(runtime, 401)
        await put(runtime, "contracts", "heron")
        document = document_of("more.md", [([], "heron of later")])
        await ask_corpus(runtime, ANN, PutDocument(corpus="docs", document=document))
        assert said(await read(runtime, ids[2])) == [("heron of later", None)]
        with pytest.raises(Refusal, match="401 names no corpus"):
            await read(runtime, 401)
        with pytest.raises(Refusal, match="7 names no corpus"):
            await read(runtime, 7, who=BEN)
        assert (await read(runtime, 7)).chunks == new.chunks[:1]
        assert (await runtime.query(VerifyMemories())).problems == []


@pytest.mark.promise("store.versions")
async def test_a_store_whose_ids_name_corpora_is_refused_by_an_older_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(SEVERAL, tmp_path)
    async with opened(tmp_path):
        pass
    monkeypatch.setattr(environment, "FORMAT_VERSION", 2)
    with pytest.raises(StoreTooNewError, match="store format 4"):
        async with opened(tmp_path):
            pass


def unpacked(store: Path, home: Path) -> None:
    with tarfile.open(store) as archive:
        unpack(archive, home)


def rows_of(home: Path) -> dict[bytes, bytes]:
    with closing(Store(home / "store")) as store:
        return dict(store.scan(ACTORS, b""))
