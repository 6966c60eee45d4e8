"""A program that ends without closing its `Database`, or by Ctrl-C: the folder is in order all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from harness import PATIENCE

from greenroom.actors import Database
from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import ReadPresence

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.actors.core.presence.requests import ProcessPresence

PROGRAM = """\
import asyncio, sys, trio
from greenroom.actors import Database

database = Database(sys.argv[1], embedder="none")

async def begin():
    await database.initialize()
    await database.sessions.create_session("s", "app", "ada")
    await append(0)

async def begin_blocking():
    await database.sessions.create_session("s", "app", "ada")
    await append(0)

async def append(number):
    event = {"event_type": "action", "actor": "system", "content": {"number": number}}
    await database.sessions.append_event("s", event)
    print(number, flush=True)

async def work():
    await begin()
    number = 0
    while True:
        number += 1
        await append(number)

def work_in_a_plain_block():
    with database:
        database.call(begin_blocking)
        number = 0
        while True:
            number += 1
            database.remember(f"memory {number}", user="ada", key=f"k{number}")
            database.call(append, number)

async def work_in_a_block():
    async with database:
        await database.sessions.create_session("s", "app", "ada")
        while True:
            await append(0)

"""

LEAVING = {
    "asyncio.run": "asyncio.run(begin())",
    "trio.run": "trio.run(begin)",
    "a loop that is never closed": "asyncio.new_event_loop().run_until_complete(begin())",
    "no event loop": "database.__enter__()\ndatabase.call(begin_blocking)",
    "exit in a call": (
        "async def main():\n    await begin()\n    asyncio.create_task(append(1))\n    sys.exit(3)\n"
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(main())"
    ),
}
WORKING = {
    "asyncio": "asyncio.run(work())",
    "asyncio, in a block": "asyncio.run(work_in_a_block())",
    "asyncio, by hand": "asyncio.new_event_loop().run_until_complete(work())",
    "trio": "trio.run(work)",
    "trio, in a block": "trio.run(work_in_a_block)",
    "no event loop, in a block": "work_in_a_plain_block()",
}


def check_order(folder: Path) -> None:
    """Make sure that the folder was closed in order."""
    assert (folder / "owner.lock").read_text().split()[0] == "0"


def check(folder: Path, answered: int) -> None:
    """Make sure that the folder was closed in order and has what the program was answered."""
    check_order(folder)

    async def main() -> None:
        async with Database(folder, embedder="none") as database:
            session = await database.sessions.get_session("s")
            assert session is not None
            assert len(session.events) >= answered > 0

    asyncio.run(main())


@pytest.mark.promise("service.database-ends")
@pytest.mark.parametrize("leaving", LEAVING.values(), ids=LEAVING)
def test_a_program_that_ends_without_closing_it_leaves_it_in_order(leaving: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + leaving, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == (3 if "exit" in leaving else 0), done.stderr
    check(folder, len(done.stdout.splitlines()))


@pytest.mark.promise("service.database-ends")
@pytest.mark.parametrize("working", WORKING.values(), ids=WORKING)
def test_ctrl_c_ends_a_program_in_the_midst_of_its_calls(working: str, folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + working, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate()
    assert process.returncode == -signal.SIGINT, errors
    assert "KeyboardInterrupt" in errors
    check(folder, 1 + len(printed.splitlines()))


TELLING = """
async def main():
    await begin()
    input()
    await database.close()

asyncio.run(main())
"""


@pytest.mark.quick
@pytest.mark.promise("console.connected")
def test_programs_that_embed_it_tell_of_themselves_until_they_end(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "crew.py"
    program.write_text(PROGRAM + TELLING)
    with Database(folder, embedder="none") as database:

        def told(*pids: int) -> list[ProcessPresence]:
            """Return who tells of itself, once these do and nobody else."""
            for _ in range(20_000):
                found = database.call(database.ask, PRESENCE, ReadPresence())
                if [each.pid for each in found] == list(pids):
                    return found
            raise AssertionError(f"{found} are not {pids}")

        with subprocess.Popen(
            [sys.executable, program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            here, there = told(os.getpid(), process.pid)
            assert (here.role, there.role, there.version) == ("owner", "attached", version("greenroom"))
            (client,) = there.clients
            assert (client.name, client.transport) == ("crew.py", "embedded")
            process.communicate("\n")
        assert len(told(os.getpid())) == 1


FORKING = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is what this is about

def child(do):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    do()
    sys.exit(7)

def use():
    try:
        database.remember("written by the child", user="ada")
    except RuntimeClosedError as error:
        assert "fork" in str(error), error
    else:
        sys.exit(8)
    with Database(sys.argv[1], embedder="none") as own:
        own.remember("written by a database of its own", user="ada")
    with database:
        database.remember("written by the same object, opened anew", user="ada")

def use_async():
    async def main():
        try:
            await database.ask(None, None)
        except RuntimeClosedError as error:
            assert "fork" in str(error), error
        else:
            sys.exit(8)
        await database.close()
    asyncio.run(main())

with database:
    database.remember("written by the parent", user="ada")
    print(child(use), child(use_async), child(lambda: sys.exit(7)))
    print(*sorted(memory.content for memory in database.search("written", user="ada")), sep="\\n")
"""


@pytest.mark.promise("service.database-ends")
def test_a_forked_child_hears_that_the_database_is_its_parents_and_ends(folder: Path) -> None:
    program = PROGRAM.replace(
        "import Database", "import Database\nfrom greenroom.runtime import RuntimeClosedError\nimport os"
    )
    done = subprocess.run(
        [sys.executable, "-c", program + FORKING, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "7 7 7",
        "written by a database of its own",
        "written by the parent",
        "written by the same object, opened anew",
    ]


FORKED = """\
import os, sys
from greenroom.actors import Database
from greenroom.runtime import RuntimeClosedError

def create(database, name):
    database.call(lambda: database.sessions.create_session(name, "app", "ada"))

def in_child(work):
    sys.stdout.flush()
    if not (child := os.fork()):
        work()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

def use():
    try:
        create(database, "child")
    except RuntimeClosedError as error:
        print("fork" in str(error), flush=True)

def open_again():
    with database:
        create(database, "again")

with Database(sys.argv[1], embedder="none") as database:
    in_child(lambda: None)
    in_child(use)
    in_child(open_again)
    create(database, "parent")
sessions = Database(sys.argv[1], embedder="none")
sessions.__enter__()
in_child(lambda: None)
"""

FORKED_ASYNC = """\
import asyncio, multiprocessing, os, sys
from greenroom.actors import Database
from greenroom.runtime import RuntimeClosedError

def use():
    try:
        asyncio.run(database.sessions.get_session("s"))
    except RuntimeClosedError:
        sys.exit(5)

database = Database(sys.argv[1], embedder="none")

async def main():
    async with database:
        await database.sessions.create_session("s", "app", "ada")
        child = multiprocessing.get_context("fork").Process(target=use)
        child.start()
        child.join()
        print(child.exitcode, flush=True)
        assert await database.sessions.get_session("s")

asyncio.run(main())
"""


@pytest.mark.quick
@pytest.mark.promise("service.database-forked")
@pytest.mark.parametrize(
    ("program", "printed"),
    [(FORKED, ["7", "True", "7", "7", "7"]), (FORKED_ASYNC, ["5"])],
    ids=["by hand", "multiprocessing"],
)
def test_a_forked_child_is_refused_at_once_and_can_leave(
    program: str, printed: list[str], folder: Path
) -> None:
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, printed), done.stderr
    check_order(folder)


OWNING = """\
import os, sys
from greenroom.actors import Database

with Database(sys.argv[1], embedder="none") as database:
    database.call(lambda: database.sessions.create_session("s", "app", "ada"))
    print("owner", flush=True)
    sys.stdin.readline()
    children = [os.fork() for _ in range(2)]
    if 0 in children:
        os.read(int(sys.argv[2]), 1)
        os._exit(0)
    print("forked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.promise("sharing.takeover", "store.fork")
def test_children_of_a_killed_owner_keep_nobody_from_taking_over(folder: Path) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-W", "ignore", "-c", OWNING, str(folder), str(reading)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[reading]
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert owner.stdout.readline() == "owner\n"
        with Database(folder, embedder="none") as database:
            database.call(database.sessions.get_session, "s")  # attached: the connection is there
            owner.stdin.write("\n")
            owner.stdin.flush()
            assert owner.stdout.readline() == "forked\n"
            owner.kill()
            owner.wait()
            assert database.call(database.sessions.get_session, "s") is not None
            os.close(reading)
            os.write(writing, b"..")  # which the children still wait for: with none left it would fail
    os.close(writing)
