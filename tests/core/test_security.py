"""What docs/security.md says of who may do what and see what, held against what the server does.

The tables are read from the page. So the page, the policy that wrote it and every way to ask agree, or a test
fails: `test_docs` compares the page with the policy, this module compares it with the answers.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from msgspec.json import encode
from support import samples
from support.agents import json, refused
from support.corpora import document_of
from support.postings import posted

from greenroom.actors import (
    API_REQUESTS,
    REQUESTS,
    AddMessage,
    Agent,
    CompleteResource,
    CreateSession,
    ForgetMemory,
    GetFullContent,
    GetMemory,
    GetMessages,
    GetSession,
    GetWorkflowPatterns,
    ListCorpora,
    ListMemories,
    ListMemory,
    ListResources,
    ListSessions,
    ListVersions,
    MemorySearch,
    Principal,
    PutDocument,
    ReadResource,
    RecordWorkflowStep,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    SemanticSearch,
    SetMemory,
    StoreMemory,
    SuggestNextAction,
    UpdateMemory,
    UpdateSession,
    WorkflowCheckpoint,
    ask_corpus,
    parse_request,
)
from greenroom.actors.app.requests import ASKED
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.actors.core.auth.scopes import RESOURCES, SCOPES, WILDCARDS
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.knowledge.corpora.requests.corpus_requests import chunk_id
from greenroom.runtime import Refusal
from greenroom.transports import TOOLS as LISTED
from greenroom.transports.mcp.tools.tools import visible_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.agents import Enter, House

pytestmark = pytest.mark.promise("identity.matrix")

PAGE = (Path(__file__).parent.parent.parent / "docs" / "security.md").read_text()
SINCE, UNTIL = dt.datetime(2000, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def table(name: str) -> list[list[str]]:
    """Return the cells of one of the page's tables, its head first."""
    found = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert found is not None
    lines = [line for line in found[1].splitlines() if not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


READERS: dict[str, dict[str, Any]] = {
    "itself": {"agent_id": "scribe", "agent_type": "writer", "user": "ann", "projects": frozenset({"p"})},
    "another agent of its user": {"agent_id": "clerk", "user": "ann", "projects": frozenset({"p"})},
    "an agent of its type": {
        "agent_id": "poet",
        "agent_type": "writer",
        "user": "bob",
        "projects": frozenset({"p"}),
    },
    "another user of its project": {"agent_id": "cook", "user": "bob", "projects": frozenset({"p"})},
    "a user of another project": {"agent_id": "spy", "user": "bob", "projects": frozenset({"q"})},
}


DENIED = frozenset({"PERMISSION_DENIED"})
GONE = frozenset(
    {
        *("SESSION_NOT_FOUND", "RESOURCE_NOT_FOUND", "MEMORY_NOT_FOUND", "PARENT_MESSAGE_NOT_FOUND"),
        *("CORPUS_NOT_FOUND", "CHECKPOINT_NOT_FOUND"),
    }
)


async def finds(seen: Awaitable[Any], codes: frozenset[str] = GONE) -> Any:
    """Return an answer; None where the answer is that there is nothing."""
    try:
        return await seen
    except Refusal as refusal:
        if refusal.code not in codes:
            raise
        return None


# -- what scopes open --------------------------------------------------------------------------------


def opened() -> dict[str, tuple[set[str], set[str]]]:
    """Return the tools and what else each scope opens, as the page says."""
    _head, *rows = table("scopes")
    known: dict[str, tuple[set[str], set[str]]] = {}
    for scope, tools, others in rows:
        if not tools.startswith("as "):
            known[scope.strip("`")] = set(re.findall(r"`(\w+)`", tools)), set(others.split(", "))
            continue
        assert others == "the same"
        named = SCOPES if "every scope" in tools else re.findall(r"`([\w:]+)`", tools)
        ways = [known[each] for each in named]
        known[scope.strip("`")] = (
            {tool for opens, _ in ways for tool in opens},
            {other for _, others_of in ways for other in others_of},
        )
    return known


@pytest.mark.slow
@pytest.mark.promise("identity.scopes")
async def test_every_tool_asks_for_its_scope_on_every_way_in(enter: Enter) -> None:
    said = opened()
    assert set(said) == {*SCOPES, *WILDCARDS}
    async with enter(embedder="none") as at:
        for scope, (tools, _others) in said.items():
            agent = at.agent("a", scopes=frozenset({scope}))
            listed = set(visible_tools({name: {} for name in TOOLS}, LISTED, agent.scopes))
            # The model of who may do everything need not read of administration at every start.
            unlisted = {name for name, needed in TOOLS.items() if needed in {"admin", "audit:read"}}
            assert listed == tools - (unlisted if scope == "*" else set())
            for name in REQUESTS:
                asked = samples.request(name)
                denied = await denies(partial(agent.ask, asked))
                assert denied == await denies(partial(posted, agent, asked))
                assert denied == (name not in tools), (scope, name)


async def denies(ask: Callable[[], Any]) -> bool:
    """Return whether a request is refused for a scope."""
    try:
        found = ask()
        if hasattr(found, "__await__"):
            await found
    except Refusal as refusal:
        return refusal.code == "PERMISSION_DENIED" and "scope" in refusal.details
    return False


async def test_resources_ask_for_the_scope_of_their_kind(enter: Enter) -> None:
    uris = {
        "session": "session://s",
        "memory": "agent://scribe/memory",
        "export": f"greenroom://export/{'0' * 32}",
        "passport": f"greenroom://passport/{'0' * 32}",
        "preferences": "greenroom://user/preferences",
        "project": "greenroom://project/p",
        "corpus": "greenroom://corpus/all:docs",
        "workspace": "greenroom://workspace/all:code",
        "savings": "greenroom://savings",
        "workflow": f"greenroom://workflows/{'0' * 16}",
    }
    assert set(uris) == set(RESOURCES)
    async with enter(embedder="none") as at:
        await at.agent("scribe").ask(CreateSession(purpose="p", session_id="s"))
        for scope, (_tools, others) in opened().items():
            agent = at.agent("scribe", scopes=frozenset({scope}))
            for kind, uri in uris.items():
                may = f"resource {kind}" in others
                with agent.subscriber() as subscriber:
                    for way in (agent.ask, partial(posted, agent)):
                        assert may != await denies(partial(way, ReadResource(uri=uri)))
                    if not may:
                        with refused("PERMISSION_DENIED", scope=RESOURCES[kind]):
                            subscriber.add(uri)


def test_nothing_can_be_asked_that_is_in_no_table() -> None:
    served = set(API_REQUESTS.values())
    assert {each.__name__ for each in ASKED - served} == {
        *("ReadResource", "ListResources", "CompleteResource", "CompleteCode"),
        *("ListPrompts", "GetPrompt", "CompletePrompt"),
    }


# -- what who sees -----------------------------------------------------------------------------------


async def sees_session(agent: Agent, session_id: str) -> bool:
    uri = f"session://{session_id}"
    completion = await agent.ask(CompleteResource(template="session://{session_id}", argument="session_id"))
    ways = {
        await finds(agent.ask(GetSession(session_id=session_id))) is not None,
        await finds(agent.ask(GetMessages(session_id=session_id))) is not None,
        await finds(agent.ask(SearchContext(session_id=session_id, query="word"))) is not None,
        await finds(agent.ask(ReadResource(uri=uri))) is not None,
        session_id in {each.session_id for each in (await agent.ask(ListSessions())).sessions},
        uri in {each.uri for each in (await agent.ask(ListResources())).resources},
        session_id in completion.values,
    }
    assert len(ways) == 1, ways
    return ways.pop()


async def sees_message(at: House, scribe: Agent, reader: Agent, session_id: str, **audience: Any) -> bool:
    """Write a message; return whether the reader sees it, by whichever way."""
    before = await finds(reader.ask(GetSession(session_id=session_id)))
    with reader.subscriber(0) as subscriber:
        subscriber.add(f"session://{session_id}")
        word = f"word{at.clock.now()}x"
        said = AddMessage(session_id=session_id, content=f"a {word} to you", **audience)
        message_id = (await scribe.ask(said)).message_id
        with trio.move_on_after(1) as scope:
            await subscriber.next()
        heard = not scope.cancelled_caught
    at.tick()

    async def among(request: Any, field: str = "messages") -> bool:
        page = await finds(reader.ask(request))
        found = [] if page is None else getattr(page, field)
        return message_id in {getattr(each, "message", each).message_id for each in found}

    after = await finds(reader.ask(GetSession(session_id=session_id)))
    counted = (
        after is not None
        and before is not None
        and after.statistics.message_count > before.statistics.message_count
    )
    hidden_parent = AddMessage(session_id=session_id, content="so?", parent_message_id=message_id)
    answered = await finds(reader.ask(hidden_parent)) is not None
    ways = {
        heard,
        counted,
        answered,
        await among(GetMessages(session_id=session_id)),
        await among(SearchContext(session_id=session_id, query=word, recent_hours=None), "results"),
        await among(SearchBySender(session_id=session_id, sender="scribe")),
        await among(SearchByTimerange(session_id=session_id, start_time=SINCE, end_time=UNTIL)),
        await among(ReadResource(uri=f"session://{session_id}")),
        await among(GetSession(session_id=session_id)),
    }
    assert len(ways) == 1, ways
    return ways.pop()


async def sees_memory(reader: Agent, key: str, root: str, memory_id: str) -> bool:
    async def among(request: Any, field: str = "memories") -> bool:
        page = await finds(reader.ask(request))
        return page is not None and key in {each.key for each in getattr(page, field)}

    ways = {
        await among(ListMemories(namespace=root)),
        await among(MemorySearch(query=f"about {key}", limit=50)),
        await among(MemorySearch(query=f"about {key}", mode="exact", limit=50)),
        await finds(reader.ask(ListVersions(memory_id=memory_id))) is not None,
    }
    assert len(ways) == 1, ways
    return ways.pop()


NAMESPACES = {
    "a private memory of its user": ("user:ann", None),
    "a memory of its user shared with projects": ("user:ann", "shared"),
    "a public memory of its user": ("user:ann", "public"),
    "a memory in the namespace of its project": ("project:p", None),
    "a memory in a shared namespace": ("team:kitchen", None),
}
CORPORA = {
    "a corpus of its user": "user:ann:docs",
    "a corpus of its project": "project:p:docs",
    "a corpus of all": "all:docs",
}
MESSAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "a public message": ("open", {}),
    "a public message in a session of its project": ("closed", {}),
    "a private message": ("open", {"visibility": "private"}),
    "a message for agents of its type": ("open", {"visibility": "agent_only"}),
}
SESSIONS = {
    "a session without a project": "open",
    "a session of its project": "closed",
    "a session of its user's own project, `user:ann`": "own",
}


@pytest.mark.slow
async def test_everybody_sees_what_the_page_says_and_nothing_else(enter: Enter) -> None:
    head, *rows = table("sight")
    assert head[1:] == list(READERS)
    assert [row[0] for row in rows] == [*SESSIONS, *MESSAGES, KEPT, *NAMESPACES, *CORPORA, STEPS]
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        await scribe.ask(CreateSession(purpose="p", session_id="open"))
        await scribe.ask(CreateSession(purpose="p", session_id="closed", project_id="p"))
        await scribe.ask(CreateSession(purpose="p", session_id="own", project_id="user:ann"))
        await scribe.ask(SetMemory(key="kept", value=json('"about kept"')))
        stored = {}
        for number, (what, (namespace, scope)) in enumerate(NAMESPACES.items()):
            key = f"key{number}"
            metadata = {} if scope is None else {"scope": scope}
            made = parse_request(
                StoreMemory,
                encode({"content": f"about {key}", "key": key, "namespace": namespace, "metadata": metadata}),
            )
            stored[what] = key, namespace, (await scribe.ask(made)).memory_id
        for command in ("git pull", "git push") * 2:
            await scribe.ask(RecordWorkflowStep(command=command))
        await scribe.ask(WorkflowCheckpoint(name="here", state=json('{"a":1}')))
        for corpus in CORPORA.values():
            put = PutDocument(corpus=corpus, document=document_of("a.md", [([], "about it")]))
            await ask_corpus(at.runtime, scribe.principal, put, make=True)
        for what, *cells in rows:
            for name, cell in zip(READERS, cells, strict=True):
                reader = Agent(at.runtime, Principal(**READERS[name]))
                if what in MESSAGES:
                    session_id, audience = MESSAGES[what]
                    seen = await sees_message(at, scribe, reader, session_id, **audience)
                elif what in stored:
                    seen = await sees_memory(reader, *stored[what])
                else:
                    seen = await sees(reader, what)
                assert cell == ("yes" if seen else "no"), (what, name)


COMERS: dict[str, dict[str, Any]] = {
    "ann, no project": {"user": "ann", "key_id": "k"},
    "ann, `p`": {"user": "ann", "key_id": "k", "projects": frozenset({"p"})},
    "ann, `q`": {"user": "ann", "key_id": "k", "projects": frozenset({"q"})},
    "bob, no project": {"user": "bob", "key_id": "k"},
    "bob, `p` and `user:ann`": {"user": "bob", "key_id": "k", "projects": frozenset({"p", "user:ann"})},
    "no user, no project": {"key_id": "k"},
    "root, no project, with `admin`": {"user": "root", "key_id": "k"},
    "the same, seeing as an agent of ann": {"user": "ann", "key_id": "k", "seen_by": "root"},
    "bob, a token without projects": {"user": "bob", "key_id": "oauth:t", "projects": frozenset()},
    "bob, without a key": {"user": "bob"},
}


@pytest.mark.slow
async def test_every_key_opens_what_the_page_says_and_nothing_else(enter: Enter) -> None:
    head, *rows = table("keys")
    assert [whose for whose, *_ in rows] == list(COMERS)
    spaces = {
        "ann's memories of no project": ("user:ann", "private"),
        "ann's memories of `p`": ("project:p", "private"),
        "memories of all in `p`": ("project:p", "shared"),
        "memories of `user:ann`": ("project:user~3aann", "shared"),
    }
    projects = {"sessions of `user:ann`": "user:ann", "sessions of `p`": "p"}
    assert set(head[1:]) == {*spaces, *projects, "corpora of `user:ann`"}
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(agent_id="scribe", user="ann"))
        for project in projects.values():
            await scribe.ask(CreateSession(purpose="p", session_id=project[-1], project_id=project))
        put = PutDocument(corpus="project:user~3aann:docs", document=document_of("a.md", [([], "about it")]))
        await ask_corpus(at.runtime, scribe.principal, put, make=True)
        stored = {}
        for number, (what, (namespace, scope)) in enumerate(spaces.items()):
            fields = {"content": f"about key{number}", "key": f"key{number}", "namespace": namespace}
            made = parse_request(StoreMemory, encode({**fields, "metadata": {"scope": scope}}))
            stored[what] = f"key{number}", namespace, (await scribe.ask(made)).memory_id
        for whose, *cells in rows:
            reader = Agent(at.runtime, Principal(agent_id="reader", **COMERS[whose]))
            for what, cell in zip(head[1:], cells, strict=True):
                if what in stored:
                    seen = await sees_memory(reader, *stored[what])
                elif what in projects:
                    seen = await sees_session(reader, projects[what][-1])
                else:
                    seen = await sees_corpus(reader, "project:user~3aann:docs")
                assert cell == ("yes" if seen else "no"), (whose, what)


async def sees(reader: Agent, what: str) -> bool:
    if what == KEPT:
        return await sees_kept(reader)
    if what == STEPS:
        return await sees_steps(reader)
    if what in SESSIONS:
        return await sees_session(reader, SESSIONS[what])
    return await sees_corpus(reader, CORPORA[what])


KEPT = "what it stores with `set_memory`"


STEPS = "the steps of its user in its project"


async def sees_steps(reader: Agent) -> bool:
    suggested = await reader.ask(SuggestNextAction(context=["git pull"]))
    found = await reader.ask(GetWorkflowPatterns())
    ways = {
        bool(suggested.suggestions),
        bool(found.patterns),
        suggested.steps > 0,
        await finds(reader.ask(WorkflowCheckpoint(name="here"))) is not None,
    }
    assert len(ways) == 1, ways
    return ways.pop()


async def sees_corpus(reader: Agent, corpus: str) -> bool:
    search = SemanticSearch(query="about", corpus=corpus)
    ways = {
        await finds(reader.ask(search)) is not None,
        await finds(reader.ask(GetFullContent(chunk_ids=[chunk_id(1, 1)], corpus=corpus))) is not None,
        await finds(reader.ask(ReadResource(uri=f"greenroom://corpus/{corpus}"))) is not None,
        corpus in {each.corpus for each in (await reader.ask(ListCorpora())).corpora},
    }
    assert len(ways) == 1, ways
    return ways.pop()


async def sees_kept(reader: Agent) -> bool:
    ways = {
        await finds(reader.ask(GetMemory(key="kept"))) is not None,
        "kept" in {entry.key for entry in (await reader.ask(ListMemory())).entries},
        await finds(reader.ask(ReadResource(uri="agent://scribe/memory"))) is not None,
        "kept"
        in {each.key for each in (await reader.ask(MemorySearch(query="about kept", limit=50))).memories},
    }
    assert len(ways) == 1, ways
    return ways.pop()


async def test_everybody_writes_where_the_page_says_and_nowhere_else(enter: Enter) -> None:
    namespaces = {
        "the namespace of its user": "user:ann",
        "its own namespace": "agent:scribe",
        "the namespace of its project": "project:p",
        "a shared namespace": "team:kitchen",
    }
    head, *rows = table("writing")
    assert (head[1:], [row[0] for row in rows]) == (list(READERS), list(namespaces))
    async with enter(embedder="none") as at:
        for what, *cells in rows:
            for name, cell in zip(READERS, cells, strict=True):
                writer = Agent(at.runtime, Principal(**READERS[name]))
                request = StoreMemory(
                    content="x", key=f"by-{name.replace(' ', '-')}", namespace=namespaces[what]
                )
                wrote = await finds(writer.ask(request), DENIED) is not None
                assert cell == ("yes" if wrote else "no"), (what, name)


async def test_what_is_another_s_is_changed_by_nobody_who_may_not_see_it(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        spy = Agent(at.runtime, Principal(**READERS["a user of another project"]))
        await scribe.ask(CreateSession(purpose="p", session_id="closed", project_id="p"))
        made = await scribe.ask(StoreMemory(content="x", key="k"))
        for request in (
            UpdateSession(session_id="closed", status="terminated"),
            AddMessage(session_id="closed", content="boo"),
            SetMemory(key="k", value=json("1"), session_id="closed"),
            UpdateMemory(memory_id=made.memory_id, content="y"),
            ForgetMemory(memory_id=made.memory_id, confirm=True),
        ):
            assert await finds(spy.ask(request)) is None
        assert (await scribe.ask(GetSession(session_id="closed"))).session.status == "created"


# -- ids that are no ids -----------------------------------------------------------------------------


@pytest.mark.promise("identity.ids")
@pytest.mark.parametrize(
    "odd",
    [
        "../../etc/passwd", "..%2f..%2fetc", "/etc/passwd", "a/b", "a\\b", "a\0b", "a\n", "", "x" * 129,
        "session://s", "s?x=1", "s#x", "\u202es", "\uff53", "C:\\x", "~root", "$(id)", "a b",
    ],
)  # fmt: skip
async def test_an_id_is_no_path_and_nothing_else_than_a_name(enter: Enter, odd: str, folder: Path) -> None:
    async with enter(embedder="none") as at:
        agent, before = at.agent("a"), files_in(folder)
        for made in (partial(CreateSession, purpose="p"), GetSession):
            with refused("VALIDATION_ERROR"):
                made(session_id=odd)
            request = msgspec.structs.replace(made(session_id="s"), session_id=odd)
            with refused("VALIDATION_ERROR"):
                check_request(request)
            with refused("VALIDATION_ERROR"):
                await agent.ask(request)
        with refused("RESOURCE_NOT_FOUND"):
            await agent.ask(ReadResource(uri=f"session://{odd}"))
        assert files_in(folder) == before


def files_in(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}
