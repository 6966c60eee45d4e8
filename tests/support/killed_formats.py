"""A program: a change of a store's format is killed before each of its lines, and the store is opened.

It forks, so that nothing has to be imported for each kill. Prints a JSON line for each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copytree
from types import FrameType
from typing import Any, Final

from support.formats import WAYS, crash_image, format_in

from greenroom.runtime import ACTORS, Encryption, FolderLock, Store, WriteBatch, downgrade

MODULES: Final = ("environment.py", "downgrade.py")
FUNCTIONS: Final = frozenset({"open_recent", "_change_format", "put", "write_downgraded_format", "downgrade"})


def _open(folder: Path, encryption: Encryption | None) -> None:
    with FolderLock(folder) as owner:
        Store(owner.folder, encryption=encryption).close()
        owner.mark_clean()


WORKS: Final[dict[str, Callable[[Path, Encryption | None], object]]] = {
    "upgrade": _open,
    "downgrade": lambda folder, encryption: downgrade(folder, encryption=encryption),
}


def _dies_at(line: int) -> None:
    """Have the process killed before a line of those functions, counted from 1 as they are run."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        code = frame.f_code
        if code.co_name not in FUNCTIONS or not code.co_filename.endswith(MODULES):
            return None
        if event == "line":
            lines += 1
            if lines == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def main(home: Path, work: str, way: str) -> None:
    """Kill it at every line until one is never reached."""
    encryption = WAYS[way]
    rows = {b"%d" % n: b"row %d" % n for n in range(30)}
    whole, begun = home / "whole", home / "begun"
    with closing(Store(whole, encryption=encryption)) as store:
        store.commit([WriteBatch(None, [(ACTORS, *row) for row in rows.items()])])
        crash_image(whole, begun)  # the rows are recent ones
    if work == "upgrade":
        downgrade(begun, encryption=encryption)
    line, was_killed = 0, True
    while was_killed:
        line += 1
        folder = home / f"{line}"
        copytree(begun, folder)
        child = os.fork()
        if not child:
            _dies_at(line)
            WORKS[work](folder, encryption)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status)
        left = format_in(folder)
        with closing(Store(folder, encryption=encryption)) as store:
            has_all = dict(store.scan(ACTORS, b"")) == rows
        found = {"line": line, "killed": was_killed, "left": left, "has_all": has_all}
        print(json.dumps(found | {"now": format_in(folder)}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
