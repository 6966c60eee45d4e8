"""Exports: what a caller may see, once each, and the same again when it is imported elsewhere."""

from __future__ import annotations

import datetime as dt
import json
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.agents import house
from support.committers import full
from support.exchanges import export, exported_pages, imported, keys, line

from greenroom.actors import (
    ExportMemories,
    ExportResource,
    ForgetMemory,
    ImportMemories,
    MemoryFilters,
    Principal,
    ReadResource,
    SetMemory,
    StoreMemory,
    UpdateMemory,
)
from greenroom.actors.memories.requests import transfer as requests
from greenroom.runtime import (
    Address,
    IndexReader,
    InlineCommitter,
    Procedure,
    Refusal,
    RuntimeOptions,
    StorageFullError,
)
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter

pytestmark = pytest.mark.slow

ANN = Principal(agent_id="planner", user="ann", projects=frozenset({"atlas"}))
BOB = Principal(agent_id="coder", user="bob", projects=frozenset({"zeus"}))
QUIET: dict[str, Any] = {"embedder": "none"}


@pytest.mark.promise("exchange.export")
async def test_an_export_holds_what_its_caller_may_see_and_nothing_else(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        everywhere = [
            line("own"),
            line("deep", namespace="user:ann:a:b"),
            line("mine", namespace="agent:planner"),
        ]
        shared = [
            line("ours", namespace="project:atlas"),
            line("all", namespace="project:atlas", scope="public"),
        ]
        await imported(
            home.runtime, ANN, *everywhere, *shared, line("lone", namespace="project:atlas", scope="private")
        )
        assert await keys(home.runtime, ANN) == ["mine", "ours", "all", "lone", "own", "deep"]
        assert await keys(home.runtime, BOB) == ["all"]
        assert await keys(home.runtime, ANN, "user:ann:a") == ["deep"]
        assert await keys(home.runtime, ANN, "user:an") == []
        assert await keys(home.runtime, BOB, "user:ann") == []
        assert await keys(home.runtime, ANN, "user") == ["own", "deep"]
        assert await keys(home.runtime, ANN, "project") == ["ours", "all", "lone"]
        assert await keys(home.runtime, BOB, "project") == ["all"]
        assert await keys(home.runtime, BOB, "user") == await keys(home.runtime, BOB, "us") == []
        mine = await home.agent("planner", user="ann").ask(ExportMemories(namespace="agent"))
        assert mine.count == 1


@pytest.mark.quick
@pytest.mark.promise("exchange.export")
async def test_what_all_tools_stored_is_in_it_as_it_is_now(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        agent = home.agent("planner", user="ann")
        await agent.ask(SetMemory(key="kv", value=_json([1.50])))
        await agent.ask(SetMemory(key="kv", value=_json([2.50]), metadata=_json({"m": 1})))
        await agent.ask(StoreMemory(key="old", content="first", metadata=_json({"tags": ["t"], "x": 1})))
        home.tick(60)
        await agent.ask(UpdateMemory(key="old", content="second " * 2_000))
        gone = await agent.ask(StoreMemory(key="gone", content="forget me"))
        await agent.ask(ForgetMemory(memory_id=gone.memory_id))
        await agent.ask(StoreMemory(key="short", content="x", metadata=_json({"expiry": "2026-01-01"})))
        found = {each["key"]: each for each in await export(home.runtime, ANN)}
    assert found["kv"] == {
        "key": "kv",
        "value": [2.5],
        "namespace": "agent:planner",
        "created_at": found["kv"]["created_at"],
        "created_by": "planner",
        "scope": "private",
        "metadata": {"m": 1},
    }
    assert found["old"]["content"] == "second " * 2_000
    assert (found["old"]["tags"], found["old"]["metadata"]) == (["t"], {"x": 1})
    assert found["old"]["created_at"] < found["old"]["updated_at"]
    assert "gone" not in found


def _json(value: Any) -> Any:
    import msgspec  # noqa: PLC0415

    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.promise("exchange.export")
async def test_what_is_written_meanwhile_is_in_it_once_or_not_at_all(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        large = "x" * 20_000
        await imported(home.runtime, ANN, *(line(f"k{n:03}", large) for n in range(300)))
        agent = home.agent("planner", user="ann")
        seen: list[str] = []
        number = 0
        async for page in exported_pages(home.runtime, ANN):
            number += 1
            seen += [each["key"] for each in page]
            for key in ("k000", "k299", f"new{number}"):  # one behind, one ahead, one that was not there
                await agent.ask(StoreMemory(key=key, content=large))
        assert number > 3
    assert len(seen) == len(set(seen))
    assert {each for each in seen if each.startswith("k")} == {f"k{n:03}" for n in range(300)}


# -- there and back ------------------------------------------------------------------------

_TEXTS = st.text(min_size=1, max_size=40)
_KEYS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='/\\:*?"<>|'), min_size=1, max_size=12
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).map(  # noqa: DTZ001  UTC is written after it
    lambda time: time.isoformat() + "Z"
)
_LINES = st.builds(
    lambda fields, body: {**fields, **body},
    st.fixed_dictionaries(
        {
            "key": _KEYS,
            "namespace": st.sampled_from(
                ["user:ann", "user:ann:x", "agent:planner", "project:atlas", "team:x:y"]
            ),
            "created_at": _TIMES,
            "created_by": _TEXTS,
            "scope": st.sampled_from(["private", "shared", "public"]),
        },
        optional={
            "updated_at": _TIMES,
            "conversation_id": _TEXTS,
            "position": st.integers(0, 2**53 - 1),
            "tags": st.lists(_TEXTS, min_size=1, max_size=4),
            "kind": st.sampled_from(["episodic", "procedural"]),
            "importance": st.floats(0, 1).filter(lambda number: number != 0.5),  # the default
            "expires_at": st.sampled_from(["2090-01-01T00:00:00Z", "9999-12-31T00:00:00Z"]),
            "metadata": st.dictionaries(_TEXTS, _JSON, min_size=1, max_size=3),
        },
    ),
    st.fixed_dictionaries({"content": _TEXTS}) | st.fixed_dictionaries({"value": _JSON}),
)


@pytest.mark.promise("exchange.round-trip")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(lines=st.lists(_LINES, max_size=8, unique_by=lambda one: (one["key"], one["namespace"])))
def test_an_export_imports_as_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]]
) -> None:
    async def there_and_back() -> None:
        async with house(tmp_path_factory.mktemp("one") / "data", VirtualClock(), **QUIET) as home:
            done = await imported(home.runtime, ANN, *lines)
            assert done.counts == ({"created": len(lines)} if lines else {})
            first = await export(home.runtime, ANN)
            again = await imported(home.runtime, ANN, *first, on_conflict="overwrite")
            assert again.counts == ({"unchanged": len(lines)} if lines else {})
        async with house(tmp_path_factory.mktemp("two") / "data", VirtualClock(), **QUIET) as home:
            await imported(home.runtime, ANN, *first)
            assert await export(home.runtime, ANN) == first
        by_place = {(one["key"], one["namespace"]): one for one in first}
        for given_line in lines:
            kept = by_place[given_line["key"], given_line["namespace"]]
            if given_line.get("updated_at", given_line["created_at"]) == given_line["created_at"]:
                given_line.pop("updated_at", None)
            assert _normal(kept) == _normal(given_line)

    trio.run(there_and_back, clock=trio.testing.MockClock(autojump_threshold=0))


def _normal(one: dict[str, Any]) -> dict[str, Any]:
    """Return a line with its times as times: one instant is written in several ways."""
    return {
        name: dt.datetime.fromisoformat(value) if name.endswith("_at") else value
        for name, value in one.items()
    }


# -- the tool ------------------------------------------------------------------------------


@pytest.mark.promise("exchange.export-tool")
@pytest.mark.parametrize("format", ["jsonl", "json"])
async def test_the_tool_links_to_what_the_caller_alone_can_read(enter: Enter, format: Any) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(f"k{n}", "x" * 50_000) for n in range(40)))
        agent = home.agent("planner", user="ann")
        done = await agent.ask(ExportMemories(format=format))
        read: Any = await agent.ask(ReadResource(uri=done.uri))
        again: Any = await home.agent("planner", user="ann", key_id="another").ask(ReadResource(uri=done.uri))
        for stranger in (
            home.agent("planner", user="bob"),
            home.agent("planner"),
            home.agent("another", user="ann"),  # sees less: not what the planner keeps for itself
            home.agent("planner", user="ann", projects=frozenset({"p"})),
        ):
            with pytest.raises(Refusal, match="there is no resource"):
                await stranger.ask(ReadResource(uri=done.uri))
        home.tick(2 * 86_400)
        await trio.sleep(60)
        with pytest.raises(Refusal, match="there is no resource"):
            await agent.ask(ReadResource(uri=done.uri))
    data = read.text.encode()
    assert again.text == read.text
    assert (done.count, done.size_bytes, done.digest) == (40, len(data), sha256(data).hexdigest())
    assert (
        read.mime_type == done.mime_type == ("application/json" if format == "json" else "application/jsonl")
    )
    found = json.loads(data) if format == "json" else [json.loads(each) for each in data.splitlines()]
    assert [each["key"] for each in found] == [f"k{n}" for n in range(40)]


async def test_filters_choose_what_is_exported(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, line("a", tags=["x"]), line("b", kind="episodic"), line("c"))
        agent = home.agent("planner", user="ann")
        counts = [
            (await agent.ask(ExportMemories(filters=filters))).count
            for filters in (
                MemoryFilters(tags=["x"]),
                MemoryFilters(kind="episodic"),
                MemoryFilters(namespace="user:ann:none"),
            )
        ]
    assert counts == [1, 1, 0]


async def test_an_export_that_is_too_large_to_be_kept_names_the_command(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_EXPORT_BYTES", 1_000)
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(f"k{n}") for n in range(40)))
        with pytest.raises(Refusal, match=r"more than 1,000 bytes; .* `greenroom export`"):
            await home.agent("planner", user="ann").ask(ExportMemories())


@pytest.mark.promise("exchange.export-tool")
@pytest.mark.parametrize("format", ["jsonl", "json"])
async def test_a_large_export_comes_in_parts_that_can_be_imported_one_by_one(
    enter: Enter, monkeypatch: pytest.MonkeyPatch, folder: Path, format: Any
) -> None:
    monkeypatch.setattr(requests, "MAX_PART_BYTES", 100_000)
    async with enter(**QUIET) as home:
        lines = [line(f"k{n:03}", "x" * (n * 7_919 % 40_000 + 1)) for n in range(200)]
        await imported(home.runtime, ANN, *lines)
        agent = home.agent("planner", user="ann")
        done = await agent.ask(ExportMemories(format=format))
        texts = [(await agent.ask(ReadResource(uri=part.uri))).text for part in done.parts]  # type: ignore[attr-defined]
        for wrong in (f"{done.uri}/1", f"{done.uri}/{len(texts) + 1}", f"{done.uri}/0", f"{done.uri}/"):
            with pytest.raises(Refusal, match="there is no resource"):
                await agent.ask(ReadResource(uri=wrong))
    data = [text.encode() for text in texts]
    assert done.uri == done.parts[0].uri
    assert len({part.uri for part in done.parts}) == len(done.parts) > 30
    assert (done.count, done.size_bytes) == (200, sum(map(len, data)))
    assert done.digest == sha256(b"".join(data)).hexdigest()
    for part, each in zip(done.parts, data, strict=True):
        assert 50_000 < len(each) <= 100_000 or part is done.parts[-1]
        assert (part.size_bytes, part.digest) == (len(each), sha256(each).hexdigest())
    async with house(folder.with_name("other"), VirtualClock(), **QUIET) as home:
        agent = home.agent("planner", user="ann")
        for part, each in zip(done.parts, texts, strict=True):
            assert (await agent.ask(ImportMemories(source=each))).counts == {"created": part.count}
        assert await keys(home.runtime, ANN) == [f"k{n:03}" for n in range(200)]


async def test_a_memory_that_no_part_has_room_for_is_named(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_PART_BYTES", 1_000)
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, line("small"), line("large", "x" * 1_000))
        agent = home.agent("planner", user="ann")
        with pytest.raises(Refusal, match=r"'large' in user:ann takes 1,\d\d\d bytes, .* `greenroom export`"):
            await agent.ask(ExportMemories())
        assert (await agent.ask(ExportMemories(filters=MemoryFilters(key="small")))).count == 1


@pytest.mark.parametrize(("format", "nothing"), [("jsonl", ""), ("json", "[]\n")])
async def test_nothing_is_an_empty_array_or_an_empty_text(enter: Enter, format: Any, nothing: str) -> None:
    async with enter(**QUIET) as home:
        agent = home.agent("planner", user="ann")
        done = await agent.ask(ExportMemories(format=format))
        read = await agent.ask(ReadResource(uri=done.uri))
        assert isinstance(read, ExportResource)
        assert read.text == nothing


def test_the_limits_of_tools_fit_into_a_frame() -> None:
    assert 2 * requests.MAX_SOURCE_BYTES <= 8 << 20
    assert 2 * requests.MAX_PART_BYTES < (8 << 20) - 10_000
    assert requests.MAX_PART_BYTES <= requests.MAX_SOURCE_BYTES


@pytest.mark.promise("exchange.export")
async def test_an_export_says_where_an_import_is_decided_and_not_written(enter: Enter) -> None:
    has_room = False
    is_stuck = trio.Event()

    def commit(store: Any, works: Any) -> None:
        for work in works:
            told = [envelope.message for envelope, _ in getattr(work, "replies", ())]
            if not has_room and any(isinstance(each, requests.ApplyLines) for each in told):
                work.error = full()
                is_stuck.set()
        store.commit(works)

    async with enter(committer=InlineCommitter(commit), **QUIET) as home, trio.open_nursery() as nursery:
        planner = home.agent("planner", user="ann", projects=frozenset({"atlas"}))
        await planner.ask(StoreMemory(content="there", key="there"))
        lines = [line("one"), line("two", namespace="project:atlas")]
        nursery.start_soon(partial(imported, home.runtime, ANN, *lines))
        await is_stuck.wait()
        stuck = await planner.ask(ExportMemories())
        assert (stuck.count, stuck.unwritten) == (1, ["project:atlas", "user:ann"])
        assert (await planner.ask(ExportMemories(namespace="project"))).unwritten == ["project:atlas"]
        coder = home.agent("coder", user="bob", projects=frozenset({"zeus"}))
        assert (await coder.ask(ExportMemories())).unwritten == []
        has_room = True
        await trio.sleep(120)
        whole = await planner.ask(ExportMemories())
        assert (whole.count, whole.unwritten) == (3, [])


class Exports(Procedure[list[Address]], frozen=True):
    """The actors that keep exports."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> list[Address]:
        return list(reader.addresses("export"))


@pytest.mark.promise("exchange.export", "store.space-reserve")
async def test_an_export_in_a_full_store_leaves_nothing_and_names_the_command(enter: Enter) -> None:
    options = RuntimeOptions(durability="process", max_size=4 << 20, min_free=0)
    async with enter(options=options, queries=[Exports], **QUIET) as home:
        planner = home.agent("planner", user="ann")
        stored: list[str] = []
        refusals = 0
        while refusals < 30:
            try:
                await planner.ask(StoreMemory(key=f"k{len(stored)}", content="the harbour " * 100))
                stored.append(f"k{len(stored)}")
            except StorageFullError:
                refusals += 1
        for _ in range(3):
            with pytest.raises(StorageFullError, match="take `greenroom export`"):
                await planner.ask(ExportMemories())
        assert await home.runtime.query(Exports()) == []
        assert await keys(home.runtime, ANN) == stored
