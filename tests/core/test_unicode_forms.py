"""Composed and decomposed Unicode are the same in keys, tags and exact searches, and stored as given."""

from __future__ import annotations

import json
import unicodedata
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as some
from support.agents import FAST, keep, keys, value_of, wire
from support.code_agents import agent_in, read, search, settled
from support.corpora import document_of
from support.exchanges import export

from greenroom.actors import (
    AddMessage,
    CreateSession,
    DeleteMemory,
    ExportMemories,
    GetMemory,
    ImportMemories,
    ListDocuments,
    MemoryFilters,
    MemorySearch,
    PutDocument,
    RemoveDocuments,
    SearchContext,
    SetMemory,
    ask_corpus,
)
from greenroom.actors.content.syntax import parse_pattern, search_bytes
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.base import unicode_forms
from greenroom.actors.memories.requests import requests, review
from greenroom.actors.memories.requests.transfer import OnConflict
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.runtime import Actor, Context, InlineCommitter, Message, Refusal, handles, open_runtime

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

    from greenroom.actors import Agent

pytestmark = pytest.mark.promise("memory.unicode")

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
PAIRS = [
    (COMPOSED, DECOMPOSED),
    ("\uac00\ub098", unicodedata.normalize("NFD", "\uac00\ub098")),
    ("\u304c\u304d", "\u304b\u3099\u304d"),
    ("\u00c5ngstr\u00f6m", "\u212bngstro\u0308m"),
    ("q\u0323\u0307", "q\u0307\u0323"),
]
BOTH_WAYS = [*PAIRS, *((other, one) for one, other in PAIRS)]
NAMESPACES = [None, "user:ann:notes", "project:atlas"]


class Respell(Message[None], frozen=True, kw_only=True):
    """Give a memory another key, where an older program would have put it."""

    old: str
    new: str


class OldMemory(Actor):
    """Writes keys as older programs did, which told their forms apart."""

    kind = "memory"

    @handles(Respell)
    def respell(self, request: Respell, context: Context) -> None:
        old, new = (blake2b(key.encode(), digest_size=32).digest() for key in (request.old, request.new))
        for where, entry in list(context.scan(Entry, prefix=b"e")):
            if entry.key == request.old:
                place = where.replace(old, new)
                context.delete(where)
                context.put(place, msgspec.structs.replace(entry, key=request.new))
                for prefix in (b"o", b"a", b"u", b"x"):
                    for key, held in list(context.scan(bytes, prefix=prefix)):
                        if held == where:
                            context.put(key, place)


async def respell(folder: Path, clock: Any, namespace: str, old: str, new: str) -> None:
    async with open_runtime(
        folder, actors=[OldMemory], clock=clock, committer=InlineCommitter(), options=FAST
    ) as runtime:
        await runtime.ask(memory_address(namespace), Respell(old=old, new=new))


async def store(agent: Agent, content: str, **more: Any) -> Any:
    return await agent.ask(requests.StoreMemory(content=content, **more))


async def exact(agent: Agent, text: str) -> set[str]:
    found = await agent.ask(MemorySearch(query=text, mode="exact", limit=100))
    return {memory.key for memory in found.memories}


# -- keys ------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
async def test_an_agents_key_is_one_in_all_its_forms(enter: Enter, first: str, second: str) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann")
        assert await keep(ann, first, "1") == 1
        stored = await ann.ask(SetMemory(key=second, value=msgspec.Raw(b"2")))
        assert (stored.key, stored.version) == (first, 2)
        assert await keys(ann) == [first]
        assert await keys(ann, prefix=second[:-1] if second[-1].isascii() else second) == [first]
        assert await value_of(ann, second) == "2"
        read = await ann.ask(GetMemory(key=second, version=1))
        assert (read.key, "other_forms" in wire(read)) == (first, False)
        with pytest.raises(Refusal, match="already have"):
            await keep(ann, second, "3", overwrite=False)
        deleted = await ann.ask(DeleteMemory(key=second))
        assert (deleted.key, deleted.existed) == (first, True)
        assert await keys(ann) == []
        assert await keep(ann, second) == 3, "no number comes twice"


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize(("first", "second"), BOTH_WAYS[:4])
async def test_a_memorys_key_is_one_in_all_its_forms(
    enter: Enter, namespace: str | None, first: str, second: str
) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        where: dict[str, Any] = {"namespace": namespace}
        stored = await store(ann, "one", key=first, **where)
        again = await store(ann, "two", key=second, **where)
        assert (again.memory_id, again.key, again.version, again.created) == (
            stored.memory_id,
            first,
            2,
            False,
        )
        with pytest.raises(Refusal) as refused:
            await store(ann, "three", key=second, expected_version=0, **where)
        assert refused.value.code == "VERSION_CONFLICT"
        updated = await ann.ask(requests.UpdateMemory(key=second, content="three", **where))
        assert (updated.memory_id, updated.key, updated.version) == (stored.memory_id, first, 3)
        versions = (await ann.ask(requests.ListVersions(key=second, namespace=again.namespace))).versions
        assert [each.version for each in versions] == [1, 2, 3]
        for filters in (MemoryFilters(key=second), MemoryFilters(key_prefix=second)):
            page = await ann.ask(requests.ListMemories(namespace=again.namespace, filters=filters))
            assert [each.key for each in page.memories] == [first]
        gone = await ann.ask(requests.ForgetMemory(key=second, **where))
        assert [each.memory_id for each in gone.memories] == [stored.memory_id]
        anew = await store(ann, "four", key=second, **where)
        assert (anew.key, anew.version > 3) == (second, True)
        with pytest.raises(Refusal, match="another memory"):
            await ann.ask(review.RestoreMemory(memory_id=stored.memory_id))


@pytest.mark.parametrize("namespace", ["agent:ann", *NAMESPACES[1:]])
async def test_a_store_with_both_forms_keeps_both_and_says_so(
    folder: Path, enter: Enter, clock: Any, namespace: str
) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        plain = await store(ann, "composed", key=COMPOSED, namespace=namespace)
        other = await store(ann, "decomposed", key="other", namespace=namespace)
    await respell(folder, clock, namespace, "other", DECOMPOSED)
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        for stored, key, rival in ((plain, COMPOSED, DECOMPOSED), (other, DECOMPOSED, COMPOSED)):
            found = await ann.ask(GetMemory(key=key, namespace=namespace))
            assert (found.key, found.other_forms) == (key, [rival])
            updated = await ann.ask(requests.UpdateMemory(key=key, namespace=namespace, importance=0.9))
            assert (updated.memory_id, updated.key, updated.version) == (stored.memory_id, key, 2)
            again = await store(ann, "again", key=key, namespace=namespace)
            assert (again.memory_id, again.key, again.version) == (stored.memory_id, key, 3)
        gone = await ann.ask(requests.ForgetMemory(key=DECOMPOSED, namespace=namespace))
        assert [each.memory_id for each in gone.memories] == [other.memory_id]
        for key in (COMPOSED, DECOMPOSED):
            found = await ann.ask(GetMemory(key=key, namespace=namespace))
            assert (found.key, "other_forms" in wire(found)) == (COMPOSED, False)
        with pytest.raises(Refusal, match="another memory"):
            await ann.ask(review.RestoreMemory(memory_id=other.memory_id))
        await ann.ask(requests.ForgetMemory(key=DECOMPOSED, namespace=namespace))
        back = await ann.ask(review.RestoreMemory(memory_id=other.memory_id))
        assert (back.key, back.version) == (DECOMPOSED, 4)


@pytest.mark.parametrize("namespace", ["agent:ann", *NAMESPACES[1:]])
async def test_a_third_form_of_a_key_is_refused_where_two_are(
    folder: Path, enter: Enter, clock: Any, namespace: str
) -> None:
    first, second, third = "\u1ed9", "o\u0302\u0323", "\u00f4\u0323"
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        ids = {
            first: (await store(ann, "one", key=first, namespace=namespace)).memory_id,
            "o\u0323\u0302": (await store(ann, "two", key="other", namespace=namespace)).memory_id,
        }
    await respell(folder, clock, namespace, "other", "o\u0323\u0302")
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        for key in (second, third):
            own = [DeleteMemory(key=key), SetMemory(key=key, value=msgspec.Raw(b"1"))]
            for request in (
                *(own if namespace == "agent:ann" else []),
                GetMemory(key=key, namespace=namespace),
                requests.UpdateMemory(key=key, namespace=namespace, content="x"),
                requests.StoreMemory(key=key, namespace=namespace, content="x"),
                requests.ForgetMemory(key=key, namespace=namespace, confirm=True, purge=True),
            ):
                with pytest.raises(Refusal) as refused:
                    await ann.ask(request)
                assert refused.value.code == "VALIDATION_ERROR"
                named = {each["key"]: each["memory_id"] for each in refused.value.details["forms"]}
                assert named == ids
                assert all(ascii(key) in refused.value.sentence for key in ids)
        for key, memory_id in ids.items():
            assert (await ann.ask(GetMemory(memory_id=memory_id))).key == key


MIXED = [
    f"{COMPOSED}-{DECOMPOSED}",
    f"{DECOMPOSED}.gru\u0308n-{COMPOSED}",
    unicodedata.normalize("NFC", "\uac00\ub098\ub2e4\ub77c") + unicodedata.normalize("NFD", "\ub9c8\ubc14"),
]


@pytest.mark.parametrize("namespace", ["agent:ann", *NAMESPACES[1:]])
@pytest.mark.parametrize("mixed", MIXED)
async def test_a_key_that_an_older_program_stored_half_composed_is_found(
    folder: Path, enter: Enter, clock: Any, namespace: str, mixed: str
) -> None:
    async with enter(embedder="none") as at:
        old = await store(at.agent("ann", user="ann"), "old", key="other", namespace=namespace)
    await respell(folder, clock, namespace, "other", mixed)
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        for form in ("NFC", "NFD"):
            key = unicodedata.normalize(form, mixed)
            assert (await ann.ask(GetMemory(key=key, namespace=namespace))).key == mixed
            again = await store(ann, form, key=key, namespace=namespace)
            assert (again.memory_id, again.key, again.created) == (old.memory_id, mixed, False)
        if namespace == "agent:ann":
            assert await keep(ann, unicodedata.normalize("NFC", mixed), "1") == 4
            deleted = await ann.ask(DeleteMemory(key=unicodedata.normalize("NFD", mixed)))
            assert (deleted.key, deleted.existed) == (mixed, True)
        else:
            assert (await ann.ask(GetMemory(key=unicodedata.normalize("NFD", mixed)))).key == mixed


async def test_a_near_key_that_looks_the_same_is_shown_by_its_characters(
    folder: Path, enter: Enter, clock: Any
) -> None:
    mixed = f"{COMPOSED} {DECOMPOSED} " * 5
    async with enter(embedder="none") as at:
        await store(at.agent("ann", user="ann"), "old", key="other", namespace="agent:ann")
    await respell(folder, clock, "agent:ann", "other", mixed)
    async with enter(embedder="none") as at:
        with pytest.raises(Refusal, match="did you mean") as refused:
            await at.agent("ann", user="ann").ask(GetMemory(key=unicodedata.normalize("NFC", mixed)))
        assert ascii(mixed) in refused.value.sentence


async def test_what_somebody_else_has_under_another_form_stays_hidden(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann, bob = at.agent("a", user="ann"), at.agent("b", user="bob")
        mine = await store(ann, "secret", key=COMPOSED, namespace="team:x", scope="private")
        theirs = await store(bob, "open", key=DECOMPOSED, namespace="team:x", scope="shared")
        assert (theirs.memory_id != mine.memory_id, theirs.key, theirs.version) == (True, DECOMPOSED, 1)
        for key in (COMPOSED, DECOMPOSED):
            seen = await bob.ask(GetMemory(key=key, namespace="team:x"))
            assert (seen.key, "other_forms" in wire(seen)) == (DECOMPOSED, False)
            assert (await ann.ask(GetMemory(key=key, namespace="team:x"))).key == COMPOSED
        await bob.ask(requests.ForgetMemory(key=COMPOSED, namespace="team:x"))
        with pytest.raises(Refusal, match="there is no memory"):
            await bob.ask(GetMemory(key=DECOMPOSED, namespace="team:x"))
        assert (await ann.ask(GetMemory(key=DECOMPOSED, namespace="team:x"))).key == COMPOSED


async def test_two_that_write_both_forms_at_once_write_one_memory(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        agents = [at.agent(name, user="ann") for name in ("one", "two")]
        async with trio.open_nursery() as nursery:
            for agent, key in zip(agents * 4, (COMPOSED, DECOMPOSED, DECOMPOSED, COMPOSED) * 2, strict=True):
                nursery.start_soon(partial(store, agent, "x", key=key, namespace="project:atlas"))
        page = await agents[0].ask(requests.ListMemories(namespace="project:atlas"))
        assert [each.version for each in page.memories] == [8]
    async with enter(embedder="none") as at:
        again = await store(at.agent("three", user="ann"), "x", key=DECOMPOSED, namespace="project:atlas")
        assert again.version == 9


async def test_an_idempotency_key_is_one_in_all_its_forms(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        first = await store(ann, "x", idempotency_key=COMPOSED)
        assert await store(ann, "x", idempotency_key=DECOMPOSED) == first


# -- exchange --------------------------------------------------------------------


async def test_an_import_updates_what_has_the_key_and_an_export_has_the_bytes_given(
    enter: Enter,
) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        await store(ann, "one", key=DECOMPOSED, tags=[DECOMPOSED])
        line = {"key": COMPOSED, "content": DECOMPOSED, "tags": [COMPOSED], "namespace": "user:ann"}
        source = msgspec.json.encode(line).decode()
        ways: list[tuple[OnConflict, dict[str, int]]] = [
            ("skip", {"skipped": 1}),
            ("version", {"versioned": 1}),
        ]
        for policy, outcomes in ways:
            tried = await ann.ask(ImportMemories(source=source, on_conflict=policy, dry_run=True))
            done = await ann.ask(ImportMemories(source=source, on_conflict=policy))
            assert wire(tried)["counts"] == wire(done)["counts"] == outcomes
        again = await ann.ask(ImportMemories(source=source, on_conflict="version"))
        assert wire(again)["counts"] == {"unchanged": 1}
        [back] = await export(at.runtime, ann.principal, "user:ann")
        assert (back["key"], back["content"], back["tags"]) == (DECOMPOSED, DECOMPOSED, [COMPOSED])


# -- tags ------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
async def test_a_tag_is_one_in_all_its_forms(enter: Enter, first: str, second: str) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        await store(ann, "one", key="one", tags=[first])
        await store(ann, "two", key="two", tags=[second, "plain"])
        await store(ann, "both", key="both", tags=[first, second])
        await store(ann, "none", key="none", tags=["plain", "\u00e8"])
        tagged = {"one", "two", "both"}
        for tag in (first, second):
            found = await ann.ask(MemorySearch(tags=[tag]))
            assert {each.key for each in found.memories} == tagged
            for tags, those in (([tag, "plain"], {"two"}), ([first, second], tagged)):
                filters = MemoryFilters(tags=tags, tag_match="all")
                page = await ann.ask(requests.ListMemories(namespace="user:ann", filters=filters))
                assert {each.key for each in page.memories} == those
                found = await ann.ask(MemorySearch(tags=tags, tag_match="all"))
                assert {each.key for each in found.memories} == those
            exported = await ann.ask(ExportMemories(filters=MemoryFilters(tags=[tag])))
            assert exported.count == 3
        composed = unicodedata.normalize("NFC", first)
        counted = (await ann.ask(requests.MemoryStats(namespace="user:ann"))).by_tag
        assert counted == {composed: 3, "plain": 2, "\u00e8": 1}
        browsed = await ann.ask(review.BrowseMemories(namespace="user:ann"))
        assert browsed.facets.by_tag == counted
        gone = await ann.ask(requests.ForgetMemory(filters=MemoryFilters(tags=[second]), confirm=True))
        assert {each.key for each in gone.memories} == tagged


# -- exact searches ----------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
async def test_an_exact_search_finds_a_text_in_all_its_forms(enter: Enter, first: str, second: str) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        await store(ann, f"We met at the {first} at noon", key="text")
        await ann.ask(
            requests.StoreMemory(value=msgspec.Raw(msgspec.json.encode({"at": first})), key="value")
        )
        await ann.ask(requests.StoreMemory(value=msgspec.Raw(json.dumps(first).encode()), key="escaped"))
        await store(ann, "nothing of that", key="other")
        for query in (first, second):
            assert await exact(ann, query) == {"text", "value", "escaped"}
        for query in (f"the {first} at", f"the {second} at"):
            assert await exact(ann, query) == {"text"}


async def test_a_letter_is_not_the_same_letter_with_a_mark(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann", user="ann")
        await store(ann, COMPOSED, key="composed")
        await store(ann, DECOMPOSED, key="decomposed")
        assert await exact(ann, "cafe") == set()
        assert await exact(ann, "caf") == {"composed", "decomposed"}


# -- the functions ------------------------------------------------------------------

_LETTERS = some.text("ae \u0301\u0323\u00e9\u1100\u1161\uac00\u304b\u3099\u212b", max_size=40)


@given(_LETTERS)
def test_forms_are_all_of_one_text(text: str) -> None:
    assert unicode_forms.forms(text)[0] == unicodedata.normalize("NFC", text)
    assert text in unicode_forms.forms(text)
    assert len({unicode_forms.compose(each) for each in unicode_forms.forms(text)}) == 1


@given(_LETTERS, some.integers(1, 400))
def test_a_long_text_is_composed_as_a_short_one(text: str, times: int) -> None:
    whole = f"a{text}" * times
    assert unicode_forms.compose(whole) == unicodedata.normalize("NFC", whole)


@given(_LETTERS, some.integers(0, 40), some.integers(1, 60))
def test_a_place_in_a_composed_text_is_one_in_the_text(text: str, at: int, times: int) -> None:
    whole = f"x{text}" * times
    composed = unicode_forms.compose(whole)
    at = min(at * times, len(composed))
    place = unicode_forms.map_offset(whole, at)
    if composed[at : at + 1] == "x":
        assert whole[place] == "x"
        assert unicode_forms.compose(whole[:place]) == composed[:at]


# -- sessions ------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
async def test_a_search_of_a_session_finds_a_text_in_all_its_forms(
    enter: Enter, first: str, second: str
) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("ann")
        await ann.ask(CreateSession(purpose=f"about {first}", session_id="s"))
        said = f"We met at the {first} at noon"
        for content in (said, "nothing of that", f"{'words ' * 100}{said}{' words' * 100}"):
            await ann.ask(AddMessage(session_id="s", content=content))
        scores = []
        for query in (first, second, f"the {first} at", f"the {second} at"):
            found = (await ann.ask(SearchContext(session_id="s", query=query))).results
            assert len(found) >= 2, query
            for each in found[:2]:
                shown = each.match_preview
                assert shown in each.message.content
                assert unicode_forms.same_text(shown[each.match_start : each.match_end], query)
            scores.append([each.score for each in found])
        assert scores[0] == scores[1]
        assert scores[2] == scores[3]
        listed = await at.runtime.query(FindSessions(text=second), principal=ann.principal)
        assert [each.session.session_id for each in listed.sessions] == ["s"]


# -- code and documents -----------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS)
def test_a_pattern_finds_texts_and_lines_of_code_in_all_their_forms(first: str, second: str) -> None:
    line = f'NAME = "{first}"  # {first}'
    code = f"one = 1\n{line}\ntwo = 2\n".encode()
    for spelt in (first, second):
        for pattern in (f"string *{spelt}*", f"string {spelt}", f"regex {spelt}", f"regex = .{spelt}.\\s+#"):
            found = search_bytes(parse_pattern(pattern), "a.py", code)
            assert {(each.line, each.text) for each in found} == {(2, line)}, pattern


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), BOTH_WAYS[:4])
async def test_a_file_is_read_and_left_out_by_its_name_in_all_its_forms(
    tmp_path: Path, first: str, second: str
) -> None:
    root = tmp_path / "project"
    (root / first).mkdir(parents=True)
    (root / "shut").mkdir()
    (root / first / f"{first}.py").write_text("def harbour():\n    return 1\n")
    (root / "shut" / f"{first}.py").write_text("def harbour():\n    return 2\n")
    (root / ".greenroomignore").write_text(f"shut/{second}.py\n")
    async with agent_in(tmp_path, root, is_kept=True) as ann:
        for spelt in (first, second):
            [file] = await read(ann, json.dumps({"path": f"{spelt}/{spelt}.py"}))
            assert file.path == f"{first}/{first}.py"
            with pytest.raises(Refusal, match="is not there"):
                await read(ann, json.dumps({"path": f"{spelt}/none.py"}))
        await settled(ann)
        found = await search(ann, '{"query":"harbour"}')
        assert [each.file_path for each in found.results] == [f"{first}/{first}.py"]
        for spelt in (first, second):
            left = await search(
                ann, json.dumps({"query": "harbour", "filters": {"exclude_paths": [f"{spelt}/*"]}})
            )
            assert left.results == []


async def test_two_files_whose_names_differ_in_form_alone_are_two(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name in (COMPOSED, DECOMPOSED):
        (root / f"{name}.txt").write_text(ascii(name))
    async with agent_in(tmp_path, root) as ann:
        for name in (COMPOSED, DECOMPOSED):
            [file] = await read(ann, json.dumps({"path": f"{name}.txt"}))
            assert (file.path, file.text) == (f"{name}.txt", ascii(name))


@pytest.mark.parametrize(("first", "second"), BOTH_WAYS[:4])
async def test_a_documents_path_is_one_in_all_its_forms(enter: Enter, first: str, second: str) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("a", user="ann")

        async def put(path: str, text: str) -> str:
            document = document_of(path, [([], text)])
            return (
                await ask_corpus(
                    at.runtime, ann.principal, PutDocument(corpus="docs", document=document), make=True
                )
            ).state

        async def listed(**arguments: Any) -> list[str]:
            found = await ask_corpus(at.runtime, ann.principal, ListDocuments(corpus="docs", **arguments))
            return [each.path for each in found.documents]

        assert await put(f"{first}.md", "one") == "added"
        assert await put(f"{second}.md", "two") == "changed"
        assert await put("other.md", "three") == "added"
        for spelt in (first, second):
            assert await listed(path=f"{spelt}.md") == await listed(holding=spelt) == [f"{first}.md"]
        removed = await ask_corpus(
            at.runtime, ann.principal, RemoveDocuments(corpus="docs", paths=[f"{second}.md"])
        )
        assert removed.removed == [f"{first}.md"]
        assert await listed() == ["other.md"]
