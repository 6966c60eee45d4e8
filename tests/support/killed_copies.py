"""A program: a command that copies a store is killed at its calls of files, and the next run follows.

It is killed for real, in a fork, at the n-th call that opens, names, locks or removes a file or starts a
process. Prints a JSON line for each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import trio
from support.agents import FAST

from greenroom.actors import Agent, Principal, StoreMemory, encrypt_greenroom, finish_erasing, open_greenroom
from greenroom.actors.app.open import repair_greenroom
from greenroom.runtime import Encryption, FolderLock, Store, backup, restore, verify
from greenroom.runtime.maintenance.temporary_copies import left_over

MARK: Final = b"wyvern likes tea"
KEY: Final = Encryption(lambda: b"\x07" * 32)
LIKE_ONE: Final = ".greenroom.00000000408cf5f7"
LIKE_ANOTHER: Final = ".greenroom.000000010d47395f"
BY_CHANCE: Final = ".greenroom.0123456789abcdef"
"""Names as copies have them while they grow, of what is none."""
_CALLS: Final = ("open", "os.", "fcntl.", "subprocess.")


def _options(home: Path) -> dict[str, Any]:
    return {"embedder": "none", "secrets": home / "secrets", "options": FAST}


async def _make(home: Path) -> None:
    async with open_greenroom(home / "store", **_options(home)) as runtime:
        await Agent(runtime, Principal(agent_id="a", user="ann")).ask(StoreMemory(content=MARK.decode()))


def _of_an_open_store(home: Path, copy: Callable[[Store], Any]) -> None:
    with FolderLock(home / "store") as owner, closing(Store(owner.folder)) as store:
        copy(store)
        owner.mark_clean()


WORKS: Final[dict[str, Callable[[Path], Any]]] = {
    "backup": lambda home: backup(home / "store", home / "out" / "copy", encryption=KEY),
    "backup of an open store": lambda home: _of_an_open_store(
        home, lambda store: backup(store, home / "out" / "copy")
    ),
    "verify of an open store": lambda home: _of_an_open_store(home, verify),
    "repair": lambda home: repair_greenroom(home / "store", home / "out" / "copy", now=0),
    "restore": lambda home: restore(home / "given", home / "store"),
    "encrypt": lambda home: encrypt_greenroom(home / "store", KEY),
    "erase": lambda home: finish_erasing(home / "store", secrets=home / "secrets"),
}


def _calls(work: Callable[[], Any], kill_at: int) -> int:
    """Do the work in a fork, which is killed at a call, counted from 1; return at how many it was not."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        calls = 0

        def count(event: str, _: tuple[object, ...]) -> None:
            nonlocal calls
            if event.startswith(_CALLS):
                calls += 1
                if calls == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        work()
        os.write(writing, str(calls).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return int(told.read() or 0)


def _holding(home: Path) -> set[str]:
    """Return the names of files in which the mark is."""
    paths = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path) for path in paths if MARK in path.read_bytes()}


async def _serve(home: Path) -> None:
    async with open_greenroom(home / "store", encryption=KEY, **_options(home)):
        await trio.lowlevel.checkpoint()


def _tried(begun: Path, home: Path, work: str, kill_at: int) -> dict[str, Any]:
    copytree(begun, home, symlinks=True)
    killed = not _calls(partial(WORKS[work], home), kill_at)
    own = {"store/greenroom.mdb", "store/greenroom.mdb.before-restore", "out/copy", "given", "out/letter"}
    found = _holding(home) - {str(home / name) for name in own}
    known = [str(path) for path in left_over(home / "store")]
    unknown = [path for path in found if not path.startswith(tuple(known or ["-"]))]
    if kill_at % 2:
        trio.run(_serve, home)
    else:
        backup(home / "store", home / "out" / "next", encryption=KEY)
    if work == "encrypt" and not kill_at % 2:
        encrypt_greenroom(home / "store", KEY)
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("*"))
    return {"at": kill_at, "killed": killed, "left": len(found), "unknown": unknown, "names": names}


def main(home: Path, work: str, tries: int) -> None:
    """Kill the work at about so many of its calls."""
    begun = home / "begun"
    trio.run(_make, begun)
    backup(begun / "store", begun / "given")
    out = begun / "out"
    out.mkdir()
    (out / "letter").write_bytes(MARK)
    (out / BY_CHANCE).write_bytes(b"named so by chance")
    (out / LIKE_ONE).symlink_to("letter")
    (out / LIKE_ANOTHER).mkdir()
    copytree(begun, home / "whole", symlinks=True)
    calls = _calls(partial(WORKS[work], home / "whole"), 0)
    for kill_at in range(calls, 0, -max(1, calls // tries)):
        print(json.dumps(_tried(begun, home / str(kill_at), work, kill_at)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
