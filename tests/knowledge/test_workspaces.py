"""Workspaces as corpora: who may know of one, what it is called, who keeps it and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb
import pytest
import trio
from harness import PATIENCE
from support.agents import FAST
from support.corpora import document_of

from greenroom.actors import (
    Agent,
    ClientContext,
    CompleteCode,
    CompleteResource,
    ListCorpora,
    Principal,
    PutDocument,
    ReadResource,
    RenameCorpus,
    SemanticSearch,
    WorkspaceResource,
    ask_corpus,
    open_greenroom,
)
from greenroom.actors.knowledge.corpora.handlers.lease import LEASE_SECONDS
from greenroom.actors.knowledge.corpora.requests.code_requests import FindCode
from greenroom.actors.knowledge.corpora.requests.workspace import (
    DescribeWorkspace,
    KeepWorkspace,
    Kept,
    WorkspaceState,
)
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="a", user="ann")
NAME = "user:ann:code-1"
ROOT = "/home/ann/code"


async def keep(runtime: RuntimeClient, keeper: str, state: Kept, of: int | None = None) -> WorkspaceState:
    return await ask_corpus(runtime, ANN, KeepWorkspace(corpus=NAME, keeper=keeper, state=state, of=of))


async def state(runtime: RuntimeClient) -> WorkspaceState:
    return await ask_corpus(runtime, ANN, DescribeWorkspace(corpus=NAME))


async def put(runtime: RuntimeClient) -> None:
    document = document_of("src/a.py", [(["f"], "def f(): return anchor")])
    await ask_corpus(runtime, ANN, PutDocument(corpus=NAME, document=document))


@pytest.mark.promise("code.one-keeper")
async def test_one_process_at_a_time_keeps_a_workspace_until_it_says_so_no_more(enter: Enter) -> None:
    async with enter() as at:
        runtime = at.runtime
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        assert (await keep(runtime, "one", "indexing", of=7)).is_asker
        other = await keep(runtime, "two", "indexing", of=9)
        assert (other.is_asker, other.state, other.of) == (False, "indexing", 7)
        at.tick(LEASE_SECONDS - 1)
        assert (await keep(runtime, "one", "watching")).is_asker
        at.tick(LEASE_SECONDS - 1)
        assert not (await keep(runtime, "two", "indexing")).is_asker
        at.tick(1)
        assert (await keep(runtime, "two", "indexing")).is_asker
        assert not (await keep(runtime, "one", "watching")).is_asker


@pytest.mark.promise("code.one-keeper")
async def test_who_ends_leaves_it_to_the_next_at_once_and_takes_it_from_nobody(enter: Enter) -> None:
    async with enter() as at:
        runtime = at.runtime
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await keep(runtime, "one", "watching")
        assert (await keep(runtime, "two", "unwatched")).state == "watching"
        assert (await keep(runtime, "one", "unwatched")).state == "unwatched"
        assert (await keep(runtime, "two", "indexing")).is_asker


@pytest.mark.promise("code.freshness")
async def test_an_index_that_nobody_watches_says_since_when(enter: Enter) -> None:
    async with enter() as at:
        runtime = at.runtime
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        assert (await state(runtime)).as_of is None
        await keep(runtime, "one", "indexing", of=3)
        await put(runtime)
        indexing = await state(runtime)
        assert (indexing.indexed, indexing.of, indexing.as_of) == (1, 3, None)
        await keep(runtime, "one", "watching")
        at.tick(LEASE_SECONDS - 1)
        watched = await state(runtime)
        assert (watched.indexed, watched.of, watched.state) == (1, 1, "watching")
        at.tick(2)
        left = await state(runtime)
        assert left.state == "unwatched"
        assert left.as_of is not None
        assert watched.as_of is not None
        assert (watched.as_of - left.as_of).total_seconds() == LEASE_SECONDS - 1


@pytest.mark.parametrize(("said", "most"), [("watching", 3), ("indexing", 20)])
async def test_once_all_is_indexed_each_search_looks_into_a_few_runs(
    enter: Enter, folder: Path, said: Kept, most: int
) -> None:
    async with enter() as at:
        await ensure_corpus(at.runtime, ANN, NAME, ROOT)
        await keep(at.runtime, "one", "indexing")
        for number in range(20):
            document = document_of(f"a{number}.py", [(["f"], f"def f(): return anchor{number}")])
            await ask_corpus(at.runtime, ANN, PutDocument(corpus=NAME, document=document))
        search = FindCode(corpus=NAME, query="anchor7")
        assert (await ask_corpus(at.runtime, ANN, search)).total == 1
        await keep(at.runtime, "one", said)
        await trio.sleep(60)
        assert (await ask_corpus(at.runtime, ANN, search)).total == 1
    assert segments_of_index(folder) <= most
    assert said == "watching" or segments_of_index(folder) > 3


def segments_of_index(folder: Path) -> int:
    """Return how many segments the indexes of a stopped store have in their records."""
    with (
        lmdb.open(str(folder / "greenroom.mdb"), subdir=False, max_dbs=1, readonly=True) as store,
        store.begin() as transaction,
    ):
        names = transaction.cursor(store.open_db(b"actors", transaction, create=False)).iternext(values=False)
        found = [name.partition(b"\0uis")[2] for name in names]
    return len({name[:4] for name in found if name})


@pytest.mark.promise("code.policy")
async def test_who_may_not_read_code_knows_of_no_workspace(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await put(runtime)
        (listed,) = (await Agent(runtime, ANN).ask(ListCorpora())).corpora
        assert (listed.corpus, listed.root) == (NAME, ROOT)
        scoped = Principal(agent_id="a", user="ann", scopes=frozenset({"knowledge:read", "knowledge:write"}))
        blind = Agent(runtime, scoped)
        assert (await blind.ask(ListCorpora())).corpora == []
        for corpus in (NAME, "code-1"):
            with pytest.raises(Refusal, match="there is no corpus"):
                await blind.ask(SemanticSearch(query="anchor", corpus=corpus))
        with pytest.raises(Refusal, match="there is no corpus"):
            await ask_corpus(runtime, scoped, DescribeWorkspace(corpus=NAME), make=True)


@pytest.mark.promise("code.resource", "code.policy")
async def test_a_workspace_is_a_resource_that_is_read_completed_and_heard_of(tmp_path: Path) -> None:
    uri = f"greenroom://workspace/{NAME}"
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await ensure_corpus(runtime, ANN, "user:ann:code-docs")
        agent = Agent(runtime, ANN)
        with agent.subscriber(0) as changes, trio.fail_after(PATIENCE):
            changes.add(uri)
            await keep(runtime, "one", "indexing", of=3)
            assert await changes.next() == uri
        await put(runtime)
        read = await agent.ask(ReadResource(uri=uri))
        assert isinstance(read, WorkspaceResource)
        assert (read.workspace.root, read.files, read.has_more) == (ROOT, ["src/a.py"], False)
        assert (read.freshness.state, read.freshness.indexed, read.freshness.of) == ("indexing", 1, 3)
        asked = CompleteResource(
            template="greenroom://workspace/{workspace}", argument="workspace", value="co"
        )
        assert (await agent.ask(asked)).values == [NAME]
        for unheard in ("greenroom://workspace/user:ann:code-docs", "greenroom://workspace/user:ann:never"):
            with pytest.raises(Refusal) as refused:
                await agent.ask(ReadResource(uri=unheard))
            assert refused.value.code == "RESOURCE_NOT_FOUND"
        with pytest.raises(Refusal) as refused:
            await Agent(runtime, Principal(agent_id="b", user="ben")).ask(ReadResource(uri=uri))
        assert refused.value.code == "RESOURCE_NOT_FOUND"


@pytest.mark.promise("code.policy")
async def test_who_may_not_read_code_hears_of_no_change_of_it(tmp_path: Path) -> None:
    code = {f"greenroom://corpus/{NAME}", f"greenroom://document/{NAME}/src/a.py"}
    note = "greenroom://document/user:ann:notes/b.md"

    async def heard_of(scopes: frozenset[str]) -> set[str]:
        agent, heard = Agent(runtime, Principal(agent_id="a", user="ann", scopes=scopes)), set[str]()
        with agent.subscriber(0) as changes, trio.fail_after(PATIENCE):
            for uri in (*code, note):
                changes.add(uri)
            await put(runtime)
            document = document_of("b.md", [(["b"], "something else")])
            await ask_corpus(runtime, ANN, PutDocument(corpus="user:ann:notes", document=document))
            while note not in heard:
                heard.add(await changes.next())
        return heard - {note}

    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await ensure_corpus(runtime, ANN, "user:ann:notes")
        assert await heard_of(frozenset({"knowledge:read", "code:read"})) == code
    async with open_greenroom(tmp_path / "other", embedder="none", options=FAST) as runtime:
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await ensure_corpus(runtime, ANN, "user:ann:notes")
        assert await heard_of(frozenset({"knowledge:read"})) == set()


@pytest.mark.promise("code.completed", "code.policy")
async def test_paths_of_documents_are_completed_where_their_corpus_may_be_seen(tmp_path: Path) -> None:
    async def completed(agent: Agent, value: str, **known: str) -> list[str]:
        template = "greenroom://document/{corpus}/{+path}"
        asked = CompleteResource(template=template, argument="path", value=value, known=known)
        return (await agent.ask(asked)).values

    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        await ensure_corpus(runtime, ANN, NAME, ROOT)
        await put(runtime)
        ann = Agent(runtime, ANN)
        for begun in ("", "src/", "SRC/A", "a."):
            assert await completed(ann, begun, corpus=NAME) == ["src/a.py"]
        assert await completed(ann, "rc/", corpus=NAME) == []
        for corpus in ("", "never", "no such name", "user:ann:\0", "user:ben:code"):
            assert await completed(ann, "", corpus=corpus) == []
        assert await completed(ann, "") == []
        ben = Agent(runtime, Principal(agent_id="b", user="ben"))
        blind = Agent(runtime, Principal(agent_id="a", user="ann", scopes=frozenset({"knowledge:read"})))
        closed = Agent(runtime, Principal(agent_id="a", user="ann", scopes=frozenset({"memory:read"})))
        for other in (ben, blind, closed):
            assert await completed(other, "", corpus=NAME) == []
        with pytest.raises(Refusal, match="code:read"):
            await blind.ask(CompleteCode(kind="path"))


async def test_a_workspace_keeps_its_name_and_takes_no_other_corpus_s(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none", options=FAST) as runtime:
        assert (await ensure_corpus(runtime, ANN, NAME, ROOT)).root == ROOT
        assert (await ensure_corpus(runtime, ANN, NAME)).root == ROOT
        with pytest.raises(Refusal, match="is named by its folder"):
            await RenameCorpus(corpus=NAME, to="other").run(ClientContext(runtime, ANN))
        await ensure_corpus(runtime, ANN, "user:ann:docs")
        for name in (NAME, "user:ann:docs"):
            with pytest.raises(Refusal, match="is another corpus"):
                await ensure_corpus(runtime, ANN, name, "/home/ann/other")
