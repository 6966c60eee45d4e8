"""A process that has imported the commands of `greenroom`, and forks each one that a test runs.

A command takes 0.4 seconds of a processor to import what it runs, and often a tenth of that to do what a
test asks. Forked it is the same program, with the arguments, environment, folder and standard streams of
whoever asks. How Python itself starts, what is imported for what, and what only the parent of a process may
do with it (signals, limits, a terminal of its own) is tested on `harness.PROGRAM`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree

from greenroom.transports.cli import main as cli
from greenroom.transports.cli import parsing as parsing  # for each command, and only when one runs
from greenroom.transports.cli.catalogue import COMMANDS

_asking: dict[int, socket.socket] = {}  # who is told how a process ended


@functools.cache
def forked_program() -> list[str]:
    """Return what stands before a command's arguments to have it forked, by a process that ends with ours."""
    folder = Path(tempfile.mkdtemp(prefix="forking-"))
    atexit.register(rmtree, folder)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "door"))
        door.listen(64)
        forking = subprocess.Popen(
            [sys.executable, __file__, str(door.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[door.fileno()],
        )
    atexit.register(forking.communicate)
    return [sys.executable, "-ISs", str(Path(__file__).parent / "forked_command.py"), str(folder / "door")]


def main(door: socket.socket) -> None:
    """Fork whatever is asked for, until standard input is closed."""
    for module in {"offline", *(entry.runs[0] for entry in COMMANDS.values())}:
        import_module(f"greenroom.transports.cli.commands.{module}")
    gc.freeze()  # or each process collects at its end what was imported here
    signal.signal(signal.SIGCHLD, _tell_ends)
    while door in select.select([door, sys.stdin], [], [])[0]:
        asking = door.accept()[0]
        size, descriptors, *_ = socket.recv_fds(asking, 8, 4)
        with asking.makefile("rb") as source:
            arguments, environment = marshal.loads(source.read(int.from_bytes(size, "big")))  # noqa: S302 - ours
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known whose end it is
        child = os.fork()
        if not child:
            break
        _asking[child] = asking
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for each in descriptors:
            os.close(each)
    else:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for end in (door, asking, *_asking.values()):
        end.close()
    _become(descriptors, arguments, environment)
    sys.exit(cli.main())


def _become(descriptors: list[int], arguments: list[str], environment: dict[str, str]) -> None:
    """Take the standard streams, folder, arguments and environment of who asks."""
    *streams, folder = descriptors
    os.fchdir(folder)
    for place, each in enumerate(streams):
        os.dup2(each, place)
    for each in descriptors:
        os.close(each)
    sys.stdin, sys.stdout = (open(place, mode, closefd=False) for place, mode in enumerate("rw"))  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _tell_ends(*_: object) -> None:
    for child in list(_asking):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with _asking.pop(child) as asking, suppress(BrokenPipeError):  # who asked may have been killed
                asking.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, "big", signed=True))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
