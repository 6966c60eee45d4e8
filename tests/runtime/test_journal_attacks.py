"""Attacks on a journal that take several steps: between two lives of its server, and behind retention."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import lmdb
import pytest
import trio
from support.journals import DEEDS, JOURNALS, Breaks, CheckDeeds, Deeds, DeedsCheckpoint, Do, tampering

from greenroom.runtime import Address, Finding, Runtime, renew_secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.asking import Open

pytestmark = [pytest.mark.promise("audit.tampering"), pytest.mark.slow]

DOER = Address("doer", "d")
HOUR = 3_600 * 1_000_000


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


@asynccontextmanager
async def kept(reopen: Open, secrets: Path, **options: Any) -> AsyncIterator[Runtime]:
    async with reopen(**{**JOURNALS, "secrets": secrets, **options}) as runtime:
        yield runtime


async def findings(runtime: Runtime, *checkpoints: Any) -> list[Finding]:
    return (await runtime.query(CheckDeeds(checkpoints=checkpoints))).findings


def mark_of(folder: Path, mark: bytes | None = None) -> bytes:
    """Return which secret a stopped store asks for; or have it ask for another one."""
    with (
        lmdb.open(str(folder / "greenroom.mdb"), subdir=False, max_dbs=3) as environment,
        environment.begin(write=True) as transaction,
    ):
        if mark is not None:
            transaction.put(b"greenroom.secret", mark)
        return transaction.get(b"greenroom.secret") or b""


async def test_what_a_server_with_another_secret_wrote_in_between_is_found(
    reopen: Open, folder: Path, secrets: Path, tmp_path: Path
) -> None:
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="mine", times=5))
    mark = mark_of(folder)
    renew_secret(folder, tmp_path / "others", max_size=1 << 30)
    async with kept(reopen, tmp_path / "others") as runtime:
        await runtime.ask(DOER, Do(what="another's", times=5))
    mark_of(folder, mark)
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="mine again", times=5))
        found = {(each.what, each.first, each.last) for each in await findings(runtime)}
        assert ("changed", 6, 11) in found
        assert len(await runtime.query(Deeds())) == 15


async def test_an_older_store_is_found_at_each_of_its_later_starts(
    reopen: Open, folder: Path, secrets: Path, tmp_path: Path
) -> None:
    """Who puts it back, lets the server write over the gap, and does so again, is found twice."""
    async with kept(reopen, secrets) as runtime:
        await runtime.ask(DOER, Do(what="old", times=5))
    shutil.copytree(folder, tmp_path / "copy")
    for life in range(2):
        async with kept(reopen, secrets) as runtime:
            await runtime.ask(DOER, Do(what=f"life {life}", times=5))
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)
    async with kept(reopen, secrets) as runtime:
        breaks = await runtime.query(Breaks())
        assert [each.restored for each in breaks] == [False, False]
        assert all(each.first == 6 and each.last >= 10 for each in breaks)


@pytest.mark.parametrize("which", ["none", "an older one", "the head"])
async def test_behind_retention_the_start_stands_for_what_went(
    reopen: Open, folder: Path, secrets: Path, which: str
) -> None:
    journal = DEEDS._replace(ttl=HOUR)
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await runtime.ask(DOER, Do(what="first", times=10))
        await trio.sleep(3_700)
        await runtime.ask(DOER, Do(what="second", times=10))
        assert [entry.number for entry in await runtime.query(Deeds())] == list(range(11, 21))
    with tampering(folder) as store:
        older = store.state("start")
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await trio.sleep(3_700)
        await runtime.ask(DOER, Do(what="third", times=10))
        checkpoint = await runtime.query(DeedsCheckpoint())
        assert await findings(runtime, checkpoint) == []
    with tampering(folder) as store:
        store.remove(21, 22)
        store.put_state(
            "start", {"none": None, "an older one": older, "the head": store.state("head")}[which]
        )
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        found = {(each.what, each.first, each.last) for each in await findings(runtime, checkpoint)}
        first = 11 if which == "an older one" else 1
        assert ("missing", first, 22) in found


async def test_retention_goes_on_behind_what_nobody_wrote_and_tells_of_it(
    reopen: Open, folder: Path, secrets: Path
) -> None:
    journal = DEEDS._replace(ttl=HOUR)
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await runtime.ask(DOER, Do(what="deed", times=10))
    with tampering(folder) as store:
        store.put_at(bytes(7) + b"\5\0", store.row(5))  # among the first, and never of an age
        store.put((1 << 64) - 1, store.row(10))
    async with kept(reopen, secrets, journals=[journal]) as runtime:
        await trio.sleep(3_700)
        await runtime.ask(DOER, Do(what="later", times=3))
        report = await runtime.query(CheckDeeds())
        assert (report.first, report.last) == (11, 13)
        assert {each.what for each in report.findings} == {"strange"}
        assert [entry.number for entry in await runtime.query(Deeds())] == [11, 12, 13]
