"""What one tool answers the next one takes: every pair of tools of which one has what the other takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from support import samples
from support.agents import FAST

from greenroom.actors import REQUESTS, Agent, Principal, Reach, open_greenroom, parse_request
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.runtime import Refusal, reply_type

pytestmark = [pytest.mark.promise("mcp.identifiers"), pytest.mark.slow]

Call = tuple[str, dict[str, Any]]
NEXT: Any = object()
"""Stands in the arguments for the identifier."""


class World(NamedTuple):
    """A store with a workspace and a corpus, and an agent at work in it."""

    agent: Agent
    numbers: Iterator[int]

    async def call(self, tool: str, **arguments: Any) -> Any:
        request = parse_request(REQUESTS[tool], msgspec.json.encode(arguments))
        return msgspec.json.decode(msgspec.json.encode(await self.agent.ask(request)))


class Identifier(msgspec.Struct, frozen=True):
    """One kind of identifier.

    Attributes:
        members: As members of answers.
        parameters: As parameters.
        made: The calls that make something anew, with an unused name in the place of "NEW".
        producers: By tool: its arguments, with that name, and where its answer has the identifier; a number
            is a place in a list.
        takers: By tool: its arguments, once or several times.
        before: What some takers want to be done first.
        excused: Tools that have or take it, and are no part of a pair, with the reason.
    """

    members: set[str]
    parameters: set[str]
    made: tuple[Call, ...]
    producers: dict[str, tuple[dict[str, Any], str]]
    takers: dict[str, tuple[dict[str, Any], ...]]
    before: dict[str, Call] = {}
    excused: dict[str, str] = {}


MADE_MEMORY: tuple[Call, ...] = (("store_memory", {"key": "NEW", "content": "the NEW lighthouse"}),)
GONE = "it is gone then"
OF_MEMORY: dict[str, tuple[dict[str, Any], str]] = {
    "store_memory": ({"key": "NEW", "content": "again"}, ""),
    "update_memory": ({"key": "NEW", "content": "changed"}, ""),
    "rate_memory": ({"key": "NEW", "rating": 1}, ""),
    "list_memories": ({}, "memories.0."),
    "memory_search": ({"query": "NEW lighthouse", "mode": "exact"}, "memories.0."),
    "retrieve_memory": ({"key": "NEW"}, "memories.0."),
    "recall_context": ({"task": "the NEW lighthouse"}, "memories.0."),
    "get_session_context": ({}, "context.memories.0."),
}
TAKES_MEMORY: dict[str, tuple[dict[str, Any], ...]] = {
    "get_memory": ({},),
    "retrieve_memory": ({},),
    "list_memory_versions": ({},),
    "rate_memory": ({"rating": -1},),
    "update_memory": ({"content": "anew"},),
}
EXCUSED_OF_MEMORY = {
    "forget_memory": GONE,
    "memory_stats": "it lists what was used most",
    "find_entity": "it lists memories of entities that are declared",
    "start_session": "as get_session_context",
    "restore_session": "as get_session_context",
}


def of_memory(member: str) -> dict[str, tuple[dict[str, Any], str]]:
    return {tool: (arguments, where + member) for tool, (arguments, where) in OF_MEMORY.items()}


def taking(parameter: str, takers: dict[str, tuple[dict[str, Any], ...]]) -> dict[str, Any]:
    return {tool: tuple({parameter: NEXT, **each} for each in calls) for tool, calls in takers.items()}


A_SPAN = {"start_time": "2020-01-01", "end_time": "2099-01-01"}
OF_SESSION = [
    name
    for name, each in REQUESTS.items()
    if "session_id" in each.__struct_fields__ and name != "create_session"
]


def about_session(name: str) -> dict[str, Any]:
    """Return the arguments of a call but the session; a key of one's own is that which is kept in it."""
    given = {key: value for key, value in samples.arguments(name).items() if key != "session_id"}
    return given | ({"key": "bound"} if "key" in given else {})


TURNED = {
    "end_session": "it takes no more writes then",
    "reopen_session": "its session was ended before",
}
THE_SESSION = {"session_id": "NEW"}
TAKES_PATH: dict[str, tuple[dict[str, Any], ...]] = {
    tool: ({"path": NEXT}, {"file_path": NEXT})
    for tool in ("read_file", "outline", "similar_files", "dependency_search")
}

IDENTIFIERS: dict[str, Identifier] = {
    "memory_id": Identifier(
        {"memory_id"},
        {"memory_id"},
        MADE_MEMORY,
        {**of_memory("memory_id"), "list_memory_versions": ({"key": "NEW"}, "versions.0.memory_id")},
        taking("memory_id", {**TAKES_MEMORY, "forget_memory": ({},), "delete_memory": ({},)}),
        excused=EXCUSED_OF_MEMORY,
    ),
    "key of a memory": Identifier(
        {"key"},
        {"key"},
        MADE_MEMORY,
        {**of_memory("key"), "get_memory": ({"key": "NEW"}, "key")},
        taking("key", {**TAKES_MEMORY, "store_memory": ({"content": "anew"},), "forget_memory": ({},)}),
        excused={
            **EXCUSED_OF_MEMORY,
            **dict.fromkeys(("create_api_key", "rotate_api_key", "revoke_api_key"), "of another kind"),
            "set_memory": "the other family",
            "list_memory": "the other family",
            "delete_memory": "it removes nothing of the other family",
        },
    ),
    "key of one's own": Identifier(
        {"key"},
        {"key"},
        (("set_memory", {"key": "NEW", "value": 1}),),
        {
            "set_memory": ({"key": "NEW", "value": 2}, "key"),
            "get_memory": ({"key": "NEW"}, "key"),
            "list_memory": ({}, "entries.0.key"),
        },
        taking("key", {**TAKES_MEMORY, "set_memory": ({"value": 3},), "delete_memory": ({},)}),
        excused={
            **dict.fromkeys((*OF_MEMORY, "forget_memory"), "the other family"),
            "delete_memory": GONE,
            **dict.fromkeys(("create_api_key", "rotate_api_key", "revoke_api_key"), "of another kind"),
            **EXCUSED_OF_MEMORY,
        },
    ),
    "session_id": Identifier(
        {"session_id"},
        {"session_id"},
        (
            ("create_session", {"purpose": "p", "session_id": "NEW"}),
            ("set_memory", {"key": "bound", "value": "NEW", "session_id": "NEW"}),
        ),
        {
            "create_session": ({"purpose": "p"}, "session_id"),
            "list_sessions": ({}, "sessions.0.session_id"),
            "get_session": (THE_SESSION, "session.session_id"),
            "update_session": ({**THE_SESSION, "metadata": {"a": 1}}, "session.session_id"),
            "start_session": ({"restore_from": "NEW"}, "session_id"),
            **{
                name: ({**about_session(name), **THE_SESSION}, "session_id")
                for name in OF_SESSION
                if "session_id" in reply_type(REQUESTS[name]).__struct_fields__ and name not in TURNED
            },
            "list_memory": ({"session_id": "all"}, "entries.0.session_id"),
            "list_memories": ({"namespace": "agent:a"}, "memories.0.session_id"),
            "memory_search": (
                {"query": "NEW", "mode": "exact", "namespace": "agent:a"},
                "memories.0.session_id",
            ),
        },
        {
            **taking("session_id", {name: (about_session(name),) for name in OF_SESSION}),
            "start_session": ({"restore_from": NEXT},),
        },
        before={
            "get_memory": ("set_memory", {"key": "bound", "value": 1, "session_id": NEXT}),
            "reopen_session": ("end_session", {"session_id": NEXT}),
        },
        excused={
            "retrieve_memory": "as memory_search",
            "find_entity": "of entities that are declared",
            "get_audit_log": "its newest record is of another session",
            **TURNED,
        },
    ),
    "message_id": Identifier(
        {"message_id"},
        {"parent_message_id", "since_id"},
        (
            ("create_session", {"purpose": "p", "session_id": "NEW"}),
            ("restore_session", {"session_id": "NEW"}),
            ("add_message", {"content": "hello"}),
        ),
        {
            "add_message": ({"content": "hello"}, "message_id"),
            "get_messages": ({}, "messages.0.message_id"),
            "get_session": ({}, "messages.0.message_id"),
            "search_context": ({"query": "hello"}, "results.0.message.message_id"),
            "search_by_sender": ({"sender": "a"}, "messages.0.message_id"),
            "search_by_timerange": (A_SPAN, "messages.0.message_id"),
        },
        {
            "add_message": ({"content": "an answer", "parent_message_id": NEXT},),
            "get_messages": ({"since_id": NEXT},),
        },
    ),
    "path": Identifier(
        {"path", "file_path"},
        {"path", "target"},
        (),
        {
            "search_code_semantic": ({"query": "drop anchor depth"}, "results.0.file_path"),
            "symbol_search": ({"symbol": "drop_anchor"}, "definitions.0.file_path"),
            "code_search": ({"pattern": "function drop_anchor"}, "matches.0.file_path"),
            "similar_files": ({"path": "src/anchor.py"}, "path"),
            "dependency_search": ({"target": "src/boat.py"}, "dependencies.0.file_path"),
            "read_file": ({"path": "src/anchor.py"}, "files.0.path"),
            "outline": ({"path": "src/anchor.py"}, "path"),
        },
        TAKES_PATH,
        excused={
            **dict.fromkeys(
                ("get_session_context", "start_session", "restore_session"), "as the agent named it"
            ),
            "ingest_documents": "of documents",
        },
    ),
    "symbol": Identifier(
        {"symbol"},
        {"symbol", "target"},
        (),
        {
            "symbol_search": ({"symbol": "drop_anchor"}, "definitions.0.symbol"),
        },
        {
            "symbol_search": ({"symbol": NEXT},),
            "dependency_search": ({"target": NEXT},),
            "read_file": ({"path": "src/anchor.py", "symbol": NEXT},),
        },
        excused={
            "code_search": "empty outside of symbols",
            "dependency_search": "of symbols that were asked for",
        },
    ),
    "chunk_id": Identifier(
        {"chunk_id"},
        {"chunk_ids"},
        (),
        {"semantic_search": ({"query": "lighthouse", "corpus": "docs"}, "results.0.chunk_id")},
        {"get_full_content": ({"chunk_ids": [NEXT], "corpus": "docs"},)},
        excused={"get_full_content": "the same"},
    ),
    "key_id": Identifier(
        {"key_id"},
        {"key_id"},
        (("create_api_key", {"name": "NEW", "agent": "bot", "scopes": ["memory:read"]}),),
        {
            "create_api_key": ({"name": "NEW", "agent": "bot", "scopes": ["memory:read"]}, "key.key_id"),
            "list_api_keys": ({}, "keys.0.key_id"),
        },
        {
            "rotate_api_key": ({"key_id": NEXT},),
            "revoke_api_key": ({"key_id": NEXT},),
            "get_audit_log": ({"key_id": NEXT},),
        },
        excused={
            "rotate_api_key": "of the key that was named",
            "revoke_api_key": "it is revoked then",
            "get_audit_log": "of who asked",
        },
    ),
    "passport": Identifier(
        {"passport", "claim"},
        {"passport", "restore_from"},
        (("create_session", {"purpose": "p", "session_id": "NEW"}),),
        {
            "export_session": (THE_SESSION, "passport"),
            "migrate_session": ({**THE_SESSION, "to_tool": "zed"}, "claim"),
        },
        {"restore_session": ({"passport": NEXT},), "start_session": ({"restore_from": NEXT},)},
        excused={"start_session": "a claim, as from migrate_session"},
    ),
}


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    code = (folder / "code").resolve()
    (code / "src").mkdir(parents=True)
    (code / "src/anchor.py").write_text("def drop_anchor(depth):\n    return depth\n")
    (code / "src/boat.py").write_text("from src.anchor import drop_anchor\n\ndrop_anchor(1)\n")
    reach = Reach(closed=(str(folder / "data"), str(folder / "secrets")), workspaces=(str(code),))
    who = Principal(agent_id="a", user="ann")
    async with (
        open_greenroom(folder / "data", secrets=folder / "secrets", embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):
        at = World(Agent(runtime, who, reach=reach, workspaces=kept), count())
        while (await at.call("search_code_semantic", query="x"))["freshness"]["state"] != "watching":
            pass
        text = {"path": "a.md", "text": "# The lighthouse\n\nIt shines over the harbour."}
        await at.call("ingest_documents", texts=[text], corpus="docs")
        await at.call("start_session", purpose="the work")
        yield at


def filled(value: Any, name: str, found: Any = None) -> Any:
    """Return arguments with the new name and the identifier in their places."""
    if value is NEXT:
        return found
    if isinstance(value, dict):
        return {key: filled(each, name, found) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, name, found) for each in value]
    return value.replace("NEW", name) if isinstance(value, str) else value


def at_place(answer: Any, place: str) -> Any:
    for step in place.split("."):
        answer = answer[int(step)] if isinstance(answer, list) else answer[step]
    assert answer is not None, place
    return answer


@pytest.mark.parametrize("kind", IDENTIFIERS)
async def test_what_one_tool_answers_the_next_one_takes(tmp_path: Path, kind: str) -> None:
    identifier = IDENTIFIERS[kind]
    failed = []
    async with world(tmp_path) as at:
        for producer, (arguments, place) in identifier.producers.items():
            for taker, calls in identifier.takers.items():
                for taken in calls:
                    name = f"name-{next(at.numbers)}"
                    for tool, given in identifier.made:
                        await at.call(tool, **filled(given, name))
                    answer = await at.call(producer, **filled(arguments, name))
                    found = at_place(answer, place)
                    if taker in identifier.before:
                        tool, given = identifier.before[taker]
                        await at.call(tool, **filled(given, name, found))
                    try:
                        await at.call(taker, **filled(taken, name, found))
                    except Refusal as refusal:
                        failed.append(f"{producer} -> {taker} {sorted(taken)}: {refusal}")
    assert failed == []


@pytest.mark.parametrize(
    ("made", "removes", "namespace"),
    [
        ("store_memory", "delete_memory", "user:ann"),
        ("set_memory", "forget_memory", "agent:a"),
    ],
)
async def test_removing_by_key_stays_in_its_family_and_says_where_the_key_lies(
    tmp_path: Path, made: str, removes: str, namespace: str
) -> None:
    async with world(tmp_path) as at:
        value: dict[str, Any] = {"content": "one"} if made == "store_memory" else {"value": 1}
        await at.call(made, key="k", **value)
        for _ in range(2):
            with pytest.raises(Refusal) as caught:
                await at.call(removes, key="k")
            (place,) = caught.value.details["places"]
            assert place["namespace"] == namespace
            assert f"forget_memory with namespace '{namespace}'" in str(caught.value)
            assert await at.call("get_memory", key="k")
        gone = await at.call("forget_memory", key="k", namespace=namespace)
        assert gone["forgotten"] == 1


def members_of(reply: Any, wanted: set[str], seen: frozenset[Any] = frozenset()) -> bool:
    """Return whether an answer has one of these members anywhere, budgets' bookkeeping aside."""
    if not hasattr(reply, "__struct_fields__"):
        return any(members_of(part, wanted, seen) for part in get_args(reply))
    if reply in seen or reply.__name__ == "OverBudget":
        return False
    return any(
        field.encode_name in wanted or members_of(field.type, wanted, seen | {reply})
        for field in msgspec.structs.fields(reply)
    )


@pytest.mark.quick
@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_every_tool_that_has_or_takes_an_identifier_is_in_a_pair(kind: str) -> None:
    identifier = IDENTIFIERS[kind]
    have = {tool for tool, each in REQUESTS.items() if members_of(reply_type(each), identifier.members)}
    take = {tool for tool, each in REQUESTS.items() if identifier.parameters & set(each.__struct_fields__)}
    assert have - set(identifier.producers) - set(identifier.excused) == set()
    takers = set(identifier.takers) | set(identifier.excused) | {"create_session", "list_memory"}
    assert take - takers == set()
