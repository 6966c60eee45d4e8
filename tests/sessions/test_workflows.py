"""Workflows through their doors: what is never kept, several writers, crashes, full disks, resources."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing
from support.agents import json, refused
from support.committers import crash_at, crashing

from greenroom.actors import (
    Agent,
    CompleteResource,
    CreateSession,
    EraseUser,
    GetAuditLog,
    GetMemory,
    GetWorkflowPatterns,
    ListResources,
    ListSessions,
    Principal,
    ReadResource,
    RecordWorkflowStep,
    SetMemory,
    StartSession,
    SuggestNextAction,
    WorkflowCheckpoint,
    open_greenroom,
)
from greenroom.runtime import Encryption, IdempotencyConflictError, RuntimeOptions, StorageFullError
from greenroom.testing import mcp_client

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

    from greenroom.actors import StepRecorded
    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="claude", user="ann")
CURSOR = Principal(agent_id="cursor", user="ann")
BOB = Principal(agent_id="claude", user="bob")
ROOT = Principal(agent_id="root")
ROUTINE = ("git pull", "pytest -x", "git commit -m 'done'", "git push")
SECRET = "xyzzy7plugh"  # noqa: S105 - it is what must not be kept
TEMPLATE = "greenroom://workflows/{pattern_id}"


async def do(agent: Agent, *commands: str, **more: Any) -> StepRecorded:
    """Record commands; return the last answer."""
    for command in commands:
        answer = await agent.ask(RecordWorkflowStep(command=command, **more))
    return answer


async def next_of(agent: Agent, *context: str, **more: Any) -> list[str]:
    found = await agent.ask(SuggestNextAction(context=list(context) or None, **more))
    return [each.command for each in found.suggestions]


# -- what is never kept --------------------------------------------------------------------------------


def _bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.promise("workflows.shapes")
async def test_no_secret_of_a_command_is_in_any_file_or_answer(tmp_path: Path) -> None:
    commands = [
        f"mysql -u root -p{SECRET} db",
        f"curl -H 'Authorization: {SECRET}' https://ann:{SECRET}@example.org/{SECRET}?t={SECRET}",
        f"TOKEN={SECRET} make {SECRET}",
        f"echo {SECRET} | docker login --password-stdin",
        f"cat <<END\n{SECRET}\nEND",
        f"git push # {SECRET}",
        SECRET,
    ]
    answers: list[Any] = []
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        agent = Agent(runtime, ANN)
        for number, command in enumerate(commands * 4):
            step = RecordWorkflowStep(command=command, success=number % 2 == 0, idempotency_key=f"{number}")
            answers.append(await agent.ask(step))
        answers.append(await agent.ask(SuggestNextAction(context=commands, limit=20)))
        answers.append(await agent.ask(GetWorkflowPatterns(context=commands[:1], limit=20)))
        answers.append(await agent.ask(GetAuditLog()))
        answers.append(await agent.ask(ListResources()))
        answers.append(await agent.ask(WorkflowCheckpoint(name="n", state=json('{"a":1}'))))
    assert SECRET.encode() not in msgspec.json.encode(answers)
    assert SECRET.encode() not in _bytes_in(tmp_path)
    assert b"docker login" in _bytes_in(tmp_path)


@pytest.mark.promise("workflows.words")
async def test_a_word_is_kept_from_the_third_time_on_also_after_a_restart(tmp_path: Path) -> None:
    kept = []
    for _ in range(2):
        async with open_greenroom(tmp_path, embedder="none") as runtime:
            agent = Agent(runtime, ANN)
            kept += [(await do(agent, "just frobnicate")).command for _ in range(2)]
        assert (b"frobnicate" in _bytes_in(tmp_path)) == (len(kept) > 2)
    assert kept == ["just <word>", "just <word>", "just frobnicate", "just frobnicate"]


# -- what is learned -------------------------------------------------------------------------------------


@pytest.mark.promise("workflows.suggestions", "workflows.patterns")
async def test_a_routine_is_suggested_step_by_step(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        assert await next_of(agent) == await next_of(agent, "git pull") == []
        for _ in range(3):
            for number, command in enumerate(ROUTINE):
                await do(agent, command, duration_ms=100 * (number + 1))
                at.tick()
        suggested = await agent.ask(SuggestNextAction(context=["git pull"], limit=1))
        (action,) = suggested.suggestions
        assert (action.command, action.after, action.success_rate) == ("pytest -x", ["git pull"], 1)
        assert (action.average_duration_ms, suggested.steps) == (200, 12)
        assert (await next_of(agent))[0] == "git pull"
        found = await agent.ask(GetWorkflowPatterns(context=["ls", "git pull", "pytest -x"]))
        pattern = found.patterns[0]
        assert pattern.commands == ["git pull", "pytest -x", "git commit -m <string>", "git push"]
        assert (pattern.done, pattern.occurrences, pattern.average_duration_ms) == (2, 3, 1_000)
        assert 0 < pattern.confidence < 1
        assert found.context == ["ls", "git pull", "pytest -x"]


@pytest.mark.promise("workflows.suggestions")
async def test_what_failed_every_time_is_not_suggested(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        for _ in range(4):
            await do(agent, "make all")
            await do(agent, "terraform apply", success=False)
        assert "terraform apply" not in await next_of(agent, "make all", limit=20)
        assert (await agent.ask(GetWorkflowPatterns(limit=20))).patterns == []
        await do(agent, "make all", "terraform apply")
        assert "terraform apply" in await next_of(agent, "make all")


@pytest.mark.promise("workflows.forgetting")
async def test_after_half_a_year_the_new_habit_counts(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        await do(agent, *("git pull", "make") * 5)
        at.tick(180 * 86_400)
        await do(agent, "git pull", "ninja", "git pull", "ninja", "git pull")
        assert (await next_of(agent))[0] == "ninja"


@pytest.mark.slow
@pytest.mark.promise("workflows.forgetting")
async def test_the_oldest_of_many_steps_is_forgotten_for_good(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        await do(agent, "git bisect")
        recorded = await do(agent, *itertools.islice(itertools.cycle(("ls", "git pull", "make")), 5_005))
        assert recorded.steps == 5_000
        assert "git bisect" not in await next_of(agent, "zzz", limit=20)
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        assert (await agent.ask(SuggestNextAction())).steps == 5_000
        assert "git bisect" not in await next_of(agent, "zzz", limit=20)
        (erased,) = (await Agent(at.runtime, ROOT).ask(EraseUser(user="ann"))).counts.values()
        assert erased == 5_000


# -- whose they are --------------------------------------------------------------------------------------


@pytest.mark.promise("workflows.owners")
async def test_steps_are_of_the_user_and_of_the_project_that_they_were_done_in(enter: Enter) -> None:
    async with enter() as at:
        claude, cursor, bob = (Agent(at.runtime, who) for who in (ANN, CURSOR, BOB))
        await claude.ask(StartSession(workspace_path="/home/ann/shop"))
        shop = await do(claude, *("git pull", "make") * 2)
        await cursor.ask(StartSession(workspace_path="/home/ann/blog"))
        blog = await do(cursor, *("git pull", "npm run dev") * 2)
        await do(bob, *("git pull", "terraform plan") * 2)
        assert (shop.steps, blog.steps) == (4, 4)
        assert shop.project_id != blog.project_id
        assert (await next_of(claude, "git pull"))[0] == "make"
        assert (await next_of(cursor, "git pull"))[0] == "npm run dev"
        assert (await next_of(bob, "git pull"))[0] == "terraform plan"
        await cursor.ask(StartSession(workspace_path="/home/ann/shop", new=True))
        assert (await next_of(cursor, "git pull"))[0] == "make"


@pytest.mark.promise("workflows.owners")
async def test_a_session_that_is_named_tells_the_project_and_must_be_visible(enter: Enter) -> None:
    async with enter() as at:
        scribe = Agent(at.runtime, Principal(agent_id="scribe", user="ann", projects=frozenset({"p", "q"})))
        await scribe.ask(CreateSession(purpose="p", session_id="s", project_id="p"))
        assert (await do(scribe, "ls", session_id="s")).project_id == "p"
        assert (await do(scribe, "ls")).project_id is None
        outsider = Agent(at.runtime, Principal(agent_id="x", user="ann", projects=frozenset({"q"})))
        for session in ("s", "nowhere"):
            with refused("SESSION_NOT_FOUND", session_id=session):
                await do(outsider, "ls", session_id=session)
            with refused("SESSION_NOT_FOUND", session_id=session):
                await outsider.ask(WorkflowCheckpoint(name="n", session_id=session))
        pattern_uri = "greenroom://workflows/p." + "0" * 16
        with refused("RESOURCE_NOT_FOUND"):
            await outsider.ask(ReadResource(uri=pattern_uri))


@pytest.mark.promise("workflows.owners")
@pytest.mark.parametrize("encrypted", [False, True])
async def test_erasing_a_person_takes_their_steps_and_nobody_elses(
    tmp_path: Path, *, encrypted: bool
) -> None:
    key = Encryption(lambda: b"\x07" * 32, required=True) if encrypted else None
    options: dict[str, Any] = {"embedder": "none"} | ({"encryption": key} if key else {})
    async with open_greenroom(tmp_path, **options) as runtime:
        claude, bob = Agent(runtime, ANN), Agent(runtime, BOB)
        await claude.ask(StartSession(workspace_path="/home/ann/shop"))
        for agent in (claude, bob):
            await do(agent, *ROUTINE * 2)
            await agent.ask(WorkflowCheckpoint(name="n", state=json('{"a":1}')))
        counted = await Agent(runtime, ROOT).ask(EraseUser(user="ann"))
        assert (counted.counts["workflow_steps"], counted.counts["workflow_checkpoints"]) == (8, 1)
        assert (await claude.ask(SuggestNextAction())).steps == 8
        await Agent(runtime, ROOT).ask(EraseUser(user="ann", confirm=True))
        assert (await claude.ask(SuggestNextAction())).steps == 0
        assert (await claude.ask(GetWorkflowPatterns())).patterns == []
        with refused("CHECKPOINT_NOT_FOUND"):
            await claude.ask(WorkflowCheckpoint(name="n"))
        assert (await bob.ask(SuggestNextAction())).steps == 8
        assert (await bob.ask(WorkflowCheckpoint(name="n"))).outcome == "restored"
        again = await Agent(runtime, ROOT).ask(EraseUser(user="ann"))
        assert not {"workflow_steps", "workflow_checkpoints"} & again.counts.keys()


# -- nothing is lost, nothing comes twice ------------------------------------------------------------------


@pytest.mark.promise("workflows.durable")
async def test_two_writers_at_once_lose_nothing(enter: Enter) -> None:
    async with enter() as at:
        agents = [Agent(at.runtime, who) for who in (ANN, CURSOR)]
        async with trio.open_nursery() as nursery:
            for agent, command in zip(agents, ("make", "ninja"), strict=True):
                for _ in range(25):
                    nursery.start_soon(do, agent, command)
        assert (await agents[0].ask(SuggestNextAction())).steps == 50
        assert (await next_of(agents[0]))[0] == "make"
        assert (await next_of(agents[1]))[0] == "ninja"


@pytest.mark.promise("workflows.durable")
async def test_a_repeat_is_answered_as_the_first_time(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        first = await do(agent, "git status", idempotency_key="once")
        at.tick()
        assert await do(agent, "git status", idempotency_key="once") == first
        with pytest.raises(IdempotencyConflictError):
            await do(agent, "git push", idempotency_key="once")
        checkpoint = WorkflowCheckpoint(name="n", state=json('{"a":1}'), idempotency_key="saved")
        assert (await agent.ask(checkpoint)).saved_at == (await agent.ask(checkpoint)).saved_at
        with pytest.raises(IdempotencyConflictError):
            await agent.ask(msgspec.structs.replace(checkpoint, state=json('{"a":2}')))
    async with enter() as at:
        assert await do(Agent(at.runtime, ANN), "git status", idempotency_key="once") == first


@pytest.mark.slow
@pytest.mark.promise("workflows.durable")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commit", range(2, 8))
async def test_a_crash_leaves_what_was_acknowledged(enter: Enter, commit: int, *, after: bool) -> None:
    acknowledged = 0
    with crashing():
        async with enter(committer=crash_at(commit, after=after)) as at:
            for number in range(20):
                await do(Agent(at.runtime, ANN), "git pull", idempotency_key=f"{number}")
                acknowledged += 1
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        steps = (await agent.ask(SuggestNextAction())).steps
        assert acknowledged <= steps <= acknowledged + 1
        last = await do(agent, "git pull", idempotency_key=f"{acknowledged}")
        assert last.steps == acknowledged + 1 == (await agent.ask(SuggestNextAction())).steps


@pytest.mark.slow
@pytest.mark.promise("workflows.durable")
async def test_a_full_disk_refuses_steps_and_keeps_those_that_are_there(tmp_path: Path) -> None:
    options = RuntimeOptions(durability="process", max_size=3 << 20, min_free=0)
    async with open_greenroom(tmp_path, embedder="none", options=options) as runtime:
        agent = Agent(runtime, ANN)
        filler = Agent(runtime, BOB)
        await do(agent, *ROUTINE * 2)
        with suppress(StorageFullError):
            for number in itertools.count():
                await filler.ask(SetMemory(key=f"{number}", value=json('"' + "x" * 100_000 + '"')))
        recorded = 8
        with suppress(StorageFullError):
            while True:
                recorded = (await do(agent, "git status")).steps
        assert 8 < recorded < 5_000
        assert (await agent.ask(SuggestNextAction())).steps == recorded
        assert (await next_of(agent, "git pull"))[0] == "pytest -x"
        state = json('{"a":"' + "x" * 60_000 + '"}')
        with pytest.raises(StorageFullError):
            await agent.ask(WorkflowCheckpoint(name="n", state=state))
        with refused("CHECKPOINT_NOT_FOUND"):
            await agent.ask(WorkflowCheckpoint(name="n"))
        await Agent(runtime, ROOT).ask(EraseUser(user="ann", confirm=True))
        assert (await agent.ask(SuggestNextAction())).steps == 0
        assert (await do(agent, "git status")).steps == 1


# -- checkpoints -------------------------------------------------------------------------------------------


@pytest.mark.promise("workflows.checkpoints")
async def test_a_checkpoint_is_restored_as_it_was_saved_by_another_tool_too(enter: Enter) -> None:
    state = b'{"b": 123456789012345678901234567890, "a":[null, "\\u00e9"]}'
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        await do(agent, "git pull", "pytest -x")
        saved = await agent.ask(WorkflowCheckpoint(name="here", state=msgspec.Raw(state)))
        assert (saved.outcome, saved.steps, saved.saved_by) == ("saved", ["git pull", "pytest -x"], "claude")
        await do(agent, "git push")
        at.tick()
    async with enter() as at:
        restored = await Agent(at.runtime, CURSOR).ask(WorkflowCheckpoint(name="here"))
        assert restored.outcome == "restored"
        assert bytes(restored.state) == state
        assert (restored.steps, restored.saved_at) == (saved.steps, saved.saved_at)
        await Agent(at.runtime, ANN).ask(WorkflowCheckpoint(name="here", state=json('{"b":2}')))
        assert bytes((await Agent(at.runtime, ANN).ask(WorkflowCheckpoint(name="here"))).state) == b'{"b":2}'


@pytest.mark.promise("workflows.checkpoints")
async def test_a_checkpoint_that_is_not_there_or_too_much_is_refused_in_words(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN)
        with refused("CHECKPOINT_NOT_FOUND", name="here") as caught:
            await agent.ask(WorkflowCheckpoint(name="here"))
        assert "none yet" in str(caught.value)
        for number in range(100):
            await agent.ask(WorkflowCheckpoint(name=f"n{number}", state=json('{"a":1}')))
        with refused("CHECKPOINT_NOT_FOUND", name="here") as caught:
            await agent.ask(WorkflowCheckpoint(name="here"))
        assert "n0" in str(caught.value)
        with refused("QUOTA_EXCEEDED", limit=100):
            await agent.ask(WorkflowCheckpoint(name="here", state=json('{"a":1}')))
        await agent.ask(WorkflowCheckpoint(name="n1", state=json('{"a":2}')))
        with refused("VALIDATION_ERROR", field="state", limit=65_536):
            await agent.ask(WorkflowCheckpoint(name="n1", state=json('{"a":"' + "x" * 65_536 + '"}')))
        assert bytes((await agent.ask(WorkflowCheckpoint(name="n1"))).state) == b'{"a":2}'


# -- resources ----------------------------------------------------------------------------------------------


async def _learned(runtime: RuntimeClient, who: Principal) -> Agent:
    agent = Agent(runtime, who)
    await do(agent, *ROUTINE * 5)
    return agent


@pytest.mark.promise("workflows.patterns", "resources.listing", "resources.completion", "resources.alike")
async def test_a_pattern_is_read_listed_and_completed_under_both_schemes_by_its_user(enter: Enter) -> None:
    async with enter() as at:
        agent = await _learned(at.runtime, ANN)
        (pattern, *_) = (await agent.ask(GetWorkflowPatterns())).patterns
        for scheme in ("greenroom", "omnimemory"):
            uri = f"{scheme}://workflows/{pattern.pattern_id}"
            read: Any = await agent.ask(ReadResource(uri=uri))
            assert (read.pattern, read.resource_info.uri) == (pattern, uri)
            with refused("RESOURCE_NOT_FOUND"):
                await Agent(at.runtime, BOB).ask(ReadResource(uri=uri))
        uri = f"greenroom://workflows/{pattern.pattern_id}"
        listed = {each.uri: each for each in (await agent.ask(ListResources())).resources}
        assert listed[uri].title == "git pull → pytest -x → git commit -m <string> → git push"
        others = await Agent(at.runtime, BOB).ask(ListResources())
        assert not any("workflows" in each.uri for each in others.resources)
        for value, hits in ((pattern.pattern_id[:4], True), ("git pu", True), ("nothing", False)):
            asked = CompleteResource(template=TEMPLATE, argument="pattern_id", value=value)
            assert (pattern.pattern_id in (await agent.ask(asked)).values) == hits
            assert (await Agent(at.runtime, BOB).ask(asked)).values == []
        for wrong in ("greenroom://workflows/", f"{uri}0", "greenroom://workflows/" + "0" * 16):
            with refused("RESOURCE_NOT_FOUND"):
                await agent.ask(ReadResource(uri=wrong))


@pytest.mark.promise("resources.heard")
async def test_a_change_of_a_pattern_is_heard_of_by_its_user_alone(enter: Enter) -> None:
    async with enter() as at:
        agent = await _learned(at.runtime, ANN)
        (pattern, *_) = (await agent.ask(GetWorkflowPatterns())).patterns
        uri = f"omnimemory://workflows/{pattern.pattern_id}"
        with Agent(at.runtime, CURSOR).subscriber(0) as mine, Agent(at.runtime, BOB).subscriber(0) as others:
            mine.add(uri)
            others.add(uri)
            await _learned(at.runtime, ANN)
            with trio.fail_after(30):
                assert await mine.next() == uri
            with trio.move_on_after(30) as waiting:
                await others.next()
            assert waiting.cancelled_caught


# -- without being asked ------------------------------------------------------------------------------------


@pytest.mark.promise("workflows.unasked")
async def test_calls_are_recorded_only_where_that_is_wanted_and_without_their_arguments(
    tmp_path: Path,
) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        for learns, steps in ((False, 0), (True, 7)):

            def agent_for(_: str, *, learns: bool = learns) -> Agent:
                return Agent(runtime, ANN, learns_workflows=learns)

            async with mcp_client(agent_for) as client:
                await client.initialize()
                for number in range(2):
                    await client.call("set_memory", key=f"k{number}", value=number)
                    assert not (await client.call("get_memory", key="none"))["success"]
                    await client.call("list_sessions")
                await client.call("update_session", session_id="nowhere", status="paused")
                told = await client.call("suggest_next_action", limit=20)
                assert told["steps"] == steps
        agent = Agent(runtime, ANN)
        found = await agent.ask(SuggestNextAction(context=["list_sessions"], limit=20))
        rates = {each.command: each.success_rate for each in found.suggestions}
        assert rates == {"set_memory": 1, "list_sessions": 1}
        assert all(each.average_duration_ms is not None for each in found.suggestions)


@pytest.mark.promise("workflows.unasked")
async def test_programs_that_embed_are_recorded_likewise(enter: Enter) -> None:
    async with enter() as at:
        agent = Agent(at.runtime, ANN, learns_workflows=True)
        for _ in range(2):
            await agent.ask(SetMemory(key="k", value=json("1")))
            await agent.ask(GetMemory(key="k"))
            await agent.ask(ListSessions())
            await agent.ask(ReadResource(uri="agent://claude/memory"))
        await trio.testing.wait_all_tasks_blocked()
        assert (await next_of(agent, "set_memory"))[0] == "get_memory"
        assert (await agent.ask(SuggestNextAction())).steps == 6
