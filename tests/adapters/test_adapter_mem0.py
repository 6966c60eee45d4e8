"""mem0's interface: signatures, shapes and errors of mem0 2.2.1, over memories of Greenroom."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.adapters import CHECKS, Case, Check, database

from greenroom.actors import Database, MemoryService, Principal, SearchService, ServiceError
from greenroom.adapters.mem0 import AsyncMemory, Memory, ValidationError

pytestmark = pytest.mark.slow


async def write(opened: Database, text: str) -> None:
    await AsyncMemory(opened).add(text, user_id="ada", infer=False)


async def read(opened: Database) -> list[str]:
    found = await AsyncMemory(opened).get_all(filters={"user_id": "ada"}, top_k=1_000)
    return [each["memory"] for each in found["results"]]


@pytest.mark.quick
@pytest.mark.promise("adapters.mem0-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with database(tmp_path_factory.mktemp("mem0")) as opened:
        yield opened


@pytest.fixture
def memory(opened: Database) -> Memory:
    memory = Memory(opened)
    for user in ("ada", "bob"):
        memory.delete_all(user_id=user)
    return memory


PARAMETERS = {  # of mem0ai 2.2.1
    "add": "messages user_id agent_id run_id metadata timestamp expiration_date infer memory_type prompt",
    "get": "memory_id",
    "get_all": "filters top_k show_expired",
    "search": "query top_k filters threshold rerank explain reference_date show_expired",
    "update": "memory_id text metadata expiration_date data",
    "delete": "memory_id",
    "delete_all": "user_id agent_id run_id",
    "history": "memory_id",
    "reset": "",
}
DEFAULTS = {
    "infer": True,
    "top_k": 20,
    "threshold": 0.1,
    "rerank": False,
    "explain": False,
    "show_expired": False,
}


@pytest.mark.quick
@pytest.mark.promise("adapters.mem0-interface")
@pytest.mark.parametrize("name", PARAMETERS)
def test_methods_take_what_those_of_mem0_take(name: str) -> None:
    more = " llm" if name == "add" else ""  # which of mem0's classes only `AsyncMemory` takes
    for kind in (Memory, AsyncMemory):
        parameters = inspect.signature(getattr(kind, name)).parameters
        known = {each: given for each, given in parameters.items() if each not in {"self", "others"}}
        assert list(known) == (PARAMETERS[name] + more).split()
        assert ("others" in parameters) == (name in {"get_all", "search"})
        for each in DEFAULTS.keys() & known.keys():
            assert known[each].default == DEFAULTS[each]
        assert inspect.iscoroutinefunction(getattr(kind, name)) == (kind is AsyncMemory)


@pytest.mark.promise("adapters.mem0-interface")
def test_answers_have_the_shapes_of_mem0(memory: Memory) -> None:
    added = memory.add(
        [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "I drink oolong tea"},
            {"role": "assistant", "content": "Noted", "name": "helper"},
            {"role": "user"},
            "no message",
        ],
        user_id=" ada ",
        agent_id="desk",
        run_id="r1",
        metadata={"topic": "tea", "tags": 7, "_scope": "x", "user_id": "bob", "importance": "high"},
        infer=False,
    )
    first, second = added["results"]
    assert {**first, "id": ""} == {
        "id": "",
        "memory": "I drink oolong tea",
        "event": "ADD",
        "actor_id": None,
        "role": "user",
    }
    assert (second["actor_id"], second["role"]) == ("helper", "assistant")
    item = {
        "id": first["id"],
        "memory": "I drink oolong tea",
        "hash": hashlib.md5(b"I drink oolong tea").hexdigest(),  # noqa: S324  mem0's own
        "metadata": {"topic": "tea", "tags": 7, "_scope": "x", "importance": "high"},
        "user_id": "ada",
        "agent_id": "desk",
        "run_id": "r1",
        "role": "user",
    }
    shown = memory.get(first["id"])
    assert shown is not None
    times = {"created_at": shown["created_at"], "updated_at": shown["updated_at"]}
    assert datetime.fromisoformat(times["created_at"]).tzinfo is not None
    assert shown == {**item, **times, "score": None}
    (listed,) = memory.get_all(filters={"user_id": "ada", "role": "user"})["results"]
    assert listed == {**item, **times}
    best = memory.search("oolong", filters={"user_id": "ada"}, explain=True)["results"][0]
    assert best.pop("score_details")
    assert best == {**item, **times, "score": 1.0}
    inferred = memory.add("I live in Oslo", user_id="ada")["results"][0]
    assert {**inferred, "id": ""} == {"id": "", "memory": "I live in Oslo", "event": "ADD"}
    assert memory.get("no such id") is None
    assert memory.get_all(filters={"user_id": "ada"}, top_k=0) == {"results": []}


def test_what_json_does_not_have_is_refused_as_a_value_error(memory: Memory) -> None:
    for text, metadata in (("tea \ud800", None), ("tea", {"n": object()}), ("tea", {"n": {2j}})):
        with pytest.raises(ServiceError, match="no value for JSON"):
            memory.add(text, user_id="ada", metadata=metadata)
    with pytest.raises(ServiceError, match="no value for JSON"):
        memory.search("tea \ud800", filters={"user_id": "ada"})


def test_an_extractor_says_what_is_kept(opened: Database, memory: Memory) -> None:
    picky = Memory(opened, extractor=lambda messages: [f"{len(messages)} said {messages[0]['content']}", " "])
    texts = [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}]
    assert [each["memory"] for each in picky.add(texts, user_id="ada")["results"]] == ["2 said a"]
    assert len(picky.add(texts, user_id="ada", infer=False)["results"]) == 2
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 3


def test_methods_that_block_are_refused_where_an_event_loop_runs(opened: Database, memory: Memory) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="event loop"):
            memory.get_all(filters={"user_id": "ada"})
        assert await AsyncMemory(opened).get_all(filters={"user_id": "ada"}) == {"results": []}

    asyncio.run(main())


@pytest.mark.quick
@pytest.mark.promise("adapters.mem0-users")
def test_nothing_of_a_user_is_shown_to_another(opened: Database, memory: Memory) -> None:
    memory.add("the secret is 42", user_id="ada", agent_id="desk", run_id="r")
    memory.add("the secret is 43", agent_id="desk", run_id="r")
    memory.add("the secret is 44", run_id="r")
    hostile: list[dict[str, Any]] = [
        {"user_id": "bob"},
        {"user_id": "bob", "OR": [{"user_id": "ada"}, {"run_id": "r"}]},
        {"user_id": "bob", "AND": [{"user_id": "ada"}]},
        {"user_id": "bob", "NOT": [{"user_id": "bob"}]},
        {"user_id": "ada:mem0"},
        {"user_id": "~61da"},
        {"user_id": "*"},
        {"user_id": "ADA"},
    ]
    for filters in hostile:
        assert memory.get_all(filters=filters) == {"results": []}, filters
        assert memory.search("secret", filters=filters) == {"results": []}, filters
    for filters, text in (
        ({"user_id": "ada"}, "42"),
        ({"user_id": "ada", "agent_id": "desk"}, "42"),
        ({"agent_id": "desk"}, "43"),
        ({"run_id": "r"}, "44"),
    ):
        (found,) = memory.search("secret", filters=filters)["results"]
        assert found["memory"].endswith(text)
    bob = SearchService(opened, Principal(agent_id="x", user="bob"))
    assert opened.call(bob.search_memories, "secret").memories == []
    other = opened.call(
        MemoryService(opened).add_memory, "user:ada:notes", "k", {"content": "x"}, "semantic", "x", "t"
    )
    assert other > 0
    assert all(each["memory"] != "x" for each in memory.get_all(filters={"user_id": "ada"})["results"])
    memory.delete_all(run_id="r")
    memory.delete_all(agent_id="desk")
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 1


def test_ids_of_any_kind_are_kept_apart(memory: Memory) -> None:
    ids = ["ü", "ue", "a:b", "a/b", "..", "~", "%", 7, "x" * 100, "é", "e\u0301", "mem0", "mem0.x"]
    for name in ("user_id", "agent_id", "run_id"):
        for each in ids:
            memory.add(f"of {name} {each}", **{name: each})  # type: ignore[arg-type]
        for each in ids:
            found = memory.get_all(filters={name: each})["results"]
            assert [(one["memory"], one[name]) for one in found] == [(f"of {name} {each}", str(each))]
            assert memory.get(found[0]["id"]) == {**found[0], "score": None}
    with pytest.raises(ValueError, match=r"user_id.*too long"):
        memory.add("x", user_id="x" * 101)
    with pytest.raises(ValueError, match=r"run_id.*256 characters"):
        memory.add("x", run_id="x" * 256)
    assert memory.add("x", agent_id="x" * 10_000)["results"]


@pytest.mark.quick
@pytest.mark.promise("adapters.mem0-history")
def test_a_history_has_all_versions(memory: Memory) -> None:
    memory_id = memory.add([{"role": "user", "content": "one", "name": "ada"}], user_id="ada", infer=False)[
        "results"
    ][0]["id"]
    assert memory.update(memory_id, "two") == {"message": "Memory updated successfully!"}
    memory.update(memory_id, metadata={"mood": "good", "user_id": "bob"})
    memory.update(memory_id, data="three", metadata={"tags": ["x"]})
    shown = memory.get(memory_id)
    assert shown is not None
    assert (shown["memory"], shown["metadata"], shown["user_id"]) == (
        "three",
        {"mood": "good", "tags": ["x"]},
        "ada",
    )
    rows = memory.history(memory_id)
    texts = [(row["event"], row["old_memory"], row["new_memory"]) for row in rows]
    assert texts == [
        ("ADD", None, "one"),
        ("UPDATE", "one", "two"),
        ("UPDATE", "two", "two"),
        ("UPDATE", "two", "three"),
    ]
    assert {row["memory_id"] for row in rows} == {memory_id}
    assert len({row["id"] for row in rows}) == 4
    assert all((row["actor_id"], row["role"], row["is_deleted"]) == ("ada", "user", False) for row in rows)
    assert memory.delete(memory_id) == {"message": "Memory deleted successfully!"}
    rows = memory.history(memory_id)
    assert [row["event"] for row in rows] == ["ADD", *["UPDATE"] * 3, "DELETE"]
    assert (rows[-1]["is_deleted"], rows[-1]["new_memory"]) == (True, None)
    assert memory.get(memory_id) is None
    assert memory.history("nothing") == []


def test_a_last_day_that_is_no_day_ends_nothing(opened: Database, memory: Memory) -> None:
    memory_id = memory.add("tea", user_id="ada", metadata={"expiration_date": "soon"})["results"][0]["id"]
    memory.update(memory_id, metadata={"expiration_date": "2020-13-45"})
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 1
    others = MemoryService(opened, Principal(agent_id="client", user="ada"))
    named, until = (
        ("user:ada:mem0", "by hand", {"content": "tea"}),
        {"user_id": "ada", "expiration_date": "x"},
    )
    opened.call(others.add_memory, *named, "semantic", "client", "task", until)
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 2
    assert len(memory.search("tea", filters={"user_id": "ada"}, threshold=0)["results"]) == 2


def test_an_add_that_asyncio_cancels_between_two_texts_keeps_all(opened: Database, memory: Memory) -> None:
    assert memory.get_all(filters={"user_id": "ada"}) == {"results": []}

    async def main() -> None:
        awaited = AsyncMemory(opened)
        said = [{"role": "user", "content": str(number)} for number in range(30)]
        for change, count in ((awaited.add(said, user_id="ada"), 30), (awaited.delete_all(user_id="ada"), 0)):
            before = len(await read(opened))
            changing = asyncio.ensure_future(change)
            while len(await read(opened)) == before:
                pass
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)
            assert len(await read(opened)) == count

    asyncio.run(main())


def test_an_extractor_may_ask_the_memory_itself(opened: Database, memory: Memory) -> None:
    def extract(messages: Sequence[dict[str, Any]]) -> list[str]:
        known = memory.get_all(filters={"user_id": "bob"})["results"]
        return [f"{messages[0]['content']} after {len(known)}"]

    picky = Memory(opened, extractor=extract)
    assert picky.add("plums", user_id="bob")["results"][0]["memory"] == "plums after 0"

    async def main() -> None:
        added = await AsyncMemory(opened, extractor=extract).add("pears", user_id="bob")
        assert added["results"][0]["memory"] == "pears after 1"

    asyncio.run(main())


def test_filters_go_by_metadata_and_days(memory: Memory) -> None:
    yesterday, tomorrow = (datetime.now(UTC).date() + timedelta(days=days) for days in (-2, 2))
    memory.add("tea old", user_id="ada", metadata={"n": 1, "who": "Ada"}, expiration_date=yesterday)
    memory.add(
        "tea new", user_id="ada", metadata={"n": 2, "who": "Bob"}, expiration_date=tomorrow.isoformat()
    )
    memory.add("tea now", user_id="ada", metadata={"n": 3, "tags": ["x"]})

    def found(**filters: Any) -> set[int]:
        asked = {"user_id": "ada", **filters}
        listed = {
            each["metadata"]["n"] for each in memory.get_all(filters=asked, show_expired=True)["results"]
        }
        searched = memory.search("tea", filters=asked, show_expired=True, threshold=0)["results"]
        assert {each["metadata"]["n"] for each in searched} == listed
        return listed

    assert found(n=2) == {2}
    assert found(n={"gt": 1, "lte": 3}) == {2, 3}
    assert found(n={"in": [1, 3]}) == {1, 3}
    assert found(n={"nin": [1, 3]}) == {2}
    assert found(who={"ne": "Ada"}) == {2, 3}
    assert found(who={"icontains": "A"}) == {1}
    assert found(who="*") == {1, 2}
    assert found(who={"gt": 1}) == set()
    assert found(tags={"contains": "x"}) == {3}
    assert found(OR=[{"n": 1}, {"who": "Bob"}], NOT=[{"n": 1}]) == {2}
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 2
    shown = memory.search("tea", filters={"user_id": "ada"}, threshold=0)["results"]
    assert {each["metadata"]["n"] for each in shown} == {2, 3}
    old = memory.get_all(filters={"user_id": "ada", "n": 1}, show_expired=True)["results"][0]
    assert old["expiration_date"] == yesterday.isoformat()
    memory.update(old["id"], expiration_date=None)
    assert len(memory.get_all(filters={"user_id": "ada"})["results"]) == 3


@pytest.mark.quick
@pytest.mark.promise("adapters.mem0-errors")
@pytest.mark.parametrize(
    ("name", "arguments", "given", "sentence"),
    [
        ("add", ("x",), {"user_id": ""}, "Invalid user_id: cannot be empty"),
        ("add", ("x",), {"user_id": "a b"}, "Invalid user_id: cannot contain whitespace"),
        ("add", ("x",), {"user_id": True}, "Invalid user_id: it takes a text, and got bool"),
        ("add", ("x",), {"user_id": "a", "timestamp": 1}, "timestamp is not supported"),
        ("add", ("x",), {"user_id": "a", "expiration_date": "soon"}, "expiration_date must be a valid date"),
        ("add", ("x" * 1_048_577,), {"user_id": "a"}, "1048576|1,048,576"),
        ("add", ("half \ud800",), {"user_id": "a"}, "lone surrogate at character 5"),
        ("add", ("x",), {"user_id": "a", "metadata": {"of": object()}}, "no value for JSON"),
        ("search", ("half \ud800",), {"filters": {"user_id": "a"}}, "lone surrogate at character 5"),
        ("get_all", (), {"filters": {"user_id": "a", "NOT": [5]}}, "dictionaries, and got 5"),
        ("delete", ("\ud800",), {}, "not found"),
        ("search", ("x",), {"user_id": "a"}, r"Top-level entity parameters \{'user_id'\} are not supported"),
        ("search", ("x",), {}, "filters must contain at least one of"),
        ("search", ("x",), {"filters": {"user_id": None}}, "filters must contain at least one of"),
        ("search", (" ",), {"filters": {"user_id": "a"}}, "Invalid query: cannot be empty"),
        ("search", ("x",), {"filters": {"user_id": "a"}, "threshold": 2}, "Invalid threshold: 2"),
        ("search", ("x",), {"filters": {"user_id": "a"}, "top_k": -1}, "Invalid top_k: -1"),
        ("search", ("x",), {"filters": {"user_id": "a"}, "reference_date": 1}, "reference_date is not"),
        ("search", ("x",), {"filters": {"user_id": "a", "n": {"like": 1}}}, "filter operator: like"),
        ("search", ("x",), {"filters": {"user_id": "a", "OR": []}}, "OR operator requires a non-empty list"),
        ("get_all", (), {"filters": {"user_id": "a"}, "top_k": True}, "top_k must be a valid integer"),
        ("get_all", (), {"agent_id": "a"}, "not supported in get_all"),
        ("update", ("id",), {}, "At least one of text, metadata, or expiration_date"),
        ("update", ("id", "x"), {}, "Memory with id id not found. Please provide"),
        ("delete", ("id",), {}, "Memory with id id not found"),
        ("delete_all", (), {}, "At least one filter is required"),
    ],
)
def test_wrong_arguments_are_refused_as_by_mem0(
    memory: Memory, name: str, arguments: tuple[Any, ...], given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        getattr(memory, name)(*arguments, **given)


@pytest.mark.promise("adapters.mem0-errors")
def test_what_mem0_has_errors_of_its_own_for(memory: Memory) -> None:
    for messages, given, code in (
        ("x", {}, "VALIDATION_001"),
        ("x", {"user_id": "a", "memory_type": "episodic"}, "VALIDATION_002"),
        (7, {"user_id": "a"}, "VALIDATION_003"),
    ):
        with pytest.raises(ValidationError) as caught:
            memory.add(messages, **given)  # type: ignore[arg-type]
        assert (caught.value.error_code, bool(caught.value.suggestion)) == (code, True)
    with pytest.raises(NotImplementedError, match="delete_all"):
        memory.reset()
    with pytest.raises(TypeError, match="limit"):
        memory.get_all(filters={"user_id": "a"}, limit=3)  # type: ignore[arg-type]
