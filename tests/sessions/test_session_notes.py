"""What the server notes in a session of what its agents read and look for, and what it leaves out."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trio
from support import samples

from greenroom.actors import (
    API_REQUESTS,
    REQUESTS,
    AddMessage,
    Agent,
    EndSession,
    ExportSession,
    GetSessionContext,
    MemorySearch,
    MigrateSession,
    Principal,
    Reach,
    ReadFile,
    RecallContext,
    RecordContext,
    ReopenSession,
    RestoreSession,
    SearchContext,
    SessionLocator,
    StartSession,
    StoreMemory,
    open_greenroom,
    open_work_notes,
    open_workspaces,
)
from greenroom.actors.app.client.noted_work import NOTED
from greenroom.actors.sessions.requests import session_context
from greenroom.runtime import Address, Refusal
from greenroom.testing import mcp_client
from greenroom.transports.mcp.tools.aliases import ALIASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter, House

    from greenroom.actors import WorkNotes

LATER = 6
"""Seconds after which notes are written."""

SOURCE = "def total(items):\n    return sum(items)\n"


class Call(NamedTuple):
    """A call of a tool, and the path or the words that it leaves in the session."""

    arguments: dict[str, Any]
    path: str = ""
    words: str = ""
    memory: str = ""


def searching(**arguments: Any) -> Call:
    (words,) = [each for each in arguments.values() if isinstance(each, str)][:1]
    return Call(arguments, words=words)


CALLS = {
    "read_file": Call({"path": "prices.py"}, path="prices.py"),
    "outline": Call({"path": "prices.py"}, path="prices.py"),
    "similar_files": Call({"path": "prices.py"}, path="prices.py"),
    "get_full_content": Call({"chunk_ids": ["CHUNK"]}, path="a.md"),
    "search_code_semantic": searching(query="code that adds"),
    "symbol_search": searching(symbol="total"),
    "code_search": searching(pattern="calls sum"),
    "dependency_search": searching(target="total"),
    "semantic_search": searching(query="where are pumps bought"),
    "find_entity": searching(vendor_filter="Acme"),
    "find_vendor_info": searching(vendor_filter="Initech"),
    "memory_search": searching(query="a memory"),
    "retrieve_memory": searching(query="another memory"),
    "recall_context": searching(task="mend the pump"),
    "search_context": Call({"session_id": "SESSION", "query": "said"}, words="said"),
    "search_by_sender": Call({"session_id": "SESSION", "sender": "bob"}, words="bob"),
    "search_by_timerange": Call(
        {"session_id": "SESSION", "start_time": "2026-01-02", "end_time": "2026-01-03T12:00:00Z"},
        words="2026-01-02T00:00:00+00:00 to 2026-01-03T12:00:00+00:00",
    ),
    "store_memory": Call({"content": "Acme sells pumps", "key": "pumps"}, memory="pumps"),
    "update_memory": Call({"content": "Acme sold pumps", "key": "pumps"}, memory="pumps"),
}
"""A call of each tool that notes something."""

OWN_WAY = {"start_session", "restore_session", "migrate_session", "record_context"}
"""The tools after which an agent is at work in another session, and that which records by order."""

OLDER_CALLS = {
    "retrieve_memory": searching(query="older memory", n_results=3),
    "recall_memory": searching(time_expr="last week"),
    "recall_by_timeframe": Call({"start_date": "2026-03-01"}, words="2026-03-01 to "),
    "retrieve_with_quality_boost": searching(query="boosted"),
    "exact_match_retrieve": searching(content="ERR_4711"),
    "debug_retrieve": searching(query="debugged"),
}
"""A call of each older name that has parameters of its own."""


@pytest.mark.promise("passport.noted")
def test_of_every_tool_that_notes_something_is_said_what() -> None:
    assert {name for name, request in REQUESTS.items() if request in NOTED} == CALLS.keys()
    assert NOTED.keys() <= set(REQUESTS.values())
    assert not NOTED.keys() & (set(API_REQUESTS.values()) - set(REQUESTS.values()))


@pytest.mark.slow
@pytest.mark.promise("passport.noted")
async def test_every_name_of_a_tool_that_reads_or_searches_is_noted(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "prices.py").write_text(SOURCE)
    older = [alias for alias in ALIASES if REQUESTS[alias.successor] in NOTED]
    calls = [*CALLS.items()]
    calls += [(each.name, OLDER_CALLS.get(each.name) or CALLS[each.successor]) for each in older]
    async with (
        open_greenroom(tmp_path / "store", embedder="none") as runtime,
        open_work_notes(runtime) as notes,
        open_workspaces(runtime) as workspaces,
    ):
        reach = Reach(workspaces=(str(code),))

        def agent_for(name: str) -> Agent:
            who = Principal(agent_id=name, user="ann")
            return Agent(runtime, who, notes=notes, reach=reach, workspaces=workspaces)

        async with mcp_client(agent_for, profiles=("all",)) as client:
            await client.initialize("tester")
            await client.call("ingest_documents", texts=[{"path": "a.md", "text": "# Pumps\n\nBuy at Acme."}])
            found = await client.call("semantic_search", query="pumps")
            while not (await client.call("search_code_semantic", query="total"))["results"]:
                pass  # until the folder is indexed
            for name, call in calls:
                session = (await client.call("start_session", new=True, purpose=name))["session_id"]
                known = {"CHUNK": found["results"][0]["chunk_id"], "SESSION": session}
                arguments = {key: replaced(value, known) for key, value in call.arguments.items()}
                answer = await client.call(name, **arguments)
                assert not answer.get("code"), (name, answer)
                context = (await client.call("get_session_context"))["context"]
                left = {
                    "path": [each["path"] for each in context["files_accessed"]],
                    "words": [each["query"] for each in context["recent_searches"]],
                    "memory": [each["key"] for each in context["memories"]],
                }
                assert left == {kind: [text] if (text := getattr(call, kind)) else [] for kind in left}, name


@pytest.mark.promise("passport.noted")
async def test_no_other_tool_is_noted(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann = agent(at, notes)
        for request in samples.prepared():
            await ann.ask(request)
        session = await begun(ann)
        for name in samples.in_order():
            if name in CALLS or name in OWN_WAY or name in samples.ABOUT_NOTHING:
                continue
            with suppress(Refusal):
                await ann.ask(samples.request(name))
            for each in (session, samples.SESSION):
                context = await context_of(ann, each)
                left = [context.recent_searches, context.files_accessed, context.memories]
                assert left == [[]] * 3, name


def replaced(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [replaced(each, known) for each in value]
    return known.get(value, value) if isinstance(value, str) else value


@asynccontextmanager
async def at_work(at: House) -> AsyncIterator[WorkNotes]:
    """Note what agents of one process do."""
    async with open_work_notes(at.runtime) as notes:
        yield notes


def agent(at: House, notes: WorkNotes | None = None, name: str = "claude", **identity: Any) -> Agent:
    """Return an agent of ann's in the process with these notes, or in another that writes each at once."""
    return Agent(at.runtime, Principal(agent_id=name, **{"user": "ann"} | identity), client=name, notes=notes)


async def begun(who: Agent, purpose: str = "the pumps", **more: Any) -> str:
    """Begin a session; return its id."""
    session_id = (await who.ask(StartSession(new=True, purpose=purpose, **more))).session_id
    assert session_id is not None
    return session_id


async def context_of(who: Agent, session_id: str | None = None) -> session_context.SessionContext:
    return (await who.ask(GetSessionContext(session_id=session_id))).context


async def queries(who: Agent, session_id: str | None = None) -> list[str]:
    return [each.query for each in (await context_of(who, session_id)).recent_searches]


async def exported(who: Agent) -> str:
    """Return a passport of the agent's session."""
    passport = (await who.ask(ExportSession())).passport
    assert isinstance(passport, msgspec.Raw)
    return bytes(passport).decode()


@pytest.mark.promise("passport.noted-behind")
async def test_notes_of_some_seconds_are_written_at_once_and_not_one_by_one(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, elsewhere = agent(at, notes), agent(at)
        session = await begun(ann)
        for number in range(20):
            at.tick()
            await ann.ask(MemorySearch(query=f"query {number}"))
        assert await context_of(elsewhere, session) == session_context.SessionContext()
        await trio.sleep(LATER)
        written = await context_of(elsewhere, session)
        assert [each.query for each in written.recent_searches] == [f"query {n}" for n in reversed(range(20))]
        assert len({each.at for each in written.recent_searches}) == 1  # one commit
        await ann.ask(MemorySearch(query="later"))
        await trio.sleep(LATER)
        assert (await queries(elsewhere, session))[0] == "later"


@pytest.mark.promise("passport.noted-behind")
async def test_a_stored_memory_is_noted_at_once_with_what_waits(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, elsewhere = agent(at, notes), agent(at)
        session = await begun(ann)
        await ann.ask(MemorySearch(query="waits"))
        await ann.ask(StoreMemory(content="a fact", key="fact"))
        written = await context_of(elsewhere, session)
        assert [each.key for each in written.memories] == ["fact"]
        assert [each.query for each in written.recent_searches] == ["waits"]


@pytest.mark.slow
@pytest.mark.promise("passport.noted-behind")
async def test_of_very_many_notes_at_once_the_newest_are_written(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann = agent(at, notes)
        await begun(ann)
        for rounds in range(2):
            for number in range(session_context.MOST_SEARCHES + 20):
                await ann.ask(MemorySearch(query=f"query {rounds} {number}"))
                await ann.ask(MemorySearch(query="again and again"))
            newest = range(session_context.MOST_SEARCHES + 19, 20, -1)
            assert await queries(ann) == ["again and again", *(f"query {rounds} {n}" for n in newest)]


@pytest.mark.promise("passport.noted-behind")
async def test_what_shows_the_work_shows_what_was_just_noted(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, cursor = agent(at, notes), agent(at, notes, "cursor")
        session = await begun(ann)
        await ann.ask(MemorySearch(query="for the context"))
        assert await queries(ann) == ["for the context"]
        await ann.ask(MemorySearch(query="for a record"))
        recorded = await ann.ask(RecordContext(files_accessed=[session_context.FileUse(path="a.py")]))
        assert recorded.recent_searches == 2
        await ann.ask(MemorySearch(query="for a passport"))
        passport = msgspec.json.decode(await exported(ann))
        assert passport["metadata"]["total_searches"] == 3
        await ann.ask(MemorySearch(query="for a hand-over"))
        assert "for a hand-over" in (await ann.ask(MigrateSession(to_tool="cursor"))).briefing
        await ann.ask(MemorySearch(query="for another tool"))
        taken = await cursor.ask(StartSession(restore_from=session))
        assert taken.context.recent_searches[0].query == "for another tool"
        await ann.ask(MemorySearch(query="for the end"))
        assert (await ann.ask(EndSession())).recent_searches == 6


@pytest.mark.promise("passport.noted")
async def test_what_failed_or_was_in_no_session_is_not_noted(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann = agent(at, notes)
        await ann.ask(MemorySearch(query="before there is a session"))
        async with mcp_client(lambda _: ann) as client:
            await client.initialize()
            session = (await client.call("start_session", new=True, purpose="p"))["session_id"]
            for tool, arguments in (
                ("memory_search", {"query": "when", "time_expr": "no time at all"}),
                ("search_by_sender", {"session_id": "of-nobody", "sender": "bob"}),
                ("update_memory", {"key": "of-nobody", "content": "x"}),
                ("read_file", {"path": "gone.py"}),
            ):
                assert "code" in await client.call(tool, **arguments), tool
            context = (await client.call("get_session_context"))["context"]
            assert [context[each] for each in ("files_accessed", "recent_searches", "memories")] == [[]] * 3
            await client.call("search_by_sender", session_id=session, sender="bob")
            context = (await client.call("get_session_context"))["context"]
            assert [each["query"] for each in context["recent_searches"]] == ["bob"]


@pytest.mark.promise("passport.noted")
async def test_a_session_that_has_ended_takes_no_notes_and_costs_no_search(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, other = agent(at, notes), agent(at, None, "other")
        session = await begun(ann)
        await other.ask(EndSession(session_id=session))
        assert (await ann.ask(MemorySearch(query="after the end"))).memories == []
        await trio.sleep(LATER)
        await ann.ask(MemorySearch(query="just before it goes on"))
        await ann.ask(ReopenSession(session_id=session))
        await ann.ask(MemorySearch(query="now that it goes on"))
        assert await queries(ann) == ["now that it goes on"]


@pytest.mark.promise("passport.noted")
async def test_a_hidden_session_takes_no_notes(enter: Enter) -> None:
    async with enter() as at:
        ann = agent(at, projects=frozenset({"p"}))
        session = await begun(ann)
        moved = Principal(agent_id="claude", user="ann", projects=frozenset({"q"}))
        note = session_context.NoteContext(
            searches=[session_context.NotedSearch("of another project", "memory_search")]
        )
        await at.runtime.ask(Address("session", session), note, principal=moved)
        assert await queries(ann) == []


@pytest.mark.promise("passport.context-private")
async def test_two_clients_in_one_session_each_see_their_own_users_work(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, ann_too, bob = (
            agent(at, notes),
            agent(at, notes, "cursor"),
            agent(at, notes, "claude", user="bob"),
        )
        session = await begun(ann)
        for who in (ann_too, bob):
            await who.ask(RestoreSession(session_id=session))
        for who, query in ((ann, "of ann"), (ann_too, "also of ann"), (bob, "of bob")):
            at.tick()
            await who.ask(MemorySearch(query=query))
        assert await queries(ann) == await queries(ann_too) == ["also of ann", "of ann"]
        assert await queries(bob) == ["of bob"]


@pytest.mark.promise("passport.noted-alone")
async def test_a_search_of_what_one_agent_may_see_is_for_that_agent_alone(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        ann, others = agent(at, notes), [agent(at, notes, "cursor"), agent(at, notes, user="bob")]
        session = await begun(ann)
        await ann.ask(StoreMemory(content="a private figure", namespace="agent:claude"))
        await ann.ask(AddMessage(session_id=session, content="a private remark", visibility="private"))
        await ann.ask(AddMessage(session_id=session, content="a public remark"))
        await ann.ask(MemorySearch(query="private figure"))  # it finds the agent's own
        await ann.ask(RecallContext(task="nothing there", namespace="agent:claude"))
        await ann.ask(SearchContext(session_id=session, query="private remark", fuzzy_threshold=90))
        await ann.ask(SearchContext(session_id=session, query="to itself", search_scope="private"))
        own = {"private figure", "nothing there", "private remark", "to itself"}
        shared = {"common ground", "public remark"}
        await ann.ask(MemorySearch(query="common ground", namespace="user:ann"))
        await ann.ask(SearchContext(session_id=session, query="public remark", fuzzy_threshold=90))
        assert set(await queries(ann)) == own | shared
        assert set(await queries(others[0], session)) == shared
        assert await queries(others[1], session) == []
        passport = await exported(ann)
        assert (await ann.ask(EndSession())).recent_searches == len(own | shared)
        copied = await others[0].ask(RestoreSession(passport=passport))  # a copy, as it ended
        assert copied.session_id != session
        assert {each.query for each in copied.context.recent_searches} == shared


@pytest.mark.promise("passport.noted")
async def test_secrets_in_a_query_are_left_out(enter: Enter) -> None:
    key = "ghp_" + "x7Kq2Lm9Vb4Tn8Rw" * 3
    async with enter() as at, at_work(at) as notes:
        ann = agent(at, notes)
        await begun(ann)
        await ann.ask(MemorySearch(query=f"who made {key[:40]}"))
        await ann.ask(
            RecallContext(task=f"{'find where ' * 45}{key[:40]} is used")
        )  # at the end of what is kept
        context = await context_of(ann)
        kept = [each.query for each in context.recent_searches]
        assert [key[4:12] in each for each in kept] == [False, False]
        assert kept[1].startswith("who made [secret left out: ")
        assert max(map(len, kept)) <= 500


@pytest.mark.promise("passport.noted")
async def test_a_file_that_is_read_often_is_one_that_matters(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SOURCE)
    async with open_greenroom(tmp_path / "store", embedder="none") as runtime:
        async with open_work_notes(runtime) as notes:
            reach = Reach(workspaces=(str(tmp_path),))
            ann = Agent(runtime, Principal(agent_id="claude", user="ann"), notes=notes, reach=reach)
            session = await begun(ann)
            await ann.ask(ReadFile(paths=["a.py", "b.py", "gone.py"]))
            for _ in range(3):
                await ann.ask(ReadFile(path="b.py"))
            files = (await context_of(ann)).files_accessed
            await ann.ask(ReadFile(path="a.py"))
        elsewhere = Agent(runtime, Principal(agent_id="cursor", user="ann"))  # the process of ann has ended
        assert [(file.path, file.uses) for file in files] == [("b.py", 4), ("a.py", 1)]
        assert files[0].importance > files[1].importance
        again = (await context_of(elsewhere, session)).files_accessed
        assert [(file.path, file.uses) for file in again] == [("b.py", 4), ("a.py", 2)]


@pytest.mark.promise("passport.noted")
async def test_who_only_looks_leaves_no_note(enter: Enter) -> None:
    async with enter() as at, at_work(at) as notes:
        locator, who = SessionLocator(), Principal(agent_id="claude", user="ann")
        given: dict[str, Any] = {"locator": locator, "notes": notes}
        session = await begun(Agent(at.runtime, who, **given))
        looks_on = Principal(agent_id="claude", user="ann", seen_by="root")
        for looking in (
            Agent(at.runtime, who, is_person=True, **given),
            Agent(at.runtime, looks_on, **given),
        ):
            await looking.ask(MemorySearch(query="just looking"))
            await looking.ask(SearchContext(session_id=session, query="just looking"))
        assert await queries(Agent(at.runtime, who, **given)) == []
