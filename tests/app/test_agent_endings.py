"""A request that is awaited and one that calls back: the same answers, refusals, records and order."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support import samples
from support.agents import AuditTrail, House, begin, house, wire
from support.differential import Names
from support.postings import asking
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom.actors import (
    REQUESTS,
    AddMessage,
    Agent,
    CompleteResource,
    CreateApiKey,
    CreateSession,
    DeleteMemory,
    GetMemory,
    GetMessages,
    GetSessionContext,
    GetStats,
    ListMemories,
    ListPrompts,
    ListResources,
    ListSessions,
    ListVersions,
    Principal,
    Quota,
    RateMemory,
    Reach,
    ReadResource,
    SetMemory,
    StartSession,
    StoreMemory,
    SuggestNextAction,
    UpdateMemory,
    open_savings,
    parse_request,
)
from greenroom.actors.core.auth.grants import Credential, Grant, KeyLimits
from greenroom.runtime import GreenroomError, OverloadedError, Refusal, RuntimeOptions
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from support.agents import Enter, House

    from greenroom.actors import Ledger, SavingsReport

    Ending = Callable[[Agent, Any, Callable[[], None]], Awaitable[Any]]

pytestmark = pytest.mark.promise("runtime.post")

ADMIN = frozenset({"*"})
UNLIKE = {"health_check", "get_stats", "export_session"}
"""Tools that say how the process is, or draw what they answer: compared is that there is an answer."""
DRAWN = re.compile(
    r"GREENROOM:C1:\w+|\b(?:gr_[\w-]{12,}|[0-9a-f]{32}|[a-z2-7]{12})\b|(?<=\"characters\": )\d+"
)
"""What is drawn at random, beside what `Names` has: keys, ids, claims; and sizes of what is compressed."""
SCRIPT = (
    *(name for name in REQUESTS if name not in {"end_session", "erase_user"}),
    *("end_session", "erase_user"),
)


async def awaited(agent: Agent, request: Any, accept: Callable[[], None]) -> Any:
    return await agent.ask(request, on_accepted=accept)


async def called_back(agent: Agent, request: Any, accept: Callable[[], None]) -> Any:
    one = asking(agent, request)
    try:
        return await one.reply()
    finally:
        if one.accepted:
            accept()


ENDINGS = {"ask": awaited, "post": called_back}


def more_requests(memory_id: str) -> Iterator[tuple[str, Any]]:
    """Return what is of another kind than the calls of the tools: who asks, and what."""
    for uri in ("session://s", "agent://ann/memory", "greenroom://savings", "greenroom://project/p"):
        yield "ann", ReadResource(uri=uri)
    for uri in ("greenroom://corpus/all:docs", "weather://tomorrow", "greenroom://session/current"):
        yield "ann", ReadResource(uri=uri)
    yield from (("ann", request) for request in (ListResources(), ListPrompts(), GetMessages()))
    yield "ann", CompleteResource(template="session://{session_id}", argument="session_id")
    # A key that lies elsewhere, in one place and in several, and one that lies nowhere.
    for key in ("shared", "both", "gone"):
        yield "ann", GetMemory(key=key)
        yield "ann", ListVersions(key=key)
        yield "ann", RateMemory(key=key, rating=1)
        yield "ann", UpdateMemory(key=key, content="again", idempotency_key=f"u-{key}")
        yield "ann", UpdateMemory(key=key, content="again", idempotency_key=f"u-{key}")
        yield "ann", DeleteMemory(key=key)
    # One whose actor is looked up by its id.
    yield "ann", ListVersions(memory_id=memory_id)
    yield "ann", RateMemory(memory_id=memory_id, rating=1)
    yield "ann", ListMemories(namespace="user:nobody")
    # One that repeats, one that breaks a limit, and those that may not.
    for _ in range(2):
        yield "ann", AddMessage(session_id="s", content="once", idempotency_key="i")
    yield "ann", AddMessage(session_id="s", content="other", idempotency_key="i")
    for who in ("reader", "onlooker", "stranger"):
        for request in (GetMessages(session_id="s"), AddMessage(session_id="s", content="mine")):
            yield who, request
        yield who, SetMemory(key="k", value=msgspec.Raw(b"1"))
        yield who, StartSession()
        yield who, ReadResource(uri="agent://ann/memory")
    # A key that may keep little, and has it used up.
    for number in range(4):
        yield "poor", StoreMemory(content="x" * 40, key=f"p{number}")
        yield "poor", DeleteMemory(key=f"p{number}")
    yield "ann", StartSession()
    yield "ann", StoreMemory(content="what was decided", key="decision")
    yield "ann", samples.request("memory_search")
    yield "ann", ReadResource(uri="greenroom://session/current")


async def agents_of(at: House, ledger: Ledger, folder: Path) -> dict[str, Agent]:
    root = Agent(at.runtime, Principal(agent_id="root", user="root"))
    made = await root.ask(CreateApiKey(name="n", scopes=["*"], max_stored_bytes=150))
    grant = Grant(name="n", scopes=ADMIN, limits=KeyLimits(stored_bytes=150))
    shown = Credential(id=made.key.key_id, grant=grant, by_key=True, expires=0, holder=made.key.key_id)
    people = {
        "ann": Principal(agent_id="ann", user="ann", scopes=ADMIN),
        "reader": Principal(agent_id="reader", user="ann", scopes=frozenset({"sessions:read"})),
        "onlooker": Principal(agent_id="ann", user="ann", seen_by="root"),
        "stranger": Principal(agent_id="zoe", user="zoe", projects=frozenset({"q"})),
        "poor": Principal(agent_id="poor", user="poor", key_id=made.key.key_id),
    }
    reach = Reach(workspaces=(str(folder),))
    options: dict[str, Any] = {"savings": ledger, "learns_workflows": True, "reach": reach}
    return {
        name: Agent(at.runtime, each, quota=Quota(shown) if name == "poor" else None, **options)
        for name, each in people.items()
    }


async def prepare(agents: dict[str, Agent]) -> str:
    """Store something under keys that other places have, too; return a memory's id."""
    ann = agents["ann"]
    await ann.ask(CreateSession(purpose="p", session_id="s", project_id="p"))
    await ann.ask(SetMemory(key="k", value=msgspec.Raw(b"1")))
    for key, namespace in (("shared", "shared:team"), ("both", "shared:team"), ("both", "shared:other")):
        saved = await ann.ask(StoreMemory(content=f"{key} {namespace}", key=key, namespace=namespace))
    return saved.memory_id


def counted(report: SavingsReport) -> list[Any]:
    """Return what was counted; how long the answers were hangs on what is drawn for them."""
    return sorted([each.operation, each.calls, each.baseline] for each in report.operations)


async def told(folder: Path, code: Path, ending: Ending) -> list[Any]:
    """Ask one thing after the other, and return all that is answered and recorded."""
    names, said = Names(), []

    def add(*each: Any) -> None:
        said.append(DRAWN.sub("<drawn>", json.dumps(names.plain(wire(each)), indent=1)))

    async with (
        house(folder, VirtualClock()) as at,
        open_savings(at.runtime, lambda: at.clock.now() * 1_000) as ledger,
    ):
        agents = await agents_of(at, ledger, code)
        memory_id = await prepare(agents)
        tools = [(name, "ann", samples.request(name)) for name in SCRIPT]
        others = [(type(each).__name__, who, each) for who, each in more_requests(memory_id)]
        for name, who, request in (*others, *tools):
            accepted: list[None] = []
            try:
                checked = parse_request(type(request), msgspec.json.encode(request))
                reply = await ending(agents[who], checked, partial(accepted.append, None))
                answer: Any = ["answer", type(reply).__name__, {} if name in UNLIKE else reply]
            except Refusal as refusal:
                answer = [refusal.code, refusal.sentence, refusal.details, refusal.is_denial]
            except GreenroomError as error:
                answer = [type(error).__name__, str(error)]
            add(name, who, len(accepted), answer)
            await wait_all_tasks_blocked()
            at.tick()
        ann = agents["ann"]
        add("records", await at.runtime.query(AuditTrail()))
        add("steps", await ann.ask(SuggestNextAction(limit=20)))
        sessions = (await ann.ask(ListSessions())).sessions
        add("notes", [await ann.ask(GetSessionContext(session_id=each.session_id)) for each in sessions])
        add("savings", counted((await ann.ask(GetStats())).savings))
    return said


@pytest.mark.slow
def test_both_endings_answer_and_record_the_same(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text("def document_of(path):\n    return path\n")
    asked, posted = [
        trio.run(told, tmp_path / name, code, ending, clock=MockClock()) for name, ending in ENDINGS.items()
    ]
    for one, other in zip(asked, posted, strict=True):
        assert one == other
    for kind in ("answer", "MEMORY_NOT_FOUND", "PERMISSION_DENIED", "QUOTA_EXCEEDED"):
        assert sum(f'"{kind}"' in each for each in asked) > 1, kind


async def test_both_endings_say_alike_that_there_is_no_room(enter: Enter) -> None:
    async with enter(options=RuntimeOptions(durability="process", mailbox_limit=2)) as at:
        alice = await begin(at)
        waiting = [asking(alice, AddMessage(session_id="s", content="first")) for _ in range(2)]
        for request in (GetMessages(session_id="s"), AddMessage(session_id="s", content="hello")):
            with pytest.raises(OverloadedError) as posted:
                asking(alice, request)
            with pytest.raises(OverloadedError) as asked:
                await alice.ask(request)
            assert posted.value.outcome == asked.value.outcome == "not_done"
        for each in waiting:
            await each.reply()
