"""Imports: all or nothing, again without effect, with owners, authors and times as given."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import AuditTrail
from support.exchanges import export, imported, keys, line, text

from greenroom.actors import GetMemory, Principal, open_greenroom
from greenroom.actors._namespaces import memory_address
from greenroom.actors.exchange._importing import Importer, ImportRefusedError
from greenroom.actors.exchange._json_lines import Source, source_of_text
from greenroom.actors.exchange._making import Made, SourceError
from greenroom.actors.memory import _importing
from greenroom.actors.recall._search import MemorySearch
from greenroom.actors.requests._exchange import ReadImport, StageLines
from greenroom.actors.requests._memories import ListVersions, ReadMemory, StoreMemory
from greenroom.runtime import ActorFailedError, Address, Refusal, verify
from greenroom.runtime._mailbox import Envelope

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

    from greenroom.runtime import Doors

ANN = Principal(agent_id="planner", user="ann")
BOB = Principal(agent_id="coder", user="bob")
QUIET: dict[str, Any] = {"embedder": "none"}


async def read(doors: Doors, principal: Principal, key: str, namespace: str = "user:ann", **more: Any) -> Any:
    message = ReadMemory(key=key, namespace=namespace, **more)
    return (await doors.ask(memory_address(namespace), message, principal=principal)).memory


# -- what is kept ------------------------------------------------------------------


@pytest.mark.promise("exchange.import")
async def test_everything_that_a_line_says_is_kept(enter: Enter) -> None:
    given = line(
        "atlas.1",
        "Ann likes maps",
        namespace="project:atlas:notes",
        created_at="2023-05-08T13:56:00Z",
        updated_at="2024-01-01T00:00:00+01:00",
        created_by="Caroline",
        conversation_id="atlas chat",
        position=7,
        tags=["maps", "ann", "maps "],
        kind="episodic",
        importance=0.9,
        scope="public",
        expires_at="2030-01-01T00:00:00Z",
        metadata={"n": 1.0, "big": 12345678901234567890},
    )
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, given)
        assert (done.lines, done.counts, done.namespaces) == (1, {"created": 1}, {"project:atlas:notes": 1})
        memory = await read(home.runtime, ANN, "atlas.1", "project:atlas:notes")
    assert memory.content == "Ann likes maps"
    assert memory.created_at == dt.datetime(2023, 5, 8, 13, 56, tzinfo=dt.UTC)
    assert memory.updated_at == dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC)
    assert memory.expires_at == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert (memory.author, memory.conversation_id, memory.position) == ("Caroline", "atlas chat", 7)
    assert (memory.tags, memory.kind, memory.importance) == (["maps", "ann", "maps "], "episodic", 0.9)
    assert (memory.scope, memory.version) == ("public", 1)
    assert bytes(memory.metadata) == b'{"n":1.0,"big":12345678901234567890}' or json.loads(
        bytes(memory.metadata)
    ) == {"n": 1.0, "big": 12345678901234567890}


@pytest.mark.promise("exchange.owner")
async def test_the_owner_is_who_imports_whoever_wrote_it(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, line("secret", created_by="bob"))
        await imported(
            home.runtime, ANN, line("hers", namespace="project:atlas", scope="private", created_by="bob")
        )
        await imported(home.runtime, ANN, line("ours", namespace="project:atlas", created_by="bob"))
        assert await keys(home.runtime, BOB) == ["ours"]
        assert await keys(home.runtime, ANN) == ["hers", "ours", "secret"]


@pytest.mark.promise("exchange.import")
async def test_lines_without_a_namespace_go_to_the_users_own_or_to_the_one_given(enter: Enter) -> None:
    nobody = Principal(agent_id="planner")
    async with enter(**QUIET) as home:
        first = await imported(home.runtime, ANN, line("a"))
        second = await imported(
            home.runtime, ANN, line("a"), line("b", namespace="team:x"), namespace="user:ann:work"
        )
        third = await imported(home.runtime, nobody, line("a"))
    assert first.namespaces == {"user:ann": 1}
    assert second.namespaces == {"user:ann:work": 1, "team:x": 1}
    assert third.namespaces == {"agent:planner": 1}


async def test_what_an_agent_imports_into_its_own_namespace_its_old_tools_find(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        own = {"namespace": "agent:planner"}
        lines = [line("plan", value={"step": 1}, **own), line("note", "as text", **own)]
        await imported(home.runtime, ANN, *lines, line("plan", value=[2], session_id="s", **own))
        agent = home.agent("planner", user="ann")
        assert bytes((await agent.ask(GetMemory(key="plan"))).value) == b'{"step": 1}'
        assert bytes((await agent.ask(GetMemory(key="note"))).value) == b'"as text"'


async def test_the_next_search_finds_what_was_imported(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(f"k{n}", f"the {n}th lighthouse keeper") for n in range(50)))
        found = await home.runtime.query(MemorySearch(query="lighthouse", limit=100), principal=ANN)
    assert {each.key for each in found.memories} == {f"k{n}" for n in range(50)}


# -- keys that are there -------------------------------------------------------------


@pytest.mark.promise("exchange.idempotent")
@pytest.mark.parametrize("on_conflict", ["skip", "overwrite", "version"])
async def test_a_second_time_changes_nothing(enter: Enter, on_conflict: Any) -> None:
    lines = [
        line("a", created_at="2020-01-01T00:00:00Z", created_by="x", tags=["t"], importance=0.25),
        line("b", value={"n": [1, 2.50]}, metadata={"m": 1}, expires_at="2040-01-01T00:00:00Z"),
        line("c", namespace="project:atlas", supersedes="d", conversation_id="c", position=0),
        line("d", namespace="project:atlas"),
        line("e", namespace="agent:planner", value=None),
    ]
    async with enter(**QUIET) as home:
        first = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        before = await export(home.runtime, ANN)
        home.tick(3_600)
        second = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        after = await export(home.runtime, ANN)
        versions = {
            each["key"]: (await read(home.runtime, ANN, each["key"], each["namespace"])).version
            for each in after
        }
    assert first.counts == {"created": 5}
    assert second.counts == {"skipped": 5} if on_conflict == "skip" else {"unchanged": 5}
    assert before == after
    assert set(versions.values()) == {1}


@pytest.mark.promise("exchange.conflict")
@pytest.mark.parametrize(
    ("on_conflict", "counts", "content", "versions"),
    [
        ("skip", {"skipped": 1, "created": 1}, "old", [1]),
        ("overwrite", {"overwritten": 1, "created": 1}, "new", [2]),
        ("version", {"versioned": 1, "created": 1}, "new", [1, 2]),
    ],
)
async def test_a_key_that_is_there_is_skipped_or_overwritten_or_gets_a_version(
    enter: Enter, on_conflict: Any, counts: dict[str, int], content: str, versions: list[int]
) -> None:
    async with enter(**QUIET) as home:
        agent = home.agent("planner", user="ann")
        stored = await agent.ask(StoreMemory(key="a", content="old"))
        home.tick()
        lines = [line("a", "new", created_at="2020-01-01T00:00:00Z"), line("b")]
        tried = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict, dry_run=True)
        assert await keys(home.runtime, ANN) == ["a"]
        done = await imported(home.runtime, ANN, *lines, on_conflict=on_conflict)
        memory = await read(home.runtime, ANN, "a")
        listed = await agent.ask(ListVersions(key="a"))
    assert tried.counts == done.counts == counts
    assert (memory.content, memory.memory_id) == (content, stored.memory_id)
    assert [each.version for each in listed.versions] == versions
    if on_conflict != "skip":
        assert memory.created_at == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


async def test_what_is_another_ones_is_not_touched(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        here = {"namespace": "project:atlas"}
        await imported(home.runtime, BOB, line("a", "bob's", **here))
        done = await imported(home.runtime, ANN, line("a", "ann's", **here), on_conflict="overwrite")
        assert done.counts == {"created": 1}
        both = await export(home.runtime, ANN)
    assert [each["content"] for each in both] == ["bob's", "ann's"]
    assert [each["key"] for each in both] == ["a", "a~ann"]  # so that the export can be imported


async def test_what_has_expired_is_counted_and_left_out(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        old = line("a", expires_at="2000-01-01T00:00:00Z")
        done = await imported(home.runtime, ANN, old, line("b"))
        assert done.counts == {"expired": 1, "created": 1}
        assert await keys(home.runtime, ANN) == ["b"]


async def test_links_are_made_whichever_line_comes_first(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        lines = [
            line("3", supersedes="2"),
            line("2", supersedes="1"),
            line("1"),
            line("4", supersedes="nowhere"),
        ]
        done = await imported(home.runtime, ANN, *lines)
        assert done.counts == {"created": 4}
        by_key = {each["key"]: each.get("supersedes") for each in await export(home.runtime, ANN)}
        found = await home.runtime.query(MemorySearch(query="what says", limit=10), principal=ANN)
    assert by_key == {"1": None, "2": "1", "3": "2", "4": None}
    assert sorted(each.key for each in found.memories) == ["3", "4"]


async def test_thousands_of_links_to_nowhere_cost_no_more_than_they_should(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        nowhere = [line(f"n{n}", supersedes=f"gone {n}") for n in range(3_000)]
        chain = [line(f"c{n}", supersedes=f"c{n - 1}") for n in range(1, 300)]
        done = await imported(home.runtime, ANN, *nowhere, *chain, line("c0"))
        assert done.counts == {"created": 3_300}
        links = {each["key"]: each.get("supersedes") for each in await export(home.runtime, ANN)}
    assert all(links[each["key"]] == each["supersedes"] for each in chain)


async def test_links_in_a_circle_do_not_stop_an_import(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, line("1", supersedes="2"), line("2", supersedes="1"))
        assert done.counts == {"created": 2}
        assert sorted(await keys(home.runtime, ANN)) == ["1", "2"]


# -- all or nothing --------------------------------------------------------------------


@pytest.mark.promise("exchange.atomic")
async def test_a_bad_line_means_that_nothing_is_imported(enter: Enter) -> None:
    lines: list[Any] = [line(f"k{n}", namespace=f"team:t{n % 7}") for n in range(500)]
    lines[321] = line("bad", importance=7)
    async with enter(**QUIET) as home:
        with pytest.raises(ImportRefusedError, match=r"line 322: importance: .* got 7") as refused:
            await imported(home.runtime, ANN, *lines)
        assert [problem.field for problem in refused.value.problems] == ["importance"]
        assert await keys(home.runtime, ANN) == []


@pytest.mark.promise("exchange.atomic")
async def test_the_first_ten_bad_lines_are_told(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        with pytest.raises(ImportRefusedError) as refused:
            await imported(home.runtime, ANN, *["nonsense"] * 500)
    assert [problem.place for problem in refused.value.problems] == [f"line {n}" for n in range(1, 11)]
    assert refused.value.more


@pytest.mark.promise("exchange.atomic")
async def test_a_key_that_comes_twice_is_a_bad_line(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        with pytest.raises(
            ImportRefusedError, match="line 3: key: 'a' is in memory 1 of this source already"
        ):
            await imported(home.runtime, ANN, line("a"), line("b"), line("a"))
        done = await imported(home.runtime, ANN, line("a"), line("a", namespace="user:ann:x"))
        assert done.counts == {"created": 2}


async def test_wrong_utf_8_is_told_with_its_line(tmp_path: Path, enter: Enter) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(text(line("a")).encode() + b'\n{"key": "b", "content": "caf\xe9"}\n')
    async with enter(**QUIET) as home:
        with pytest.raises(ImportRefusedError, match=r"line 2: the JSON is not UTF-8: .* byte 28"):
            await _of_file(home, path).run()
        assert await keys(home.runtime, ANN) == []


def _of_file(home: House, path: Path, principal: Principal = ANN) -> Importer:
    from greenroom.actors.exchange._sources import open_source  # noqa: PLC0415

    return Importer(home.runtime, principal, open_source(path, "auto", principal))


async def test_blank_lines_marks_and_windows_line_ends_are_fine(tmp_path: Path, enter: Enter) -> None:
    path = tmp_path / "windows.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf"
        + json.dumps(line("a")).encode()
        + b"\r\n\r\n  \t\r\n"
        + json.dumps(line("b")).encode()
    )
    async with enter(**QUIET) as home:
        done = await _of_file(home, path).run()
        assert (done.lines, await keys(home.runtime, ANN)) == (2, ["a", "b"])


async def test_an_array_is_taken_like_lines(tmp_path: Path, enter: Enter) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps([line("a"), line("b")], indent=2))
    async with enter(**QUIET) as home:
        assert (await _of_file(home, path).run()).counts == {"created": 2}
        path.write_text(json.dumps([line("c"), line("d", kind="gossip")]))
        with pytest.raises(ImportRefusedError, match="memory 2: kind: "):
            await _of_file(home, path).run()
        path.write_text('[{"key": "e", "content": "x"}')
        with pytest.raises(SourceError, match="neither JSON Lines nor a JSON array"):
            await _of_file(home, path).run()


async def test_nothing_to_import_is_no_error(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        assert (await imported(home.runtime, ANN)).lines == 0


@pytest.mark.promise("exchange.atomic")
async def test_a_source_that_changes_while_it_is_read_is_not_imported(enter: Enter) -> None:
    passes = iter([[line("a"), line("b")], [line("a"), line("c")]])

    def lines() -> Iterator[Made]:
        for number, each in enumerate(next(passes), start=1):
            yield Made(f"line {number}", json.dumps(each).encode(), number)

    async with enter(**QUIET) as home:
        with pytest.raises(SourceError, match="changed while it was read"):
            await Importer(home.runtime, ANN, Source("jsonl", 2, lines)).run()
        assert await keys(home.runtime, ANN) == []


class _StopError(Exception):
    """Ends an import where a test wants it to."""


@pytest.mark.promise("exchange.resumed")
@pytest.mark.parametrize("stage", ["staging", "importing"])
async def test_an_import_that_stopped_goes_on_where_it_was(enter: Enter, stage: str) -> None:
    lines = [line(f"k{n}", namespace=f"team:t{n % 3}") for n in range(2_000)]

    def stop(now: str, done: int, total: int) -> None:
        if now == stage and done >= total // 2:
            raise _StopError

    staged: list[int] = []

    def note(now: str, done: int, _total: int) -> None:
        if now == "staging":
            staged.append(done)

    async with enter(**QUIET) as home:
        with pytest.raises(_StopError):
            await imported(home.runtime, ANN, *lines, progress=stop)
        if stage == "staging":
            assert await keys(home.runtime, ANN) == []
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, *lines, progress=note)
        if stage == "staging":
            assert (done.resumed, done.counts) == (True, {"created": 2_000})
        else:  # it went on by itself, as far as it came
            assert (done.resumed, *done.counts) in {(True, "created"), (False, "skipped")}
        assert sorted(await keys(home.runtime, ANN)) == sorted(each["key"] for each in lines)
        assert staged if stage == "staging" else True
        again = await imported(home.runtime, ANN, *lines)
        assert (again.resumed, again.counts) == (False, {"skipped": 2_000})


def _rows(folder: Path) -> int:
    """Return how many rows a store has that nobody has open."""
    return sum(table.rows for table in verify(folder).tables)


@pytest.mark.promise("exchange.resumed")
async def test_what_nobody_goes_on_with_leaves_the_store(enter: Enter, folder: Path) -> None:
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, line("first"))
        home.tick(2 * 86_400)
        await trio.sleep(60)
    before = _rows(folder)
    async with enter(**QUIET) as home:
        importer = Importer(home.runtime, ANN, source_of_text(text(*(line(f"k{n}") for n in range(700)))))
        survey = await importer._checked()
        address = Address("import", importer._import_id(survey))
        begun = await home.runtime.ask(address, _begin(sorted(survey.roots)), principal=ANN)
        await importer._staged(survey, begun)
        home.tick(8 * 86_400)
        await trio.sleep(60)  # in virtual time
        assert await home.runtime.ask(address, ReadImport(), principal=ANN) is None
    assert _rows(folder) == before
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, ANN, *(line(f"k{n}") for n in range(700)))
        assert not done.resumed


@pytest.mark.promise("exchange.resumed")
async def test_an_import_leaves_nothing_but_its_memories(enter: Enter, folder: Path) -> None:
    lines = [line(f"k{n}", namespace=f"team:t{n % 3}", supersedes=f"k{n + 3}") for n in range(1_000)]
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *lines)
        home.tick(2 * 86_400)
        await trio.sleep(60)
    before = _rows(folder)
    async with enter(**QUIET) as home:
        for _ in range(3):
            assert (await imported(home.runtime, ANN, *lines)).counts == {"skipped": 1_000}
        home.tick(2 * 86_400)
        await trio.sleep(60)
    assert _rows(folder) - before == 3 * 4  # what was decided and done three times is audited


@pytest.mark.promise("exchange.resumed")
@pytest.mark.parametrize("end", ["done", "begun anew", "given up"])
async def test_lines_that_come_too_late_leave_the_store(enter: Enter, folder: Path, end: str) -> None:
    """They were on their way from another process when the import ended here."""
    async with enter(**QUIET) as home:
        importer = Importer(home.runtime, ANN, source_of_text(text(line("a"))))
        survey = await importer._checked()
        address = Address("import", importer._import_id(survey))
        begun = await home.runtime.ask(address, _begin(["user:ann"]), principal=ANN)
        if end == "given up":
            home.tick(8 * 86_400)
            await trio.sleep(60)
        else:
            await imported(home.runtime, ANN, line("a"))
        if end == "begun anew":
            await imported(home.runtime, ANN, line("a"))
    before = _rows(folder)
    async with enter(**QUIET) as home:
        late = Envelope(_staged_line(begun.staging), ANN, begun)
        home.runtime._kernel.deliver(memory_address("user:ann"), late)
        await trio.sleep(60)
    assert _rows(folder) == before


@pytest.mark.parametrize("dies", [False, True])
async def test_what_was_staged_of_a_source_that_changed_leaves_the_store(
    enter: Enter, folder: Path, *, dies: bool
) -> None:
    """It would be taken for a part of what the source holds at another time."""
    lines = [line(f"k{n}", "x" * 200) for n in range(1_500)]
    passes = iter([lines[:900], lines, lines[:900], lines[:900]])

    def read_on() -> Iterator[Made]:
        for number, each in enumerate(next(passes), start=1):
            yield Made(f"line {number}", json.dumps(each).encode(), number)

    def die(stage: str, done: int, _total: int) -> None:
        if dies and stage == "staging" and done > 1_000:
            raise _StopError

    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *lines)
        home.tick(2 * 86_400)
        await trio.sleep(60)
    before = _rows(folder)
    async with enter(**QUIET) as home:
        with pytest.raises(_StopError if dies else SourceError):
            await Importer(home.runtime, ANN, Source("jsonl", 2, read_on), progress=die).run()
    assert (_rows(folder) > before) is dies
    async with enter(**QUIET) as home:
        if dies:
            with pytest.raises(SourceError, match="an earlier attempt at this import had staged other lines"):
                await Importer(home.runtime, ANN, Source("jsonl", 2, read_on)).run()
        else:
            done = await Importer(home.runtime, ANN, Source("jsonl", 2, read_on)).run()
            assert (done.resumed, done.counts) == (False, {"skipped": 900})
        home.tick(2 * 86_400)
        await trio.sleep(60)
    assert _rows(folder) == before + (0 if dies else 2)  # it is audited


def _begin(roots: list[str]) -> Any:
    from greenroom.actors.requests._exchange import BeginImport  # noqa: PLC0415

    return BeginImport(roots=roots)


@pytest.mark.promise("exchange.resumed")
async def test_a_namespace_that_fails_is_told_and_the_same_again_finishes_it(
    enter: Enter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    lines = [line(f"k{n}", namespace=f"team:t{n % 3}") for n in range(300)]
    write: Any = vars(_importing)["write"]

    def fail(keeper: Any, *more: Any) -> Any:
        if keeper.root == "team:t1":
            raise RuntimeError("as the test wants it")
        return write(keeper, *more)

    async with enter(**QUIET) as home:
        monkeypatch.setattr(_importing, "write", fail)
        with pytest.raises(ActorFailedError, match="a namespace failed while it wrote its part"):
            await imported(home.runtime, ANN, *lines)
        monkeypatch.setattr(_importing, "write", write)
        home.runtime.readmit(memory_address("team:t1"))
        done = await imported(home.runtime, ANN, *lines)
        # Virtual time does not wait for threads, so it may have come to its end by itself meanwhile.
        assert (done.resumed, *done.counts) in {(True, "created"), (False, "skipped")}
        assert sorted(await keys(home.runtime, ANN)) == sorted(each["key"] for each in lines)


@pytest.mark.promise("exchange.resumed")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_namespace_that_failed_finishes_its_part_by_itself(
    enter: Enter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, restart: bool
) -> None:
    caplog.set_level("CRITICAL")
    lines = [line(f"k{n}", namespace=f"team:t{n % 3}") for n in range(300)]
    write: Any = vars(_importing)["write"]
    fails = [True]

    def fail(keeper: Any, *more: Any) -> Any:
        if keeper.root == "team:t1" and fails[0]:
            raise RuntimeError("as the test wants it")
        return write(keeper, *more)

    monkeypatch.setattr(_importing, "write", fail)
    async with enter(**QUIET) as home:
        with pytest.raises(ActorFailedError, match="it tries again in two minutes"):
            await imported(home.runtime, ANN, *lines)
        await trio.sleep(121)  # and fails again
        assert len(await keys(home.runtime, ANN)) == 200
        fails[0] = False
        if not restart:
            await trio.sleep(200)
            assert len(await keys(home.runtime, ANN)) == 200  # the pauses grow
            await trio.sleep(41)
            assert len(await keys(home.runtime, ANN)) == 300
    async with enter(**QUIET) as home:
        if restart:
            await trio.sleep(241)
        assert len(await keys(home.runtime, ANN)) == 300
        home.tick(2 * 86_400)
        await trio.sleep(60)
        assert (await imported(home.runtime, ANN, *lines)).counts == {"skipped": 300}


async def test_two_who_import_the_same_at_once_import_it_once(enter: Enter) -> None:
    lines = [line(f"k{n}") for n in range(1_000)]
    counts: list[dict[str, int]] = []
    async with enter(**QUIET) as home:

        async def one() -> None:
            counts.append((await imported(home.runtime, ANN, *lines)).counts)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        home.tick(2 * 86_400)
        await trio.sleep(60)  # what came too late leaves the store
        assert len(await keys(home.runtime, ANN)) == 1_000
    assert counts == [{"created": 1_000}] * 2


@pytest.mark.promise("exchange.owner")
async def test_nobody_reaches_the_import_of_another(enter: Enter) -> None:
    async with enter(**QUIET) as home:
        importer = Importer(home.runtime, ANN, source_of_text(text(line("a"))))
        survey = await importer._checked()
        address = Address("import", importer._import_id(survey))
        begun = await home.runtime.ask(address, _begin(["user:ann"]), principal=ANN)
        for message, target in (
            (ReadImport(), address),
            (_begin(["user:ann"]), address),
            (_staged_line(begun.staging), memory_address("user:ann")),
        ):
            with pytest.raises(Refusal, match=r"another's|may not write"):
                await home.runtime.ask(target, message, principal=BOB)


def _staged_line(staging: str) -> StageLines:
    raw = msgspec.Raw(json.dumps(line("a", namespace="user:ann")).encode())
    return StageLines(staging=staging, root="user:ann", number=0, on_conflict="skip", lines=[raw])


# -- nasty content ------------------------------------------------------------------------


@pytest.mark.promise("exchange.hostile")
async def test_hostile_content_comes_back_as_it_went_in(enter: Enter) -> None:
    texts = {
        "rtl": "\u202eevil\u202c שלום עולם",
        "emoji": "👩\u200d👩\u200d👧\u200d👦 🇩🇪",
        "zero width": "a\u200bb\ufeffc\u00ad",
        "combining": "e\u0301\u0301\u0301 Å vs A\u030a",
        "controls": "\x00\x01\x1b[31m\x7f\u0085\u2028\u2029",
        "blank": " \t\n",
        "astral": "\U0010ffff\U0001d49c",
    }
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *(line(key, content) for key, content in texts.items()))
        assert {each["key"]: each["content"] for each in await export(home.runtime, ANN)} == texts


@pytest.mark.promise("exchange.hostile")
async def test_ten_megabytes_and_ten_thousand_tags(enter: Enter) -> None:
    large = "".join(f"word{n} " for n in range(1_100_000))[: 10 << 20]
    tags = [f"tag number {n}" for n in range(10_000)]
    async with enter(**QUIET) as home:
        await imported(
            home.runtime,
            ANN,
            line("large", large),
            line("tagged", tags=tags),
            line("json", value=[large[:1_000_000]]),
        )
        found = {each["key"]: each for each in await export(home.runtime, ANN)}
        assert found["large"]["content"] == large
        assert found["tagged"]["tags"] == tags
        assert found["json"]["value"] == [large[:1_000_000]]
        hits = await home.runtime.query(MemorySearch(query="word424242", namespace="user:ann"), principal=ANN)
        assert [each.key for each in hits.memories] == ["large"]
        tagged = await home.runtime.query(MemorySearch(tags=["tag number 9999"]), principal=ANN)
        assert [each.key for each in tagged.memories] == ["tagged"]


async def test_an_import_is_audited_without_its_contents(enter: Enter) -> None:
    async with enter(queries=[AuditTrail], **QUIET) as home:
        await imported(home.runtime, ANN, line("secret key", "secret content"))
        rows = await home.runtime.query(AuditTrail())
    said = {row.action: row.details for row in rows if "import" in row.action}
    assert said.keys() == {"decide_import", "import_memories"}
    assert said["import_memories"]["counts"] == {"created": 1}
    assert "secret" not in repr(said)


@pytest.mark.promise("exchange.embedded")
async def test_an_import_ends_when_all_have_vectors(tmp_path: Path) -> None:
    stages: list[str] = []

    def note(stage: str, _done: int, _total: int) -> None:
        stages.append(stage)

    async with open_greenroom(tmp_path / "data", embedder="static") as runtime:
        done = await imported(runtime, ANN, *(line(f"k{n}") for n in range(300)), progress=note)
        found = await runtime.query(MemorySearch(query="k7", include_debug=True), principal=ANN)
    assert done.embedded is True
    assert list(dict.fromkeys(stages)) == ["checking", "staging", "importing", "embedding"]
    assert found.memories
