"""`Agent` over a `Database`: requests are answered as in the runtime's own loop, on asyncio and on trio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args

import pytest
import trio
from support import samples
from support.wrong_types import sample

from greenroom.actors import (
    API_REQUESTS,
    PROGRESS_CALLBACK,
    AddMessage,
    Agent,
    CheckpointService,
    CompleteCode,
    CompletePrompt,
    CompleteResource,
    CreateSession,
    Database,
    GetMessages,
    GetPrompt,
    GetSessionContext,
    ImportMemories,
    ListMemories,
    ListPrompts,
    ListResources,
    MemorySearch,
    MemoryService,
    Principal,
    ReadResource,
    SearchService,
    SessionService,
    StartSession,
    StoreMemory,
    open_greenroom,
    parse_request,
)
from greenroom.actors.core.operations import OPERATIONS
from greenroom.runtime import (
    InlineCommitter,
    Refusal,
    RuntimeClosedError,
    StorageFullError,
    Store,
    ThreadCommitter,
    WriteBatch,
    reply_type,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

pytestmark = pytest.mark.promise("service.agent")

ROOT = Path(__file__).parent.parent.parent
ANN = Principal(agent_id="desk", user="ann")
BESIDES = (
    ReadResource,
    ListResources,
    CompleteResource,
    CompleteCode,
    ListPrompts,
    GetPrompt,
    CompletePrompt,
)

type_of_loop = pytest.mark.parametrize("loop", [asyncio.run, trio.run], ids=["asyncio", "trio"])


def run(loop: Any, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    if loop is asyncio.run:
        asyncio.run(function(*arguments), debug=True)
    else:
        trio.run(function, *arguments)


def at(folder: Path, **options: Any) -> Database:
    return Database(folder, **{"embedder": "none"} | options)


async def answer(agent: Agent, request: Any) -> str:
    """Return the type of the answer, or the code of the refusal."""
    try:
        return type(await agent.ask(request)).__name__
    except Refusal as refusal:
        return refusal.code


def requests() -> list[Any]:
    """Return a request of every type that agents ask."""
    besides = [parse_request(kind, json.dumps(sample(kind)).encode()) for kind in BESIDES]
    return [*samples.prepared(), *map(samples.request, samples.in_order()), *besides]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return how each request is answered where the agent works in the runtime's own loop."""

    async def main() -> list[str]:
        folder = tmp_path_factory.mktemp("own loop")
        async with open_greenroom(folder / "data", embedder="none", secrets=folder / "secrets") as runtime:
            agent = Agent(runtime, ANN, learns_workflows=True)
            return [await answer(agent, request) for request in requests()]

    return trio.run(main)


@type_of_loop
def test_every_request_is_answered_as_in_the_runtimes_own_loop(
    loop: Any, expected: list[str], tmp_path: Path
) -> None:
    async def main() -> None:
        async with at(tmp_path / "data", secrets=tmp_path / "secrets") as database:
            agent = Agent(database, ANN, learns_workflows=True)
            answers = [await answer(agent, request) for request in requests()]
        named = [type(request).__name__ for request in requests()]
        assert list(zip(named, answers, strict=True)) == list(zip(named, expected, strict=True))

    run(loop, main)


def test_most_of_these_requests_are_answered_and_not_refused(expected: list[str]) -> None:
    named = dict(zip((type(request).__name__ for request in requests()), expected, strict=True))
    assert len(named) == len(set(API_REQUESTS.values())) + len(BESIDES)
    refused = {name for name, answered in named.items() if answered.isupper()}
    excused = {
        API_REQUESTS[name].__name__
        for name, each in OPERATIONS.items()
        if name in samples.ABOUT_NOTHING or each.scope == "code:read"  # no folder is named
    }
    assert refused <= excused | {each.__name__ for each in BESIDES}


@type_of_loop
def test_an_agent_works_in_its_session_until_the_database_is_closed(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        database = at(tmp_path)
        agent = Agent(database, ANN)
        async with database:
            began = await agent.ask(StartSession(purpose="talk"))
            await agent.ask(AddMessage(content="hello"))
            assert (await agent.ask(GetSessionContext())).session_id == began.session_id
            page = await agent.ask(GetMessages())
            assert [message.content for message in page.messages] == ["hello"]
        async with database:
            with pytest.raises(Refusal, match="start or restore a session first"):
                await agent.ask(GetMessages())
            assert (await agent.ask(StartSession(restore_from="latest"))).session_id == began.session_id

    run(loop, main)


@type_of_loop
def test_who_closes_an_agent_leaves_its_session_to_others(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with at(tmp_path) as database:
            first, second, third = (
                Agent(database, ANN, client=client) for client in ("claude-code", "codex", "gemini-cli")
            )
            third.close()  # it was never asked
            started = StartSession(workspace_path="/tmp/shop")  # noqa: S108 - a name of a project
            began = await first.ask(started)
            await first.ask(AddMessage(content="hello"))
            assert (await second.ask(started)).session_id != began.session_id
            second.close()
            first.close()
            assert (await third.ask(started)).session_id == began.session_id
        first.close()  # the database is closed
        with pytest.raises(RuntimeClosedError, match="is not open"):
            await first.ask(GetMessages())

    run(loop, main)


@type_of_loop
def test_errors_are_those_of_the_runtime(loop: Any, tmp_path: Path) -> None:
    is_full = False

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        if is_full:
            works[0].error = StorageFullError("no room, says the test")
        store.commit(works)

    async def main() -> None:
        nonlocal is_full
        async with at(tmp_path, committer=InlineCommitter(commit)) as database:
            agent = Agent(database, ANN)
            await agent.ask(CreateSession(session_id="talk", purpose="talk"))
            with pytest.raises(Refusal, match="'talk' is taken") as caught:
                await agent.ask(CreateSession(session_id="talk", purpose="talk"))
            assert caught.value.code == "KEY_EXISTS"
            with pytest.raises(Refusal, match="key"):
                await agent.ask(StoreMemory(key="a/b", content="no"))
            with pytest.raises(TypeError, match="Principal is not a request that agents ask"):
                await agent.ask(ANN)  # type: ignore[arg-type]
            reader = Agent(
                database, Principal(agent_id="desk", user="ann", scopes=frozenset({"memory:read"}))
            )
            with pytest.raises(Refusal, match="memory:write"):
                await reader.ask(StoreMemory(content="no"))
            is_full = True
            with pytest.raises(StorageFullError, match="says the test"):
                await agent.ask(StoreMemory(content="no"))
            is_full = False
            assert (await agent.ask(MemorySearch(query="no"))).memories == []

    run(loop, main)


@pytest.mark.quick
def test_what_needs_the_runtimes_own_loop_says_so(tmp_path: Path) -> None:
    agent = Agent(at(tmp_path), ANN)
    for call in (
        lambda: agent.post(GetMessages(), print, print),
        agent.subscriber,
        lambda: agent.check_scope(GetMessages),
    ):
        with pytest.raises(TypeError, match="over what open_greenroom opens"):
            call()


class HoldingCommitter(ThreadCommitter):
    """Commits in its thread, but holds groups back while a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.held = threading.Event()

    def submit(self, works: Sequence[WriteBatch]) -> None:
        if self.holds:
            self._works = works
            self.held.set()
        else:
            super().submit(works)

    def let_go(self) -> None:
        self.holds = False
        super().submit(self._works)


def remembering(key: str) -> StoreMemory:
    return StoreMemory(key=key, content=key)


def test_what_asyncio_cancels_is_cancelled_in_the_runtime(tmp_path: Path) -> None:
    committer = HoldingCommitter()

    async def main() -> None:
        async with at(tmp_path, committer=committer) as database:
            agent = Agent(database, ANN)
            await agent.ask(remembering("before"))
            committer.holds = True
            begun = asyncio.create_task(agent.ask(remembering("begun")))
            await asyncio.to_thread(committer.held.wait)
            begun.cancel()
            with pytest.raises(asyncio.CancelledError):
                await begun
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(-1):
                    await agent.ask(remembering("not begun"))
            committer.let_go()
            kept = await agent.ask(ListMemories())
            assert {memory.key for memory in kept.memories} == {"before", "begun"}

    asyncio.run(main())


def test_what_trio_cancels_is_cancelled_in_the_runtime(tmp_path: Path) -> None:
    committer = HoldingCommitter()

    async def main() -> None:
        async with at(tmp_path, committer=committer) as database:
            agent = Agent(database, ANN)
            await agent.ask(remembering("before"))
            committer.holds = True
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.ask, remembering("begun"))
                await trio.to_thread.run_sync(committer.held.wait)
                nursery.cancel_scope.cancel()
            with trio.CancelScope() as scope:
                scope.cancel()
                await agent.ask(remembering("not begun"))
            assert scope.cancelled_caught
            committer.let_go()
            kept = await agent.ask(ListMemories())
            assert {memory.key for memory in kept.memories} == {"before", "begun"}

    trio.run(main)


@pytest.mark.parametrize("kind", [Agent, SessionService, MemoryService, SearchService, CheckpointService])
@pytest.mark.parametrize(
    ("given", "remedy"),
    [("alice", r"give Principal\(agent_id='alice'\)"), (7, r'give Principal\(agent_id="..."\)')],
)
def test_who_asks_is_a_principal_and_no_bare_name(
    kind: Any, given: object, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match=f"the principal is {given!r}, but must be a Principal; {remedy}"):
        kind(at(tmp_path), given)


def test_progress_is_told_to_who_asks(tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []

    async def main() -> None:
        async with at(tmp_path) as database:
            PROGRESS_CALLBACK.set(lambda done, total, _: told.append((done, total)))
            lines = "\n".join(json.dumps({"key": f"k{number}", "content": "x"}) for number in range(3))
            await Agent(database, ANN).ask(ImportMemories(source=lines))

    asyncio.run(main())
    assert told


HEAD = """from typing import assert_type

from greenroom.actors import Agent, Database, Principal

async def ask(database: Database) -> None:
    agent = Agent(database, Principal(agent_id="a"))
"""


@pytest.mark.slow
def test_mypy_infers_the_answer_of_every_request(tmp_path: Path) -> None:
    lines = [HEAD]
    for number, kind in enumerate((*API_REQUESTS.values(), *BESIDES)):
        answers = [reply_type(kind)]
        if isinstance(answers[0], UnionType):
            answers = list(get_args(answers[0]))
        lines += [f"    from {each.__module__} import {each.__name__}" for each in answers]
        lines.append(f"    from {kind.__module__} import {kind.__name__} as Request{number}")
        lines.append(f"    async def ask{number}(request: Request{number}) -> None:")
        union = " | ".join(answered.__name__ for answered in answers)
        lines.append(f"        assert_type(await agent.ask(request), {union})")
    lines.append("    await agent.ask(Principal(agent_id='a'))")
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == [program.read_text().count("\n")], done.stdout
