"""Journals: no row without its deed, no deed without its row, and nobody changes them unseen."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.journals import (
    DEEDS,
    JOURNALS,
    NAME,
    Breaks,
    CheckDeeds,
    Deeds,
    DeedsCheckpoint,
    Do,
    Look,
    Tamperer,
    tampering,
)

from greenroom.runtime import (
    ActorFailedError,
    Address,
    ConfigurationError,
    Finding,
    InlineCommitter,
    Refusal,
    Runtime,
    RuntimeOptions,
    StorageFullError,
    StoreFailedError,
    renew_secret,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from support.asking import Open

pytestmark = pytest.mark.slow

DOER = Address("doer", "d")


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


def _seen_file(secrets: Path) -> Path:
    (found,) = secrets.glob("*.seen")
    return found


@asynccontextmanager
async def kept(reopen: Open, secrets: Path, **options: Any) -> AsyncIterator[Runtime]:
    async with reopen(**{**JOURNALS, "secrets": secrets, **options}) as runtime:
        yield runtime


async def values(runtime: Runtime) -> list[str]:
    return [entry.value for entry in await runtime.query(Deeds())]


async def findings(runtime: Runtime, *checkpoints: Any) -> list[Finding]:
    return (await runtime.query(CheckDeeds(checkpoints=checkpoints))).findings


# -- with the deed -------------------------------------------------------------------------------------


@pytest.mark.promise("audit.with-the-deed")
async def test_rows_are_numbered_without_gaps_across_restarts(reopen: Open, secrets: Path) -> None:
    for start in range(3):
        async with kept(reopen, secrets) as runtime:
            await runtime.ask(DOER, Do(what=f"start {start}", times=4))
            entries = await runtime.query(Deeds())
            assert [entry.number for entry in entries] == list(range(1, 4 * start + 5))
            report = await runtime.query(CheckDeeds())
            assert (report.rows, report.first, report.last) == (len(entries), 1, len(entries))
            assert report.findings == []


@pytest.mark.quick
@pytest.mark.promise("audit.with-the-deed")
async def test_a_deed_that_fails_leaves_no_row(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(DOER, Do(what="fails", fail=True))
        assert await values(runtime) == []
        await runtime.ask(DOER, Do(what="works"))
        assert [entry.number for entry in await runtime.query(Deeds())] == [1]


@pytest.mark.promise("audit.with-the-deed")
async def test_a_deed_without_room_leaves_no_row_and_the_others_no_gap(reopen: Open, secrets: Path) -> None:
    options = RuntimeOptions(durability="process", max_size=2 << 20)
    async with kept(reopen, secrets, options=options) as runtime:
        done = 0
        with suppress(StorageFullError):
            while True:
                await runtime.ask(Address("doer", f"d{done}"), Do(what="fills", size=100_000))
                done += 1
        outcomes: list[bool] = []

        async def one(key: str, size: int) -> None:
            try:
                await runtime.ask(Address("doer", key), Do(what=key, size=size, reserve=not size))
            except StorageFullError:
                outcomes.append(False)
            else:
                outcomes.append(True)

        async with trio.open_nursery() as nursery:  # one group: small ones succeed, large ones do not
            for number in range(6):
                nursery.start_soon(one, f"e{number}", 0 if number % 2 else 300_000)
        assert sorted(outcomes) == [False] * 3 + [True] * 3
        entries = await runtime.query(Deeds())
        assert [entry.number for entry in entries] == list(range(1, done + 4))
        assert await findings(runtime) == []
    async with kept(reopen, secrets, options=options) as runtime:
        assert await findings(runtime) == []


@pytest.mark.quick
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.promise("audit.crash")
async def test_a_commit_that_dies_leaves_neither_gap_nor_fork(reopen: Open, secrets: Path, when: str) -> None:
    """The disk dies before or after a group is on it; the next start goes on where the store is."""
    dying = False

    def commit(store: Any, works: Any) -> None:
        if dying and when == "before":
            raise StoreFailedError("the disk is gone")
        store.commit(works)
        if dying:
            raise StoreFailedError("the disk is gone")

    with suppress(StoreFailedError):
        async with kept(reopen, secrets, committer=InlineCommitter(commit)) as runtime:
            await runtime.ask(DOER, Do(what="safe", times=3))
            dying = True
            await runtime.ask(DOER, Do(what="in doubt", times=3))
    async with kept(reopen, secrets) as runtime:
        assert len(await values(runtime)) == (3 if when == "before" else 6)
        await runtime.ask(DOER, Do(what="goes on", times=2))
        assert await findings(runtime) == []
        assert await runtime.query(Breaks()) == []


async def test_what_is_not_declared_is_refused(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets, journals=[]) as runtime:
        with pytest.raises(ActorFailedError):
            await runtime.ask(DOER, Do(what="nowhere"))
        with pytest.raises(ConfigurationError, match="no journal 'deeds'"):
            await runtime.query(Deeds())
        with pytest.raises(ConfigurationError, match="no journal"):
            runtime.append_soon(NAME, "nowhere")
    with pytest.raises(ValueError, match="needs a secret"):
        async with reopen(**JOURNALS):
            pass
    with pytest.raises(ConfigurationError, match="used twice"):
        async with kept(reopen, secrets, journals=[DEEDS, DEEDS]):
            pass


# -- notes ---------------------------------------------------------------------------------------------


@pytest.mark.promise("audit.notes")
async def test_notes_stand_for_reads_and_refusals_and_wait_for_no_disk(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        commits = runtime.statistics().store.commits
        assert await runtime.ask(DOER, Look(what="a look")) == "a look"
        with pytest.raises(Refusal):
            await runtime.ask(DOER, Look(what="a denied look", refuse=True))
        runtime.append_soon(NAME, "from outside")
        assert runtime.statistics().store.commits == commits
        await trio.sleep(1.1)
        assert runtime.statistics().store.commits == commits + 1
        assert await values(runtime) == ["a look", "a denied look", "from outside"]
        assert await findings(runtime) == []


async def test_notes_go_with_the_next_group(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Look(what="before"))
        commits = runtime.statistics().store.commits
        await runtime.ask(DOER, Do(what="deed"))
        assert runtime.statistics().store.commits == commits + 1
        assert sorted(await values(runtime)) == ["before", "deed 0"]


async def test_a_query_that_wants_notes_sees_them_at_once(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        runtime.append_soon(NAME, "just now")
        assert await values(runtime) == ["just now"]


async def test_notes_are_written_before_the_end(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        runtime.append_soon(NAME, "at the last moment")
    async with kept(reopen, secrets) as runtime:
        assert await values(runtime) == ["at the last moment"]


@pytest.mark.promise("audit.notes")
async def test_the_same_again_is_counted(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        for _ in range(5_000):
            runtime.append_soon(NAME, "denied: 192.0.2.1")
        runtime.append_soon(NAME, "denied: 192.0.2.2")
        entries = await runtime.query(Deeds())
        assert [(entry.times, entry.value) for entry in entries] == [
            (5_000, "denied: 192.0.2.1"),
            (1, "denied: 192.0.2.2"),
        ]


@pytest.mark.promise("audit.notes")
async def test_what_finds_no_room_is_counted_and_the_count_told(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        for number in range(3_000):
            runtime.append_soon(NAME, f"flood {number}")
        entries = await runtime.query(Deeds())
        assert entries[0].value == "lost 1976"
        assert len(entries) == 1_025
        assert runtime.statistics().commits.dropped_notes == 1_976
        runtime.append_soon(NAME, "room again")
        assert (await values(runtime))[-1] == "room again"


@pytest.mark.quick
@pytest.mark.promise("audit.notes")
async def test_in_a_full_store_reads_go_on_and_lost_notes_are_told_later(reopen: Open, secrets: Path) -> None:
    full = False

    def commit(store: Any, works: Any) -> None:
        for work in works if full else ():
            work.error = StorageFullError("full")
        store.commit(works)

    async with kept(reopen, secrets, committer=InlineCommitter(commit)) as runtime:
        await runtime.ask(DOER, Do(what="room"))
        full = True
        for number in range(3):
            assert await runtime.ask(DOER, Look(what=f"look {number}")) == f"look {number}"
            await trio.sleep(2)
        assert runtime.statistics().commits.dropped_notes == 3
        assert await values(runtime) == ["room 0"]
        full = False
        await runtime.ask(DOER, Look(what="look 3"))
        assert await values(runtime) == ["room 0", "lost 3", "look 3"]
        assert runtime.statistics().commits.dropped_notes == 3


# -- tampering -----------------------------------------------------------------------------------------


def remove_one(store: Tamperer) -> None:
    store.remove(5)


def remove_some(store: Tamperer) -> None:
    store.remove(5, 6, 9)


def remove_first(store: Tamperer) -> None:
    store.remove(1, 2)


def remove_last(store: Tamperer) -> None:
    store.remove(20)


def change(store: Tamperer) -> None:
    row = store.row(5)
    store.put(5, row[:16] + row[16:].replace(b"deed 4", b"deed 5"))


def change_link(store: Tamperer) -> None:
    store.put(5, bytes(16) + store.row(5)[16:])


def change_last(store: Tamperer) -> None:
    row = store.row(20)
    store.put(20, row[:16] + row[16:].replace(b"deed 19", b"deed 18"))


def swap(store: Tamperer) -> None:
    fifth, sixth = store.row(5), store.row(6)
    store.put(5, sixth)
    store.put(6, fifth)


def swap_with_links(store: Tamperer) -> None:
    fifth, ninth = store.row(5), store.row(9)
    store.put(5, fifth[:16] + ninth[16:])
    store.put(9, ninth[:16] + fifth[16:])


def close_the_gap(store: Tamperer) -> None:
    for number in range(5, 20):
        store.put(number, store.row(number + 1))
    store.remove(20)


def append(store: Tamperer) -> None:
    store.put(21, store.row(20))


def append_before(store: Tamperer) -> None:
    store.put(0, store.row(1))


def cut_off_and_forge_the_head(store: Tamperer) -> None:
    count, _, size, time, mac = msgspec.msgpack.decode(store.state("head") or b"")
    assert count == 20
    store.remove(19, 20)
    store.put_state("head", msgspec.msgpack.encode((18, store.row(18)[:16], size, time, mac)))


def cut_off_without_a_head(store: Tamperer) -> None:
    store.remove(19, 20)
    store.put_state("head", None)


def forge_the_start(store: Tamperer) -> None:
    _, _, size, time, mac = msgspec.msgpack.decode(store.state("head") or b"")
    link = store.row(4)[:16]
    store.remove(1, 2, 3, 4)
    store.put_state("start", msgspec.msgpack.encode((4, link, size, time, mac)))


def the_head_as_the_start(store: Tamperer) -> None:
    store.remove(*range(1, 21))
    store.put_state("start", store.state("head"))


def remove_all(store: Tamperer) -> None:
    store.remove(*range(1, 21))


def remove_every_trace(store: Tamperer) -> None:
    store.remove(*range(1, 21))
    store.put_state("head", None)


def insert_far_ahead(store: Tamperer) -> None:
    store.put((1 << 64) - 1, store.row(20))


def insert_what_has_no_number(store: Tamperer) -> None:
    for odd in (b"", b"\0", bytes(7) + b"\5\0", b"\xff" * 30):
        store.put_at(odd, store.row(5))


def insert_what_is_nothing(store: Tamperer) -> None:
    store.put(21, b"")


def cut_off_with_an_older_head(store: Tamperer) -> None:
    """As somebody does who has read the store before; `tampering` finds what they kept."""
    store.remove(*range(11, 21))
    store.put_state("head", store.kept["head"])


TAMPERINGS: dict[Callable[[Tamperer], None], set[tuple[str, int, int]]] = {
    remove_one: {("missing", 5, 5)},
    remove_some: {("missing", 5, 6), ("missing", 9, 9)},
    remove_first: {("missing", 1, 2)},
    remove_last: {("missing", 20, 20)},
    change: {("changed", 5, 5)},
    change_link: {("changed", 5, 6)},
    change_last: {("changed", 20, 20)},
    swap: {("changed", 5, 7)},
    swap_with_links: {("changed", 5, 5), ("changed", 9, 9)},
    close_the_gap: {("changed", 5, 19), ("missing", 20, 20)},
    append: {("changed", 21, 21), ("head", 0, 0)},
    append_before: {("changed", 0, 0)},
    cut_off_and_forge_the_head: {("head", 0, 0), ("cut off", 19, 20)},
    cut_off_without_a_head: {("head", 0, 0), ("cut off", 19, 20)},
    forge_the_start: {("start", 0, 0), ("missing", 1, 4)},
    the_head_as_the_start: {("start", 0, 0), ("missing", 1, 20)},
    remove_all: {("missing", 1, 20)},
    remove_every_trace: {("cut off", 1, 20)},
    insert_far_ahead: {("strange", 0, 0)},
    insert_what_has_no_number: {("strange", 0, 0)},
    insert_what_is_nothing: {("changed", 21, 21), ("head", 0, 0)},
    cut_off_with_an_older_head: {("cut off", 11, 20)},
}


@pytest.mark.parametrize("tamper", list(TAMPERINGS), ids=lambda tamper: tamper.__name__)
@pytest.mark.promise("audit.tampering")
async def test_tampering_is_found(
    reopen: Open, folder: Path, secrets: Path, tamper: Callable[[Tamperer], None]
) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=10))
    with tampering(folder) as store:
        older_head = store.state("head")
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=20, first=10))
        assert await findings(runtime) == []
        checkpoint = await runtime.query(DeedsCheckpoint())
    seen = _seen_file(secrets)
    before = seen.read_bytes()
    with tampering(folder) as store:
        store.kept["head"] = older_head
        tamper(store)
    expected = TAMPERINGS[tamper]
    async with kept(reopen, secrets) as runtime:
        seen.write_bytes(before)
        found = await findings(runtime, checkpoint)
        assert expected <= {(each.what, each.first, each.last) for each in found}, found
        assert all(str(each) for each in found)
    async with kept(reopen, secrets) as runtime:  # which the server did not paper over
        await runtime.ask(DOER, Do(what="later", times=3))
        found = await findings(runtime, checkpoint)
        kinds = {each.what for each in found}
        assert kinds & {"missing", "changed", "replaced", "cut off", "strange"}, found


@pytest.mark.promise("audit.tampering")
async def test_an_older_store_in_its_place_is_found_at_the_start(
    reopen: Open, folder: Path, secrets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="old", times=5))
    shutil.copytree(folder, tmp_path / "copy")
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="to be forgotten", times=5))
        checkpoint = await runtime.query(DeedsCheckpoint())
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "copy", folder)
    async with kept(reopen, secrets) as runtime:
        assert [(each.first, each.last) for each in await runtime.query(Breaks())] == [(6, 10)]
        assert "records 6 to 10 of 'deeds' were seen and are gone" in caplog.text
        assert (await values(runtime))[-1] == "broken 6-10"
        await runtime.ask(DOER, Do(what="written over", times=5))
        assert [(each.what, each.first) for each in await findings(runtime, checkpoint)] == [("replaced", 10)]
    async with kept(reopen, secrets) as runtime:  # it is told for good
        assert [(each.first, each.last) for each in await runtime.query(Breaks())] == [(6, 10)]
        assert await findings(runtime) == []


async def test_a_forged_checkpoint_says_nothing_and_is_told(reopen: Open, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=5))
        checkpoint = await runtime.query(DeedsCheckpoint())
        for forged in (
            msgspec.structs.replace(checkpoint, count=4),
            msgspec.structs.replace(checkpoint, time=1),
            msgspec.structs.replace(checkpoint, journal="others"),
            msgspec.structs.replace(checkpoint, signature=""),
            msgspec.structs.replace(checkpoint, signature="ä"),
        ):
            assert [each.what for each in await findings(runtime, forged)] == ["foreign checkpoint"]
        assert await findings(runtime, checkpoint) == []


@pytest.mark.quick
@pytest.mark.promise("audit.tampering")
async def test_under_another_secret_nothing_passes_for_written(
    reopen: Open, folder: Path, secrets: Path
) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=5))
    renew_secret(folder, secrets, max_size=1 << 30)
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="new", times=2))
        assert [(each.what, each.first, each.last) for each in await findings(runtime)] == [("changed", 1, 6)]


@pytest.mark.quick
@pytest.mark.promise("audit.slices")
async def test_a_check_lets_others_have_their_turns(reopen: Open, secrets: Path) -> None:
    """Fifty looks at the clock are a slice here, and there is one for each row and each checkpoint."""
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=3_000))
        checkpoint = await runtime.query(DeedsCheckpoint())
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            report = await runtime.query(CheckDeeds(checkpoints=(checkpoint,) * 2_000))
            nursery.cancel_scope.cancel()
        assert (report.rows, report.findings) == (3_000, [])
        assert turns >= 5_000 / 51
        assert runtime.statistics().dispatcher.longest_slice_ms < 6


# -- retention -----------------------------------------------------------------------------------------


@pytest.mark.promise("audit.retention")
async def test_old_rows_go_and_the_rest_still_proves_itself(reopen: Open, secrets: Path) -> None:
    journal = DEEDS._replace(ttl=3_600 * 1_000_000)
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await runtime.ask(DOER, Do(what="old", times=1_200))
        early = await runtime.query(DeedsCheckpoint())
        await trio.sleep(1_800)
        await runtime.ask(DOER, Do(what="young", times=5))
        late = await runtime.query(DeedsCheckpoint())
        await trio.sleep(1_900)
        report = await runtime.query(CheckDeeds(checkpoints=(early, late)))
        assert (report.rows, report.first, report.last) == (5, 1_201, 1_205)
        assert report.findings == []
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await trio.sleep(3_600)
        report = await runtime.query(CheckDeeds(checkpoints=(early, late)))
        assert (report.rows, report.findings) == (0, [])
        await runtime.ask(DOER, Do(what="after all", times=2))
        assert [entry.number for entry in await runtime.query(Deeds())] == [1_206, 1_207]
        assert await findings(runtime, early, late) == []
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        assert await runtime.query(Breaks()) == []
        assert await findings(runtime, early, late) == []


@pytest.mark.quick
@pytest.mark.promise("audit.retention")
async def test_a_journal_keeps_to_its_size(reopen: Open, secrets: Path) -> None:
    journal = DEEDS._replace(max_bytes=10_000)
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        for round_ in range(3):
            await runtime.ask(DOER, Do(what=f"round {round_}", times=1_000))
            await trio.sleep(61)
            report = await runtime.query(CheckDeeds())
            assert report.last == 1_000 * (round_ + 1)
            assert 300 < report.rows < 600
            assert report.findings == []


async def test_retention_does_not_sweep_traces_away(reopen: Open, folder: Path, secrets: Path) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=20))
    with tampering(folder) as store:
        change(store)
    async with kept(reopen, secrets, journals=[DEEDS._replace(max_bytes=100)]) as runtime:
        await trio.sleep(61)
        assert "broken 5-5" in await values(runtime)
