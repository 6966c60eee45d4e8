"""Imports are done wholly or not at all, whatever the lines say and whoever stops, fails or comes twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.exchanges import ANN, BOB, QUIET, imported, keys, line, text

from greenroom.actors import Principal
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests.transfer import BeginImport, ReadImport, StageLines
from greenroom.actors.memories.transfer.import_run import Importer, ImportRefusedError
from greenroom.actors.memories.transfer.normalize import SourceError, SourceLine
from greenroom.actors.memories.transfer.sources import Source, open_source, source_of_text
from greenroom.actors.memories.writing import import_staging
from greenroom.runtime import ActorFailedError, Address, Refusal, verify
from greenroom.runtime.kernel.mailbox import Envelope

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

pytestmark = pytest.mark.slow


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
            ImportRefusedError, match="line 3: key: 'a' is the key of memory 1 of this source, too"
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

    def lines() -> Iterator[SourceLine]:
        for number, each in enumerate(next(passes), start=1):
            yield SourceLine(f"line {number}", json.dumps(each).encode(), number)

    async with enter(**QUIET) as home:
        with pytest.raises(SourceError, match="changed while it was read"):
            await Importer(home.runtime, ANN, Source("jsonl", 2, lines)).run()
        assert await keys(home.runtime, ANN) == []


class _StopError(Exception):
    """Ends an import where a test wants it to."""


@pytest.mark.promise("exchange.resumed")
@pytest.mark.parametrize(("stage", "roots"), [("staging", 3), ("importing", 3), ("importing", 200)])
async def test_an_import_that_stopped_goes_on_where_it_was(enter: Enter, stage: str, roots: int) -> None:
    lines = [line(f"k{n}", namespace=f"team:t{n % roots}") for n in range(2_000)]

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
    later = msgspec.structs.replace(ANN, key_id="rotated", address="127.0.0.1")
    async with enter(**QUIET) as home:
        done = await imported(home.runtime, later, *lines, progress=note)
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


async def _rows_after(enter: Enter, folder: Path, *lines: dict[str, Any]) -> int:
    """Return how many rows a store has when an import is long done."""
    async with enter(**QUIET) as home:
        await imported(home.runtime, ANN, *lines)
        home.tick(2 * 86_400)
        await trio.sleep(60)
    return _rows(folder)


@pytest.mark.promise("exchange.resumed")
async def test_what_nobody_goes_on_with_leaves_the_store(enter: Enter, folder: Path) -> None:
    before = await _rows_after(enter, folder, line("first"))
    async with enter(**QUIET) as home:
        importer = Importer(home.runtime, ANN, source_of_text(text(*(line(f"k{n}") for n in range(700)))))
        survey = await importer._check()
        address = Address("import", importer._import_id(survey))
        begun = await home.runtime.ask(address, _begin(sorted(survey.roots)), principal=ANN)
        await importer._stage_missing(survey, begun)
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
    before = await _rows_after(enter, folder, *lines)
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
        survey = await importer._check()
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

    def read_on() -> Iterator[SourceLine]:
        for number, each in enumerate(next(passes), start=1):
            yield SourceLine(f"line {number}", json.dumps(each).encode(), number)

    def die(stage: str, done: int, _total: int) -> None:
        if dies and stage == "staging" and done > 1_000:
            raise _StopError

    before = await _rows_after(enter, folder, *lines)
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
    return BeginImport(roots=roots)


@pytest.mark.promise("exchange.resumed")
async def test_a_namespace_that_fails_is_told_and_the_same_again_finishes_it(
    enter: Enter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    lines = [line(f"k{n}", namespace=f"team:t{n % 3}") for n in range(300)]
    write: Any = vars(import_staging)["write"]

    def fail(repository: Any, *more: Any) -> Any:
        if repository.root == "team:t1":
            raise RuntimeError("as the test wants it")
        return write(repository, *more)

    async with enter(**QUIET) as home:
        monkeypatch.setattr(import_staging, "write", fail)
        with pytest.raises(ActorFailedError, match="a namespace failed while it wrote its part"):
            await imported(home.runtime, ANN, *lines)
        monkeypatch.setattr(import_staging, "write", write)
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
    write: Any = vars(import_staging)["write"]
    fails = [True]

    def fail(repository: Any, *more: Any) -> Any:
        if repository.root == "team:t1" and fails[0]:
            raise RuntimeError("as the test wants it")
        return write(repository, *more)

    monkeypatch.setattr(import_staging, "write", fail)
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
        survey = await importer._check()
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
