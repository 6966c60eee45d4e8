"""What every adapter must stand: two writers, cancelled calls, a server killed and started again, a takeover.

A test module of an adapter says what it writes and reads, and runs all `CHECKS` with that:

    @pytest.mark.parametrize("check", CHECKS)
    def test_contract(check: Check, tmp_path: Path) -> None:
        check(CASE, tmp_path)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from anyio.lowlevel import checkpoint
from support.commands import serving

from greenroom.actors import Database


class Case(NamedTuple):
    """How an adapter keeps texts.

    Attributes:
        write: Keeps one text through a database; the place is the same for all calls, and made when missing.
        read: Returns all texts that were kept, in any order, each as often as it is there.
    """

    write: Callable[[Database, str], Awaitable[object]]
    read: Callable[[Database], Awaitable[list[str]]]


Check = Callable[[Case, Path], None]


def database(home: Path) -> Database:
    """Return a database on the folder of a server with this home."""
    return Database(home / "store", embedder="none", secrets=home / "secrets")


def owner(home: Path) -> int:
    """Return the process that owns the folder."""
    return int((home / "store" / "owner.lock").read_text().split()[0])


def texts(name: str, count: int) -> list[str]:
    return [f"{name} {number}" for number in range(count)]


def two_writers_lose_nothing(case: Case, home: Path) -> None:
    """Write by two databases on a folder at once, and read by both."""

    async def main() -> None:
        async with database(home) as one, database(home) as other:
            await case.write(one, "the first")
            mine, theirs = texts("one", 8), texts("other", 8)
            await asyncio.gather(
                *(case.write(one, text) for text in mine), *(case.write(other, text) for text in theirs)
            )
            expected = sorted(["the first", *mine, *theirs])
            assert sorted(await case.read(one)) == expected
            assert sorted(await case.read(other)) == expected

    asyncio.run(main())


def a_cancelled_call_is_whole_or_not_at_all(case: Case, home: Path) -> None:
    """Cancel writes at every step of their way; those that returned are there, the others once at most."""

    async def main() -> None:
        async with database(home) as opened:
            await case.write(opened, "the first")
            returned = ["the first"]
            for steps, text in enumerate(texts("cancelled", 12)):
                writing = asyncio.ensure_future(case.write(opened, text))
                for _ in range(steps):
                    await checkpoint()
                writing.cancel()
                if not isinstance((await asyncio.gather(writing, return_exceptions=True))[0], BaseException):
                    returned.append(text)
            await case.write(opened, "the last")
            kept = await case.read(opened)
            assert len(kept) == len(set(kept))
            assert {*returned, "the last"} <= set(kept) <= {"the first", *texts("cancelled", 12), "the last"}

    asyncio.run(main())


def a_server_that_dies_and_comes_back_loses_nothing(case: Case, home: Path) -> None:
    """Write beside a server; go on when it is killed, beside the next, and after a takeover by that."""
    arguments = ("--embedder", "none", "--secrets", str(home / "secrets"))

    async def main() -> None:
        expected = ["the first"]
        with serving(home, *arguments) as server:
            async with database(home) as attached:
                await case.write(attached, "the first")
                assert owner(home) == server.process.pid
                under_way = [asyncio.ensure_future(case.write(attached, text)) for text in texts("killed", 8)]
                await checkpoint()
                server.process.kill()
                await asyncio.gather(*under_way)
                expected += texts("killed", 8)
                assert sorted(await case.read(attached)) == sorted(expected)
                assert owner(home) == os.getpid()
                with serving(home, *arguments) as next_server:
                    await case.write(attached, "beside the next")
                    await attached.close()
                    while owner(home) != next_server.process.pid:  # which takes over
                        await checkpoint()
                    async with database(home) as again:
                        await case.write(again, "after a takeover")
                        assert owner(home) == next_server.process.pid
                        expected += ["beside the next", "after a takeover"]
                        assert sorted(await case.read(again)) == sorted(expected)
                    assert next_server.end() == 0

    asyncio.run(main())


CHECKS: list[Check] = [
    two_writers_lose_nothing,
    a_cancelled_call_is_whole_or_not_at_all,
    a_server_that_dies_and_comes_back_loses_nothing,
]
