"""The audit log over everything that there is to do: each deed and each denial leaves what the tables say.

The tables go by the registry of tools, so a tool that somebody adds has to say here what it leaves.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trio
from harness import PATIENCE
from support import samples
from support.agents import FAST
from support.agents import json as raw
from support.audits import CONTENT, SPOKEN, last_number, since
from support.corpora import document_of, ids_in

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateApiKey,
    CreateSession,
    EndSession,
    ExportMemories,
    ExportSession,
    Principal,
    PutDocument,
    Reach,
    ReadResource,
    SetMemory,
    StoreMemory,
    ask_corpus,
    is_write,
    open_greenroom,
)
from greenroom.actors.core.auth.scopes import SCOPES, needed_for_request
from greenroom.actors.core.operations import OPERATIONS
from greenroom.runtime import Refusal
from greenroom.testing import mcp_client
from greenroom.transports import TOOLS as LISTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from greenroom.actors import AuditRecord
    from greenroom.runtime import RuntimeClient

pytestmark = pytest.mark.promise("audit.records")

ALICE = Principal(
    agent_id="alice",
    agent_type="planner",
    user="ann",
    projects=frozenset({"p"}),
    key_id="KEYOFALICE22",
    address="192.0.2.7",
)
MALLORY = Principal(
    agent_id="mallory",
    agent_type="thief",
    user="mal",
    projects=frozenset({"q"}),
    key_id="KEYOFMALLORY",
    address="192.0.2.66",
)
TAGGED = raw(f'{{"tags": ["{CONTENT}"]}}')
PRIVATE = raw('{"scope": "private"}')
HERE = Reach(workspaces=(str(Path(__file__).parent),))
QUIET: dict[str, Any] = {"embedder": "none", "options": FAST}
TOOLS = {name: tool for name, tool in LISTED.items() if tool.alias is None}
"""All tools by their own names; who calls one by an older name asks the same."""


class World(NamedTuple):
    """What alice has made: a session of project p, memories, a key, exports."""

    memory_id: str
    plan_id: str
    message_id: int
    hidden_id: int
    key_id: str
    export: str
    passport: str
    claim: str
    chunk_id: int


async def made(runtime: RuntimeClient) -> World:
    alice = Agent(runtime, ALICE)
    await alice.ask(CreateSession(purpose=CONTENT, session_id="s", project_id="p"))
    await alice.ask(CreateSession(purpose=CONTENT, session_id="open"))
    await alice.ask(CreateSession(purpose=CONTENT, session_id="ended", project_id="p"))
    await alice.ask(EndSession(session_id="ended"))
    said = await alice.ask(AddMessage(session_id="s", content=CONTENT))
    hidden = await alice.ask(AddMessage(session_id="open", content=CONTENT, visibility="private"))
    stored = await alice.ask(StoreMemory(content=CONTENT, key="hill", metadata=TAGGED))
    plan = await alice.ask(StoreMemory(content=CONTENT, key="plan", namespace="team:x", metadata=PRIVATE))
    await alice.ask(SetMemory(key="k", value=raw(f'"{CONTENT}"')))
    key = await alice.ask(CreateApiKey(name=CONTENT, scopes=["sessions:read"]))
    export = await alice.ask(ExportMemories())
    passport = await alice.ask(ExportSession(session_id="s"))
    document = document_of("hill.md", [([CONTENT], CONTENT)])
    await ask_corpus(runtime, ALICE, PutDocument(corpus="docs", document=document), make=True)
    return World(
        stored.memory_id,
        plan.memory_id,
        said.message_id,
        hidden.message_id,
        key.key.key_id,
        export.uri,
        passport.uri,
        passport.claim,
        *await ids_in(runtime, "docs", 1),
    )


def check_who(records: list[AuditRecord], principal: Principal) -> None:
    for record in records:
        assert (record.agent, record.agent_type, record.user, record.key_id, record.address) == (
            principal.agent_id,
            principal.agent_type,
            principal.user,
            principal.key_id,
            principal.address,
        ), record


# -- what is done --------------------------------------------------------------------------------------


class Deed(NamedTuple):
    """How a tool is called, and what that leaves.

    Attributes:
        arguments: Made of the world.
        leaves: The actions of the records, in order; more than one where several actors change something.
        names: Where the first of them says what it was about.
        size: Where it says how much it was.
    """

    arguments: Callable[[World], dict[str, Any]]
    leaves: tuple[str, ...] = ()
    names: str | None = None
    size: str | None = None


def line(**more: str) -> str:
    return msgspec.json.encode({"key": "cave", "content": CONTENT, **more}).decode()


FIND = {"query": CONTENT}
IN_S = {"session_id": "s"}
SINCE = {"start_time": "2000-01-01T00:00:00Z", "end_time": "2100-01-01T00:00:00Z"}
DEEDS: dict[str, Deed] = {
    "create_session": Deed(
        lambda _: {"purpose": CONTENT, "metadata": {"m": CONTENT}}, ("create_session",), "session_id"
    ),
    "update_session": Deed(
        lambda _: {**IN_S, "metadata": {"m": CONTENT}}, ("update_session",), "session_id", "metadata_keys"
    ),
    "add_message": Deed(
        lambda _: {**IN_S, "content": CONTENT, "metadata": {"m": CONTENT}},
        ("add_message",),
        "session_id",
        "characters",
    ),
    "search_context": Deed(lambda _: {**IN_S, **FIND}, ("search_context",), "session_id", "query_characters"),
    "search_by_sender": Deed(
        lambda _: {**IN_S, "sender": "alice"}, ("search_by_sender",), "session_id", "found"
    ),
    "search_by_timerange": Deed(lambda _: {**IN_S, **SINCE}, ("search_by_timerange",), "session_id", "found"),
    "record_context": Deed(
        lambda _: {**IN_S, "recent_searches": [CONTENT], "decisions": [{"what": CONTENT, "why": CONTENT}]},
        ("record_context",),
        "session_id",
        "searches",
    ),
    "end_session": Deed(lambda _: {**IN_S, "summary": CONTENT}, ("update_session",), "session_id"),
    "set_memory": Deed(lambda _: {"key": "new", "value": CONTENT}, ("set_memory",), "key", "value_size"),
    "delete_memory": Deed(lambda _: {"key": "k"}, ("delete_memory",), "key"),
    "store_memory": Deed(
        lambda _: {"content": CONTENT, "key": "new", "metadata": {"m": CONTENT}},
        ("store_memory",),
        "namespace",
        "value_size",
    ),
    "set_preferences": Deed(
        lambda _: {"preferences": {"mine": CONTENT}}, ("set_preferences",), "version", "bytes"
    ),
    "update_memory": Deed(
        lambda world: {"memory_id": world.memory_id, "content": CONTENT},
        ("update_memory",),
        "key",
        "value_size",
    ),
    "rate_memory": Deed(
        lambda world: {"memory_id": world.memory_id, "rating": 1, "note": CONTENT},
        ("rate_memory",),
        "key",
        "rating",
    ),
    "forget_memory": Deed(lambda world: {"memory_id": world.memory_id}, ("forget_memory",), "key", "purged"),
    "memory_search": Deed(lambda _: FIND, ("search_memories",), "namespace", "query_characters"),
    "retrieve_memory": Deed(lambda _: FIND, ("search_memories",), "namespace", "query_characters"),
    "recall_context": Deed(lambda _: {"task": CONTENT}, ("search_memories",), "namespace", "found"),
    "import_memories": Deed(
        lambda _: {"source": line()}, ("decide_import", "import_memories"), "roots", "roots"
    ),
    "export_memories": Deed(lambda _: {}, ("export_memories",), "namespace", "bytes"),
    "start_session": Deed(
        lambda _: {
            "project_id": "p",
            "workspace_path": f"/home/{CONTENT}",
            "purpose": CONTENT,
            "new": True,
        },
        ("create_session",),
        "session_id",
    ),
    "restore_session": Deed(lambda _: IN_S, ("migrate_session",), "session_id"),
    "migrate_session": Deed(
        lambda _: {**IN_S, "to_tool": "zed", "note": CONTENT}, ("migrate_session",), "session_id"
    ),
    "export_session": Deed(
        lambda _: {**IN_S, "include_memories": True, "passphrase": SPOKEN},
        ("export_session", "keep_passport"),
        "session_id",
        "messages",
    ),
    "get_audit_log": Deed(lambda _: {"agent": "alice"}, ("get_audit_log",), "filters"),
    "create_api_key": Deed(
        lambda _: {"name": CONTENT, "scopes": ["memory:*"]}, ("create_api_key",), "key", "scopes"
    ),
    "list_api_keys": Deed(lambda _: {}, ("list_api_keys",), None, "keys"),
    "rotate_api_key": Deed(lambda world: {"key_id": world.key_id}, ("rotate_api_key",), "key"),
    "revoke_api_key": Deed(lambda world: {"key_id": world.key_id}, ("revoke_api_key",), "key"),
    "erase_user": Deed(lambda _: {"user": CONTENT}, ("erase_user",), None, "confirm"),
    "semantic_search": Deed(
        lambda _: {**FIND, "corpus": "docs"}, ("semantic_search",), "corpus", "query_characters"
    ),
    "get_full_content": Deed(
        lambda world: {"chunk_ids": [world.chunk_id]}, ("get_full_content",), "corpus", "found"
    ),
    "search_code_semantic": Deed(lambda _: FIND, ("create_corpus", "search_code_semantic"), "corpus"),
    "ingest_documents": Deed(
        lambda _: {"texts": [{"path": "b.md", "text": CONTENT}], "corpus": "docs"},
        ("ingest_documents",),
        "corpus",
        "added",
    ),
    "find_vendor_info": Deed(
        lambda _: {"vendor_filter": CONTENT, "corpus": "docs"},
        ("find_vendor_info", "suggest_entities"),  # why nothing was found is looked up, too
        "corpus",
        "found",
    ),
    "find_entity": Deed(
        lambda _: {"vendor_filter": CONTENT, "corpus": "docs"},
        ("find_entity", "suggest_entities"),
        "corpus",
        "found",
    ),
    "suggest_entities": Deed(lambda _: {"corpus": "docs"}, ("suggest_entities",), "corpus", "documents"),
    "define_entities": Deed(
        lambda _: {"entities": [{"name": CONTENT, "type": "vendor"}], "corpus": "docs"},
        ("define_entities",),
        "corpus",
        "added",
    ),
    "record_workflow_step": Deed(
        lambda _: {"command": f"echo {CONTENT}", **IN_S}, ("record_workflow_step",), "session_id", "passed"
    ),
    "get_workflow_patterns": Deed(lambda _: IN_S, ("get_workflow_patterns",), None, "results"),
    "suggest_next_action": Deed(lambda _: IN_S, ("suggest_next_action",), None, "results"),
    "workflow_checkpoint": Deed(
        lambda _: {"name": "n", "state": {"a": CONTENT}, **IN_S},
        ("workflow_checkpoint",),
        "session_id",
        "bytes",
    ),
    # Reading what one may see by its name, and listing, is in no log.
    "dependency_search": Deed(lambda _: {"target": "hill"}, ("create_corpus",), "corpus"),
    "code_search": Deed(lambda _: {"pattern": "function hill"}, ("create_corpus",), "corpus"),
    "similar_files": Deed(lambda _: {"path": Path(__file__).name}, ("create_corpus",), "corpus"),
    "outline": Deed(lambda _: {}, ("create_corpus",), "corpus"),
    "symbol_search": Deed(lambda _: {"symbol": "hill"}, ("create_corpus",), "corpus"),
    "read_file": Deed(lambda _: {"path": Path(__file__).name}),
    "get_memory": Deed(lambda _: {"key": "k"}),
    "list_memory_versions": Deed(lambda world: {"memory_id": world.memory_id}),
}


def deed_of(tool: str) -> Deed:
    """Return what the table says of a tool, or that it leaves its own record if it changes a session."""
    if tool in DEEDS:
        return DEEDS[tool]
    each = OPERATIONS[tool]
    leaves = (tool,) if is_write(each.request) else ()
    return Deed(
        lambda _: samples.arguments(tool, text=CONTENT),
        leaves,
        "session_id" if leaves and each.route == "session" else None,
    )


def denials_of(tool: str) -> list[Denial]:
    """Return the denials that the table has of a tool, or that of what is asked of a hidden session."""
    usual = [Denial(deed_of(tool).arguments)] if OPERATIONS[tool].route == "session" else []
    return DENIALS.get(tool, usual)


async def called(runtime: RuntimeClient, principal: Principal, tool: str, arguments: dict[str, Any]) -> Any:
    async with mcp_client(lambda _: Agent(runtime, principal, reach=HERE)) as client:
        await client.initialize()
        return await client.call(tool, **arguments)


@pytest.mark.parametrize("tool", list(TOOLS))
async def test_what_a_tool_does_leaves_its_records_and_no_others(folder: Path, tool: str) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        before = await last_number(runtime)
        deed = deed_of(tool)
        answer = await called(runtime, ALICE, tool, deed.arguments(world))
        assert answer["success"], answer
        records = await since(runtime, before)
        assert [record.action for record in records] == list(deed.leaves)
        times = 2 if tool == "suggest_entities" else 1  # again with fewer filters: why there is nothing
        assert [(record.outcome, record.times) for record in records] == [("done", times)] * len(deed.leaves)
        check_who(records, ALICE)
        if deed.names is not None:
            said = {**records[0].details, "session_id": records[0].session_id}
            assert deed.names in said
        if deed.size is not None:
            assert records[0].details[deed.size] is not None
        if "api_key" in answer:
            assert answer["api_key"].rpartition("_")[2] not in msgspec.json.encode(records).decode()


async def test_reading_a_resource_leaves_a_record(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        before = await last_number(runtime)
        alice = Agent(runtime, ALICE)
        uris = (world.export, world.passport)
        read: list[Any] = [await alice.ask(ReadResource(uri=uri)) for uri in uris]
        sizes = [len(each.text) for each in read]
        session: Any = await alice.ask(ReadResource(uri="session://s"))
        memory: Any = await alice.ask(ReadResource(uri="agent://alice/memory"))
        messages, entries = len(session.messages), memory.counts.total
        records = await since(runtime, before)
        check_who(records, ALICE)
        assert [(each.action, each.details) for each in records] == [
            ("read_resource", {"target": world.export.removeprefix("greenroom://"), "characters": sizes[0]}),
            (
                "read_resource",
                {"target": world.passport.removeprefix("greenroom://"), "characters": sizes[1]},
            ),
            ("read_resource", {"messages": messages}),
            ("read_resource", {"target": "memory/alice", "entries": entries}),
        ]
        assert [each.session_id for each in records] == [None, None, "s", None]


def _same(agent: Agent, _name: str) -> Agent:
    return agent


async def test_a_resource_that_is_read_over_the_relay_leaves_a_record_whichever_way_it_is_asked_for(
    folder: Path,
) -> None:
    async with open_greenroom(folder, **QUIET) as owner, open_greenroom(folder, **QUIET) as attached:
        assert attached.role == "attached"
        await made(owner)
        before = await last_number(owner)
        for runtime in (owner, attached):
            agent = Agent(runtime, ALICE)
            async with mcp_client(partial(_same, agent)) as client:
                await client.initialize()
                for more in ({}, {"_meta": {"progressToken": 1}, "odd": True}):  # which the SDK answers
                    read = await client.request("resources/read", {"uri": "session://s", **more})
                    assert "result" in read
        records: list[AuditRecord] = []
        with trio.fail_after(PATIENCE):
            while sum(each.times for each in records) < 4:
                records = await since(owner, before)
        assert {(each.action, each.session_id, each.outcome) for each in records} == {
            ("read_resource", "s", "done")
        }
        assert CONTENT not in msgspec.json.encode(records).decode()
        check_who(records, ALICE)


async def test_a_passport_that_is_restored_leaves_a_record_of_each_actor_that_it_changes(
    folder: Path,
) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        before = await last_number(runtime)
        restored = await called(runtime, ALICE, "restore_session", {"passport": world.claim})
        assert restored["success"], restored
        records = await since(runtime, before)
        assert [each.action for each in records] == ["redeem_passport", "migrate_session"]
        assert {each.session_id for each in records} == {"s"}
        await called(runtime, ALICE, "end_session", IN_S)
        before = await last_number(runtime)
        restored = await called(runtime, ALICE, "restore_session", {"passport": world.claim})
        records += await since(runtime, before)
        assert [each.action for each in records[2:]] == ["redeem_passport", "restore_session"]
        assert {each.session_id for each in records[2:]} == {restored["session_id"]}
        check_who(records, ALICE)


async def test_a_start_that_takes_a_session_up_leaves_the_record_of_that(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        await made(runtime)
        before = await last_number(runtime)
        began = await called(runtime, ALICE, "start_session", {"project_id": "p"})
        assert began["session_id"] == "s"
        (record,) = await since(runtime, before)
        check_who([record], ALICE)
        assert (record.action, record.session_id) == ("migrate_session", "s")
        assert record.details == {"outcome": "resumed", "tool": "alice"}


async def test_a_sender_is_named_who_is_there(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        await made(runtime)
        before = await last_number(runtime)
        for sender in ("alice", CONTENT):
            await called(runtime, ALICE, "search_by_sender", {**IN_S, "sender": sender})
        named, unnamed = await since(runtime, before)
        assert named.details == {"found": 1, "sender": "alice"}
        assert unnamed.details == {"found": 0}


async def test_nothing_done_leaves_nothing(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        await made(runtime)
        before = await last_number(runtime)
        await called(runtime, ALICE, "delete_memory", {"key": "was never there"})
        await called(runtime, ALICE, "import_memories", {"source": line(), "dry_run": True})
        for key in ("same", "same"):
            arguments = {"key": "once", "value": 1, "idempotency_key": key}
            await called(runtime, ALICE, "set_memory", arguments)
        assert [each.action for each in await since(runtime, before)] == ["set_memory"]


# -- what is denied ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", list(TOOLS))
async def test_a_missing_scope_leaves_one_record(folder: Path, tool: str) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        needed = needed_for_request(tool)
        principal = msgspec.structs.replace(ALICE, scopes=frozenset(SCOPES) - {needed})
        before = await last_number(runtime)
        arguments = deed_of(tool).arguments(world)
        answer = await called(runtime, principal, tool, arguments)
        assert answer["code"] == "PERMISSION_DENIED"
        (record,) = await since(runtime, before)
        check_who([record], ALICE)
        assert (record.action, record.outcome, record.times) == (tool, "denied", 1)
        assert record.session_id == arguments.get("session_id")
        assert record.details == {"code": "PERMISSION_DENIED", "scope": needed}


class Denial(NamedTuple):
    """What mallory tries, and what the one record of it says."""

    arguments: Callable[[World], dict[str, Any]]
    code: str = "SESSION_NOT_FOUND"
    action: str | None = None
    """Where it is not the tool's name."""


BY_ID: Callable[[World], dict[str, Any]] = lambda world: {"memory_id": world.memory_id}  # noqa: E731
ANNS = {"key": "hill", "namespace": "user:ann"}
NONE = "MEMORY_NOT_FOUND"
DENIED = "PERMISSION_DENIED"
DENIALS: dict[str, list[Denial]] = {
    "create_session": [
        Denial(lambda _: {"purpose": CONTENT, "project_id": "p"}, DENIED),
        Denial(lambda _: {"purpose": CONTENT, "user_id": "ann"}, DENIED),
        Denial(lambda _: {"purpose": CONTENT, "session_id": "s"}, "KEY_EXISTS"),
    ],
    "search_context": [Denial(lambda _: {**IN_S, **FIND})],
    "add_message": [
        Denial(lambda _: {**IN_S, "content": CONTENT}),
        Denial(
            lambda world: {
                "session_id": "open",
                "content": CONTENT,
                "parent_message_id": world.hidden_id,
            },
            "PARENT_MESSAGE_NOT_FOUND",
        ),
    ],
    "set_memory": [Denial(lambda _: {**IN_S, "key": "k", "value": CONTENT}, action="see_session")],
    "store_memory": [
        Denial(lambda _: {"content": CONTENT, "namespace": "user:ann"}, DENIED),
        Denial(lambda _: {"content": CONTENT, "namespace": "project:p"}, DENIED),
        Denial(lambda world: {"content": CONTENT, "namespace": "team:x", "supersedes": world.plan_id}, NONE),
    ],
    "update_memory": [
        Denial(lambda world: {**BY_ID(world), "content": CONTENT}, NONE),
        Denial(lambda _: {**ANNS, "content": CONTENT}, NONE),
        Denial(lambda _: {"key": "plan", "namespace": "team:x", "content": CONTENT}, NONE),
    ],
    "rate_memory": [
        Denial(lambda world: {**BY_ID(world), "rating": 1}, NONE),
        Denial(lambda _: {**ANNS, "rating": 1}, NONE),
    ],
    "forget_memory": [
        Denial(BY_ID, NONE),
        Denial(lambda _: ANNS, DENIED),
        Denial(lambda _: {"key": "plan", "namespace": "team:x"}, NONE),
    ],
    "list_memory_versions": [
        Denial(BY_ID, NONE),
        Denial(lambda _: {"key": "plan", "namespace": "team:x"}, NONE),
    ],
    "import_memories": [
        Denial(lambda _: {"source": line(namespace="user:ann")}, "VALIDATION_ERROR"),
        Denial(lambda _: {"source": line(), "namespace": "project:p", "dry_run": True}, "VALIDATION_ERROR"),
    ],
    "start_session": [
        Denial(lambda _: {"project_id": "p"}, DENIED),
        Denial(lambda _: {"user_id": "ann"}, DENIED),
        Denial(lambda _: {"restore_from": "s"}, action="migrate_session"),
    ],
    "restore_session": [
        Denial(lambda _: IN_S, action="migrate_session"),
        Denial(lambda world: {"passport": world.claim}, DENIED),
        Denial(lambda _: {"passport": "GREENROOM:C1:forged"}, "PASSPORT_INVALID"),
    ],
    "migrate_session": [Denial(lambda _: {**IN_S, "to_tool": "zed"})],
    "export_session": [Denial(lambda _: IN_S)],
    "record_workflow_step": [Denial(lambda _: {"command": "ls", **IN_S})],
    "get_workflow_patterns": [Denial(lambda _: IN_S)],
    "suggest_next_action": [Denial(lambda _: IN_S)],
    "workflow_checkpoint": [Denial(lambda _: {"name": "n", **IN_S})],
    "semantic_search": [Denial(lambda _: {**FIND, "corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")],
    "ingest_documents": [
        Denial(
            lambda _: {"texts": [{"path": "b.md", "text": CONTENT}], "corpus": "user:ann:docs"},
            "CORPUS_NOT_FOUND",
        ),
        Denial(lambda _: {"paths": ["/etc/hosts"]}, DENIED),
    ],
    "read_file": [
        Denial(lambda _: {"path": "/etc/hosts"}, DENIED),
        Denial(lambda _: {"path": "data/.env"}, DENIED),
    ],
    "dependency_search": [Denial(lambda _: {"target": "../.."}, DENIED)],
    "code_search": [Denial(lambda _: {"pattern": "function hill", "scope": "../.."}, DENIED)],
    "similar_files": [Denial(lambda _: {"path": "../.."}, DENIED)],
    "outline": [Denial(lambda _: {"path": "../.."}, DENIED)],
    "search_code_semantic": [Denial(lambda _: {**FIND, "scope": "../.."}, DENIED)],
    "get_full_content": [Denial(lambda _: {"chunk_ids": [1], "corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")],
    "find_vendor_info": [
        Denial(lambda _: {"vendor_filter": "*", "corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")
    ],
    "find_entity": [Denial(lambda _: {"vendor_filter": "*", "corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")],
    "suggest_entities": [Denial(lambda _: {"corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")],
    "define_entities": [Denial(lambda _: {"corpus": "user:ann:docs"}, "CORPUS_NOT_FOUND")],
}
NOBODY_IS_DENIED = frozenset(
    {
        # Who asks for these sees what is theirs, and nothing of others: lists, searches, counts.
        *("list_sessions", "list_memory", "list_memories", "memory_stats", "get_memory", "delete_memory"),
        *("memory_search", "retrieve_memory", "recall_context", "export_memories", "list_corpora"),
        *("symbol_search", "get_stats", "set_preferences"),
        # These are about nothing of anybody's.
        *("compress_text", "health_check"),
        # For these there are scopes alone.
        *("get_audit_log", "create_api_key", "list_api_keys", "rotate_api_key", "revoke_api_key"),
        "erase_user",
    }
)


def test_every_tool_says_how_it_is_denied() -> None:
    assert {tool for tool in TOOLS if not denials_of(tool)} == NOBODY_IS_DENIED


@pytest.mark.parametrize("tool", sorted(TOOLS.keys() - NOBODY_IS_DENIED))
async def test_a_denial_by_user_project_or_partition_leaves_one_record(folder: Path, tool: str) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        for denial in denials_of(tool):
            before = await last_number(runtime)
            arguments = denial.arguments(world)
            answer = await called(runtime, MALLORY, tool, arguments)
            assert answer["code"] == denial.code, answer
            (record,) = await since(runtime, before)
            check_who([record], MALLORY)
            assert (record.action, record.outcome, record.times) == (denial.action or tool, "denied", 1)
            about = (record.session_id, record.details.get("target"), record.details.get("namespace"))
            assert any(about) or "field" in record.details or "code" in record.details


async def test_an_id_that_a_hidden_session_has_is_refused_like_any_that_is_taken(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        await made(runtime)
        before = await last_number(runtime)
        hidden, seen = [
            await called(runtime, MALLORY, "create_session", {"purpose": CONTENT, "session_id": session_id})
            for session_id in ("ended", "open")
        ]
        assert hidden["code"] == "KEY_EXISTS"
        assert hidden == json.loads(json.dumps(seen).replace("open", "ended"))
        (record,) = await since(runtime, before)
        assert (record.session_id, record.outcome) == ("ended", "denied")


@pytest.mark.parametrize("tool", sorted(TOOLS.keys() - NOBODY_IS_DENIED))
async def test_the_same_of_what_is_not_there_leaves_none(folder: Path, tool: str) -> None:
    """A mistake is no denial, whatever it is answered."""
    nowhere = {"session_id": "nowhere", "memory_id": None, "passport": None, "restore_from": None}
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        for denial in denials_of(tool):
            arguments = {
                name: nowhere.get(name, value) or value for name, value in denial.arguments(world).items()
            }
            if denial.code != "SESSION_NOT_FOUND" or "session_id" not in arguments:
                continue
            before = await last_number(runtime)
            answer = await called(runtime, MALLORY, tool, arguments)
            assert answer["code"] == denial.code, answer
            assert await since(runtime, before) == []


async def test_a_denied_resource_leaves_one_record(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as runtime:
        world = await made(runtime)
        blind = msgspec.structs.replace(MALLORY, scopes=frozenset({"admin"}))
        for uri in ("session://s", "agent://alice/memory", world.export, world.passport):
            for principal, code in ((MALLORY, "RESOURCE_NOT_FOUND"), (blind, DENIED)):
                before = await last_number(runtime)
                with pytest.raises(Refusal) as caught:
                    await Agent(runtime, principal).ask(ReadResource(uri=uri))
                assert caught.value.code == code
                (record,) = await since(runtime, before)
                check_who([record], MALLORY)
                assert (record.action, record.outcome, record.times) == ("read_resource", "denied", 1)
                assert record.session_id or record.details["target"]


async def test_denials_over_the_relay_leave_one_record_each(folder: Path) -> None:
    async with open_greenroom(folder, **QUIET) as owner, open_greenroom(folder, **QUIET) as attached:
        assert attached.role == "attached"
        world = await made(owner)
        mallory = Agent(attached, MALLORY)
        asked = 0
        for tool in ("get_session", "set_memory", "store_memory", "import_memories", "start_session"):
            for denial in denials_of(tool):
                request = TOOLS[tool].parse(msgspec.json.encode(denial.arguments(world)))
                with pytest.raises(Refusal):
                    await mallory.ask(request)
                asked += 1
        records: list[AuditRecord] = []
        with trio.fail_after(PATIENCE):  # what an attached process tells is on its way
            while sum(each.times for each in records) < asked:
                records = [each for each in await since(attached, 0) if each.outcome == "denied"]
        assert sum(each.times for each in records) == asked
        check_who(records, MALLORY)
