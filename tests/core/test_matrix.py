"""Every tool and every resource, asked by everybody: allowed or denied exactly as docs/security.md says.

`test_security` asks each tool with each scope. Here each is asked about one and the same thing of the agent
`scribe` by everybody in the page's tables, with and without the scope that it needs. A tool or a kind of
resource that nobody has said here what governs it fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trio
from core.test_security import DENIED, GONE, KEPT, READERS, finds, table
from support import samples
from support.agents import json, refused
from support.corpora import document_of, ids_in
from support.presences import process_with

from greenroom.actors import (
    API_REQUESTS,
    AddMessage,
    Agent,
    CreateApiKey,
    CreateSession,
    DecisionMade,
    DefineEntities,
    EndSession,
    EntityDeclaration,
    ExportMemories,
    ExportSession,
    ForgetMemory,
    GetMessages,
    GetPrompt,
    GetWorkflowPatterns,
    ListMemories,
    ListSessions,
    MigrateSession,
    Principal,
    PutDocument,
    Reach,
    ReadResource,
    RecallContext,
    RecordContext,
    RecordWorkflowStep,
    RestoreSession,
    SetMemory,
    SetPreferences,
    StartSession,
    StoreMemory,
    UpdateMemory,
    WorkflowCheckpoint,
    ask_corpus,
    parse_request,
)
from greenroom.actors.app.requests import CONSOLE_REQUESTS, NEEDED
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.actors.core.auth.scopes import PROMPTS, RESOURCES, SCOPES
from greenroom.actors.core.operations import OPERATIONS
from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import TellPresence
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.runtime import Refusal

if TYPE_CHECKING:
    from support.agents import Enter, House

pytestmark = pytest.mark.promise("identity.matrix")

SESSION = "a session of its project"
MEMORY = "a private memory of its user"
CORPUS = "a corpus of its user"
STEPS = "the steps of its user in its project"
INTO_USER = "the namespace of its user"
BY_SCOPE = "its scope alone"


CLOSED = GONE | DENIED | {"VALIDATION_ERROR"}
"""How somebody is refused; an import says of each of its lines what is wrong with it."""


class Asked(NamedTuple):
    """What is asked of a tool, and what decides.

    Attributes:
        row: The row of the page's tables that says for whom it answers; `BY_SCOPE` for everybody.
        arguments: The arguments, as JSON with names in capitals for what is there.
        shows: What stands in an answer that tells of it; empty where an answer at all does.
    """

    row: str
    arguments: str
    shows: str = ""


WORKSPACE = Reach(workspaces=(str(Path(__file__).parent.parent / "support"),))
"""A folder of code that the operator lets everybody read who has the scope."""
OF_SESSION = '{"session_id":"SESSION"}'
ASKED = {
    "create_session": Asked(SESSION, '{"purpose":"p","project_id":"p"}'),
    "get_session": Asked(SESSION, OF_SESSION, "MARK"),
    "list_sessions": Asked(SESSION, "{}", "SESSION"),
    "find_sessions": Asked(SESSION, "{}", "SESSION"),
    "read_transcript": Asked(SESSION, OF_SESSION, "MARK"),
    "list_passports": Asked(MEMORY, OF_SESSION, "PASSPORT"),
    "get_messages": Asked(SESSION, OF_SESSION, "MARK"),
    "search_context": Asked(SESSION, '{"session_id":"SESSION","query":"WORD"}', "MARK"),
    "search_by_sender": Asked(SESSION, '{"session_id":"SESSION","sender":"scribe"}', "MARK"),
    "search_by_timerange": Asked(
        SESSION,
        '{"session_id":"SESSION","start_time":"2000-01-01T00:00:00Z","end_time":"2100-01-01T00:00:00Z"}',
        "MARK",
    ),
    "get_session_context": Asked(SESSION, OF_SESSION, "WORD"),
    "start_session": Asked(SESSION, '{"restore_from":"SESSION"}', "WORD"),
    "restore_session": Asked(SESSION, OF_SESSION, "WORD"),
    "migrate_session": Asked(SESSION, '{"session_id":"SESSION","to_tool":"zed"}'),
    "export_session": Asked(SESSION, OF_SESSION),
    "set_memory": Asked(SESSION, '{"session_id":"SESSION","key":"k","value":1}'),
    "get_memory": Asked(KEPT, '{"key":"kept-WORD"}', "MARK"),
    "list_memory": Asked(KEPT, "{}", "WORD"),
    "delete_memory": Asked(KEPT, '{"key":"kept-WORD"}', '"existed":true'),
    "store_memory": Asked(INTO_USER, '{"namespace":"user:ann","content":"x"}'),
    "retrieve_memory": Asked(MEMORY, '{"query":"WORD"}', "MARK"),
    "memory_search": Asked(MEMORY, '{"query":"WORD"}', "MARK"),
    "recall_context": Asked(MEMORY, '{"task":"WORD"}', "MARK"),
    "update_memory": Asked(MEMORY, '{"memory_id":"MEMORY","content":"y"}'),
    "rate_memory": Asked(MEMORY, '{"memory_id":"MEMORY","rating":1}'),
    "forget_memory": Asked(MEMORY, '{"memory_id":"MEMORY","confirm":true}'),
    "list_memories": Asked(MEMORY, '{"namespace":"user:ann"}', "MARK"),
    "list_memory_versions": Asked(MEMORY, '{"memory_id":"MEMORY"}'),
    "browse_memories": Asked(MEMORY, '{"namespace":"user:ann"}', "MARK"),
    "browse_namespaces": Asked(MEMORY, "{}", '"user:ann"'),
    "inspect_memory": Asked(MEMORY, '{"memory_id":"MEMORY"}', "MARK"),
    "list_memory_pairs": Asked(MEMORY, '{"namespace":"user:ann"}', "MARK"),
    "list_forgotten": Asked(MEMORY, '{"namespace":"user:ann"}', "FORGOTTEN"),
    "restore_memory": Asked(MEMORY, '{"memory_id":"OTHER","version":FIRST}'),
    "merge_memories": Asked(MEMORY, '{"memory_id":"MEMORY","others":["OTHER"]}'),
    "move_memory": Asked(MEMORY, '{"memory_id":"MEMORY","to":"user:ann:elsewhere"}'),
    "withdraw_rating": Asked(MEMORY, '{"memory_id":"MEMORY"}'),
    "settle_memory_pair": Asked(MEMORY, '{"memory_id":"MEMORY","other_id":"OTHER"}'),
    "memory_stats": Asked(MEMORY, '{"namespace":"user:ann"}', '"user:ann":'),
    "list_told": Asked(INTO_USER, "{}", "told-WORD"),
    "explain_search": Asked(MEMORY, '{"query":"WORD"}', "MARK"),
    "explain_documents": Asked(CORPUS, '{"query":"WORD","corpus":"CORPUS"}', "MARK"),
    "explain_session_search": Asked(SESSION, '{"session_id":"SESSION","query":"WORD"}', "MARK"),
    "explain_code": Asked(BY_SCOPE, '{"query":"document_of"}', "(off)"),
    "memory_map": Asked(MEMORY, '{"kind":"list"}', "WORD"),
    "set_preferences": Asked(MEMORY, '{"preferences":{}}', "MARK"),
    "import_memories": Asked(
        INTO_USER, '{"namespace":"user:ann","source":"{\\"key\\":\\"i\\",\\"content\\":\\"x\\"}"}'
    ),
    "export_memories": Asked(MEMORY, '{"namespace":"user:ann","filters":{"key":"WORD"}}', '"count":1'),
    "semantic_search": Asked(CORPUS, '{"query":"WORD","corpus":"CORPUS"}', "MARK"),
    "get_full_content": Asked(CORPUS, '{"chunk_ids":[CHUNK]}', "MARK"),
    "list_corpora": Asked(CORPUS, "{}", "CORPUS"),
    "ingest_documents": Asked(CORPUS, '{"texts":[{"path":"b.md","text":"x"}],"corpus":"CORPUS"}'),
    "define_entities": Asked(CORPUS, '{"entities":[{"name":"x","type":"vendor"}],"corpus":"CORPUS"}'),
    "browse_corpora": Asked(CORPUS, "{}", "CORPUS"),
    "list_documents": Asked(CORPUS, '{"corpus":"CORPUS"}', '"path":'),
    "list_entities": Asked(CORPUS, '{"corpus":"CORPUS"}', '"name":"WORD"'),
    "list_workspaces": Asked(CORPUS, "{}", '"user:ann:code-1"'),
    "list_workspace_files": Asked(CORPUS, '{"corpus":"user:ann:code-1"}', '"user:ann:code-1"'),
    "find_vendor_info": Asked(CORPUS, '{"vendor_filter":"WORD","corpus":"CORPUS"}', '"name":"WORD"'),
    "search_code_semantic": Asked(BY_SCOPE, '{"query":"document_of"}', '"state":"off"'),
    "dependency_search": Asked(BY_SCOPE, '{"target":"document_of"}', '"state":"off"'),
    "code_search": Asked(BY_SCOPE, '{"pattern":"function document_of"}', '"state":"off"'),
    "similar_files": Asked(BY_SCOPE, '{"path":"corpora.py"}', '"state":"off"'),
    "outline": Asked(BY_SCOPE, "{}", '"state":"off"'),
    "symbol_search": Asked(BY_SCOPE, '{"symbol":"document_of"}', '"state":"off"'),
    "read_file": Asked(BY_SCOPE, '{"path":"corpora.py"}', "def document_of"),
    "find_entity": Asked(CORPUS, '{"vendor_filter":"WORD","corpus":"CORPUS"}', '"name":"WORD"'),
    "suggest_entities": Asked(CORPUS, '{"corpus":"CORPUS"}'),
    "compress_text": Asked(BY_SCOPE, '{"text":"WORD","target_ratio":1}', "WORD"),
    "get_stats": Asked(BY_SCOPE, "{}", '"whose":"mine"'),
    "health_check": Asked(BY_SCOPE, "{}", '"worst":'),
    "record_workflow_step": Asked(SESSION, '{"session_id":"SESSION","command":"ls"}'),
    "get_workflow_patterns": Asked(STEPS, '{"context":["git pull"]}', '"git push"'),
    "suggest_next_action": Asked(STEPS, '{"context":["git pull"]}', '"git push"'),
    "workflow_checkpoint": Asked(STEPS, '{"name":"WORD"}', "MARK"),
    "get_audit_log": Asked(BY_SCOPE, "{}"),
    "create_api_key": Asked(BY_SCOPE, '{"name":"n","scopes":["memory:read"]}'),
    "list_api_keys": Asked(BY_SCOPE, "{}", "KEY"),
    "rotate_api_key": Asked(BY_SCOPE, '{"key_id":"KEY"}'),
    "revoke_api_key": Asked(BY_SCOPE, '{"key_id":"KEY"}'),
    "erase_user": Asked(BY_SCOPE, '{"user":"nobody"}'),
    "get_overview": Asked(BY_SCOPE, "{}", '"health":'),
    "get_own_key": Asked(BY_SCOPE, "{}", '"key":'),
    "list_people": Asked(BY_SCOPE, "{}", '"user":"ann"'),
    "end_browser": Asked(BY_SCOPE, '{"browser":"BROWSER"}', "BROWSER"),
    "get_audit_state": Asked(BY_SCOPE, "{}", '"gaps":'),
    "verify_audit": Asked(BY_SCOPE, "{}", '"is_intact":true'),
    "export_audit_log": Asked(BY_SCOPE, "{}", '"next_start":'),
}


def encoded(arguments: dict[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()


OF_SAMPLES = {samples.SESSION: "SESSION", samples.ENDED: "ENDED"}
ASKED |= {
    name: Asked(
        SESSION, msgspec.json.encode(given | {"session_id": OF_SAMPLES[given["session_id"]]}).decode()
    )
    for name, each in OPERATIONS.items()
    if each.route == "session" and name not in ASKED
    for given in [samples.arguments(name)]
}
"""What is asked of each tool; of one that is of a session alone: the sample of it, about that session."""


def verdicts() -> dict[str, dict[str, bool]]:
    """Return whom the page lets do what: by row and by reader."""
    found = {BY_SCOPE: dict.fromkeys(READERS, True)}
    for name in ("sight", "writing"):
        head, *rows = table(name)
        assert head[1:] == list(READERS)
        for what, *cells in rows:
            found[what] = dict(zip(READERS, (cell == "yes" for cell in cells), strict=True))
    return found


def test_everything_that_can_be_asked_is_asked_here() -> None:
    assert set(ASKED) == {*TOOLS, *CONSOLE_REQUESTS} == set(API_REQUESTS)
    assert {asked.row for asked in ASKED.values()} <= set(verdicts())
    assert set(READING) == set(RESOURCES)
    assert set(FILLED) == set(PROMPTS)


async def arranged(
    at: House, scribe: Agent, number: int, project: str = "p", namespace: str = "user:ann"
) -> dict[str, str]:
    """Let `scribe` make one thing of each kind; return what stands for what in `ASKED`."""
    word = f"zebra{number}stripes"
    names = {"WORD": word, "MARK": f"mark{number}", "SESSION": f"session-{number}"}
    names["ENDED"] = f"ended-{number}"
    text = f"{word} {names['MARK']}"
    await scribe.ask(CreateSession(purpose=word, session_id=names["SESSION"], project_id=project))
    await scribe.ask(AddMessage(session_id=names["SESSION"], content=text))
    names["PASSPORT"] = (await scribe.ask(ExportSession(session_id=names["SESSION"]))).passport_id
    await scribe.ask(CreateSession(purpose="p", session_id=names["ENDED"], project_id=project))
    await scribe.ask(EndSession(session_id=names["ENDED"]))
    await scribe.ask(SetMemory(key=f"kept-{word}", value=json(f'"{text}"')))
    stored = [StoreMemory(key=word, content=text), StoreMemory(key=f"{word}-twin", content="twin")]
    memory, twin = [await scribe.ask(msgspec.structs.replace(each, namespace=namespace)) for each in stored]
    await scribe.ask(UpdateMemory(memory_id=twin.memory_id, content=text))
    names |= {"MEMORY": memory.memory_id, "OTHER": twin.memory_id}
    names["FIRST"] = str(twin.version)  # rarely not 1: of a group of keys one may have ended before
    names["FORGOTTEN"] = (await scribe.ask(StoreMemory(content="gone", namespace=namespace))).memory_id
    await scribe.ask(ForgetMemory(memory_id=names["FORGOTTEN"]))
    await scribe.ask(RecallContext(task=f"told-{word}"))
    names["CORPUS"] = f"user:ann:docs-{number}"
    put = PutDocument(corpus=names["CORPUS"], document=document_of("a.md", [([], text)]))
    await ask_corpus(at.runtime, scribe.principal, put, make=True)
    [names["CHUNK"]] = map(str, await ids_in(at.runtime, names["CORPUS"], 1))
    declared = EntityDeclaration(name=word, type="vendor")
    await scribe.ask(DefineEntities(corpus=names["CORPUS"], entities=[declared]))
    await scribe.ask(SetPreferences(preferences=json(f'{{"theme":"{names["MARK"]}"}}')))
    await ensure_corpus(at.runtime, scribe.principal, "user:ann:code-1", "/home/ann/code")
    for command in ("git pull", "git push") * 2:
        await scribe.ask(RecordWorkflowStep(command=command))
    await scribe.ask(WorkflowCheckpoint(name=word, state=json(f'{{"a":"{text}"}}')))
    made = await at.agent("root").ask(CreateApiKey(name="n", scopes=["memory:read"]))
    names["BROWSER"] = f"{number:016x}"
    await at.runtime.ask(PRESENCE, TellPresence(process=process_with(names["BROWSER"])))
    return names | {"KEY": made.key.key_id}


def filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def asked_of(tool: str, names: dict[str, str]) -> Any:
    return parse_request(API_REQUESTS[tool], filled(ASKED[tool].arguments, names).encode())


async def answers(agent: Agent, tool: str, names: dict[str, str]) -> bool:
    """Return whether a tool tells of what is there."""
    reply = await finds(agent.ask(asked_of(tool, names)), CLOSED)
    return reply is not None and filled(ASKED[tool].shows, names) in msgspec.json.encode(reply).decode()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
async def test_every_tool_answers_everybody_as_the_page_says(enter: Enter, reader: str) -> None:
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        page = verdicts()
        for number, tool in enumerate(ASKED):
            names = await arranged(at, scribe, number)
            at.tick()
            whole = Agent(at.runtime, Principal(**READERS[reader]), reach=WORKSPACE)
            others = frozenset(SCOPES) - {NEEDED[tool]}
            without = Agent(at.runtime, Principal(**READERS[reader], scopes=others))
            with refused("PERMISSION_DENIED", scope=NEEDED[tool]):
                await without.ask(asked_of(tool, names))
            assert await answers(whole, tool, names) == page[ASKED[tool].row][reader], tool


# -- resources ---------------------------------------------------------------------------------------

READING = {
    "session": SESSION,
    "memory": KEPT,
    "export": KEPT,
    "passport": MEMORY,
    "preferences": MEMORY,
    "project": SESSION,
    "corpus": CORPUS,
    "workspace": CORPUS,
    "savings": BY_SCOPE,
    "workflow": STEPS,
}
"""What decides who reads a resource and who hears of it; what an agent has exported is its own alone."""
HEARING = {"memories": MEMORY}
"""The same of what is heard of and not read."""


@pytest.mark.parametrize("reader", READERS)
async def test_every_resource_is_read_and_heard_of_by_whom_the_page_says(enter: Enter, reader: str) -> None:
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        names, page = await arranged(at, scribe, 0), verdicts()
        steps = await scribe.ask(GetWorkflowPatterns())
        uris = {
            "session": f"session://{names['SESSION']}",
            "memory": "agent://scribe/memory",
            "export": (await scribe.ask(ExportMemories())).uri,
            "corpus": f"greenroom://corpus/{names['CORPUS']}",
            "preferences": "greenroom://user/ann/preferences",
            "project": "greenroom://project/p",
            "workspace": "greenroom://workspace/user:ann:code-1",
            "workflow": f"greenroom://workflows/{steps.patterns[0].pattern_id}",
            "passport": str((await scribe.ask(ExportSession(session_id=names["SESSION"]))).uri),
        }
        uris["savings"] = "greenroom://savings"
        heard_of = {"memories": "greenroom://memories/user:ann", **uris}
        whole = Agent(at.runtime, Principal(**READERS[reader]))
        for kind, uri in uris.items():
            without = Agent(
                at.runtime,
                Principal(**READERS[reader], scopes=frozenset(SCOPES) - {RESOURCES[kind]}),
            )
            with refused("PERMISSION_DENIED", scope=RESOURCES[kind]):
                await without.ask(ReadResource(uri=uri))
            with without.subscriber(0) as subscriber, refused("PERMISSION_DENIED", scope=RESOURCES[kind]):
                subscriber.add(uri)
            may = page[READING[kind]][reader]
            assert (await finds(whole.ask(ReadResource(uri=uri))) is not None) == may, kind
        for kind, change in (
            ("session", AddMessage(session_id=names["SESSION"], content="x")),
            ("memory", SetMemory(key="k", value=json("1"))),
            ("memories", StoreMemory(content="x")),
            ("preferences", SetPreferences(preferences=json('{"theme":"other"}'))),
            ("project", RecordContext(session_id=names["SESSION"], decisions=[DecisionMade(what="x")])),
        ):
            with whole.subscriber(0) as subscriber:
                subscriber.add(heard_of[kind])
                await scribe.ask(change)
                with trio.move_on_after(1) as scope:
                    await subscriber.next()
                assert scope.cancelled_caught != page[HEARING.get(kind) or READING[kind]][reader], kind


# -- prompts -----------------------------------------------------------------------------------------

FILLED = {
    "code": (BY_SCOPE, "def document_of"),
    "memory": (MEMORY, "## Remembered"),
    "session": (SESSION, "session SESSION"),
}
"""What decides who has a prompt filled with it, and what stands in one that is."""


@pytest.mark.parametrize("reader", READERS)
async def test_a_prompt_is_filled_for_everybody_with_what_the_page_says(enter: Enter, reader: str) -> None:
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        names, page = await arranged(at, scribe, 0), verdicts()
        asked = GetPrompt(name="explain-code", arguments={"path": "corpora.py", "symbol": names["WORD"]})
        for kind, (row, shows) in FILLED.items():
            whole = Agent(at.runtime, Principal(**READERS[reader]), reach=WORKSPACE)
            others = frozenset(SCOPES) - {PROMPTS[kind]}
            without = Agent(at.runtime, Principal(**READERS[reader], scopes=others), reach=WORKSPACE)
            for agent in (whole, without):
                await finds(agent.ask(StartSession(restore_from=names["SESSION"])), CLOSED)
            sentence = f"needs the scope {PROMPTS[kind]!r}"
            less, told = (await without.ask(asked)).text, (await whole.ask(asked)).text
            assert sentence in less
            assert sentence not in told
            assert filled(shows, names) not in less
            assert (filled(shows, names) in told) == page[row][reader], kind


# -- in a stranger's hands ---------------------------------------------------------------------------


async def test_what_somebody_was_answered_opens_nothing_to_whoever_was_told_it(enter: Enter) -> None:
    """Whoever shares a session may be told cursors, claims, links and keys: they carry no rights."""
    async with enter(embedder="none") as at:
        scribe = Agent(at.runtime, Principal(**READERS["itself"]))
        spy = Agent(at.runtime, Principal(**READERS["a user of another project"]))
        await scribe.ask(CreateSession(purpose="shared", session_id="open"))
        for number in range(3):
            at.tick()
            for visibility in ("private", "public"):
                said = AddMessage(session_id="open", content=f"{visibility} {number}", visibility=visibility)
                await scribe.ask(msgspec.structs.replace(said, idempotency_key=f"{visibility} {number}"))
            await scribe.ask(CreateSession(purpose="closed", session_id=f"closed-{number}", project_id="p"))
            await scribe.ask(StoreMemory(key=f"k{number}", content="hers"))

        page = await scribe.ask(GetMessages(session_id="open", limit=1))
        told = await spy.ask(GetMessages(session_id="open", cursor=page.next_cursor))
        assert {message.content.split()[0] for message in told.messages} == {"public"}
        listed = await scribe.ask(ListSessions(limit=1))
        others = await spy.ask(ListSessions(cursor=listed.next_cursor))
        assert {session.session_id for session in others.sessions} <= {"open"}
        memories = await scribe.ask(ListMemories(limit=1))
        for namespace in (None, "user:ann"):
            request = ListMemories(cursor=memories.next_cursor, namespace=namespace)
            found = await finds(spy.ask(request), CLOSED)
            assert found is None or found.memories == []

        repeated = AddMessage(session_id="open", content="private 0", idempotency_key="private 0")
        mine = await spy.ask(repeated)
        hers = await scribe.ask(GetMessages(session_id="open", visibility_filter="private"))
        assert mine.message_id not in {message.message_id for message in hers.messages}

        exported = await scribe.ask(ExportSession(session_id="closed-0"))
        handed = await scribe.ask(MigrateSession(session_id="closed-1", to_tool="zed"))
        for claim in (exported.claim, handed.claim):
            with pytest.raises(Refusal):
                await spy.ask(RestoreSession(passport=claim))
            clerk = Agent(at.runtime, Principal(**READERS["another agent of its user"]))
            assert (await clerk.ask(RestoreSession(passport=claim))).session_id
        for uri in (exported.uri, (await scribe.ask(ExportMemories())).uri):
            with refused("RESOURCE_NOT_FOUND"):
                await spy.ask(ReadResource(uri=uri))


def test_nobody_is_left_out() -> None:
    """Own agent, another agent of the same user, another user, another project, and a type in common."""
    shared: list[dict[str, Any]] = [READERS[name] for name in READERS]
    own, *others = shared
    assert {other["user"] == own["user"] for other in others} == {True, False}
    assert {other["projects"] == own["projects"] for other in others} == {True, False}
    assert {other.get("agent_type") == own["agent_type"] for other in others} == {True, False}
    assert all(other["agent_id"] != own["agent_id"] for other in others)
