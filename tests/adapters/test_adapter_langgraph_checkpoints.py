"""Checkpoints of LangGraph: the framework's own suite, real graphs, sudden ends, and whose they are."""

from __future__ import annotations

import asyncio
import operator
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from support import counting
from support.adapters import CHECKS, Case, Check

from greenroom.actors import (
    Agent,
    CheckpointService,
    Database,
    EraseUser,
    ListCheckpoints,
    MemorySearch,
    Principal,
    ServiceError,
)
from greenroom.actors.sessions.graph_checkpoints.actor import thread_address
from greenroom.actors.sessions.graph_checkpoints.requests import DeleteThread, ReadPart
from greenroom.adapters.langgraph import GreenroomSaver
from greenroom.runtime import Encryption, Refusal, Restate

if TYPE_CHECKING:
    from greenroom.runtime import RuntimeClient

ANN = Principal(agent_id="desk", user="ann")
BEN = Principal(agent_id="desk", user="ben")
ROOT = Principal(agent_id="root")
KEY = Encryption(lambda: b"\x07" * 32, required=True)


def at(folder: Path, **more: Any) -> Database:
    return Database(folder / "data", embedder="none", secrets=folder / "secrets", **more)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with at(tmp_path) as opened:
        yield opened


def config(thread: Any = "t", namespace: str = "", checkpoint_id: str | None = None) -> Any:
    where = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": where if checkpoint_id is None else {**where, "checkpoint_id": checkpoint_id}}


def checkpoint(values: dict[str, Any], version: Any = 1, checkpoint_id: str | None = None) -> Checkpoint:
    made = empty_checkpoint()
    made["channel_values"], made["channel_versions"] = values, dict.fromkeys(values, version)
    made["id"] = checkpoint_id or str(uuid6())
    return made


def put(saver: BaseCheckpointSaver[str], where: Any, values: dict[str, Any], **more: Any) -> Any:
    made = checkpoint(values, **more)
    return saver.put(where, made, {"source": "loop", "step": 1}, made["channel_versions"])


def values(found: CheckpointTuple | None) -> Any:
    return None if found is None else found.checkpoint["channel_values"]


def stored(database: Database, thread: str, principal: Principal = ANN) -> list[tuple[bytes, bytes]]:
    """All records of a thread but its name."""
    found: list[tuple[bytes, bytes]] = []
    after: bytes | None = None
    while True:
        asked = ReadPart(after=after)

        async def part(asked: ReadPart = asked) -> Any:
            return await database.ask(thread_address(principal, thread), asked, principal=principal)

        answer = database.call(part)
        found += answer.records
        after = answer.next
        if after is None:
            return found


# -- what every checkpointer and every adapter must stand ----------------------------------------


@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_the_published_suite_passes_in_full(tmp_path: Path) -> None:
    @checkpointer_test(name="GreenroomSaver")
    async def opened() -> AsyncGenerator[GreenroomSaver, None]:
        async with at(tmp_path) as database:
            yield GreenroomSaver(database, ANN)

    report = asyncio.run(validate(opened))
    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failures == {}
    assert report.passed_all()
    assert sum(result.tests_passed for result in report.results.values()) >= 81


async def _write(database: Database, text: str) -> None:
    made = checkpoint({"text": text}, version=text)
    await GreenroomSaver(database, ANN).aput(config(), made, {}, made["channel_versions"])


async def _read(database: Database) -> list[str]:
    saver = GreenroomSaver(database, ANN)
    return [values(found)["text"] async for found in saver.alist(config())]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(_write, _read), tmp_path)


Step = tuple[str, dict[str, Any]]


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Puts, repeated puts and writes, some of them beside checkpoints that are not there."""
    ids, spaces = [f"{number:04}" for number in range(4)], ["", "sub", "sub|deeper"]
    writes = st.lists(
        st.tuples(st.sampled_from(["a", "b", "__error__", "__interrupt__"]), st.integers(0, 9)), max_size=3
    )
    one = st.fixed_dictionaries(
        {
            "what": st.sampled_from(["put", "writes"]),
            "id": st.sampled_from(ids),
            "namespace": st.sampled_from(spaces),
            "parent": st.none() | st.sampled_from(ids),
            "values": st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 9), max_size=3),
            "version": st.integers(1, 3) | st.sampled_from(["1", "2"]),
            "writes": writes,
            "task": st.sampled_from(["t1", "t2"]),
            "path": st.sampled_from(["", "~b", "~a"]),
            "source": st.sampled_from(["loop", "input"]),
        }
    )
    done: list[dict[str, Any]] = draw(st.lists(one, max_size=8))
    return [(each["what"], each) for each in done]


def _carry_out(saver: BaseCheckpointSaver[str], thread: str, done: list[Step]) -> None:
    for what, step in done:
        where = config(thread, step["namespace"], step["parent"])
        if what == "put":
            made = checkpoint(step["values"], step["version"], step["id"])
            made["ts"] = "now"
            saver.put(where, made, {"source": step["source"], "step": 1}, made["channel_versions"])
        else:
            saver.put_writes(
                config(thread, step["namespace"], step["id"]), step["writes"], step["task"], step["path"]
            )


@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_everything_reads_as_in_the_frameworks_own_saver(database: Database) -> None:
    threads = iter(range(1_000_000))

    @given(steps(), st.sampled_from([None, "loop"]), st.none() | st.integers(0, 3))
    def check(done: list[Step], source: str | None, limit: int | None) -> None:
        thread = f"t{next(threads)}"
        mine, theirs = GreenroomSaver(database, ANN), InMemorySaver()
        asked: dict[str, Any] = {"filter": None if source is None else {"source": source}, "limit": limit}
        for saver in (mine, theirs):
            _carry_out(saver, thread, done)
        for namespace in ("", "sub", "sub|deeper"):
            where = config(thread, namespace)
            assert [*mine.list(where, **asked)] == [*theirs.list(where, **asked)]
            before = config(thread, namespace, "0002")
            assert [*mine.list(where, before=before)] == [*theirs.list(where, before=before)]
            for checkpoint_id in (None, "0001", "0009"):
                one = config(thread, namespace, checkpoint_id)
                assert mine.get_tuple(one) == theirs.get_tuple(one)
        everywhere: Any = {"configurable": {"thread_id": thread}}
        found = [*mine.list(everywhere)]
        assert sorted(found, key=repr) == sorted(theirs.list(everywhere), key=repr)
        assert found == sorted(found, key=lambda each: each.checkpoint["id"], reverse=True)

    check()


@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_a_repeat_changes_nothing_but_what_may_be_written_anew(database: Database) -> None:
    found = []
    for saver in (GreenroomSaver(database, ANN), InMemorySaver()):
        made = checkpoint({"a": "first"}, version="1", checkpoint_id="1")
        made["ts"] = "now"
        for _ in range(2):
            where = saver.put(config(), made, {}, {"a": "1"})
        for text in ("first", "second"):
            saver.put_writes(where, [("a", text), ("__error__", text), ("b", text)], "task", "~path")
        found.append([*saver.list(config())])
    assert found[0] == found[1]
    assert [write[1:] for write in found[0][0].pending_writes or ()] == [
        ("__error__", "second"), ("a", "first"), ("b", "first"),
    ]  # fmt: skip


# -- graphs ---------------------------------------------------------------------------------------


class Desk(TypedDict):
    said: Annotated[list[str], operator.add]
    approved: bool


def desk(model: GenericFakeChatModel, saver: BaseCheckpointSaver[str]) -> Any:
    """A graph that drafts by a model, asks a person, and sends."""

    def draft(state: Desk) -> dict[str, Any]:  # noqa: ARG001
        return {"said": [str(model.invoke("draft").content)]}

    def ask(state: Desk) -> dict[str, Any]:  # noqa: ARG001
        return {"approved": interrupt("send it?")}

    def send(state: Desk) -> dict[str, Any]:
        return {"said": ["sent" if state["approved"] else "kept"]}

    builder = StateGraph(Desk)
    builder.add_node(draft).add_node(ask).add_node(send)
    builder.add_edge(START, "draft").add_edge("draft", "ask").add_edge("ask", "send").add_edge("send", END)
    return builder.compile(checkpointer=saver)


def script(*said: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in said]))


def _live(saver: BaseCheckpointSaver[str]) -> list[Any]:
    """Interrupt, resume, go back, take another way; return all that was seen."""
    where = {"configurable": {"thread_id": "t"}}
    graph = desk(script("dear sir", "unused"), saver)
    seen: list[Any] = [graph.invoke({"said": ["hello"]}, where)["said"]]
    state = graph.get_state(where)
    seen += [state.next, [each.value for each in state.interrupts]]
    seen.append(graph.invoke(Command(resume=True), where))
    history = [*graph.get_state_history(where)]
    seen += [(each.next, each.values, each.metadata) for each in history]
    waiting = next(each for each in history if each.next == ("ask",))
    forked = graph.update_state(waiting.config, {"said": ["on second thoughts"]})
    seen.append(graph.invoke(Command(resume=False), forked)["said"])
    seen += [(each.next, each.values["said"]) for each in graph.get_state_history(where) if each.values]
    seen.append(graph.get_state(history[0].config).values)  # the other branch is what it was
    return seen


@pytest.mark.parametrize("thread", [None, True, ["t"]])
def test_what_names_no_thread_is_refused_and_is_no_word_of_python(database: Database, thread: Any) -> None:
    saver = GreenroomSaver(database, ANN)
    with pytest.raises(ValueError, match="thread_id: it takes a text, and got"):
        saver.get_tuple({"configurable": {"thread_id": thread}})
    with pytest.raises(ValueError, match="thread_id: it takes a text, and got"):
        saver.delete_thread(thread)


@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_a_graph_is_interrupted_resumed_and_sent_another_way_as_in_the_frameworks_own_saver(
    database: Database,
) -> None:
    expected = _live(InMemorySaver())
    assert expected[-1] == {"said": ["hello", "dear sir", "sent"], "approved": True}
    assert _live(GreenroomSaver(database, ANN)) == expected


def test_a_graph_runs_on_asyncio(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with at(tmp_path) as database:
            graph = desk(script("dear sir"), GreenroomSaver(database, ANN))
            await graph.ainvoke({"said": ["hello"]}, config())
            assert (await graph.aget_state(config())).next == ("ask",)
            done: dict[str, Any] = await graph.ainvoke(Command(resume=True), config())
            found: list[str] = done["said"]
            return found

    assert asyncio.run(main()) == ["hello", "dear sir", "sent"]


@pytest.mark.slow
@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    program = [sys.executable, "-P", counting.__file__, str(tmp_path / "data"), str(tmp_path / "secrets")]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    done: list[int] = []
    with at(tmp_path) as database:
        graph = counting.graph(GreenroomSaver(database, counting.OWNER), done.append)
        assert graph.get_state(counting.WHERE).values["said"] == ["begin", "1", "2", "3", "4"]
        said = graph.invoke(None, counting.WHERE)["said"]
    assert said == ["begin", *map(str, range(1, 8))]
    assert done == [5, 6, 7], "no step that was finished is taken again"


class Log(TypedDict):
    said: Annotated[list[str], DeltaChannel(lambda said, more: said + [w for each in more for w in each])]


@pytest.mark.promise("adapters.langgraph-checkpoints")
def test_what_is_kept_as_changes_survives_pruning_and_copying(database: Database) -> None:
    saver = GreenroomSaver(database, ANN)
    builder = StateGraph(Log).add_node("say", lambda state: {"said": [str(len(state["said"]))]})
    builder.add_edge(START, "say").add_edge("say", END)
    graph: Any = builder.compile(checkpointer=saver)
    for _ in range(3):
        expected = graph.invoke({"said": ["and"]}, config())["said"]
    assert len(expected) == 6

    def history(channels: list[str], read: Any = GreenroomSaver) -> Any:
        return read.get_delta_channel_history(saver, config=config(), channels=channels)

    assert len(history(["said"])["said"]["writes"]) > 3
    for channels in ([], ["said"], ["said", "__start__", "unknown"]):
        assert history(channels) == history(channels, BaseCheckpointSaver)
    saver.copy_thread("t", "copy")
    for thread in ("t", "copy"):
        saver.prune([thread])
        assert graph.get_state(config(thread)).values["said"] == expected
    assert graph.invoke({"said": ["then"]}, config("copy"))["said"] == [*expected, "then", "7"]
    assert graph.get_state(config()).values["said"] == expected, "a copy is another thread"


# -- what is stored -------------------------------------------------------------------------------


@pytest.mark.promise("adapters.langgraph-small")
def test_a_step_stores_what_it_changed(database: Database) -> None:
    saver, where = GreenroomSaver(database, ANN), config()
    big, small = "x" * 100_000, ""
    versions: dict[str, Any] = {"big": saver.get_next_version(None, None)}
    for number in range(20):
        small = str(number)
        made = checkpoint({"big": big, "small": small})
        new: dict[str, Any] = {"small": saver.get_next_version(versions.get("small"), None)}
        versions |= new
        made["channel_versions"] = dict(versions)
        where = saver.put(where, made, {}, versions if number == 0 else new)
    assert values(saver.get_tuple(config())) == {"big": big, "small": "19"}
    assert sum(len(record) for _, record in stored(database, "t")) < 120_000


@pytest.mark.promise("adapters.langgraph-small")
def test_what_is_pruned_or_deleted_is_gone_with_its_values(database: Database) -> None:
    saver, where = GreenroomSaver(database, ANN), config()
    for number in range(6):
        where = saver.put(
            where,
            checkpoint({"a": f"a{number}" * 700_000, "b": "b"}, version=number),
            {"run_id": f"run {number % 2}"},
            {"a": number, "b": number},
        )
        saver.put_writes(where, [("a", "w" * 2_000_000), ("b", 1)], "task")
    saver.delete_for_runs(["run 0"])
    assert [found.metadata["run_id"] for found in saver.list(config())] == ["run 1"] * 3
    saver.prune(["t"])
    assert [values(found)["a"][:2] for found in saver.list(config())] == ["a5"]
    kept = stored(database, "t")
    assert len(kept) == 7, "a checkpoint; two values, of which one takes two records; two writes likewise"
    assert sum(len(record) for _, record in kept) < 4_000_000
    assert list(saver.list(None)) != []
    saver.delete_thread("t")
    assert stored(database, "t") == []
    assert list(saver.list(None)) == []
    with pytest.raises(ValueError, match="'keep_none'"):
        saver.prune(["t"], strategy="keep_none")


def test_a_shorter_value_leaves_nothing_of_the_longer_one(database: Database) -> None:
    saver, made = GreenroomSaver(database, ANN), checkpoint({"a": "x" * 3_000_000})
    saver.put(config(), made, {}, {"a": 1})
    where = saver.put(config(), {**made, "channel_values": {"a": "short"}}, {}, {"a": 1})
    saver.put_writes(where, [("__error__", "y" * 3_000_000)], "task")
    saver.put_writes(where, [("__error__", "short")], "task")
    found = saver.get_tuple(where)
    assert found is not None
    assert values(found) == {"a": "short"}
    assert found.pending_writes == [("task", "__error__", "short")]
    assert len(stored(database, "t")) == 3


def test_a_thread_of_many_records_is_deleted_in_parts(database: Database) -> None:
    saver = GreenroomSaver(database, ANN)
    where = put(saver, config(), {"a": 1})
    saver.put_writes(where, [("a", number) for number in range(10_500)], "task")

    async def delete() -> bool:
        return await database.ask(thread_address(ANN, "t"), DeleteThread(), principal=ANN)

    assert database.call(delete) is True, "there is more"
    assert len([*saver.list(None)]) == 0
    saver.delete_thread("t")
    assert stored(database, "t") == []


@pytest.mark.promise("adapters.langgraph-small")
def test_a_large_state_comes_back_and_one_that_is_too_large_is_refused(tmp_path: Path) -> None:
    large = {name: name * 9_000_000 for name in "ab"}
    with at(tmp_path) as owning, at(tmp_path) as attached:
        saver = GreenroomSaver(attached, ANN)
        where = put(saver, config(), large)
        saver.put_writes(where, [("d", "d" * 3_000_000), ("e", "e")], "task")
        for database in (owning, attached):
            found = GreenroomSaver(database, ANN).get_tuple(config())
            assert values(found) == large
            assert found is not None
            assert [write[1] for write in found.pending_writes or ()] == ["d", "e"]
        with pytest.raises(ServiceError, match=r"67,\d\d\d,\d\d\d bytes.*limit is 67,108,864"):
            put(saver, config("too large"), {"a": b"x" * (64 << 20)})
        assert saver.get_tuple(config("too large")) is None


class Marked:
    """A serializer with types of its own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "märked", repr(obj).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        assert data[0] == "märked"
        return eval(data[1])  # noqa: S307  what `dumps_typed` wrote


def test_values_are_read_by_the_serializer_that_wrote_them(database: Database) -> None:
    saver = GreenroomSaver(database, ANN, serde=Marked())
    where = put(saver, config(), {"a": {1, 2}})
    saver.put_writes(where, [("b", b"\0")], "task")
    found = saver.get_tuple(where)
    assert found is not None
    assert (values(found), found.pending_writes) == ({"a": {1, 2}}, [("task", "b", b"\0")])


# -- whose they are ---------------------------------------------------------------------------------

LONG = "x" * 10_000
HOSTILE = ["", ".", "..", "../..", "a/b", "a", "a\0b", "a\nb", "é", "e\u0301", "~~", LONG, LONG + "y",
           "user:ben/t", "agent:desk", "x" * 90, "x" * 91, "%00", "\U0001f512", 1, "2"]  # fmt: skip


@pytest.mark.promise("adapters.langgraph-own")
@pytest.mark.parametrize("encryption", [None, KEY])
def test_strange_names_are_kept_apart(tmp_path: Path, encryption: Encryption | None) -> None:
    with at(tmp_path, encryption=encryption) as database:
        saver = GreenroomSaver(database, ANN)
        for name in HOSTILE:
            put(saver, config(name, str(name)), {str(name): str(name)})
            put(saver, config("one", str(name)), {str(name): str(name)})
        for name in HOSTILE:
            for where in (config(name, str(name)), config("one", str(name))):
                assert values(saver.get_tuple(where)) == {str(name): str(name)}
            assert len([*saver.list({"configurable": {"thread_id": name}})]) == 1
        everything = [*saver.list(None)]
        assert len(everything) == 2 * len(HOSTILE)
        ids = [found.checkpoint["id"] for found in everything]
        assert ids == sorted(ids, reverse=True), "newest first over all threads"
        assert [found.checkpoint["id"] for found in saver.list(None, limit=3)] == ids[:3]
        before = config("one", "", ids[4])
        assert [found.checkpoint["id"] for found in saver.list(None, before=before)] == ids[5:]


@pytest.mark.promise("adapters.langgraph-own")
def test_names_that_cannot_be_kept_are_refused(database: Database) -> None:
    saver = GreenroomSaver(database, ANN)
    for where in (config("\ud800"), config("t", "\ud800"), config("t", "", "\ud800")):
        with pytest.raises(ServiceError, match="surrogate"):
            put(saver, where, {"a": 1})
        with pytest.raises(ServiceError, match="surrogate"):
            saver.put_writes(
                {"configurable": {"checkpoint_id": "1", **where["configurable"]}}, [("a", 1)], "task"
            )
    with pytest.raises(ServiceError, match="surrogate"):
        saver.get_tuple(config("\ud800"))
    with pytest.raises(ServiceError, match="129 bytes of UTF-8, and it takes 1 to 128"):
        put(saver, config(), {"a": 1}, checkpoint_id="x" * 129)
    assert saver.get_tuple(config("t", "", "x" * 1_000)) is None
    assert [*saver.list(None)] == []
    kept = saver.put(config(), checkpoint({"a": 1}), {}, {})
    for asked in (config(checkpoint_id="\ud800"), config(namespace="\ud800")):
        with pytest.raises(ServiceError, match="surrogate"):
            saver.get_tuple(asked)
    with pytest.raises(ServiceError, match="surrogate"):
        [*saver.list(config(), before=config(checkpoint_id="\ud800"))]
    assert len([*saver.list(config(), before=config(checkpoint_id="x" * 5_000))]) == 1
    found = saver.get_tuple(config())
    assert found is not None
    assert found.config == kept


@pytest.mark.promise("adapters.langgraph-own")
def test_nobody_else_sees_or_changes_a_thread_and_no_search_finds_it(database: Database) -> None:
    mine, theirs = (GreenroomSaver(database, who) for who in (ANN, BEN))
    no_user = GreenroomSaver(database, Principal(agent_id="desk"))
    where = put(mine, config(), {"secret": "wyvern"})
    for saver in (theirs, no_user):
        assert saver.get_tuple(where) is None
        assert [*saver.list(None)] == [*saver.list(where)] == []
        saver.delete_thread("t")
        saver.prune(["t"], strategy="delete")
        saver.copy_thread("t", "mine now")
        assert saver.get_tuple(config("mine now")) is None
    put(theirs, config(), {"secret": "bens"})
    assert values(mine.get_tuple(config())) == {"secret": "wyvern"}
    assert values(GreenroomSaver(database, Principal(agent_id="other", user="ann")).get_tuple(where))

    async def ask(message: Any) -> None:
        await database.ask(thread_address(ANN, "t"), message, principal=BEN)

    for message in (ReadPart(), ListCheckpoints(), DeleteThread()):
        with pytest.raises(Refusal) as refused:
            database.call(ask, message)
        assert refused.value.code == "PERMISSION_DENIED"

    agent = Agent(cast("RuntimeClient", database), ANN)
    assert database.call(agent.ask, MemorySearch(query="wyvern secret")).memories == []


@pytest.mark.promise("adapters.langgraph-own")
@pytest.mark.parametrize("encryption", [None, KEY])
def test_erasing_a_person_takes_their_threads(tmp_path: Path, encryption: Encryption | None) -> None:
    with at(tmp_path, encryption=encryption) as database:
        mine, theirs = (GreenroomSaver(database, who) for who in (ANN, BEN))
        for saver in (mine, theirs):
            where = put(saver, config(), {"a": "x" * 2_000_000})
            saver.put_writes(where, [("a", 1)], "task")
            put(saver, config("other"), {"a": 1})

        for confirm in (False, True):
            erase = EraseUser(user="ann", confirm=confirm)
            counts = database.call(Agent(cast("RuntimeClient", database), ROOT).ask, erase).counts
            assert (counts["checkpoints"], counts["checkpoint_writes"]) == (2, 1)
            assert (mine.get_tuple(config()) is None) == confirm
        assert [*mine.list(None)] == []
        assert stored(database, "t") == []
        assert len([*theirs.list(None)]) == 2


def test_a_row_of_the_directory_that_was_lost_is_written_again(database: Database) -> None:
    saver = GreenroomSaver(database, ANN)
    put(saver, config("kept"), {"a": 1})

    async def restate(thread: str) -> None:
        await database.ask(thread_address(ANN, thread), Restate())

    for thread in ("kept", "never was"):
        database.call(restate, thread)
    assert database.call(CheckpointService(database, ANN).threads) == ["kept"]


def test_methods_that_block_are_refused_where_an_event_loop_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with at(tmp_path) as database:
            saver = GreenroomSaver(database, ANN)
            with pytest.raises(RuntimeError, match="event loop"):
                saver.get_tuple(config())
            assert await saver.aget_tuple(config()) is None

    asyncio.run(main())
